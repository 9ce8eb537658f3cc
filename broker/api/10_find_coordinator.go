package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FindCoordinator names the broker that coordinates a group; it makes the offsets topic when there is none. For
// a transactional id the answer is final, since there is no transaction coordinator: a retriable error would
// leave a producer waiting until its time-out.
//
//	v1      kind of coordinator; v4 several keys (KIP-699)
var findCoordinatorAPI = definition{key: 10, min: 0, max: 6, handle: (*Service).findCoordinator}

// transactionCoordinator is the kind of coordinator of a transactional id.
const transactionCoordinator = 1

func (s *Service) findCoordinator(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.FindCoordinatorRequest)
	if req.CoordinatorType != transactionCoordinator {
		return s.Members.FindCoordinator(ctx, c.client(), req)
	}
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	code, message := kerr.TransactionalIDAuthorizationFailed.Code, ptr("This broker has no transaction coordinator.")
	if req.Version < 4 {
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Port = code, message, -1, -1
		return resp
	}
	for _, key := range req.CoordinatorKeys {
		k := kmsg.NewFindCoordinatorResponseCoordinator()
		k.Key, k.ErrorCode, k.ErrorMessage, k.NodeID, k.Port = key, code, message, -1, -1
		resp.Coordinators = append(resp.Coordinators, k)
	}
	return resp
}
