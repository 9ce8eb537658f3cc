package replica

import "kctl/zkutil/cluster"

// Effect is something the caller must do. Effects are plain values; see the types of this file.
type Effect interface{ effect() }

// OpenLog opens the partition's log, or creates it. Answered by LogOpened. IsNew is the controller's word
// that the replica never existed: a broker with an offline log directory may create it elsewhere only then.
type OpenLog struct {
	TopicID cluster.TopicID
	IsNew   bool
}

// AssignEpochStart records in the epoch cache that Epoch begins at Offset. Answered by EpochStartAssigned.
type AssignEpochStart struct {
	Epoch  cluster.LeaderEpoch
	Offset int64
}

// TruncateTo drops everything at and above Offset, also epochs that begin there and have no records: with
// Offset at the log end that is all it does. Answered by Truncated.
type TruncateTo struct{ Offset int64 }

// TruncateFullyAndStartAt drops the whole log and starts an empty one at Offset. Answered by Truncated.
type TruncateFullyAndStartAt struct{ Offset int64 }

// AdvanceLogStart moves the log start up, never above the high watermark. Answered by LogStartAdvanced.
type AdvanceLogStart struct{ Offset int64 }

// DeleteLog closes and deletes the log. Not answered.
type DeleteLog struct{}

// SetHighWatermark hands the log the new high watermark and, on a leader, lets everything waiting below it
// go: produces with acks=all and consumers' fetches. Not answered.
type SetHighWatermark struct{ Offset int64 }

// WriteISR writes the state znode: same leader and leader epoch, another ISR, only if its version is
// IfVersion (V3 points 0.7, 1.7, 1.8). Answered by ISRWritten with the same IfVersion.
type WriteISR struct {
	Leader          cluster.BrokerID
	LeaderEpoch     cluster.LeaderEpoch
	ControllerEpoch cluster.ControllerEpoch
	ISR             []cluster.BrokerID
	IfVersion       cluster.ZKVersion
}

// ReadState reads the state znode back after a write that was refused or whose reply was lost. Answered by
// StateRead.
type ReadState struct{}

// NotifyISRChange tells the controller, in a batch, that this partition's ISR changed. Not answered.
type NotifyISRChange struct{}

// StartFetching begins to replicate from Leader at offset From. It replaces any earlier fetching of the
// partition. Requests carry LeaderEpoch as current leader epoch, and LastEpoch as last fetched epoch.
type StartFetching struct {
	Leader      cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
	From        int64
	LastEpoch   cluster.LeaderEpoch
}

// StopFetching ends replication of the partition: an answer still under way must not be appended.
type StopFetching struct{}

// FetchFrom moves a fetching that goes on: the next fetch is at Offset with LastEpoch.
type FetchFrom struct {
	Offset    int64
	LastEpoch cluster.LeaderEpoch
}

// BackOff holds this partition's fetching back for a while, that of others not. Retry counts from 1.
type BackOff struct {
	Code  Code // CodeNone for records that could not be appended
	Retry int
}

// AskLeader asks the leader for its log start, its log end and its end of the epoch LastEpoch, after it
// called our fetch offset out of range. Answered by LeaderAsked; LeaderEpoch is sent along as a check.
type AskLeader struct {
	Leader      cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
	LastEpoch   cluster.LeaderEpoch
}

// FailWaiting ends everything that waits on this partition as leader: produces get Code, fetches are
// looked at again. Not answered.
type FailWaiting struct{ Code Code }

// Answer is the error code for a LeaderAndISR or StopReplica event.
type Answer struct{ Code Code }

// RoleChanged tells that the partition now has this role at this epoch. The first effect of a become-leader
// or become-follower after its log is ready; group coordinators load and unload on it.
type RoleChanged struct {
	From, To    Role
	Leader      cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
	ISR         []cluster.BrokerID
	ZKVersion   cluster.ZKVersion
}

// ISRChanged reports a committed ISR change of this leader, for the log and the metrics.
type ISRChanged struct {
	From, To    []cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
	ZKVersion   cluster.ZKVersion
	Reason      ISRReason
}

// ISRChangeBlocked reports that the leader leaves its ISR alone until the controller speaks, because the
// state znode holds something else than it knows.
type ISRChangeBlocked struct {
	Wanted      []cluster.BrokerID
	IfVersion   cluster.ZKVersion
	Found       cluster.LeaderAndISR // zero when the znode is gone
	FoundAt     cluster.ZKVersion
	LeaderEpoch cluster.LeaderEpoch
}

// Deposed reports that followers carry a higher leader epoch, so this leader takes no more records.
type Deposed struct {
	LeaderEpoch cluster.LeaderEpoch
	Seen        cluster.LeaderEpoch
	Replica     cluster.BrokerID
}

// LogCut reports a truncation for the log and the metrics. BelowHighWatermark is only ever true after an
// unclean election.
type LogCut struct {
	From, To           int64
	HighWatermark      int64
	BelowHighWatermark bool
	Reason             CutReason
}

// ISRReason says why an ISR changed.
type ISRReason uint8

// The reasons.
const (
	Joined   ISRReason = iota + 1 // caught up
	Lagged                        // behind for longer than replica.lag.time.max.ms
	LostData                      // an ISR member fetched below the high watermark: its log was lost
	Told                          // by the controller, at the same leader epoch
)

// CutReason says why a follower cut its log.
type CutReason uint8

// The reasons.
const (
	DivergedFromLeader CutReason = iota + 1
	BelowLeaderStart             // all that we hold and that is the leader's lies below its log start
	NoEpochs                     // the log has records and no epochs: only what was committed is kept
)

func (OpenLog) effect()                 {}
func (AssignEpochStart) effect()        {}
func (TruncateTo) effect()              {}
func (TruncateFullyAndStartAt) effect() {}
func (AdvanceLogStart) effect()         {}
func (DeleteLog) effect()               {}
func (SetHighWatermark) effect()        {}
func (WriteISR) effect()                {}
func (ReadState) effect()               {}
func (NotifyISRChange) effect()         {}
func (StartFetching) effect()           {}
func (StopFetching) effect()            {}
func (FetchFrom) effect()               {}
func (BackOff) effect()                 {}
func (AskLeader) effect()               {}
func (FailWaiting) effect()             {}
func (Answer) effect()                  {}
func (RoleChanged) effect()             {}
func (ISRChanged) effect()              {}
func (ISRChangeBlocked) effect()        {}
func (Deposed) effect()                 {}
func (LogCut) effect()                  {}

// String says why in a few words.
func (r ISRReason) String() string {
	return [...]string{"none", "caught up", "lagging", "lost its data", "told by the controller"}[r]
}

// String says why in a few words.
func (r CutReason) String() string {
	return [...]string{"none", "diverged from leader", "below leader's log start", "no epochs known"}[r]
}
