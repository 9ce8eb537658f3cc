package groupshell

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/broker/group"
	"kctl/zkutil/cluster"
)

// OffsetsTopic is the topic that stores groups and offsets.
const OffsetsTopic = "__consumer_offsets"

// Log is the way to the partitions of __consumer_offsets that this broker leads.
type Log interface {
	// Append appends one record batch (offsets not yet set) as leader of the partition and calls done
	// exactly once: with group.None when all in-sync replicas have it, else with the error's code. done may
	// run before Append returns or later in another goroutine. Append must not block on replication.
	// Batches of one partition are appended in the order of the calls.
	Append(ctx context.Context, partition int32, batch []byte, timeout time.Duration, done func(group.Code))

	// Range returns the log start offset and the log end offset of a led partition.
	Range(partition int32) (start, end int64, err error)

	// Read returns batches from the one that holds offset on, about bytesMax of them, though never less than
	// one whole batch; a last batch that is cut off is ignored. The bytes are valid until the next Read of
	// the partition.
	Read(ctx context.Context, partition int32, offset int64, bytesMax int) ([]byte, error)
}

// Node is a broker's address for clients.
type Node struct {
	ID   cluster.BrokerID
	Host string
	Port int32
}

// Metadata is what the coordinator must know of the cluster.
type Metadata interface {
	// PartitionCount returns the number of partitions of a topic, false when it does not exist.
	PartitionCount(topic string) (int32, bool)
	// LeaderNode returns the live leader of a partition as the named listener's clients reach it.
	LeaderNode(tp cluster.TopicPartition, listener string) (Node, bool)
}

// Topics creates topics.
type Topics interface {
	// EnsureTopic creates the topic unless it exists. It need not wait until the topic has leaders.
	EnsureTopic(ctx context.Context, name string, partitions int32, replicationFactor int16, configs map[string]string) error
}

// Config holds the settings of the coordinator under Apache Kafka's names and defaults.
type Config struct {
	GroupMinSessionTimeout    time.Duration // group.min.session.timeout.ms, 6 s
	GroupMaxSessionTimeout    time.Duration // group.max.session.timeout.ms, 30 min
	GroupInitialRebalanceWait time.Duration // group.initial.rebalance.delay.ms, 3 s
	GroupMaxSize              int           // group.max.size, unlimited
	OffsetMetadataMaxBytes    int           // offset.metadata.max.bytes, 4096
	OffsetsRetention          time.Duration // offsets.retention.minutes, 7 days
	OffsetsRetentionCheck     time.Duration // offsets.retention.check.interval.ms, 10 min
	OffsetsCommitTimeout      time.Duration // offsets.commit.timeout.ms, 5 s
	OffsetsLoadBufferBytes    int           // offsets.load.buffer.size, 5 MiB
	OffsetsTopicPartitions    int32         // offsets.topic.num.partitions, 50
	OffsetsTopicReplication   int16         // offsets.topic.replication.factor, 3
	OffsetsTopicSegmentBytes  int32         // offsets.topic.segment.bytes, 100 MiB
}

// DefaultConfig returns Apache Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		GroupMinSessionTimeout:    6 * time.Second,
		GroupMaxSessionTimeout:    30 * time.Minute,
		GroupInitialRebalanceWait: 3 * time.Second,
		GroupMaxSize:              1<<31 - 1,
		OffsetMetadataMaxBytes:    4096,
		OffsetsRetention:          7 * 24 * time.Hour,
		OffsetsRetentionCheck:     10 * time.Minute,
		OffsetsCommitTimeout:      5 * time.Second,
		OffsetsLoadBufferBytes:    5 << 20,
		OffsetsTopicPartitions:    50,
		OffsetsTopicReplication:   3,
		OffsetsTopicSegmentBytes:  100 << 20,
	}
}

// Options are the dependencies of a Manager. Log, Metadata and Topics are required.
type Options struct {
	Config     Config
	Log        Log
	Metadata   Metadata
	Topics     Topics
	Logger     *slog.Logger          // nil: discard
	Registerer prometheus.Registerer // nil: metrics are kept but not exported
	Now        func() time.Time      // nil: time.Now
	NewID      func() string         // nil: a random UUID; makes the suffix of member ids
}

// ClientInfo describes who sent a request.
type ClientInfo struct {
	ClientID string
	Host     string // as Kafka shows it: a slash and the address
	Listener string // the listener it came in by; FindCoordinator answers with that listener's addresses
}
