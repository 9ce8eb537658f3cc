package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"kctl/broker/config"
	"kctl/broker/metadata"
	"kctl/broker/topicadmin"
	"kctl/zkutil/cluster"
)

// CreateTopics makes topics and answers when this broker's cache shows their leaders, or at the time-out. Only
// the controller serves it, as in Apache Kafka's ZooKeeper mode; others answer NOT_CONTROLLER.
//
//	v1      validate_only and messages; v4 -1 for the broker's defaults (KIP-464)
//	v5      what was created: partitions, replicas, configs (KIP-525); v7 topic id
var createTopicsAPI = definition{key: 19, min: 0, max: 7, handle: (*Service).createTopics}

const (
	// topicWorkers bounds the topics of one request that are written to ZooKeeper at the same time.
	topicWorkers = 32
	// newPartitionsMax bounds the partitions of one topic: more do not fit into a znode.
	newPartitionsMax = 100_000
)

func (s *Service) createTopics(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	resp.Topics = make([]kmsg.CreateTopicsResponseTopic, len(req.Topics))
	active := s.Controller.IsActive()
	times := make(map[string]int, len(req.Topics))
	for i := range req.Topics {
		times[req.Topics[i].Topic]++
	}
	snap := s.Metadata.Snapshot()
	var g errgroup.Group
	g.SetLimit(topicWorkers)
	for i := range req.Topics {
		out, t := &resp.Topics[i], &req.Topics[i]
		*out = newCreateTopicsResult(t.Topic)
		switch {
		case !active:
			out.ErrorCode = kerr.NotController.Code
		case times[t.Topic] > 1:
			out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, ptr("Create topics request from client contains multiple entries for the following topic.")
		default:
			g.Go(func() error {
				if err := s.createTopic(ctx, snap, t, req.ValidateOnly, out); err != nil {
					out.ErrorCode, out.ErrorMessage = s.codeOf(err)
				}
				return nil
			})
		}
	}
	_ = g.Wait() // the functions return nil
	if active && !req.ValidateOnly {
		s.awaitCreated(ctx, req, resp)
	}
	return resp
}

func newCreateTopicsResult(topic string) kmsg.CreateTopicsResponseTopic {
	out := kmsg.NewCreateTopicsResponseTopic()
	out.Topic = topic
	out.NumPartitions, out.ReplicationFactor = -1, -1
	out.Configs = []kmsg.CreateTopicsResponseTopicConfig{} // null makes the Java client fail
	return out
}

// createTopic checks one topic and, unless dry, writes it.
func (s *Service) createTopic(ctx context.Context, snap *metadata.Snapshot, t *kmsg.CreateTopicsRequestTopic, dry bool, out *kmsg.CreateTopicsResponseTopic) error {
	if err := s.Topics.CheckNew(ctx, t.Topic, snap.TopicNames()); err != nil {
		return err
	}
	configs, err := createConfigs(t)
	if err != nil {
		return err
	}
	assignment, err := s.createAssignment(snap, t)
	if err != nil {
		return err
	}
	if !dry {
		id, err := s.Topics.Create(ctx, t.Topic, assignment, configs)
		if err != nil {
			return err
		}
		out.TopicID = id
	}
	out.NumPartitions, out.ReplicationFactor = int32(len(assignment)), int16(len(assignment[0]))
	for _, e := range s.Dynamic.DescribeTopic(configs, nil) {
		k := kmsg.NewCreateTopicsResponseTopicConfig()
		k.Name, k.Value, k.Source = e.Name, e.Value, int8(e.Source)
		out.Configs = append(out.Configs, k)
	}
	return nil
}

func createConfigs(t *kmsg.CreateTopicsRequestTopic) (map[string]string, error) {
	out := make(map[string]string, len(t.Configs))
	for _, kv := range t.Configs {
		if kv.Value == nil {
			return nil, topicadmin.Refuse(kerr.InvalidConfig, "Null value not supported for topic configs: "+kv.Name)
		}
		out[kv.Name] = *kv.Value
	}
	return out, config.ValidateTopic(out)
}

// createAssignment takes the client's replica lists, or chooses.
func (s *Service) createAssignment(snap *metadata.Snapshot, t *kmsg.CreateTopicsRequestTopic) (map[int32][]cluster.BrokerID, error) {
	if len(t.ReplicaAssignment) > 0 {
		if t.NumPartitions != -1 || t.ReplicationFactor != -1 {
			return nil, topicadmin.Refuse(kerr.InvalidRequest, "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time.")
		}
		out := make(map[int32][]cluster.BrokerID, len(t.ReplicaAssignment))
		for _, a := range t.ReplicaAssignment {
			if _, twice := out[a.Partition]; twice {
				return nil, topicadmin.Refuse(kerr.InvalidReplicaAssignment, "A partition is named twice in the assignment.")
			}
			out[a.Partition] = cluster.IDsFromInt32(a.Replicas)
		}
		return out, topicadmin.CheckAssignment(out, 0, snap.IsAlive)
	}
	partitions, factor := int(t.NumPartitions), int(t.ReplicationFactor)
	if partitions == -1 {
		partitions = s.Static.Values().Int("num.partitions")
	}
	if factor == -1 {
		factor = s.Static.Values().Int("default.replication.factor")
	}
	if partitions > newPartitionsMax {
		return nil, topicadmin.Refuse(kerr.InvalidPartitions, "Number of partitions must not be larger than 100000.")
	}
	brokers := snap.Brokers()
	return topicadmin.Assign(brokers, partitions, factor, topicadmin.RandomSpread(len(brokers)))
}

// awaitCreated waits until all created partitions have leaders here; those that have none at the time-out are
// answered with REQUEST_TIMED_OUT, though they will come to be.
func (s *Service) awaitCreated(ctx context.Context, req *kmsg.CreateTopicsRequest, resp *kmsg.CreateTopicsResponse) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(0, req.TimeoutMillis))*time.Millisecond)
	defer cancel()
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.ErrorCode != 0 {
			continue
		}
		if s.Metadata.Wait(ctx, func(snap *metadata.Snapshot) bool { return snap.HasLeaders(t.Topic, int(t.NumPartitions)) }) != nil {
			t.ErrorCode = kerr.RequestTimedOut.Code
		}
	}
}
