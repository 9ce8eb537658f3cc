package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Header is one record header. Key and Value alias the batch's (unpacked) bytes.
type Header struct {
	Key   string
	Value []byte // nil: null
}

// Record is one record of a batch. Key, Value and the headers alias the unpacked bytes.
type Record struct {
	Offset    int64
	Timestamp int64  // ms
	Key       []byte // nil: null
	Value     []byte // nil: null

	headers []byte // after the count
	count   int
}

// HeaderCount is the number of headers.
func (r *Record) HeaderCount() int { return r.count }

// Headers decodes the headers; they were checked when the record was read.
func (r *Record) Headers() []Header {
	if r.count == 0 {
		return nil
	}
	out := make([]Header, 0, r.count)
	p := reader{buf: r.headers}
	for range r.count {
		key := p.bytes()
		out = append(out, Header{Key: string(key), Value: p.bytes()})
	}
	return out
}

// reader takes varints and byte strings off a slice; the first fault sticks.
type reader struct {
	buf []byte
	bad bool
}

func (p *reader) varint() int64 {
	v, n := binary.Varint(p.buf)
	if n <= 0 {
		p.bad, p.buf = true, nil
		return 0
	}
	p.buf = p.buf[n:]
	return v
}

func (p *reader) varint32() int32 {
	v := p.varint()
	if v < math.MinInt32 || v > math.MaxInt32 {
		p.bad, p.buf = true, nil
		return 0
	}
	return int32(v)
}

func (p *reader) byte() byte {
	if len(p.buf) == 0 {
		p.bad = true
		return 0
	}
	b := p.buf[0]
	p.buf = p.buf[1:]
	return b
}

// bytes reads a length-prefixed string; -1 is null, other negative lengths are a fault.
func (p *reader) bytes() []byte {
	n := p.varint32()
	if n == -1 {
		return nil
	}
	if n < 0 || int(n) > len(p.buf) {
		p.bad, p.buf = true, nil
		return nil
	}
	b := p.buf[:n:n]
	p.buf = p.buf[n:]
	return b
}

// Iterator walks over the records of one batch. Use: for it.Next() { it.Record() }; then Err.
type Iterator struct {
	batch Batch
	rest  []byte
	left  int32
	rec   Record
	err   error
}

// Records returns an iterator over the batch's records, unpacking them into dst's space first; limit bounds
// the unpacked bytes. Control batches' records are read like others; see ParseControl.
func (b Batch) Records(dst []byte, limit int) (*Iterator, error) {
	payload, err := Decompress(b.Compression(), dst, b.Payload(), limit)
	if err != nil {
		return nil, err
	}
	if n := b.Count(); n < 0 || int(n) > len(payload)/minRecordBytes {
		return nil, fmt.Errorf("%d records in %d bytes: %w", n, len(payload), ErrInvalid)
	}
	return &Iterator{batch: b, rest: payload, left: b.Count()}, nil
}

// Next reads the next record; false at the end or on a fault.
func (it *Iterator) Next() bool {
	if it.err != nil {
		return false
	}
	if it.left == 0 {
		if len(it.rest) != 0 {
			it.err = fmt.Errorf("%d bytes after the last record: %w", len(it.rest), ErrInvalid)
		}
		return false
	}
	it.left--
	p := reader{buf: it.rest}
	body := p.bytes()
	if p.bad || body == nil {
		it.err = fmt.Errorf("record length: %w", ErrInvalid)
		return false
	}
	it.rest = p.buf
	if !it.parse(body) {
		it.err = fmt.Errorf("record at offset delta %d: %w", it.batch.Count()-it.left-1, ErrInvalid)
		return false
	}
	return true
}

func (it *Iterator) parse(body []byte) bool {
	p := reader{buf: body}
	p.byte() // attributes, unused
	ts, delta := p.varint(), p.varint32()
	it.rec = Record{Offset: it.batch.BaseOffset() + int64(delta), Timestamp: it.batch.BaseTimestamp() + ts}
	if it.batch.IsLogAppendTime() {
		it.rec.Timestamp = it.batch.MaxTimestamp()
	}
	it.rec.Key = p.bytes()
	it.rec.Value = p.bytes()
	n := p.varint32()
	if p.bad || n < 0 || int(n) > len(p.buf)/2 || delta < 0 {
		return false
	}
	it.rec.headers, it.rec.count = p.buf, int(n)
	for range n {
		if p.bytes() == nil {
			p.bad = true // a header key must not be null
		}
		p.bytes()
	}
	return !p.bad && len(p.buf) == 0
}

// Record is the present record, valid until Next.
func (it *Iterator) Record() *Record { return &it.rec }

// Err is what ended the iteration before its end, nil otherwise.
func (it *Iterator) Err() error { return it.err }

// minRecordBytes is the size of an empty record: length, attributes, two deltas, two null lengths, count.
const minRecordBytes = 7

// CheckFrames verifies that the lengths of an uncompressed batch's records add up to its payload and that
// there are Count of them. It reads one varint per record and nothing of the records' contents.
func (b Batch) CheckFrames() error {
	rest := b.Payload()
	for i := b.Count(); i > 0; i-- {
		n, w := frameLength(rest)
		if w == 0 || n < minRecordBytes-1 || n > len(rest)-w {
			return fmt.Errorf("record length: %w", ErrInvalid)
		}
		rest = rest[w+n:]
	}
	if len(rest) != 0 {
		return fmt.Errorf("%d bytes after the last record: %w", len(rest), ErrInvalid)
	}
	return nil
}

// frameLength reads a zig-zag varint of one or two bytes quickly, longer ones the general way.
func frameLength(p []byte) (n, width int) {
	if len(p) >= 2 {
		if p[0] < 0x80 {
			return int(p[0]>>1) ^ -int(p[0]&1), 1
		}
		if p[1] < 0x80 {
			u := int(p[0]&0x7f) | int(p[1])<<7
			return u>>1 ^ -(u & 1), 2
		}
	}
	v, w := binary.Varint(p)
	if w <= 0 || v < 0 || v > math.MaxInt32 {
		return 0, 0
	}
	return int(v), w
}

// ControlType is the kind of a control batch's marker.
type ControlType int16

// The markers.
const (
	ControlAbort  ControlType = 0
	ControlCommit ControlType = 1
)

// Control is the marker that ends a transaction.
type Control struct {
	Type             ControlType
	CoordinatorEpoch int32 // of the transaction coordinator
}

// ParseControl reads the marker of a control batch. Markers of other types than abort and commit have a type
// that is neither and no coordinator epoch.
func (b Batch) ParseControl() (Control, error) {
	if !b.IsControl() {
		return Control{}, fmt.Errorf("not a control batch: %w", ErrInvalid)
	}
	it, err := b.Records(nil, 1<<16)
	if err != nil {
		return Control{}, err
	}
	if !it.Next() {
		return Control{}, fmt.Errorf("control batch without a record: %w", ErrInvalid)
	}
	key, value := it.rec.Key, it.rec.Value
	if len(key) < 4 {
		return Control{}, fmt.Errorf("control key of %d bytes: %w", len(key), ErrInvalid)
	}
	c := Control{Type: ControlType(binary.BigEndian.Uint16(key[2:])), CoordinatorEpoch: -1}
	if c.Type != ControlAbort && c.Type != ControlCommit {
		return c, nil
	}
	if len(value) < 6 {
		return Control{}, fmt.Errorf("end-transaction marker of %d bytes: %w", len(value), ErrInvalid)
	}
	c.CoordinatorEpoch = int32(binary.BigEndian.Uint32(value[2:]))
	return c, nil
}
