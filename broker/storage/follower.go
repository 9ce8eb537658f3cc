package storage

import (
	"errors"
	"fmt"
	"math"

	"kctl/broker/record"
)

// AppendAsFollower writes batches with the offsets and epochs that the leader gave them. They must start at
// or after the log end and rise; a cut-off last batch is ignored. An empty log whose end lies inside the first
// batch is moved back to the batch's first offset. CRCs are checked. Errors: those of
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
	end := l.tail.Load().end
	if res.BaseOffset < end && end == l.start.Load() && firstLast(data) >= end {
		// An empty log that starts inside a batch of the leader (DeleteRecords): begin with the whole batch. The
		// leader's log start follows with AdvanceLogStart.
		if err := l.restartAt(res.BaseOffset); err != nil {
			return err
		}
		end = res.BaseOffset
	}
	if res.BaseOffset < end {
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

// firstLast is the last offset of the first batch.
func firstLast(data []byte) int64 {
	b, _, err := record.Next(data)
	if err != nil {
		return -1
	}
	return b.LastOffset()
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
