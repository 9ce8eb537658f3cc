package offline

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Damage is a stretch of a file that cannot be what a broker wrote.
type Damage struct {
	Position int64  // where it begins
	Length   int64  // up to the next good batch or the end of the file
	Offset   int64  // next offset expected there; for files without offsets -1
	Cause    string // in words
}

// SegmentOptions says how closely a segment is read.
type SegmentOptions struct {
	BaseOffset int64 // of the file's name; -1: unknown
	NoCRC      bool  // do not verify checksums
}

// SegmentReader walks the batches of a log segment, over damage if need be.
type SegmentReader struct {
	r    io.ReaderAt
	size int64
	opt  SegmentOptions
	buf  []byte
	pos  int64
	next int64 // offset expected at least; -1: unknown
	good int64 // end of the undamaged beginning
	scan int64 // bytes that the search behind damage may still look at

	Batches int64
	First   int64 // first offset, -1 before a batch was read
	Damage  []Damage
}

// NewSegmentReader reads size bytes of r.
func NewSegmentReader(r io.ReaderAt, size int64, opt SegmentOptions) *SegmentReader {
	return &SegmentReader{r: r, size: size, opt: opt, buf: make([]byte, crcChunk), next: opt.BaseOffset, First: -1, scan: 8*size + 64<<20}
}

// GoodBytes is the length of the beginning without damage, as far as it was read.
func (s *SegmentReader) GoodBytes() int64 { return s.good }

// NextOffset is the offset behind the last good batch that was read; that of the file's name, or -1, before.
func (s *SegmentReader) NextOffset() int64 { return s.next }

// Next returns the next batch, io.EOF at the end. A batch whose checksum is wrong is returned too; its damage is
// noted. Stretches that hold no batch are noted and passed over. Other errors are those of reading.
func (s *SegmentReader) Next() (*Batch, error) {
	for s.pos < s.size {
		b, cause, err := s.at(s.pos)
		if err != nil {
			return nil, err
		}
		if cause == "" {
			return s.accept(b), nil
		}
		if b != nil && !b.CRCValid() && s.continues(b) {
			s.note(Damage{Position: s.pos, Length: b.Size, Offset: s.next, Cause: cause})
			s.pos += b.Size
			s.Batches++
			return b, nil
		}
		if err := s.skip(cause); err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

func (s *SegmentReader) accept(b *Batch) *Batch {
	if s.First < 0 {
		s.First = b.BaseOffset
	}
	s.pos += b.Size
	s.next = b.LastOffset + 1
	s.Batches++
	if len(s.Damage) == 0 {
		s.good = s.pos
	}
	return b
}

func (s *SegmentReader) note(d Damage) { s.Damage = append(s.Damage, d) }

// at reads the batch at a position; cause says why there is no good one. A batch with a cause has a sane header
// and a wrong checksum.
func (s *SegmentReader) at(position int64) (*Batch, string, error) {
	left := s.size - position
	if left <= magicAt {
		return nil, fmt.Sprintf("the file ends %d bytes into a batch", left), nil
	}
	h := s.buf[:magicAt+1]
	if err := readFull(s.r, h, position); err != nil {
		return nil, "", err
	}
	size, magic, cause := frame(h, left)
	if cause != "" {
		return nil, cause, nil
	}
	b, cause, err := parseBatch(s.r, position, size, magic)
	if err != nil || cause != "" {
		return nil, cause, err
	}
	if cause := s.order(b); cause != "" {
		return nil, cause, nil
	}
	if s.opt.NoCRC {
		b.CRCComputed = b.CRC
		return b, "", nil
	}
	if b.CRCComputed, err = checksum(s.r, b, s.buf); err != nil {
		return nil, "", err
	}
	if !b.CRCValid() {
		return b, fmt.Sprintf("the checksum is 0x%08x, the bytes have 0x%08x", b.CRC, b.CRCComputed), nil
	}
	return b, "", nil
}

// order demands offsets that go up.
func (s *SegmentReader) order(b *Batch) string {
	if b.LastOffset < s.next || b.Magic == 2 && b.BaseOffset < s.next {
		return fmt.Sprintf("offset %d comes after offset %d", b.BaseOffset, s.next-1)
	}
	return ""
}

// continues reports whether another batch, or the end of the file, follows a batch with a wrong checksum: then
// its length was right and only its inside is damaged.
func (s *SegmentReader) continues(b *Batch) bool {
	end := b.Position + b.Size
	if end == s.size {
		return true
	}
	if s.size-end <= magicAt {
		return false
	}
	var h [magicAt + 1]byte
	if readFull(s.r, h[:], end) != nil {
		return false
	}
	size, magic, cause := frame(h[:], s.size-end)
	if cause != "" {
		return false
	}
	next, cause, err := parseBatch(s.r, end, size, magic)
	return err == nil && cause == "" && next.LastOffset > b.LastOffset
}

// skip notes the damage that begins here and moves to the next good batch behind it.
func (s *SegmentReader) skip(cause string) error {
	d := Damage{Position: s.pos, Offset: s.next, Cause: cause}
	zero, err := s.onlyZeros(s.pos)
	if err != nil {
		return err
	}
	to := s.size
	if zero {
		d.Cause = "only zeros from here to the end: preallocated (log.preallocate), or never written before a crash"
	} else if to, err = s.findBatch(s.pos + 1); err != nil {
		return err
	}
	d.Length = to - s.pos
	s.note(d)
	s.pos = to
	return nil
}

func (s *SegmentReader) onlyZeros(from int64) (bool, error) {
	for at := from; at < s.size; {
		n := min(int64(len(s.buf)), s.size-at)
		if err := readFull(s.r, s.buf[:n], at); err != nil {
			return false, err
		}
		for _, c := range s.buf[:n] {
			if c != 0 {
				return false, nil
			}
		}
		at += n
	}
	return true, nil
}

// findBatch looks for the next position at which a whole batch with a right checksum and a later offset stands;
// the size of the file when there is none.
func (s *SegmentReader) findBatch(from int64) (int64, error) {
	window := make([]byte, crcChunk)
	for at := from; at+magicAt < s.size; {
		n := min(int64(len(window)), s.size-at)
		if err := readFull(s.r, window[:n], at); err != nil {
			return 0, err
		}
		for i := int64(0); i+magicAt < n; i++ {
			if !s.plausible(window[i:], s.size-at-i) {
				continue
			}
			b, cause, err := s.at(at + i)
			if err != nil {
				return 0, err
			}
			if b != nil {
				s.scan -= b.Size
			}
			if cause == "" {
				return at + i, nil
			}
		}
		at += max(n-magicAt, 1)
	}
	return s.size, nil
}

// plausible is the quick look of the search: magic, length and offset.
func (s *SegmentReader) plausible(h []byte, left int64) bool {
	if h[magicAt] > 2 {
		return false
	}
	offset := int64(binary.BigEndian.Uint64(h))
	if offset < s.next || offset < 0 || s.next >= 0 && offset-s.next > 1<<31 {
		return false
	}
	size, _, cause := frame(h, left)
	return cause == "" && size <= s.scan
}
