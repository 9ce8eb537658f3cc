package groupshell

import (
	"bytes"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/group"
)

// JoinGroup answers JoinGroup v0-9; it blocks until the rebalance is over.
func (m *Manager) JoinGroup(ctx context.Context, client ClientInfo, req *kmsg.JoinGroupRequest) *kmsg.JoinGroupResponse {
	e := group.Join{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID,
		ClientID: client.ClientID, ClientHost: client.Host, Suffix: m.newID(),
		RequireKnownMemberID: req.Version >= 4 && req.InstanceID == nil,
		SkipAssignment:       req.Version >= 9,
		SessionTimeout:       millis(req.SessionTimeoutMillis),
		RebalanceTimeout:     millis(req.RebalanceTimeoutMillis),
		ProtocolType:         req.ProtocolType,
	}
	if req.Version == 0 { // had one timeout for both
		e.RebalanceTimeout = e.SessionTimeout
	}
	for _, p := range req.Protocols {
		e.Protocols = append(e.Protocols, group.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)})
	}
	if req.Reason != nil {
		e.Reason = *req.Reason
	}
	reply, code := m.do(ctx, req.Group, func(id group.RequestID) group.Event {
		e.Request, e.At = id, m.now()
		return e
	})
	if code != group.None {
		reply = group.JoinReply{Code: code, Generation: -1, MemberID: req.MemberID}
	}
	return joinResponse(req, reply.(group.JoinReply))
}

func millis(ms int32) time.Duration { return time.Duration(ms) * time.Millisecond }

func joinResponse(req *kmsg.JoinGroupRequest, r group.JoinReply) *kmsg.JoinGroupResponse {
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.ErrorCode, resp.Generation = int16(r.Code), r.Generation
	resp.ProtocolType, resp.Protocol = r.ProtocolType, r.Protocol
	resp.LeaderID, resp.MemberID, resp.SkipAssignment = r.Leader, r.MemberID, r.SkipAssignment
	if resp.Protocol == nil && req.Version < 7 {
		resp.Protocol = new(string) // could not be null
	}
	for _, jm := range r.Members {
		resp.Members = append(resp.Members, kmsg.JoinGroupResponseMember{
			MemberID: jm.MemberID, InstanceID: jm.InstanceID, ProtocolMetadata: jm.Metadata,
		})
	}
	return resp
}

// SyncGroup answers SyncGroup v0-5; it blocks until the leader's assignment is stored.
func (m *Manager) SyncGroup(ctx context.Context, req *kmsg.SyncGroupRequest) *kmsg.SyncGroupResponse {
	resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
	resp.MemberAssignment = []byte{}
	if req.Version >= 5 && (req.ProtocolType == nil || req.Protocol == nil) {
		resp.ErrorCode = int16(group.InconsistentGroupProtocol)
		return resp
	}
	e := group.Sync{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		ProtocolType: req.ProtocolType, Protocol: req.Protocol,
	}
	for _, a := range req.GroupAssignment {
		e.Assignments = append(e.Assignments, group.Assigned{MemberID: a.MemberID, Data: bytes.Clone(a.MemberAssignment)})
	}
	reply, code := m.do(ctx, req.Group, func(id group.RequestID) group.Event {
		e.Request, e.At = id, m.now()
		return e
	})
	switch {
	case code == group.CoordinatorLoadInProgress:
		// The rebalance that this belongs to is lost with the old coordinator: the member must join again.
		resp.ErrorCode = int16(group.RebalanceInProgress)
	case code != group.None:
		resp.ErrorCode = int16(code)
	default:
		r := reply.(group.SyncReply)
		resp.ErrorCode, resp.ProtocolType, resp.Protocol = int16(r.Code), r.ProtocolType, r.Protocol
		if r.Assignment != nil {
			resp.MemberAssignment = r.Assignment
		}
	}
	return resp
}

// Heartbeat answers Heartbeat v0-4. While the groups are loaded every member is taken to be alive.
func (m *Manager) Heartbeat(ctx context.Context, req *kmsg.HeartbeatRequest) *kmsg.HeartbeatResponse {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	reply, code := m.do(ctx, req.Group, func(id group.RequestID) group.Event {
		return group.Heartbeat{
			At: m.now(), Request: id, Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		}
	})
	switch {
	case code == group.CoordinatorLoadInProgress:
	case code != group.None:
		resp.ErrorCode = int16(code)
	default:
		resp.ErrorCode = int16(reply.(group.HeartbeatReply).Code)
	}
	return resp
}

// LeaveGroup answers LeaveGroup v0-5, from v3 on for several members.
func (m *Manager) LeaveGroup(ctx context.Context, req *kmsg.LeaveGroupRequest) *kmsg.LeaveGroupResponse {
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	var leavers []group.Leaver
	if req.Version < 3 {
		leavers = []group.Leaver{{MemberID: req.MemberID}}
	}
	for _, lm := range req.Members {
		l := group.Leaver{MemberID: lm.MemberID, InstanceID: lm.InstanceID}
		if lm.Reason != nil {
			l.Reason = *lm.Reason
		}
		leavers = append(leavers, l)
	}
	reply, code := m.do(ctx, req.Group, func(id group.RequestID) group.Event {
		return group.Leave{At: m.now(), Request: id, Group: req.Group, Members: leavers}
	})
	if code != group.None {
		resp.ErrorCode = int16(code)
		return resp
	}
	r := reply.(group.LeaveReply)
	resp.ErrorCode = int16(r.Code)
	for _, l := range r.Members {
		if req.Version < 3 {
			resp.ErrorCode = int16(l.Code)
			break
		}
		resp.Members = append(resp.Members, kmsg.LeaveGroupResponseMember{
			MemberID: l.MemberID, InstanceID: l.InstanceID, ErrorCode: int16(l.Code),
		})
	}
	return resp
}
