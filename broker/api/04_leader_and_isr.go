package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// LeaderAndISR brings the controller's decisions: which partitions this broker leads or follows.
//
//	v1      is_new; v2 broker epoch (KIP-380), topics nested; v5 topic ids; v6 recovery state
var leaderAndISRAPI = definition{key: 4, min: 0, max: 7, handle: (*Service).leaderAndISR}

func (s *Service) leaderAndISR(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.LeaderAndISRRequest)
	// Creation leaves no configuration notification, so a topic's overrides are read when its first replica
	// comes here.
	if topics := s.unseenTopics(req); len(topics) > 0 {
		if err := s.refreshConfigs(ctx, topics); err != nil {
			s.log.Warn("topic configurations cannot be read yet, defaults are used", obs.KeyCount, len(topics), obs.Err(err))
		}
	}
	return s.Replication.HandleLeaderAndISR(ctx, req)
}

// refreshTimeout bounds how long a decision of the controller waits for configurations: a broker that is cut off
// from ZooKeeper must still follow it, and reads them later.
const refreshTimeout = 5 * time.Second

func (s *Service) refreshConfigs(ctx context.Context, topics []string) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return s.Dynamic.Refresh(ctx, topics...)
}

func (s *Service) unseenTopics(req *kmsg.LeaderAndISRRequest) []string {
	seen := make(map[string]bool)
	var out []string
	look := func(topic string, parts []kmsg.LeaderAndISRRequestTopicPartition) {
		for i := range parts {
			name := topic
			if name == "" {
				name = parts[i].Topic
			}
			if seen[name] || !s.NewReplica(cluster.TopicPartition{Topic: name, Partition: parts[i].Partition}) {
				continue
			}
			seen[name] = true
			out = append(out, name)
		}
	}
	look("", req.PartitionStates)
	for i := range req.TopicStates {
		look(req.TopicStates[i].Topic, req.TopicStates[i].PartitionStates)
	}
	return out
}
