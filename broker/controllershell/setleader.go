package controllershell

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/zkutil/cluster"
)

// setLeaderAndISR hands an operator's change to the core. Changes that do not decode, or that do not fit the
// partitions listed, are INVALID_REQUEST: nothing is done.
func (s *Shell) setLeaderAndISR(ctx context.Context, req *kmsg.ElectLeadersRequest) *kmsg.ElectLeadersResponse {
	var tps []cluster.TopicPartition
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			tps = append(tps, cluster.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	var changes []cluster.LeaderChange
	req.UnknownTags.Each(func(tag uint32, data []byte) {
		if tag == cluster.LeaderChangeTag {
			changes, _ = cluster.DecodeLeaderChanges(tps, data) // nil: refused below
		}
	})
	if len(changes) == 0 {
		return refusal(req, codeInvalidRequest).(*kmsg.ElectLeadersResponse)
	}
	return s.submit(ctx, req, func(id uint64) controller.Event {
		return controller.LeaderAndISRRequested{At: s.opts.Now(), RequestID: id, Request: req, Changes: changes}
	}).(*kmsg.ElectLeadersResponse)
}
