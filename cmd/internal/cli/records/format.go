package records

import (
	"bufio"
	"errors"
	"fmt"
	"strconv"

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
		if format[i] == '%' {
			literal = append(literal, '%')
			continue
		}
		f, ok := fields[format[i]]
		if !ok {
			return nil, fmt.Errorf("%%%c is not known: %%v %%k %%t %%p %%o %%T %%D %%h %%s %%%%", format[i])
		}
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
