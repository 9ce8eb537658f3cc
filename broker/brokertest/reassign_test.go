package brokertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// reassign asks for one partition's new replicas; nil cancels.
func reassign(ctx context.Context, adm *kadm.Client, topic string, partition int32, replicas []int32) error {
	var req kadm.AlterPartitionAssignmentsReq
	req.Assign(topic, partition, replicas)
	resp, err := adm.AlterPartitionAssignments(ctx, req)
	return errors.Join(err, resp.Error())
}

// awaitReplicas waits until every running broker knows exactly these replicas, all in sync, one of them leading, and no
// other broker has a log of the partition.
func awaitReplicas(t *testing.T, c *Cluster, adm *kadm.Client, topic string, partition int32, want []int32) {
	t.Helper()
	tp := cluster.TopicPartition{Topic: topic, Partition: partition}
	await(t, fmt.Sprintf("%v is on %v", tp, want), func() bool {
		for _, id := range c.IDs() {
			p, ok := c.Broker(id).Snapshot().Partition(tp)
			isr := slices.Sorted(slices.Values(p.ISR))
			if !ok || !slices.Equal(p.Replicas, want) || !slices.Equal(isr, slices.Sorted(slices.Values(want))) || !slices.Contains(want, int32(p.Leader)) {
				return false
			}
		}
		logs, err := adm.DescribeAllLogDirs(deadline(t), nil)
		if err != nil {
			return false
		}
		var on []int32
		for _, dirs := range logs {
			dirs.EachPartition(func(p kadm.DescribedLogDirPartition) {
				if p.Topic == topic && p.Partition == partition {
					on = append(on, p.Broker)
				}
			})
		}
		slices.Sort(on)
		return slices.Equal(on, slices.Sorted(slices.Values(want)))
	})
}

// flow produces to all partitions of a topic until stop is called, which returns what was acknowledged.
func flow(t *testing.T, c *Cluster, topic string) (stop func() map[int32]map[int64]string) {
	ctx, cancel := context.WithCancel(deadline(t))
	cl := c.Client(kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.DefaultProduceTopic(topic))
	acked := map[int32]map[int64]string{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			r := &kgo.Record{Value: fmt.Appendf(nil, "flow-%d", i)}
			// Not bound to ctx: a record that is under way when the flow stops must be known to have arrived or not.
			if err := cl.ProduceSync(context.WithoutCancel(ctx), r).FirstErr(); err != nil {
				t.Errorf("produce %d: %v", i, err)
				return
			}
			if acked[r.Partition] == nil {
				acked[r.Partition] = map[int64]string{}
			}
			acked[r.Partition][r.Offset] = string(r.Value)
		}
	})
	t.Cleanup(cancel)
	return func() map[int32]map[int64]string {
		cancel()
		wg.Wait()
		return acked
	}
}

func count(m map[int32]map[int64]string) (n int) {
	for p := range maps.Values(m) {
		n += len(p)
	}
	return n
}

// TestReassignment moves a partition while records flow, cancels another move that cannot end because its new broker
// is dead, and compares everything that was acknowledged.
func TestReassignment(t *testing.T) {
	c := Start(t, 4)
	ctx := deadline(t)
	c.CreateTopic("moved", 2, 2)
	adm := kadm.NewClient(c.Client())
	for p := range int32(2) {
		if err := reassign(ctx, adm, "moved", p, []int32{1, 2}); err != nil {
			t.Fatal(err)
		}
		awaitReplicas(t, c, adm, "moved", p, []int32{1, 2})
	}
	before := produce(t, c.Client(), "moved", "before", 400)
	stop := flow(t, c, "moved")
	if err := reassign(ctx, adm, "moved", 0, []int32{3, 1}); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, c, adm, "moved", 0, []int32{3, 1})
	// Another order and the leader's move to it; then away from the leader altogether.
	for _, to := range [][]int32{{1, 3}, {4, 2}} {
		if err := reassign(ctx, adm, "moved", 0, to); err != nil {
			t.Fatal(err)
		}
		awaitReplicas(t, c, adm, "moved", 0, to)
	}
	if err := reassign(ctx, adm, "moved", 0, []int32{3, 1}); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, c, adm, "moved", 0, []int32{3, 1})
	testCancel(t, c, adm)
	after := stop()
	t.Logf("%d records flowed", count(after))
	for p, recs := range before {
		maps.Copy(after[p], recs)
	}
	wantSame(t, after, consume(t, c.Client(kgo.ConsumeTopics("moved"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), count(after)))
}

// testCancel begins to move partition 1 to a broker that is dead, which only the old znode allows, and takes that back.
func testCancel(t *testing.T, c *Cluster, adm *kadm.Client) {
	t.Helper()
	ctx := deadline(t)
	if err := reassign(ctx, adm, "moved", 1, nil); !errors.Is(err, kerr.NoReassignmentInProgress) {
		t.Errorf("cancel without a reassignment: %v", err)
	}
	if err := reassign(ctx, adm, "moved", 1, []int32{1, 9}); !errors.Is(err, kerr.InvalidReplicaAssignment) {
		t.Errorf("to a broker that does not exist: %v", err)
	}
	zk, err := zkutil.Connect(ctx, zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	list := znode.EncodeReassignments([]znode.Reassignment{{Partition: cluster.TopicPartition{Topic: "moved", Partition: 1}, Replicas: []cluster.BrokerID{9, 2}}})
	if err := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: znode.ReassignPartitionsPath, Data: list})[0].Err; err != nil {
		t.Fatal(err)
	}
	underWay := func() []kadm.ListPartitionReassignmentsResponse {
		var which kadm.TopicsSet
		which.Add("moved", 0, 1)
		list, err := adm.ListPartitionReassignments(ctx, which)
		if err != nil {
			t.Fatal(err)
		}
		return list.Sorted()
	}
	await(t, "the move is under way", func() bool {
		all := underWay()
		return len(all) == 1 && slices.Equal(all[0].AddingReplicas, []int32{9}) && slices.Equal(all[0].RemovingReplicas, []int32{1})
	})
	if err := reassign(ctx, adm, "moved", 1, nil); err != nil {
		t.Fatal(err)
	}
	awaitReplicas(t, c, adm, "moved", 1, []int32{1, 2})
	if all := underWay(); len(all) != 0 {
		t.Errorf("still under way: %+v", all)
	}
	if got := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Exists, Path: znode.ReassignPartitionsPath})[0]; got.Err == nil {
		t.Errorf("%s is still there", znode.ReassignPartitionsPath)
	}
}
