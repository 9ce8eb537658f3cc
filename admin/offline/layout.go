package offline

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// The types of fields in Kafka's message definitions. A secret is bytes that are passed over.
type fieldType uint8

const (
	boolT fieldType = iota
	int8T
	int16T
	uint16T
	int32T
	int64T
	float64T
	uuidT
	stringT
	bytesT
	secretT
	structT
)

// field is one field of a record, as Kafka's message definitions describe it.
type field struct {
	name     string
	kind     fieldType
	sub      []field // of a structT
	many     bool    // an array of it
	from     int16   // first version that has it
	last     int16   // last version that has it; 0: all that follow
	nullable bool
	tag      int // in the tagged section; -1: not there
}

func of(name string, kind fieldType) field { return field{name: name, kind: kind, tag: -1} }

func list(name string, kind fieldType) field {
	return field{name: name, kind: kind, many: true, tag: -1}
}

func structs(name string, sub ...field) field {
	return field{name: name, kind: structT, sub: sub, many: true, tag: -1}
}

func (f field) since(version int16) field { f.from = version; return f }

func (f field) until(version int16) field { f.last = version; return f }

// in reports whether a version has the field.
func (f *field) in(version int16) bool {
	return version >= f.from && (f.last == 0 || version <= f.last)
}

func (f field) orNull() field { f.nullable = true; return f }

func (f field) tagged(n int) field { f.tag = n; return f }

// one makes a list of structures a single one.
func (f field) one() field { f.many = false; return f }

// layout is a record: its fields and the newest version that is known.
type layout struct {
	newest int16
	fields []field
}

func fields(newest int16, fs ...field) *layout { return &layout{newest, fs} }

// secret reports whether a record has a field that must not be shown: then its bytes must not be either.
func (l *layout) secret() bool {
	return slices.ContainsFunc(l.fields, func(f field) bool { return f.kind == secretT })
}

// What ends the reading of a record.
var (
	errCut  = errors.New("it ends in the middle")
	errNull = errors.New("null where it must not be")
)

// wire reads values of a record. err sticks.
type wire struct {
	b        []byte
	flexible bool // compact lengths and tagged fields
	err      error
}

func (w *wire) take(n uint64) []byte {
	if w.err == nil && n > uint64(len(w.b)) {
		w.err = errCut
	}
	if w.err != nil {
		w.b = nil
		return nil
	}
	v := w.b[:n:n]
	w.b = w.b[n:]
	return v
}

// number reads a big-endian integer of n bytes, sign extended.
func (w *wire) number(n uint64) int64 {
	b := w.take(n)
	if b == nil {
		return 0
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}

func (w *wire) uvarint() uint64 {
	v, n := binary.Uvarint(w.b)
	if w.err == nil && n <= 0 {
		w.err = errCut
	}
	if w.err != nil {
		w.b = nil
		return 0
	}
	w.b = w.b[n:]
	return v
}

// length reads that of a string (short), bytes or an array; -1 for null.
func (w *wire) length(short bool) int64 {
	switch {
	case w.flexible:
		n := w.uvarint()
		if n > math.MaxInt32 {
			w.err = errCut
			return 0
		}
		return int64(n) - 1
	case short:
		return w.number(2)
	}
	return w.number(4)
}

// record reads the fields of one version, then tagged ones.
func (w *wire) record(fs []field, version int16) map[string]any {
	out := map[string]any{}
	for i := range fs {
		if f := &fs[i]; f.tag < 0 && f.in(version) {
			w.field(out, f, version)
		}
	}
	if w.flexible {
		w.tags(out, fs, version)
	}
	return out
}

// tagPrefix begins the names of tagged fields that are not known.
const tagPrefix = "tag"

// tags reads the tagged section; tags that are not known are kept as hexadecimal text.
func (w *wire) tags(out map[string]any, fs []field, version int16) {
	for n := w.uvarint(); n > 0 && w.err == nil; n-- {
		tag, size := w.uvarint(), w.uvarint()
		body := &wire{b: w.take(size), flexible: true, err: w.err}
		known := false
		for i := range fs {
			if f := &fs[i]; f.tag >= 0 && uint64(f.tag) == tag && f.in(version) {
				body.field(out, f, version)
				known = true
			}
		}
		if !known && w.err == nil && !(&layout{fields: fs}).secret() {
			out[tagPrefix+strconv.FormatUint(tag, 10)] = hex.EncodeToString(body.b)
		}
		if w.err == nil {
			w.err = body.err
		}
	}
}

func (w *wire) field(out map[string]any, f *field, version int16) {
	if !f.many {
		v := w.value(f, version)
		if f.kind != secretT {
			out[f.name] = v
		}
		return
	}
	n := w.length(false)
	if n < 0 {
		w.null(f)
		out[f.name] = nil
		return
	}
	if n > int64(len(w.b)) { // an element takes a byte at least
		w.err = errCut
		return
	}
	all := make([]any, 0, n)
	for ; n > 0 && w.err == nil; n-- {
		all = append(all, w.value(f, version))
	}
	out[f.name] = all
}

func (w *wire) null(f *field) {
	if w.err == nil && !f.nullable {
		w.err = fmt.Errorf("%s: %w", f.name, errNull)
	}
}

// value reads one value in the form in which Kafka's tools print it in JSON.
func (w *wire) value(f *field, version int16) any {
	switch f.kind {
	case boolT:
		return w.number(1) != 0
	case int8T:
		return w.number(1)
	case int16T:
		return w.number(2)
	case uint16T:
		return w.number(2) & 0xffff
	case int32T:
		return w.number(4)
	case int64T:
		return w.number(8)
	case float64T:
		v := math.Float64frombits(uint64(w.number(8)))
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no number for them
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	case uuidT:
		return base64.RawURLEncoding.EncodeToString(w.take(16))
	case structT:
		if f.nullable && !f.many && w.absent(f) {
			return nil
		}
		return w.record(f.sub, version)
	}
	return w.sized(f)
}

// absent reads whether a structure is null: in the tagged section it is preceded by 0 or 1, elsewhere by -1 or 1.
func (w *wire) absent(f *field) bool {
	if f.tag >= 0 {
		return w.uvarint() == 0
	}
	return w.number(1) < 0
}

// sized reads text or bytes.
func (w *wire) sized(f *field) any {
	n := w.length(f.kind == stringT)
	if n < 0 {
		if !f.many {
			w.null(f)
		}
		return nil
	}
	b := w.take(uint64(n))
	switch f.kind {
	case stringT:
		return string(b)
	case bytesT:
		return base64.StdEncoding.EncodeToString(b)
	}
	return nil
}

// read decodes a body of the given version. What could be read is returned with an error too.
func (l *layout) read(b []byte, version int16, flexible bool) (map[string]any, error) {
	if version < 0 || version > l.newest {
		return nil, fmt.Errorf("version %d is not known: the newest is %d", version, l.newest)
	}
	w := &wire{b: b, flexible: flexible}
	out := w.record(l.fields, version)
	switch {
	case w.err != nil:
		return nil, w.err
	case len(w.b) > 0:
		return out, fmt.Errorf("%d bytes are left over", len(w.b))
	}
	return out, nil
}
