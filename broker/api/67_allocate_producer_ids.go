package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// AllocateProducerIds gives a broker a block of producer ids (KIP-730). Brokers of this engine take theirs from
// ZooKeeper; those of Apache Kafka in the same cluster ask the controller.
var allocateProducerIDsAPI = definition{key: 67, min: 0, max: 0, handle: (*Service).allocateProducerIDs}

func (s *Service) allocateProducerIDs(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.AllocateProducerIDsRequest)
	resp := req.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
	id := cluster.BrokerID(req.BrokerID)
	switch {
	case !s.Controller.IsActive():
		resp.ErrorCode = kerr.NotController.Code
		return resp
	case !s.Metadata.Snapshot().IsAlive(id):
		resp.ErrorCode = kerr.BrokerIDNotRegistered.Code
		return resp
	}
	first, n, err := s.ProducerIDs.Block(ctx, id)
	if err != nil {
		s.log.Warn("no block of producer ids", obs.Err(err))
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp
	}
	resp.ProducerIDStart, resp.ProducerIDLen = first, n
	return resp
}
