package groupshell

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kctl/broker/group"
	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// Manager is the group coordinator of one broker. All methods may be called from any goroutine.
type Manager struct {
	opts     Options
	log      *slog.Logger
	now      func() time.Time
	newID    func() string
	metrics  *metrics
	timers   timers
	builders sync.Pool     // *record.Builder
	loadWake chan struct{} // holds one token when loads is not empty
	creating atomic.Bool   // a request is creating the offsets topic

	mu     sync.RWMutex
	shards map[int32]*shard // guarded by mu
	loads  []*shard         // guarded by mu: to be loaded
	closed bool             // guarded by mu: Run has ended
}

// New makes a Manager. Run must be started before partitions are loaded.
func New(opts Options) *Manager {
	m := &Manager{
		opts: opts, log: opts.Logger, now: opts.Now, newID: opts.NewID,
		timers:   timers{wake: make(chan struct{}, 1)},
		loadWake: make(chan struct{}, 1),
		shards:   make(map[int32]*shard),
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.now == nil {
		m.now = time.Now
	}
	if m.newID == nil {
		m.newID = randomUUID
	}
	m.metrics = newMetrics(opts.Registerer, m)
	return m
}

// randomUUID returns a version 4 UUID in text form.
func randomUUID() string {
	var b [16]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (m *Manager) coreConfig() group.Config {
	c := m.opts.Config
	return group.Config{
		SessionTimeoutMin: c.GroupMinSessionTimeout, SessionTimeoutMax: c.GroupMaxSessionTimeout,
		InitialRebalanceDelay: c.GroupInitialRebalanceWait, MaxSize: c.GroupMaxSize,
		OffsetMetadataMax: c.OffsetMetadataMaxBytes, OffsetsRetention: c.OffsetsRetention,
	}
}

// Run loads partitions and fires timers until ctx ends; then everyone who waits is answered with
// NOT_COORDINATOR and nothing is served any more.
func (m *Manager) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.runTimers(ctx) })
	g.Go(func() error { return m.runLoads(ctx) })
	err := g.Wait()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	for _, sh := range m.allShards() {
		sh.mu.Lock()
		sh.unload()
		sh.unlock()
	}
	return err
}

// OnLeadership tells that this broker became leader of a partition of __consumer_offsets, or is it no
// longer. It never blocks on I/O. A call with an epoch below the last one seen is ignored, except negative
// epochs (the partition is stopped or deleted). A leader that stays leader in a new epoch keeps its groups.
func (m *Manager) OnLeadership(partition int32, leader bool, epoch cluster.LeaderEpoch) {
	m.mu.Lock()
	sh := m.shards[partition]
	if sh == nil {
		sh = &shard{m: m, partition: partition, epoch: cluster.NoLeaderEpoch, calls: make(map[group.RequestID]*call)}
		m.shards[partition] = sh
	}
	closed := m.closed
	m.mu.Unlock()

	sh.mu.Lock()
	if epoch >= 0 && epoch < sh.epoch || closed {
		sh.mu.Unlock()
		return
	}
	sh.epoch = max(epoch, sh.epoch)
	load := leader && sh.state == notLeader
	switch {
	case load:
		sh.state = loading
	case !leader:
		sh.unload()
	}
	sh.unlock()
	if load {
		m.enqueueLoad(sh)
	} else if !leader {
		m.log.Info("consumer groups unloaded", obs.KeyPartition, partition, obs.KeyLeaderEpoch, epoch)
	}
}

// OnTopicsDeleted removes the committed offsets of topics that were deleted.
func (m *Manager) OnTopicsDeleted(ctx context.Context, topics []string) {
	for _, sh := range m.allShards() {
		sh.event(ctx, group.TopicsDeleted{At: m.now(), Topics: topics})
	}
}

// PartitionFor returns the partition of __consumer_offsets that holds a group.
func (m *Manager) PartitionFor(groupID string) int32 {
	n, ok := m.opts.Metadata.PartitionCount(OffsetsTopic)
	if !ok || n <= 0 {
		n = m.opts.Config.OffsetsTopicPartitions
	}
	return cluster.JavaStringHash(groupID) & 0x7fffffff % n
}

// shardFor returns the shard of a group; nil when this broker does not lead its partition.
func (m *Manager) shardFor(groupID string) *shard {
	p := m.PartitionFor(groupID)
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.shards[p]
}

func (m *Manager) allShards() []*shard {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*shard, 0, len(m.shards))
	for _, p := range slices.Sorted(maps.Keys(m.shards)) {
		out = append(out, m.shards[p])
	}
	return out
}

func (m *Manager) counts() (groups, offsets int) {
	for _, sh := range m.allShards() {
		sh.mu.Lock()
		if sh.core != nil {
			g, o := sh.core.Groups()
			groups, offsets = groups+g, offsets+o
		}
		sh.mu.Unlock()
	}
	return groups, offsets
}

// do runs a request of a group.
func (m *Manager) do(ctx context.Context, groupID string, event func(id group.RequestID) group.Event) (group.Effect, group.Code) {
	sh := m.shardFor(groupID)
	if sh == nil {
		return nil, group.NotCoordinator
	}
	return sh.do(ctx, event)
}

// view runs a query on the groups of a shard.
func (m *Manager) view(groupID string, query func(*group.Shard)) group.Code {
	sh := m.shardFor(groupID)
	if sh == nil {
		return group.NotCoordinator
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if code := sh.status(); code != group.None {
		return code
	}
	query(sh.core)
	return group.None
}
