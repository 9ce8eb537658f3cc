package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/broker/topicadmin"
	"kctl/zkutil/cluster"
)

// CreatePartitions raises the number of partitions of topics (KIP-195) and answers when the new ones have
// leaders. Only the controller serves it.
var createPartitionsAPI = definition{key: 37, min: 0, max: 3, handle: (*Service).createPartitions}

func (s *Service) createPartitions(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.CreatePartitionsRequest)
	resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
	active := s.Controller.IsActive()
	seen := make(map[string]bool, len(req.Topics))
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewCreatePartitionsResponseTopic()
		out.Topic = t.Topic
		switch {
		case !active:
			out.ErrorCode = kerr.NotController.Code
		case seen[t.Topic]:
			out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, ptr("Duplicate topic in request.")
		default:
			out.ErrorCode, out.ErrorMessage = s.codeOf(s.growTopic(ctx, t, req.ValidateOnly))
		}
		seen[t.Topic] = true
		resp.Topics = append(resp.Topics, out)
	}
	if active && !req.ValidateOnly {
		s.awaitGrown(ctx, req, resp)
	}
	return resp
}

func (s *Service) growTopic(ctx context.Context, t *kmsg.CreatePartitionsRequestTopic, dry bool) error {
	if t.Count > newPartitionsMax {
		return topicadmin.Refuse(kerr.InvalidPartitions, "Number of partitions must not be larger than 100000.")
	}
	g := topicadmin.Growth{Total: t.Count, Brokers: s.Metadata.Snapshot().Brokers(), Dry: dry}
	for _, a := range t.Assignment {
		g.Assignment = append(g.Assignment, cluster.IDsFromInt32(a.Replicas))
	}
	return s.Topics.AddPartitions(ctx, t.Topic, g)
}

func (s *Service) awaitGrown(ctx context.Context, req *kmsg.CreatePartitionsRequest, resp *kmsg.CreatePartitionsResponse) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(0, req.TimeoutMillis))*time.Millisecond)
	defer cancel()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.ErrorCode != 0 {
			continue
		}
		if s.Metadata.Wait(ctx, func(snap *metadata.Snapshot) bool { return snap.HasLeaders(t.Topic, int(req.Topics[i].Count)) }) != nil {
			t.ErrorCode = kerr.RequestTimedOut.Code
		}
	}
}
