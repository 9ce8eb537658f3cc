package groupshell

import (
	"context"
	"math"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/group"
	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// coordinatorTypeGroup is the key type of groups in FindCoordinator; 1 are transactions, 2 share groups.
const coordinatorTypeGroup = 0

// noOperations says in DescribeGroups that authorised operations were not asked for.
const noOperations = math.MinInt32

// DescribeGroups answers DescribeGroups v0-5. Authorised operations are left to the caller. A group that
// does not exist is described as Dead, as Apache Kafka does up to v5.
func (m *Manager) DescribeGroups(_ context.Context, req *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, id := range req.Groups {
		rg := kmsg.DescribeGroupsResponseGroup{Group: id, AuthorizedOperations: noOperations}
		var d group.Description
		if code := m.view(id, func(s *group.Shard) { d = s.Describe(id) }); code != group.None {
			rg.ErrorCode = int16(code)
			resp.Groups = append(resp.Groups, rg)
			continue
		}
		rg.State, rg.ProtocolType, rg.Protocol = d.State.String(), d.ProtocolType, d.Protocol
		for _, dm := range d.Members {
			rg.Members = append(rg.Members, kmsg.DescribeGroupsResponseGroupMember{
				MemberID: dm.MemberID, InstanceID: dm.InstanceID, ClientID: dm.ClientID, ClientHost: dm.ClientHost,
				ProtocolMetadata: orEmpty(dm.Metadata), MemberAssignment: orEmpty(dm.Assignment),
			})
		}
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// ListGroups answers ListGroups v0-5 with the groups of this broker. While a partition is being loaded the
// answer carries COORDINATOR_LOAD_IN_PROGRESS and what is there already.
func (m *Manager) ListGroups(_ context.Context, req *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	resp.Groups = []kmsg.ListGroupsResponseGroup{}
	for _, sh := range m.allShards() {
		sh.mu.Lock()
		var list []group.Overview
		switch sh.state {
		case loading:
			resp.ErrorCode = int16(group.CoordinatorLoadInProgress)
		case active:
			list = sh.core.List(req.StatesFilter, req.TypesFilter)
		}
		sh.mu.Unlock()
		for _, o := range list {
			resp.Groups = append(resp.Groups, kmsg.ListGroupsResponseGroup{
				Group: o.Group, ProtocolType: o.ProtocolType, GroupState: o.State.String(), GroupType: group.GroupType,
			})
		}
	}
	return resp
}

// DeleteGroups answers DeleteGroups v0-2; it blocks until the removals are stored. All are under way before
// the first is waited for, so that they share batches.
func (m *Manager) DeleteGroups(ctx context.Context, req *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse {
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(req.Groups))
	shards, calls := make([]*shard, len(req.Groups)), make([]*call, len(req.Groups))
	for i, id := range req.Groups {
		code := group.NotCoordinator
		if shards[i] = m.shardFor(id); shards[i] != nil {
			calls[i], code = shards[i].begin(func(r group.RequestID) group.Event {
				return group.DeleteGroup{At: m.now(), Request: r, Group: id}
			})
		}
		resp.Groups[i] = kmsg.DeleteGroupsResponseGroup{Group: id, ErrorCode: int16(code)}
	}
	for i, c := range calls {
		if c == nil {
			continue
		}
		shards[i].flush(ctx)
		reply, code := shards[i].await(ctx, c)
		if code == group.None {
			code = reply.(group.DeleteGroupReply).Code
		}
		resp.Groups[i].ErrorCode = int16(code)
	}
	return resp
}

// FindCoordinator answers FindCoordinator v0-6. The offsets topic is created when it does not exist; the
// client is told to try again meanwhile. Transactions have no coordinator here.
func (m *Manager) FindCoordinator(ctx context.Context, client ClientInfo, req *kmsg.FindCoordinatorRequest) *kmsg.FindCoordinatorResponse {
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	keys := req.CoordinatorKeys
	if req.Version < 4 {
		keys = []string{req.CoordinatorKey}
	}
	for _, key := range keys {
		node, code := m.coordinator(ctx, client.Listener, req.CoordinatorType, key)
		c := kmsg.FindCoordinatorResponseCoordinator{
			Key: key, NodeID: int32(node.ID), Host: node.Host, Port: node.Port, ErrorCode: int16(code),
		}
		if code != group.None {
			message := code.String()
			c.ErrorMessage = &message
		}
		resp.Coordinators = append(resp.Coordinators, c)
	}
	if req.Version < 4 {
		c := resp.Coordinators[0]
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = c.ErrorCode, c.ErrorMessage, c.NodeID, c.Host, c.Port
		resp.Coordinators = nil
	}
	return resp
}

func (m *Manager) coordinator(ctx context.Context, listener string, kind int8, key string) (Node, group.Code) {
	none := Node{ID: -1, Port: -1}
	switch {
	case kind == 1:
		return none, group.CoordinatorNotAvailable
	case kind != coordinatorTypeGroup:
		return none, group.InvalidRequest
	}
	if _, ok := m.opts.Metadata.PartitionCount(OffsetsTopic); !ok {
		m.createOffsetsTopic(ctx)
		return none, group.CoordinatorNotAvailable
	}
	node, ok := m.opts.Metadata.LeaderNode(cluster.TopicPartition{Topic: OffsetsTopic, Partition: m.PartitionFor(key)}, listener)
	if !ok {
		return none, group.CoordinatorNotAvailable
	}
	return node, group.None
}

// createOffsetsTopic creates the topic with Apache Kafka's configuration, unless a request is at it already.
func (m *Manager) createOffsetsTopic(ctx context.Context) {
	if !m.creating.CompareAndSwap(false, true) {
		return
	}
	defer m.creating.Store(false)
	c := m.opts.Config
	err := m.opts.Topics.EnsureTopic(ctx, OffsetsTopic, c.OffsetsTopicPartitions, c.OffsetsTopicReplication, map[string]string{
		"compression.type": "producer",
		"cleanup.policy":   "compact",
		"segment.bytes":    strconv.Itoa(int(c.OffsetsTopicSegmentBytes)),
	})
	if err != nil {
		m.log.Warn("create the offsets topic", obs.KeyTopic, OffsetsTopic, obs.Err(err))
	}
}
