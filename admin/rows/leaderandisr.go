package rows

import (
	"time"

	"kctl/admin/check"
	"kctl/zkutil/cluster"
)

// LeaderAndISRChange is what became of one partition in leader-and-isr set and restore.
type LeaderAndISRChange struct {
	Topic         string   `json:"topic"`
	Partition     int32    `json:"partition"`
	Action        string   `json:"action" doc:"changed, in-force, would-change, sent-again, refused"`
	Via           string   `json:"via" doc:"controller, znode (Apache Kafka in ZooKeeper mode), break-glass"`
	Leader        int32    `json:"leader" doc:"after the change; -1 when nobody leads"`
	LeaderEpoch   int32    `json:"leaderEpoch" doc:"after the change"`
	ISR           []int32  `json:"isr" doc:"after the change"`
	ZKVersion     *int32   `json:"zkVersion" doc:"after the change; null when it is not known"`
	OldLeader     int32    `json:"oldLeader"`
	OldEpoch      int32    `json:"oldLeaderEpoch"`
	OldISR        []int32  `json:"oldIsr"`
	OldZKVersion  *int32   `json:"oldZkVersion" doc:"null without ZooKeeper"`
	Confirmed     bool     `json:"confirmed" doc:"every live replica says that it acts in the epoch"`
	WaitingFor    []int32  `json:"waitingFor" doc:"live replicas that did not say so in time"`
	Warnings      []string `json:"warnings"`
	Error         string   `json:"error" doc:"why it was refused or not carried out; empty when it was"`
	UnknownFields []string `json:"unknownFields" doc:"fields of the znode that kctl does not know; they are kept"`
}

// LeaderAndISRChangeKind describes LeaderAndISRChange.
var LeaderAndISRChangeKind = Kind[LeaderAndISRChange]{
	Name: "LeaderAndISRChange", Title: "changes",
	ID: func(l LeaderAndISRChange) string { return l.Topic + ":" + itoa(l.Partition) },
	Columns: []Column[LeaderAndISRChange]{
		{Name: "TOPIC", Cell: func(l LeaderAndISRChange) string { return l.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(l LeaderAndISRChange) string { return itoa(l.Partition) }},
		{Name: "ACTION", Cell: func(l LeaderAndISRChange) string { return l.Action }},
		{Name: "LEADER", Cell: func(l LeaderAndISRChange) string { return arrow(IDText(l.OldLeader), IDText(l.Leader)) }},
		{Name: "ISR", Cell: func(l LeaderAndISRChange) string { return arrow(IntList(l.OldISR), IntList(l.ISR)) }},
		{Name: "LEADER-EPOCH", Cell: func(l LeaderAndISRChange) string { return arrow(itoa(l.OldEpoch), itoa(l.LeaderEpoch)) }},
		{Name: "ZK-VERSION", Cell: func(l LeaderAndISRChange) string { return arrow(nullInt(l.OldZKVersion), nullInt(l.ZKVersion)) }},
		{Name: "FOLLOWED", Cell: func(l LeaderAndISRChange) string { return followed(l) }},
		{Name: "VIA", Wide: true, Cell: func(l LeaderAndISRChange) string { return l.Via }},
		{Name: "ERROR", Cell: func(l LeaderAndISRChange) string { return text(l.Error) }},
	},
}

func arrow(from, to string) string {
	if from == to {
		return to
	}
	return from + " -> " + to
}

func followed(l LeaderAndISRChange) string {
	switch {
	case l.Confirmed:
		return "yes"
	case len(l.WaitingFor) > 0:
		return "not by " + IntList(l.WaitingFor)
	}
	return "-"
}

// Version is the row's form of a znode version; nil when it is not known.
func Version(v cluster.ZKVersion) *int32 {
	if v < 0 {
		return nil
	}
	n := int32(v)
	return &n
}

// IDs is the row's form of a list of brokers; never nil.
func IDs(ids []cluster.BrokerID) []int32 { return ints(ids) }

// LeaderAndISREvent is one change that leader-and-isr watch saw.
type LeaderAndISREvent struct {
	Time           string  `json:"time" doc:"when it was seen, RFC 3339"`
	Topic          string  `json:"topic"`
	Partition      int32   `json:"partition"`
	Event          string  `json:"event" doc:"created, election, unclean-election, no-leader, shrink, growth, reassignment, resent, deleted"`
	Why            string  `json:"why"`
	Leader         int32   `json:"leader" doc:"-1 when nobody leads or the partition is gone"`
	OldLeader      int32   `json:"oldLeader"`
	LeaderEpoch    int32   `json:"leaderEpoch"`
	OldLeaderEpoch int32   `json:"oldLeaderEpoch"`
	ISR            []int32 `json:"isr"`
	OldISR         []int32 `json:"oldIsr"`
	Replicas       []int32 `json:"replicas"`
	OldReplicas    []int32 `json:"oldReplicas"`
	ZKVersion      *int32  `json:"zkVersion" doc:"null without ZooKeeper"`
}

// LeaderAndISREventKind describes LeaderAndISREvent.
var LeaderAndISREventKind = Kind[LeaderAndISREvent]{
	Name: "LeaderAndISREvent", Title: "changes",
	ID: func(e LeaderAndISREvent) string { return e.Topic + ":" + itoa(e.Partition) },
	Columns: []Column[LeaderAndISREvent]{
		{Name: "TIME", Cell: func(e LeaderAndISREvent) string { return e.Time }},
		{Name: "PARTITION", Cell: func(e LeaderAndISREvent) string { return e.Topic + ":" + itoa(e.Partition) }},
		{Name: "EVENT", Cell: func(e LeaderAndISREvent) string { return e.Event }},
		{Name: "LEADER", Cell: func(e LeaderAndISREvent) string { return arrow(IDText(e.OldLeader), IDText(e.Leader)) }},
		{Name: "ISR", Cell: func(e LeaderAndISREvent) string { return arrow(IntList(e.OldISR), IntList(e.ISR)) }},
		{Name: "LEADER-EPOCH", Cell: func(e LeaderAndISREvent) string { return arrow(itoa(e.OldLeaderEpoch), itoa(e.LeaderEpoch)) }},
		{Name: "WHY", Cell: func(e LeaderAndISREvent) string { return e.Why }},
	},
}

// OfISRChange makes the row of one change.
func OfISRChange(ch check.ISRChange, at time.Time) LeaderAndISREvent {
	e := LeaderAndISREvent{
		Topic: ch.Topic, Partition: ch.Partition, Event: string(ch.Event), Why: ch.Why,
		Leader: int32(ch.After.Leader), OldLeader: int32(ch.Before.Leader),
		LeaderEpoch: int32(ch.After.LeaderEpoch), OldLeaderEpoch: int32(ch.Before.LeaderEpoch),
		ISR: ints(ch.After.ISR), OldISR: ints(ch.Before.ISR),
		Replicas: ints(ch.After.Replicas), OldReplicas: ints(ch.Before.Replicas), ZKVersion: Version(ch.After.ZKVersion),
	}
	if t := TimeText(at); t != nil {
		e.Time = *t
	}
	return e
}

// Line is the text form: one line, for people and for grep.
func (e LeaderAndISREvent) Line() string {
	s := e.Time + " " + e.Topic + ":" + itoa(e.Partition) + " " + e.Event
	if e.Event != string(check.EventDeleted) {
		s += " leader " + arrow(IDText(e.OldLeader), IDText(e.Leader)) + " isr " + arrow(IntList(e.OldISR), IntList(e.ISR)) +
			" epoch " + arrow(itoa(e.OldLeaderEpoch), itoa(e.LeaderEpoch))
		if IntList(e.OldReplicas) != IntList(e.Replicas) {
			s += " replicas " + arrow(IntList(e.OldReplicas), IntList(e.Replicas))
		}
	}
	return s + ": " + e.Why
}
