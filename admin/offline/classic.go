package offline

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// The records of offsets and of classic groups in __consumer_offsets, as Apache Kafka up to 4.1 writes them. The version of
// a key is the record's type; from its flexible version on a value may have tagged fields (KIP-915).
var (
	commitKey   = fields(0, of("group", stringT), of("topic", stringT), of("partition", int32T))
	commitValue = fields(4, of("offset", int64T), of("leaderEpoch", int32T).since(3), of("metadata", stringT), of("commitTimestamp", int64T),
		of("expireTimestamp", int64T).since(1).until(1), of("topicId", uuidT).tagged(0))
	classicKey   = fields(0, of("group", stringT))
	classicValue = fields(4, of("protocolType", stringT), of("generation", int32T), of("protocol", stringT).orNull(), of("leader", stringT).orNull(),
		of("currentStateTimestamp", int64T).since(2), structs("members", of("memberId", stringT), of("groupInstanceId", stringT).orNull().since(3),
			of("clientId", stringT), of("clientHost", stringT), of("rebalanceTimeout", int32T).since(1), of("sessionTimeout", int32T),
			of("subscription", bytesT), of("assignment", bytesT)))
)

// flexibleClassic is the first version of these values with tagged fields.
const flexibleClassic = 4

// What members of the protocol type consumer say to each other (KIP-429, KIP-792, KIP-881). Newer versions only add to
// the end, and are read as the newest that is known.
var (
	subscription = fields(3, list("topics", stringT), of("userData", bytesT).orNull(), protocolPartitions("ownedPartitions").since(1), of("generationId", int32T).since(2),
		of("rackId", stringT).orNull().since(3))
	assignment = fields(3, protocolPartitions("assignedPartitions"), of("userData", bytesT).orNull())
)

func protocolPartitions(name string) field {
	return structs(name, of("topic", stringT), list("partitions", int32T))
}

// consumerProtocol is the protocol type of groups of consumers; that of Connect's workers, for one, is another.
const consumerProtocol = "consumer"

func offsetCommit(key, value []byte) Decoded {
	d := Decoded{Type: "offset-commit", Tombstone: value == nil}
	k := d.keyed(commitKey, key)
	d.Group, d.Topic, d.Partition = text(k, "group"), text(k, "topic"), number[int32](k, "partition")
	if k == nil || value == nil {
		return d
	}
	v := d.valued(commitValue, value, flexibleClassic)
	d.Offset, d.LeaderEpoch, d.Metadata = number[int64](v, "offset"), number[int32](v, "leaderEpoch"), text(v, "metadata")
	d.CommitTimestamp, d.ExpireTimestamp, d.TopicID = number[int64](v, "commitTimestamp"), number[int64](v, "expireTimestamp"), text(v, "topicId")
	d.Data = unknownTags(v)
	return d
}

func groupMetadata(key, value []byte) Decoded {
	d := Decoded{Type: "group-metadata", Tombstone: value == nil}
	k := d.keyed(classicKey, key)
	d.Group = text(k, "group")
	if k == nil || value == nil {
		return d
	}
	v := d.valued(classicValue, value, flexibleClassic)
	d.ProtocolType, d.Protocol, d.Leader = text(v, "protocolType"), text(v, "protocol"), text(v, "leader")
	d.Generation, d.StateTimestamp, d.Data = number[int32](v, "generation"), number[int64](v, "currentStateTimestamp"), unknownTags(v)
	for _, m := range structures(v, "members") {
		d.Members = append(d.Members, classicMember(d.ProtocolType, m))
	}
	return d
}

func classicMember(protocolType string, v map[string]any) Member {
	m := Member{
		ID: text(v, "memberId"), InstanceID: text(v, "groupInstanceId"), ClientID: text(v, "clientId"), Host: text(v, "clientHost"),
		RebalanceTimeoutMs: number[int32](v, "rebalanceTimeout"), SessionTimeoutMs: number[int32](v, "sessionTimeout"),
		Subscribed: []string{}, Assigned: []string{}, Subscription: text(v, "subscription"), Assignment: text(v, "assignment"),
	}
	if protocolType != consumerProtocol {
		return m
	}
	if s := embedded(subscription, m.Subscription); s != nil {
		m.Subscription, m.Subscribed = "", append(m.Subscribed, texts(s, "topics")...)
		m.UserData, m.Owned = text(s, "userData"), partitionsOf(s, "ownedPartitions", "partitions")
		m.Generation, m.Rack = number[int32](s, "generationId"), text(s, "rackId")
	}
	if a := embedded(assignment, m.Assignment); a != nil {
		m.Assignment, m.Assigned = "", append(m.Assigned, partitionsOf(a, "assignedPartitions", "partitions")...)
		m.AssignedUserData = text(a, "userData")
	}
	return m
}

// embedded reads what a member said, given in base64, which begins with its version; nil when it cannot be read.
func embedded(l *layout, encoded string) map[string]any {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || version(b) < 0 {
		return nil
	}
	data, err := l.read(b[2:], min(version(b), l.newest), false)
	if data == nil && err != nil {
		return nil
	}
	return data
}

// keyed reads the fields of a key behind its version; nil, with the problem said, when they cannot be read.
func (d *Decoded) keyed(l *layout, key []byte) map[string]any {
	k, err := l.read(key[2:], 0, false)
	if err != nil {
		d.Problem = "the key: " + err.Error()
		*d = raw(*d, key)
		return nil
	}
	return k
}

// valued reads the fields of a value behind its version, which is flexible from that version on. What could be read of a
// value with a problem is returned too.
func (d *Decoded) valued(l *layout, value []byte, flexible int16) map[string]any {
	if len(value) < 2 {
		d.Problem = "the value has no version"
		*d = raw(*d, value)
		return nil
	}
	v := version(value)
	d.Version = &v
	data, err := l.read(value[2:], v, v >= flexible)
	if err != nil {
		d.Problem = "the value: " + err.Error()
		*d = raw(*d, value)
	}
	return data
}

// text is a field that is text, or base64; empty when it is null or not there.
func text(v map[string]any, name string) string {
	s, _ := v[name].(string)
	return s
}

// number is a field that is a number; nil when it is not there.
func number[N ~int16 | ~int32 | ~int64](v map[string]any, name string) *N {
	n, ok := v[name].(int64)
	if !ok {
		return nil
	}
	out := N(n)
	return &out
}

func texts(v map[string]any, name string) []string {
	all, _ := v[name].([]any)
	out := make([]string, 0, len(all))
	for _, s := range all {
		if s, ok := s.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func structures(v map[string]any, name string) []map[string]any {
	all, _ := v[name].([]any)
	out := make([]map[string]any, 0, len(all))
	for _, s := range all {
		if s, ok := s.(map[string]any); ok {
			out = append(out, s)
		}
	}
	return out
}

// partitionsOf are the partitions of a list of topics as TOPIC:P; the list of numbers has that name.
func partitionsOf(v map[string]any, name, numbers string) []string {
	var out []string
	for _, t := range structures(v, name) {
		all, _ := t[numbers].([]any)
		for _, p := range all {
			out = append(out, fmt.Sprintf("%s:%d", text(t, "topic"), p))
		}
	}
	return out
}

// unknownTags are the tagged fields of a newer Kafka, in hexadecimal.
func unknownTags(v map[string]any) map[string]any {
	var out map[string]any
	for name, value := range v {
		if strings.HasPrefix(name, tagPrefix) {
			if out == nil {
				out = map[string]any{}
			}
			out[name] = value
		}
	}
	return out
}
