package replicashell

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/zkutil/cluster"
)

// TestDecisionBehindDeletion: a LeaderAndISR that a broken connection held up until its replica was deleted makes no empty replica
// that leads in an epoch that is over; a topic of the same name and a later decision are served.
func TestDecisionBehindDeletion(t *testing.T) {
	l := newLab(t, 1, nil)
	l.decide(topicT, 1, ids(1), ids(1))
	b := l.brokers[1]
	b.produce(t, topicT, 1, "a", 1)
	id := l.ids["t"]
	late := func(epoch int32, id cluster.TopicID) replica.Code {
		t.Helper()
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.Version, req.ControllerEpoch, req.BrokerEpoch = 5, l.ctl, 101
		s := kmsg.NewLeaderAndISRRequestTopicPartition()
		s.Partition, s.Leader, s.LeaderEpoch, s.ISR, s.Replicas = topicT.Partition, 1, epoch, []int32{1}, []int32{1}
		req.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: "t", TopicID: id, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{s}}}
		resp := b.m.HandleLeaderAndISR(context.Background(), req)
		if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			t.Fatalf("%+v", resp)
		}
		return replica.Code(resp.Topics[0].Partitions[0].ErrorCode)
	}
	stop := kmsg.NewPtrStopReplicaRequest()
	stop.Version, stop.ControllerEpoch, stop.BrokerEpoch = 3, l.ctl, 101
	stop.Topics = []kmsg.StopReplicaRequestTopic{{Topic: "t", PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{{LeaderEpoch: 4, Delete: true}}}}
	if resp := b.m.HandleStopReplica(context.Background(), stop); resp.Partitions[0].ErrorCode != 0 {
		t.Fatalf("%+v", resp)
	}
	for _, epoch := range []int32{0, 3, 4} {
		if code := late(epoch, id); code != replica.CodeStaleControllerEpoch || len(b.m.Partitions()) != 0 {
			t.Errorf("epoch %d: %s, %d partitions", epoch, code, len(b.m.Partitions()))
		}
	}
	if code := late(5, id); code != replica.CodeNone || len(b.m.Partitions()) != 1 { // it is assigned again
		t.Errorf("a later decision: %s", code)
	}
	l.stopAt(1, topicT) // the topic goes
	if code := late(9, id); code != replica.CodeStaleControllerEpoch || len(b.m.Partitions()) != 0 {
		t.Errorf("of a deleted topic: %s", code)
	}
	if code := late(0, cluster.TopicID{42}); code != replica.CodeNone {
		t.Errorf("made anew: %s", code)
	}
}
