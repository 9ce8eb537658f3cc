package groupshell

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// Manager is the group coordinator of one broker. All methods may be called from any goroutine.
type Manager struct{ opts Options }

// New makes a Manager. Run must be started before partitions are loaded.
func New(opts Options) *Manager { return &Manager{opts: opts} }

// Run loads partitions and fires timers until ctx ends.
func (m *Manager) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// OnLeadership tells that this broker became leader of a partition of __consumer_offsets, or is it no
// longer. It never blocks. Calls with an epoch below the last one seen are ignored.
func (m *Manager) OnLeadership(partition int32, leader bool, epoch cluster.LeaderEpoch) {}

// FindCoordinator answers FindCoordinator v0-6; the offsets topic is created when it does not exist.
func (m *Manager) FindCoordinator(ctx context.Context, client ClientInfo, req *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	r := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	r.ErrorCode = kerr.CoordinatorNotAvailable.Code
	return r
}

// JoinGroup answers JoinGroup v0-9; it blocks until the rebalance is over.
func (m *Manager) JoinGroup(ctx context.Context, client ClientInfo, req *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse {
	r := req.ResponseKind().(*kmsg.JoinGroupResponse)
	r.ErrorCode = kerr.CoordinatorNotAvailable.Code
	return r
}

// SyncGroup answers SyncGroup v0-5; it blocks until the leader's assignment is stored.
func (m *Manager) SyncGroup(ctx context.Context, req *kmsg.SyncGroupRequest) *kmsg.SyncGroupResponse {
	r := req.ResponseKind().(*kmsg.SyncGroupResponse)
	r.ErrorCode = kerr.CoordinatorNotAvailable.Code
	return r
}

// Heartbeat answers Heartbeat v0-4.
func (m *Manager) Heartbeat(ctx context.Context, req *kmsg.HeartbeatRequest) *kmsg.HeartbeatResponse {
	r := req.ResponseKind().(*kmsg.HeartbeatResponse)
	r.ErrorCode = kerr.CoordinatorNotAvailable.Code
	return r
}

// LeaveGroup answers LeaveGroup v0-5.
func (m *Manager) LeaveGroup(ctx context.Context, req *kmsg.LeaveGroupRequest) *kmsg.LeaveGroupResponse {
	r := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	r.ErrorCode = kerr.CoordinatorNotAvailable.Code
	return r
}

// OffsetCommit answers OffsetCommit v0-9; it blocks until the offsets are committed to the log.
func (m *Manager) OffsetCommit(ctx context.Context, req *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	return req.ResponseKind().(*kmsg.OffsetCommitResponse)
}

// OffsetFetch answers OffsetFetch v0-9, from v8 on for several groups.
func (m *Manager) OffsetFetch(ctx context.Context, req *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	return req.ResponseKind().(*kmsg.OffsetFetchResponse)
}

// DescribeGroups answers DescribeGroups v0-5. Authorised operations are left to the caller.
func (m *Manager) DescribeGroups(ctx context.Context, req *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse {
	return req.ResponseKind().(*kmsg.DescribeGroupsResponse)
}

// ListGroups answers ListGroups v0-5.
func (m *Manager) ListGroups(ctx context.Context, req *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse {
	return req.ResponseKind().(*kmsg.ListGroupsResponse)
}

// DeleteGroups answers DeleteGroups v0-2.
func (m *Manager) DeleteGroups(ctx context.Context, req *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse {
	return req.ResponseKind().(*kmsg.DeleteGroupsResponse)
}

// OffsetDelete answers OffsetDelete v0.
func (m *Manager) OffsetDelete(ctx context.Context, req *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	return req.ResponseKind().(*kmsg.OffsetDeleteResponse)
}
