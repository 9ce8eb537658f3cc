// Package jute reads and writes ZooKeeper's serialisation: big-endian numbers, length-prefixed buffers and
// strings, counted vectors. It knows no messages. A Decoder never panics and never allocates more than the
// bytes it was given; values are not safe for concurrent use.
package jute

import (
	"encoding/binary"
	"errors"
)

// ErrMalformed says that bytes end too early or hold an impossible length.
var ErrMalformed = errors.New("jute: malformed bytes")

// Decoder reads values from a message. The first error sticks: later reads return zero values, so that a
// caller may check Err once.
type Decoder struct {
	b   []byte
	err error
}

// NewDecoder returns a decoder of b. Buffers it returns share b's memory.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Err is nil or ErrMalformed.
func (d *Decoder) Err() error { return d.err }

// Rest is what has not been read.
func (d *Decoder) Rest() []byte { return d.b }

func (d *Decoder) take(n int) []byte {
	if d.err != nil || n > len(d.b) {
		d.err = ErrMalformed
		d.b = nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// Bool reads one byte; any value but 0 is true.
func (d *Decoder) Bool() bool {
	v := d.take(1)
	return v != nil && v[0] != 0
}

// Int reads an int32.
func (d *Decoder) Int() int32 {
	v := d.take(4)
	if v == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(v))
}

// Long reads an int64.
func (d *Decoder) Long() int64 {
	v := d.take(8)
	if v == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(v))
}

// Buffer reads bytes; nil when the length is -1.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	if n == -1 {
		return nil
	}
	if n < 0 {
		d.take(len(d.b) + 1)
		return nil
	}
	if n == 0 && d.err == nil {
		return []byte{}
	}
	return d.take(int(n))
}

// String reads a string; the null string reads as "".
func (d *Decoder) String() string { return string(d.Buffer()) }

// Count reads the length of a vector whose elements take at least least bytes; -1 (null) reads as 0. A count
// that cannot fit into the rest is malformed.
func (d *Decoder) Count(least int) int {
	n := d.Int()
	if n == -1 {
		return 0
	}
	if n < 0 || int(n) > len(d.b)/least {
		d.take(len(d.b) + 1)
		return 0
	}
	return int(n)
}

// Strings reads a vector of strings.
func (d *Decoder) Strings() []string {
	n := d.Count(4)
	if n == 0 {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		out = append(out, d.String())
	}
	return out
}

// AppendBool appends one byte.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt appends an int32.
func AppendInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendLong appends an int64.
func AppendLong(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendBuffer appends bytes with their length; nil is null.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	return append(AppendInt(b, int32(len(v))), v...)
}

// AppendString appends a string.
func AppendString(b []byte, v string) []byte { return append(AppendInt(b, int32(len(v))), v...) }

// AppendStrings appends a vector of strings.
func AppendStrings(b []byte, v []string) []byte {
	b = AppendInt(b, int32(len(v)))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}
