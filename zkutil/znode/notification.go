package znode

import (
	"math"

	"kctl/zkutil/cluster"
)

// EncodeISRChange is the value of a child of ISRChangeNotificationPath: the partitions whose ISR their
// leaders have changed.
func EncodeISRChange(parts []cluster.TopicPartition) []byte { return encodePartitions(parts) }

// DecodeISRChange reads it; name is the child's name.
func DecodeISRChange(name string, data []byte) ([]cluster.TopicPartition, error) {
	return decodePartitions(ISRChangeNotificationPath+"/"+name, data)
}

// EncodePreferredReplicaElection is the value of PreferredReplicaElectionPath: partitions to be led by their
// first replica.
func EncodePreferredReplicaElection(parts []cluster.TopicPartition) []byte {
	return encodePartitions(parts)
}

// DecodePreferredReplicaElection reads it.
func DecodePreferredReplicaElection(data []byte) ([]cluster.TopicPartition, error) {
	return decodePartitions(PreferredReplicaElectionPath, data)
}

func encodePartitions(parts []cluster.TopicPartition) []byte {
	e := newEncoder(40 + 40*len(parts))
	e.int("version", 1)
	e.key("partitions")
	e.b = append(e.b, '[')
	for i, tp := range parts {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		pe := encoder{b: append(e.b, '{'), empty: true}
		pe.text("topic", tp.Topic)
		pe.int("partition", int64(tp.Partition))
		e.b = pe.end(nil)
	}
	e.b = append(e.b, ']')
	return e.end(nil)
}

func decodePartitions(path string, data []byte) ([]cluster.TopicPartition, error) {
	d := newDecoder(path, data)
	d.int32("version", 1)
	var out []cluster.TopicPartition
	for _, raw := range d.array("partitions") {
		p := d.item("partitions", raw)
		out = append(out, p.topicPartition())
		if p.err != nil {
			return nil, p.err
		}
	}
	if d.err != nil {
		return nil, d.err
	}
	return out, nil
}

// item opens an object inside a list.
func (d *decoder) item(name string, raw []byte) *decoder {
	p := &decoder{path: d.path, fields: splitObject(raw)}
	if p.fields == nil {
		p.fail(name, "%s is not an object", excerpt(raw))
	}
	return p
}

func (d *decoder) topicPartition() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: d.text("topic", true), Partition: d.int32("partition", 0)}
}

// LogDirEvent is the value of a child of LogDirEventNotificationPath: a broker has lost a log directory.
type LogDirEvent struct {
	Broker cluster.BrokerID
	// Event is 1, a log directory failure; nothing else has been defined.
	Event int32
}

// LogDirFailure is the only event there is.
const LogDirFailure int32 = 1

// DecodeLogDirEvent reads it; name is the child's name.
func DecodeLogDirEvent(name string, data []byte) (LogDirEvent, error) {
	d := newDecoder(LogDirEventNotificationPath+"/"+name, data)
	d.int32("version", 1)
	ev := LogDirEvent{Broker: cluster.BrokerID(d.int32("broker", 0)), Event: d.int32("event", math.MinInt32)}
	return ev, d.err
}

// Encode writes version 1.
func (l LogDirEvent) Encode() []byte {
	e := newEncoder(48)
	e.int("version", 1)
	e.int("broker", int64(l.Broker))
	e.int("event", int64(l.Event))
	return e.end(nil)
}

// Reassignment is one entry of ReassignPartitionsPath.
type Reassignment struct {
	Partition cluster.TopicPartition
	Replicas  []cluster.BrokerID
	Unknown   Fields // such as log_dirs
}

// EncodeReassignments is the value of ReassignPartitionsPath, the request form from before Kafka 2.4.
func EncodeReassignments(list []Reassignment) []byte {
	e := newEncoder(40 + 64*len(list))
	e.int("version", 1)
	e.key("partitions")
	e.b = append(e.b, '[')
	for i, r := range list {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		pe := encoder{b: append(e.b, '{'), empty: true}
		pe.text("topic", r.Partition.Topic)
		pe.int("partition", int64(r.Partition.Partition))
		pe.key("replicas")
		pe.b = appendIDs(pe.b, r.Replicas)
		e.b = pe.end(r.Unknown)
	}
	e.b = append(e.b, ']')
	return e.end(nil)
}

// DecodeReassignments reads it.
func DecodeReassignments(data []byte) ([]Reassignment, error) {
	d := newDecoder(ReassignPartitionsPath, data)
	d.int32("version", 1)
	var out []Reassignment
	for _, raw := range d.array("partitions") {
		p := d.item("partitions", raw)
		r := Reassignment{Partition: p.topicPartition()}
		if ids, ok := p.take("replicas"); ok {
			r.Replicas = decodeIDs(p, "replicas", ids)
		} else {
			p.fail("replicas", "is missing")
		}
		if p.err != nil {
			return nil, p.err
		}
		r.Unknown = p.unknown()
		out = append(out, r)
	}
	if d.err != nil {
		return nil, d.err
	}
	return out, nil
}
