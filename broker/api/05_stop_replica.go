package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// StopReplica makes this broker give up replicas, and delete them when the controller says so.
//
//	v1      broker epoch; v3 leader epoch and delete flag per partition (KIP-570)
var stopReplicaAPI = definition{key: 5, min: 0, max: 4, handle: (*Service).stopReplica}

func (s *Service) stopReplica(ctx context.Context, c *call) kmsg.Response {
	return s.Replication.HandleStopReplica(ctx, c.body.(*kmsg.StopReplicaRequest))
}
