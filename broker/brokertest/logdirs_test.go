package brokertest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/broker/vfs"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// inDir returns the partitions that a broker has in a directory, and what is wrong with that directory.
func inDir(t *testing.T, adm *kadm.Client, id int32, topic, dir string) (parts []int32, err error) {
	t.Helper()
	all, aerr := adm.DescribeAllLogDirs(deadline(t), nil)
	if aerr != nil {
		t.Fatal(aerr)
	}
	all[id].Each(func(d kadm.DescribedLogDir) {
		if d.Dir != dir {
			return
		}
		err = d.Err
		for p := range d.Topics[topic] {
			parts = append(parts, p)
		}
	})
	slices.Sort(parts)
	return parts, err
}

// TestDirectoryFails: a disk of one of three brokers dies under load. Its replicas leave leadership and ISR, those in
// the broker's other directory stay, nothing acknowledged is lost, and with a new disk's content they come back.
func TestDirectoryFails(t *testing.T) {
	disks := map[cluster.BrokerID]*vfs.Breakable{}
	c := StartOn(t, 3, func(id cluster.BrokerID) vfs.FS {
		if disks[id] == nil {
			disks[id] = &vfs.Breakable{FS: vfs.OS{}}
		}
		return disks[id]
	}, "log.dirs=%d/a,%d/b", "auto.leader.rebalance.enable=false")
	const partitions = 8
	c.CreateTopic("disk", partitions, 3, "min.insync.replicas=2")
	adm := kadm.NewClient(c.Client())
	bad, good := c.Dir(1)+"/a", c.Dir(1)+"/b"
	lost, err := inDir(t, adm, 1, "disk", bad)
	kept, _ := inDir(t, adm, 1, "disk", good)
	if err != nil || len(lost) == 0 || len(lost)+len(kept) != partitions {
		t.Fatalf("%v in %s, %v in %s: %v", lost, bad, kept, good, err)
	}
	stop := flow(t, c, "disk")
	leads := func(p int32) bool { return c.Leader("disk", p) == 1 }
	before := slices.DeleteFunc(slices.Clone(kept), func(p int32) bool { return !leads(p) })
	disks[1].Break(bad, nil)
	state := func(p int32) (leader cluster.BrokerID, inSync bool) {
		s, _ := c.Broker(2).Snapshot().Partition(cluster.TopicPartition{Topic: "disk", Partition: p})
		return s.Leader, slices.Contains(s.ISR, int32(1))
	}
	await(t, "other brokers lead what was in the directory, without the lost replicas", func() bool {
		for _, p := range lost {
			if leader, in := state(p); leader == 1 || leader < 0 || in {
				return false
			}
		}
		return true
	})
	for _, p := range kept {
		if _, in := state(p); !in {
			t.Errorf("partition %d left the ISR though its directory is in order", p)
		}
	}
	for _, p := range before {
		if leader, _ := state(p); leader != 1 {
			t.Errorf("partition %d is led by %d, its directory is in order", p, leader)
		}
	}
	if _, err := inDir(t, adm, 1, "disk", bad); err == nil {
		t.Error("the directory is described as being in order")
	}
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	await(t, "the controller has taken the notification", func() bool {
		r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Children, Path: znode.LogDirEventNotificationPath})[0]
		return r.Err == nil && len(r.Children) == 0
	})
	acked := stop()
	if count(acked) == 0 {
		t.Error("nothing was acknowledged")
	}
	disks[1].Mend(bad)
	c.Stop(1)
	c.Restart(1)
	await(t, "all replicas are in sync again", func() bool {
		for p := range int32(partitions) {
			if _, in := state(p); !in {
				return false
			}
		}
		return true
	})
	readBack(t, c, "disk", acked)
}

// readBack reads the topic and looks for what was acknowledged.
func readBack(t *testing.T, c *Cluster, topic string, acked map[int32]map[int64]string) {
	t.Helper()
	cl := c.Client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	left := count(acked)
	for left > 0 {
		f := cl.PollFetches(deadline(t))
		if err := f.Err(); err != nil {
			t.Fatalf("%d records not read: %v", left, err)
		}
		f.EachRecord(func(r *kgo.Record) {
			if want, ok := acked[r.Partition][r.Offset]; ok {
				left--
				if want != string(r.Value) {
					t.Errorf("%s-%d at %d is %q, not %q", topic, r.Partition, r.Offset, r.Value, want)
				}
			}
		})
	}
}

// TestReassignmentThrottled: a new replica of a throttled topic gets no more than the bound while it is out of sync,
// though nothing else is in its way, and is in sync soon after the bound is taken away, without a restart.
func TestReassignmentThrottled(t *testing.T) {
	c := Start(t, 2, "auto.leader.rebalance.enable=false")
	c.CreateTopic("slow", 1, 1)
	adm := kadm.NewClient(c.Client())
	cl := c.Client(kgo.ProducerBatchCompression(kgo.NoCompression()))
	for i := range 40 {
		r := &kgo.Record{Topic: "slow", Value: slices.Repeat([]byte{byte(i)}, 100_000)}
		if err := cl.ProduceSync(deadline(t), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	const total, bound = 4_000_000, 1000
	set := func(key, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: kadm.SetConfig, Name: key, Value: &value}
	}
	alter := func(ops ...kadm.AlterConfig) {
		t.Helper()
		if _, err := adm.AlterBrokerConfigs(deadline(t), ops, 1, 2); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := adm.AlterTopicConfigs(deadline(t), []kadm.AlterConfig{set("leader.replication.throttled.replicas", "*"), set("follower.replication.throttled.replicas", "*")}, "slow"); err != nil {
		t.Fatal(err)
	}
	alter(set("leader.replication.throttled.rate", fmt.Sprint(bound)), set("follower.replication.throttled.rate", fmt.Sprint(bound)))
	tp := cluster.TopicPartition{Topic: "slow"}
	leader := c.Leader("slow", 0)
	other := 3 - leader
	throttled := func(id cluster.BrokerID) bool {
		r, err := adm.DescribeBrokerConfigs(deadline(t), int32(id))
		if err != nil {
			return false
		}
		for _, kv := range r[0].Configs {
			if kv.Key == "leader.replication.throttled.rate" {
				return kv.MaybeValue() == fmt.Sprint(bound)
			}
		}
		return false
	}
	await(t, "both brokers know the bound", func() bool { return throttled(1) && throttled(2) })
	if err := reassign(deadline(t), adm, "slow", 0, []int32{int32(leader), int32(other)}); err != nil {
		t.Fatal(err)
	}
	size := func() (n int64) {
		all, err := adm.DescribeAllLogDirs(deadline(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		all[int32(other)].EachPartition(func(p kadm.DescribedLogDirPartition) { n = max(n, p.Size) })
		return n
	}
	await(t, "the first batches are there", func() bool { return size() > 0 })
	// The bound admits one fetch of a megabyte, and nothing more for a quarter of an hour.
	if n := size(); n > total/2 {
		t.Errorf("%d of %d bytes came at once, at %d bytes per second", n, total, bound)
	}
	if p, _ := c.Broker(leader).Snapshot().Partition(tp); len(p.ISR) != 1 {
		t.Errorf("ISR %v", p.ISR)
	}
	alter(set("leader.replication.throttled.rate", fmt.Sprint(int64(math.MaxInt64))), set("follower.replication.throttled.rate", fmt.Sprint(int64(math.MaxInt64))))
	awaitReplicas(t, c, adm, "slow", 0, []int32{int32(leader), int32(other)})
}
