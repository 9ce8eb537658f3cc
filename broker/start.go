package broker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kctl/broker/api"
	"kctl/broker/config"
	"kctl/broker/obs"
	"kctl/broker/server"
	"kctl/broker/storage"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// Errors of starting, for errors.Is.
var (
	// ErrUnreachable says that ZooKeeper did not answer in time.
	ErrUnreachable = errors.New("ZooKeeper cannot be reached")
	// ErrTwin says that a live broker with the same id is registered.
	ErrTwin = errors.New("another broker with this id is alive")
	// ErrMismatch says that a data directory belongs to another broker or cluster.
	ErrMismatch = errors.New("data directory belongs to another broker or cluster")
)

// writeTimeout cuts off a client that takes nothing of its answer for so long.
const writeTimeout = 60 * time.Second

// bind opens the listeners; connections wait in the system's queue until serve.
func (b *Broker) bind() error {
	v := b.static.Values()
	opts := server.Options{
		Logger:              b.log,
		Registerer:          b.reg,
		MaxRequestBytes:     v.Int("socket.request.max.bytes"),
		MaxFrameBytes:       v.Long("queued.max.request.bytes"),
		RequestBytesMax:     api.RequestBytesMax,
		MaxConnections:      v.Int("max.connections"),
		MaxConnectionsPerIP: v.Int("max.connections.per.ip"),
		IdleTimeout:         v.Millis("connections.max.idle.ms"),
		WriteTimeout:        writeTimeout,
	}
	// A small buffer keeps the work of sending in the broker: from a large one it is the kernel that sends, in the
	// time slice of a client on the same machine, and bytes wait until they have left the processor's caches.
	opts.SendBufferBytes = v.Int("socket.send.buffer.bytes")
	if _, set := b.static.Explicit("socket.receive.buffer.bytes"); set {
		opts.ReceiveBufferBytes = v.Int("socket.receive.buffer.bytes")
	}
	b.srv = server.New(opts)
	bound := make(map[string]int, len(b.static.Listeners))
	for _, l := range b.static.Listeners {
		addr, err := b.srv.Listen(l.Name, l.Addr())
		if err != nil {
			return err
		}
		bound[l.Name] = addr.(*net.TCPAddr).Port
	}
	for _, a := range b.static.Advertised {
		if a.Port == 0 {
			a.Port = bound[a.Name]
		}
		b.endpoints = append(b.endpoints, cluster.Endpoint{Listener: a.Name, Protocol: a.Protocol, Host: a.Host, Port: int32(a.Port)})
	}
	close(b.bound)
	var err error
	b.metrics, err = newMetricsServer(b)
	return err
}

// connect opens the ZooKeeper session, makes the persistent nodes and learns who this broker is.
func (b *Broker) connect(ctx context.Context) error {
	v := b.static.Values()
	timeout := v.Millis("zookeeper.connection.timeout.ms")
	if timeout == 0 {
		timeout = v.Millis("zookeeper.session.timeout.ms")
	}
	zk, err := b.dialZooKeeper(ctx, timeout)
	if err != nil {
		return fmt.Errorf("zookeeper.connect=%s: %w within %v: %w", b.static.ZooKeeperConnect, ErrUnreachable, timeout, err)
	}
	b.zk = zk
	ops := zkutil.Any(zk)
	if err := ops.EnsurePaths(ctx, znode.PersistentPaths()); err != nil {
		return err
	}
	if b.clusterID, err = clusterID(ctx, ops); err != nil {
		return err
	}
	return b.learnID(ctx, ops)
}

// dialRetry is the pause between two attempts to reach ZooKeeper at the start.
const dialRetry = 250 * time.Millisecond

// dialZooKeeper opens the session. Until the timeout it tries again while nobody answers: broker and ensemble
// are often started together. What answers but is no ZooKeeper will not become one.
func (b *Broker) dialZooKeeper(ctx context.Context, timeout time.Duration) (zkutil.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last error
	for {
		zk, err := zkutil.Connect(ctx, zkutil.Config{
			Connect:        b.static.ZooKeeperConnect,
			CreateChroot:   true,
			SessionTimeout: b.static.Values().Millis("zookeeper.session.timeout.ms"),
			Dialer:         b.opts.ZooKeeperDialer,
			Logger:         b.log,
		})
		switch {
		case err == nil:
			return zk, nil
		case !errors.Is(err, zkutil.ErrUnreachable) || errors.Is(err, zkutil.ErrNotZooKeeper):
			return nil, err
		case last == nil:
			b.log.Warn("ZooKeeper does not answer yet", obs.Err(err))
			last = err
		case ctx.Err() == nil: // the last one may only say that time was up
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, last
		case <-time.After(dialRetry):
		}
	}
}

// clusterID reads /cluster/id, or is the first to write it.
func clusterID(ctx context.Context, ops zkutil.Ops) (string, error) {
	for {
		data, _, err := ops.Get(ctx, znode.ClusterIDPath)
		if err == nil {
			return znode.DecodeClusterID(data)
		}
		if !errors.Is(err, zkop.ErrNoNode) {
			return "", err
		}
		if err := ops.EnsurePath(ctx, znode.ClusterPath); err != nil {
			return "", err
		}
		var raw [16]byte
		_, _ = rand.Read(raw[:])
		id := base64.RawURLEncoding.EncodeToString(raw[:])
		_, err = ops.Create(ctx, znode.ClusterIDPath, znode.EncodeClusterID(id), zkop.Persistent)
		if err != nil && !errors.Is(err, zkop.ErrNodeExists) && !errors.Is(err, zkop.ErrOutcomeUnknown) {
			return "", err
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}

// learnID checks the data directories against broker id and cluster id, and generates an id when there is none.
func (b *Broker) learnID(ctx context.Context, ops zkutil.Ops) error {
	stored := cluster.BrokerID(-1)
	for _, dir := range b.static.LogDirs {
		meta, err := readMeta(dir)
		if err != nil {
			return err
		}
		if id, ok := meta["cluster.id"]; ok && id != b.clusterID {
			return fmt.Errorf("%w: %s has cluster.id=%s, ZooKeeper %s has %s; nothing was changed",
				ErrMismatch, filepath.Join(dir, metaFile), id, b.static.ZooKeeperConnect, b.clusterID)
		}
		text, ok := meta["broker.id"]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return fmt.Errorf("%s: broker.id=%q is not an integer", filepath.Join(dir, metaFile), text)
		}
		id := cluster.BrokerID(n)
		if b.id >= 0 && id != b.id {
			return fmt.Errorf("%w: %s has broker.id=%d, the configuration has %d; nothing was changed",
				ErrMismatch, filepath.Join(dir, metaFile), id, b.id)
		}
		if stored >= 0 && id != stored {
			return fmt.Errorf("%w: log directories have broker ids %d and %d; nothing was changed", ErrMismatch, stored, id)
		}
		stored = id
	}
	if b.id < 0 {
		b.id = stored
	}
	if b.id < 0 {
		if !b.static.Values().Bool("broker.id.generation.enable") {
			return errors.New("broker.id is -1 and broker.id.generation.enable is false")
		}
		// The version of this node is a counter that no two brokers see at the same value.
		stat, err := ops.Set(ctx, znode.BrokerSequenceIDPath, nil, zkop.AnyVersion)
		if err != nil {
			return fmt.Errorf("generate a broker id: %w", err)
		}
		b.id = cluster.BrokerID(b.static.Values().Int("reserved.broker.max.id")) + cluster.BrokerID(stat.Version)
	}
	b.log = b.opts.Logger.With(obs.KeyBroker, b.id)
	return nil
}

// metaFile is the mark of a log directory.
const metaFile = "meta.properties"

func readMeta(dir string) (map[string]string, error) {
	props, err := config.ParseFile(filepath.Join(dir, metaFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return config.Merge(props), nil
}

// open refuses a live twin, loads the dynamic configuration and opens the log directories.
func (b *Broker) open(ctx context.Context) error {
	if err := b.refuseTwin(ctx); err != nil {
		return err
	}
	b.dynamic = config.NewDynamic(b.static, b.id, b.zk, b.log)
	if err := b.dynamic.Load(ctx); err != nil {
		return fmt.Errorf("load dynamic configuration: %w", err)
	}
	for _, dir := range b.static.LogDirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.log.Error("log directory cannot be made", obs.KeyLogDir, dir, obs.Err(err))
		}
	}
	clean := stoppedClean(b.static.LogDirs)
	v := b.static.Values()
	start := time.Now()
	store, err := storage.OpenManager(b.opts.FS, b.static.LogDirs, storage.ManagerOptions{
		BrokerID:               b.id,
		ClusterID:              b.clusterID,
		BrokerEpoch:            b.brokerEpoch,
		Config:                 b.dynamic.TopicConfig,
		RecoveryThreads:        v.Int("num.recovery.threads.per.data.dir"),
		ProducerIDExpiration:   v.Millis("producer.id.expiration.ms"),
		RetentionCheckInterval: v.Millis("log.retention.check.interval.ms"),
		Logger:                 b.log,
	})
	if err != nil {
		return fmt.Errorf("open log directories: %w", err)
	}
	b.store = store
	b.learnDataEpoch(ctx, clean)
	b.log.Info("log directories opened", obs.KeyCount, len(store.Logs()), obs.KeyDuration, time.Since(start))
	return nil
}
