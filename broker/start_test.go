package broker_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/broker"
	"kctl/broker/brokertest"
	"kctl/broker/config"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// patience bounds every wait for what must happen. Only a test that fails waits so long.
const patience = 2 * time.Minute

// startZooKeeper runs an embedded server for the test.
func startZooKeeper(t *testing.T) *zkserver.Server {
	t.Helper()
	zk, err := zkserver.Start(context.Background(), zkserver.Config{TickTime: 100 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	return zk
}

// settings makes a configuration of a broker with its data in dir.
func settings(t *testing.T, zookeeper, dir string, set ...string) *config.Broker {
	t.Helper()
	props := map[string]string{
		"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": dir, "zookeeper.connect": zookeeper,
		"zookeeper.session.timeout.ms": "20000",
	}
	for _, s := range set {
		p, err := config.ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		props[p.Key] = p.Value
	}
	c, warnings, err := config.Load(props)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	return c
}

// running starts a broker, waits until it is ready and returns it with a function that stops it.
func running(t *testing.T, c *config.Broker) (b *broker.Broker, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b = broker.New(c, broker.Options{Logger: slog.New(slog.DiscardHandler)})
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = stop() })
	select {
	case <-b.Ready():
	case err := <-done:
		t.Fatalf("broker ended: %v", err)
	case <-time.After(patience):
		t.Fatal("broker is not ready")
	}
	return b, stop
}

// failing runs a broker that must not start and returns its error.
func failing(t *testing.T, c *config.Broker) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := broker.New(c, broker.Options{}).Run(ctx)
	if err == nil || ctx.Err() != nil {
		t.Fatalf("the broker ended with %v, want an error of its own", err)
	}
	return err
}

// files lists a folder's files with their contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantMentions(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not mention %q", err, w)
		}
	}
}

func TestPortInUseTouchesNoData(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := filepath.Join(t.TempDir(), "data")
	err = failing(t, settings(t, "127.0.0.1:1", dir, "listeners=PLAINTEXT://"+taken.Addr().String()))
	wantMentions(t, err, "listener PLAINTEXT cannot bind", taken.Addr().String(), "in use")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
}

func TestDeadZooKeeper(t *testing.T) {
	// Nobody listens here, and nobody answers there.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, addr := range []string{"127.0.0.1:1", silent.Addr().String()} {
		dir := filepath.Join(t.TempDir(), "data")
		err := failing(t, settings(t, addr, dir, "zookeeper.connection.timeout.ms=500"))
		if !errors.Is(err, broker.ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", addr, err)
		}
		wantMentions(t, err, addr, "500ms")
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the data directory was touched: %v", err)
		}
	}
}

func TestForeignDataDirectoryIsLeftAlone(t *testing.T) {
	zk := startZooKeeper(t)
	dir := t.TempDir()
	_, stop := running(t, settings(t, zk.Addr(), dir))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	if len(before) == 0 {
		t.Fatal("the broker left no files")
	}
	other := startZooKeeper(t)
	_, stopOther := running(t, settings(t, other.Addr(), t.TempDir()))
	if err := stopOther(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]*config.Broker{
		"another broker id":  settings(t, zk.Addr(), dir, "broker.id=2"),
		"another cluster id": settings(t, other.Addr(), dir),
	}
	for name, c := range cases {
		err := failing(t, c)
		if !errors.Is(err, broker.ErrMismatch) {
			t.Errorf("%s: %v, want ErrMismatch", name, err)
		}
		wantMentions(t, err, "meta.properties", "nothing was changed")
		if diff := cmp.Diff(before, files(t, dir)); diff != "" {
			t.Errorf("%s: the directory changed (-before +after)\n%s", name, diff)
		}
	}
}

func TestLiveTwinIsRefused(t *testing.T) {
	zk := startZooKeeper(t)
	first, _ := running(t, settings(t, zk.Addr(), t.TempDir()))
	dir := filepath.Join(t.TempDir(), "data")
	err := failing(t, settings(t, zk.Addr(), dir))
	if !errors.Is(err, broker.ErrTwin) {
		t.Fatalf("%v, want ErrTwin", err)
	}
	wantMentions(t, err, first.Addr("PLAINTEXT"))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory was touched: %v", err)
	}
}

// TestOwnFormerRegistrationIsReplaced starts a broker whose node is still held by a session of its former life
// that ZooKeeper keeps for a minute: it must not wait for that.
func TestOwnFormerRegistrationIsReplaced(t *testing.T) {
	zk := startZooKeeper(t)
	port := brokertest.HoldPort(t)
	former, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: zk.Addr(), SessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close()
	ops := zkutil.Any(former)
	if err := ops.EnsurePaths(t.Context(), znode.PersistentPaths()); err != nil {
		t.Fatal(err)
	}
	e, err := znode.ParseEndpoint("PLAINTEXT://127.0.0.1:" + port)
	if err != nil {
		t.Fatal(err)
	}
	e.Protocol = "PLAINTEXT"
	reg := znode.Registration{ID: 1, JMXPort: -1, Version: 5}
	reg.Endpoints = append(reg.Endpoints, e)
	if _, err := ops.Multi(t.Context(), znode.RegisterBroker(reg).Ops...); err != nil {
		t.Fatal(err)
	}
	_, stat, err := ops.Get(t.Context(), znode.BrokerPath(1))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	running(t, settings(t, zk.Addr(), t.TempDir(), "listeners=PLAINTEXT://127.0.0.1:"+port))
	t.Logf("ready after %v", time.Since(begin))
	_, now, err := ops.Get(t.Context(), znode.BrokerPath(1))
	if err != nil || now.EphemeralOwner == stat.EphemeralOwner || now.Czxid <= stat.Czxid {
		t.Errorf("the registration is still the old one: %+v, %v", now, err)
	}
}

// TestGeneratedBrokerID starts twice without an id: the second time it is read from meta.properties.
func TestGeneratedBrokerID(t *testing.T) {
	zk := startZooKeeper(t)
	dir := t.TempDir()
	b, stop := running(t, settings(t, zk.Addr(), dir, "broker.id=-1"))
	id := b.ID()
	if id <= 1000 {
		t.Errorf("generated id %d, want one above reserved.broker.max.id", id)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	again, _ := running(t, settings(t, zk.Addr(), dir, "broker.id=-1"))
	if again.ID() != id {
		t.Errorf("id %d after a restart, want %d from meta.properties", again.ID(), id)
	}
}

// TestPersistentPathsInKafkasOrder compares the tree that a first broker leaves with Kafka's.
func TestPersistentPathsInKafkasOrder(t *testing.T) {
	zk := startZooKeeper(t)
	running(t, settings(t, zk.Addr()+"/chroot/kafka", t.TempDir()))
	c, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: zk.Addr() + "/chroot/kafka"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var last int64
	for _, p := range append(znode.PersistentPaths(), znode.ClusterPath, znode.ClusterIDPath) {
		resp := c.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: p})[0]
		if resp.Err != nil {
			t.Errorf("%s: %v", p, resp.Err)
			continue
		}
		if resp.Stat.Czxid <= last {
			t.Errorf("%s was created too early", p)
		}
		last = resp.Stat.Czxid
	}
}

func TestMetricsListener(t *testing.T) {
	zk := startZooKeeper(t)
	b, _ := running(t, settings(t, zk.Addr(), t.TempDir(), "metrics.listener=127.0.0.1:0"))
	get := func(path string) (int, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.MetricsAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, body.String()
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/debug/pprof/": 404} {
		if code, _ := get(path); code != want {
			t.Errorf("%s: status %d, want %d", path, code, want)
		}
	}
	_, text := get("/metrics")
	for _, name := range []string{"kafka_server_socket_server_connections", "kafka_network_requests_total", "kafka_server_metadata_brokers 1"} {
		if !strings.Contains(text, name) {
			t.Errorf("/metrics has no %s", name)
		}
	}
}

// TestListenersAnswerWithTheirOwnAddresses connects by two listeners: each must name the addresses of its own
// kind, in Metadata and FindCoordinator, and brokers must find each other by the internal one.
func TestListenersAnswerWithTheirOwnAddresses(t *testing.T) {
	zk := startZooKeeper(t)
	start := func(id string) *broker.Broker {
		b, _ := running(t, settings(t, zk.Addr(), t.TempDir(), "broker.id="+id,
			"listeners=INTERNAL://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
			"listener.security.protocol.map=INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT", "inter.broker.listener.name=INTERNAL",
			"offsets.topic.replication.factor=2", "offsets.topic.num.partitions=2", "group.initial.rebalance.delay.ms=0"))
		return b
	}
	brokers := []*broker.Broker{start("1"), start("2")}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, b := range brokers {
		if err := broker.AwaitMembers(ctx, b, 2); err != nil {
			t.Fatal(err)
		}
	}
	for _, listener := range []string{"INTERNAL", "EXTERNAL"} {
		want := map[string]bool{brokers[0].Addr(listener): true, brokers[1].Addr(listener): true}
		cl, err := kgo.NewClient(kgo.SeedBrokers(brokers[0].Addr(listener)), kgo.ConsumeTopics("t-"+listener), kgo.ConsumerGroup("g-"+listener),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		adm := kadm.NewClient(cl)
		if resp, err := adm.CreateTopic(ctx, 2, 2, nil, "t-"+listener); err != nil || resp.Err != nil {
			t.Fatalf("%s: create: %v %v", listener, err, resp.Err)
		}
		meta, err := adm.Metadata(ctx)
		if err != nil || len(meta.Brokers) != 2 {
			t.Fatalf("%s: %v, brokers %v", listener, err, meta.Brokers)
		}
		for _, b := range meta.Brokers {
			if addr := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))); !want[addr] {
				t.Errorf("%s: broker %d is told to be at %s, want one of %v", listener, b.NodeID, addr, want)
			}
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t-" + listener, Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatalf("%s: produce: %v", listener, err)
		}
		if fs := cl.PollFetches(ctx); fs.Err() != nil || fs.NumRecords() != 1 {
			t.Errorf("%s: %d records by the group, %v", listener, fs.NumRecords(), fs.Err())
		}
	}
}
