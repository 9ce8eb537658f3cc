package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterPartition asks this broker, as controller, to write an ISR change for a leader (KIP-497). Leaders of this
// engine write their own; those of Apache Kafka send this.
//
//	v1      recovery state; v2 topic ids (KIP-841); v3 broker epochs of the ISR (KIP-903)
var alterPartitionAPI = definition{key: 56, min: 0, max: 3, handle: (*Service).alterPartition}

func (s *Service) alterPartition(ctx context.Context, c *call) kmsg.Response {
	return s.Controller.HandleAlterPartition(ctx, c.body.(*kmsg.AlterPartitionRequest))
}
