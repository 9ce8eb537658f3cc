package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
)

// InitProducerId gives an idempotent producer an id of its own, with epoch 0 (KIP-98); v3 lets it ask for a
// fresh one after an error (KIP-360). A transactional id is refused as not authorised, which clients treat as
// final: there is no transaction coordinator.
var initProducerIDAPI = definition{key: 22, min: 0, max: 5, handle: (*Service).initProducerID}

func (s *Service) initProducerID(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.InitProducerIDRequest)
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if req.TransactionalID != nil {
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return resp
	}
	id, err := s.ProducerIDs.Next(ctx)
	if err != nil {
		s.log.Warn("no producer id", obs.Err(err))
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code // clients try again
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}
