package replica

import (
	"time"

	"kctl/zkutil/cluster"
)

// Event is something that happened to a partition. Events are plain values; see the types of this file.
type Event interface{ event() }

// LeaderAndISR is the controller's decision about this partition, from a LeaderAndISR request. The request
// was already checked for its controller and broker epochs. Answered by one Answer effect, possibly after
// the log was opened.
type LeaderAndISR struct {
	At              time.Time
	ControllerEpoch cluster.ControllerEpoch // of the decision
	Leader          cluster.BrokerID        // cluster.NoLeader when there is none
	LeaderEpoch     cluster.LeaderEpoch
	ISR             []cluster.BrokerID
	ZKVersion       cluster.ZKVersion // of the state znode at the decision: the next ISR write needs no read (V3 2.7)
	Replicas        []cluster.BrokerID
	Adding          []cluster.BrokerID
	Removing        []cluster.BrokerID
	IsNew           bool
	TopicID         cluster.TopicID // zero: not told
}

// StopReplica tells the broker to stop serving the partition and, with Delete, to drop its log. LeaderEpoch
// is cluster.NoLeaderEpoch or cluster.EpochDuringDelete to skip the check (KIP-570). Answered by one Answer.
type StopReplica struct {
	At          time.Time
	LeaderEpoch cluster.LeaderEpoch
	Delete      bool
}

// LogOpened answers OpenLog. End and the others describe the log as it was recovered; HighWatermark is the
// checkpointed one, or LogStart when there is none.
type LogOpened struct {
	At            time.Time
	LogStart      int64
	LogEnd        int64
	HighWatermark int64
	LastEpoch     cluster.LeaderEpoch // of the last record; NoLeaderEpoch when there is none or it is unknown
	EmptyEpoch    bool                // the epoch cache ends with an epoch that has no records
	TopicID       cluster.TopicID     // of partition.metadata; zero when it holds none
	Failed        bool                // the log directory is offline
}

// EpochStartAssigned answers AssignEpochStart.
type EpochStartAssigned struct {
	At     time.Time
	Failed bool // the log directory is offline
}

// Truncated answers TruncateTo and TruncateFullyAndStartAt with the log as it is now.
type Truncated struct {
	At        time.Time
	LogStart  int64
	LogEnd    int64
	LastEpoch cluster.LeaderEpoch
	Failed    bool
}

// LogStartAdvanced answers AdvanceLogStart, and reports that retention or DeleteRecords moved the start.
type LogStartAdvanced struct {
	At       time.Time
	LogStart int64
	Failed   bool
}

// LogFailed reports that the partition's log directory went offline.
type LogFailed struct{ At time.Time }

// ConfigChanged brings the topic's min.insync.replicas, also at the start.
type ConfigChanged struct {
	At        time.Time
	MinInSync int
}

// Appended reports that this leader appended records; LogEnd is the log's new end.
type Appended struct {
	At     time.Time
	LogEnd int64
}

// FollowerFetched reports a follower's fetch that CheckFetch let pass without a diverging epoch: it holds
// everything below FetchOffset. Alive says whether the broker is registered, as far as this broker knows.
type FollowerFetched struct {
	At          time.Time
	Replica     cluster.BrokerID
	FetchOffset int64
	LogStart    int64
	Alive       bool
	// ReplicaEpoch is the broker epoch the follower sent (Fetch v15+), NoBrokerEpoch when it sent none. It
	// tells a follower that came back with an empty disk from a fetch that was delayed (KIP-903).
	ReplicaEpoch cluster.BrokerEpoch
}

// FollowerSeen reports that a follower whose fetch is parked at the end of the log was in contact at At.
// It stands for the empty fetches that an incremental fetch session leaves out.
type FollowerSeen struct {
	At      time.Time
	Replica cluster.BrokerID
	Alive   bool
}

// HigherEpochSeen reports that a follower fetched with a leader epoch above ours: the controller has decided
// and we have not been told. Only replicas' fetches count, since any client can make up an epoch.
type HigherEpochSeen struct {
	At          time.Time
	Replica     cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
}

// ReplicaDown reports that a broker's registration is gone.
type ReplicaDown struct {
	At      time.Time
	Replica cluster.BrokerID
}

// Tick is the passing of time; it drives ISR shrinking and is due every half of replica.lag.time.max.ms.
type Tick struct{ At time.Time }

// Outcome is what became of a conditional write.
type Outcome uint8

// The outcomes. Refused: the version did not match, or the node is gone. Unknown: the reply was lost.
const (
	Written Outcome = iota + 1
	Refused
	Unknown
)

// ISRWritten answers WriteISR. IfVersion is that of the effect, Version the node's new one when Written.
type ISRWritten struct {
	At        time.Time
	IfVersion cluster.ZKVersion
	Outcome   Outcome
	Version   cluster.ZKVersion
}

// StateRead answers ReadState.
type StateRead struct {
	At time.Time
	// OK is false when ZooKeeper could not be asked; the core asks again at the next Tick.
	OK bool
	// Gone is true when there is no state znode (any more), or when it does not parse.
	Gone    bool
	State   cluster.LeaderAndISR
	Version cluster.ZKVersion
}

// EpochEnd is the answer to "where does this leader epoch end": the largest epoch known that is not above
// the asked one, and the offset after its last record. Both are -1 when nothing is known.
type EpochEnd struct {
	Epoch  cluster.LeaderEpoch
	Offset int64
}

// UndefinedEpochEnd is the EpochEnd of an unknown epoch.
var UndefinedEpochEnd = EpochEnd{cluster.NoLeaderEpoch, -1}

// Known reports whether e names an epoch.
func (e EpochEnd) Known() bool { return e.Epoch >= 0 && e.Offset >= 0 }

// FetchAnswered is the leader's answer for this partition to a fetch at FetchOffset, after its records (if
// any) were appended. Answers to an earlier state of the log are ignored: the first three fields name the state.
type FetchAnswered struct {
	At            time.Time
	LeaderEpoch   cluster.LeaderEpoch // with which the fetch was sent
	FetchOffset   int64               // at which the fetch was sent
	FetchedEpoch  cluster.LeaderEpoch // last fetched epoch that was sent
	Code          Code
	HighWatermark int64 // of the leader
	LogStart      int64 // of the leader
	LogEnd        int64 // own, after the append
	LastEpoch     cluster.LeaderEpoch
	// Diverging is set when the leader's log parts from ours (KIP-595): the leader's end of the largest
	// epoch that is not above the one we fetched with. LocalEnd is our own log's answer for Diverging.Epoch.
	Diverging *EpochEnd
	LocalEnd  EpochEnd
	// AppendFailed says that the records could not be appended because they are corrupt or do not fit:
	// this partition alone backs off (KAFKA-8346).
	AppendFailed bool
}

// FetchLost reports that a fetch with LeaderEpoch may have reached the leader, but its answer has not come.
type FetchLost struct {
	At          time.Time
	LeaderEpoch cluster.LeaderEpoch
}

// LeaderAsked answers AskLeader.
type LeaderAsked struct {
	At          time.Time
	LeaderEpoch cluster.LeaderEpoch // with which was asked
	Code        Code                // CodeNone: the rest holds
	LogStart    int64               // the leader's
	LogEnd      int64               // the leader's
	EpochEnd    EpochEnd            // the leader's answer for our newest epoch
	LocalEnd    EpochEnd            // our own log's answer for EpochEnd.Epoch
}

func (LeaderAndISR) event()       {}
func (StopReplica) event()        {}
func (LogOpened) event()          {}
func (EpochStartAssigned) event() {}
func (Truncated) event()          {}
func (LogStartAdvanced) event()   {}
func (LogFailed) event()          {}
func (ConfigChanged) event()      {}
func (Appended) event()           {}
func (FollowerFetched) event()    {}
func (FollowerSeen) event()       {}
func (HigherEpochSeen) event()    {}
func (ReplicaDown) event()        {}
func (Tick) event()               {}
func (ISRWritten) event()         {}
func (StateRead) event()          {}
func (FetchAnswered) event()      {}
func (FetchLost) event()          {}
func (LeaderAsked) event()        {}
