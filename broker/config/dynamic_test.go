package config

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// world is an embedded ZooKeeper with Kafka's persistent nodes and a client.
func world(t *testing.T) zkutil.Client {
	t.Helper()
	srv, err := zkserver.Start(context.Background(), zkserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: srv.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	if err := zkutil.Any(zk).EnsurePaths(t.Context(), znode.PersistentPaths()); err != nil {
		t.Fatal(err)
	}
	return zk
}

func put(t *testing.T, zk zkutil.Client, path, data string) {
	t.Helper()
	if _, err := zkutil.Any(zk).Create(t.Context(), path, []byte(data), zkop.Persistent); err != nil {
		t.Fatal(err)
	}
}

func notify(t *testing.T, zk zkutil.Client, data string) {
	t.Helper()
	if _, err := zkutil.Any(zk).Create(t.Context(), znode.ConfigChangePrefix, []byte(data), zkop.PersistentSequential); err != nil {
		t.Fatal(err)
	}
}

// follow runs d and returns the changes that it applied.
func follow(t *testing.T, d *Dynamic) <-chan Change {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes := make(chan Change, 100)
	var wg sync.WaitGroup
	wg.Go(func() { _ = d.Run(ctx, func(c Change) { changes <- c }) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return changes
}

func next(t *testing.T, changes <-chan Change) Change {
	t.Helper()
	select {
	case c := <-changes:
		return c
	case <-time.After(2 * time.Minute):
		t.Fatal("no change was applied")
		return Change{}
	}
}

func newDynamic(t *testing.T, zk zkutil.Client) *Dynamic {
	t.Helper()
	d := NewDynamic(load(t), 1, zk, slog.New(slog.DiscardHandler))
	if err := d.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDynamicFollowsNotifications(t *testing.T) {
	zk := world(t)
	ops := zkutil.Any(zk)
	put(t, zk, "/config/topics/before", `{"version":1,"config":{"retention.ms":"11"}}`)
	put(t, zk, "/config/topics/broken", `{"version":`)
	put(t, zk, "/config/brokers/1", `{"version":1,"config":{"log.segment.bytes":"1000","no.such.key":"1","num.partitions":"x"}}`)
	notify(t, zk, `{"version":2,"entity_path":"topics/before"}`)
	d := newDynamic(t, zk)
	if got := d.TopicConfig("before"); got.RetentionMs != 11 || got.SegmentBytes != 1000 {
		t.Errorf("loaded %+v", got)
	}
	if got := d.TopicConfig("broken").RetentionMs; got != 604800000 {
		t.Errorf("a broken node gives retention.ms %d, want the default", got)
	}
	changes := follow(t, d)
	// Both versions of the notification, a broken one between them, and those that concern others.
	put(t, zk, "/config/topics/new", `{"version":1,"config":{"retention.ms":"22"}}`)
	notify(t, zk, `{"version":1,"entity_type":"topics","entity_name":"new"}`)
	if c := next(t, changes); c.Topic != "new" || d.TopicConfig("new").RetentionMs != 22 {
		t.Errorf("%+v, retention.ms %d", c, d.TopicConfig("new").RetentionMs)
	}
	notify(t, zk, `nonsense`)
	notify(t, zk, `{"version":2,"entity_path":"users/alice"}`)
	notify(t, zk, `{"version":2,"entity_path":"brokers/2"}`)
	if _, err := ops.Set(t.Context(), "/config/topics/new", []byte(`{"version":1,"config":{}}`), zkop.AnyVersion); err != nil {
		t.Fatal(err)
	}
	notify(t, zk, `{"version":2,"entity_path":"topics/new"}`)
	if c := next(t, changes); c.Topic != "new" || d.TopicConfig("new").RetentionMs != 604800000 {
		t.Errorf("%+v, retention.ms %d", c, d.TopicConfig("new").RetentionMs)
	}
	put(t, zk, "/config/brokers/<default>", `{"version":1,"config":{"log.retention.ms":"33"}}`)
	notify(t, zk, `{"version":2,"entity_path":"brokers/<default>"}`)
	if c := next(t, changes); c.Topic != "" || d.TopicConfig("new").RetentionMs != 33 || d.TopicConfig("before").RetentionMs != 11 {
		t.Errorf("%+v, retention.ms %d and %d", c, d.TopicConfig("new").RetentionMs, d.TopicConfig("before").RetentionMs)
	}
}

// TestConcurrentAlterationsAreAllKept lets two brokers change different keys of one topic at the same time.
func TestConcurrentAlterationsAreAllKept(t *testing.T) {
	zk := world(t)
	put(t, zk, "/config/topics/t", `{"version":1,"config":{"flush.ms":"1"},"from_elsewhere":[1,2]}`)
	a, b := newDynamic(t, zk), newDynamic(t, zk)
	set := func(d *Dynamic, name string) error {
		for i := range 20 {
			v := fmt.Sprint(1000 + i)
			err := d.AlterTopic(t.Context(), "t", false, func(current map[string]string) (map[string]string, error) {
				return ApplyOps(current, []Op{{OpSet, name, &v}}, TopicKey)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	errs := make(chan error, 2)
	go func() { errs <- set(a, "retention.ms") }()
	go func() { errs <- set(b, "segment.bytes") }()
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	data, _, err := zkutil.Any(zk).Get(t.Context(), "/config/topics/t")
	if err != nil {
		t.Fatal(err)
	}
	node, err := znode.DecodeConfig(znode.TopicConfig, "t", data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"flush.ms": "1", "retention.ms": "1019", "segment.bytes": "1019"}
	if diff := cmp.Diff(want, node.Values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(node.Unknown) != 1 {
		t.Errorf("the unknown field was lost: %s", data)
	}
	// Each of the 40 left a notification, as Kafka does.
	names, _, err := zkutil.Any(zk).Children(t.Context(), znode.ConfigChangesPath)
	if err != nil || len(names) != 40 {
		t.Errorf("%d notifications, %v; want 40", len(names), err)
	}
}

func TestOldNotificationsAreRemoved(t *testing.T) {
	zk := world(t)
	d := newDynamic(t, zk)
	d.now = func() time.Time { return time.Now().Add(notificationLife + time.Minute) }
	put(t, zk, "/config/topics/t", `{"version":1,"config":{"retention.ms":"5"}}`)
	changes := follow(t, d)
	notify(t, zk, `{"version":2,"entity_path":"topics/t"}`)
	next(t, changes)
	// The removal fires the watch again; when it has been dealt with, nothing is left.
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		names, _, err := zkutil.Any(zk).Children(t.Context(), znode.ConfigChangesPath)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("old notifications were kept: %v", names)
		case <-tick.C:
		}
	}
}

func TestValidateOnlyWritesNothing(t *testing.T) {
	zk := world(t)
	d := newDynamic(t, zk)
	v := "7"
	change := func(current map[string]string) (map[string]string, error) {
		return ApplyOps(current, []Op{{OpSet, "retention.ms", &v}}, TopicKey)
	}
	if err := d.AlterTopic(t.Context(), "t", true, change); err != nil {
		t.Fatal(err)
	}
	if _, exists, err := zkutil.Any(zk).Exists(t.Context(), "/config/topics/t"); exists || err != nil {
		t.Errorf("a node was written: %v", err)
	}
	if d.TopicConfig("t").RetentionMs == 7 {
		t.Error("a value that was only validated is in use")
	}
}

// cutClient is a client whose requests can be made to fail, as when ZooKeeper cannot be reached.
type cutClient struct {
	zkutil.Client
	cut  atomic.Bool
	feed chan zkutil.Notice
}

func (c *cutClient) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	if !c.cut.Load() {
		return c.Client.Do(ctx, session, reqs...)
	}
	out := make([]zkop.Response, len(reqs))
	for i := range out {
		out[i].Err = zkop.ErrClosed
	}
	return out
}

func (c *cutClient) Subscribe() (<-chan zkutil.Notice, func()) { return c.feed, func() {} }

// TestUnreadTopicsAreReadLater loses ZooKeeper when a topic's first replica comes: its configuration is read when
// the connection is back, though nothing notifies of it.
func TestUnreadTopicsAreReadLater(t *testing.T) {
	zk := &cutClient{Client: world(t), feed: make(chan zkutil.Notice)}
	put(t, zk.Client, "/config/topics/t", `{"version":1,"config":{"retention.ms":"5"}}`)
	d := NewDynamic(load(t), 1, zk, slog.New(slog.DiscardHandler))
	zk.cut.Store(true)
	if err := d.Refresh(t.Context(), "t"); err == nil {
		t.Fatal("the read did not fail")
	}
	changes := follow(t, d)
	connected := zkutil.Notice{Session: zkutil.Session{Epoch: 1, State: zkutil.Connected}}
	zk.feed <- connected // still cut
	zk.cut.Store(false)
	zk.feed <- connected
	if c := next(t, changes); c.Topic != "t" || d.TopicConfig("t").RetentionMs != 5 {
		t.Errorf("%+v, retention.ms %d", c, d.TopicConfig("t").RetentionMs)
	}
}
