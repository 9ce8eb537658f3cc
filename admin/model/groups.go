package model

import (
	"time"

	"kctl/zkutil/cluster"
)

// GroupType is the protocol that a group speaks.
type GroupType string

// The types of groups. Consumer groups are those of KIP-848, share groups those of KIP-932, streams groups
// those of KIP-1071; everything before is classic.
const (
	GroupClassic  GroupType = "classic"
	GroupConsumer GroupType = "consumer"
	GroupShare    GroupType = "share"
	GroupStreams  GroupType = "streams"
)

// The states of a group that decide what may be done with it.
const (
	GroupEmpty = "Empty"
	GroupDead  = "Dead" // it does not exist
)

// Group is one group as its coordinator describes it.
type Group struct {
	ID           string
	Type         GroupType
	State        string // the coordinator's word, such as Stable or Empty
	ProtocolType string // consumer, connect, ...; empty for a group that only keeps offsets
	Protocol     string // the assignor
	Coordinator  cluster.BrokerID
	Epoch        int32 // group epoch; -1 for a classic group
	TargetEpoch  int32 // epoch of the target assignment; -1 for a classic group
	Members      []GroupMember
	Err          string
}

// Active reports whether members may be at work, so that offsets must not be changed.
func (g *Group) Active() bool { return g.Err == "" && g.State != GroupEmpty && g.State != GroupDead }

// GroupMember is one member of a group.
type GroupMember struct {
	ID         string
	InstanceID string // group.instance.id; empty for a dynamic member
	ClientID   string
	Host       string // without the slash that brokers put in front
	Rack       string
	Epoch      int32    // -1 for a classic member
	Subscribed []string // topics, as far as the coordinator tells
	Assigned   []cluster.TopicPartition
	Target     []cluster.TopicPartition // what it is to get; nil for a classic member
}

// CommittedOffset is one offset that a group committed.
type CommittedOffset struct {
	Topic       string
	Partition   int32
	Offset      int64 // -1: none
	LeaderEpoch int32
	Metadata    string
}

// TP returns the partition.
func (o CommittedOffset) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: o.Topic, Partition: o.Partition}
}

// GroupPosition is how far a group is in one partition. Offsets are -1 when not known.
type GroupPosition struct {
	Group     string
	Topic     string
	Partition int32
	Member    GroupMember // zero: nobody reads this partition
	Committed int64
	LogStart  int64
	LogEnd    int64 // the leader's high watermark: what a consumer can reach
	Lag       int64 // LogEnd minus Committed, never below 0; -1 when there is nothing committed
	LagMs     int64 // age of the first record not read; 0 without lag, -1 when not known or not asked for
	Err       string
}

// TransactionState is one transactional id as its coordinator describes it.
type TransactionState struct {
	ID            string
	Coordinator   cluster.BrokerID
	ProducerID    int64
	ProducerEpoch int16
	State         string // Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, ...
	Timeout       time.Duration
	Started       time.Time // zero: none is under way
	Partitions    []cluster.TopicPartition
	Err           string
}

// OpenTransaction is a transaction that a partition's log holds open: consumers with read_committed do not
// get past its start.
type OpenTransaction struct {
	Topic            string
	Partition        int32
	Broker           cluster.BrokerID // the leader that was asked
	ProducerID       int64
	ProducerEpoch    int32
	CoordinatorEpoch int32
	StartOffset      int64
	LastTimestamp    time.Time
	TransactionalID  string // empty: no coordinator knows the producer id
	Reason           string // why it is taken to be hanging
}
