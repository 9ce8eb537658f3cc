package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// ListOffsets finds offsets by time: -1 latest, -2 earliest, -3 largest timestamp (v7, KIP-734), -4 and -5 local
// and tiered (v8, v9). Replica id -2 asks a replica that need not be the leader (debug).
//
//	v1      one offset per partition instead of a list; v2 isolation level; v4 leader epochs
var listOffsetsAPI = definition{key: 2, min: 1, max: 9, handle: (*Service).listOffsets}

func (s *Service) listOffsets(ctx context.Context, c *call) kmsg.Response {
	resp := s.Data.ListOffsets(ctx, c.body.(*kmsg.ListOffsetsRequest))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			s.notHostedHere(t.Topic, t.Partitions[j].Partition, &t.Partitions[j].ErrorCode)
		}
	}
	return resp
}

// notHostedHere corrects the replica manager's answer for a partition that it does not host: when the cluster
// has it, the client is at the wrong broker.
func (s *Service) notHostedHere(topic string, partition int32, code *int16) {
	if *code != kerr.UnknownTopicOrPartition.Code {
		return
	}
	if _, known := s.Metadata.Snapshot().Partition(cluster.TopicPartition{Topic: topic, Partition: partition}); known {
		*code = kerr.NotLeaderForPartition.Code
	}
}
