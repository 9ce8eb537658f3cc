package admin

import (
	"strings"
	"testing"
)

// TestJAAS: a password with any character reads as Java reads it; what Java refuses is refused, without printing it.
func TestJAAS(t *testing.T) {
	const module = "org.apache.kafka.common.security.scram.ScramLoginModule required username=u password="
	for in, want := range map[string]string{
		`"it's; \"x\"=1";`:        `it's; "x"=1`,
		`'a"b;c=d';`:              `a"b;c=d`,
		`"a\\b\tc\101\q";`:        "a\\b\tcAq",
		`plain;`:                  "plain",
		` "spaces around" ; `:     "spaces around",
		`"é€";`:                   "é€",
		"\"x\"\n\ttokenauth=no ;": "x",
	} {
		if got, err := parseJAAS(module + in); err != nil || got["password"] != want || got["username"] != "u" {
			t.Errorf("%s: %q %v, want %q", in, got["password"], err, want)
		}
	}
	for in, want := range map[string]string{
		`"secret`:          "does not end",
		`"secret"`:         "semicolon",
		`"sec"ret;`:        `written \"`,
		`"a";secret;`:      "follows its semicolon",
		`a;secret`:         "follows its semicolon",
		`"sec"ret" x="y";`: "",
	} {
		_, err := parseJAAS(module + in)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sec\"") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
