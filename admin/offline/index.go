package offline

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Sizes of the entries of index files.
const (
	indexEntryBytes     = 8
	timeIndexEntryBytes = 12
	txnIndexEntryBytes  = 34
)

// IndexEntry is one entry of an offset index (Timestamp unused) or of a time index (Position unused).
type IndexEntry struct {
	At        int64 // position in the index file
	Offset    int64
	Position  int64 // in the log segment
	Timestamp int64
	Problem   string // empty: it fits the log, or there is no log to compare with
}

// IndexReport sums up an index file.
type IndexReport struct {
	Size     int64
	Entries  int64
	Unused   int64 // bytes of zeros at the end: preallocated, the index is that of an active segment
	Problems int64
	Damage   []Damage
}

// GoodBytes is the part of the file in front of the first damage.
func (r *IndexReport) GoodBytes() int64 {
	if len(r.Damage) > 0 {
		return r.Damage[0].Position
	}
	return r.Size
}

// indexFile reads entries one by one. An entry of zeros means that the rest is unused: brokers write none for the
// first batch of a segment. Only a time index may begin with one that is meant, when clients write records of timestamp 0.
type indexFile struct {
	r      *bufio.Reader
	size   int64
	width  int64
	at     int64
	zero   bool // the first entry may be of zeros
	report *IndexReport
}

func newIndexFile(r io.Reader, size, width int64) *indexFile {
	return &indexFile{r: bufio.NewReaderSize(r, 64<<10), size: size, width: width, report: &IndexReport{Size: size}}
}

// next reads one entry into b; io.EOF at the end.
func (f *indexFile) next(b []byte) error {
	if left := f.size - f.at; left < f.width {
		if left > 0 {
			f.damage(f.at, left, fmt.Sprintf("the file ends %d bytes into an entry of %d", left, f.width))
			f.at = f.size
		}
		return io.EOF
	}
	if _, err := io.ReadFull(f.r, b[:f.width]); err != nil {
		return fmt.Errorf("read %d bytes at position %d: %w", f.width, f.at, noEOF(err))
	}
	if allZero(b[:f.width]) && !f.meant() {
		return f.unused()
	}
	f.at += f.width
	f.report.Entries++
	return nil
}

// meant reports whether the entry of zeros that was just read is an entry: the only one of a closed segment, or one with
// others behind it. Nobody can tell it from unused space when nothing but zeros follows.
func (f *indexFile) meant() bool {
	if !f.zero || f.at > 0 {
		return false
	}
	if f.size < 2*f.width {
		return true
	}
	ahead, err := f.r.Peek(int(f.width))
	return err == nil && !allZero(ahead)
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// unused demands that nothing but zeros follows.
func (f *indexFile) unused() error {
	from := f.at
	f.report.Unused = f.size - from
	buf := make([]byte, 64<<10)
	for at := from + f.width; at < f.size; {
		n, err := f.r.Read(buf[:min(int64(len(buf)), f.size-at)])
		if !allZero(buf[:n]) {
			f.damage(from, f.size-from, "an entry of zeros with others behind it")
			f.report.Unused = 0
			break
		}
		at += int64(n)
		if err != nil {
			break
		}
	}
	f.at = f.size
	return io.EOF
}

func (f *indexFile) damage(position, length int64, cause string) {
	f.report.Damage = append(f.report.Damage, Damage{Position: position, Length: length, Offset: -1, Cause: cause})
}

// OffsetIndex reads an offset index of a segment with that base offset and hands each entry to fn. With a log the
// entries are compared with it: each must name the beginning of a batch, and an offset that is not below it.
func OffsetIndex(r io.Reader, size, base int64, log *SegmentReader, fn func(*IndexEntry) error) (*IndexReport, error) {
	f := newIndexFile(r, size, indexEntryBytes)
	var b [indexEntryBytes]byte
	prev := IndexEntry{Offset: base - 1, Position: -1}
	walk := &walker{log: log}
	for {
		err := f.next(b[:])
		if err == io.EOF {
			return f.report, nil
		}
		if err != nil {
			return f.report, err
		}
		relative, position := int32(binary.BigEndian.Uint32(b[:])), int32(binary.BigEndian.Uint32(b[4:]))
		e := IndexEntry{At: f.at - f.width, Offset: base + int64(relative), Position: int64(position)}
		switch {
		case relative < 0 || position < 0:
			e.Problem = "an offset or position below zero"
		case e.Offset <= prev.Offset && f.report.Entries > 1:
			e.Problem = fmt.Sprintf("its offset is not above that of the entry before, %d", prev.Offset)
		case e.Position <= prev.Position && f.report.Entries > 1:
			e.Problem = fmt.Sprintf("its position is not above that of the entry before, %d", prev.Position)
		case log != nil:
			if e.Problem, err = walk.checkPosition(&e); err != nil {
				return f.report, err
			}
		}
		if err := f.hand(&e, fn); err != nil {
			return f.report, err
		}
		prev = e
	}
}

func (f *indexFile) hand(e *IndexEntry, fn func(*IndexEntry) error) error {
	if e.Problem != "" {
		f.report.Problems++
		f.damage(e.At, f.width, e.Problem)
	}
	return fn(e)
}

// walker goes along a log as the entries of an index come.
type walker struct {
	log   *SegmentReader
	batch *Batch // the one read last
	ended bool
}

// step reads the next batch; false at the end of the log.
func (w *walker) step() (bool, error) {
	if w.ended {
		return false, nil
	}
	b, err := w.log.Next()
	if errors.Is(err, io.EOF) {
		w.ended = true
		return false, nil
	}
	if err != nil {
		return false, err
	}
	w.batch = b
	return true, nil
}

func (w *walker) checkPosition(e *IndexEntry) (string, error) {
	for w.batch == nil || w.batch.Position < e.Position {
		more, err := w.step()
		if err != nil {
			return "", err
		}
		if !more {
			return fmt.Sprintf("the log ends before position %d", e.Position), nil
		}
	}
	switch {
	case w.batch.Position != e.Position:
		return fmt.Sprintf("no batch begins at position %d", e.Position), nil
	case e.Offset < w.batch.BaseOffset:
		return fmt.Sprintf("the batch at position %d begins with offset %d", e.Position, w.batch.BaseOffset), nil
	}
	return "", nil
}

// TimeIndex reads a time index and hands each entry to fn. With a log: up to the batch that holds the entry's offset
// the greatest timestamp must be the entry's.
func TimeIndex(r io.Reader, size, base int64, log *SegmentReader, fn func(*IndexEntry) error) (*IndexReport, error) {
	f := newIndexFile(r, size, timeIndexEntryBytes)
	f.zero = true
	var b [timeIndexEntryBytes]byte
	prev := IndexEntry{Offset: base, Timestamp: -1}
	ahead := &lookahead{walker: walker{log: log}}
	for {
		err := f.next(b[:])
		if err == io.EOF {
			return f.report, nil
		}
		if err != nil {
			return f.report, err
		}
		relative := int32(binary.BigEndian.Uint32(b[8:]))
		e := IndexEntry{At: f.at - f.width, Timestamp: int64(binary.BigEndian.Uint64(b[:])), Offset: base + int64(relative)}
		switch {
		case relative < 0:
			e.Problem = "an offset below that of the segment"
		case e.Timestamp <= prev.Timestamp:
			e.Problem = fmt.Sprintf("its timestamp is not above that of the entry before, %d", prev.Timestamp)
		case e.Offset < prev.Offset:
			e.Problem = fmt.Sprintf("its offset is below that of the entry before, %d", prev.Offset)
		case log != nil:
			if e.Problem, err = ahead.checkTime(&e); err != nil {
				return f.report, err
			}
		}
		if err := f.hand(&e, fn); err != nil {
			return f.report, err
		}
		prev = e
	}
}

// lookahead is a walker that knows the batch behind the current one without counting it.
type lookahead struct {
	walker
	coming *Batch
	newest int64 // greatest timestamp that is counted
	last   int64 // last offset that is counted
	begun  bool
}

func (l *lookahead) checkTime(e *IndexEntry) (string, error) {
	if !l.begun {
		l.begun, l.newest, l.last = true, -1, -1
		if err := l.fetch(); err != nil {
			return "", err
		}
	}
	for l.coming != nil && l.coming.BaseOffset <= e.Offset {
		l.newest, l.last = max(l.newest, l.coming.MaxTimestamp), l.coming.LastOffset
		if err := l.fetch(); err != nil {
			return "", err
		}
	}
	switch {
	case l.last < e.Offset && l.coming == nil:
		return fmt.Sprintf("the log ends at offset %d", l.last), nil
	case l.newest != e.Timestamp:
		return fmt.Sprintf("up to offset %d the greatest timestamp of the log is %d", e.Offset, l.newest), nil
	}
	return "", nil
}

func (l *lookahead) fetch() error {
	more, err := l.step()
	l.coming = l.batch
	if !more {
		l.coming = nil
	}
	return err
}

// AbortedTxn is one entry of a transaction index.
type AbortedTxn struct {
	At               int64
	Version          int16
	ProducerID       int64
	FirstOffset      int64
	LastOffset       int64
	LastStableOffset int64
	Problem          string
}

// TxnIndex reads a transaction index: the aborted transactions that end in the segment.
func TxnIndex(r io.Reader, size int64, fn func(*AbortedTxn) error) (*IndexReport, error) {
	f := newIndexFile(r, size, txnIndexEntryBytes)
	var b [txnIndexEntryBytes]byte
	last := int64(-1)
	for {
		err := f.next(b[:])
		if err == io.EOF {
			return f.report, nil
		}
		if err != nil {
			return f.report, err
		}
		be := binary.BigEndian
		t := AbortedTxn{
			At: f.at - f.width, Version: int16(be.Uint16(b[:])), ProducerID: int64(be.Uint64(b[2:])),
			FirstOffset: int64(be.Uint64(b[10:])), LastOffset: int64(be.Uint64(b[18:])), LastStableOffset: int64(be.Uint64(b[26:])),
		}
		switch {
		case t.Version != 0:
			t.Problem = fmt.Sprintf("version %d is not known", t.Version)
		case t.FirstOffset < 0 || t.LastOffset < t.FirstOffset:
			t.Problem = "its offsets cannot be"
		case t.LastOffset <= last:
			t.Problem = fmt.Sprintf("its last offset is not above that of the entry before, %d", last)
		}
		last = t.LastOffset
		if t.Problem != "" {
			f.report.Problems++
			f.damage(t.At, f.width, t.Problem)
		}
		if err := fn(&t); err != nil {
			return f.report, err
		}
	}
}
