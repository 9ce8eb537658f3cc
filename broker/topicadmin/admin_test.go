package topicadmin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// lossy carries writes out and loses the answers of the first few of each path.
type lossy struct {
	zkutil.Client
	lose map[string]int // answers still to lose, by path
	sent map[string]int // writes that reached ZooKeeper
}

// Do loses answers of writes.
func (l *lossy) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	out := l.Client.Do(ctx, session, reqs...)
	for i, r := range reqs {
		if r.Kind != zkop.Create && r.Kind != zkop.Set {
			continue
		}
		l.sent[r.Path]++
		if l.lose[r.Path] > 0 {
			l.lose[r.Path]--
			out[i] = zkop.Response{Err: zkop.ErrOutcomeUnknown}
		}
	}
	return out
}

func world(t *testing.T) *lossy {
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
	return &lossy{Client: zk, lose: map[string]int{}, sent: map[string]int{}}
}

var oneOnTwo = map[int32][]cluster.BrokerID{0: {2, 1}}

func topicNode(t *testing.T, zk zkutil.Client, name string) znode.Topic {
	t.Helper()
	data, _, err := zkutil.Any(zk).Get(t.Context(), znode.TopicPath(name))
	if err != nil {
		t.Fatal(err)
	}
	topic, err := znode.DecodeTopic(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// TestCreateWritesWhatKafkaWrites compares bytes and order with the capture of Apache Kafka 3.9.1.
func TestCreateWritesWhatKafkaWrites(t *testing.T) {
	zk := world(t)
	a := New(zk)
	id, err := a.Create(t.Context(), "T", map[int32][]cluster.BrokerID{0: {2, 1, 3}, 1: {3, 2, 1}}, map[string]string{"retention.ms": "86400000"})
	if err != nil {
		t.Fatal(err)
	}
	config, cstat, err := zkutil.Any(zk).Get(t.Context(), "/config/topics/T")
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"version":1,"config":{"retention.ms":"86400000"}}`; string(config) != want {
		t.Errorf("configuration %s, want %s", config, want)
	}
	data, tstat, err := zkutil.Any(zk).Get(t.Context(), "/brokers/topics/T")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"partitions":{"0":[2,1,3],"1":[3,2,1]},"topic_id":"` + id.String() + `","adding_replicas":{},"removing_replicas":{},"version":3}`
	if string(data) != want {
		t.Errorf("assignment %s, want %s", data, want)
	}
	if cstat.Czxid >= tstat.Czxid {
		t.Error("the assignment was written before the configuration")
	}
	if names, _, _ := zkutil.Any(zk).Children(t.Context(), znode.ConfigChangesPath); len(names) != 0 {
		t.Error("creation left a configuration notification")
	}
}

func TestLostAnswersOfCreate(t *testing.T) {
	for _, path := range []string{"/config/topics/t", "/brokers/topics/t"} {
		zk := world(t)
		zk.lose[path] = 1
		id, err := New(zk).Create(t.Context(), "t", oneOnTwo, nil)
		if err != nil {
			t.Fatalf("lost answer of %s: %v", path, err)
		}
		if got := topicNode(t, zk, "t").ID; got != id || id.IsZero() {
			t.Errorf("lost answer of %s: id %v, node has %v", path, id, got)
		}
	}
}

func TestCreateTwice(t *testing.T) {
	zk := world(t)
	a := New(zk)
	id, err := a.Create(t.Context(), "t", oneOnTwo, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.CheckNew(t.Context(), "t", nil); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("check: %v", err)
	}
	zk.lose["/brokers/topics/t"] = 1 // even then it is somebody else's topic
	if _, err := a.Create(t.Context(), "t", oneOnTwo, nil); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("create: %v", err)
	}
	if got := topicNode(t, zk, "t").ID; got != id {
		t.Error("the topic was replaced")
	}
}

func TestDeleteAndGone(t *testing.T) {
	zk := world(t)
	a := New(zk)
	if err := a.Delete(t.Context(), "t"); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("unknown topic: %v", err)
	}
	if _, err := a.Create(t.Context(), "t", oneOnTwo, nil); err != nil {
		t.Fatal(err)
	}
	zk.lose["/admin/delete_topics/t"] = 1
	for range 2 {
		if err := a.Delete(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- a.Gone(t.Context(), "t") }()
	if err := zkutil.Any(zk.Client).Delete(t.Context(), "/brokers/topics/t", zkop.AnyVersion); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("Gone does not notice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Create(t.Context(), "u", oneOnTwo, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Gone(ctx, "u"); err == nil {
		t.Error("Gone returned for a topic that is there")
	}
}

func TestAddPartitions(t *testing.T) {
	zk := world(t)
	a := New(zk)
	id, err := a.Create(t.Context(), "t", oneOnTwo, nil)
	if err != nil {
		t.Fatal(err)
	}
	brokers := []cluster.Broker{{ID: 1}, {ID: 2}, {ID: 3}}
	if err := a.AddPartitions(t.Context(), "t", Growth{Total: 3, Brokers: brokers, Dry: true}); err != nil || len(topicNode(t, zk, "t").Partitions) != 1 {
		t.Errorf("dry run: %v, %v", err, topicNode(t, zk, "t").Partitions)
	}
	zk.lose["/brokers/topics/t"] = 1
	if err := a.AddPartitions(t.Context(), "t", Growth{Total: 3, Brokers: brokers}); err != nil {
		t.Fatal(err)
	}
	got := topicNode(t, zk, "t")
	if len(got.Partitions) != 3 || got.ID != id || got.Partitions[0].Replicas[0] != 2 {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]*kerr.Error{"t": kerr.InvalidTopicException, "nope": kerr.UnknownTopicOrPartition} {
		if name == "t" {
			if err := a.Delete(t.Context(), "t"); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.AddPartitions(t.Context(), name, Growth{Total: 9, Brokers: brokers}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
