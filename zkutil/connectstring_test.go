package zkutil

import (
	"errors"
	"strings"
	"testing"
)

func TestParseConnectString(t *testing.T) {
	for in, want := range map[string]string{
		"h:2181":                         "h:2181",
		"h1:2181,h2:2182":                "h1:2181,h2:2182",
		"h1:2181,h2:2181/kc":             "h1:2181,h2:2181/kc",
		"h1:2181,h2:2181/kc/":            "h1:2181,h2:2181/kc",
		"h:2181/a/b":                     "h:2181/a/b",
		"h:2181/":                        "h:2181",
		" h1:2181 , h2:2181/kc ":         "h1:2181,h2:2181/kc",
		"h":                              "h:2181",
		"h/kc":                           "h:2181/kc",
		"[::1]:2181/kc":                  "[::1]:2181/kc",
		"[::1]/kc":                       "[::1]:2181/kc",
		"[fe80::1%eth0]:2181,10.0.0.1:1": "[fe80::1%eth0]:2181,10.0.0.1:1",
	} {
		got, err := ParseConnectString(in)
		if err != nil || got.String() != want {
			t.Errorf("%q: %q, %v, want %q", in, got.String(), err, want)
		}
	}
}

func TestBadConnectStrings(t *testing.T) {
	for in, text := range map[string]string{
		"":                       "empty",
		",":                      "empty",
		"h1:2181,,h2:2181":       "empty",
		"h1:2181/kc,h2:2181/kc":  `"h1:2181,h2:2181/kc"`,
		"h1:2181/kc,h2:2181/kc/": `"h1:2181,h2:2181/kc"`,
		"h1:2181/kc,h2:2181":     `"h1:2181,h2:2181/kc"`,
		"h1:2181/a,h2:2181/b":    "different chroots",
		"::1:2181":               "brackets",
		"h:port":                 "not a port",
		"h:0":                    "not a port",
		"h:70000":                "not a port",
		":2181":                  "bad host",
		"h:2181/a//b":            "empty or dotted",
		"h:2181/../b":            "empty or dotted",
		"h:2181/a b":             "blank",
		"/kc":                    "empty",
		"zk://h:2181/kc":         `no scheme: write "h:2181/kc"`,
	} {
		got, err := ParseConnectString(in)
		if !errors.Is(err, ErrConnectString) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %q, error %v, want one with %q", in, got.String(), err, text)
		}
	}
}

func FuzzParseConnectString(f *testing.F) {
	for _, s := range []string{"h1:2181,h2:2181/kc", "[::1]:2181/kc", "h1:2181/kc,h2:2181/kc", "", "h/", "a:1/b/c/", "[", "]:1", "a@b:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseConnectString(s)
		if err != nil {
			if !errors.Is(err, ErrConnectString) {
				t.Errorf("error %v", err)
			}
			return
		}
		again, err := ParseConnectString(c.String())
		if err != nil || again.String() != c.String() {
			t.Errorf("%q became %q, then %q, %v", s, c, again, err)
		}
	})
}
