package groupshell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"kctl/broker/group"
	"kctl/broker/obs"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// loadersMax bounds the loads at once; loadRetry is the pause after one that failed.
const (
	loadersMax = 4
	loadRetry  = 2 * time.Second
)

// errLoadOutdated says that leadership changed while loading.
var errLoadOutdated = errors.New("leadership changed while loading")

// enqueueLoad asks the loader to load the shard.
func (m *Manager) enqueueLoad(sh *shard) {
	m.mu.Lock()
	m.loads = append(m.loads, sh)
	m.mu.Unlock()
	signal(m.loadWake)
}

// runLoads loads partitions as they are asked for until ctx ends.
func (m *Manager) runLoads(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(loadersMax)
	defer g.Wait() //nolint:errcheck // the loads return no errors
	for {
		m.mu.Lock()
		loads := m.loads
		m.loads = nil
		m.mu.Unlock()
		for _, sh := range loads {
			g.Go(func() error { m.load(ctx, sh); return nil })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.loadWake:
		}
	}
}

// load reads one partition and makes its shard active. A failed load is tried again later for as long as
// the leadership lasts: serving half of the groups would lose the rest.
func (m *Manager) load(ctx context.Context, sh *shard) {
	sh.mu.Lock()
	if sh.state != loading {
		sh.mu.Unlock()
		return
	}
	if sh.appending { // of an earlier leadership; its records must be read, not overtaken
		sh.loadBlocked = true
		sh.mu.Unlock()
		return
	}
	epoch := sh.epoch
	sh.mu.Unlock()

	began := m.now()
	loader, err := m.readPartition(ctx, sh, epoch)
	switch {
	case errors.Is(err, errLoadOutdated) || ctx.Err() != nil:
		return
	case err != nil:
		m.metrics.loadFailures.Inc()
		m.log.Error("load consumer groups", obs.KeyPartition, sh.partition, obs.KeyLeaderEpoch, epoch, obs.Err(err))
		m.timers.add(entry{at: m.now().Add(loadRetry), sh: sh})
		return
	}
	sh.mu.Lock()
	if sh.state != loading || sh.epoch != epoch {
		sh.mu.Unlock()
		return
	}
	sh.core = group.NewShard(m.coreConfig())
	sh.state = active
	sh.carryOut(sh.core.Install(loader, m.now(), nil))
	groups, offsets := sh.core.Groups()
	sh.unlock()
	took := m.now().Sub(began)
	m.metrics.loadSeconds.Observe(took.Seconds())
	m.log.Info("consumer groups loaded", obs.KeyPartition, sh.partition, obs.KeyLeaderEpoch, epoch,
		obs.KeyCount, groups, obs.KeyOffsets, offsets, obs.KeyDuration, took)
	sh.flush(ctx)
}

// readPartition streams the partition's log through a loader, one buffer at a time.
func (m *Manager) readPartition(ctx context.Context, sh *shard, epoch cluster.LeaderEpoch) (*group.Loader, error) {
	offset, end, err := m.opts.Log.Range(sh.partition)
	if err != nil {
		return nil, fmt.Errorf("range of the log: %w", err)
	}
	loader := group.NewLoader()
	for offset < end {
		if !sh.stillLoading(epoch) {
			return nil, errLoadOutdated
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		buf, err := m.opts.Log.Read(ctx, sh.partition, offset, m.opts.Config.OffsetsLoadBufferBytes)
		if err != nil {
			return nil, fmt.Errorf("read at offset %d: %w", offset, err)
		}
		next, err := m.feed(loader, buf, offset, sh.partition)
		if err != nil {
			return nil, err
		}
		if next <= offset {
			return nil, fmt.Errorf("no batch at offset %d below the log end %d", offset, end)
		}
		offset = next
	}
	return loader, nil
}

func (sh *shard) stillLoading(epoch cluster.LeaderEpoch) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.state == loading && sh.epoch == epoch
}

// feed gives the batches of buf from offset on to the loader and returns the offset after them.
func (m *Manager) feed(loader *group.Loader, buf []byte, offset int64, partition int32) (int64, error) {
	for len(buf) > 0 {
		b, rest, err := record.Next(buf)
		if errors.Is(err, record.ErrIncomplete) {
			break
		}
		if err != nil {
			return offset, fmt.Errorf("batch at offset %d: %w", offset, err)
		}
		buf = rest
		if b.NextOffset() <= offset {
			continue // ends before where we are
		}
		skipped, last, err := loadBatch(loader, b, nil)
		if err != nil {
			return offset, fmt.Errorf("batch at offset %d: %w", b.BaseOffset(), err)
		}
		if skipped > 0 {
			m.metrics.loadSkipped.Add(float64(skipped))
			m.log.Warn("records of the offsets topic skipped", obs.KeyPartition, partition, obs.KeyOffset, b.BaseOffset(),
				obs.KeyCount, skipped, obs.Err(last))
		}
		offset = b.NextOffset()
	}
	return offset, nil
}
