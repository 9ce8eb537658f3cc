package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/zkutil/cluster"
)

// DeleteTopics deletes topics and answers when they are gone from the cache and from ZooKeeper, or at the
// time-out. Only the controller serves it.
//
//	v3      TOPIC_DELETION_DISABLED; v5 messages; v6 by topic id (KIP-516)
var deleteTopicsAPI = definition{key: 20, min: 0, max: 6, handle: (*Service).deleteTopics}

func (s *Service) deleteTopics(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	if req.Version < 6 {
		req.Topics = nil
		for i := range req.TopicNames {
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic = &req.TopicNames[i]
			req.Topics = append(req.Topics, t)
		}
	}
	verdict := s.deleteVerdict(req.Version)
	snap := s.Metadata.Snapshot()
	seen := make(map[string]bool, len(req.Topics))
	resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, len(req.Topics))
	for i := range req.Topics {
		out := &resp.Topics[i]
		*out = kmsg.NewDeleteTopicsResponseTopic()
		out.Topic, out.TopicID = req.Topics[i].Topic, req.Topics[i].TopicID
		if verdict != nil {
			out.ErrorCode, out.ErrorMessage = verdict.Code, &verdict.Description
			continue
		}
		s.deleteTopic(ctx, snap, out, seen)
	}
	if verdict == nil {
		s.awaitDeleted(ctx, req, resp)
	}
	return resp
}

func (s *Service) deleteVerdict(version int16) *kerr.Error {
	switch {
	case !s.Controller.IsActive():
		return kerr.NotController
	case s.Static.Values().Bool("delete.topic.enable"):
		return nil
	case version < 3:
		return kerr.InvalidRequest
	}
	return kerr.TopicDeletionDisabled
}

// deleteTopic resolves name and id, and marks the topic for deletion.
func (s *Service) deleteTopic(ctx context.Context, snap *metadata.Snapshot, out *kmsg.DeleteTopicsResponseTopic, seen map[string]bool) {
	id := cluster.TopicID(out.TopicID)
	switch {
	case out.Topic != nil && !id.IsZero():
		out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, ptr("Topic name and topic ID can not both be specified.")
		return
	case out.Topic == nil && id.IsZero():
		out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, ptr("Neither topic name nor topic ID was specified.")
		return
	case out.Topic == nil:
		name, ok := snap.TopicName(id)
		if !ok {
			out.ErrorCode = kerr.UnknownTopicID.Code
			return
		}
		out.Topic = &name
	default:
		if t, ok := snap.Topic(*out.Topic); ok {
			out.TopicID = t.ID
		}
	}
	if seen[*out.Topic] {
		out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, ptr("Duplicate topic in request.")
		return
	}
	seen[*out.Topic] = true
	if err := s.Topics.Delete(ctx, *out.Topic); err != nil {
		out.ErrorCode, out.ErrorMessage = s.codeOf(err)
	}
}

// awaitDeleted waits for the marked topics to disappear.
func (s *Service) awaitDeleted(ctx context.Context, req *kmsg.DeleteTopicsRequest, resp *kmsg.DeleteTopicsResponse) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(0, req.TimeoutMillis))*time.Millisecond)
	defer cancel()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.ErrorCode != 0 {
			continue
		}
		err := s.Metadata.Wait(ctx, func(snap *metadata.Snapshot) bool {
			_, there := snap.Topic(*t.Topic)
			return !there
		})
		if err == nil {
			err = s.Topics.Gone(ctx, *t.Topic)
		}
		if err != nil {
			t.ErrorCode, t.ErrorMessage = s.codeOf(err)
		}
	}
}
