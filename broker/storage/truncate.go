package storage

import (
	"errors"
	"fmt"
	"slices"

	"kctl/broker/obs"
	"kctl/broker/record"
)

// TruncateTo removes all records from offset on; nothing when offset is at or above the log end. A batch that
// holds offset goes as a whole: the log end is then the batch's first offset. It may block a running Flush's
// claim but not the flush itself.
func (l *Log) TruncateTo(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if offset >= l.tail.Load().end {
		return nil
	}
	if offset < 0 {
		return fmt.Errorf("truncate %s to %d: %w", l.tp, offset, ErrOffsetOutOfRange)
	}
	if (*l.segs.Load())[0].base > offset {
		return l.restartAt(offset)
	}
	if err := l.truncate(offset); err != nil {
		return l.fail(fmt.Errorf("truncate to %d: %w", offset, err))
	}
	return nil
}

func (l *Log) truncate(offset int64) error {
	l.cuts++
	if err := l.lowerRecoveryPoint(offset); err != nil {
		return err
	}
	if err := l.dropSegmentsAbove(offset); err != nil {
		return err
	}
	seg := l.active()
	end, err := seg.truncateTo(offset)
	if err != nil {
		return err
	}
	l.bounds.clear()
	l.epochs.truncateFromEnd(end)
	l.publish(end, seg, seg.size.Load())
	l.start.Store(min(l.start.Load(), end))
	l.hw.Store(min(l.hw.Load(), end))
	if err := l.dir.lowerHighWatermarks(l.m, []*Log{l}); err != nil {
		return err
	}
	return l.reloadProducers(end)
}

// lowerRecoveryPoint makes sure, durably, that recovery looks at everything from offset on: new records will
// be written there. Nothing to do in the usual case of a truncation above the recovery point.
func (l *Log) lowerRecoveryPoint(offset int64) error {
	if l.recovery.Load() <= offset {
		return nil
	}
	l.recovery.Store(offset)
	return l.dir.checkpointRecovery(l.m)
}

// dropSegmentsAbove removes the segments that begin above offset, the last first, so that a crash in between
// leaves a prefix. The removal is durable on return: a segment that came back would overlap new ones.
func (l *Log) dropSegmentsAbove(offset int64) error {
	segs := slices.Clone(*l.segs.Load())
	n := len(segs)
	for n > 1 && segs[n-1].base > offset {
		n--
	}
	if n == len(segs) {
		return nil
	}
	dead := segs[n:]
	segs = segs[:n:n]
	// Readers stop before the files go.
	last := segs[n-1]
	l.publish(min(l.tail.Load().end, dead[0].base), last, last.size.Load())
	l.setSegments(segs)
	for _, s := range slices.Backward(dead) {
		if err := s.remove(); err != nil {
			return err
		}
	}
	return l.m.fs.SyncDir(*l.folder.Load())
}

// truncateTo cuts the segment before the first batch that reaches offset and returns the new log end.
func (s *segment) truncateTo(offset int64) (end int64, err error) {
	h, err := s.file.acquireCreate()
	if err != nil {
		return 0, err
	}
	defer h.release()
	size := s.size.Load()
	pos, err := s.locate(h, offset, size)
	if err != nil {
		return 0, err
	}
	end = offset
	if pos < size {
		if b, err := peekBatch(h, pos, size); err == nil && b.BaseOffset() < offset {
			end = b.BaseOffset()
		}
	}
	if err := h.Truncate(pos); err != nil {
		return 0, err
	}
	// A crash must not bring back what was cut: it would lie where other records were committed, below a
	// checkpointed high watermark.
	s.unsyncedCut.Store(true)
	if err := h.Sync(); err != nil {
		return 0, err
	}
	s.unsyncedCut.Store(false)
	s.size.Store(pos)
	return end, s.truncateIndexes(pos, end)
}

// truncateIndexes removes entries for bytes from pos on, which held offsets from end on.
func (s *segment) truncateIndexes(pos, end int64) error {
	s.unsyncedIndex.Store(true)
	if pos == 0 {
		s.setLargest(timeMark{ts: record.NoTimestamp, offset: s.base, known: true})
		s.firstTimestamp, s.sinceIndex = record.NoTimestamp, 0
		s.verified.Store(true)
		if err := s.offsets.reset(); err != nil {
			return err
		}
		return s.times.reset()
	}
	n, err := s.offsets.search(func(e []byte) bool { return int64(decodeOffsetEntry(e).pos) < pos })
	if err != nil {
		return err
	}
	if err := s.offsets.truncate(n); err != nil {
		return err
	}
	n, err = s.times.search(func(e []byte) bool { return s.base+int64(decodeTimeEntry(e).rel) < end })
	if err != nil {
		return err
	}
	if err := s.times.truncate(n); err != nil {
		return err
	}
	// Only the last entries of an index from disk were ever checked; now others are the last.
	if err := errors.Join(s.offsets.checkOffsetIndex(pos), s.times.checkTimeIndex()); err != nil {
		if !errors.Is(err, ErrMalformed) {
			return err
		}
		s.log.m.log.Warn("index is rebuilt", obs.KeyTopicPartition, s.log.tp.String(), obs.KeyPath, s.offsets.file.path(), obs.Err(err))
		s.sinceIndex = 0
		return s.rebuildIndexes()
	}
	return s.rereadLargest(pos)
}

// rereadLargest finds the largest timestamp of what is left: the last time entry, or a batch after it.
func (s *segment) rereadLargest(size int64) error {
	mark := timeMark{ts: record.NoTimestamp, offset: s.base, known: true}
	from := int64(0)
	last, ok, err := s.times.lastTimeEntry()
	if err != nil {
		return err
	}
	if ok {
		mark.ts, mark.offset = last.ts, s.base+int64(last.rel)
	}
	if e, ok, err := s.offsets.lastOffsetEntry(); err != nil {
		return err
	} else if ok {
		from = int64(e.pos)
	}
	if !ok {
		from = 0
	}
	h, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if _, err := peekBatch(h, from, size); err != nil {
		from = 0
	}
	sc := newScanner(h, from, size)
	defer sc.close()
	for sc.next() {
		if ts := sc.header.MaxTimestamp(); ts > mark.ts {
			mark.ts, mark.offset = ts, sc.header.LastOffset()
		}
	}
	s.sinceIndex = size - from
	s.setLargest(mark)
	return sc.err
}

// TruncateFullyAndStartAt empties the log and lets it start and end at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("truncate %s to %d: %w", l.tp, offset, ErrOffsetOutOfRange)
	}
	return l.restartAt(offset)
}

func (l *Log) restartAt(offset int64) error {
	l.m.log.Info("log emptied", obs.KeyTopicPartition, l.tp.String(), obs.KeyOffset, offset)
	if err := l.tryRestartAt(offset); err != nil {
		return l.fail(fmt.Errorf("empty the log at %d: %w", offset, err))
	}
	return nil
}

func (l *Log) tryRestartAt(offset int64) error {
	l.cuts++
	if err := l.lowerRecoveryPoint(offset); err != nil {
		return err
	}
	old := *l.segs.Load()
	seg := newSegment(l, offset, l.m.opts.Now().UnixMilli())
	l.bounds.clear()
	l.start.Store(offset)
	l.setSegments([]*segment{seg})
	l.publish(offset, seg, 0)
	l.hw.Store(offset)
	for _, s := range slices.Backward(old) {
		if err := s.remove(); err != nil {
			return err
		}
	}
	if err := seg.create(); err != nil {
		return err
	}
	if err := l.m.fs.SyncDir(*l.folder.Load()); err != nil {
		return err
	}
	l.epochs.clear()
	l.producers.reset(offset)
	if err := l.removeSnapshots(func(int64) bool { return true }); err != nil {
		return err
	}
	l.recovery.Store(offset)
	l.dir.recoveryDirty.Store(true)
	l.dir.startDirty.Store(true)
	return nil
}

// removeSnapshots deletes the producer snapshots whose offset fits. Callers hold mu.
func (l *Log) removeSnapshots(fits func(offset int64) bool) error {
	var keep []int64
	for _, o := range l.snaps {
		if !fits(o) {
			keep = append(keep, o)
			continue
		}
		if err := l.m.fs.Remove(segmentPath(*l.folder.Load(), o, extSnapshot)); err != nil && !isNotExist(err) {
			return err
		}
	}
	l.snaps = keep
	return nil
}

// reloadProducers sets the producer state back to what it was at the log end: from the newest snapshot at or
// below it and the batches after that. Callers hold mu.
func (l *Log) reloadProducers(end int64) error {
	if err := l.removeSnapshots(func(o int64) bool { return o > end }); err != nil {
		return err
	}
	if len(l.producers.byID) == 0 && l.producers.mapEnd >= end {
		l.producers.mapEnd = end // nothing was known, so nothing is lost
		return nil
	}
	if err := l.loadNewestSnapshot(end); err != nil {
		return err
	}
	return l.replayProducers(end)
}
