package brokertest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/broker/groupshell"
	"kctl/zkutil/cluster"
)

// describeUntil asks for the group until ok says that it is as wanted.
func describeUntil(t *testing.T, ctx context.Context, adm *kadm.Client, group, what string, ok func(kadm.DescribedGroup) bool) kadm.DescribedGroup {
	t.Helper()
	var last kadm.DescribedGroup
	var lastErr error
	for ctx.Err() == nil {
		ds, err := adm.DescribeGroups(ctx, group)
		if err != nil {
			lastErr = err
			continue
		}
		if last = ds[group]; last.Err == nil && ok(last) {
			return last
		}
	}
	t.Fatalf("%s: group is %q with %d members, %v, %v", what, last.State, len(last.Members), last.Err, lastErr)
	return last
}

// TestCoordinatorKilled: the broker that coordinates a group dies. Another one takes over from the log:
// offsets and members are the same, and the members go on in the same generation, without a rebalance.
func TestCoordinatorKilled(t *testing.T) {
	c := Start(t, 3)
	c.CreateTopic("events", 4, 3)
	want := produce(t, c.Client(), "events", "a", 400)
	ctx := deadline(t)
	assigned := make(chan int, 100)
	member := func(instance string) *kgo.Client {
		return c.Client(kgo.ConsumeTopics("events"), kgo.ConsumerGroup("g"), kgo.InstanceID(instance), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { assigned <- len(got["events"]) }))
	}
	one := member("one")
	wantSame(t, want, consume(t, one, 400))
	if err := one.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatalf("commit: %v", err)
	}
	adm := kadm.NewClient(c.Client())
	before := describeUntil(t, ctx, adm, "g", "before", func(g kadm.DescribedGroup) bool { return g.State == "Stable" })
	for len(assigned) > 0 {
		<-assigned
	}

	c.Kill(cluster.BrokerID(before.Coordinator.NodeID))
	tp := cluster.TopicPartition{Topic: groupshell.OffsetsTopic, Partition: cluster.JavaStringHash("g") & 0x7fffffff % 4}
	for _, id := range c.IDs() { // every broker must know: each may be asked for the coordinator
		for {
			p, ok := c.Broker(id).Snapshot().Partition(tp)
			if ok && p.Leader != cluster.BrokerID(before.Coordinator.NodeID) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("broker %d knows no other leader of %v", id, tp)
			}
			runtime.Gosched()
		}
	}
	adm = kadm.NewClient(c.Client()) // one that knows the old coordinator would go on dialling it
	after := describeUntil(t, ctx, adm, "g", "after", func(g kadm.DescribedGroup) bool {
		return g.State == "Stable" && g.Coordinator.NodeID != before.Coordinator.NodeID
	})
	if len(after.Members) != 1 || after.Members[0].MemberID != before.Members[0].MemberID || after.Members[0].ClientHost != before.Members[0].ClientHost {
		t.Errorf("members before %+v, after %+v", before.Members, after.Members)
	}
	offsets, err := adm.FetchOffsets(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	offsets.Each(func(o kadm.OffsetResponse) { sum += o.At })
	if sum != 400 {
		t.Errorf("committed offsets add up to %d, not 400", sum)
	}

	// The member goes on: it reads and commits what is new, and was not assigned anything anew.
	produce(t, c.Client(), "events", "b", 100)
	for got := 0; got < 100; {
		fs := one.PollFetches(ctx)
		got += fs.NumRecords()
		if ctx.Err() != nil {
			t.Fatalf("read %d of 100 records", got)
		}
	}
	if err := one.CommitUncommittedOffsets(ctx); err != nil {
		t.Errorf("commit to the new coordinator: %v", err)
	}
	if n := len(assigned); n > 0 {
		t.Errorf("%d assignments after the takeover: the group was rebalanced", n)
	}
}

// TestGroupAdmin: listing, lag, removal of a static member, of offsets and of the group.
func TestGroupAdmin(t *testing.T) {
	c := Start(t, 1)
	c.CreateTopic("events", 1, 1)
	c.CreateTopic("others", 1, 1)
	produce(t, c.Client(), "events", "a", 10)
	ctx := deadline(t)
	cl := c.Client(kgo.ConsumeTopics("events"), kgo.ConsumerGroup("g"), kgo.InstanceID("i"), kgo.DisableAutoCommit(), kgo.SessionTimeout(time.Minute),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	consume(t, cl, 10)
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(c.Client())
	var other kadm.Offsets
	other.Add(kadm.Offset{Topic: "others", Partition: 0, At: 3, LeaderEpoch: -1})
	if r, err := adm.CommitOffsets(ctx, "simple", other); err != nil || r.Error() != nil {
		t.Fatal(err, r.Error())
	}
	stable, err := adm.ListGroups(ctx, "Stable")
	if err != nil || len(stable) != 1 || stable["g"].State != "Stable" {
		t.Errorf("stable groups: %+v, %v", stable, err)
	}
	all, err := adm.ListGroups(ctx)
	if err != nil || len(all) != 2 || all["simple"].State != "Empty" {
		t.Errorf("groups: %+v, %v", all, err)
	}
	if r, err := adm.DeleteOffsets(ctx, "g", kadm.TopicsSet{"events": {0: {}}}); err == nil && r["events"][0] == nil {
		t.Error("offsets of a topic that the group reads were deleted")
	}
	if r, err := adm.DeleteGroups(ctx, "g"); err == nil && r["g"].Err == nil {
		t.Error("a group with a member was deleted")
	}

	cl.Close() // a static member does not leave by itself
	left, err := adm.LeaveGroup(ctx, kadm.LeaveGroup("g").InstanceIDs("i").Reason("test"))
	if err != nil || left["i"].Err != nil {
		t.Fatalf("remove the static member: %+v, %v", left, err)
	}
	describeUntil(t, ctx, adm, "g", "after the removal", func(g kadm.DescribedGroup) bool { return g.State == "Empty" })
	if r, err := adm.DeleteOffsets(ctx, "g", kadm.TopicsSet{"events": {0: {}}}); err != nil || r["events"][0] != nil {
		t.Errorf("delete an offset: %v, %v", r, err)
	}
	if o, err := adm.FetchOffsets(ctx, "g"); err != nil || len(o["events"]) != 0 {
		t.Errorf("offsets left: %+v, %v", o, err)
	}
	for _, g := range []string{"g", "simple"} {
		if r, err := adm.DeleteGroups(ctx, g); err != nil || r[g].Err != nil {
			t.Errorf("delete %s: %+v, %v", g, r, err)
		}
	}
	if all, err := adm.ListGroups(ctx); err != nil || len(all) != 0 {
		t.Errorf("groups left: %+v, %v", all, err)
	}
}
