package metadata

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

func update(epoch int32, brokers []int32, topics ...kmsg.UpdateMetadataRequestTopicState) *kmsg.UpdateMetadataRequest {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.TopicStates = 8, 1, epoch, topics
	for _, id := range brokers {
		b := kmsg.NewUpdateMetadataRequestLiveBroker()
		b.ID = id
		e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
		e.Host, e.Port, e.ListenerName = "h", 9090+id, "PLAINTEXT"
		b.Endpoints = append(b.Endpoints, e)
		req.LiveBrokers = append(req.LiveBrokers, b)
	}
	return req
}

func topicState(name string, id byte, parts ...kmsg.UpdateMetadataRequestTopicPartition) kmsg.UpdateMetadataRequestTopicState {
	t := kmsg.NewUpdateMetadataRequestTopicState()
	t.Topic, t.PartitionStates = name, parts
	t.TopicID[0] = id
	return t
}

func part(index, leader, epoch int32, replicas ...int32) kmsg.UpdateMetadataRequestTopicPartition {
	p := kmsg.NewUpdateMetadataRequestTopicPartition()
	p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = index, leader, epoch, replicas, replicas
	return p
}

func apply(t *testing.T, c *Cache, req *kmsg.UpdateMetadataRequest) {
	t.Helper()
	if err := c.Apply(req); err != nil {
		t.Fatal(err)
	}
}

func TestApply(t *testing.T) {
	c := NewCache()
	apply(t, c, update(3, []int32{2, 1}, topicState("b", 2, part(1, 1, 0, 1, 2), part(0, 2, 0, 2, 1)), topicState("a", 1, part(0, 1, 0, 1))))
	s := c.Snapshot()
	if diff := cmp.Diff([]string{"a", "b"}, s.TopicNames()); diff != "" {
		t.Error(diff)
	}
	if n, ok := s.TopicName(cluster.TopicID{2}); !ok || n != "b" {
		t.Errorf("id 2 is %q", n)
	}
	if p, ok := s.Partition(cluster.TopicPartition{Topic: "b", Partition: 1}); !ok || p.Leader != 1 {
		t.Errorf("b-1: %+v", p)
	}
	// A partial update changes one partition; an older controller changes nothing.
	apply(t, c, update(4, []int32{1, 2}, topicState("b", 2, part(1, 2, 1, 1, 2))))
	if p, _ := c.Snapshot().Partition(cluster.TopicPartition{Topic: "b", Partition: 0}); p == nil || p.Leader != 2 {
		t.Errorf("b-0 was lost: %+v", p)
	}
	if err := c.Apply(update(3, nil)); !errors.Is(err, ErrStaleController) {
		t.Errorf("stale controller: %v", err)
	}
	if p, _ := s.Partition(cluster.TopicPartition{Topic: "b", Partition: 1}); p.Leader != 1 {
		t.Error("an old snapshot changed")
	}
	// Deletion, and a topic made anew under the same name.
	apply(t, c, update(4, []int32{1, 2}, topicState("b", 2, part(0, -2, 2), part(1, -2, 2)), topicState("a", 7, part(2, 1, 0, 1))))
	s = c.Snapshot()
	if _, ok := s.Topic("b"); ok {
		t.Error("b is still there")
	}
	if _, ok := s.TopicName(cluster.TopicID{2}); ok {
		t.Error("b's id is still there")
	}
	if _, ok := s.TopicName(cluster.TopicID{1}); ok {
		t.Error("a's old id is still there")
	}
	if a, _ := s.Topic("a"); len(a.Partitions) != 1 || a.Partitions[0].Index != 2 {
		t.Errorf("a kept partitions of its former life: %+v", a.Partitions)
	}
}

func TestMetadataPartitions(t *testing.T) {
	c := NewCache()
	apply(t, c, update(1, []int32{1, 2}, topicState("t", 1, part(0, 1, 5, 1, 2, 3), part(1, 3, 6, 3, 1), part(2, -1, 7, 3))))
	s := c.Snapshot()
	topic, _ := s.Topic("t")
	parts := s.MetadataPartitions(topic, "PLAINTEXT")
	type view struct {
		Err     int16
		Leader  int32
		Offline []int32
	}
	var got []view
	for _, p := range parts {
		got = append(got, view{p.ErrorCode, p.Leader, p.OfflineReplicas})
	}
	na := kerr.LeaderNotAvailable.Code
	if diff := cmp.Diff([]view{{0, 1, []int32{3}}, {na, -1, []int32{3}}, {na, -1, []int32{3}}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if &parts[0] != &s.MetadataPartitions(topic, "PLAINTEXT")[0] {
		t.Error("the answer was built twice for one snapshot")
	}
	// The same set of brokers keeps what was built; a broker that comes back changes it.
	apply(t, c, update(1, []int32{2, 1}))
	if &parts[0] != &c.Snapshot().MetadataPartitions(topic, "PLAINTEXT")[0] {
		t.Error("an update without news threw away what was built")
	}
	apply(t, c, update(1, []int32{1, 2, 3}))
	if p := c.Snapshot().MetadataPartitions(topic, "PLAINTEXT")[1]; p.Leader != 3 || p.ErrorCode != 0 || len(p.OfflineReplicas) != 0 {
		t.Errorf("after broker 3 came back: %+v", p)
	}
	if p := c.Snapshot().MetadataPartitions(topic, "OTHER")[0]; p.ErrorCode != kerr.ListenerNotFound.Code {
		t.Errorf("unknown listener: %+v", p)
	}
}

func TestWait(t *testing.T) {
	c := NewCache()
	done := make(chan error, 1)
	go func() {
		done <- c.Wait(t.Context(), func(s *Snapshot) bool { return s.IsAlive(2) })
	}()
	apply(t, c, update(1, []int32{1}))
	apply(t, c, update(1, []int32{1, 2}))
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("Wait did not notice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Wait(ctx, func(*Snapshot) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzApply(f *testing.F) {
	for _, v := range []int16{0, 4, 8} {
		req := update(1, []int32{1}, topicState("t", 1, part(0, 1, 0, 1)))
		req.Version = v
		f.Add(v, req.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, version int16, data []byte) {
		if version < 0 || version > 8 {
			return
		}
		req := kmsg.NewPtrUpdateMetadataRequest()
		req.Version = version
		if req.ReadFrom(data) != nil {
			return
		}
		c := NewCache()
		if c.Apply(req) != nil {
			return
		}
		s := c.Snapshot()
		for _, n := range s.TopicNames() {
			topic, ok := s.Topic(n)
			if !ok {
				t.Fatalf("%q is listed but not there", n)
			}
			s.MetadataPartitions(topic, "PLAINTEXT")
			for _, p := range topic.Partitions {
				if got, ok := topic.Partition(p.Index); !ok || got.Index != p.Index {
					t.Fatalf("partition %d of %q cannot be found", p.Index, n)
				}
			}
		}
	})
}

func BenchmarkApplyOneOfThousandTopics(b *testing.B) {
	c := NewCache()
	var topics []kmsg.UpdateMetadataRequestTopicState
	for i := range 1000 {
		st := topicState("topic-"+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), 0)
		for p := range int32(10) {
			st.PartitionStates = append(st.PartitionStates, part(p, 1, 0, 1, 2, 3))
		}
		topics = append(topics, st)
	}
	_ = c.Apply(update(1, []int32{1, 2, 3}, topics...))
	one := topics[:1]
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Apply(update(1, []int32{1, 2, 3}, one...))
	}
}
