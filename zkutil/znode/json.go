package znode

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Field is a JSON member that a decoder does not know; Raw is its value as it stood.
type Field struct {
	Name string
	Raw  json.RawMessage
}

// Fields are unknown members in the order in which they stood.
type Fields []Field

// DecodeError says what is wrong with a node's value. Field is empty when the value as a whole is bad.
type DecodeError struct {
	Path   string
	Field  string
	Reason string
}

// Error names path, field and reason.
func (e *DecodeError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("%s: field %q: %s", e.Path, e.Field, e.Reason)
}

// decoder takes the members of one JSON object by name and keeps the first error. What has not been taken
// at the end is unknown.
type decoder struct {
	path   string
	fields []Field
	err    error
}

func newDecoder(path string, data []byte) *decoder {
	d := &decoder{path: path}
	if !json.Valid(data) {
		d.fail("", "value is not JSON: %s", excerpt(data))
		return d
	}
	d.fields = splitObject(data)
	if d.fields == nil {
		d.fail("", "value is not a JSON object: %s", excerpt(data))
	}
	return d
}

func (d *decoder) fail(field, format string, args ...any) {
	if d.err == nil {
		d.err = &DecodeError{Path: d.path, Field: field, Reason: fmt.Sprintf(format, args...)}
	}
}

// take removes a member and returns its last value, as Kafka's parser does with doubled keys.
func (d *decoder) take(name string) (raw json.RawMessage, ok bool) {
	kept := d.fields[:0]
	for _, f := range d.fields {
		if f.Name == name {
			raw, ok = f.Raw, true
			continue
		}
		kept = append(kept, f)
	}
	d.fields = kept
	return raw, ok
}

func (d *decoder) unknown() Fields {
	if len(d.fields) == 0 {
		return nil
	}
	out := make(Fields, len(d.fields))
	for i, f := range d.fields {
		out[i] = Field{f.Name, slices.Clone(f.Raw)}
	}
	return out
}

// integer takes a required integer within [lo, hi].
func (d *decoder) integer(name string, lo, hi int64) int64 {
	raw, ok := d.take(name)
	if !ok {
		d.fail(name, "is missing")
		return 0
	}
	return d.parseInt(name, raw, lo, hi)
}

func (d *decoder) int32(name string, lo int64) int32 {
	return int32(d.integer(name, lo, math.MaxInt32))
}

// optionalInt32 takes an integer that may be absent or null.
func (d *decoder) optionalInt32(name string, lo int64, absent int32) int32 {
	raw, ok := d.take(name)
	if !ok || string(raw) == "null" {
		return absent
	}
	return int32(d.parseInt(name, raw, lo, math.MaxInt32))
}

func (d *decoder) parseInt(name string, raw []byte, lo, hi int64) int64 {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		d.fail(name, "%s is not an integer", excerpt(raw))
		return 0
	}
	if v < lo || v > hi {
		d.fail(name, "%d is outside %d..%d", v, lo, hi)
		return 0
	}
	return v
}

// decimal takes a 64-bit integer that Kafka writes as a string; a plain number is read too.
func (d *decoder) decimal(name string, required bool, lo int64) int64 {
	raw, ok := d.take(name)
	if !ok {
		if required {
			d.fail(name, "is missing")
		}
		return 0
	}
	if len(raw) > 0 && raw[0] == '"' {
		s, _ := unquote(raw)
		raw = []byte(s)
	}
	return d.parseInt(name, raw, lo, math.MaxInt64)
}

func (d *decoder) text(name string, required bool) string {
	raw, ok := d.take(name)
	if !ok || string(raw) == "null" {
		if required {
			d.fail(name, "is missing")
		}
		return ""
	}
	s, ok := unquote(raw)
	if !ok {
		d.fail(name, "%s is not a string", excerpt(raw))
	}
	return s
}

// object takes a nested object; absent or null gives nil.
func (d *decoder) object(name string, required bool) []Field {
	raw, ok := d.take(name)
	if !ok || string(raw) == "null" {
		if required {
			d.fail(name, "is missing")
		}
		return nil
	}
	fields := splitObject(raw)
	if fields == nil {
		d.fail(name, "%s is not an object", excerpt(raw))
	}
	return fields
}

// array takes a required list.
func (d *decoder) array(name string) []json.RawMessage {
	raw, ok := d.take(name)
	if !ok {
		d.fail(name, "is missing")
		return nil
	}
	items, ok := splitArray(raw)
	if !ok {
		d.fail(name, "%s is not a list", excerpt(raw))
	}
	return items
}

func excerpt(b []byte) string {
	const most = 60
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "…"
	}
	return strconv.QuoteToASCII(string(b))
}

// splitObject cuts valid JSON into its members; nil when it is not an object, empty and not nil for {}.
func splitObject(data []byte) []Field {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return nil
	}
	fields := make([]Field, 0, 6)
	for i = skipSpace(data, i+1); i < len(data) && data[i] != '}'; {
		end := skipValue(data, i)
		name, _ := unquote(data[i:end])
		i = skipSpace(data, skipSpace(data, end)+1) // over the colon
		end = skipValue(data, i)
		fields = append(fields, Field{name, data[i:end:end]})
		i = skipSpace(data, end)
		if i < len(data) && data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	return fields
}

func splitArray(data []byte) (items []json.RawMessage, ok bool) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return nil, false
	}
	for i = skipSpace(data, i+1); i < len(data) && data[i] != ']'; {
		end := skipValue(data, i)
		items = append(items, data[i:end:end])
		i = skipSpace(data, end)
		if i < len(data) && data[i] == ',' {
			i = skipSpace(data, i+1)
		}
	}
	return items, true
}

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the value that starts at i. The data is known to be valid JSON.
func skipValue(data []byte, i int) int {
	depth := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = endOfString(data, i)
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of a number or word that closes its container
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

func endOfString(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i, len(data)-1)
}

func unquote(raw []byte) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	plain := true
	for _, c := range raw[1 : len(raw)-1] {
		if c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// encoder appends the members of one JSON object.
type encoder struct {
	b     []byte
	empty bool
}

func newEncoder(size int) *encoder {
	return &encoder{b: append(make([]byte, 0, size), '{'), empty: true}
}

func (e *encoder) key(name string) {
	if !e.empty {
		e.b = append(e.b, ',')
	}
	e.empty = false
	e.b = appendString(e.b, name)
	e.b = append(e.b, ':')
}

func (e *encoder) int(name string, v int64) {
	e.key(name)
	e.b = strconv.AppendInt(e.b, v, 10)
}

func (e *encoder) text(name, v string) {
	e.key(name)
	e.b = appendString(e.b, v)
}

// decimal writes a 64-bit integer as a string, as Kafka does.
func (e *encoder) decimal(name string, v int64) {
	e.text(name, strconv.FormatInt(v, 10))
}

func (e *encoder) raw(name string, v []byte) {
	e.key(name)
	e.b = append(e.b, v...)
}

// end writes the unknown members and closes the object.
func (e *encoder) end(unknown Fields) []byte {
	for _, f := range unknown {
		if json.Valid(f.Raw) {
			e.raw(f.Name, f.Raw)
		}
	}
	return append(e.b, '}')
}

// appendString quotes as Jackson does: only quote, backslash and control characters are escaped, with upper
// case hex digits; broken UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, '\\', 'b')
		case r == '\f':
			b = append(b, '\\', 'f')
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
