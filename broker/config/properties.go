package config

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf16"
)

// propertiesBytesMax bounds a configuration file; a real one has a few KiB.
const propertiesBytesMax = 4 << 20

// Property is one assignment of a .properties file. Line is where it starts, from 1; 0 for --set.
type Property struct {
	Key, Value string
	Line       int
}

// ParseFile reads the .properties file at path.
func ParseFile(path string) ([]Property, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	props, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return props, nil
}

// Parse reads the format of java.util.Properties: comments with # or !, separators =, : or white space,
// continuation of a line by a final odd backslash, and the escapes \t \n \r \f \uXXXX. Assignments come in
// file order; a later one of the same key wins (see Merge). Errors name the line.
func Parse(r io.Reader) ([]Property, error) {
	sc := bufio.NewScanner(io.LimitReader(r, propertiesBytesMax))
	sc.Buffer(make([]byte, 0, 64<<10), propertiesBytesMax)
	var out []Property
	line := 0
	for sc.Scan() {
		line++
		start := line
		text := trimLeft(strings.TrimSuffix(sc.Text(), "\r"))
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		var logical strings.Builder
		for continues(text) {
			logical.WriteString(text[:len(text)-1])
			text = ""
			if !sc.Scan() {
				break
			}
			line++
			text = trimLeft(strings.TrimSuffix(sc.Text(), "\r"))
		}
		logical.WriteString(text)
		p, err := splitProperty(logical.String())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start, err)
		}
		p.Line = start
		out = append(out, p)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", line+1, err)
	}
	return out, nil
}

// ParseSet reads one key=value of the command line. The value is taken as it is, without escapes.
func ParseSet(s string) (Property, error) {
	key, value, ok := strings.Cut(s, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return Property{}, fmt.Errorf("%q is not of the form key=value", s)
	}
	return Property{Key: key, Value: strings.TrimSpace(value)}, nil
}

// Merge turns assignments into a map; the last one of a key wins.
func Merge(props []Property) map[string]string {
	out := make(map[string]string, len(props))
	for _, p := range props {
		out[p.Key] = p.Value
	}
	return out
}

func trimLeft(s string) string { return strings.TrimLeft(s, " \t\f") }

// continues reports whether the line ends with an odd number of backslashes.
func continues(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// splitProperty cuts a logical line at the first unescaped separator: white space, or one = or : with white
// space around it.
func splitProperty(s string) (Property, error) {
	end := keyEnd(s)
	rest := trimLeft(s[end:])
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = trimLeft(rest[1:])
	}
	key, err := unescape(s[:end])
	if err != nil {
		return Property{}, err
	}
	value, err := unescape(rest)
	if err != nil {
		return Property{}, fmt.Errorf("value of %s: %w", key, err)
	}
	// Java keeps trailing blanks, and every Kafka parser then trims the value.
	return Property{Key: key, Value: strings.TrimRight(value, " \t")}, nil
}

func keyEnd(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			return i
		}
	}
	return len(s)
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			break
		}
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, used, err := unicodeEscape(s[i+1:])
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			i += used
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// unicodeEscape reads the digits after \u, and a second escape when the first is half of a surrogate pair.
func unicodeEscape(s string) (r rune, used int, err error) {
	hi, err := hex4(s)
	if err != nil {
		return 0, 0, err
	}
	if !utf16.IsSurrogate(hi) {
		return hi, 4, nil
	}
	if len(s) >= 6 && s[4] == '\\' && s[5] == 'u' {
		if lo, err := hex4(s[6:]); err == nil {
			return utf16.DecodeRune(hi, lo), 10, nil
		}
	}
	return 0xfffd, 4, nil
}

func hex4(s string) (rune, error) {
	if len(s) < 4 {
		return 0, fmt.Errorf(`malformed \uXXXX escape`)
	}
	v, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil {
		return 0, fmt.Errorf(`malformed \uXXXX escape %q`, `\u`+s[:4])
	}
	return rune(v), nil
}
