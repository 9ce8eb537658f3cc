package brokertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// deadline bounds the work of one test.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// produce writes n records synchronously in groups and returns their values by partition and offset.
func produce(t *testing.T, cl *kgo.Client, topic, prefix string, n int) map[int32]map[int64]string {
	t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "%s-%d", prefix, i)}
	}
	if err := cl.ProduceSync(deadline(t), recs...).FirstErr(); err != nil {
		t.Fatalf("produce: %v", err)
	}
	out := make(map[int32]map[int64]string)
	for _, r := range recs {
		if out[r.Partition] == nil {
			out[r.Partition] = make(map[int64]string)
		}
		out[r.Partition][r.Offset] = string(r.Value)
	}
	return out
}

// consume reads until n records are there and checks that offsets of a partition rise by one.
func consume(t *testing.T, cl *kgo.Client, n int) map[int32]map[int64]string {
	t.Helper()
	ctx := deadline(t)
	out := make(map[int32]map[int64]string)
	next := make(map[int32]int64)
	for got := 0; got < n; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("poll after %d of %d records: %v", got, n, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if r.Offset != next[r.Partition] {
				t.Errorf("partition %d: offset %d follows %d", r.Partition, r.Offset, next[r.Partition]-1)
			}
			next[r.Partition] = r.Offset + 1
			if out[r.Partition] == nil {
				out[r.Partition] = make(map[int64]string)
			}
			out[r.Partition][r.Offset] = string(r.Value)
			got++
		})
	}
	return out
}

func wantSame(t *testing.T, want, got map[int32]map[int64]string) {
	t.Helper()
	for p, recs := range want {
		for o, v := range recs {
			if got[p][o] != v {
				t.Fatalf("partition %d offset %d: got %q, want %q", p, o, got[p][o], v)
			}
		}
	}
}

func TestProduceAndConsume(t *testing.T) {
	c := Start(t, 1)
	c.CreateTopic("events", 3, 1)
	want := produce(t, c.Client(), "events", "v", 1000)
	got := consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 1000)
	wantSame(t, want, got)
}

func TestReplicatedAndLeaderKilled(t *testing.T) {
	c := Start(t, 3)
	c.CreateTopic("events", 6, 3, "min.insync.replicas=2")
	producer := c.Client(kgo.RequiredAcks(kgo.AllISRAcks()))
	first := produce(t, producer, "events", "first", 600)
	c.Kill(c.Leader("events", 0))
	second := produce(t, producer, "events", "second", 600)
	got := consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 1200)
	wantSame(t, first, got)
	wantSame(t, second, got)
}

func TestControllerKilledAndRestarted(t *testing.T) {
	c := Start(t, 3)
	c.CreateTopic("events", 3, 3)
	producer := c.Client()
	want := produce(t, producer, "events", "a", 300)
	old := c.Controller()
	c.Kill(old)
	second := produce(t, producer, "events", "b", 300)
	c.Restart(old)
	got := consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 600)
	wantSame(t, want, got)
	wantSame(t, second, got)
}

func TestControlledShutdownMovesLeaders(t *testing.T) {
	c := Start(t, 3)
	c.CreateTopic("events", 6, 3)
	producer := c.Client()
	want := produce(t, producer, "events", "a", 300)
	id := c.Leader("events", 0)
	c.Stop(id)
	// ZooKeeper has the new leaders before the broker goes; the news of them may reach the others later.
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	for p := range int32(6) {
		tp := cluster.TopicPartition{Topic: "events", Partition: p}
		data, _, err := zkutil.Any(zk).Get(t.Context(), znode.StatePath(tp))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := znode.DecodeState(tp, data); err != nil || s.Leader == id || s.Leader == cluster.NoLeader {
			t.Errorf("%s: leader %d after broker %d was stopped, %v", tp, s.Leader, id, err)
		}
	}
	await(t, "every broker knows the new leaders", func() bool {
		return everyPartition(c, "events", func(leader cluster.BrokerID, _, _ []int32) bool { return leader != id })
	})
	second := produce(t, producer, "events", "b", 300)
	got := consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 600)
	wantSame(t, want, got)
	wantSame(t, second, got)
}

func TestGroup(t *testing.T) {
	c := Start(t, 3)
	c.CreateTopic("events", 4, 3)
	want := produce(t, c.Client(), "events", "a", 400)
	ctx := deadline(t)
	group := func() *kgo.Client {
		return c.Client(kgo.ConsumeTopics("events"), kgo.ConsumerGroup("g"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	}
	one := group()
	wantSame(t, want, consume(t, one, 400))
	if err := one.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatalf("commit: %v", err)
	}
	// A second member takes over part of the partitions, and nothing is read twice.
	two := group()
	produce(t, c.Client(), "events", "b", 400)
	seen := 0
	for seen < 400 {
		for _, cl := range []*kgo.Client{one, two} {
			short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			fs := cl.PollFetches(short)
			cancel()
			fs.EachRecord(func(r *kgo.Record) {
				if r.Offset < int64(len(want[r.Partition])) {
					t.Errorf("partition %d offset %d was committed and read again", r.Partition, r.Offset)
				}
				seen++
			})
			if err := cl.CommitUncommittedOffsets(ctx); err != nil {
				t.Logf("commit during a rebalance: %v", err)
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("read %d of 400 records: %v", seen, ctx.Err())
		}
	}
	lags, err := kadm.NewClient(c.Client()).Lag(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if g := lags["g"]; g.Error() != nil || g.Coordinator.NodeID < 1 {
		t.Errorf("group %+v: %v", g, g.Error())
	}
}

func TestTopicLife(t *testing.T) {
	c := Start(t, 3)
	adm := kadm.NewClient(c.Client())
	ctx := deadline(t)
	c.CreateTopic("life", 2, 3)
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, "life"); !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("create twice: %v", err)
	}
	if resp, err := adm.UpdatePartitions(ctx, 5, "life"); err != nil || resp.Error() != nil {
		t.Fatalf("add partitions: %v %v", err, resp.Error())
	}
	c.AwaitLeaders("life", 5)
	v := "1000"
	if resp, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &v}}, "life"); err != nil || resp[0].Err != nil {
		t.Fatalf("alter: %v %v", err, resp)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, "life")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, k := range configs[0].Configs {
		found = found || k.Key == "retention.ms" && k.MaybeValue() == "1000" && k.Source == 1
	}
	if !found {
		t.Errorf("retention.ms was not changed: %+v", configs[0].Configs)
	}
	for round := range 3 {
		if resp, err := adm.DeleteTopics(ctx, "life"); err != nil || resp.Error() != nil {
			t.Fatalf("round %d: delete: %v %v", round, err, resp.Error())
		}
		c.CreateTopic("life", 3, 3)
		want := produce(t, c.Client(), "life", fmt.Sprint("round", round), 30)
		got := consume(t, c.Client(kgo.ConsumeTopics("life"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 30)
		wantSame(t, want, got)
	}
}
