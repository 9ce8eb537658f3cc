package storage

import (
	"errors"
	"fmt"
	"math"

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
	data, err := l.m.prepare(data, cfg, opts.Origin, nowMs)
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
func (m *Manager) prepare(data []byte, cfg *Config, origin Origin, nowMs int64) ([]byte, error) {
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
		if len(b) > int(cfg.MaxMessageBytes) { // before anything is unpacked
			return nil, tooLarge(b, cfg)
		}
		if err := m.checkLeaderBatch(b, cfg, origin, nowMs); err != nil {
			return nil, err
		}
		if convert && b.Compression() != target && !b.IsControl() {
			if out == nil {
				out = append(make([]byte, 0, len(data)), data[:len(data)-len(rest)-len(b)]...)
			}
			at := len(out)
			err := m.unpack(cfg, func(limit int) error {
				packed, err := record.Recompress(out[:at], b, target, limit)
				if err == nil {
					out = packed
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			b = record.Batch(out[at:])
		} else if out != nil {
			at := len(out)
			out = append(out, b...)
			b = record.Batch(out[at:])
		}
		if len(b) > int(cfg.MaxMessageBytes) {
			return nil, tooLarge(b, cfg)
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

// smallUnpackBytes is what a batch may unpack to without waiting for others.
const smallUnpackBytes = 4 << 20

// unpack calls f, which unpacks a batch up to a limit. Few honest batches are large and a bomb is as large as it
// may be, so large ones are unpacked one at a time: any number of clients cannot take more memory than one.
func (m *Manager) unpack(cfg *Config, f func(limit int) error) error {
	err := f(smallUnpackBytes)
	if !errors.Is(err, record.ErrTooLarge) {
		return err
	}
	m.bigUnpack.Lock()
	defer m.bigUnpack.Unlock()
	return f(unpackLimit(cfg))
}

func tooLarge(b record.Batch, cfg *Config) error {
	return fmt.Errorf("batch of %d bytes, max.message.bytes is %d: %w", len(b), cfg.MaxMessageBytes, ErrMessageTooLarge)
}

func (m *Manager) checkLeaderBatch(b record.Batch, cfg *Config, origin Origin, nowMs int64) error {
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
		return m.unpack(cfg, func(limit int) error { return b.CheckRecords(true, limit) })
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
