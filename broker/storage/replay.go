package storage

import (
	"errors"
	"fmt"

	"kctl/broker/obs"
	"kctl/broker/record"
)

// loadNewestSnapshot takes over the newest readable snapshot at or below limit and removes unreadable ones.
// Without one the state is empty as of the first segment's base.
func (l *Log) loadNewestSnapshot(limit int64) error {
	now := l.m.opts.Now().UnixMilli()
	for i := len(l.snaps) - 1; i >= 0; i-- {
		offset := l.snaps[i]
		if offset > limit {
			continue
		}
		name := segmentPath(*l.folder.Load(), offset, extSnapshot)
		data, err := readAll(l.m.fs, name)
		var entries []producer
		if err == nil {
			entries, err = decodeSnapshot(data)
		}
		if err == nil {
			for k := range entries {
				entries[k].seenAt = now
			}
			l.producers.restore(entries, offset)
			return nil
		}
		if !errors.Is(err, ErrMalformed) && !isNotExist(err) {
			return err
		}
		l.m.log.Warn("producer snapshot removed", obs.KeyTopicPartition, l.tp.String(), obs.KeyPath, name, obs.Err(err))
		if err := l.removeSnapshots(func(o int64) bool { return o == offset }); err != nil {
			return err
		}
	}
	l.producers.reset((*l.segs.Load())[0].base)
	return nil
}

// replayProducers applies the batches between the state's end and end.
func (l *Log) replayProducers(end int64) error {
	segs := *l.segs.Load()
	now := l.m.opts.Now().UnixMilli()
	for i := floorSegment(segs, l.producers.mapEnd); i < len(segs) && l.producers.mapEnd < end; i++ {
		s := segs[i]
		size := s.size.Load()
		if size == 0 || s.base >= end {
			continue
		}
		if err := l.replaySegment(s, size, end, now); err != nil {
			return fmt.Errorf("replay producers of %s: %w", s.file.path(), err)
		}
	}
	l.producers.mapEnd = end
	return nil
}

func (l *Log) replaySegment(s *segment, size, end, now int64) error {
	h, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	from, err := s.locate(h, l.producers.mapEnd, size)
	if err != nil {
		return err
	}
	sc := newScanner(h, from, size)
	defer sc.close()
	for sc.next() {
		if sc.header.BaseOffset() >= end {
			return nil
		}
		if sc.header.BaseOffset() < l.producers.mapEnd {
			continue
		}
		l.applyScanned(sc, sc.header, now)
	}
	return sc.err
}

// applyScanned takes a batch whose header is known into the producer state, reading markers from the file.
func (l *Log) applyScanned(sc *scanner, header record.Batch, now int64) {
	var control *record.Control
	if header.IsControl() && header.HasProducerID() {
		if b, err := sc.batch(1 << 16); err == nil {
			control = controlOf(b)
		}
	}
	l.producers.apply(header, control, now)
}
