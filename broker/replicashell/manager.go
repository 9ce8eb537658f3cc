package replicashell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kctl/broker/obs"
	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// Manager is the replica manager of one broker. All methods may be called from any goroutine.
type Manager struct {
	opts     Options
	storage  *storage.Manager
	log      *slog.Logger
	chatter  *chatter
	sessions *session.Cache
	streams  *streams
	isr      *isrWriter
	moves    *moves
	leaders  *leadershipFeed
	metrics  *metrics

	throttles throttles

	// control serialises the controller's requests. Before mu.
	control         sync.Mutex
	controllerEpoch cluster.ControllerEpoch // guarded by control

	mu    sync.RWMutex // leaf
	parts map[cluster.TopicPartition]*partition
	byID  map[cluster.TopicID]*heldTopic

	gravesMu sync.Mutex // leaf
	graves   replica.Graves

	addrMu sync.Mutex // leaf
	addrs  map[cluster.BrokerID]string

	ticks     ticks
	hwDirty   atomic.Bool  // a high watermark moved since the last checkpoint
	fastUntil atomic.Int64 // nanoseconds: until then followers' fetches wait briefly only
	dirs      offlineDirs
	closing   chan struct{}
	closeOnce sync.Once
}

// fastPeriod is how long after a leadership change followers' fetches are answered after fastWait at the
// latest: replicas of new partitions must not sit out a long poll before their first fetch.
const (
	fastPeriod = 2 * time.Second
	fastWait   = 20 * time.Millisecond
)

// NewManager returns a manager that hosts nothing yet; its first LeaderAndISR requests tell it what it hosts.
func NewManager(opts Options) *Manager {
	opts = opts.withDefaults()
	m := &Manager{
		opts:     opts,
		storage:  opts.Storage,
		log:      opts.Logger,
		chatter:  &chatter{log: opts.Logger, now: opts.Now},
		sessions: session.NewCache(opts.FetchSessionSlots),
		leaders:  newLeadershipFeed(opts.OnLeadership),
		parts:    map[cluster.TopicPartition]*partition{},
		byID:     map[cluster.TopicID]*heldTopic{},
		addrs:    map[cluster.BrokerID]string{},
		closing:  make(chan struct{}),
	}
	m.streams = newStreams(m)
	m.isr = newISRWriter(m)
	m.moves = newMoves(m)
	m.throttles = newThrottles()
	m.ThrottlesChanged()
	m.metrics = newMetrics(m, opts.Registerer)
	return m
}

// Run replicates, writes ISR changes and checkpoints until ctx ends; it returns when all its goroutines have.
func (m *Manager) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	start := func(f func(context.Context)) {
		wg.Add(1)
		go func() { defer wg.Done(); f(ctx) }()
	}
	start(m.isr.run)
	start(m.moves.run)
	start(m.leaders.run)
	start(m.tickLoop)
	start(m.checkpointLoop)
	m.streams.run(ctx) // returns when ctx has ended and every stream has stopped
	wg.Wait()
	return nil
}

// Close ends waiting requests and writes the last high watermark checkpoint. It does not close the storage.
// Run must have returned.
func (m *Manager) Close(ctx context.Context) error {
	m.closeOnce.Do(func() { close(m.closing) })
	err := m.checkpointHighWatermarks()
	for _, p := range m.snapshot() {
		var a after
		p.mu.Lock()
		p.failWaiting(replica.CodeNotLeaderOrFollower, &a)
		p.wakeAll()
		p.mu.Unlock()
		a.run()
	}
	return err
}

func (m *Manager) checkpointLoop(ctx context.Context) {
	t := time.NewTicker(m.opts.HighWatermarkCheckpoint)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			m.chatter.flush()
			if err := m.checkpointHighWatermarks(); err != nil {
				m.log.LogAttrs(ctx, slog.LevelError, "high watermark checkpoint failed", obs.Err(err))
			}
		}
	}
}

// checkpointHighWatermarks does nothing while no high watermark has moved, which also means before the first
// LeaderAndISR: what the last run left must not be overwritten by less.
func (m *Manager) checkpointHighWatermarks() error {
	if !m.hwDirty.Swap(false) {
		return nil
	}
	hw := make(map[cluster.TopicPartition]int64)
	for _, p := range m.snapshot() {
		p.mu.Lock()
		if p.core.LogOpen() && p.core.Role() != replica.Offline {
			hw[p.tp] = p.core.HighWatermark()
		}
		p.mu.Unlock()
	}
	if err := m.storage.CheckpointHighWatermarks(hw); err != nil {
		m.hwDirty.Store(true)
		return fmt.Errorf("checkpoint high watermarks: %w", err)
	}
	return nil
}

func (m *Manager) partition(tp cluster.TopicPartition) *partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.parts[tp]
}

func (m *Manager) snapshot() []*partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*partition, 0, len(m.parts))
	for _, p := range m.parts {
		out = append(out, p)
	}
	return out
}

// obtain returns the partition, making it when there is none.
func (m *Manager) obtain(tp cluster.TopicPartition) (p *partition, made bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.parts[tp]; p != nil {
		return p, false
	}
	p = newPartition(m, tp)
	m.parts[tp] = p
	return p, true
}

// remove is called under p.mu.
func (m *Manager) remove(p *partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parts[p.tp] == p {
		delete(m.parts, p.tp)
	}
	if t := m.byID[p.topicID]; t != nil {
		if t.partitions--; t.partitions == 0 {
			delete(m.byID, p.topicID)
		}
	}
}

// heldTopic is the name behind a topic id while partitions of it are hosted.
type heldTopic struct {
	name       string
	partitions int
}

func (m *Manager) holdTopicID(topic string, id cluster.TopicID) {
	if id.IsZero() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.byID[id]
	if t == nil {
		t = &heldTopic{name: topic}
		m.byID[id] = t
	}
	t.partitions++
}

func (m *Manager) topicName(id cluster.TopicID) (string, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t := m.byID[id]
	if t == nil {
		return "", false
	}
	return t.name, true
}

// Partition describes one hosted partition.
func (m *Manager) Partition(tp cluster.TopicPartition) (PartitionInfo, bool) {
	p := m.partition(tp)
	if p == nil {
		return PartitionInfo{}, false
	}
	return p.info(), true
}

// Partitions describes every hosted partition, sorted.
func (m *Manager) Partitions() []PartitionInfo {
	parts := m.snapshot()
	out := make([]PartitionInfo, len(parts))
	for i, p := range parts {
		out[i] = p.info()
	}
	slices.SortFunc(out, func(a, b PartitionInfo) int { return a.TP.Compare(b.TP) })
	return out
}

// ConfigChanged makes the partitions of topic take up its configuration anew.
func (m *Manager) ConfigChanged(topic string) {
	m.topicThrottled(topic)
	cfg := m.opts.TopicConfig(topic)
	for _, p := range m.snapshot() {
		if p.tp.Topic == topic {
			p.configChanged(cfg)
		}
	}
}

// BrokersChanged makes leaders look anew at which followers are registered (Options.IsAlive).
func (m *Manager) BrokersChanged() {
	for _, p := range m.snapshot() {
		p.brokersChanged()
	}
}

// brokerAddr finds the address to replicate from.
func (m *Manager) brokerAddr(id cluster.BrokerID) (string, bool) {
	if m.opts.BrokerAddr != nil {
		if addr, ok := m.opts.BrokerAddr(id); ok {
			return addr, true
		}
	}
	m.addrMu.Lock()
	defer m.addrMu.Unlock()
	addr, ok := m.addrs[id]
	return addr, ok
}

func (m *Manager) setBrokerAddr(id cluster.BrokerID, host string, port int32) {
	m.addrMu.Lock()
	defer m.addrMu.Unlock()
	m.addrs[id] = net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// offlineDirs remembers which log directories were taken out of service.
type offlineDirs struct {
	mu   sync.Mutex
	seen map[string]bool
}

// dirFailed takes a log directory out of service: every partition in it goes offline, the others go on
// (KAFKA-5864, KAFKA-7837). It must be called without any partition's lock.
func (m *Manager) dirFailed(dir string, cause error) {
	m.dirs.mu.Lock()
	if m.dirs.seen[dir] {
		m.dirs.mu.Unlock()
		return
	}
	if m.dirs.seen == nil {
		m.dirs.seen = map[string]bool{}
	}
	m.dirs.seen[dir] = true
	m.dirs.mu.Unlock()

	m.log.LogAttrs(context.Background(), slog.LevelError, "log directory is offline",
		slog.String(obs.KeyLogDir, dir), obs.Err(cause))
	for _, tp := range m.storage.MarkOffline(dir, cause) {
		if p := m.partition(tp); p != nil {
			p.event(replica.LogFailed{At: m.opts.Now()})
		}
	}
	m.isr.notifyDirFailure()
	if m.opts.OnDirOffline != nil {
		m.opts.OnDirOffline(dir, cause)
	}
}

func isStorageFailure(err error) bool {
	return errors.Is(err, storage.ErrStorage) || errors.Is(err, storage.ErrOffline)
}
