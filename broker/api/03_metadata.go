package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/broker/topicadmin"
	"kctl/zkutil/cluster"
)

// Metadata tells brokers, controller and partitions, from this broker's cache.
//
//	v0      an empty list of topics means all; dead replicas are an error
//	v1      null means all, an empty list none; controller id, racks, internal flag
//	v4      allow_auto_topic_creation (KIP-204)
//	v5      offline replicas; v7 leader epochs (KIP-320)
//	v8      authorised operations (KIP-430), for the cluster up to v10
//	v10     topic ids in the answer, v12 in the request (KIP-516)
var metadataAPI = definition{key: 3, min: 0, max: 12, handle: (*Service).metadata}

func (s *Service) metadata(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.MetadataRequest)
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	snap := s.Metadata.Snapshot()
	listener := c.Conn.Listener
	for _, b := range snap.Brokers() {
		if e, ok := b.Endpoint(listener); ok {
			m := kmsg.NewMetadataResponseBroker()
			m.NodeID, m.Host, m.Port, m.Rack = int32(b.ID), e.Host, e.Port, rackOf(b)
			resp.Brokers = append(resp.Brokers, m)
		}
	}
	resp.ClusterID = &s.ClusterID
	resp.ControllerID = -1
	if snap.IsAlive(snap.ControllerID) {
		resp.ControllerID = int32(snap.ControllerID)
	}
	if req.Version >= 8 && req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = clusterOperations
	}
	if req.Topics == nil || (req.Version == 0 && len(req.Topics) == 0) {
		names := snap.TopicNames()
		resp.Topics = make([]kmsg.MetadataResponseTopic, 0, len(names))
		for _, name := range names {
			t, _ := snap.Topic(name)
			resp.Topics = append(resp.Topics, metadataTopic(snap, t, listener, req))
		}
		return resp
	}
	resp.Topics = make([]kmsg.MetadataResponseTopic, 0, len(req.Topics))
	for i := range req.Topics {
		resp.Topics = append(resp.Topics, s.metadataTopicOf(ctx, snap, &req.Topics[i], listener, req))
	}
	return resp
}

func rackOf(b cluster.Broker) *string {
	if b.Rack == "" {
		return nil
	}
	return &b.Rack
}

// metadataTopicOf answers for one requested topic, by name or id.
func (s *Service) metadataTopicOf(ctx context.Context, snap *metadata.Snapshot, rt *kmsg.MetadataRequestTopic, listener string, req *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Partitions = []kmsg.MetadataResponseTopicPartition{}
	id := cluster.TopicID(rt.TopicID)
	var name string
	switch {
	case rt.Topic == nil && (req.Version < 12 || id.IsZero()):
		out.ErrorCode, out.Topic = kerr.InvalidRequest.Code, ptr("")
		return out
	case rt.Topic != nil && !id.IsZero():
		out.ErrorCode, out.Topic = kerr.InvalidRequest.Code, rt.Topic
		return out
	case rt.Topic != nil:
		name = *rt.Topic
	default:
		out.TopicID = rt.TopicID
		var ok bool
		if name, ok = snap.TopicName(id); !ok {
			out.ErrorCode = kerr.UnknownTopicID.Code
			return out
		}
	}
	if t, ok := snap.Topic(name); ok {
		return metadataTopic(snap, t, listener, req)
	}
	out.Topic, out.IsInternal = &name, isInternal(name)
	out.ErrorCode = kerr.UnknownTopicOrPartition.Code
	if topicadmin.ValidateName(name) != nil {
		out.ErrorCode = kerr.InvalidTopicException.Code
	} else if (req.Version < 4 || req.AllowAutoTopicCreation) && s.Static.Values().Bool("auto.create.topics.enable") {
		out.ErrorCode = s.autoCreate(ctx, snap, name)
	}
	return out
}

// autoCreate makes a topic with the broker's defaults and returns what the client is told: to try again.
func (s *Service) autoCreate(ctx context.Context, snap *metadata.Snapshot, name string) int16 {
	values := s.Static.Values()
	err := s.createWithDefaults(ctx, snap, name, int32(values.Int("num.partitions")), int16(values.Int("default.replication.factor")), nil)
	switch {
	case err == nil, errors.Is(err, kerr.TopicAlreadyExists):
		return kerr.LeaderNotAvailable.Code
	default:
		code, _ := s.codeOf(err)
		return code
	}
}

// createWithDefaults makes a topic, choosing its replicas.
func (s *Service) createWithDefaults(ctx context.Context, snap *metadata.Snapshot, name string, partitions int32, factor int16, configs map[string]string) error {
	if err := s.Topics.CheckNew(ctx, name, snap.TopicNames()); err != nil {
		return err
	}
	brokers := snap.Brokers()
	assignment, err := topicadmin.Assign(brokers, int(partitions), int(factor), topicadmin.RandomSpread(len(brokers)))
	if err != nil {
		return err
	}
	_, err = s.Topics.Create(ctx, name, assignment, configs)
	return err
}

// EnsureTopic makes a topic unless it exists, for the coordinators' own topics.
func (s *Service) EnsureTopic(ctx context.Context, name string, partitions int32, factor int16, configs map[string]string) error {
	err := s.createWithDefaults(ctx, s.Metadata.Snapshot(), name, partitions, factor, configs)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

// metadataTopic answers for a topic of the cache.
func metadataTopic(snap *metadata.Snapshot, t *metadata.Topic, listener string, req *kmsg.MetadataRequest) kmsg.MetadataResponseTopic {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = &t.Name, t.ID, isInternal(t.Name)
	out.Partitions = snap.MetadataPartitions(t, listener)
	if req.Version < 6 {
		out.Partitions = forOldClients(out.Partitions, req.Version)
	}
	if req.Version >= 8 && req.IncludeTopicAuthorizedOperations {
		out.AuthorizedOperations = topicOperations
	}
	return out
}

// forOldClients translates errors that came later: LISTENER_NOT_FOUND is of version 6, and version 0 reports
// dead replicas, and leaves them out, since it has no list of offline ones.
func forOldClients(parts []kmsg.MetadataResponseTopicPartition, version int16) []kmsg.MetadataResponseTopicPartition {
	out := make([]kmsg.MetadataResponseTopicPartition, len(parts))
	for i, p := range parts {
		if p.ErrorCode == kerr.ListenerNotFound.Code {
			p.ErrorCode = kerr.LeaderNotAvailable.Code
		}
		if version == 0 && len(p.OfflineReplicas) > 0 {
			live := len(p.Replicas)
			p.Replicas, p.ISR = without(p.Replicas, p.OfflineReplicas), without(p.ISR, p.OfflineReplicas)
			if p.ErrorCode == 0 && len(p.Replicas) < live {
				p.ErrorCode = kerr.ReplicaNotAvailable.Code
			}
		}
		out[i] = p
	}
	return out
}

func without(ids, gone []int32) []int32 {
	out := make([]int32, 0, len(ids))
next:
	for _, id := range ids {
		for _, g := range gone {
			if id == g {
				continue next
			}
		}
		out = append(out, id)
	}
	return out
}
