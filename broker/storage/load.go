package storage

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"kctl/broker/obs"
	"kctl/broker/record"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// loader opens one partition's folder. It runs before anybody else sees the log, so it takes no lock.
type loader struct {
	l     *Log
	fs    vfs.FS
	path  string
	clean bool // the directory was shut down in order: no scan

	names    map[string]bool
	segs     []*segment
	badEpoch bool // leader-epoch-checkpoint is missing or unreadable
}

// load opens an existing folder: cleans up what an interrupted operation left, opens or recovers segments,
// epochs and producer state. recovery, start and hw are the directory's checkpoints.
func (l *Log) load(clean bool, recovery, start, hw int64) error {
	ld := &loader{l: l, fs: l.m.fs, path: *l.folder.Load(), clean: clean, names: map[string]bool{}}
	if err := ld.collect(); err != nil {
		return fmt.Errorf("open log %s: %w", l.tp, err)
	}
	ld.loadTopicID()
	ld.loadEpochs()
	if err := ld.openSegments(start); err != nil {
		return fmt.Errorf("open log %s: %w", l.tp, err)
	}
	l.setSegments(ld.segs)
	end, err := ld.findEnd(recovery)
	if err != nil {
		return fmt.Errorf("recover log %s: %w", l.tp, err)
	}
	return ld.finish(end, recovery, start, hw)
}

func (ld *loader) warn(msg, name string, err error) {
	ld.l.m.log.Warn(msg, obs.KeyTopicPartition, ld.l.tp.String(), obs.KeyPath, name, obs.Err(err))
}

// collect lists the folder, finishes or undoes interrupted deletions, cleanings and swaps as Kafka's LogLoader
// does, and notes the snapshots.
func (ld *loader) collect() error {
	entries, err := ld.fs.List(ld.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir {
			ld.names[e.Name] = true
		}
	}
	if err := ld.resolveTemporaries(); err != nil {
		return err
	}
	for name := range ld.names {
		if o, ok := parseOffsetName(name, extSnapshot); ok {
			ld.l.snaps = append(ld.l.snaps, o)
		}
	}
	slices.Sort(ld.l.snaps)
	return nil
}

func (ld *loader) remove(name string) error {
	delete(ld.names, name)
	if err := ld.fs.Remove(filepath.Join(ld.path, name)); err != nil && !isNotExist(err) {
		return err
	}
	return nil
}

func (ld *loader) resolveTemporaries() error {
	cleanedMin := int64(math.MaxInt64)
	for name := range ld.names {
		if o, ok := parseSuffixed(name, extCleaned); ok {
			cleanedMin = min(cleanedMin, o)
		}
	}
	for _, name := range ld.sortedNames() {
		drop := strings.HasSuffix(name, extDeleted) || strings.HasSuffix(name, extCleaned) || strings.HasSuffix(name, extTmp)
		if o, ok := parseSuffixed(name, extSwap); ok && o >= cleanedMin {
			drop = true // of a split that was not finished
		}
		if drop {
			if err := ld.remove(name); err != nil {
				return err
			}
		}
	}
	return ld.completeSwaps()
}

// parseSuffixed reads the offset off <offset>.<any extension><suffix>.
func parseSuffixed(name, suffix string) (int64, bool) {
	base, ok := strings.CutSuffix(name, suffix)
	if !ok || len(base) < offsetDigits {
		return 0, false
	}
	return parseOffsetName(base[:offsetDigits]+extLog, extLog)
}

func (ld *loader) sortedNames() []string {
	out := make([]string, 0, len(ld.names))
	for name := range ld.names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// completeSwaps gives .swap files their final name after removing the segments that they replace.
func (ld *loader) completeSwaps() error {
	lo, hi := int64(math.MaxInt64), int64(-1)
	for _, name := range ld.sortedNames() {
		o, ok := parseOffsetName(strings.TrimSuffix(name, extSwap), extLog)
		if !ok || !strings.HasSuffix(name, extSwap) {
			continue
		}
		next, err := ld.nextOffsetOf(name, o)
		if err != nil {
			return err
		}
		lo, hi = min(lo, o), max(hi, next)
	}
	for _, name := range ld.sortedNames() {
		o, ok := parseOffsetName(name, extLog)
		if !ok || o < lo || o >= hi {
			continue
		}
		for _, ext := range []string{extLog, extIndex, extTimeIndex, extTxnIndex} {
			if n := offsetName(o) + ext; ld.names[n] {
				if err := ld.remove(n); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range ld.sortedNames() {
		final, ok := strings.CutSuffix(name, extSwap)
		if !ok {
			continue
		}
		if err := ld.fs.Rename(filepath.Join(ld.path, name), filepath.Join(ld.path, final)); err != nil {
			return err
		}
		delete(ld.names, name)
		ld.names[final] = true
	}
	return nil
}

func (ld *loader) nextOffsetOf(name string, base int64) (int64, error) {
	f, err := ld.fs.Open(filepath.Join(ld.path, name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	next := base
	sc := newScanner(f, 0, size)
	defer sc.close()
	for sc.next() {
		next = sc.header.NextOffset()
	}
	return next, nil
}

func (ld *loader) loadTopicID() {
	if !ld.names[filePartition] {
		return
	}
	data, err := readAll(ld.fs, filepath.Join(ld.path, filePartition))
	var id cluster.TopicID
	if err == nil {
		id, err = parsePartitionMetadata(data)
	}
	if err != nil { // lost in a crash; the controller tells it again
		ld.warn("partition metadata ignored", filePartition, err)
		return
	}
	ld.l.topicID.Store(&id)
	ld.l.newMeta.Store(!ld.clean)
}

func (ld *loader) loadEpochs() {
	if !ld.names[fileEpochs] {
		ld.badEpoch = true
		return
	}
	data, err := readAll(ld.fs, filepath.Join(ld.path, fileEpochs))
	var entries []epochEntry
	if err == nil {
		entries, err = parseEpochs(data)
	}
	if err != nil {
		ld.warn("leader epochs are read from the batches instead", fileEpochs, err)
		ld.badEpoch = true
		return
	}
	ld.l.epochs.restore(entries)
}

// openSegments makes segment objects of the .log files and removes index files without a log.
func (ld *loader) openSegments(start int64) error {
	var bases []int64
	for _, name := range ld.sortedNames() {
		if o, ok := parseOffsetName(name, extLog); ok {
			bases = append(bases, o)
		}
	}
	for _, name := range ld.sortedNames() {
		for _, ext := range []string{extIndex, extTimeIndex, extTxnIndex} {
			if o, ok := parseOffsetName(name, ext); ok && !ld.names[offsetName(o)+extLog] {
				ld.warn("index without a log removed", name, nil)
				if err := ld.remove(name); err != nil {
					return err
				}
			}
		}
	}
	now := ld.l.m.opts.Now().UnixMilli()
	for _, base := range bases {
		s := newSegment(ld.l, base, now)
		st, err := ld.fs.Stat(s.file.path())
		if err != nil {
			return err
		}
		if st.Size > math.MaxInt32 {
			return fmt.Errorf("segment %d has %d bytes: %w", base, st.Size, ErrMalformed)
		}
		s.size.Store(st.Size)
		if st.Size > 0 || ld.names[offsetName(base)+extIndex] || ld.names[offsetName(base)+extTimeIndex] {
			s.verified.Store(false)
			s.setLargest(timeMark{})
		}
		ld.segs = append(ld.segs, s)
	}
	if len(ld.segs) == 0 {
		s := newSegment(ld.l, start, now)
		s.missing = true
		ld.segs = append(ld.segs, s)
	}
	return nil
}

// findEnd determines the log end offset: from the last index entry on after a clean shutdown, else by
// recovery.
func (ld *loader) findEnd(recovery int64) (int64, error) {
	if ld.clean {
		end, err := ld.quickEnd()
		if err == nil {
			return end, ld.quickProducers(end)
		}
		ld.warn("log is not as a clean shutdown leaves it, recovering it", ld.path, err)
		ld.clean = false
	}
	return ld.recover(recovery)
}

// quickEnd trusts the segment up to its last index entry and reads the headers after that.
func (ld *loader) quickEnd() (int64, error) {
	s := ld.segs[len(ld.segs)-1]
	size := s.size.Load()
	if size == 0 {
		if err := s.ready(); err != nil {
			return 0, err
		}
		return s.base, nil
	}
	if err := s.ready(); err != nil {
		return 0, err
	}
	from := int64(0)
	if e, ok, err := s.offsets.lastOffsetEntry(); err != nil {
		return 0, err
	} else if ok {
		from = int64(e.pos)
	}
	h, err := s.file.acquire()
	if err != nil {
		return 0, err
	}
	defer h.release()
	sc := newScanner(h, from, size)
	defer sc.close()
	end := s.base
	for sc.next() {
		end = sc.header.NextOffset()
	}
	s.sinceIndex = size - from
	return end, sc.err
}

// quickProducers loads the snapshot that a clean shutdown took. Without any snapshot there were no producers.
func (ld *loader) quickProducers(end int64) error {
	l := ld.l
	had := len(l.snaps) > 0
	if err := l.loadNewestSnapshot(end); err != nil {
		return err
	}
	if !had {
		l.producers.reset(end)
		return nil
	}
	return l.replayProducers(end)
}

// recover checks every batch from the segment with the recovery point on, cuts the log at the first bad one,
// and rebuilds indexes, epochs and producer state on the way.
func (ld *loader) recover(recovery int64) (int64, error) {
	l := ld.l
	at := len(ld.segs) - 1
	for at > 0 && ld.segs[at].base > recovery {
		at--
	}
	for _, s := range ld.segs[:at] {
		if err := s.ready(); err != nil {
			return 0, err
		}
	}
	scanFrom := ld.segs[at].base
	if err := l.removeSnapshots(func(o int64) bool { return o > scanFrom }); err != nil {
		return 0, err
	}
	if err := l.loadNewestSnapshot(scanFrom); err != nil {
		return 0, err
	}
	if err := l.replayProducers(scanFrom); err != nil {
		return 0, err
	}
	l.epochs.truncateFromEnd(scanFrom) // the scan finds the rest again
	end := scanFrom
	for i := at; i < len(ld.segs); i++ {
		s := ld.segs[i]
		if s.base < end { // overlaps: a leftover of something that was cut before
			return end, ld.dropFrom(i, fmt.Errorf("segment %d begins before offset %d: %w", s.base, end, record.ErrCorrupt))
		}
		if i > at && s.base > end {
			// Segments begin where the one before ends, and a gap that is meant is made durable with the recovery
			// point behind it (secureGap). So what lay between was never synced and is gone: keeping what comes
			// after it would leave a hole in the log.
			return end, ld.dropFrom(i, fmt.Errorf("segment %d begins after offset %d: %w", s.base, end, record.ErrCorrupt))
		}
		if i > at {
			l.producers.mapEnd = s.base
			if err := l.takeSnapshot(s.base); err != nil {
				return 0, err
			}
		}
		r := segmentCheck{l: l, s: s, next: max(end, s.base)}
		bad, err := r.run()
		if err != nil {
			return 0, err
		}
		end = r.next
		if bad != nil {
			return end, ld.dropFrom(i+1, nil)
		}
	}
	return end, nil
}

// dropFrom removes the segments from index i on, the last first.
func (ld *loader) dropFrom(i int, why error) error {
	for _, s := range slices.Backward(ld.segs[i:]) {
		ld.warn("segment after a bad place removed", s.file.path(), why)
		if err := s.remove(); err != nil {
			return err
		}
	}
	ld.segs = ld.segs[:i:i]
	ld.l.setSegments(ld.segs)
	return ld.fs.SyncDir(ld.path)
}

// finish brings offsets, epochs and snapshots in line with what was found.
func (ld *loader) finish(end, recovery, start, hw int64) error {
	l := ld.l
	first := max(start, ld.segs[0].base)
	last := ld.segs[len(ld.segs)-1]
	l.setSegments(ld.segs)
	l.publish(end, last, last.size.Load())
	l.recovery.Store(min(recovery, end))
	if ld.clean {
		l.recovery.Store(end)
	} else {
		l.newFiles.Store(true) // whether the folder was synced is not known
	}
	if end < first {
		ld.warn("log ends before its start offset", ld.path, fmt.Errorf("end %d, start %d", end, first))
		return l.tryRestartAt(first)
	}
	l.start.Store(first)
	l.hw.Store(max(first, min(hw, end)))
	if ld.badEpoch {
		if err := ld.rebuildEpochs(); err != nil {
			return err
		}
	}
	l.epochs.truncateFromEnd(end)
	l.epochs.truncateFromStart(first)
	return l.removeSnapshots(ld.stray)
}

// stray reports snapshots that belong to no segment and are not the newest.
func (ld *loader) stray(offset int64) bool {
	snaps := ld.l.snaps
	if offset == snaps[len(snaps)-1] {
		return false
	}
	return !slices.ContainsFunc(ld.segs, func(s *segment) bool { return s.base == offset })
}

// rebuildEpochs reads the epochs off all batch headers.
func (ld *loader) rebuildEpochs() error {
	l := ld.l
	l.epochs.clear()
	for _, s := range ld.segs {
		size := s.size.Load()
		if size == 0 {
			continue
		}
		if err := s.eachHeader(0, size, func(b record.Batch, _ int64) error {
			l.epochs.assign(cluster.LeaderEpoch(b.LeaderEpoch()), b.BaseOffset())
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// eachHeader calls fn for the batches between two positions.
func (s *segment) eachHeader(from, to int64, fn func(b record.Batch, pos int64) error) error {
	if from >= to {
		return nil // an empty log has no file yet
	}
	h, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	sc := newScanner(h, from, to)
	defer sc.close()
	for sc.next() {
		if err := fn(sc.header, sc.pos); err != nil {
			return err
		}
	}
	return sc.err
}
