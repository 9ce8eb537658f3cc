package record

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
)

// HeaderSize is the length of a batch header in bytes; FrameSize is the part before and including the
// length field, which the length does not count.
const (
	HeaderSize = 61
	FrameSize  = 12
	// Magic is the only format that is stored.
	Magic = 2
)

const (
	offLength      = 8
	offEpoch       = 12
	offMagic       = 16
	offCRC         = 17
	offAttributes  = 21
	offLastDelta   = 23
	offBaseTime    = 27
	offMaxTime     = 35
	offProducerID  = 43
	offProducerEp  = 51
	offBaseSeq     = 53
	offCount       = 57
	attrCodecMask  = 0x07
	attrTimeType   = 0x08
	attrTxn        = 0x10
	attrControl    = 0x20
	attrDelHorizon = 0x40
)

// Values that mean none.
const (
	NoTimestamp     int64 = -1
	NoProducerID    int64 = -1
	NoProducerEpoch int16 = -1
	NoSequence      int32 = -1
)

// Errors of this package; each wraps the protocol error a client is answered with, so that
// errors.As(err, **kerr.Error) yields the code.
var (
	// ErrIncomplete says that the bytes end before the batch does.
	ErrIncomplete = fmt.Errorf("incomplete record batch: %w", kerr.CorruptMessage)
	// ErrCorrupt says that lengths or the CRC are wrong.
	ErrCorrupt = fmt.Errorf("corrupt record batch: %w", kerr.CorruptMessage)
	// ErrInvalid says that the batch is intact but breaks a rule (counts, attributes, missing key).
	ErrInvalid = fmt.Errorf("invalid record batch: %w", kerr.InvalidRecord)
	// ErrUnsupportedFormat says that the batch has the old message format 0 or 1.
	ErrUnsupportedFormat = fmt.Errorf("message format before v2: %w", kerr.UnsupportedForMessageFormat)
	// ErrTooLarge says that a batch or what it unpacks to is over a limit.
	ErrTooLarge = fmt.Errorf("record batch too large: %w", kerr.MessageTooLarge)
	// ErrUnsupportedCompression says that the codec number is unknown.
	ErrUnsupportedCompression = fmt.Errorf("unknown compression codec: %w", kerr.UnsupportedCompressionType)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is the bytes of exactly one batch of format v2, header included. Make one with Next or Parse;
// accessors on anything shorter than HeaderSize panic.
type Batch []byte

// Next splits the first batch off buf. It checks the frame, not the CRC (see Batch.Verify): the length
// field is sane and the magic is 2. ErrIncomplete when buf ends inside the batch: rest is then buf itself.
func Next(buf []byte) (b Batch, rest []byte, err error) {
	n, err := PeekSize(buf)
	if err != nil {
		return nil, buf, err
	}
	if n > len(buf) {
		return nil, buf, ErrIncomplete
	}
	return Batch(buf[:n:n]), buf[n:], nil
}

// PeekSize returns the whole size in bytes of the batch whose first bytes are given, at least 17 of them.
// It checks magic and length.
func PeekSize(head []byte) (int, error) {
	if len(head) <= offMagic {
		return 0, ErrIncomplete
	}
	magic := int8(head[offMagic])
	if magic == 0 || magic == 1 {
		return 0, ErrUnsupportedFormat
	}
	if magic != Magic {
		return 0, fmt.Errorf("magic %d: %w", magic, ErrCorrupt)
	}
	length := int32(binary.BigEndian.Uint32(head[offLength:]))
	if length < HeaderSize-FrameSize || length > math.MaxInt32-FrameSize {
		return 0, fmt.Errorf("length %d: %w", length, ErrCorrupt)
	}
	return int(length) + FrameSize, nil
}

// BaseOffset is the offset of the first record.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b)) }

// LastOffset is the offset of the last record that the batch ever held.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// NextOffset is the offset after the batch.
func (b Batch) NextOffset() int64 { return b.LastOffset() + 1 }

// LeaderEpoch is the epoch of the leader that appended the batch, -1 when unset.
func (b Batch) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(b[offEpoch:])) }

// CRC is the stored checksum.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[offCRC:]) }

// Attributes are the flag bits; see the package comment.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[offAttributes:])) }

// LastOffsetDelta is the last record's offset minus the base offset.
func (b Batch) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(b[offLastDelta:])) }

// BaseTimestamp is the first record's timestamp in ms, or the delete horizon when HasDeleteHorizon.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[offBaseTime:])) }

// MaxTimestamp is the largest timestamp of the batch in ms, or the append time with LogAppendTime.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[offMaxTime:])) }

// ProducerID is the idempotent producer's id, -1 when there is none.
func (b Batch) ProducerID() int64 { return int64(binary.BigEndian.Uint64(b[offProducerID:])) }

// ProducerEpoch is the producer's epoch, -1 when there is none.
func (b Batch) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(b[offProducerEp:])) }

// BaseSequence is the first record's sequence number, -1 when there is none.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[offBaseSeq:])) }

// LastSequence is the last record's sequence number; it wraps after MaxInt32.
func (b Batch) LastSequence() int32 {
	if s := b.BaseSequence(); s != NoSequence {
		return AddSequence(s, b.LastOffsetDelta())
	}
	return NoSequence
}

// Count is the number of records.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[offCount:])) }

// Compression is the codec of the records.
func (b Batch) Compression() Compression { return Compression(b.Attributes() & attrCodecMask) }

// IsLogAppendTime reports whether MaxTimestamp replaces the records' own timestamps.
func (b Batch) IsLogAppendTime() bool { return b.Attributes()&attrTimeType != 0 }

// IsTransactional reports whether the batch belongs to a transaction.
func (b Batch) IsTransactional() bool { return b.Attributes()&attrTxn != 0 }

// IsControl reports whether the batch holds a marker instead of data.
func (b Batch) IsControl() bool { return b.Attributes()&attrControl != 0 }

// HasDeleteHorizon reports whether BaseTimestamp is a delete horizon (KIP-534).
func (b Batch) HasDeleteHorizon() bool { return b.Attributes()&attrDelHorizon != 0 }

// HasProducerID reports whether an idempotent producer wrote the batch.
func (b Batch) HasProducerID() bool { return b.ProducerID() > NoProducerID }

// Payload is the records' bytes as stored.
func (b Batch) Payload() []byte { return b[HeaderSize:] }

// Verify checks the CRC.
func (b Batch) Verify() error {
	if got := crc32.Checksum(b[offAttributes:], castagnoli); got != b.CRC() {
		return fmt.Errorf("CRC is %08x, header says %08x: %w", got, b.CRC(), ErrCorrupt)
	}
	return nil
}

// SetBaseOffset changes the base offset in place; the CRC does not cover it.
func (b Batch) SetBaseOffset(offset int64) { binary.BigEndian.PutUint64(b, uint64(offset)) }

// SetLeaderEpoch changes the leader epoch in place; the CRC does not cover it.
func (b Batch) SetLeaderEpoch(epoch int32) { binary.BigEndian.PutUint32(b[offEpoch:], uint32(epoch)) }

// SetLogAppendTime marks the batch as stamped by the broker at ms and makes a new CRC.
func (b Batch) SetLogAppendTime(ms int64) {
	binary.BigEndian.PutUint16(b[offAttributes:], uint16(b.Attributes())|attrTimeType)
	binary.BigEndian.PutUint64(b[offMaxTime:], uint64(ms))
	b.UpdateCRC()
}

// SetProducer changes the producer's id, epoch and base sequence and makes a new CRC.
func (b Batch) SetProducer(id int64, epoch int16, baseSequence int32) {
	binary.BigEndian.PutUint64(b[offProducerID:], uint64(id))
	binary.BigEndian.PutUint16(b[offProducerEp:], uint16(epoch))
	binary.BigEndian.PutUint32(b[offBaseSeq:], uint32(baseSequence))
	b.UpdateCRC()
}

// UpdateCRC writes the checksum of the present contents.
func (b Batch) UpdateCRC() {
	binary.BigEndian.PutUint32(b[offCRC:], crc32.Checksum(b[offAttributes:], castagnoli))
}

// AddSequence adds to a sequence number, wrapping from MaxInt32 to 0 as Kafka does.
func AddSequence(seq, n int32) int32 {
	if seq > math.MaxInt32-n {
		return n - (math.MaxInt32 - seq) - 1
	}
	return seq + n
}

// SubSequence is the reverse of AddSequence.
func SubSequence(seq, n int32) int32 {
	if seq < n {
		return math.MaxInt32 - (n - seq) + 1
	}
	return seq - n
}
