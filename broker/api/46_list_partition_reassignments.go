package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListPartitionReassignments tells which reassignments are under way (KIP-455). Only the controller serves it; others
// answer NOT_CONTROLLER.
var listPartitionReassignmentsAPI = definition{key: 46, min: 0, max: 0, handle: (*Service).listPartitionReassignments}

func (s *Service) listPartitionReassignments(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.ListPartitionReassignmentsRequest)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(0, req.TimeoutMillis))*time.Millisecond)
	defer cancel()
	return s.Controller.HandleListPartitionReassignments(ctx, req)
}
