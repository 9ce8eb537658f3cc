//go:build peers

package admin_test

import (
	"context"
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// patientPeer has time for a cluster on a busy machine.
func patientPeer(t *testing.T) *admin.Client {
	t.Helper()
	cfg := admin.Config{Timeout: time.Minute}
	var err error
	if cfg.Bootstrap, err = admin.ParseBootstrap(os.Getenv("KCTL_PEER_BOOTSTRAP")); err != nil {
		t.Fatalf("KCTL_PEER_BOOTSTRAP: %v", err)
	}
	if cfg.ZooKeeper, err = admin.ParseZooKeeperAddress(os.Getenv("KCTL_PEER_ZOOKEEPER")); err != nil {
		t.Fatalf("KCTL_PEER_ZOOKEEPER: %v", err)
	}
	c, err := admin.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestPeerLeaderAndISRSetIsSafe asks Apache Kafka in ZooKeeper mode for random leaders and ISRs: what is stored stays safe, its epoch
// never falls, every replica follows, the topic keeps its id, and no ISR sticks.
func TestPeerLeaderAndISRSetIsSafe(t *testing.T) {
	c := patientPeer(t)
	ctx := context.WithoutCancel(t.Context())
	if can, err := c.ControllerCanSetLeaderAndISR(ctx); err != nil || can {
		t.Fatalf("Apache Kafka's controller is taken for ours: %v, %v", can, err)
	}
	if _, err := peer(t, true, false).LeaderAndISRRouteOf(ctx, false); admin.KindOf(err) != admin.BadInput {
		t.Errorf("without ZooKeeper: %v", err)
	}
	route, err := c.LeaderAndISRRouteOf(ctx, false)
	if err != nil || route != admin.RouteZNode {
		t.Fatalf("route %q, %v", route, err)
	}
	name := "kctl.isr-" + time.Now().Format("150405.000")
	if _, visible, err := c.CreateTopic(ctx, plan.NewTopic{Name: name, Partitions: 1, ReplicationFactor: 3}, false); err != nil || !visible {
		t.Fatalf("create: visible %v, %v", visible, err)
	}
	t.Cleanup(func() { _, _ = c.DeleteTopics(ctx, []string{name}) })
	target := []plan.Target{{Topic: name, Partitions: []int32{0}}}
	facts := func() (plan.LeaderAndISRFacts, cluster.TopicID) {
		f, s, err := c.LeaderAndISRFacts(ctx, target)
		if err != nil || len(f) != 1 {
			t.Fatalf("%d facts, %v", len(f), err)
		}
		return f[0], s.Topics[0].ID
	}
	first, topicID := facts()
	if topicID.IsZero() {
		t.Fatal("the topic has no id")
	}
	granted := 0
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("15"); err != nil { // each takes a decision of a real cluster
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
	}
	rapid.Check(t, func(rt *rapid.T) {
		w := plan.LeaderAndISRWish{Leader: cluster.KeepLeader, IfVersion: cluster.AnyVersion, Unclean: rapid.Bool().Draw(rt, "unclean")}
		if i := rapid.IntRange(-1, 3).Draw(rt, "leader"); i >= 0 {
			w.Leader = append(slices.Clone(first.State.Replicas), 99)[i]
		}
		if rapid.Bool().Draw(rt, "has isr") {
			w.ISR = rapid.SliceOfN(rapid.SampledFrom(first.State.Replicas), 0, 3).Draw(rt, "isr")
		}
		before, _ := facts()
		step := admin.PlanLeaderAndISR(before, w, route)
		if step.Err == nil && step.Plan.Change {
			rs, err := c.ApplyLeaderAndISR(ctx, []admin.LeaderAndISRStep{step}, route, 30*time.Second)
			if err != nil {
				rt.Fatal(err)
			}
			if rs[0].Err == nil {
				granted++
			}
			if rs[0].Err == nil && !rs[0].Confirmed {
				rt.Fatalf("not followed by %v", rs[0].WaitingFor)
			}
		}
		after, id := facts()
		s, b := after.State, before.State
		switch {
		case id != topicID:
			rt.Fatalf("the topic's id became %v", id)
		case s.LeaderEpoch < b.LeaderEpoch, s.ZKVersion < b.ZKVersion:
			rt.Fatalf("epoch or version fell: %+v after %+v", s, b)
		case len(s.ISR) == 0, !slices.Contains(s.ISR, s.Leader), !slices.Contains(s.Replicas, s.Leader):
			rt.Fatalf("unsafe: %+v", s)
		case !slices.Equal(s.Replicas, b.Replicas):
			rt.Fatalf("the replicas became %v", s.Replicas)
		case !w.Unclean && s.Leader != b.Leader && !slices.Contains(b.ISR, s.Leader):
			rt.Fatalf("leader from outside the ISR: %+v after %+v", s, b)
		}
	})
	if granted == 0 {
		t.Error("no wish was granted")
	}
	deadline := time.Now().Add(60 * time.Second)
	for f := first; ; f, _ = facts() {
		if len(f.State.ISR) == 3 && f.State.LeaderEpoch > first.State.LeaderEpoch {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the ISR is stuck at %v", f.State.ISR)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
