package group

import (
	"time"

	"kctl/zkutil/cluster"
)

// Effect is something the caller must do, in order.
type Effect interface{ effect() }

// JoinedMember is one entry of the list that the leader of a group gets.
type JoinedMember struct {
	MemberID   string
	InstanceID *string
	Metadata   []byte
}

// JoinReply answers Join. Members is filled for the leader only. Protocol is nil when there is none.
type JoinReply struct {
	Request        RequestID
	Code           Code
	Generation     int32 // -1 with an error
	ProtocolType   *string
	Protocol       *string
	Leader         string
	MemberID       string
	SkipAssignment bool
	Members        []JoinedMember
}

// SyncReply answers Sync.
type SyncReply struct {
	Request      RequestID
	Code         Code
	ProtocolType *string
	Protocol     *string
	Assignment   []byte
}

// HeartbeatReply answers Heartbeat.
type HeartbeatReply struct {
	Request RequestID
	Code    Code
}

// Left is the outcome for one member of a Leave.
type Left struct {
	MemberID   string
	InstanceID *string
	Code       Code
}

// LeaveReply answers Leave. Members is empty when Code is an error.
type LeaveReply struct {
	Request RequestID
	Code    Code
	Members []Left
}

// CommitReply answers CommitOffsets: one code per offset, in the order of the request.
type CommitReply struct {
	Request RequestID
	Codes   []Code
}

// DeleteGroupReply answers DeleteGroup.
type DeleteGroupReply struct {
	Request RequestID
	Code    Code
}

// DeleteOffsetsReply answers DeleteOffsets: one code per partition in the order of the request; none when
// Code is an error.
type DeleteOffsetsReply struct {
	Request RequestID
	Code    Code
	Codes   []Code
}

// TimerKind says what a timer is for.
type TimerKind uint8

// The timers: the life sign of a member or of a pending member id, the end of a rebalance's join phase,
// and the end of its sync phase.
const (
	MemberTimer TimerKind = iota + 1
	PendingMemberTimer
	JoinTimer
	SyncTimer
)

// String returns a short name for scripts and logs.
func (k TimerKind) String() string {
	return [...]string{"", "member", "pending", "join", "sync"}[k]
}

// TimerID names a timer. Member is empty for JoinTimer and SyncTimer.
type TimerID struct {
	Kind   TimerKind
	Group  string
	Member string
}

// ArmTimer asks for a TimerFired at At or soon after.
type ArmTimer struct {
	Timer TimerID
	At    time.Time
}

// MemberRecord is a member in a GroupRecord.
type MemberRecord struct {
	MemberID         string
	InstanceID       *string
	ClientID         string
	ClientHost       string
	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration
	Subscription     []byte
	Assignment       []byte
}

// GroupRecord is a group as it is stored. Tombstone means that the group is gone; nothing else is set then.
type GroupRecord struct {
	Group          string
	Tombstone      bool
	ProtocolType   string // empty: none
	Protocol       *string
	Leader         *string
	Generation     int32
	StateTimestamp int64 // milliseconds; -1: unknown
	Members        []MemberRecord
}

// OffsetRecord is a committed offset as it is stored, or its tombstone.
type OffsetRecord struct {
	Group     string
	TP        cluster.TopicPartition
	Tombstone bool
	Offset
}

// Append asks that records be appended to the shard's partition as one batch. Exactly one of the record
// lists or both may be filled; Offsets come first in the log. The batch is transactional when ProducerID
// is not NoProducer. It is answered by Appended.
type Append struct {
	ID            AppendID
	Offsets       []OffsetRecord
	Groups        []GroupRecord
	ProducerID    int64
	ProducerEpoch int16
}

// NoteKind says what a Note tells.
type NoteKind uint8

// The notes.
const (
	NoteRebalancing NoteKind = iota + 1 // a rebalance starts
	NoteGeneration                      // all who will have joined; a new generation begins
	NoteStable                          // the assignment is stored and handed out
	NoteEmpty                           // the last member is gone
	NoteMemberRemoved
	NoteOffsetsExpired
	NoteGroupRemoved
	NoteAppendFailed
)

var noteNames = [...]string{"", "rebalancing", "generation", "stable", "empty", "member-removed",
	"offsets-expired", "group-removed", "append-failed"}

// String returns the stable name used in logs and metrics.
func (k NoteKind) String() string { return noteNames[k] }

// Note tells a happening that is worth a log line and a counter. It needs no answer.
type Note struct {
	Kind       NoteKind
	Group      string
	Generation int32
	Member     string
	Reason     string
	Count      int
}

func (JoinReply) effect()          {}
func (SyncReply) effect()          {}
func (HeartbeatReply) effect()     {}
func (LeaveReply) effect()         {}
func (CommitReply) effect()        {}
func (DeleteGroupReply) effect()   {}
func (DeleteOffsetsReply) effect() {}
func (ArmTimer) effect()           {}
func (Append) effect()             {}
func (Note) effect()               {}
