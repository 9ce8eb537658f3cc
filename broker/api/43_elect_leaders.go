package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/zkutil/cluster"
)

// ElectLeaders elects preferred leaders, or from v1 (KIP-460) unclean ones. Only the controller serves it; the
// answer is held until this broker's cache shows the new leaders, or the time-out. An election type of our own sets
// leaderAndISR (docs/decisions/0007-operator-sets-leader-and-isr.md); ApiVersions announces it in a tag.
var electLeadersAPI = definition{key: 43, min: 0, max: 2, handle: (*Service).electLeaders}

// preferredElection is the election type of preferred leaders.
const preferredElection = 0

func (s *Service) electLeaders(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.ElectLeadersRequest)
	resp := s.Controller.HandleElectLeaders(ctx, req)
	wait, cancel := context.WithTimeout(ctx, time.Duration(max(0, req.TimeoutMillis))*time.Millisecond)
	defer cancel()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			if t.Partitions[j].ErrorCode != 0 {
				continue
			}
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: t.Partitions[j].Partition}
			// The election is durable already: a late cache is no failure of it.
			_ = s.Metadata.Wait(wait, func(snap *metadata.Snapshot) bool {
				return elected(snap, tp, req.ElectionType) && reached(snap, tp, &t.Partitions[j])
			})
		}
	}
	return resp
}

func elected(snap *metadata.Snapshot, tp cluster.TopicPartition, kind int8) bool {
	p, ok := snap.Partition(tp)
	if !ok || len(p.Replicas) == 0 || !snap.IsAlive(p.Leader) {
		return false
	}
	return kind != preferredElection || int32(p.Leader) == p.Replicas[0]
}

// reached: the cache shows the decision that the answer names, if it names one.
func reached(snap *metadata.Snapshot, tp cluster.TopicPartition, answer *kmsg.ElectLeadersResponseTopicPartition) bool {
	ok := true
	answer.UnknownTags.Each(func(tag uint32, data []byte) {
		p, known := snap.Partition(tp)
		if c, err := cluster.DecodeLeaderChanged(data); err == nil && tag == cluster.LeaderChangeTag {
			ok = known && p.LeaderEpoch >= c.LeaderEpoch
		}
	})
	return ok
}
