package znode

import (
	"slices"
	"strconv"

	"kctl/zkutil/cluster"
)

// Topic is the value of a topic's node: the replica lists of its partitions.
type Topic struct {
	// ID is zero in values older than version 3 (Kafka 2.8).
	ID         cluster.TopicID
	Partitions map[int32]cluster.Assignment
	Unknown    Fields
}

// PartitionNumbers returns the partitions in ascending order.
func (t Topic) PartitionNumbers() []int32 {
	out := make([]int32, 0, len(t.Partitions))
	for p := range t.Partitions {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// Clone returns a copy that shares no slice or map that a caller would change.
func (t Topic) Clone() Topic {
	ps := make(map[int32]cluster.Assignment, len(t.Partitions))
	for p, a := range t.Partitions {
		ps[p] = a.Clone()
	}
	t.Partitions = ps
	return t
}

// DecodeTopic reads versions 1 to 3 and newer ones as 3. The order of every replica list is kept.
func DecodeTopic(topic string, data []byte) (Topic, error) {
	d := newDecoder(TopicPath(topic), data)
	d.int32("version", 1)
	t := Topic{Partitions: map[int32]cluster.Assignment{}}
	for p, ids := range decodeReplicaMap(d, "partitions", true) {
		t.Partitions[p] = cluster.Assignment{Replicas: ids}
	}
	for p, ids := range decodeReplicaMap(d, "adding_replicas", false) {
		if a, ok := t.Partitions[p]; ok {
			a.Adding = ids
			t.Partitions[p] = a
		}
	}
	for p, ids := range decodeReplicaMap(d, "removing_replicas", false) {
		if a, ok := t.Partitions[p]; ok {
			a.Removing = ids
			t.Partitions[p] = a
		}
	}
	if s := d.text("topic_id", false); s != "" {
		id, err := cluster.ParseTopicID(s)
		if err != nil {
			d.fail("topic_id", "%s", err)
		}
		t.ID = id
	}
	t.Unknown = d.unknown()
	return t, d.err
}

func decodeReplicaMap(d *decoder, name string, required bool) map[int32][]cluster.BrokerID {
	fields := d.object(name, required)
	out := make(map[int32][]cluster.BrokerID, len(fields))
	for _, f := range fields {
		p, err := ParsePartition(f.Name)
		if err != nil {
			d.fail(name, "key %s", err)
			return nil
		}
		out[p] = decodeIDs(d, name, f.Raw)
	}
	return out
}

// decodeIDs reads a list of broker ids, which may be empty.
func decodeIDs(d *decoder, name string, raw []byte) []cluster.BrokerID {
	items, ok := splitArray(raw)
	if !ok {
		d.fail(name, "%s is not a list of broker ids", excerpt(raw))
		return nil
	}
	ids := make([]cluster.BrokerID, len(items))
	for i, item := range items {
		ids[i] = cluster.BrokerID(d.parseInt(name, item, 0, 1<<31-1))
	}
	return ids
}

// Encode writes version 3, or version 2 when the topic has no id. Partitions stand in numeric order; the
// maps of adding and removing replicas hold only partitions that have some.
func (t Topic) Encode() []byte {
	numbers := t.PartitionNumbers()
	e := newEncoder(96 + 24*len(numbers))
	t.encodeMap(e, "partitions", numbers, func(a cluster.Assignment) []cluster.BrokerID {
		if a.Replicas == nil {
			return []cluster.BrokerID{}
		}
		return a.Replicas
	})
	version := int64(2)
	if !t.ID.IsZero() {
		e.text("topic_id", t.ID.String())
		version = 3
	}
	t.encodeMap(e, "adding_replicas", numbers, func(a cluster.Assignment) []cluster.BrokerID { return notEmpty(a.Adding) })
	t.encodeMap(e, "removing_replicas", numbers, func(a cluster.Assignment) []cluster.BrokerID { return notEmpty(a.Removing) })
	e.int("version", version)
	return e.end(t.Unknown)
}

func notEmpty(ids []cluster.BrokerID) []cluster.BrokerID {
	if len(ids) == 0 {
		return nil
	}
	return ids
}

func (t Topic) encodeMap(e *encoder, name string, numbers []int32, list func(cluster.Assignment) []cluster.BrokerID) {
	e.key(name)
	e.b = append(e.b, '{')
	first := true
	for _, p := range numbers {
		ids := list(t.Partitions[p])
		if ids == nil {
			continue
		}
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		e.b = append(e.b, '"')
		e.b = strconv.AppendInt(e.b, int64(p), 10)
		e.b = append(e.b, '"', ':')
		e.b = appendIDs(e.b, ids)
	}
	e.b = append(e.b, '}')
}

func appendIDs(b []byte, ids []cluster.BrokerID) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}
