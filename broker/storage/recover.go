package storage

import (
	"errors"
	"fmt"

	"kctl/broker/obs"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// segmentCheck checks one segment batch by batch.
type segmentCheck struct {
	l    *Log
	s    *segment
	next int64 // smallest offset that may follow
}

// run rebuilds the segment's indexes from its good batches and cuts the file at the first bad one, which it
// returns as bad. err is a failure of the disk.
func (r *segmentCheck) run() (bad, err error) {
	s := r.s
	if err := errors.Join(s.offsets.reset(), s.times.reset()); err != nil {
		return nil, err
	}
	s.setLargest(timeMark{ts: record.NoTimestamp, offset: s.base, known: true})
	s.firstTimestamp, s.sinceIndex = record.NoTimestamp, 0
	s.verified.Store(true)
	s.unsyncedIndex.Store(true)
	size := s.size.Load()
	if size == 0 {
		return nil, nil
	}
	h, err := s.file.acquire()
	if err != nil {
		return nil, err
	}
	defer h.release()
	sc := newScanner(h, 0, size)
	defer sc.close()
	good := int64(0)
	for sc.next() {
		if bad = r.batch(sc); bad != nil {
			break
		}
		good = sc.pos + int64(sc.size)
	}
	if bad == nil {
		bad = sc.err
	}
	if bad == nil {
		return nil, nil
	}
	if !errors.Is(bad, record.ErrCorrupt) && !errors.Is(bad, record.ErrIncomplete) && !errors.Is(bad, record.ErrUnsupportedFormat) {
		return nil, bad // the disk, not the bytes
	}
	r.l.m.log.Warn("log cut at a bad batch", obs.KeyTopicPartition, r.l.tp.String(), obs.KeySegment, s.base,
		obs.KeyOffset, r.next, obs.KeyCount, size-good, obs.Err(bad))
	if err := h.Truncate(good); err != nil {
		return bad, err
	}
	s.unsyncedCut.Store(true)
	s.size.Store(good)
	return bad, nil
}

// batch checks the scanner's batch and takes it over.
func (r *segmentCheck) batch(sc *scanner) error {
	var copied [record.HeaderSize]byte
	copy(copied[:], sc.header) // verify moves the scanner's window
	b, pos, size := record.Batch(copied[:]), sc.pos, sc.size
	switch {
	case b.BaseOffset() < r.next:
		return fmt.Errorf("batch at %d where %d or more was due: %w", b.BaseOffset(), r.next, record.ErrCorrupt)
	case !r.s.fits(b.LastOffset()):
		return fmt.Errorf("batch ends at %d, too far from segment %d: %w", b.LastOffset(), r.s.base, record.ErrCorrupt)
	}
	epoch := cluster.LeaderEpoch(b.LeaderEpoch())
	if last, ok := r.l.epochs.latest(); ok && epoch >= 0 && epoch < last.Epoch && b.BaseOffset() >= last.Start {
		return fmt.Errorf("batch of epoch %d after epoch %d: %w", epoch, last.Epoch, record.ErrCorrupt)
	}
	if err := sc.verify(); err != nil {
		return err
	}
	r.l.epochs.assign(epoch, b.BaseOffset())
	if err := r.s.noteScanned(b, pos, int64(size), r.l.cfg.Load().IndexIntervalBytes); err != nil {
		return err
	}
	r.l.applyScanned(sc, b, r.l.m.opts.Now().UnixMilli())
	r.next = b.NextOffset()
	return nil
}

// noteScanned is noteBatch for a batch of which only the header is in memory.
func (s *segment) noteScanned(b record.Batch, pos, size int64, interval int32) error {
	if err := s.noteBatch(b, pos, interval); err != nil {
		return err
	}
	s.sinceIndex += size - int64(len(b))
	return nil
}

// checkIndexes opens the index files that were found on disk and rebuilds both, with one warning per file,
// when one is missing or fails Kafka's sanity rules. Callers hold rebuildMu.
func (s *segment) checkIndexes() error {
	size := s.size.Load()
	if size == 0 {
		return errors.Join(s.offsets.reset(), s.times.reset())
	}
	bad := false
	for _, x := range []*index{&s.offsets, &s.times} {
		err := x.load()
		if err == nil {
			if x == &s.offsets {
				err = x.checkOffsetIndex(size)
			} else {
				err = errors.Join(x.checkTimeIndex(), s.checkNotEmpty())
			}
		}
		if err == nil {
			continue
		}
		if !isNotExist(err) && !errors.Is(err, ErrMalformed) {
			return err
		}
		bad = true
		s.log.m.log.Warn("index is rebuilt", obs.KeyTopicPartition, s.log.tp.String(), obs.KeyPath, x.file.path(), obs.Err(err))
	}
	if !bad {
		return nil
	}
	return s.rebuildIndexes()
}

// rebuildIndexes makes both indexes anew from the batch headers.
func (s *segment) rebuildIndexes() error {
	if err := errors.Join(s.offsets.reset(), s.times.reset()); err != nil {
		return err
	}
	mark := timeMark{ts: record.NoTimestamp, offset: s.base, known: true}
	interval := int64(s.log.cfg.Load().IndexIntervalBytes)
	since, size := int64(0), s.size.Load()
	err := s.eachHeader(0, size, func(b record.Batch, pos int64) error {
		last := b.LastOffset()
		if !s.fits(last) {
			return fmt.Errorf("offset %d in segment %d: %w", last, s.base, record.ErrCorrupt)
		}
		if ts := b.MaxTimestamp(); ts > mark.ts {
			mark.ts, mark.offset = ts, last
		}
		if since > interval {
			e := offsetEntry{s.rel(last), int32(pos)}.encode()
			if err := errors.Join(s.offsets.append(e[:]), s.noteTime(mark)); err != nil {
				return err
			}
			since = 0
		}
		n, err := record.PeekSize(b)
		since += int64(n)
		return err
	})
	if err != nil {
		return err
	}
	s.setLargest(mark)
	if err := s.noteTime(mark); err != nil {
		return err
	}
	return s.flushIndexes(false)
}

// checkNotEmpty finds a time index that lost its entries: the first batch has a timestamp, so there must be one.
func (s *segment) checkNotEmpty() error {
	if s.times.count() > 0 {
		return nil
	}
	h, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if b, err := peekBatch(h, 0, s.size.Load()); err == nil && b.MaxTimestamp() >= 0 {
		return fmt.Errorf("empty time index: %w", ErrMalformed)
	}
	return nil
}
