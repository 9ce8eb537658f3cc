package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// UpdateMetadata feeds the metadata cache: live brokers, and the state of partitions.
//
//	v1      several endpoints per broker; v2 racks; v4 offline replicas; v5 broker epoch, topics nested
//	v7      topic ids
var updateMetadataAPI = definition{key: 6, min: 0, max: 8, handle: (*Service).updateMetadata}

func (s *Service) updateMetadata(_ context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.UpdateMetadataRequest)
	resp := req.ResponseKind().(*kmsg.UpdateMetadataResponse)
	if s.staleBrokerEpoch(req.BrokerEpoch) {
		resp.ErrorCode = kerr.StaleBrokerEpoch.Code
		return resp
	}
	before := s.Metadata.Snapshot()
	err := s.Metadata.Apply(req)
	switch {
	case err == nil:
		if !before.SameBrokers(s.Metadata.Snapshot()) { // it looks at every partition
			s.Replication.BrokersChanged()
		}
	case errors.Is(err, metadata.ErrStaleController):
		resp.ErrorCode = kerr.StaleControllerEpoch.Code
	default:
		s.log.Warn("metadata update refused", obs.Err(err))
		resp.ErrorCode = kerr.InvalidRequest.Code
	}
	return resp
}

// staleBrokerEpoch reports whether a control request was meant for an earlier registration of this broker. A
// later one is possible: the controller may learn of a registration before this broker has its answer.
func (s *Service) staleBrokerEpoch(epoch int64) bool {
	return cluster.BrokerEpoch(epoch) != cluster.NoBrokerEpoch && cluster.BrokerEpoch(epoch) < s.BrokerEpoch()
}
