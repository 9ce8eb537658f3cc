package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"kctl/broker/api"
	"kctl/broker/config"
	"kctl/broker/controllershell"
	"kctl/broker/groupshell"
	"kctl/broker/metadata"
	"kctl/broker/obs"
	"kctl/broker/producerid"
	"kctl/broker/replicashell"
	"kctl/broker/server"
	"kctl/broker/storage"
	"kctl/broker/topicadmin"
	"kctl/broker/vfs"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// Options are what a Broker needs besides its configuration.
type Options struct {
	Logger     *slog.Logger         // nil: discard
	Registerer *prometheus.Registry // nil: an own one, served on metrics.listener
	// ZooKeeperDialer opens connections to ZooKeeper; nil: TCP. Tests put faults in between.
	ZooKeeperDialer zkutil.Dialer
	// FS is where the log directories are; nil: the disk. Tests let it fail.
	FS vfs.FS
}

// Broker is one broker of a cluster.
type Broker struct {
	static *config.Broker
	opts   Options
	log    *slog.Logger
	reg    *prometheus.Registry

	id        cluster.BrokerID
	clusterID string
	endpoints []cluster.Endpoint
	epoch     atomic.Int64 // broker epoch of the current registration, -1 before the first
	// dataEpoch is the oldest broker epoch since which the logs have lost nothing, 0 when that is the next one.
	// Owned by the goroutine that registers. See continuity.go.
	dataEpoch int64

	srv     *server.Server
	metrics *metricsServer
	zk      zkutil.Client
	dynamic *config.Dynamic
	cache   *metadata.Cache
	store   *storage.Manager
	replica *replicashell.Manager
	control *controllershell.Shell
	groups  *groupshell.Manager
	api     *api.Service

	bound  chan struct{} // closed when the listeners are bound
	ready  chan struct{} // closed when the broker serves
	left   chan struct{} // closed when the ZooKeeper session has ended
	killed chan struct{} // closed by Kill
	once   sync.Once     // of killed
}

// New checks nothing yet and touches nothing; Run does.
func New(static *config.Broker, opts Options) *Broker {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Registerer == nil {
		opts.Registerer = prometheus.NewRegistry()
	}
	if opts.FS == nil {
		opts.FS = vfs.OS{}
	}
	b := &Broker{
		static: static, opts: opts, reg: opts.Registerer, id: static.ID,
		cache: metadata.NewCache(), bound: make(chan struct{}), ready: make(chan struct{}), left: make(chan struct{}), killed: make(chan struct{}),
	}
	b.epoch.Store(int64(cluster.NoBrokerEpoch))
	b.log = opts.Logger.With(obs.KeyBroker, static.ID)
	return b
}

// Ready is closed when the broker is registered and its metadata names itself and a live controller.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Bound is closed when the listeners are bound, so that Addr does not block.
func (b *Broker) Bound() <-chan struct{} { return b.bound }

// AwaitLeaders waits until this broker's metadata names live leaders of at least n partitions of the topic.
func (b *Broker) AwaitLeaders(ctx context.Context, topic string, n int) error {
	return b.cache.Wait(ctx, func(s *metadata.Snapshot) bool { return s.HasLeaders(topic, n) })
}

// ID returns the broker id; the generated one once Ready is closed.
func (b *Broker) ID() cluster.BrokerID { return b.id }

// Snapshot returns the metadata that the broker serves.
func (b *Broker) Snapshot() *metadata.Snapshot { return b.cache.Snapshot() }

// IsController reports whether this broker is the active controller.
func (b *Broker) IsController() bool {
	select {
	case <-b.ready:
		return b.control.IsActive()
	default:
		return false
	}
}

// Replicas describes the partitions hosted here, once Ready is closed.
func (b *Broker) Replicas() []replicashell.PartitionInfo { return b.replica.Partitions() }

// Left is closed when the broker has left the cluster: it serves and leads nothing any more and its session has
// ended, but Run may still be busy with closing the logs.
func (b *Broker) Left() <-chan struct{} { return b.left }

// Addr returns host:port of a listener as clients are told it, once the listeners are bound. It blocks until
// then.
func (b *Broker) Addr(listener string) string {
	<-b.bound
	for _, e := range b.endpoints {
		if e.Listener == listener {
			return net.JoinHostPort(e.Host, fmt.Sprint(e.Port))
		}
	}
	return ""
}

// Kill stops the broker as a crash of its process would, as far as that is possible from inside: no controlled
// shutdown, no checkpoint, connections cut. Run returns ErrKilled. The ZooKeeper session is ended, so peers
// notice at once.
func (b *Broker) Kill() { b.once.Do(func() { close(b.killed) }) }

// ErrKilled is what Run returns after Kill.
var ErrKilled = errors.New("broker killed")

// Run starts the broker and serves until ctx ends, which begins an orderly stop, or until something fails.
func (b *Broker) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, b.release()) }()
	if err := b.bind(); err != nil {
		return err
	}
	if err := b.connect(ctx); err != nil {
		return err
	}
	if err := b.open(ctx); err != nil {
		return err
	}
	b.build()
	return b.serve(ctx)
}

// release closes what Run opened and an orderly stop did not. The ZooKeeper session ends before the logs are
// closed: nothing is served any more, flushing thousands of logs takes seconds, and until the session is gone
// nobody can take over what this broker leads, nor its office as controller.
func (b *Broker) release() error {
	if b.srv != nil {
		b.srv.Close()
	}
	if b.metrics != nil {
		b.metrics.close()
	}
	var zkErr error
	if b.zk != nil {
		zkErr = b.zk.Close()
	}
	close(b.left)
	var err error
	if b.store != nil {
		select {
		case <-b.killed:
			for _, d := range b.store.Dirs() { // an offline directory gets no clean-shutdown mark
				b.store.MarkOffline(d.Path, ErrKilled)
			}
			_ = b.store.Close()
		default:
			if err = b.store.Close(); err != nil {
				err = fmt.Errorf("close log directories: %w", err)
			}
		}
	}
	if zkErr != nil && err == nil {
		b.log.Warn("ZooKeeper session not closed", obs.Err(zkErr))
	}
	return err
}

// serve runs all parts. Their context is not ctx: they must go on while leaders are handed over.
func (b *Broker) serve(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	requests, endRequests := context.WithCancel(life)
	defer endRequests()
	g, life := errgroup.WithContext(life)
	part := func(name string, run func(context.Context) error) {
		g.Go(func() error {
			if err := run(life); err != nil && life.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	part("configuration", func(ctx context.Context) error { return b.dynamic.Run(ctx, b.configChanged) })
	part("replica manager", b.replica.Run)
	part("group coordinator", b.groups.Run)
	part("controller", b.control.Run)
	part("housekeeping", b.housekeep)
	part("registration", b.stayRegistered)
	part("deposition", b.watchDeposition)
	part("metrics", b.metrics.run)
	g.Go(func() error { return b.srv.Run(requests) })
	part("readiness", b.awaitReady)
	g.Go(func() error {
		select {
		case <-life.Done():
			b.srv.Close()
			return nil
		case <-b.killed:
			b.srv.Close()
			end()
			return ErrKilled
		case <-ctx.Done():
		}
		b.stop(life, endRequests)
		end()
		return nil
	})
	err := g.Wait()
	if errors.Is(err, ErrKilled) {
		return err
	}
	if cerr := b.replica.Close(context.WithoutCancel(ctx)); cerr != nil && err == nil {
		err = fmt.Errorf("close replica manager: %w", cerr)
	}
	return err
}

// awaitReady closes ready.
func (b *Broker) awaitReady(ctx context.Context) error {
	err := b.cache.Wait(ctx, func(s *metadata.Snapshot) bool { return s.IsAlive(b.id) && s.IsAlive(s.ControllerID) })
	if err == nil {
		b.log.Info("ready", obs.KeyAddr, b.endpoints[0].Host+":"+fmt.Sprint(b.endpoints[0].Port))
		close(b.ready)
	}
	return nil
}

// housekeepInterval is how often the logs' periodic work runs.
const housekeepInterval = 2 * time.Second

func (b *Broker) housekeep(ctx context.Context) error {
	tick := time.NewTicker(housekeepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if err := b.store.Housekeep(now); err != nil {
				b.log.Error("housekeeping of logs failed", obs.Err(err))
			}
		}
	}
}

// configChanged passes a dynamic change on to those who hold derived state.
func (b *Broker) configChanged(c config.Change) {
	b.control.TopicConfigChanged(c.Topic)
	if c.Topic != "" {
		b.replica.ConfigChanged(c.Topic)
		return
	}
	b.replica.ThrottlesChanged()
	// The brokers' defaults are those of every topic.
	seen := make(map[string]bool)
	for _, p := range b.replica.Partitions() {
		if !seen[p.TP.Topic] {
			seen[p.TP.Topic] = true
			b.replica.ConfigChanged(p.TP.Topic)
		}
	}
}

// build makes the parts; nothing starts yet.
func (b *Broker) build() {
	v := b.static.Values()
	b.replica = replicashell.NewManager(b.replicaOptions())
	b.control = controllershell.New(b.controllerOptions())
	topics := topicadmin.New(b.zk)
	b.groups = groupshell.New(groupshell.Options{
		Config:     groupConfig(v),
		Log:        groupLog{b},
		Metadata:   groupMetadata{b.cache},
		Topics:     groupTopics{b},
		Logger:     b.log,
		Registerer: b.reg,
	})
	b.api = api.New(api.Deps{
		BrokerID: b.id, BrokerEpoch: b.brokerEpoch, ClusterID: b.clusterID,
		Static: b.static, Dynamic: b.dynamic, Metadata: b.cache,
		Data: b.replica, Replication: b.replica, Controller: b.control,
		Members: b.groups, Offsets: b.groups, Groups: b.groups,
		Topics: topics, ProducerIDs: producerid.New(b.zk, b.id),
		NewReplica: func(tp cluster.TopicPartition) bool { _, ok := b.store.Log(tp); return !ok },
		Logger:     b.log, Registerer: b.reg,
	})
	b.srv.SetHandler(b.api)
	b.registerMetrics()
}

func (b *Broker) brokerEpoch() cluster.BrokerEpoch { return cluster.BrokerEpoch(b.epoch.Load()) }

// AwaitMembers waits until b is ready and its metadata names n live brokers and a live controller.
func AwaitMembers(ctx context.Context, b *Broker, n int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.Ready():
	}
	return b.cache.Wait(ctx, func(s *metadata.Snapshot) bool { return len(s.Brokers()) >= n && s.IsAlive(s.ControllerID) })
}
