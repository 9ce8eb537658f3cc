package storage

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"kctl/broker/record"
)

const scanChunk = 64 << 10

var scanBuffers = sync.Pool{New: func() any {
	b := make([]byte, scanChunk)
	return &b
}}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scanner walks over the batch headers of a segment file without reading more of the records than happens to
// lie in the chunk. Use: for s.next(); then err, nil when the walk ended exactly at the end.
type scanner struct {
	file io.ReaderAt
	end  int64 // bytes of the segment that may be looked at
	pos  int64 // of the present batch
	size int   // of the present batch in bytes
	err  error

	buf     *[]byte
	from    int64 // file position of buf[0]
	have    int   // valid bytes in buf
	header  record.Batch
	started bool
}

// newScanner starts at pos; close must be called.
func newScanner(file io.ReaderAt, pos, end int64) *scanner {
	return &scanner{file: file, end: end, pos: pos, buf: scanBuffers.Get().(*[]byte)}
}

func (s *scanner) close() { scanBuffers.Put(s.buf) }

// view returns n (at most scanChunk) bytes at pos, reading a chunk if they are not in memory. ahead says how
// much to read then.
func (s *scanner) view(pos int64, n, ahead int) ([]byte, error) {
	if pos >= s.from && pos+int64(n) <= s.from+int64(s.have) {
		return (*s.buf)[pos-s.from : pos-s.from+int64(n)], nil
	}
	want := int(min(int64(max(n, ahead)), s.end-pos, scanChunk))
	if want < n {
		return nil, io.ErrUnexpectedEOF
	}
	s.from, s.have = pos, 0
	if err := readFull(s.file, (*s.buf)[:want], pos); err != nil {
		return nil, err
	}
	s.have = want
	return (*s.buf)[:n], nil
}

// next moves to the next batch. It checks frame and header lengths, not the CRC. header is valid until the
// following call.
func (s *scanner) next() bool {
	if s.err != nil {
		return false
	}
	ahead := 4096
	if s.started {
		s.pos += int64(s.size)
		if s.size < scanChunk/4 {
			ahead = scanChunk
		}
	}
	s.started = true
	if s.pos >= s.end {
		return false
	}
	head, err := s.view(s.pos, record.HeaderSize, ahead)
	if err != nil {
		s.fail(err)
		return false
	}
	if s.size, err = record.PeekSize(head); err != nil {
		s.fail(err)
		return false
	}
	if s.pos+int64(s.size) > s.end {
		s.fail(record.ErrIncomplete)
		return false
	}
	s.header = record.Batch(head)
	if s.header.BaseOffset() < 0 || s.header.LastOffset() < s.header.BaseOffset() {
		s.fail(fmt.Errorf("offsets %d to %d: %w", s.header.BaseOffset(), s.header.LastOffset(), record.ErrCorrupt))
		return false
	}
	return true
}

func (s *scanner) fail(err error) {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = record.ErrIncomplete
	}
	s.err = fmt.Errorf("batch at position %d: %w", s.pos, err)
}

// verify checks the present batch's CRC, reading it chunk by chunk. The header view is lost.
func (s *scanner) verify() error {
	const crcFrom = 21
	want := s.header.CRC()
	sum := uint32(0)
	for at := s.pos + crcFrom; at < s.pos+int64(s.size); {
		n := int(min(s.pos+int64(s.size)-at, scanChunk))
		if at >= s.from && at < s.from+int64(s.have) { // use what is in memory first
			n = int(min(int64(n), s.from+int64(s.have)-at))
		}
		p, err := s.view(at, n, scanChunk)
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, p)
		at += int64(n)
	}
	if sum != want {
		return fmt.Errorf("CRC is %08x, header says %08x: %w", sum, want, record.ErrCorrupt)
	}
	return nil
}

// batch reads the whole present batch into memory if it has at most limit bytes.
func (s *scanner) batch(limit int) (record.Batch, error) {
	if s.size > limit {
		return nil, record.ErrTooLarge
	}
	b := make(record.Batch, s.size)
	if err := readFull(s.file, b, s.pos); err != nil {
		return nil, err
	}
	return b, nil
}
