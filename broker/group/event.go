package group

import (
	"time"

	"kctl/zkutil/cluster"
)

// RequestID names a request that waits for a reply. The caller makes them; 0 is never used.
type RequestID uint64

// AppendID names an Append effect. They grow, so they also order the writes of a shard.
type AppendID uint64

// Event is something that happened: a request, a timer, or the answer to an effect.
type Event interface{ when() time.Time }

// Protocol is one assignment strategy a member offers, with its metadata (for consumers: the subscription).
type Protocol struct {
	Name     string
	Metadata []byte
}

// Join is a JoinGroup request. MemberID is empty for a member that has none yet; Suffix makes its id.
type Join struct {
	At                   time.Time
	Request              RequestID
	Group                string
	MemberID             string
	InstanceID           *string // static membership (KIP-345)
	ClientID, ClientHost string
	Suffix               string        // random, a UUID in text form
	RequireKnownMemberID bool          // version >= 4 and no InstanceID (KIP-394)
	SkipAssignment       bool          // version >= 9: the member understands SkipAssignment (KIP-814)
	SessionTimeout       time.Duration // the member is removed after that long without a sign of life
	RebalanceTimeout     time.Duration // the longest wait for the members to rejoin
	ProtocolType         string
	Protocols            []Protocol
	Reason               string
}

// Assigned is what the leader of a group assigned to one member.
type Assigned struct {
	MemberID string
	Data     []byte
}

// Sync is a SyncGroup request; the leader's carries the assignment. ProtocolType and Protocol are checked
// when not nil (version >= 5).
type Sync struct {
	At           time.Time
	Request      RequestID
	Group        string
	MemberID     string
	InstanceID   *string
	Generation   int32
	ProtocolType *string
	Protocol     *string
	Assignments  []Assigned
}

// Heartbeat is a Heartbeat request.
type Heartbeat struct {
	At         time.Time
	Request    RequestID
	Group      string
	MemberID   string
	InstanceID *string
	Generation int32
}

// Leaver names one member that leaves: by its id, or by its instance id alone (an administrator's removal).
type Leaver struct {
	MemberID   string
	InstanceID *string
	Reason     string
}

// Leave is a LeaveGroup request.
type Leave struct {
	At      time.Time
	Request RequestID
	Group   string
	Members []Leaver
}

// Offset is a committed position.
type Offset struct {
	Offset          int64
	LeaderEpoch     int32 // -1: unknown
	Metadata        string
	CommitTimestamp int64 // milliseconds
	ExpireTimestamp int64 // milliseconds; -1: by the retention of the broker
}

// PartitionOffset is an Offset of one partition.
type PartitionOffset struct {
	TP cluster.TopicPartition
	Offset
}

// NoProducer is the producer id of an ordinary commit.
const NoProducer int64 = -1

// CommitOffsets is an OffsetCommit request, or a TxnOffsetCommit when ProducerID is not NoProducer.
// Generation is -1 and MemberID empty for a consumer without group management.
type CommitOffsets struct {
	At            time.Time
	Request       RequestID
	Group         string
	MemberID      string
	InstanceID    *string
	Generation    int32
	ProducerID    int64
	ProducerEpoch int16
	Offsets       []PartitionOffset
}

// EndTransaction is the arrival of a transaction marker in this shard's partition: the offsets that the
// producer committed in its transaction become visible or are dropped, in every group of the shard.
type EndTransaction struct {
	At         time.Time
	ProducerID int64
	Commit     bool
}

// DeleteGroup is one group of a DeleteGroups request.
type DeleteGroup struct {
	At      time.Time
	Request RequestID
	Group   string
}

// DeleteOffsets is an OffsetDelete request (KIP-496).
type DeleteOffsets struct {
	At         time.Time
	Request    RequestID
	Group      string
	Partitions []cluster.TopicPartition
}

// Expire asks for the removal of offsets past their retention and of groups that are empty and have none.
type Expire struct{ At time.Time }

// TopicsDeleted says that topics are gone: their offsets are removed from every group.
type TopicsDeleted struct {
	At     time.Time
	Topics []string
}

// TimerFired answers ArmTimer.
type TimerFired struct {
	At    time.Time
	Timer TimerID
}

// Appended answers Append. None means committed by all in-sync replicas.
type Appended struct {
	At   time.Time
	ID   AppendID
	Code Code
}

// Unload says that the broker no longer leads the partition: all who wait are answered, all state dropped.
type Unload struct{ At time.Time }

func (e Join) when() time.Time           { return e.At }
func (e Sync) when() time.Time           { return e.At }
func (e Heartbeat) when() time.Time      { return e.At }
func (e Leave) when() time.Time          { return e.At }
func (e CommitOffsets) when() time.Time  { return e.At }
func (e EndTransaction) when() time.Time { return e.At }
func (e DeleteGroup) when() time.Time    { return e.At }
func (e DeleteOffsets) when() time.Time  { return e.At }
func (e Expire) when() time.Time         { return e.At }
func (e TopicsDeleted) when() time.Time  { return e.At }
func (e TimerFired) when() time.Time     { return e.At }
func (e Appended) when() time.Time       { return e.At }
func (e Unload) when() time.Time         { return e.At }
