package storage

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

// segment is one .log file with its two indexes. Its base offset is in the file names. Only the log's writer
// (holding Log.mu) appends; readers use size snapshots and handles.
type segment struct {
	log     *Log
	base    int64
	file    fileRef
	offsets index
	times   index

	size    atomic.Int64
	created int64 // ms, when the segment was made or opened

	// Writer's fields, under Log.mu.
	missing        bool  // the .log file is not made yet: an empty log's first segment
	sinceIndex     int64 // bytes appended since the last index entry
	firstTimestamp int64 // largest timestamp of the first append, -1 unknown; rolls by time count from here

	// largest is the largest timestamp and the last offset of its batch.
	largestMu sync.Mutex
	largest   timeMark

	// unsyncedCut says that the file was shortened and not synced since: old bytes may come back.
	unsyncedCut atomic.Bool

	// unsyncedIndex says that the index files are not what the log says, or may not be durable yet.
	unsyncedIndex atomic.Bool

	// verified says that the index files were checked or made by us; others are checked on first use.
	verified atomic.Bool
}

// timeMark is a timestamp (ms, -1 none) and the last offset of the batch that has it.
type timeMark struct {
	ts     int64
	offset int64
	known  bool
}

func newSegment(l *Log, base, created int64) *segment {
	s := &segment{log: l, base: base, created: created, firstTimestamp: record.NoTimestamp}
	s.file = fileRef{cache: l.m.fds, folder: l.folder, made: &l.newFiles, base: base, ext: extLog}
	s.offsets.init(l.m.fds, s, extIndex, offsetEntryBytes)
	s.times.init(l.m.fds, s, extTimeIndex, timeEntryBytes)
	s.largest = timeMark{ts: record.NoTimestamp, offset: base, known: true}
	s.verified.Store(true)
	return s
}

// create makes the empty .log file.
func (s *segment) create() error {
	f, err := s.log.m.fs.Create(s.file.path())
	if err != nil {
		return fmt.Errorf("create segment: %w", err)
	}
	return f.Close()
}

// openForAppend returns the file to write to, making it on the first append. Callers hold Log.mu.
func (s *segment) openForAppend() (*handle, error) {
	if !s.missing {
		return s.file.acquire()
	}
	h, err := s.file.acquireCreate()
	s.missing = err != nil
	return h, err
}

// rel converts an offset; callers have made sure that it fits.
func (s *segment) rel(offset int64) int32 { return int32(offset - s.base) }

// fits reports whether an offset can be written relative to the base.
func (s *segment) fits(offset int64) bool {
	return offset >= s.base && offset-s.base <= math.MaxInt32
}

// noteBatch does the index work for a batch that was written at pos. Callers hold Log.mu.
func (s *segment) noteBatch(b record.Batch, pos int64, interval int32) error {
	last, ts := b.LastOffset(), b.MaxTimestamp()
	if pos == 0 {
		s.firstTimestamp = ts
	}
	mark, err := s.raise(ts, last)
	if err != nil {
		return err
	}
	if !s.unsyncedIndex.Load() {
		s.unsyncedIndex.Store(true)
	}
	if s.sinceIndex > int64(interval) {
		e := offsetEntry{s.rel(last), int32(pos)}.encode()
		if err := s.offsets.append(e[:]); err != nil {
			return err
		}
		if err := s.noteTime(mark); err != nil {
			return err
		}
		s.sinceIndex = 0
	}
	s.sinceIndex += int64(len(b))
	return nil
}

// raise notes a batch's largest timestamp and returns the segment's.
func (s *segment) raise(ts, last int64) (timeMark, error) {
	if _, err := s.largestMark(); err != nil {
		return timeMark{}, err
	}
	s.largestMu.Lock()
	defer s.largestMu.Unlock()
	if ts > s.largest.ts {
		s.largest = timeMark{ts, last, true}
	}
	return s.largest, nil
}

// noteTime adds a time entry when the timestamp rose.
func (s *segment) noteTime(mark timeMark) error {
	last, ok, err := s.times.lastTimeEntry()
	if err != nil {
		return err
	}
	if mark.ts < 0 || ok && mark.ts <= last.ts {
		return nil
	}
	e := timeEntry{mark.ts, s.rel(mark.offset)}.encode()
	return s.times.append(e[:])
}

// seal writes both indexes when the segment stops being appended to (roll, close): the time index gets its
// last entry, and both files exist afterwards, which Apache Kafka expects.
func (s *segment) seal(sync bool) error {
	if s.size.Load() == 0 {
		return nil
	}
	mark, err := s.largestMark()
	if err != nil {
		return err
	}
	if err := s.noteTime(mark); err != nil {
		return err
	}
	return s.flushIndexes(sync)
}

// flushIndexes writes both index files, durably with sync.
func (s *segment) flushIndexes(sync bool) error {
	s.unsyncedIndex.Store(true)
	if err := s.offsets.flush(sync); err != nil {
		return err
	}
	if err := s.times.flush(sync); err != nil {
		return err
	}
	s.unsyncedIndex.Store(!sync)
	return nil
}

// largestMark returns the largest timestamp, reading it off the time index when the segment was opened
// without a scan.
func (s *segment) largestMark() (timeMark, error) {
	s.largestMu.Lock()
	mark := s.largest
	s.largestMu.Unlock()
	if mark.known {
		return mark, nil
	}
	if err := s.ready(); err != nil {
		return timeMark{}, err
	}
	last, ok, err := s.times.lastTimeEntry()
	if err != nil {
		return timeMark{}, err
	}
	s.largestMu.Lock()
	defer s.largestMu.Unlock()
	if !s.largest.known {
		s.largest = timeMark{ts: record.NoTimestamp, offset: s.base, known: true}
		if ok {
			s.largest.ts, s.largest.offset = last.ts, s.base+int64(last.rel)
		}
	}
	return s.largest, nil
}

// setLargest replaces what is known of the largest timestamp.
func (s *segment) setLargest(mark timeMark) {
	s.largestMu.Lock()
	defer s.largestMu.Unlock()
	s.largest = mark
}

// ready checks index files that were opened unseen, and rebuilds them when they are bad or missing.
func (s *segment) ready() error {
	if s.verified.Load() {
		return nil
	}
	s.log.rebuildMu.Lock()
	defer s.log.rebuildMu.Unlock()
	if s.verified.Load() {
		return nil
	}
	if err := s.checkIndexes(); err != nil {
		return err
	}
	s.verified.Store(true)
	return nil
}

// locate returns the position of the first batch whose last offset is at or after offset, looking at the
// first limit bytes; limit itself when there is none.
func (s *segment) locate(h io.ReaderAt, offset, limit int64) (int64, error) {
	if offset <= s.base || limit == 0 {
		return 0, nil
	}
	if pos, ok := s.log.bounds.get(s, offset); ok && pos <= limit {
		return pos, nil
	}
	if err := s.ready(); err != nil {
		return 0, err
	}
	if !s.fits(offset) {
		return limit, nil
	}
	floor, next, hasFloor, hasNext, err := s.offsets.around(s.rel(offset))
	if err != nil {
		return 0, err
	}
	if hasNext && int64(next.pos) < limit { // a sequential reader stands exactly there
		if b, err := peekBatch(h, int64(next.pos), limit); err == nil && b.BaseOffset() <= offset && b.LastOffset() >= offset {
			return int64(next.pos), nil
		}
	}
	from := int64(0)
	if hasFloor && int64(floor.pos) < limit {
		if b, err := peekBatch(h, int64(floor.pos), limit); err == nil && b.BaseOffset() <= offset {
			from = int64(floor.pos)
		}
	}
	return s.walkTo(h, from, offset, limit)
}

func (s *segment) walkTo(h io.ReaderAt, from, offset, limit int64) (int64, error) {
	sc := newScanner(h, from, limit)
	defer sc.close()
	for sc.next() {
		if sc.header.LastOffset() >= offset {
			return sc.pos, nil
		}
	}
	if sc.err != nil {
		return 0, fmt.Errorf("read %s: %w", s.file.path(), sc.err)
	}
	return limit, nil
}

// peekBatch reads one header.
func peekBatch(h io.ReaderAt, pos, limit int64) (record.Batch, error) {
	if pos < 0 || pos+record.HeaderSize > limit {
		return nil, record.ErrIncomplete
	}
	b := make(record.Batch, record.HeaderSize)
	if err := readFull(h, b, pos); err != nil {
		return nil, err
	}
	if _, err := record.PeekSize(b); err != nil {
		return nil, err
	}
	return b, nil
}

// paths of all files that belong to the segment.
var segmentExts = []string{extLog, extIndex, extTimeIndex, extTxnIndex, extSnapshot}

// renameDeleted marks the segment's files for removal and closes them.
func (s *segment) renameDeleted() error {
	fs := s.log.m.fs
	for _, ext := range segmentExts {
		from := segmentPath(*s.log.folder.Load(), s.base, ext)
		if err := fs.Rename(from, from+extDeleted); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("mark segment deleted: %w", err)
		}
	}
	s.close()
	return nil
}

// remove deletes the segment's files, the log first: leftovers of the others are recognised at start.
func (s *segment) remove() error {
	fs := s.log.m.fs
	for _, ext := range segmentExts {
		err := fs.Remove(segmentPath(*s.log.folder.Load(), s.base, ext))
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("remove segment: %w", err)
		}
	}
	s.close()
	return nil
}

func (s *segment) close() {
	s.file.drop()
	s.offsets.file.drop()
	s.times.file.drop()
}

// boundCache remembers where batches begin that were appended lately: tailing readers, and the high
// watermark as a bound, are found without I/O. The zero value is ready; memory is taken on first use.
type boundCache struct {
	mu   sync.Mutex
	ring []bound
	next int
}

type bound struct {
	seg    *segment
	offset int64 // a batch with this base offset, or the end, is at pos
	pos    int64
}

const boundEntries = 32

func (c *boundCache) put(seg *segment, offset, pos int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) < boundEntries {
		c.ring = append(c.ring, bound{seg, offset, pos})
		return
	}
	c.ring[c.next] = bound{seg, offset, pos}
	c.next = (c.next + 1) % boundEntries
}

func (c *boundCache) get(seg *segment, offset int64) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.ring {
		if b := &c.ring[i]; b.offset == offset && b.seg == seg {
			return b.pos, true
		}
	}
	return 0, false
}

// clear forgets everything, as truncation must.
func (c *boundCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring, c.next = nil, 0
}
