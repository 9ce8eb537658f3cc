package offline

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	logOverhead   = 12 // offset and length, in front of every batch and message
	magicAt       = 16
	v2HeaderBytes = 61
	v0HeaderBytes = logOverhead + 4 + 1 + 1 // up to the key length
	v0Least       = v0HeaderBytes + 8
	crcChunk      = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Codec is the compression of a batch.
type Codec int8

// The codecs of Kafka's attributes.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	Zstd
)

// String returns Kafka's name of the codec.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec-%d", int8(c))
}

// Batch is the header of a record batch (magic 2) or of one message (magic 0 and 1; a compressed one wraps others).
type Batch struct {
	Position      int64 // in the file
	Size          int64 // whole, in bytes
	BaseOffset    int64 // of a compressed message: that of its first inner message; see Count
	LastOffset    int64
	Count         int32 // records; -1: a wrapping message whose inside was not read yet
	LeaderEpoch   int32 // -1 below magic 2
	Magic         int8
	Codec         Codec
	LogAppendTime bool
	Transactional bool
	Control       bool
	DeleteHorizon bool // base timestamp holds the delete horizon (KIP-534)
	BaseTimestamp int64
	MaxTimestamp  int64 // -1: none
	ProducerID    int64
	ProducerEpoch int16
	BaseSequence  int32
	CRC           uint32 // as stored
	CRCComputed   uint32
	header        int64 // bytes in front of the records (magic 2) or of the key length
}

// CRCValid reports whether the stored checksum is that of the bytes.
func (b *Batch) CRCValid() bool { return b.CRC == b.CRCComputed }

// LastSequence is the sequence of the last record, -1 without producer. Sequences wrap at 2^31.
func (b *Batch) LastSequence() int32 {
	if b.BaseSequence < 0 {
		return -1
	}
	return int32((int64(b.BaseSequence) + b.LastOffset - b.BaseOffset) & 0x7fffffff)
}

// TimestampType is CreateTime, LogAppendTime, or NoTimestampType below magic 1.
func (b *Batch) TimestampType() string {
	switch {
	case b.Magic == 0:
		return "NoTimestampType"
	case b.LogAppendTime:
		return "LogAppendTime"
	}
	return "CreateTime"
}

// frame reads the 17 bytes that every format shares; cause is empty when they can be meant.
func frame(h []byte, left int64) (size int64, magic int8, cause string) {
	size = int64(int32(binary.BigEndian.Uint32(h[8:]))) + logOverhead
	magic = int8(h[magicAt])
	least := int64(v0Least)
	if magic == 2 {
		least = v2HeaderBytes
	}
	switch {
	case magic < 0 || magic > 2:
		return size, magic, fmt.Sprintf("magic %d is not 0, 1 or 2", magic)
	case size < least:
		return size, magic, fmt.Sprintf("the length says %d bytes, a batch of magic %d has at least %d", size, magic, least)
	case size > left:
		return size, magic, fmt.Sprintf("the batch has %d bytes, the file ends after %d of them", size, left)
	}
	return size, magic, ""
}

// parseBatch reads the header at position; the frame was checked.
func parseBatch(r io.ReaderAt, position, size int64, magic int8) (*Batch, string, error) {
	if magic < 2 {
		return parseMessage(r, position, size, magic)
	}
	var h [v2HeaderBytes]byte
	if err := readFull(r, h[:], position); err != nil {
		return nil, "", err
	}
	be := binary.BigEndian
	attributes := be.Uint16(h[21:])
	b := &Batch{
		Position: position, Size: size, Magic: magic, header: v2HeaderBytes,
		BaseOffset: int64(be.Uint64(h[0:])), LeaderEpoch: int32(be.Uint32(h[12:])), CRC: be.Uint32(h[17:]),
		Codec: Codec(attributes & 7), LogAppendTime: attributes&8 != 0, Transactional: attributes&16 != 0,
		Control: attributes&32 != 0, DeleteHorizon: attributes&64 != 0,
		BaseTimestamp: int64(be.Uint64(h[27:])), MaxTimestamp: int64(be.Uint64(h[35:])),
		ProducerID: int64(be.Uint64(h[43:])), ProducerEpoch: int16(be.Uint16(h[51:])), BaseSequence: int32(be.Uint32(h[53:])),
		Count: int32(be.Uint32(h[57:])),
	}
	delta := int64(int32(be.Uint32(h[23:])))
	b.LastOffset = b.BaseOffset + delta
	if b.BaseOffset < 0 || delta < 0 || b.LastOffset < 0 {
		return b, fmt.Sprintf("base offset %d and last offset delta %d cannot be", b.BaseOffset, delta), nil
	}
	if b.Count < 0 || int64(b.Count) > delta+1 {
		return b, fmt.Sprintf("%d records do not fit into the offsets %d to %d", b.Count, b.BaseOffset, b.LastOffset), nil
	}
	return b, "", nil
}

func parseMessage(r io.ReaderAt, position, size int64, magic int8) (*Batch, string, error) {
	var h [v0HeaderBytes + 8]byte
	if err := readFull(r, h[:], position); err != nil {
		return nil, "", err
	}
	be := binary.BigEndian
	attributes := h[17]
	b := &Batch{
		Position: position, Size: size, Magic: magic, header: v0HeaderBytes, LeaderEpoch: -1, Count: 1,
		LastOffset: int64(be.Uint64(h[0:])), CRC: be.Uint32(h[12:]), Codec: Codec(attributes & 7),
		BaseTimestamp: -1, MaxTimestamp: -1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
	}
	if magic == 1 {
		b.header += 8
		b.LogAppendTime = attributes&8 != 0
		b.MaxTimestamp = int64(be.Uint64(h[18:]))
		b.BaseTimestamp = b.MaxTimestamp
	}
	b.BaseOffset = b.LastOffset
	if b.Codec != None {
		b.Count = -1
	}
	if b.LastOffset < 0 {
		return b, fmt.Sprintf("offset %d cannot be", b.LastOffset), nil
	}
	if size < b.header+8 {
		return b, fmt.Sprintf("the length says %d bytes, a message of magic %d has at least %d", size, magic, b.header+8), nil
	}
	return b, "", nil
}

// checksum computes the checksum over the bytes of a batch that it covers.
func checksum(r io.ReaderAt, b *Batch, buf []byte) (uint32, error) {
	from, table := int64(21), castagnoli
	if b.Magic < 2 {
		from, table = magicAt, crc32.IEEETable
	}
	var sum uint32
	for at, end := b.Position+from, b.Position+b.Size; at < end; {
		n := min(int64(len(buf)), end-at)
		if err := readFull(r, buf[:n], at); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, table, buf[:n])
		at += n
	}
	return sum, nil
}

func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at position %d: %w", len(p), at, err)
}
