package offline

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxRecord bounds the size of one record that is held in memory, in bytes.
const MaxRecord = 256 << 20

// Record is one record of a batch. Key and Value are nil when null; without ReadOptions.Data they are nil and only
// their sizes (-1: null) are known. Their memory is the caller's.
type Record struct {
	Offset    int64
	Timestamp int64 // milliseconds since the Unix epoch, -1 below magic 1
	Sequence  int32 // -1: none
	KeySize   int
	ValueSize int
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is one header of a record; Value nil is null.
type Header struct {
	Key   string
	Value []byte
}

// ErrRecords says that the records of a batch are not what its header promises.
var ErrRecords = errors.New("the records are damaged")

// Records reads the records of a batch in order, compressed or not. data says whether keys, values and headers are
// wanted. It returns ErrRecords (wrapped, with the cause) for damage, and fn's error as it is. A wrapping message of
// magic 0 and 1 has its BaseOffset and Count set.
func (s *SegmentReader) Records(b *Batch, data bool, fn func(*Record) error) error {
	if b.Magic < 2 {
		return s.messages(b, data, fn)
	}
	body := io.NewSectionReader(s.r, b.Position+b.header, b.Size-b.header)
	stream, closer, err := decompress(b.Codec, b.Magic, body)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecords, err)
	}
	defer closer()
	in := bufio.NewReaderSize(stream, 16<<10)
	last := int64(-1)
	for i := range b.Count {
		rec, err := readRecord(in, b, data)
		if err != nil {
			return fmt.Errorf("%w: record %d of %d: %w", ErrRecords, i+1, b.Count, noEOF(err))
		}
		delta := rec.Offset - b.BaseOffset
		if delta <= last || rec.Offset > b.LastOffset {
			return fmt.Errorf("%w: record %d of %d has offset %d in a batch of offsets %d to %d", ErrRecords, i+1, b.Count, rec.Offset, b.BaseOffset, b.LastOffset)
		}
		last = delta
		if err := fn(rec); err != nil {
			return err
		}
	}
	if n, err := io.CopyN(io.Discard, in, 1); n > 0 || err != nil && err != io.EOF {
		return fmt.Errorf("%w: there is more behind the last of %d records", ErrRecords, b.Count)
	}
	return nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// bounded is a record's body: it ends where the record's length says.
type bounded struct {
	r    *bufio.Reader
	left int64
}

func (l *bounded) ReadByte() (byte, error) {
	if l.left <= 0 {
		return 0, errors.New("it is longer than its length says")
	}
	l.left--
	return l.r.ReadByte()
}

func (l *bounded) varint() (int64, error) { return binary.ReadVarint(l) }

// bytes reads a length and that many bytes; only their number when they are not kept.
func (l *bounded) bytes(keep bool) ([]byte, int, error) {
	n, err := l.varint()
	if err != nil || n < 0 {
		return nil, -1, err
	}
	if n > l.left {
		return nil, 0, fmt.Errorf("a field of %d bytes in a record with %d left", n, l.left)
	}
	l.left -= n
	b, err := take(l.r, n, keep)
	return b, int(n), err
}

// take reads n bytes; memory grows with what is really there, whatever n says.
func take(r io.Reader, n int64, keep bool) ([]byte, error) {
	if !keep {
		_, err := io.CopyN(io.Discard, r, n)
		return nil, err
	}
	if n > MaxRecord {
		return nil, fmt.Errorf("a field of %d bytes: %w", n, errTooLarge)
	}
	var b bytes.Buffer
	b.Grow(int(min(n, 4096)))
	if _, err := io.CopyN(&b, r, n); err != nil {
		return nil, err
	}
	if n == 0 {
		return []byte{}, nil
	}
	return b.Bytes(), nil
}

// readRecord reads: length | attributes i8 | timestamp delta | offset delta | key | value | headers, all varints.
func readRecord(in *bufio.Reader, b *Batch, data bool) (*Record, error) {
	length, err := binary.ReadVarint(in)
	if err != nil {
		return nil, err
	}
	if length < 0 || length > 1<<31-1 {
		return nil, fmt.Errorf("a length of %d", length)
	}
	l := &bounded{r: in, left: length}
	if _, err := l.ReadByte(); err != nil { // attributes, unused
		return nil, err
	}
	ts, err := l.varint()
	if err != nil {
		return nil, err
	}
	delta, err := l.varint()
	if err != nil {
		return nil, err
	}
	rec := &Record{Offset: b.BaseOffset + delta, Timestamp: b.BaseTimestamp + ts, Sequence: -1}
	if b.LogAppendTime {
		rec.Timestamp = b.MaxTimestamp
	}
	if b.BaseSequence >= 0 {
		rec.Sequence = int32((int64(b.BaseSequence) + delta) & 0x7fffffff)
	}
	if rec.Key, rec.KeySize, err = l.bytes(data); err != nil {
		return nil, err
	}
	if rec.Value, rec.ValueSize, err = l.bytes(data); err != nil {
		return nil, err
	}
	if rec.Headers, err = l.headers(data); err != nil {
		return nil, err
	}
	if l.left != 0 {
		return nil, fmt.Errorf("%d bytes are left over in it", l.left)
	}
	return rec, nil
}

func (l *bounded) headers(keep bool) ([]Header, error) {
	n, err := l.varint()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > l.left/2 {
		return nil, fmt.Errorf("%d headers in %d bytes", n, l.left)
	}
	var out []Header
	for range n {
		key, size, err := l.bytes(keep)
		if err != nil {
			return nil, err
		}
		if size < 0 {
			return nil, errors.New("a header without key")
		}
		value, _, err := l.bytes(keep)
		if err != nil {
			return nil, err
		}
		if keep {
			out = append(out, Header{string(key), value})
		}
	}
	return out, nil
}
