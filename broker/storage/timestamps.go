package storage

import (
	"errors"
	"fmt"
	"io"

	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// OffsetForTimestamp finds the first record below maxOffset whose timestamp is at or after ts (ms). ok is
// false when there is none.
func (l *Log) OffsetForTimestamp(ts int64, maxOffset int64) (found TimestampOffset, ok bool, err error) {
	start := l.start.Load()
	t := l.tail.Load()
	for _, s := range *l.segs.Load() {
		if s.base >= maxOffset {
			break
		}
		size := s.visible(t)
		if size == 0 {
			continue
		}
		mark, err := s.largestMark()
		if err != nil {
			return found, false, l.readError(err)
		}
		if mark.ts < ts {
			continue
		}
		found, ok, err := s.findByTime(ts, max(start, s.base), maxOffset, size)
		if err != nil {
			return found, false, l.readError(err)
		}
		if ok {
			return found, true, nil
		}
	}
	return found, false, nil
}

// readError wraps a fault met while looking for something.
func (l *Log) readError(err error) error {
	if errors.Is(err, ErrStorage) {
		return err
	}
	return fmt.Errorf("read %s: %w: %w", l.tp, err, ErrStorage)
}

// findByTime looks in one segment for the first record with timestamp ts or later and offset from start up to
// before limit.
func (s *segment) findByTime(ts, start, limit, size int64) (found TimestampOffset, ok bool, err error) {
	h, err := s.file.acquire()
	if err != nil {
		return found, false, err
	}
	defer h.release()
	from := start
	if rel, ok, err := s.times.offsetBefore(ts); err != nil {
		return found, false, err
	} else if ok {
		from = max(start, s.base+int64(rel))
	}
	pos, err := s.locate(h, from, size)
	if err != nil {
		return found, false, err
	}
	sc := newScanner(h, pos, size)
	defer sc.close()
	for sc.next() {
		if sc.header.BaseOffset() >= limit {
			return found, false, nil
		}
		if sc.header.MaxTimestamp() < ts || sc.header.LastOffset() < start || sc.header.IsControl() {
			continue
		}
		found, ok, err := firstRecord(h, sc, func(r *record.Record) bool {
			return r.Timestamp >= ts && r.Offset >= start
		})
		if err != nil || ok && found.Offset >= limit {
			return TimestampOffset{}, false, err
		}
		if ok {
			return found, true, nil
		}
	}
	return found, false, sc.err
}

// recordUnpackMax bounds what a stored batch may unpack to when its records are looked at.
const recordUnpackMax = 256 << 20

// firstRecord returns the first record of the scanner's batch that fits.
func firstRecord(h io.ReaderAt, sc *scanner, fits func(*record.Record) bool) (TimestampOffset, bool, error) {
	b := make(record.Batch, sc.size)
	if err := readFull(h, b, sc.pos); err != nil {
		return TimestampOffset{}, false, err
	}
	it, err := b.Records(nil, recordUnpackMax)
	if err != nil {
		return TimestampOffset{}, false, err
	}
	for it.Next() {
		if r := it.Record(); fits(r) {
			return TimestampOffset{r.Timestamp, r.Offset, cluster.LeaderEpoch(b.LeaderEpoch())}, true, nil
		}
	}
	return TimestampOffset{}, false, it.Err()
}

// MaxTimestampOffset finds the record with the largest timestamp, the first of them (KIP-734). ok is false when
// no record has a timestamp.
func (l *Log) MaxTimestampOffset() (TimestampOffset, bool, error) {
	t := l.tail.Load()
	var best *segment
	mark := timeMark{ts: record.NoTimestamp}
	for _, s := range *l.segs.Load() {
		m, err := s.largestMark()
		if err != nil {
			return TimestampOffset{}, false, l.readError(err)
		}
		if s.visible(t) > 0 && m.ts > mark.ts {
			best, mark = s, m
		}
	}
	if best == nil {
		return TimestampOffset{}, false, nil
	}
	found, ok, err := best.findByTime(mark.ts, max(best.base, l.start.Load()), t.end, best.visible(t))
	if err != nil {
		return found, false, l.readError(err)
	}
	return found, ok, nil
}
