package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/plan"
	"kctl/broker/brokertest"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

func openAdmin(t *testing.T, c *brokertest.Cluster, zookeeper bool) *admin.Client {
	t.Helper()
	cfg := admin.Config{Timeout: time.Minute}
	var err error
	if cfg.Bootstrap, err = admin.ParseBootstrap(strings.Join(c.Addrs(), ",")); err != nil {
		t.Fatal(err)
	}
	if zookeeper {
		if cfg.ZooKeeper, err = admin.ParseZooKeeperAddress(c.ZooKeeper()); err != nil {
			t.Fatal(err)
		}
	}
	a, err := admin.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// TestLeaderAndISRSetIsSafe asks for random leaders and ISRs, by the controller and past it: whatever is asked, the stored
// decision stays safe, its epoch never falls, every replica follows it, and the topic keeps its id.
func TestLeaderAndISRSetIsSafe(t *testing.T) {
	c := brokertest.Start(t, 3, "auto.leader.rebalance.enable=false")
	c.CreateTopic("orders", 1, 3)
	c.AwaitLeaders("orders", 1)
	a := openAdmin(t, c, true)
	addUnknownField(t, c, cluster.TopicPartition{Topic: "orders"})
	target := []plan.Target{{Topic: "orders", Partitions: []int32{0}}}
	facts := func() (plan.LeaderAndISRFacts, cluster.TopicID) {
		f, s, err := a.LeaderAndISRFacts(t.Context(), target)
		if err != nil || len(f) != 1 {
			t.Fatalf("%d facts, %v", len(f), err)
		}
		return f[0], s.Topics[0].ID
	}
	_, topicID := facts()
	routes := []admin.LeaderAndISRRoute{admin.RouteController, admin.RouteBreakGlass}
	granted := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := plan.LeaderAndISRWish{
			Leader: cluster.BrokerID(rapid.SampledFrom([]int32{-2, 1, 2, 3, 4}).Draw(rt, "leader")), IfVersion: cluster.AnyVersion,
			Unclean: rapid.Bool().Draw(rt, "unclean"),
		}
		if rapid.Bool().Draw(rt, "has isr") {
			w.ISR = cluster.IDsFromInt32(rapid.SliceOfN(rapid.Int32Range(1, 4), 0, 3).Draw(rt, "isr"))
		}
		before, _ := facts()
		step := admin.PlanLeaderAndISR(before, w, rapid.SampledFrom(routes).Draw(rt, "route"))
		if step.Err == nil && step.Plan.Change {
			route := rapid.SampledFrom(routes).Draw(rt, "route")
			rs, err := a.ApplyLeaderAndISR(t.Context(), []admin.LeaderAndISRStep{step}, route, time.Minute)
			switch {
			case err != nil:
				rt.Fatal(err)
			case rs[0].Err != nil && !strings.Contains(rs[0].Err.Error(), "changed meanwhile"): // the leader may write the ISR
				rt.Fatal(rs[0].Err)
			case rs[0].Err == nil && !rs[0].Confirmed:
				rt.Fatalf("not followed by %v", rs[0].WaitingFor)
			case rs[0].Err == nil:
				granted++
			}
		}
		after, id := facts()
		s := after.State
		switch {
		case id != topicID:
			rt.Fatalf("the topic's id became %v", id)
		case s.LeaderEpoch < before.State.LeaderEpoch, s.ZKVersion < before.State.ZKVersion:
			rt.Fatalf("epoch or version fell: %+v after %+v", s, before.State)
		case !slices.Equal(s.UnknownFields, []string{"note"}):
			rt.Fatalf("fields of the znode that nobody knows: %q", s.UnknownFields)
		case len(s.ISR) == 0, !slices.Contains(s.ISR, s.Leader), !slices.Contains(s.Replicas, s.Leader):
			rt.Fatalf("unsafe: %+v", s)
		case !w.Unclean && s.Leader != before.State.Leader && !slices.Contains(before.State.ISR, s.Leader):
			rt.Fatalf("leader from outside the ISR: %+v after %+v", s, before.State)
		}
	})
	if granted == 0 {
		t.Error("no wish was granted")
	}
	awaitFullISR(t, facts)
}

// addUnknownField puts a field into a state node that no version of Kafka knows; the bytes are otherwise kept.
func addUnknownField(t *testing.T, c *brokertest.Cluster, tp cluster.TopicPartition) {
	t.Helper()
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: znode.StatePath(tp)})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	data := append(bytes.TrimSuffix(r.Data, []byte("}")), `,"note":"kept"}`...)
	r = zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Set, Path: znode.StatePath(tp), Data: data, Version: r.Stat.Version})[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}

// awaitFullISR: no ISR sticks, so every replica comes back.
func awaitFullISR(t *testing.T, facts func() (plan.LeaderAndISRFacts, cluster.TopicID)) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		f, _ := facts()
		if len(f.State.ISR) == len(f.State.Replicas) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the ISR is stuck at %v", f.State.ISR)
		}
		pause(t)
	}
}

// seenChanges collects what a watch reports.
type seenChanges struct {
	mu   sync.Mutex
	list []check.ISRChange
}

func (s *seenChanges) await(t *testing.T, what string, good func(check.ISRChange) bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		s.mu.Lock()
		ok, text := slices.ContainsFunc(s.list, good), fmt.Sprint(s.list)
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in %s", what, text)
		}
		pause(t)
	}
}

func startWatch(t *testing.T, a *admin.Client) *seenChanges {
	t.Helper()
	seen := &seenChanges{}
	ctx, cancel := context.WithCancel(t.Context())
	armed, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- a.WatchLeaderAndISR(ctx, admin.ISRWatchOptions{
			Every: 50 * time.Millisecond, Armed: func(int) { close(armed) },
			Changed: func(ch check.ISRChange) error {
				seen.mu.Lock()
				defer seen.mu.Unlock()
				seen.list = append(seen.list, ch)
				return nil
			},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
	})
	select {
	case <-armed:
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return seen
}

// TestLeaderAndISRWatch sees creation, an operator's election, a broker's death and return, and deletion, by watches and
// by polling.
func TestLeaderAndISRWatch(t *testing.T) {
	c := brokertest.Start(t, 3, "auto.leader.rebalance.enable=false")
	for name, zookeeper := range map[string]bool{"zookeeper": true, "protocol": false} {
		t.Run(name, func(t *testing.T) {
			a := openAdmin(t, c, zookeeper)
			seen := startWatch(t, a)
			topic := "watched-" + name
			c.CreateTopic(topic, 1, 3)
			is := func(event check.ISREvent, why string) func(check.ISRChange) bool {
				return func(ch check.ISRChange) bool {
					return ch.Topic == topic && ch.Event == event && strings.Contains(ch.Why, why)
				}
			}
			seen.await(t, "creation", is(check.EventCreated, ""))
			c.AwaitLeaders(topic, 1)
			leader := c.Leader(topic, 0)
			next := 1 + leader%3
			ch := admin.NewLeaderAndISRChange(topic, 0)
			ch.Leader = next
			if _, err := openAdmin(t, c, false).SetLeaderAndISR(t.Context(), ch); err != nil {
				t.Fatal(err)
			}
			seen.await(t, "election", is(check.EventElection, ""))
			dies := 1 + next%3
			c.Kill(dies)
			seen.await(t, "shrink", is(check.EventShrink, fmt.Sprintf("%d left the ISR: dead", dies)))
			c.Restart(dies)
			seen.await(t, "growth", is(check.EventGrowth, fmt.Sprintf("%d caught up", dies)))
			if _, err := a.DeleteTopics(t.Context(), []string{topic}); err != nil {
				t.Fatal(err)
			}
			seen.await(t, "deletion", is(check.EventDeleted, ""))
		})
	}
}
