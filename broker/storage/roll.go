package storage

import (
	"math"
	"slices"

	"kctl/broker/record"
)

// rollIfNeeded returns the segment to append to, a new one when Kafka's rules ask for it.
func (l *Log) rollIfNeeded(base, last, bytes, maxTs int64, cfg *Config, nowMs int64) (*segment, error) {
	seg := l.active()
	size := seg.size.Load()
	switch {
	case size > int64(cfg.SegmentBytes)-bytes && size > 0:
	case size > 0 && seg.age(maxTs, nowMs) > cfg.SegmentMs-jitter(cfg, seg.base):
	case seg.offsets.full(cfg) || seg.times.full(cfg):
	case !seg.fits(last):
	case size > math.MaxInt32-bytes:
	default:
		return seg, nil
	}
	return l.roll(max(base, l.tail.Load().end), nowMs)
}

// full reports whether the index has reached segment.index.bytes.
func (x *index) full(cfg *Config) bool {
	return (x.count()+1)*x.entrySize > int(cfg.SegmentIndexBytes)
}

// age is how long the segment has been filled: by the records' timestamps, or since it was made when they
// have none. Callers hold Log.mu.
func (s *segment) age(maxTs, nowMs int64) int64 {
	if s.firstTimestamp == record.NoTimestamp && s.size.Load() > 0 {
		s.loadFirstTimestamp()
	}
	if s.firstTimestamp >= 0 {
		return maxTs - s.firstTimestamp
	}
	return nowMs - s.created
}

// loadFirstTimestamp reads the first batch's timestamp of a segment that was opened.
func (s *segment) loadFirstTimestamp() {
	h, err := s.file.acquire()
	if err != nil {
		return // the write that follows will tell
	}
	defer h.release()
	if b, err := peekBatch(h, 0, s.size.Load()); err == nil {
		s.firstTimestamp = b.MaxTimestamp()
	}
}

// jitter spreads rolls of segments that were made together; it depends on the base offset only.
func jitter(cfg *Config, base int64) int64 {
	if cfg.SegmentJitterMs <= 0 {
		return 0
	}
	h := uint64(base)*0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d
	return int64(h % uint64(min(cfg.SegmentJitterMs, max(1, cfg.SegmentMs))))
}

// roll seals the active segment and starts one at base. The old segment is synced by the next Housekeep or
// Flush. An empty active segment with the same base is kept. Callers hold mu.
func (l *Log) roll(base, nowMs int64) (*segment, error) {
	old := l.active()
	if old.size.Load() == 0 && old.base == base {
		return old, nil
	}
	// Recovery never looks at a segment below the recovery point: a cut must be durable by then, and the
	// indexes too.
	if err := old.syncCut(); err != nil {
		return nil, err
	}
	if err := old.seal(l.recovery.Load() >= l.tail.Load().end); err != nil {
		return nil, err
	}
	if err := l.takeSnapshot(base); err != nil {
		return nil, err
	}
	if err := l.secureGap(base); err != nil {
		return nil, err
	}
	seg := newSegment(l, base, nowMs)
	if err := seg.create(); err != nil {
		return nil, err
	}
	l.newFiles.Store(true)
	segs := *l.segs.Load()
	if old.size.Load() == 0 { // an empty segment is replaced, not kept
		if err := old.remove(); err != nil {
			return nil, err
		}
		segs = segs[:len(segs)-1]
	}
	l.setSegments(append(slices.Clone(segs), seg))
	l.publish(l.tail.Load().end, seg, 0)
	return seg, nil
}

// takeSnapshot writes the producer state as of offset, which must be the log end. Callers hold mu.
func (l *Log) takeSnapshot(offset int64) error {
	if n := len(l.snaps); n > 0 && l.snaps[n-1] >= offset || offset == 0 {
		return nil
	}
	name := segmentPath(*l.folder.Load(), offset, extSnapshot)
	if err := writeAtomic(l.m.fs, name, encodeSnapshot(l.producers.sorted()), false); err != nil {
		return err
	}
	l.newFiles.Store(true)
	l.snaps = append(l.snaps, offset)
	return nil
}
