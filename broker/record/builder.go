package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Builder makes one batch. Set the exported fields, Add records, then Build; Reset starts the next batch and
// keeps the space. The zero value plus NewBuilder's defaults is ready. Not safe for concurrent use.
type Builder struct {
	Compression   Compression
	BaseOffset    int64
	LeaderEpoch   int32
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	LogAppendTime bool
	Transactional bool
	Control       bool

	payload       []byte
	scratch       []byte
	count         int32
	lastDelta     int32
	baseTimestamp int64
	maxTimestamp  int64
}

// NewBuilder returns a builder of batches without producer id and leader epoch.
func NewBuilder(c Compression) *Builder {
	b := &Builder{Compression: c}
	b.Reset()
	return b
}

// Reset forgets the records and sets producer fields and leader epoch to none.
func (b *Builder) Reset() {
	b.LeaderEpoch, b.ProducerID, b.ProducerEpoch, b.BaseSequence = -1, NoProducerID, NoProducerEpoch, NoSequence
	b.BaseOffset = 0
	b.payload = b.payload[:0]
	b.count, b.lastDelta, b.baseTimestamp, b.maxTimestamp = 0, -1, NoTimestamp, NoTimestamp
}

// Count is the number of records added.
func (b *Builder) Count() int { return int(b.count) }

// Size is the number of bytes of the uncompressed batch so far.
func (b *Builder) Size() int { return HeaderSize + len(b.payload) }

// Add appends a record at the next offset. A nil key or value is null; timestamps are ms.
func (b *Builder) Add(timestamp int64, key, value []byte, headers ...Header) {
	b.AddAt(b.lastDelta+1, timestamp, key, value, headers...)
}

// AddAt appends a record at a given offset delta, above that of the record before.
func (b *Builder) AddAt(delta int32, timestamp int64, key, value []byte, headers ...Header) {
	if b.count == 0 {
		b.baseTimestamp, b.maxTimestamp = timestamp, timestamp
	}
	b.maxTimestamp = max(b.maxTimestamp, timestamp)
	body := append(b.scratch[:0], 0)
	body = binary.AppendVarint(body, timestamp-b.baseTimestamp)
	body = binary.AppendVarint(body, int64(delta))
	body = appendBytes(body, key)
	body = appendBytes(body, value)
	body = binary.AppendVarint(body, int64(len(headers)))
	for _, h := range headers {
		body = binary.AppendVarint(body, int64(len(h.Key)))
		body = append(body, h.Key...)
		body = appendBytes(body, h.Value)
	}
	b.scratch = body
	b.payload = binary.AppendVarint(b.payload, int64(len(body)))
	b.payload = append(b.payload, body...)
	b.count++
	b.lastDelta = delta
}

func appendBytes(dst, p []byte) []byte {
	if p == nil {
		return binary.AppendVarint(dst, -1)
	}
	dst = binary.AppendVarint(dst, int64(len(p)))
	return append(dst, p...)
}

// Build appends the batch to dst and returns it. An empty batch is refused with ErrInvalid, one whose length
// does not fit the format with ErrTooLarge.
func (b *Builder) Build(dst []byte) ([]byte, error) {
	if b.count == 0 {
		return nil, fmt.Errorf("batch without records: %w", ErrInvalid)
	}
	return b.build(dst, b.payload)
}

func (b *Builder) build(dst, payload []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	dst, err := Compress(b.Compression, dst, payload)
	if err != nil {
		return nil, err
	}
	if len(dst)-start > math.MaxInt32 {
		return nil, ErrTooLarge
	}
	h := Batch(dst[start:])
	binary.BigEndian.PutUint64(h, uint64(b.BaseOffset))
	binary.BigEndian.PutUint32(h[offLength:], uint32(len(h)-FrameSize))
	binary.BigEndian.PutUint32(h[offEpoch:], uint32(b.LeaderEpoch))
	h[offMagic] = Magic
	binary.BigEndian.PutUint16(h[offAttributes:], uint16(b.attributes()))
	binary.BigEndian.PutUint32(h[offLastDelta:], uint32(b.lastDelta))
	binary.BigEndian.PutUint64(h[offBaseTime:], uint64(b.baseTimestamp))
	binary.BigEndian.PutUint64(h[offMaxTime:], uint64(b.maxTimestamp))
	binary.BigEndian.PutUint32(h[offCount:], uint32(b.count))
	h.SetProducer(b.ProducerID, b.ProducerEpoch, b.BaseSequence) // makes the CRC
	return dst, nil
}

func (b *Builder) attributes() int16 {
	a := int16(b.Compression) & attrCodecMask
	if b.LogAppendTime {
		a |= attrTimeType
	}
	if b.Transactional {
		a |= attrTxn
	}
	if b.Control {
		a |= attrControl
	}
	return a
}

// AddControl appends an end-of-transaction marker; the batch becomes a transactional control batch.
func (b *Builder) AddControl(timestamp int64, c Control) {
	b.Control, b.Transactional = true, true
	key := binary.BigEndian.AppendUint16(make([]byte, 2, 4), uint16(c.Type))
	value := binary.BigEndian.AppendUint32(make([]byte, 2, 6), uint32(c.CoordinatorEpoch))
	b.Add(timestamp, key, value)
}

// Recompress appends to dst the same batch with another codec: same header fields, same records. limit bounds
// the unpacked bytes. As all of them are at hand, the records are checked as by CheckRecords.
func Recompress(dst []byte, b Batch, to Compression, limit int) ([]byte, error) {
	it, err := b.Records(nil, limit)
	if err != nil {
		return nil, err
	}
	payload := it.rest
	if err := it.check(false); err != nil {
		return nil, err
	}
	start := len(dst)
	dst = append(dst, b[:HeaderSize]...)
	if dst, err = Compress(to, dst, payload); err != nil {
		return nil, err
	}
	if len(dst)-start > math.MaxInt32 {
		return nil, ErrTooLarge
	}
	out := Batch(dst[start:])
	binary.BigEndian.PutUint32(out[offLength:], uint32(len(out)-FrameSize))
	binary.BigEndian.PutUint16(out[offAttributes:], uint16(b.Attributes()&^attrCodecMask|int16(to)))
	out.UpdateCRC()
	return dst, nil
}
