package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteRecords moves a partition's log start up (KIP-107); it answers when all live replicas have followed.
var deleteRecordsAPI = definition{key: 21, min: 0, max: 2, handle: (*Service).deleteRecords}

func (s *Service) deleteRecords(ctx context.Context, c *call) kmsg.Response {
	resp := s.Data.(RecordDeleter).DeleteRecords(ctx, c.body.(*kmsg.DeleteRecordsRequest))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			s.notHostedHere(t.Topic, t.Partitions[j].Partition, &t.Partitions[j].ErrorCode)
		}
	}
	return resp
}
