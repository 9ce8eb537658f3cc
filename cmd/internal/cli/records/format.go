package records

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kctl/admin"
)

// piece writes one part of a format: a literal or a field.
type piece func(w *bufio.Writer, r *admin.Record)

// compileFormat reads a format once, so that a record costs only the writing.
func compileFormat(format string) (func(*bufio.Writer, *admin.Record) error, error) {
	var pieces []piece
	var literal []byte
	flush := func() {
		if len(literal) > 0 {
			text := literal
			pieces = append(pieces, func(w *bufio.Writer, _ *admin.Record) { w.Write(text) })
			literal = nil
		}
	}
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' && c != '\\' {
			literal = append(literal, c)
			continue
		}
		i++
		if i == len(format) {
			return nil, errors.New("it ends in the middle of an escape")
		}
		if c == '\\' {
			b, err := escape(format[i])
			if err != nil {
				return nil, err
			}
			literal = append(literal, b)
			continue
		}
		if format[i] == '%' || format[i] == '{' {
			literal = append(literal, format[i])
			continue
		}
		f, n, err := field(format[i:])
		if err != nil {
			return nil, err
		}
		i += n - 1
		flush()
		pieces = append(pieces, f)
	}
	flush()
	return func(w *bufio.Writer, r *admin.Record) error {
		for _, p := range pieces {
			p(w, r)
		}
		_, err := w.Write(nil) // a write error sticks to the writer and is returned here
		return err
	}, nil
}

// field finds what the letters after a percent sign stand for, and how many they are.
func field(s string) (piece, int, error) {
	if s[0] == 'v' || s[0] == 'k' {
		if how, _, ok := strings.Cut(s[1:], "}"); ok && strings.HasPrefix(how, "{") {
			enc := encodings[how[1:]]
			if enc == nil {
				return nil, 0, fmt.Errorf("%%%c{%s} is not known: {hex} {base64} {json}", s[0], how[1:])
			}
			of := func(r *admin.Record) []byte { return r.Value }
			if s[0] == 'k' {
				of = func(r *admin.Record) []byte { return r.Key }
			}
			return func(w *bufio.Writer, r *admin.Record) { w.WriteString(enc(of(r))) }, len(how) + 2, nil
		}
	}
	f, ok := fields[s[0]]
	if !ok {
		return nil, 0, fmt.Errorf("%%%c is not known: %%v %%k %%t %%p %%o %%T %%D %%h %%s %%S %%K %%%%", s[0])
	}
	return f, 1, nil
}

// encodings write bytes as text; a null value is null in JSON and nothing otherwise.
var encodings = map[string]func([]byte) string{
	"hex":    hex.EncodeToString,
	"base64": base64.StdEncoding.EncodeToString,
	"json": func(b []byte) string {
		if b == nil {
			return "null"
		}
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(string(b)) // a string always encodes
		return strings.TrimSuffix(out.String(), "\n")
	},
}

func escape(c byte) (byte, error) {
	switch c {
	case 'n':
		return '\n', nil
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case '0':
		return 0, nil
	case '\\':
		return '\\', nil
	}
	return 0, fmt.Errorf("\\%c is not known: \\n \\t \\r \\0 \\\\", c)
}

var fields = map[byte]piece{
	'v': func(w *bufio.Writer, r *admin.Record) { w.Write(r.Value) },
	'k': func(w *bufio.Writer, r *admin.Record) { w.Write(r.Key) },
	't': func(w *bufio.Writer, r *admin.Record) { w.WriteString(r.Topic) },
	'p': func(w *bufio.Writer, r *admin.Record) { writeInt(w, int64(r.Partition)) },
	'o': func(w *bufio.Writer, r *admin.Record) { writeInt(w, r.Offset) },
	'T': func(w *bufio.Writer, r *admin.Record) { writeInt(w, r.Timestamp.UnixMilli()) },
	'D': func(w *bufio.Writer, r *admin.Record) {
		w.WriteString(r.Timestamp.UTC().Format("2006-01-02T15:04:05.000") + "Z")
	},
	's': func(w *bufio.Writer, r *admin.Record) { writeInt(w, int64(len(r.Value))) },
	'S': func(w *bufio.Writer, r *admin.Record) { writeInt(w, int64(len(r.Value))) },
	'K': func(w *bufio.Writer, r *admin.Record) { writeInt(w, int64(len(r.Key))) },
	'h': func(w *bufio.Writer, r *admin.Record) {
		for i, h := range r.Headers {
			if i > 0 {
				w.WriteByte(',')
			}
			w.WriteString(h.Key)
			w.WriteByte('=')
			w.Write(h.Value)
		}
	},
}

func writeInt(w *bufio.Writer, n int64) {
	var buf [20]byte
	w.Write(strconv.AppendInt(buf[:0], n, 10))
}
