package model

import (
	"slices"
	"time"

	"kctl/zkutil/cluster"
)

// Source says where a figure was read.
type Source string

// The sources of figures.
const (
	SourceNone      Source = ""
	SourceProtocol  Source = "protocol"
	SourceZooKeeper Source = "zookeeper"
)

// Problem is one part of an answer that could not be given: which object, and why.
type Problem struct {
	Object  string // such as "broker 3" or "topic orders"
	Message string // the cause, in words
}

// Snapshot is a cluster at one moment, as far as it could be seen. Brokers are sorted by id, topics by
// name, partitions by number. Problems lists what is missing from the answer.
type Snapshot struct {
	At         time.Time
	ClusterID  string
	Controller Controller
	Brokers    []Broker
	Topics     []Topic
	Problems   []Problem
	Source     Source // where brokers, topics and partitions come from
	ZooKeeper  bool   // whether ZooKeeper was consulted
}

// Controller is the active controller. ID is cluster.NoLeader when there is none; Epoch is -1 when it is
// not known (the protocol does not carry it).
type Controller struct {
	ID     cluster.BrokerID
	Epoch  int32
	Since  time.Time // creation of /controller; zero when not known
	Source Source
	Quorum bool   // KRaft: the leader of the controllers' quorum, which need not be a broker; Epoch is its epoch
	Silent bool   // KRaft: the brokers get no answer from the controllers
	Host   string // KRaft: its listener for controllers, where brokers tell it (Kafka 3.9)
	Port   int32
}

// Broker is one broker: registered, or only named in a replica list (Live false).
type Broker struct {
	ID         cluster.BrokerID
	Host       string
	Port       int32
	Rack       string
	Live       bool // registered: in Metadata, or in /brokers/ids
	Controller bool
	Epoch      cluster.BrokerEpoch // czxid of the registration; -1 when not known
	Endpoints  []cluster.Endpoint  // all listeners, when ZooKeeper was read
	Registered time.Time           // start of the registration; zero when not known
	Err        string              // why it did not answer; empty when it did or was not asked
	Asked      bool                // whether it was asked at all
	Sees       cluster.BrokerID    // the controller it names; meaningful when it was asked and answered
	Source     Source
}

// Topic is one topic with its partitions.
type Topic struct {
	Name       string
	ID         cluster.TopicID
	Internal   bool
	Deleting   bool // present in /admin/delete_topics
	Partitions []Partition
	Err        string
	Source     Source
}

// ReplicationFactor returns the smallest length of a replica list among the partitions, 0 without any.
func (t *Topic) ReplicationFactor() int {
	rf := 0
	for i := range t.Partitions {
		if n := len(t.Partitions[i].Replicas); i == 0 || n < rf {
			rf = n
		}
	}
	return rf
}

// Partition is the state of one partition as Metadata or the state znode tells it. Replica lists keep
// their order: Replicas[0] is the preferred leader.
type Partition struct {
	Topic       string
	Partition   int32
	Leader      cluster.BrokerID // cluster.NoLeader: none
	LeaderEpoch cluster.LeaderEpoch
	Replicas    []cluster.BrokerID
	ISR         []cluster.BrokerID
	Offline     []cluster.BrokerID // replicas on dead brokers or dead log directories
	Adding      []cluster.BrokerID
	Removing    []cluster.BrokerID
	MinISR      int // effective min.insync.replicas; 0 when not read
	Source      Source
	Err         string
}

// TP names the partition.
func (p *Partition) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
}

// Preferred returns the preferred leader, cluster.NoLeader without replicas.
func (p *Partition) Preferred() cluster.BrokerID {
	if len(p.Replicas) == 0 {
		return cluster.NoLeader
	}
	return p.Replicas[0]
}

// UnderReplicated reports whether the ISR is smaller than the replica list. During a reassignment the
// replicas being added are not counted, as in Kafka's own tools.
func (p *Partition) UnderReplicated() bool {
	want := len(p.Replicas) - len(p.Adding)
	return len(p.ISR) < want
}

// IsOffline reports whether no broker leads the partition.
func (p *Partition) IsOffline() bool { return p.Leader < 0 }

// UnderMinISR reports whether acks=all is refused: fewer in-sync replicas than the effective minimum.
func (p *Partition) UnderMinISR() bool { return p.MinISR > 0 && len(p.ISR) < p.MinISR }

// AtMinISR reports whether the loss of one more in-sync replica stops acks=all.
func (p *Partition) AtMinISR() bool { return p.MinISR > 0 && len(p.ISR) == p.MinISR }

// NotPreferred reports whether somebody leads, but not the preferred replica.
func (p *Partition) NotPreferred() bool {
	return p.Leader >= 0 && len(p.Replicas) > 0 && p.Leader != p.Replicas[0]
}

// InSync reports whether the broker is in the ISR.
func (p *Partition) InSync(id cluster.BrokerID) bool { return slices.Contains(p.ISR, id) }

// StateNode is a partition's leaderAndISR as an operator reads it. Without ZooKeeper ZKVersion and
// ControllerEpoch are -1 and Mtime is zero.
type StateNode struct {
	Topic     string
	Partition int32
	cluster.LeaderAndISR
	Replicas      []cluster.BrokerID
	ZKVersion     cluster.ZKVersion
	Mtime         time.Time
	UnknownFields []string // names of JSON fields that this program does not know
	Raw           []byte   // the znode's bytes; nil without ZooKeeper
	Missing       bool     // the topic names the partition, but there is no state node
	Source        Source
	Err           string
}

// Alert is an entry of /admin/leadership_alerts, written by a controller of this project.
type Alert struct {
	TP         cluster.TopicPartition
	Epoch      cluster.LeaderEpoch // of the decision it speaks of
	Raw        []byte
	Since      time.Time
	WaitingFor []cluster.BrokerID
	Reason     string
}

// ReplicaPosition is what one replica says about its own log. Offsets are -1 when not known.
type ReplicaPosition struct {
	Topic          string
	Partition      int32
	Broker         cluster.BrokerID
	Leader         bool
	InSync         bool
	LogStartOffset int64
	HighWatermark  int64
	LogEndOffset   int64
	LagRecords     int64               // leader's log end minus this one's, never below 0; -1 when not known
	LagMs          int64               // age of the first record it lacks; 0 when it lacks none, -1 when not known
	LeaderEpoch    cluster.LeaderEpoch // the epoch this replica acts in; -1 when not known
	Err            string
}

// TransitionState is how far a leadership decision has got.
type TransitionState string

// The states of a transition.
const (
	TransitionPending TransitionState = "pending"
	TransitionStuck   TransitionState = "stuck"
	TransitionDone    TransitionState = "done"
)

// Answer is what a broker said when asked about a partition with the decided leader epoch.
type Answer uint8

// The answers of a replica to the question whether it has carried out a decision.
const (
	AnswerNone          Answer = iota // not asked
	AnswerOK                          // acts in the decided epoch
	AnswerNotLeader                   // hosts the partition but does not lead it
	AnswerBehind                      // has not applied the decision (UNKNOWN_LEADER_EPOCH)
	AnswerAhead                       // acts in a newer epoch (FENCED_LEADER_EPOCH)
	AnswerNotHosted                   // does not know the partition
	AnswerStorageError                // its log directory is offline
	AnswerUnreachable                 // no answer
	AnswerOther                       // another error, see Detail
	AnswerNotRegistered               // not asked: it has no registration
)

// Observation is a decision together with what the replicas named in it answer.
type Observation struct {
	State         StateNode
	LeaderAnswer  Answer
	Detail        string                                   // error text of the leader's answer, if any
	FollowerEpoch map[cluster.BrokerID]cluster.LeaderEpoch // epoch each reachable follower acts in
	MetadataEpoch cluster.LeaderEpoch                      // newest leader epoch in the brokers' metadata; -1 when not known
	Alert         *Alert
	Age           time.Duration // since the decision; -1 when not known
}

// Transition is a leadership decision and who has yet to carry it out.
type Transition struct {
	Topic           string
	Partition       int32
	State           TransitionState
	DecidedAt       time.Time // zero when not known
	Age             time.Duration
	Leader          cluster.BrokerID
	LeaderEpoch     cluster.LeaderEpoch
	ControllerEpoch cluster.ControllerEpoch
	WaitingFor      []cluster.BrokerID
	Reason          string
	Fix             string
	// LeaderSilent: the leader is registered and does not answer, and nothing else is known to be wrong with the decision. It may
	// have been carried out long ago.
	LeaderSilent bool
}

// Severity ranks a finding.
type Severity string

// The severities. Info findings do not make a cluster unhealthy.
const (
	SeverityCritical Severity = "critical"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Finding is one result of a health check. ID is stable and kebab-case; Fix is a command or an action.
type Finding struct {
	ID       string
	Severity Severity
	Object   string
	Evidence string
	Fix      string
}
