package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster tells brokers and controller (KIP-700); v1 asks for brokers or controllers, and in ZooKeeper
// mode there are only brokers.
var describeClusterAPI = definition{key: 60, min: 0, max: 1, handle: (*Service).describeCluster}

// brokersEndpoint is the endpoint type of brokers.
const brokersEndpoint = 1

func (s *Service) describeCluster(_ context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.DescribeClusterRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	if req.Version >= 1 && req.EndpointType != brokersEndpoint {
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		if req.EndpointType != 2 {
			resp.ErrorCode = kerr.UnsupportedEndpointType.Code
		}
		resp.ErrorMessage = ptr("This endpoint serves brokers only.")
		return resp
	}
	snap := s.Metadata.Snapshot()
	resp.EndpointType = brokersEndpoint
	resp.ClusterID, resp.ControllerID = s.ClusterID, -1
	if snap.IsAlive(snap.ControllerID) {
		resp.ControllerID = int32(snap.ControllerID)
	}
	for _, b := range snap.Brokers() {
		if e, ok := b.Endpoint(c.Conn.Listener); ok {
			r := kmsg.NewDescribeClusterResponseBroker()
			r.NodeID, r.Host, r.Port, r.Rack = int32(b.ID), e.Host, e.Port, rackOf(b)
			resp.Brokers = append(resp.Brokers, r)
		}
	}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	return resp
}
