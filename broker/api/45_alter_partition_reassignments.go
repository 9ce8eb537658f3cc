package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterPartitionReassignments begins, changes and cancels reassignments (KIP-455). Only the controller serves it;
// others answer NOT_CONTROLLER. The answer comes when the first step is durable, or with the time-out.
var alterPartitionReassignmentsAPI = definition{key: 45, min: 0, max: 0, handle: (*Service).alterPartitionReassignments}

func (s *Service) alterPartitionReassignments(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.AlterPartitionAssignmentsRequest)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(0, req.TimeoutMillis))*time.Millisecond)
	defer cancel()
	return s.Controller.HandleAlterPartitionAssignments(ctx, req)
}
