package offline

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// messages reads a message of magic 0 or 1, or those that a compressed one wraps. Wrapped messages of magic 1 have
// relative offsets, and the wrapper has the last one's (KIP-31), so that they are counted first.
func (s *SegmentReader) messages(b *Batch, data bool, fn func(*Record) error) error {
	if b.Codec == None {
		body := io.NewSectionReader(s.r, b.Position+b.header, b.Size-b.header)
		rec, err := keyValue(bufio.NewReader(body), b.Size-b.header, data)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRecords, noEOF(err))
		}
		rec.Offset, rec.Timestamp, rec.Sequence = b.LastOffset, b.MaxTimestamp, -1
		return fn(rec)
	}
	first, last, count := int64(-1), int64(-1), int32(0)
	err := s.inner(b, false, func(offset int64, _ *Record) error {
		if count == 0 {
			first = offset
		} else if offset <= last {
			return fmt.Errorf("%w: inner offset %d comes after %d", ErrRecords, offset, last)
		}
		last = offset
		count++
		return nil
	})
	if err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("%w: a compressed message without messages inside", ErrRecords)
	}
	shift := b.LastOffset - last
	if b.Magic == 0 && shift != 0 {
		return fmt.Errorf("%w: the wrapper has offset %d, its last message %d", ErrRecords, b.LastOffset, last)
	}
	b.BaseOffset, b.Count = first+shift, count
	if b.BaseOffset < 0 {
		return fmt.Errorf("%w: a first inner offset of %d", ErrRecords, b.BaseOffset)
	}
	return s.inner(b, data, func(offset int64, rec *Record) error {
		rec.Offset = offset + shift
		if b.LogAppendTime {
			rec.Timestamp = b.MaxTimestamp
		}
		return fn(rec)
	})
}

// inner walks the messages that a compressed message wraps.
func (s *SegmentReader) inner(b *Batch, data bool, fn func(offset int64, rec *Record) error) error {
	var sizes [8]byte
	if err := readFull(s.r, sizes[:4], b.Position+b.header); err != nil {
		return err
	}
	at := b.header + 4
	if key := int64(int32(binary.BigEndian.Uint32(sizes[:]))); key > 0 {
		at += key
	}
	if at+4 > b.Size {
		return fmt.Errorf("%w: the key is longer than the message", ErrRecords)
	}
	if err := readFull(s.r, sizes[:4], b.Position+at); err != nil {
		return err
	}
	value := int64(int32(binary.BigEndian.Uint32(sizes[:])))
	if at += 4; value < 0 || value != b.Size-at {
		return fmt.Errorf("%w: a value of %d bytes in a message with %d left", ErrRecords, value, b.Size-at)
	}
	stream, closer, err := decompress(b.Codec, b.Magic, io.NewSectionReader(s.r, b.Position+at, value))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecords, err)
	}
	defer closer()
	in := bufio.NewReaderSize(stream, 16<<10)
	for i := 1; ; i++ {
		offset, rec, err := innerMessage(in, b, data)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: inner message %d: %w", ErrRecords, i, noEOF(err))
		}
		if err := fn(offset, rec); err != nil {
			return err
		}
	}
}

// innerMessage reads one message of a stream; io.EOF at its end.
func innerMessage(in *bufio.Reader, outer *Batch, data bool) (int64, *Record, error) {
	var h [v0HeaderBytes + 8]byte
	if _, err := io.ReadFull(in, h[:magicAt+2]); err != nil {
		return 0, nil, err
	}
	be := binary.BigEndian
	offset, size := int64(be.Uint64(h[:])), int64(int32(be.Uint32(h[8:])))+logOverhead
	header := int64(v0HeaderBytes)
	magic, codec := int8(h[magicAt]), Codec(h[magicAt+1]&7)
	if magic != outer.Magic || codec != None {
		return 0, nil, fmt.Errorf("magic %d and compression %s inside magic %d", magic, codec, outer.Magic)
	}
	rest := h[magicAt : magicAt+2]
	timestamp := int64(-1)
	if magic == 1 {
		if _, err := io.ReadFull(in, h[v0HeaderBytes:]); err != nil {
			return 0, nil, noEOF(err)
		}
		timestamp = int64(be.Uint64(h[v0HeaderBytes:]))
		header += 8
		rest = h[magicAt:]
	}
	if size < header+8 {
		return 0, nil, fmt.Errorf("a size of %d", size)
	}
	sum := crc32.NewIEEE()
	sum.Write(rest)
	body := bufio.NewReaderSize(io.TeeReader(io.LimitReader(in, size-header), sum), 16)
	rec, err := keyValue(body, size-header, data)
	if err != nil {
		return 0, nil, noEOF(err)
	}
	if sum.Sum32() != be.Uint32(h[12:]) {
		return 0, nil, fmt.Errorf("the checksum is 0x%08x, the bytes have 0x%08x", be.Uint32(h[12:]), sum.Sum32())
	}
	rec.Timestamp, rec.Sequence = timestamp, -1
	return offset, rec, nil
}

// keyValue reads key and value with their 4-byte lengths, which fill left bytes.
func keyValue(in *bufio.Reader, left int64, data bool) (*Record, error) {
	rec := &Record{}
	field := func() ([]byte, int, error) {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return nil, 0, err
		}
		left -= 4
		n := int64(int32(binary.BigEndian.Uint32(length[:])))
		if n < 0 {
			return nil, -1, nil
		}
		if n > left {
			return nil, 0, fmt.Errorf("a field of %d bytes in a message with %d left", n, left)
		}
		left -= n
		b, err := take(in, n, data)
		return b, int(n), err
	}
	var err error
	if rec.Key, rec.KeySize, err = field(); err != nil {
		return nil, err
	}
	if rec.Value, rec.ValueSize, err = field(); err != nil {
		return nil, err
	}
	if left != 0 {
		return nil, fmt.Errorf("%d bytes are left over in it", left)
	}
	return rec, nil
}
