package storage

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// AppendAsLeader validates one or more v2 batches as received, gives them offsets from the log end on and
// the leader epoch, and writes them with one write call. data may be modified in place (base offset, leader
// epoch, with LogAppendTime also the timestamp) and stays owned by the caller. Either all batches are
// appended or none. Errors: those of broker/record, ErrOutOfOrderSequence, ErrInvalidProducerEpoch,
// ErrMessageTooLarge, ErrBatchTooLarge, ErrInvalidTimestamp, ErrStorage, ErrClosed, ErrOffline.
//
// Validation: frame, CRC, counts, offsets delta, producer fields of every batch, and the lengths of uncompressed
// records (see record.CheckFrames). Compressed batches are unpacked only where the topic asks for it: a
// compacted topic (keys must be there) or another compression.type.
func (l *Log) AppendAsLeader(data []byte, epoch cluster.LeaderEpoch, opts AppendOptions) (AppendResult, error) {
	cfg := l.cfg.Load()
	now := opts.Now
	if now.IsZero() {
		now = l.m.opts.Now()
	}
	nowMs := now.UnixMilli()
	data, err := prepare(data, cfg, opts.Origin, nowMs)
	if err != nil {
		return AppendResult{}, err
	}
	res, err := l.appendPrepared(data, epoch, opts.Origin, cfg, nowMs)
	if err != nil {
		return res, err
	}
	return res, l.maybeFlush(cfg)
}

// prepare does the part of a leader's append that needs no lock. It returns data, or new bytes when the
// topic's compression.type differs from the batches' codec.
func prepare(data []byte, cfg *Config, origin Origin, nowMs int64) ([]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("no batches: %w", record.ErrInvalid)
	}
	target, convert := record.ParseCompression(cfg.CompressionType)
	stamp := cfg.MessageTimestampType == LogAppendTime
	var out []byte
	for rest := data; len(rest) > 0; {
		b, next, err := record.Next(rest)
		if err != nil {
			return nil, err
		}
		rest = next
		if err := checkLeaderBatch(b, cfg, origin, nowMs); err != nil {
			return nil, err
		}
		if convert && b.Compression() != target && !b.IsControl() {
			if out == nil {
				out = append(make([]byte, 0, len(data)), data[:len(data)-len(rest)-len(b)]...)
			}
			at := len(out)
			if out, err = record.Recompress(out, b, target, unpackLimit(cfg)); err != nil {
				return nil, err
			}
			b = record.Batch(out[at:])
		} else if out != nil {
			at := len(out)
			out = append(out, b...)
			b = record.Batch(out[at:])
		}
		if len(b) > int(cfg.MaxMessageBytes) {
			return nil, fmt.Errorf("batch of %d bytes, max.message.bytes is %d: %w", len(b), cfg.MaxMessageBytes, ErrMessageTooLarge)
		}
		if stamp {
			b.SetLogAppendTime(nowMs)
		}
	}
	if out != nil {
		data = out
	}
	if len(data) > int(cfg.SegmentBytes) {
		return nil, fmt.Errorf("%d bytes in one append, segment.bytes is %d: %w", len(data), cfg.SegmentBytes, ErrBatchTooLarge)
	}
	return data, nil
}

// unpackLimit bounds what one batch may unpack to where it must be unpacked at all.
func unpackLimit(cfg *Config) int { return max(16<<20, min(100*int(cfg.MaxMessageBytes), 256<<20)) }

func checkLeaderBatch(b record.Batch, cfg *Config, origin Origin, nowMs int64) error {
	if err := b.Check(true); err != nil {
		return err
	}
	if origin == OriginClient {
		switch {
		case b.BaseOffset() != 0:
			return fmt.Errorf("base offset of a produced batch is %d, not 0: %w", b.BaseOffset(), record.ErrInvalid)
		case b.IsControl():
			return fmt.Errorf("clients cannot write control batches: %w", record.ErrInvalid)
		case b.HasDeleteHorizon():
			return fmt.Errorf("clients cannot set a delete horizon: %w", record.ErrInvalid)
		}
	}
	if b.IsLogAppendTime() {
		return fmt.Errorf("producers cannot set timestamp type LogAppendTime: %w", ErrInvalidTimestamp)
	}
	if cfg.MessageTimestampType != LogAppendTime {
		if err := checkTimestamps(b, cfg, nowMs); err != nil {
			return err
		}
	}
	if cfg.Compacts() {
		return b.CheckRecords(true, unpackLimit(cfg))
	}
	if b.Compression() == record.None {
		return b.CheckFrames()
	}
	return nil
}

// checkTimestamps holds the header's first and largest timestamps against the topic's bounds; records in
// between are not looked at.
func checkTimestamps(b record.Batch, cfg *Config, nowMs int64) error {
	if lo := b.BaseTimestamp(); lo != record.NoTimestamp && cfg.MessageTimestampBeforeMaxMs < math.MaxInt64 &&
		nowMs-lo > cfg.MessageTimestampBeforeMaxMs {
		return fmt.Errorf("timestamp %d is over %d ms before %d: %w", lo, cfg.MessageTimestampBeforeMaxMs, nowMs, ErrInvalidTimestamp)
	}
	if hi := b.MaxTimestamp(); hi != record.NoTimestamp && cfg.MessageTimestampAfterMaxMs < math.MaxInt64 &&
		hi-nowMs > cfg.MessageTimestampAfterMaxMs {
		return fmt.Errorf("timestamp %d is over %d ms after %d: %w", hi, cfg.MessageTimestampAfterMaxMs, nowMs, ErrInvalidTimestamp)
	}
	return nil
}

func (l *Log) appendPrepared(data []byte, epoch cluster.LeaderEpoch, origin Origin, cfg *Config, nowMs int64) (AppendResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return AppendResult{}, err
	}
	base := l.tail.Load().end
	res := AppendResult{BaseOffset: base, LogAppendTime: -1, LogStartOffset: l.start.Load(), MaxTimestamp: record.NoTimestamp}
	dup, found, err := l.judge(data, origin)
	if err != nil {
		return AppendResult{}, err
	}
	if found {
		res.BaseOffset, res.LastOffset, res.Duplicate, res.MaxTimestamp = dup.firstOffset(), dup.lastOffset, true, dup.timestamp
		if cfg.MessageTimestampType == LogAppendTime {
			res.LogAppendTime = dup.timestamp
		}
		return res, nil
	}
	next := base
	for rest := data; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if err != nil { // checked before
			return AppendResult{}, err
		}
		b.SetBaseOffset(next)
		b.SetLeaderEpoch(int32(epoch))
		if next > math.MaxInt64-int64(b.LastOffsetDelta())-2 {
			return AppendResult{}, fmt.Errorf("offset overflow: %w", record.ErrInvalid)
		}
		next, rest = b.NextOffset(), after
		res.MaxTimestamp = max(res.MaxTimestamp, b.MaxTimestamp())
		res.Batches++
	}
	res.LastOffset, res.Records, res.Bytes = next-1, next-base, len(data)
	if cfg.MessageTimestampType == LogAppendTime {
		res.LogAppendTime = nowMs
	}
	return res, l.write(data, base, next, res.MaxTimestamp, cfg, nowMs)
}

// judge holds the batches' producers against the state. found says that the first known batch is a retry.
func (l *Log) judge(data []byte, origin Origin) (dup producerBatch, found bool, err error) {
	var staged map[int64]*producer // states after earlier batches of this very append
	for rest := data; len(rest) > 0; {
		var b record.Batch
		if b, rest, err = record.Next(rest); err != nil {
			return dup, false, err
		}
		if !b.HasProducerID() {
			continue
		}
		p := staged[b.ProducerID()]
		if p == nil {
			p = l.producers.get(b.ProducerID())
		}
		if p == nil {
			p = newProducer(b.ProducerID())
		}
		if origin == OriginClient {
			if dup, found = p.duplicate(b); found {
				return dup, true, nil
			}
		}
		if err = p.checkEpoch(b); err != nil {
			return dup, false, err
		}
		if origin == OriginClient {
			if err = p.checkSequence(b); err != nil {
				return dup, false, err
			}
		}
		if len(rest) > 0 && !b.IsControl() {
			if staged == nil {
				staged = map[int64]*producer{}
			}
			after := *p
			after.add(b, 0)
			staged[p.id] = &after
		}
	}
	return dup, false, nil
}

// write appends checked batches with offsets base to next-1. Callers hold mu.
func (l *Log) write(data []byte, base, next, maxTs int64, cfg *Config, nowMs int64) error {
	seg, err := l.rollIfNeeded(base, next-1, int64(len(data)), maxTs, cfg, nowMs)
	if err != nil {
		return l.fail(err)
	}
	h, err := seg.openForAppend()
	if err != nil {
		return l.fail(fmt.Errorf("open segment: %w", err))
	}
	defer h.release()
	at := seg.size.Load()
	if _, err := h.WriteAt(data, at); err != nil {
		// What was written is beyond the published size; cut it off so that recovery need not.
		return l.fail(fmt.Errorf("append to %s: %w", seg.file.path(), errors.Join(err, h.Truncate(at))))
	}
	return l.written(data, seg, at, next, cfg, nowMs)
}

// written does the bookkeeping for batches that are in the file, then shows them to readers.
func (l *Log) written(data []byte, seg *segment, at, next int64, cfg *Config, nowMs int64) error {
	pos := at
	for rest := data; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if err != nil {
			return l.fail(err)
		}
		rest = after
		l.epochs.assign(cluster.LeaderEpoch(b.LeaderEpoch()), b.BaseOffset())
		if err := seg.noteBatch(b, pos, cfg.IndexIntervalBytes); err != nil {
			return l.fail(err)
		}
		l.producers.apply(b, controlOf(b), nowMs)
		l.bounds.put(seg, b.BaseOffset(), pos)
		pos += int64(len(b))
	}
	l.bounds.put(seg, next, pos)
	seg.size.Store(pos)
	l.publish(next, seg, pos)
	return nil
}

func controlOf(b record.Batch) *record.Control {
	if !b.IsControl() {
		return nil
	}
	c, err := b.ParseControl()
	if err != nil {
		return nil // a marker that cannot be read ends nothing
	}
	return &c
}

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

// syncCut makes a truncation durable.
func (s *segment) syncCut() error {
	if !s.unsyncedCut.Load() {
		return nil
	}
	h, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if err := h.Sync(); err != nil {
		return err
	}
	s.unsyncedCut.Store(false)
	return nil
}

// secureGap makes the log durable before a segment that does not begin where the log ends (a follower of a
// compacted log). Above the recovery point, recovery takes such a gap for lost data. Callers hold mu.
func (l *Log) secureGap(base int64) error {
	end := l.tail.Load().end
	if base == end || l.active().size.Load() == 0 && l.recovery.Load() >= end {
		return nil
	}
	if err := l.syncSegments(*l.segs.Load(), l.recovery.Load(), end); err != nil {
		return err
	}
	if err := errors.Join(l.syncSealedActive(), l.writeEpochs(true), l.syncFolder()); err != nil {
		return err
	}
	l.recovery.Store(base)
	return l.dir.checkpointRecovery(l.m)
}

func (l *Log) syncSealedActive() error {
	if s := l.active(); s.size.Load() > 0 {
		return s.flushIndexes(true)
	}
	return nil
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

// AppendAsFollower writes batches with the offsets and epochs that the leader gave them. They must start at
// or after the log end and rise; a cut-off last batch is ignored. CRCs are checked. Errors: those of
// broker/record, ErrUnexpectedOffset, ErrStorage, ErrClosed, ErrOffline.
func (l *Log) AppendAsFollower(data []byte) (AppendResult, error) {
	cfg := l.cfg.Load()
	res := AppendResult{LogAppendTime: -1, MaxTimestamp: record.NoTimestamp}
	whole := 0
	for rest := data; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if errors.Is(err, record.ErrIncomplete) {
			break
		}
		if err == nil {
			err = b.Check(false)
		}
		if err != nil {
			return AppendResult{}, err
		}
		if res.Batches == 0 {
			res.BaseOffset = b.BaseOffset()
		} else if b.BaseOffset() <= res.LastOffset {
			return AppendResult{}, fmt.Errorf("batch at %d after offset %d: %w", b.BaseOffset(), res.LastOffset, ErrUnexpectedOffset)
		}
		res.LastOffset, res.MaxTimestamp = b.LastOffset(), max(res.MaxTimestamp, b.MaxTimestamp())
		res.Records += int64(b.LastOffsetDelta()) + 1
		res.Batches++
		whole += len(b)
		rest = after
	}
	res.Bytes = whole
	if whole == 0 {
		res.BaseOffset, res.LastOffset = l.LogEndOffset(), l.LogEndOffset()-1
		res.LogStartOffset = l.start.Load()
		return res, nil
	}
	if err := l.appendReplicated(data[:whole], &res, cfg); err != nil {
		return AppendResult{}, err
	}
	return res, l.maybeFlush(cfg)
}

func (l *Log) appendReplicated(data []byte, res *AppendResult, cfg *Config) error {
	nowMs := l.m.opts.Now().UnixMilli()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if end := l.tail.Load().end; res.BaseOffset < end {
		return fmt.Errorf("%s: batch at %d, log end is %d: %w", l.tp, res.BaseOffset, end, ErrUnexpectedOffset)
	}
	res.LogStartOffset = l.start.Load()
	// A fetch may carry more than an offset range or a segment can take: then it is written in parts.
	for len(data) > 0 {
		n, first, last, maxTs := fitting(data, int(cfg.SegmentBytes))
		if err := l.write(data[:n], first, last+1, maxTs, cfg, nowMs); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// fitting returns the longest run of batches that may go into one segment: at most limit bytes (one batch at
// least) and offsets within int32 of each other.
func fitting(data []byte, limit int) (n int, first, last, maxTs int64) {
	maxTs = record.NoTimestamp
	for rest := data; len(rest) > 0; {
		b, after, err := record.Next(rest)
		if err != nil {
			break // checked before
		}
		if n == 0 {
			first = b.BaseOffset()
		} else if n+len(b) > limit || b.LastOffset()-first > math.MaxInt32 {
			break
		}
		n += len(b)
		last, maxTs = b.LastOffset(), max(maxTs, b.MaxTimestamp())
		rest = after
	}
	return n, first, last, maxTs
}

// maybeFlush honours flush.messages.
func (l *Log) maybeFlush(cfg *Config) error {
	if cfg.FlushMessages == math.MaxInt64 || l.LogEndOffset()-l.recovery.Load() < cfg.FlushMessages {
		return nil
	}
	return l.Flush()
}

// Flush makes everything appended before the call durable and moves the recovery point there.
func (l *Log) Flush() error { return l.flushTo(math.MaxInt64) }

// flushTo makes offsets below limit durable, whole segments at a time.
func (l *Log) flushTo(limit int64) error {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	l.mu.Lock()
	if err := l.usable(); err != nil {
		l.mu.Unlock()
		return err
	}
	end, cuts, from := l.tail.Load().end, l.cuts, l.recovery.Load()
	segs := *l.segs.Load()
	l.mu.Unlock()
	target := min(end, limit)
	folderDone := !l.newFiles.Load() && !l.newMeta.Load() && l.dir.synced.Load() >= l.dirSynced
	if target <= from && folderDone && !l.active().unsyncedCut.Load() {
		return nil
	}
	err := l.syncSegments(segs, from, target)
	if err == nil {
		err = l.writeEpochs(true)
	}
	if err == nil {
		err = l.syncFolder()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts != cuts || l.closed {
		return nil // truncated or deleted meanwhile: nothing may be claimed
	}
	if err == nil {
		err = l.syncSealed(target)
	}
	if err != nil {
		return l.fail(fmt.Errorf("flush: %w", err))
	}
	l.lastFlush = l.m.opts.Now().UnixMilli()
	if target > l.recovery.Load() {
		l.recovery.Store(target)
		l.dir.recoveryDirty.Store(true)
	}
	return nil
}

// syncSegments syncs the segments that hold offsets from from up to target; sealed ones with their indexes.
func (l *Log) syncSegments(segs []*segment, from, target int64) error {
	for i, s := range segs {
		if s.size.Load() == 0 && !s.unsyncedCut.Load() {
			continue
		}
		sealed := i+1 < len(segs)
		cut := s.unsyncedCut.Load()
		if !cut && (sealed && segs[i+1].base <= from || s.base >= target) {
			continue
		}
		h, err := s.file.acquire()
		if err != nil {
			return err
		}
		s.unsyncedCut.Store(false)
		if err = h.Sync(); err != nil {
			s.unsyncedCut.Store(cut)
		}
		h.release()
		if err == nil && sealed {
			err = s.flushIndexes(true)
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", s.file.path(), err)
		}
	}
	return nil
}

// syncSealed makes the indexes durable of segments that end at or below target and were sealed while the flush
// was running. Callers hold mu.
func (l *Log) syncSealed(target int64) error {
	segs := *l.segs.Load()
	for i, s := range segs[:len(segs)-1] {
		if segs[i+1].base <= target && s.unsyncedIndex.Load() {
			if err := s.flushIndexes(true); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeEpochs writes leader-epoch-checkpoint when it is behind.
func (l *Log) writeEpochs(sync bool) error {
	entries, dirty := l.epochs.snapshot()
	if !dirty {
		return nil
	}
	if err := writeAtomic(l.m.fs, filepath.Join(*l.folder.Load(), fileEpochs), formatEpochs(entries), sync); err != nil {
		return err
	}
	l.newFiles.Store(true)
	l.epochs.written(entries)
	return nil
}

// syncFolder makes the folder's new entries durable, and once the folder's own entry and partition.metadata.
func (l *Log) syncFolder() error {
	if l.newMeta.Swap(false) {
		if err := l.syncFile(filepath.Join(*l.folder.Load(), filePartition)); err != nil {
			l.newMeta.Store(true)
			return err
		}
	}
	if l.newFiles.Swap(false) {
		if err := l.m.fs.SyncDir(*l.folder.Load()); err != nil {
			l.newFiles.Store(true)
			return err
		}
	}
	return l.dir.syncEntry(l.m, l.dirSynced)
}
