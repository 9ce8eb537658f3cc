package admin

import (
	"errors"
	"strings"
)

// parseJAAS reads `module required key="value" key='value' key=value;` as Java clients do: one module, and in quotes
// any character, with the escapes of Java (\" \\ \t \n \123).
func parseJAAS(s string) (map[string]string, error) {
	bad := func(what string) error { return badInput("sasl.jaas.config: %s", what) }
	rest := strings.TrimSpace(s)
	if i := strings.IndexAny(rest, " \t\n"); i >= 0 {
		rest = strings.TrimSpace(rest[i:])
	}
	if i := strings.IndexAny(rest, " \t\n"); i >= 0 && !strings.Contains(rest[:i], "=") {
		rest = strings.TrimSpace(rest[i:])
	}
	out := map[string]string{}
	for rest != "" && rest[0] != ';' {
		key, after, ok := strings.Cut(rest, "=")
		if !ok || strings.ContainsAny(strings.TrimSpace(key), " \t\n;\"'") {
			return nil, bad("an option is not key=\"value\", or a quote in a value is not written \\\" (in a properties file \\\\\")")
		}
		value, left, err := jaasValue(strings.TrimSpace(after))
		if err != nil {
			return nil, bad(err.Error())
		}
		out[strings.TrimSpace(key)] = value
		rest = strings.TrimSpace(left)
	}
	if rest == "" {
		return nil, bad("it does not end with a semicolon")
	}
	if strings.TrimSpace(rest[1:]) != "" {
		return nil, bad("something follows its semicolon: one login module is meant, and a value with a semicolon stands in quotes")
	}
	return out, nil
}

// jaasEscapes are those of a quoted value that do not stand for themselves.
var jaasEscapes = map[byte]byte{'a': 7, 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

func jaasValue(s string) (value, rest string, err error) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		i := strings.IndexAny(s, " \t\n;")
		if i < 0 {
			return "", "", errors.New("it does not end with a semicolon")
		}
		return s[:i], s[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			c, n := jaasEscape(s[i+1:])
			b.WriteString(c)
			i += n
		case s[i] == s[0]:
			return b.String(), s[i+1:], nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", errors.New("a quoted value does not end")
}

// jaasEscape reads what follows a backslash and returns how many bytes of it: up to three octal digits make a character.
func jaasEscape(s string) (string, int) {
	n, c := 0, rune(0)
	for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '7' && c*8+rune(s[n]-'0') < 256 {
		c = c*8 + rune(s[n]-'0')
		n++
	}
	if n > 0 {
		return string(c), n
	}
	if e, ok := jaasEscapes[s[0]]; ok {
		return string(rune(e)), 1
	}
	return s[:1], 1
}
