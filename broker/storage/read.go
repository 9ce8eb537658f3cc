package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// Read returns the batches from the one that holds offset on: whole batches, at most maxBytes, none that
// reaches maxOffset (the high watermark or log end offset). With minOneBatch the first batch is returned even
// when it is larger than maxBytes. At the log end or bound the slice is empty, and so it is in the short
// moment in which a truncation is under way. ErrOffsetOutOfRange below the log start or above the log end. The
// caller must call Release on the slice once.
//
// A slice never spans two segments, so less than maxBytes may come although more is there.
func (l *Log) Read(offset int64, maxBytes int, maxOffset int64, minOneBatch bool) (Slice, error) {
	for attempt := 0; ; attempt++ {
		s, err := l.read(offset, maxBytes, maxOffset, minOneBatch)
		switch {
		case err == nil || errors.Is(err, ErrOffsetOutOfRange):
			return s, err
		case attempt < 2: // a segment may have been deleted or cut under us: look again
			continue
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if reason := l.usable(); reason != nil {
			return Slice{}, reason
		}
		return Slice{}, fmt.Errorf("read %s at %d: %w: %w", l.tp, offset, err, ErrStorage)
	}
}

func (l *Log) read(offset int64, maxBytes int, maxOffset int64, minOneBatch bool) (Slice, error) {
	t, start := l.tail.Load(), l.start.Load()
	if offset < start || offset > t.end {
		return Slice{}, fmt.Errorf("offset %d is not in %d to %d of %s: %w", offset, start, t.end, l.tp, ErrOffsetOutOfRange)
	}
	bound := min(maxOffset, t.end)
	if offset >= bound || maxBytes <= 0 && !minOneBatch {
		return Slice{}, nil
	}
	segs := *l.segs.Load()
	for i := floorSegment(segs, offset); i < len(segs) && segs[i].base < bound; i++ {
		s, err := l.readSegment(segs, i, t, offset, maxBytes, bound, minOneBatch)
		if err != nil || s.n > 0 || s.more {
			return s, err
		}
	}
	return Slice{}, nil
}

// floorSegment returns the index of the last segment whose base is at or below offset, 0 when there is none.
func floorSegment(segs []*segment, offset int64) int {
	i, _ := slices.BinarySearchFunc(segs, offset, func(s *segment, want int64) int {
		if s.base <= want {
			return -1
		}
		return 1
	})
	return max(0, i-1)
}

// visible is how much of a segment the tail snapshot covers.
func (s *segment) visible(t *tail) int64 {
	switch {
	case s == t.seg:
		return t.size
	case s.base > t.seg.base:
		return 0
	}
	return s.size.Load()
}

func (l *Log) readSegment(segs []*segment, i int, t *tail, offset int64, maxBytes int, bound int64, minOne bool) (Slice, error) {
	seg := segs[i]
	size := seg.visible(t)
	if size == 0 {
		return Slice{}, nil
	}
	h, err := seg.file.acquire()
	if err != nil {
		return Slice{}, err
	}
	from, err := seg.locate(h, offset, size)
	if err != nil || from >= size {
		h.release()
		return Slice{}, err
	}
	end := size
	if last := i+1 >= len(segs) || segs[i+1].base >= bound; last && bound < t.end {
		if end, err = seg.locate(h, bound, size); err != nil {
			h.release()
			return Slice{}, err
		}
	}
	n, err := seg.cut(h, from, end, maxBytes, minOne)
	if err != nil || n == 0 {
		h.release()
		return Slice{more: from < end}, err
	}
	return Slice{h: h, pos: from, n: n}, nil
}

// cut returns how many bytes from from on make whole batches within maxBytes.
func (s *segment) cut(h io.ReaderAt, from, end int64, maxBytes int, minOne bool) (int, error) {
	if end <= from {
		return 0, nil
	}
	if end-from <= int64(maxBytes) {
		return int(end - from), nil
	}
	limit := from + int64(max(maxBytes, 0))
	if pos, ok, err := s.offsets.lastPositionUpTo(int32(min(limit, 1<<31-1))); err == nil && ok && int64(pos) > from && int64(pos) < end {
		if _, err := peekBatch(h, int64(pos), end); err == nil { // else the index lies
			return int(int64(pos) - from), nil
		}
	}
	sc := newScanner(h, from, end)
	defer sc.close()
	n := 0
	for sc.next() {
		if n+sc.size > maxBytes && (n > 0 || !minOne) {
			return n, nil
		}
		if n += sc.size; n >= maxBytes {
			return n, nil
		}
	}
	return n, sc.err
}

// Slice is a range of a segment's bytes: whole batches, ready for the wire. The zero Slice is empty. It keeps
// its file open until Release, whatever happens to the log.
type Slice struct {
	h    *handle
	pos  int64
	n    int
	more bool // nothing fitted although there is data
}

// Size is the number of bytes.
func (s Slice) Size() int { return s.n }

// sliceBuffer is how much WriteTo moves at a time.
const sliceBuffer = 256 << 10

var sliceBuffers = sync.Pool{New: func() any {
	b := make([]byte, sliceBuffer)
	return &b
}}

// FileSender is a socket that takes bytes straight from a file's pages, as sendfile does. It is an alias, so that
// users of slices can name the same type without importing this package.
type FileSender = interface {
	SendFile(f *os.File, pos int64, n int) (int64, error)
}

// SendTo sends the bytes without reading them; ok is false, and nothing was done, when the file system behind the
// slice has no files of the operating system. Errors as of WriteTo.
func (s Slice) SendTo(w FileSender) (n int64, ok bool, err error) {
	if s.n == 0 {
		return 0, true, nil
	}
	f, ok := s.h.File.(interface{ OSFile() *os.File })
	if !ok {
		return 0, false, nil
	}
	if n, err = w.SendFile(f.OSFile(), s.pos, s.n); err != nil {
		err = fmt.Errorf("send log: %w", err)
	}
	return n, true, err
}

// WriteTo writes the bytes to w through a pooled buffer. io.ErrUnexpectedEOF when the log was truncated
// meanwhile: part of the bytes may have been written then, so a connection must be closed.
func (s Slice) WriteTo(w io.Writer) (int64, error) {
	if s.n == 0 {
		return 0, nil
	}
	bp := sliceBuffers.Get().(*[]byte)
	defer sliceBuffers.Put(bp)
	var done int64
	for done < int64(s.n) {
		p := (*bp)[:min(int64(s.n)-done, sliceBuffer)]
		if err := readFull(s.h, p, s.pos+done); err != nil {
			return done, fmt.Errorf("read log: %w", err)
		}
		n, err := w.Write(p)
		done += int64(n)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// ReadInto fills p with the first bytes of the slice and returns how many there were: all of them when p is
// large enough. Part of a batch is left out when p is not.
func (s Slice) ReadInto(p []byte) (int, error) {
	n := min(len(p), s.n)
	if n == 0 {
		return 0, nil
	}
	if err := readFull(s.h, p[:n], s.pos); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return n, nil
}

// ReadAt reads from the slice's bytes at off, as io.ReaderAt.
func (s Slice) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= int64(s.n) {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), int64(s.n)-off))
	if err := readFull(s.h, p[:n], s.pos+off); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Release lets go of the file. The slice must not be used afterwards.
func (s Slice) Release() {
	if s.h != nil {
		s.h.release()
	}
}
