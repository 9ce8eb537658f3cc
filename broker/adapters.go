package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/broker/group"
	"kctl/broker/groupshell"
	"kctl/broker/metadata"
	"kctl/broker/replicashell"
	"kctl/zkutil/cluster"
)

// groupLog is the group coordinator's way to the partitions of its topic.
type groupLog struct{ b *Broker }

func offsetsPartition(p int32) cluster.TopicPartition {
	return cluster.TopicPartition{Topic: groupshell.OffsetsTopic, Partition: p}
}

// Append appends with acks=all.
func (l groupLog) Append(ctx context.Context, partition int32, batch []byte, timeout time.Duration, done func(group.Code)) {
	parts := []replicashell.ProducePartition{{TP: offsetsPartition(partition), Records: batch}}
	l.b.replica.Produce(ctx, -1, timeout, parts, func(results []replicashell.ProduceResult) {
		done(group.Code(results[0].Err))
	})
}

// Range returns where a led partition's log starts and ends.
func (l groupLog) Range(partition int32) (start, end int64, err error) {
	info, ok := l.b.replica.Partition(offsetsPartition(partition))
	if !ok || info.Leader != l.b.id {
		return 0, 0, fmt.Errorf("partition %d of %s: %w", partition, groupshell.OffsetsTopic, kerr.NotLeaderForPartition)
	}
	return info.LogStart, info.LogEnd, nil
}

// Read returns whole batches from the one that holds offset on.
func (l groupLog) Read(_ context.Context, partition int32, offset int64, bytesMax int) ([]byte, error) {
	data, _, err := l.b.replica.ReadLog(offsetsPartition(partition), offset, bytesMax)
	return data, err
}

// groupMetadata is the group coordinator's view of the cluster.
type groupMetadata struct{ cache *metadata.Cache }

// PartitionCount counts a topic's partitions.
func (m groupMetadata) PartitionCount(topic string) (int32, bool) {
	t, ok := m.cache.Snapshot().Topic(topic)
	if !ok {
		return 0, false
	}
	return int32(len(t.Partitions)), true
}

// LeaderNode finds a partition's live leader and its address.
func (m groupMetadata) LeaderNode(tp cluster.TopicPartition, listener string) (groupshell.Node, bool) {
	id, e, ok := m.cache.Snapshot().LeaderEndpoint(tp, listener)
	if !ok {
		return groupshell.Node{}, false
	}
	return groupshell.Node{ID: id, Host: e.Host, Port: e.Port}, true
}

// groupTopics makes the coordinator's topic. It goes through the request handlers, which are built after the
// coordinator.
type groupTopics struct{ b *Broker }

// EnsureTopic creates the topic unless it exists.
func (t groupTopics) EnsureTopic(ctx context.Context, name string, partitions int32, factor int16, configs map[string]string) error {
	return t.b.api.EnsureTopic(ctx, name, partitions, factor, configs)
}
