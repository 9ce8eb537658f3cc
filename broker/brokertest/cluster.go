package brokertest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/broker"
	"kctl/broker/config"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkserver"
)

// startTimeout bounds how long a cluster may take to be ready.
const startTimeout = 2 * time.Minute

// Cluster is a running cluster.
type Cluster struct {
	t     testing.TB
	zk    *zkserver.Server
	dir   string
	props map[string]string
	nodes map[cluster.BrokerID]*node
	ports map[cluster.BrokerID]string // held for each broker, whether it runs or not
	log   *slog.Logger
	fs    func(cluster.BrokerID) vfs.FS // nil: the disk
}

// node is one broker and the life of its Run.
type node struct {
	b    *broker.Broker
	gate *gate
	stop context.CancelFunc
	done chan error
}

// Start runs n brokers with ids 1..n and waits until all of them serve. props are key=value pairs of
// server.properties for every broker; %d in a value is the broker's own folder. With KBROKER_TEST_LOG set, the
// brokers log to stderr.
func Start(t testing.TB, n int, props ...string) *Cluster {
	t.Helper()
	return StartOn(t, n, nil, props...)
}

// StartOn is Start with the file systems of the brokers' log directories, which are asked for at each start of a
// broker; nil is the disk.
func StartOn(t testing.TB, n int, fs func(cluster.BrokerID) vfs.FS, props ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), nodes: make(map[cluster.BrokerID]*node), ports: make(map[cluster.BrokerID]string), props: map[string]string{
		"offsets.topic.replication.factor": strconv.Itoa(min(3, n)),
		"offsets.topic.num.partitions":     "4",
		"default.replication.factor":       strconv.Itoa(min(3, n)),
		"group.initial.rebalance.delay.ms": "0",
		"zookeeper.session.timeout.ms":     "6000",
		"zookeeper.connection.timeout.ms":  strconv.FormatInt(startTimeout.Milliseconds(), 10), // not the session's: some are short
	}}
	for _, p := range props {
		kv, err := config.ParseSet(p)
		if err != nil {
			t.Fatal(err)
		}
		c.props[kv.Key] = kv.Value
	}
	var out io.Writer = io.Discard
	if os.Getenv("KBROKER_TEST_LOG") != "" {
		out = os.Stderr
	}
	c.log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.fs = fs
	zk, err := zkserver.Start(context.Background(), zkserver.Config{DataDir: filepath.Join(c.dir, "zookeeper"), TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute, Logger: c.log})
	if err != nil {
		t.Fatal(err)
	}
	c.zk = zk
	t.Cleanup(c.close)
	for id := 1; id <= n; id++ {
		c.ports[cluster.BrokerID(id)] = HoldPort(t)
		c.launch(cluster.BrokerID(id))
	}
	c.AwaitBrokers(n)
	return c
}

// launch starts a broker and returns when its listener is bound.
func (c *Cluster) launch(id cluster.BrokerID) {
	c.t.Helper()
	props := map[string]string{
		"broker.id":         strconv.Itoa(int(id)),
		"listeners":         "PLAINTEXT://127.0.0.1:" + c.ports[id],
		"log.dirs":          c.Dir(id),
		"zookeeper.connect": c.zk.Addr(),
	}
	for k, v := range c.props {
		props[k] = strings.ReplaceAll(v, "%d", c.Dir(id))
	}
	static, warnings, err := config.Load(props)
	if err != nil || len(warnings) > 0 {
		c.t.Fatalf("configuration of broker %d: %v, warnings %v", id, err, warnings)
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &gate{}
	opts := broker.Options{Logger: c.log, ZooKeeperDialer: g}
	if c.fs != nil {
		opts.FS = c.fs(id)
	}
	n := &node{b: broker.New(static, opts), gate: g, stop: stop, done: make(chan error, 1)}
	go func() { n.done <- n.b.Run(ctx) }()
	c.nodes[id] = n
	select {
	case err := <-n.done:
		n.done <- err
		c.t.Fatalf("broker %d: %v", id, err)
	case <-n.b.Bound():
	}
}

// AwaitBrokers waits until every running broker is ready and knows n live brokers.
func (c *Cluster) AwaitBrokers(n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for id, node := range c.nodes {
		waited := make(chan error, 1)
		go func() { waited <- broker.AwaitMembers(ctx, node.b, n) }()
		select {
		case err := <-node.done:
			node.done <- err
			c.t.Fatalf("broker %d ended: %v", id, err)
		case err := <-waited:
			if err != nil {
				c.t.Fatalf("broker %d does not see %d brokers: %v", id, n, err)
			}
		}
	}
}

// Dir is a broker's folder: its log directory, unless log.dirs says otherwise.
func (c *Cluster) Dir(id cluster.BrokerID) string {
	return filepath.Join(c.dir, "broker-"+strconv.Itoa(int(id)))
}

// Broker returns a running broker.
func (c *Cluster) Broker(id cluster.BrokerID) *broker.Broker { return c.nodes[id].b }

// IDs returns the ids of the running brokers.
func (c *Cluster) IDs() []cluster.BrokerID {
	out := make([]cluster.BrokerID, 0, len(c.nodes))
	for id := range c.nodes {
		out = append(out, id)
	}
	return out
}

// ZooKeeper returns the address of the embedded server.
func (c *Cluster) ZooKeeper() string { return c.zk.Addr() }

// Addrs returns the bootstrap addresses of the running brokers.
func (c *Cluster) Addrs() []string {
	out := make([]string, 0, len(c.nodes))
	for _, n := range c.nodes {
		out = append(out, n.b.Addr("PLAINTEXT"))
	}
	return out
}

// Client returns a client of the cluster, closed with the test.
func (c *Cluster) Client(opts ...kgo.Opt) *kgo.Client {
	c.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Addrs()...), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryTimeout(startTimeout)}, opts...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(cl.Close)
	return cl
}

// CreateTopic makes a topic and waits until every running broker knows its leaders.
func (c *Cluster) CreateTopic(name string, partitions int32, replicas int16, configs ...string) {
	c.t.Helper()
	kv := make(map[string]*string, len(configs))
	for _, s := range configs {
		p, err := config.ParseSet(s)
		if err != nil {
			c.t.Fatal(err)
		}
		kv[p.Key] = &p.Value
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	resp, err := kadm.NewClient(c.Client()).CreateTopic(ctx, partitions, replicas, kv, name)
	if err = errors.Join(err, resp.Err); err != nil {
		c.t.Fatalf("create topic %s: %v", name, err)
	}
	c.AwaitLeaders(name, int(partitions))
}

// AwaitLeaders waits until every running broker knows live leaders of n partitions of the topic.
func (c *Cluster) AwaitLeaders(topic string, n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for id, node := range c.nodes {
		if err := node.b.AwaitLeaders(ctx, topic, n); err != nil {
			c.t.Fatalf("broker %d does not know leaders of %d partitions of %s: %v", id, n, topic, err)
		}
	}
}

// Leader returns the leader of a partition as some running broker knows it.
func (c *Cluster) Leader(topic string, partition int32) cluster.BrokerID {
	for _, n := range c.nodes {
		if p, ok := n.b.Snapshot().Partition(cluster.TopicPartition{Topic: topic, Partition: partition}); ok {
			return p.Leader
		}
	}
	return cluster.NoLeader
}

// Controller returns the id of the active controller, or NoLeader.
func (c *Cluster) Controller() cluster.BrokerID {
	for id, n := range c.nodes {
		if n.b.IsController() {
			return id
		}
	}
	return cluster.NoLeader
}

// Kill ends a broker without a controlled shutdown.
func (c *Cluster) Kill(id cluster.BrokerID) {
	c.t.Helper()
	n := c.nodes[id]
	n.b.Kill()
	if err := <-n.done; !errors.Is(err, broker.ErrKilled) {
		c.t.Fatalf("killed broker %d: %v", id, err)
	}
	n.stop()
	delete(c.nodes, id)
}

// Stop ends a broker in order.
func (c *Cluster) Stop(id cluster.BrokerID) {
	c.t.Helper()
	n := c.nodes[id]
	n.stop()
	if err := <-n.done; err != nil {
		c.t.Fatalf("stopped broker %d: %v", id, err)
	}
	delete(c.nodes, id)
}

// Launch starts a broker that was killed or stopped, on its old port, and returns before it is ready.
func (c *Cluster) Launch(id cluster.BrokerID) {
	c.t.Helper()
	c.launch(id)
}

// Restart is Launch and waits until all running brokers see each other.
func (c *Cluster) Restart(id cluster.BrokerID) {
	c.t.Helper()
	c.Launch(id)
	c.AwaitBrokers(len(c.nodes))
}

// close stops what still runs.
func (c *Cluster) close() {
	for _, n := range c.nodes {
		n.stop()
	}
	for id, n := range c.nodes {
		select {
		case err := <-n.done:
			if err != nil {
				c.t.Errorf("broker %d: %v", id, err)
			}
		case <-time.After(startTimeout):
			c.t.Errorf("broker %d does not stop", id)
		}
	}
	if err := c.zk.Close(); err != nil {
		c.t.Errorf("zookeeper: %v", err)
	}
}
