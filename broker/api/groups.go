package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/groupshell"
)

// client describes the sender of a request to the group coordinator.
func (c *call) client() groupshell.ClientInfo {
	return groupshell.ClientInfo{ClientID: c.clientID, Host: "/" + c.Conn.Remote, Listener: c.Conn.Listener}
}

func (s *Service) offsetCommit(ctx context.Context, c *call) kmsg.Response {
	return s.Offsets.OffsetCommit(ctx, c.body.(*kmsg.OffsetCommitRequest))
}

func (s *Service) offsetFetch(ctx context.Context, c *call) kmsg.Response {
	return s.Offsets.OffsetFetch(ctx, c.body.(*kmsg.OffsetFetchRequest))
}

func (s *Service) offsetDelete(ctx context.Context, c *call) kmsg.Response {
	return s.Offsets.OffsetDelete(ctx, c.body.(*kmsg.OffsetDeleteRequest))
}

func (s *Service) joinGroup(ctx context.Context, c *call) kmsg.Response {
	return s.Members.JoinGroup(ctx, c.client(), c.body.(*kmsg.JoinGroupRequest))
}

func (s *Service) syncGroup(ctx context.Context, c *call) kmsg.Response {
	return s.Members.SyncGroup(ctx, c.body.(*kmsg.SyncGroupRequest))
}

func (s *Service) heartbeat(ctx context.Context, c *call) kmsg.Response {
	return s.Members.Heartbeat(ctx, c.body.(*kmsg.HeartbeatRequest))
}

func (s *Service) leaveGroup(ctx context.Context, c *call) kmsg.Response {
	return s.Members.LeaveGroup(ctx, c.body.(*kmsg.LeaveGroupRequest))
}

func (s *Service) listGroups(ctx context.Context, c *call) kmsg.Response {
	return s.Groups.ListGroups(ctx, c.body.(*kmsg.ListGroupsRequest))
}

func (s *Service) deleteGroups(ctx context.Context, c *call) kmsg.Response {
	return s.Groups.DeleteGroups(ctx, c.body.(*kmsg.DeleteGroupsRequest))
}
