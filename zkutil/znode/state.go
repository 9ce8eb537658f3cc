package znode

import (
	"math"

	"kctl/zkutil/cluster"
)

// State is the value of a partition's state node.
type State struct {
	cluster.LeaderAndISR
	Unknown Fields
}

// DecodeState reads a partition's state. The order of the ISR is kept. leader_recovery_state other than 0
// and 1 is refused.
func DecodeState(tp cluster.TopicPartition, data []byte) (State, error) {
	d := newDecoder(StatePath(tp), data)
	d.int32("version", 1)
	var s State
	s.Leader = cluster.BrokerID(d.int32("leader", -1))
	s.LeaderEpoch = cluster.LeaderEpoch(d.int32("leader_epoch", 0))
	s.ControllerEpoch = cluster.ControllerEpoch(d.int32("controller_epoch", 0))
	if raw, ok := d.take("isr"); ok {
		s.ISR = decodeIDs(d, "isr", raw)
	} else {
		d.fail("isr", "is missing")
	}
	if raw, ok := d.take("leader_recovery_state"); ok {
		s.Recovering = d.parseInt("leader_recovery_state", raw, 0, 1) == 1
	}
	s.Unknown = d.unknown()
	return s, d.err
}

// Encode writes the value as Kafka does; leader_recovery_state only while recovering.
func (s State) Encode() []byte {
	e := newEncoder(96)
	e.int("controller_epoch", int64(s.ControllerEpoch))
	e.int("leader", int64(s.Leader))
	e.int("version", 1)
	if s.Recovering {
		e.int("leader_recovery_state", 1)
	}
	e.int("leader_epoch", int64(s.LeaderEpoch))
	e.key("isr")
	e.b = appendIDs(e.b, s.ISR)
	return e.end(s.Unknown)
}

// LeadershipAlert is the value of a node below LeadershipAlertsPath: a leadership transition that has not
// completed by its deadline. It is ours; Kafka does not know it.
type LeadershipAlert struct {
	Partition cluster.TopicPartition
	// Decision is the state that the controller published, with the epoch of the controller that did.
	Decision cluster.LeaderAndISR
	// DecidedMs is when it was decided, RaisedMs when the alert was raised.
	DecidedMs, RaisedMs int64
	// Waiting says which brokers have not confirmed, in ascending order of broker.
	Waiting []AlertBroker
	// Reason is what the decision was made for, such as broker-failure or preferred-election.
	Reason  string
	Unknown Fields
}

// AlertBroker is one broker that has not confirmed a transition.
type AlertBroker struct {
	Broker cluster.BrokerID
	// Error is the name of the Kafka error that it answered with, such as KAFKA_STORAGE_ERROR; empty when
	// it has not answered.
	Error string
	// Attempts counts the requests sent to it for this decision.
	Attempts int32
}

// DecodeLeadershipAlert reads an alert; tp is the partition named by the node.
func DecodeLeadershipAlert(tp cluster.TopicPartition, data []byte) (LeadershipAlert, error) {
	d := newDecoder(LeadershipAlertPath(tp), data)
	d.int32("version", 1)
	a := LeadershipAlert{Partition: tp}
	a.Decision.Leader = cluster.BrokerID(d.int32("leader", -1))
	a.Decision.LeaderEpoch = cluster.LeaderEpoch(d.int32("leader_epoch", 0))
	a.Decision.ControllerEpoch = cluster.ControllerEpoch(d.int32("controller_epoch", 0))
	if raw, ok := d.take("isr"); ok {
		a.Decision.ISR = decodeIDs(d, "isr", raw)
	}
	a.DecidedMs = d.decimal("decided", true, math.MinInt64)
	a.RaisedMs = d.decimal("raised", true, math.MinInt64)
	a.Reason = d.text("reason", false)
	for _, raw := range d.array("waiting") {
		w := d.item("waiting", raw)
		a.Waiting = append(a.Waiting, AlertBroker{
			Broker:   cluster.BrokerID(w.int32("broker", 0)),
			Error:    w.text("error", false),
			Attempts: w.optionalInt32("attempts", 0, 0),
		})
		if w.err != nil && d.err == nil {
			d.err = w.err
		}
	}
	d.take("topic")
	d.take("partition")
	a.Unknown = d.unknown()
	return a, d.err
}

// Encode writes version 1.
func (a LeadershipAlert) Encode() []byte {
	e := newEncoder(256)
	e.int("version", 1)
	e.text("topic", a.Partition.Topic)
	e.int("partition", int64(a.Partition.Partition))
	e.int("leader", int64(a.Decision.Leader))
	e.int("leader_epoch", int64(a.Decision.LeaderEpoch))
	e.key("isr")
	e.b = appendIDs(e.b, a.Decision.ISR)
	e.int("controller_epoch", int64(a.Decision.ControllerEpoch))
	e.decimal("decided", a.DecidedMs)
	e.decimal("raised", a.RaisedMs)
	if a.Reason != "" {
		e.text("reason", a.Reason)
	}
	e.key("waiting")
	e.b = append(e.b, '[')
	for i, w := range a.Waiting {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		we := newEncoder(48)
		we.int("broker", int64(w.Broker))
		if w.Error != "" {
			we.text("error", w.Error)
		}
		we.int("attempts", int64(w.Attempts))
		e.b = append(e.b, we.end(nil)...)
	}
	e.b = append(e.b, ']')
	return e.end(a.Unknown)
}
