package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// OffsetForLeaderEpoch tells where a leader epoch ended, for truncation (KIP-101, KIP-279) and for consumers
// that detect it (KIP-320, v2).
var offsetForLeaderEpochAPI = definition{key: 23, min: 0, max: 4, handle: (*Service).offsetForLeaderEpoch}

func (s *Service) offsetForLeaderEpoch(ctx context.Context, c *call) kmsg.Response {
	resp := s.Data.OffsetForLeaderEpoch(ctx, c.body.(*kmsg.OffsetForLeaderEpochRequest))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			s.notHostedHere(t.Topic, t.Partitions[j].Partition, &t.Partitions[j].ErrorCode)
		}
	}
	return resp
}
