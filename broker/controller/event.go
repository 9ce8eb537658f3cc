package controller

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// Event is one input of Step. Every event carries the time at which it happened.
type Event interface{ at() time.Time }

// SessionStarted says that this broker is registered in a new ZooKeeper session and may stand for
// election in it. Seed is fresh randomness, for the ids of topics that have none.
type SessionStarted struct {
	At      time.Time
	Session uint64 // zkutil.Session.Epoch; never 0
	// SessionID is ZooKeeper's own id: by it the core recognises its own ephemeral node after a lost reply.
	SessionID int64
	Seed      [16]byte
}

// SessionEnded says that the session can no longer be trusted (expired, presumed lost, closing). An active
// controller stops acting on it at once; nothing is sent or written afterwards.
type SessionEnded struct {
	At     time.Time
	Reason string
}

// WatchFired is a fired ZooKeeper watch, of whatever owner: paths that are not ours are ignored.
type WatchFired struct {
	At    time.Time
	Event zkop.Event
}

// ZKDone answers the ZK effect with the same ID: one response per request, in order.
type ZKDone struct {
	At        time.Time
	ID        uint64
	Responses []zkop.Response
}

// TopicIDsRecalled answers the RecallTopicIDs effect with the same ID. IDs has those that are known; the others are missing.
type TopicIDsRecalled struct {
	At  time.Time
	ID  uint64
	IDs map[string]cluster.TopicID
}

// Answered answers the Send effect with the same Token. With Err set the outcome is unknown: the request
// may or may not have reached the broker. Exactly one of Response and Err is set.
type Answered struct {
	At       time.Time
	Broker   cluster.BrokerID
	Token    uint64
	Response kmsg.Response
	Err      error
}

// TimerFired says that a timer armed by ArmTimer is due.
type TimerFired struct {
	At    time.Time
	Timer Timer
}

// ControlledShutdownRequested is a broker's wish to stop (KAFKA_FACTS 2.11). Answered by Reply.
type ControlledShutdownRequested struct {
	At        time.Time
	RequestID uint64
	Request   *kmsg.ControlledShutdownRequest
}

// AlterPartitionRequested is a leader's ISR change through the controller (KIP-497). Answered by Reply.
type AlterPartitionRequested struct {
	At        time.Time
	RequestID uint64
	Request   *kmsg.AlterPartitionRequest
}

// ElectLeadersRequested asks for preferred or unclean elections (KIP-460). Answered by Reply as soon as the
// elections are durable in ZooKeeper.
type ElectLeadersRequested struct {
	At        time.Time
	RequestID uint64
	Request   *kmsg.ElectLeadersRequest
}

// AlterReassignmentsRequested begins, changes and cancels reassignments (KIP-455). Answered by Reply when the
// first step of each is durable in ZooKeeper.
type AlterReassignmentsRequested struct {
	At        time.Time
	RequestID uint64
	Request   *kmsg.AlterPartitionAssignmentsRequest
}

// ListReassignmentsRequested asks which reassignments are under way. Answered by Reply.
type ListReassignmentsRequested struct {
	At        time.Time
	RequestID uint64
	Request   *kmsg.ListPartitionReassignmentsRequest
}

// TopicConfigChanged says that the dynamic configs of a topic changed; enabling unclean leader election
// elects leaders for its offline partitions. An empty Topic means every topic (the default changed).
type TopicConfigChanged struct {
	At    time.Time
	Topic string
}

func (e SessionStarted) at() time.Time              { return e.At }
func (e SessionEnded) at() time.Time                { return e.At }
func (e WatchFired) at() time.Time                  { return e.At }
func (e ZKDone) at() time.Time                      { return e.At }
func (e TopicIDsRecalled) at() time.Time            { return e.At }
func (e Answered) at() time.Time                    { return e.At }
func (e TimerFired) at() time.Time                  { return e.At }
func (e ControlledShutdownRequested) at() time.Time { return e.At }
func (e AlterPartitionRequested) at() time.Time     { return e.At }
func (e ElectLeadersRequested) at() time.Time       { return e.At }
func (e AlterReassignmentsRequested) at() time.Time { return e.At }
func (e ListReassignmentsRequested) at() time.Time  { return e.At }
func (e TopicConfigChanged) at() time.Time          { return e.At }
