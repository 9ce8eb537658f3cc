//go:build peers

package admin_test

import (
	"context"
	"os"
	"testing"
	"time"

	"kctl/admin"
	"kctl/admin/plan"
)

// peer opens the Apache Kafka cluster named by KCTL_PEER_BOOTSTRAP and KCTL_PEER_ZOOKEEPER.
func peer(t *testing.T, bootstrap, zookeeper bool) *admin.Client {
	t.Helper()
	cfg := admin.Config{Timeout: 10 * time.Second}
	var err error
	if bootstrap {
		if cfg.Bootstrap, err = admin.ParseBootstrap(os.Getenv("KCTL_PEER_BOOTSTRAP")); err != nil {
			t.Fatalf("KCTL_PEER_BOOTSTRAP: %v", err)
		}
	}
	if zookeeper {
		if cfg.ZooKeeper, err = admin.ParseZooKeeperAddress(os.Getenv("KCTL_PEER_ZOOKEEPER")); err != nil {
			t.Fatalf("KCTL_PEER_ZOOKEEPER: %v", err)
		}
	}
	c, err := admin.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestPeerReads reads everything from a real Apache Kafka cluster, over each combination of sources.
func TestPeerReads(t *testing.T) {
	c := peer(t, true, false)
	name := "kctl.peer-" + time.Now().Format("150405.000")
	ctx := context.WithoutCancel(t.Context())
	top, visible, err := c.CreateTopic(ctx, plan.NewTopic{Name: name, Partitions: 3, ReplicationFactor: 3}, false)
	if err != nil || !visible || len(top.Partitions) != 3 {
		t.Fatalf("create: %v visible %v partitions %d", err, visible, len(top.Partitions))
	}
	t.Cleanup(func() {
		if errs, err := c.DeleteTopics(ctx, []string{name}); err != nil || errs[name] != nil {
			t.Errorf("delete: %v %v", err, errs[name])
		}
	})
	p, err := c.NewProducer(ctx, admin.ProduceOptions{Topic: name, Acks: -1, Partition: 0})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := p.Produce(nil, []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := p.Close(ctx); n != 100 || err != nil {
		t.Fatalf("produced %d: %v", n, err)
	}
	for _, src := range []struct{ b, z bool }{{true, false}, {false, true}, {true, true}} {
		readPeer(t, peer(t, src.b, src.z), name)
	}
}

func readPeer(t *testing.T, c *admin.Client, topic string) {
	t.Helper()
	ctx := t.Context()
	target := []plan.Target{{Topic: topic}}
	rows, problems, err := c.ReplicaLag(ctx, target)
	if err != nil || len(problems) > 0 || len(rows) != 9 {
		t.Fatalf("lag: %d rows, %v, %v", len(rows), problems, err)
	}
	for _, r := range rows {
		if r.Err != "" || r.HighWatermark < 0 || r.LeaderEpoch < 0 || r.LogStartOffset != 0 || r.Partition == 0 && r.LogEndOffset != 100 {
			t.Errorf("replica %+v", r)
		}
	}
	ts, problems, err := c.Transitions(ctx, admin.TransitionOptions{Targets: target, All: true})
	if err != nil || len(problems) > 0 || len(ts) != 3 {
		t.Fatalf("transitions: %v, %v, %v", ts, problems, err)
	}
	for _, tr := range ts {
		if tr.State != "done" {
			t.Errorf("transition %+v", tr)
		}
	}
	nodes, _, err := c.LeaderAndISR(ctx, target)
	if err != nil || len(nodes) != 3 || len(nodes[0].ISR) != 3 || c.HasZooKeeper() && nodes[0].ZKVersion < 0 {
		t.Fatalf("leader-and-isr: %+v, %v", nodes, err)
	}
	findings, s, err := c.Health(ctx, 0)
	if err != nil || len(s.Problems) > 0 {
		t.Fatalf("health: %v, %v", err, s.Problems)
	}
	for _, f := range findings {
		if f.Severity != "info" {
			t.Errorf("finding %+v", f)
		}
	}
}
