package admin

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

// FuzzZooKeeperAddress: what is accepted has one correct form, which reads as the same address.
func FuzzZooKeeperAddress(f *testing.F) {
	for _, s := range []string{"h1:2181,h2:2181/kc", "[::1]/a/b", " h1:1 , h2:2 ", "h1:1/a,h2:2/a", "/", ",", "h:0", "[h", "h//x", "h:2181/ "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseZooKeeperAddress(s)
		if err != nil {
			refused(t, err)
			return
		}
		again, err := ParseZooKeeperAddress(a.String())
		if err != nil || again.Chroot != a.Chroot || !slices.Equal(again.Servers, a.Servers) {
			t.Fatalf("%q: %q, then %q, %v", s, a, again, err)
		}
	})
}

// FuzzBootstrap: what is accepted are addresses to dial.
func FuzzBootstrap(f *testing.F) {
	for _, s := range []string{"h1,h2:9093", "PLAINTEXT://h:1", "[::1]", "", ",", "h:x", "h/2", "://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, err := ParseBootstrap(s)
		if err != nil {
			refused(t, err)
			return
		}
		for _, server := range servers {
			if host, _, err := net.SplitHostPort(server); err != nil || host == "" {
				t.Fatalf("%q gives %q: %v", s, server, err)
			}
		}
	})
}

// FuzzProperties reads client property files: nothing panics, and the settings are checked, whatever they are.
func FuzzProperties(f *testing.F) {
	f.Add("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x required username=\"a\" password=\"b\\\\\"\";")
	f.Add("a\\:b : c\\\n  d\n#x\n!y\n\\u0041=1")
	f.Add("ssl.truststore.type=JKS\nsecurity.protocol=SSL")
	f.Add("a=\\u12")
	f.Fuzz(func(t *testing.T, s string) {
		props, err := ParseProperties(strings.NewReader(s))
		if err != nil {
			refused(t, err)
			return
		}
		for name := range props {
			if name == "" {
				t.Fatalf("%q gives a setting without a name", s)
			}
		}
		_ = props.Check()
	})
}

// FuzzJAAS reads sasl.jaas.config.
func FuzzJAAS(f *testing.F) {
	for _, s := range []string{`org.x.PlainLoginModule required username="a" password="b\"c";`, `x required a=b;`, "x required a=", `x required a="`, ";", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := parseJAAS(s); err != nil {
			refused(t, err)
		}
	})
}

// refused wants an error that is the caller's mistake and says something.
func refused(t *testing.T, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || strings.TrimSpace(e.Error()) == "" {
		t.Fatalf("%#v is not an error about bad input", err)
	}
}
