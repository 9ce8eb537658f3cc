package controller

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// Effect is one output of Step. Effects of one Step are carried out in their order.
type Effect interface{ effect() }

// ZK asks for Requests to be run pipelined, in order, in the named session; the requests of one ZK effect
// go out before those of the next. The answer is ZKDone with the same ID; an unknown outcome is a response with
// zkop.ErrOutcomeUnknown, never a retry by the runner.
type ZK struct {
	ID       uint64
	Session  uint64
	Requests []zkop.Request
}

// Connect says that a broker takes part from now on: open a connection and a sender for it. It precedes
// every Send to that broker incarnation.
type Connect struct{ Broker cluster.Broker }

// Disconnect says that a broker incarnation is gone. An unanswered Send to it needs no answer any more
// (one that comes is ignored).
type Disconnect struct{ Broker cluster.BrokerID }

// Send asks for Request to be sent to a broker; its version is set. At most one Send per broker is
// unanswered. Slices inside Request may be shared with other Sends: read only. The answer is Answered with
// the same Token.
type Send struct {
	Broker  cluster.BrokerID
	Epoch   cluster.BrokerEpoch
	Token   uint64
	Request kmsg.Request
}

// RecallTopicIDs asks by which ids this broker itself knows topics whose nodes have none. The answer is TopicIDsRecalled with the same ID.
type RecallTopicIDs struct {
	ID     uint64
	Topics []string
}

// ArmTimer asks for TimerFired at (or soon after) At. Arming an armed timer moves it.
type ArmTimer struct {
	Timer Timer
	At    time.Time
}

// CancelTimer disarms a timer; a TimerFired already under way is harmless.
type CancelTimer struct{ Timer Timer }

// Timer names a timer. Broker is set for the per-broker kinds only.
type Timer struct {
	Kind   TimerKind
	Broker cluster.BrokerID
}

// TimerKind is the purpose of a Timer.
type TimerKind uint8

// The timers of the controller.
const (
	// TimerTransition is due when the oldest unconfirmed decision passes leader.transition.timeout.ms.
	TimerTransition TimerKind = iota + 1
	// TimerRebalance runs the preferred leader check.
	TimerRebalance
	// TimerResend lets a broker's next request go after a failed or refused one.
	TimerResend
	// TimerZKRetry repeats a ZooKeeper round whose connection broke.
	TimerZKRetry
	// TimerElect makes a standby stand again after an unexpected failure.
	TimerElect
	// TimerRepair retries what could not be done: elections lost to a busy znode, halted topic deletions.
	TimerRepair
	// TimerHandover ends the wait of a ControlledShutdown for the new leaders.
	TimerHandover
)

// RaiseAlert says that a decision was not confirmed in time (V3 discussion 6g). The matching znode is
// written by a ZK effect of the core itself.
type RaiseAlert struct{ Alert znode.LeadershipAlert }

// ClearAlert says that the alert of a partition is over: the transition (or the one that replaced it)
// completed, or the topic is gone.
type ClearAlert struct{ Partition cluster.TopicPartition }

// Reply answers the request event with the same RequestID. Response has the request's version set.
type Reply struct {
	RequestID uint64
	Response  kmsg.Response
}

// Activated says that this broker is now the controller.
type Activated struct{ Epoch cluster.ControllerEpoch }

// Resigned says that the role ended. All connections are to be closed and all timers disarmed; the
// standby role goes on by itself if the session still lives.
type Resigned struct {
	Epoch  cluster.ControllerEpoch
	Reason string
}

// JobStarted reports how long a unit of work waited in the controller's queue (EventQueueTimeMs).
type JobStarted struct {
	Kind   string
	Waited time.Duration
}

// Note is a happening worth a log line and a counter. Unused fields are zero.
type Note struct {
	Kind      NoteKind
	Partition cluster.TopicPartition
	Broker    cluster.BrokerID
	Count     int
	Reason    string
}

// NoteKind names a happening; its text is the log message.
type NoteKind string

// The happenings.
const (
	NoteBrokerFailed        NoteKind = "broker failed"
	NoteBrokerStarted       NoteKind = "broker started"
	NoteBrokerBounced       NoteKind = "broker bounced"
	NoteBrokerStopping      NoteKind = "broker is shutting down"
	NoteElections           NoteKind = "leaders elected"
	NoteUncleanElection     NoteKind = "unclean leader elected, records may be lost"
	NoteNoLeader            NoteKind = "no eligible leader"
	NoteReplicaOffline      NoteKind = "replica offline, its log directory failed"
	NoteTopicCreated        NoteKind = "topic created"
	NoteTopicExpanded       NoteKind = "partitions added to topic"
	NoteTopicDeleting       NoteKind = "topic deletion started"
	NoteTopicHalted         NoteKind = "topic deletion waits"
	NoteTopicDeleted        NoteKind = "topic deleted"
	NoteISRChanged          NoteKind = "ISR changed by leaders"
	NoteRefusedWrite        NoteKind = "partition state was written by a newer controller"
	NoteBadZnode            NoteKind = "znode could not be understood"
	NoteRequestRefused      NoteKind = "broker refused a control request"
	NoteFailover            NoteKind = "controller loaded the cluster"
	NoteRebalance           NoteKind = "preferred leader rebalance"
	NoteRemovalRefused      NoteKind = "partitions cannot be removed, assignment written back"
	NoteReassigning         NoteKind = "reassignment under way"
	NoteReassigned          NoteKind = "reassignment completed"
	NoteReassignmentDropped NoteKind = "reassignment request dropped"
	NoteElectionFailed      NoteKind = "controller election failed"
)

func (ZK) effect()             {}
func (Connect) effect()        {}
func (Disconnect) effect()     {}
func (Send) effect()           {}
func (RecallTopicIDs) effect() {}
func (ArmTimer) effect()       {}
func (CancelTimer) effect()    {}
func (RaiseAlert) effect()     {}
func (ClearAlert) effect()     {}
func (Reply) effect()          {}
func (Activated) effect()      {}
func (Resigned) effect()       {}
func (JobStarted) effect()     {}
func (Note) effect()           {}
