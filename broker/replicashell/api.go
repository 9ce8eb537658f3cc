package replicashell

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// ProducePartition is one partition of a produce request: v2 batches as received, which the append modifies
// in place. TopicID is checked when set.
type ProducePartition struct {
	TP      cluster.TopicPartition
	TopicID cluster.TopicID
	Records []byte
}

// ProduceResult answers one ProducePartition. Err is a code of Kafka's protocol; offsets are -1 with an error.
type ProduceResult struct {
	TP             cluster.TopicPartition
	TopicID        cluster.TopicID
	Err            int16
	Message        string // for people; may be empty
	BaseOffset     int64
	LogAppendTime  int64 // ms, -1 with CreateTime
	LogStartOffset int64
	// Leader and LeaderEpoch tell the client where to go with NOT_LEADER_OR_FOLLOWER (KIP-951); -1: unknown.
	Leader      cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
}

// FetchParams are the fields of a Fetch request that hold for all partitions.
type FetchParams struct {
	ReplicaID    cluster.BrokerID // replica.Consumer (-1) for clients
	ReplicaEpoch cluster.BrokerEpoch
	MaxWait      time.Duration
	MinBytes     int32
	MaxBytes     int32
	// ReadCommitted bounds the answer by the last stable offset (isolation level 1).
	ReadCommitted bool
	ClientRack    string
	Version       int16
	// SessionID and SessionEpoch are those of the request (v7+): (0, -1) no session, (0, 0) a new one,
	// (id, n) the next incremental one, (id, -1) close and answer in full.
	SessionID    int32
	SessionEpoch int32
}

// FetchPartition is one partition of a Fetch request. In an incremental fetch only those that changed are
// named. TP.Topic may be empty when the topic id (v13+) is unknown to the caller: the answer is
// UNKNOWN_TOPIC_ID. Err, when not zero, is answered as it is and nothing is read (not authorised).
type FetchPartition struct {
	TP                 cluster.TopicPartition
	TopicID            cluster.TopicID
	FetchOffset        int64
	LogStartOffset     int64 // a follower's; -1 for consumers
	MaxBytes           int32
	CurrentLeaderEpoch cluster.LeaderEpoch // NoLeaderEpoch: not checked
	LastFetchedEpoch   cluster.LeaderEpoch // NoLeaderEpoch: not checked
	Err                int16
}

// FetchResult answers one partition. Records must be released by the caller once written.
type FetchResult struct {
	TP               cluster.TopicPartition
	TopicID          cluster.TopicID
	Err              int16
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	Diverging        *replica.EpochEnd
	// CurrentLeader and CurrentEpoch are set (not -1) with NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH.
	CurrentLeader cluster.BrokerID
	CurrentEpoch  cluster.LeaderEpoch
	Records       storage.Slice
}

// FetchAnswer answers a Fetch request. Results are grouped by topic; an incremental answer leaves out
// partitions without news. Err is of the whole request (fetch session errors).
type FetchAnswer struct {
	Err       int16
	SessionID int32
	Results   []FetchResult
}

// PartitionInfo describes one hosted partition for metrics, tools and tests.
type PartitionInfo struct {
	TP            cluster.TopicPartition
	Role          replica.Role
	Leader        cluster.BrokerID
	LeaderEpoch   cluster.LeaderEpoch
	ISR           []cluster.BrokerID
	Replicas      []cluster.BrokerID
	ZKVersion     cluster.ZKVersion
	LogStart      int64
	HighWatermark int64
	LogEnd        int64
	UnderMinISR   bool
}

// API is what the request handlers and coordinators use of a Manager; it is here to be read, and to be cut
// into smaller interfaces by consumers.
type API interface {
	Run(ctx context.Context) error
	HandleLeaderAndISR(ctx context.Context, req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse
	HandleStopReplica(ctx context.Context, req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse
	Produce(ctx context.Context, acks int16, timeout time.Duration, parts []ProducePartition, done func([]ProduceResult))
	Fetch(ctx context.Context, params FetchParams, parts []FetchPartition, forgotten []FetchPartition) FetchAnswer
	ListOffsets(ctx context.Context, req *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse
	OffsetForLeaderEpoch(ctx context.Context, req *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse
	DescribeLogDirs(ctx context.Context, req *kmsg.DescribeLogDirsRequest) *kmsg.DescribeLogDirsResponse
	DeleteRecords(ctx context.Context, req *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse
	AppendInternal(ctx context.Context, tp cluster.TopicPartition, batch []byte, requiredAcks int16) error
	ReadLog(tp cluster.TopicPartition, from int64, maxBytes int) (batches []byte, end int64, err error)
	Partition(tp cluster.TopicPartition) (PartitionInfo, bool)
	Partitions() []PartitionInfo
	ConfigChanged(topic string)
	BrokersChanged()
	Close(ctx context.Context) error
}
