package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"kctl/broker/vfs"
)

// Entry sizes and layouts (big-endian):
//
//	.index      [relative offset int32][position int32]
//	.timeindex  [timestamp int64][relative offset int32]
const (
	offsetEntryBytes = 8
	timeEntryBytes   = 12
	// tailEntries is how many entries are kept in memory before they are written to the file.
	tailEntries = 512
)

// index is an append-only file of fixed-size, sorted entries. The last entries live in memory and are written
// to the file tailEntries at a time, on roll and on close; so a small log needs no index file at all and a
// big one little memory. Lookups are binary searches over file and tail.
//
// mu guards disk and tail. Entries on disk are only rewritten by truncate and reset, which the log's writer
// calls; it also guarantees a single appender.
type index struct {
	file      fileRef
	entrySize int

	mu   sync.RWMutex
	disk int // entries in the file
	tail []byte
}

func (x *index) init(cache *fdCache, seg *segment, ext string, entrySize int) {
	x.file = fileRef{cache: cache, folder: seg.log.folder, made: &seg.log.newFiles, base: seg.base, ext: ext}
	x.entrySize = entrySize
}

// countLocked is the number of entries. Callers hold mu.
func (x *index) countLocked() int { return x.disk + len(x.tail)/x.entrySize }

func (x *index) count() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.countLocked()
}

// append adds one encoded entry.
func (x *index) append(entry []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tail) >= tailEntries*x.entrySize {
		if err := x.spillLocked(); err != nil {
			return err
		}
	}
	x.tail = append(x.tail, entry...)
	return nil
}

// spillLocked writes the tail to the file.
func (x *index) spillLocked() error {
	if len(x.tail) == 0 {
		return nil
	}
	h, err := x.file.acquireCreate()
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	defer h.release()
	if _, err := h.WriteAt(x.tail, int64(x.disk*x.entrySize)); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	x.disk += len(x.tail) / x.entrySize
	x.tail = x.tail[:0]
	return nil
}

// flush writes the tail, creating the file even when there are no entries; sync makes it durable.
func (x *index) flush(sync bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.spillLocked(); err != nil {
		return err
	}
	x.tail = nil
	h, err := x.file.acquireCreate()
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	defer h.release()
	if !sync {
		return nil
	}
	return h.Sync()
}

// reset empties the index; a file that exists is cut to length 0.
func (x *index) reset() error { return x.truncate(0) }

// truncate keeps the first n entries.
func (x *index) truncate(n int) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n >= x.disk {
		x.tail = x.tail[:max(0, min(len(x.tail), (n-x.disk)*x.entrySize))]
		if n > 0 {
			return nil
		}
	}
	x.tail = x.tail[:0]
	h, err := x.file.acquire()
	if errors.Is(err, vfs.ErrNotExist) {
		x.disk = 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	defer h.release()
	if err := h.Truncate(int64(n * x.entrySize)); err != nil {
		return fmt.Errorf("cut index: %w", err)
	}
	x.disk = n
	return nil
}

// search returns the number of entries for which less is true; they must come first.
func (x *index) search(less func(entry []byte) bool) (int, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.searchLocked(less)
}

func (x *index) searchLocked(less func(entry []byte) bool) (int, error) {
	n := len(x.tail) / x.entrySize
	if n > 0 && (x.disk == 0 || less(x.tail[:x.entrySize])) {
		return x.disk + searchBlock(x.tail, x.entrySize, less), nil
	}
	if x.disk == 0 {
		return 0, nil
	}
	h, err := x.file.acquire()
	if err != nil {
		return 0, fmt.Errorf("open index: %w", err)
	}
	defer h.release()
	bp := indexBlocks.Get().(*[]byte)
	defer indexBlocks.Put(bp)
	lo, hi := 0, x.disk // the answer lies in [lo, hi]
	for hi-lo > tailEntries {
		mid := int(uint(lo+hi) >> 1)
		e := (*bp)[:x.entrySize]
		if err := readFull(h, e, int64(mid*x.entrySize)); err != nil {
			return 0, err
		}
		if less(e) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	block := (*bp)[:(hi-lo)*x.entrySize]
	if err := readFull(h, block, int64(lo*x.entrySize)); err != nil {
		return 0, err
	}
	return lo + searchBlock(block, x.entrySize, less), nil
}

var indexBlocks = sync.Pool{New: func() any {
	b := make([]byte, tailEntries*timeEntryBytes)
	return &b
}}

func searchBlock(block []byte, size int, less func([]byte) bool) int {
	lo, hi := 0, len(block)/size
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if less(block[mid*size : (mid+1)*size]) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// entry copies the i-th entry into buf; i must be below count.
func (x *index) entry(i int, buf []byte) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.entryLocked(i, buf)
}

func (x *index) entryLocked(i int, buf []byte) error {
	if i < 0 || i >= x.countLocked() {
		return fmt.Errorf("index entry %d of %d: %w", i, x.countLocked(), ErrMalformed)
	}
	if i >= x.disk {
		copy(buf[:x.entrySize], x.tail[(i-x.disk)*x.entrySize:])
		return nil
	}
	h, err := x.file.acquire()
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	defer h.release()
	return readFull(h, buf[:x.entrySize], int64(i*x.entrySize))
}

// readFull reads all of p or says why not; a file that ends early gives io.ErrUnexpectedEOF.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// load takes over an index file as it is; the length must be a multiple of the entry size.
func (x *index) load() error {
	h, err := x.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	size, err := h.Size()
	if err != nil {
		return err
	}
	if size%int64(x.entrySize) != 0 || size > math.MaxInt32 {
		return fmt.Errorf("index of %d bytes: %w", size, ErrMalformed)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.disk, x.tail = int(size/int64(x.entrySize)), nil
	return nil
}

// offsetEntry maps the last offset of a batch to the position at which the batch starts.
type offsetEntry struct {
	rel int32 // offset - base offset of the segment
	pos int32
}

func decodeOffsetEntry(e []byte) offsetEntry {
	return offsetEntry{int32(binary.BigEndian.Uint32(e)), int32(binary.BigEndian.Uint32(e[4:]))}
}

func (e offsetEntry) encode() (out [offsetEntryBytes]byte) {
	binary.BigEndian.PutUint32(out[:], uint32(e.rel))
	binary.BigEndian.PutUint32(out[4:], uint32(e.pos))
	return out
}

// timeEntry says that the largest timestamp up to the batch that ends at rel is ts.
type timeEntry struct {
	ts  int64 // ms
	rel int32
}

func decodeTimeEntry(e []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(e)), int32(binary.BigEndian.Uint32(e[8:]))}
}

func (e timeEntry) encode() (out [timeEntryBytes]byte) {
	binary.BigEndian.PutUint64(out[:], uint64(e.ts))
	binary.BigEndian.PutUint32(out[8:], uint32(e.rel))
	return out
}

// lastOffsetEntry returns the last entry of an offset index.
func (x *index) lastOffsetEntry() (offsetEntry, bool, error) {
	var buf [offsetEntryBytes]byte
	n := x.count()
	if n == 0 {
		return offsetEntry{}, false, nil
	}
	if err := x.entry(n-1, buf[:]); err != nil {
		return offsetEntry{}, false, err
	}
	return decodeOffsetEntry(buf[:]), true, nil
}

func (x *index) lastTimeEntry() (timeEntry, bool, error) {
	if e, ok := x.lastInMemory(); ok {
		return e, true, nil
	}
	var buf [timeEntryBytes]byte
	n := x.count()
	if n == 0 {
		return timeEntry{}, false, nil
	}
	if err := x.entry(n-1, buf[:]); err != nil {
		return timeEntry{}, false, err
	}
	return decodeTimeEntry(buf[:]), true, nil
}

// lastInMemory is the fast path of an append: the last time entry while it is not on disk.
func (x *index) lastInMemory() (timeEntry, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if n := len(x.tail); n > 0 {
		return decodeTimeEntry(x.tail[n-timeEntryBytes:]), true
	}
	return timeEntry{}, false
}

// around returns the last entry at or below rel and the first above it.
func (x *index) around(rel int32) (floor, next offsetEntry, hasFloor, hasNext bool, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n, err := x.searchLocked(func(e []byte) bool { return decodeOffsetEntry(e).rel <= rel })
	if err != nil {
		return
	}
	var buf [offsetEntryBytes]byte
	if n > 0 {
		if err = x.entryLocked(n-1, buf[:]); err != nil {
			return
		}
		floor, hasFloor = decodeOffsetEntry(buf[:]), true
	}
	if n < x.countLocked() {
		if err = x.entryLocked(n, buf[:]); err != nil {
			return
		}
		next, hasNext = decodeOffsetEntry(buf[:]), true
	}
	return
}

// lastPositionUpTo returns the largest indexed position that is at most pos.
func (x *index) lastPositionUpTo(pos int32) (int32, bool, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n, err := x.searchLocked(func(e []byte) bool { return decodeOffsetEntry(e).pos <= pos })
	if err != nil || n == 0 {
		return 0, false, err
	}
	var buf [offsetEntryBytes]byte
	if err := x.entryLocked(n-1, buf[:]); err != nil {
		return 0, false, err
	}
	return decodeOffsetEntry(buf[:]).pos, true, nil
}

// offsetBefore returns the relative offset of the last time entry below ts: records at or after ts come after.
func (x *index) offsetBefore(ts int64) (int32, bool, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n, err := x.searchLocked(func(e []byte) bool { return decodeTimeEntry(e).ts < ts })
	if err != nil || n == 0 {
		return 0, false, err
	}
	var buf [timeEntryBytes]byte
	if err := x.entryLocked(n-1, buf[:]); err != nil {
		return 0, false, err
	}
	return decodeTimeEntry(buf[:]).rel, true, nil
}

// checkOffsetIndex applies Kafka's sanity rules to an index read from disk, and two of ours: position 0 is never
// indexed (those are zero bytes that were not written), and the last two entries must rise.
func (x *index) checkOffsetIndex(logSize int64) error {
	last, ok, err := x.lastOffsetEntry()
	if err != nil || !ok {
		return err
	}
	bad := last.rel < 0 || last.pos <= 0 || int64(last.pos) >= logSize
	if n := x.count(); n > 1 && !bad {
		var buf [offsetEntryBytes]byte
		if err := x.entry(n-2, buf[:]); err != nil {
			return err
		}
		before := decodeOffsetEntry(buf[:])
		bad = before.rel >= last.rel || before.pos >= last.pos
	}
	if bad {
		return fmt.Errorf("last of %d offset index entries is +%d at %d, the log has %d bytes: %w",
			x.count(), last.rel, last.pos, logSize, ErrMalformed)
	}
	return nil
}

// checkTimeIndex is the same for a time index. Entries of time 0 are taken for bytes that were not written.
func (x *index) checkTimeIndex() error {
	last, ok, err := x.lastTimeEntry()
	if err != nil || !ok {
		return err
	}
	bad := last.rel < 0 || last.ts <= 0
	if n := x.count(); n > 1 && !bad {
		var buf [timeEntryBytes]byte
		if err := x.entry(n-2, buf[:]); err != nil {
			return err
		}
		before := decodeTimeEntry(buf[:])
		bad = before.ts >= last.ts || before.rel >= last.rel
	}
	if bad {
		return fmt.Errorf("last of %d time index entries is %d at +%d: %w", x.count(), last.ts, last.rel, ErrMalformed)
	}
	return nil
}
