package storage

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

// TestConcurrentUse lets readers, a leader's appends, flushes, housekeeping and log-start moves run against each
// other on the real file system: every slice must be whole good batches within its bounds.
func TestConcurrentUse(t *testing.T) {
	o := ManagerOptions{BrokerID: 1, OpenFiles: 6}
	m, err := OpenManager(vfs.OS{}, []string{t.TempDir()}, o)
	must(t, err)
	cfg := DefaultConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes, cfg.RetentionBytes, cfg.FileDeleteDelayMs = 8000, 300, 40_000, 0
	l, err := m.Create(testTP, testID, cfg)
	must(t, err)
	var done atomic.Bool
	var wg sync.WaitGroup
	run := func(fn func(rng *rand.Rand) error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(1, 2))
			for !done.Load() {
				if err := fn(rng); err != nil {
					t.Error(err)
					done.Store(true)
				}
			}
		}()
	}
	for range 3 {
		run(func(rng *rand.Rand) error { return readSome(l, rng) })
	}
	run(func(rng *rand.Rand) error {
		_, _, err := l.OffsetForTimestamp(rng.Int64N(3000), l.HighWatermark())
		if _, _, err2 := l.MaxTimestampOffset(); err2 != nil && !isNotExist(err2) {
			return err2
		}
		if isNotExist(err) { // the segment went while we looked
			return nil
		}
		return err
	})
	run(func(*rand.Rand) error { return errors.Join(l.Flush(), m.Housekeep(time.Now())) })
	for i := range 2000 {
		res, err := l.AppendAsLeader(batch(t, 3, int64(i), withProducer(1, 0, int32(3*i))), clusterEpoch(i/100), AppendOptions{})
		must(t, err)
		l.SetHighWatermark(res.LastOffset + 1 - 6)
		if done.Load() {
			break
		}
	}
	done.Store(true)
	wg.Wait()
	checkLog(t, l)
	must(t, m.Close())
}

func readSome(l *Log, rng *rand.Rand) error {
	start, bound := l.LogStartOffset(), l.HighWatermark()
	if bound <= start {
		return nil
	}
	offset := start + rng.Int64N(bound-start)
	s, err := l.Read(offset, 1+rng.IntN(20_000), bound, true)
	if errors.Is(err, ErrOffsetOutOfRange) {
		return nil // retention was faster
	}
	if err != nil {
		return err
	}
	defer s.Release()
	var buf bytes.Buffer
	if _, err := s.WriteTo(&buf); err != nil {
		return err
	}
	for rest := buf.Bytes(); len(rest) > 0; {
		b, after, err := record.Next(rest)
		if err != nil {
			return err
		}
		if err := b.Check(true); err != nil {
			return err
		}
		if b.LastOffset() >= bound {
			return errors.New("batch over the bound")
		}
		rest = after
	}
	return nil
}

// TestConcurrentTruncation: readers of a follower that is truncated see whole batches or a clear end.
func TestConcurrentTruncation(t *testing.T) {
	m, err := OpenManager(vfs.OS{}, []string{t.TempDir()}, ManagerOptions{BrokerID: 1})
	must(t, err)
	cfg := DefaultConfig()
	cfg.SegmentBytes, cfg.IndexIntervalBytes = 4000, 300
	l, err := m.Create(testTP, testID, cfg)
	must(t, err)
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !done.Load() {
				s, err := l.Read(0, 5000, math.MaxInt64, true)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := s.WriteTo(io.Discard); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
				s.Release()
			}
		}()
	}
	for i := range 300 {
		mustAppend(t, l, batch(t, 3, int64(i)), clusterEpoch(i))
		if i%20 == 19 {
			must(t, l.TruncateTo(max(0, l.LogEndOffset()-30)))
		}
		if i == 150 {
			must(t, l.TruncateTo(0))
		}
	}
	done.Store(true)
	wg.Wait()
	checkLog(t, l)
	must(t, m.Close())
}
