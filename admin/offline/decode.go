package offline

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Decoded is a record of an internal topic, or a control record, in words. Only the fields of its Type are set.
type Decoded struct {
	Type            string   `json:"type" doc:"offset-commit, group-metadata, transaction, commit, abort, leader-change, … or unknown"`
	Tombstone       bool     `json:"tombstone,omitempty" doc:"null value: what the key names is gone"`
	Group           string   `json:"group,omitempty"`
	Topic           string   `json:"topic,omitempty"`
	Partition       *int32   `json:"partition,omitempty"`
	Offset          *int64   `json:"offset,omitempty" doc:"the committed offset"`
	LeaderEpoch     *int32   `json:"leaderEpoch,omitempty"`
	Metadata        string   `json:"metadata,omitempty"`
	CommitTimestamp *int64   `json:"commitTimestamp,omitempty" doc:"milliseconds since the Unix epoch"`
	ExpireTimestamp *int64   `json:"expireTimestamp,omitempty"`
	ProtocolType    string   `json:"protocolType,omitempty"`
	Protocol        string   `json:"protocol,omitempty"`
	Generation      *int32   `json:"generation,omitempty"`
	Leader          string   `json:"leader,omitempty" doc:"member id"`
	Members         []Member `json:"members,omitempty"`

	TransactionalID  string   `json:"transactionalId,omitempty"`
	ProducerID       *int64   `json:"producerId,omitempty"`
	ProducerEpoch    *int16   `json:"producerEpoch,omitempty"`
	State            string   `json:"state,omitempty"`
	TimeoutMs        *int32   `json:"timeoutMs,omitempty"`
	Partitions       []string `json:"partitions,omitempty" doc:"TOPIC:P of the open transaction"`
	LastUpdate       *int64   `json:"lastUpdate,omitempty"`
	StartTimestamp   *int64   `json:"startTimestamp,omitempty"`
	CoordinatorEpoch *int32   `json:"coordinatorEpoch,omitempty"`
	Voters           []int32  `json:"voters,omitempty"`

	Version *int16         `json:"version,omitempty" doc:"of the value of a record of the new groups and of KRaft metadata"`
	Key     map[string]any `json:"key,omitempty" doc:"fields of the key of a record of the new groups"`
	Data    map[string]any `json:"data,omitempty" doc:"fields of its value, with Kafka's names and values as Kafka's tool prints them; keys and salts of passwords are left out"`

	Problem string `json:"problem,omitempty" doc:"why it could not be decoded; with --print-data the raw bytes are in key and value"`
	Hex     string `json:"hex,omitempty" doc:"the bytes that could not be decoded, in hexadecimal"`
}

// Member is one member of a classic consumer group.
type Member struct {
	ID         string   `json:"id"`
	InstanceID string   `json:"instanceId,omitempty"`
	ClientID   string   `json:"clientId"`
	Host       string   `json:"host"`
	Assigned   []string `json:"assigned" doc:"TOPIC:P"`
}

// Decoder reads key and value of a record.
type Decoder func(key, value []byte) Decoded

// Decoders are those that can be asked for by name.
func Decoders() map[string]Decoder {
	return map[string]Decoder{"offsets": DecodeOffsets, "transactions": DecodeTransactions, "metadata": DecodeMetadata, "share-state": DecodeShareState}
}

func undecoded(format string, args ...any) Decoded {
	return Decoded{Type: "unknown", Problem: fmt.Sprintf(format, args...)}
}

// version is the first two bytes of every key and value.
func version(b []byte) int16 {
	if len(b) < 2 {
		return -1
	}
	return int16(binary.BigEndian.Uint16(b))
}

// DecodeOffsets reads a record of __consumer_offsets.
func DecodeOffsets(key, value []byte) Decoded {
	switch version(key) {
	case 0, 1:
		return offsetCommit(key, value)
	case 2:
		return groupMetadata(key, value)
	}
	return coordinated(groupRecords, key, value)
}

func offsetCommit(key, value []byte) Decoded {
	k := kmsg.NewOffsetCommitKey()
	if err := k.ReadFrom(key); err != nil {
		return undecoded("the key: %v", err)
	}
	d := Decoded{Type: "offset-commit", Group: k.Group, Topic: k.Topic, Partition: &k.Partition, Tombstone: value == nil}
	if value == nil {
		return d
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(value); err != nil {
		d.Problem = fmt.Sprintf("the value: %v", err)
		return d
	}
	d.Offset, d.Metadata, d.CommitTimestamp = &v.Offset, v.Metadata, &v.CommitTimestamp
	if v.Version >= 3 {
		d.LeaderEpoch = &v.LeaderEpoch
	}
	if v.Version == 1 {
		d.ExpireTimestamp = &v.ExpireTimestamp
	}
	return d
}

func groupMetadata(key, value []byte) Decoded {
	k := kmsg.NewGroupMetadataKey()
	if err := k.ReadFrom(key); err != nil {
		return undecoded("the key: %v", err)
	}
	d := Decoded{Type: "group-metadata", Group: k.Group, Tombstone: value == nil}
	if value == nil {
		return d
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		d.Problem = fmt.Sprintf("the value: %v", err)
		return d
	}
	d.ProtocolType, d.Generation = v.ProtocolType, &v.Generation
	d.Protocol, d.Leader = orEmpty(v.Protocol), orEmpty(v.Leader)
	for i := range v.Members {
		m := &v.Members[i]
		d.Members = append(d.Members, Member{
			ID: m.MemberID, InstanceID: orEmpty(m.InstanceID), ClientID: m.ClientID, Host: m.ClientHost,
			Assigned: assigned(v.ProtocolType, m.Assignment),
		})
	}
	return d
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func assigned(protocolType string, b []byte) []string {
	out := []string{}
	a := kmsg.NewConsumerMemberAssignment()
	if protocolType != "consumer" || a.ReadFrom(b) != nil {
		return out
	}
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			out = append(out, fmt.Sprintf("%s:%d", t.Topic, p))
		}
	}
	return out
}

// DecodeTransactions reads a record of __transaction_state.
func DecodeTransactions(key, value []byte) Decoded {
	k := kmsg.NewTxnMetadataKey()
	if v := version(key); v != 0 {
		return undecoded("key version %d is not known", v)
	}
	if err := k.ReadFrom(key); err != nil {
		return undecoded("the key: %v", err)
	}
	d := Decoded{Type: "transaction", TransactionalID: k.TransactionalID, Tombstone: value == nil}
	if value == nil {
		return d
	}
	v := kmsg.NewTxnMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		d.Problem = fmt.Sprintf("the value: %v", err)
		return d
	}
	d.ProducerID, d.ProducerEpoch, d.TimeoutMs, d.State = &v.ProducerID, &v.ProducerEpoch, &v.TimeoutMillis, v.State.String()
	d.LastUpdate, d.StartTimestamp = &v.LastUpdateTimestamp, &v.StartTimestamp
	for _, t := range v.Topics {
		for _, p := range t.Partitions {
			d.Partitions = append(d.Partitions, fmt.Sprintf("%s:%d", t.Topic, p))
		}
	}
	return d
}

// controlTypes are the kinds of control records by the number in their key.
var controlTypes = map[int16]string{
	0: "abort", 1: "commit", 2: "leader-change", 3: "snapshot-header", 4: "snapshot-footer", 5: "kraft-version", 6: "kraft-voters",
}

// DecodeControl reads a control record: the end of a transaction, or one of a KRaft log.
func DecodeControl(key, value []byte) Decoded {
	if len(key) < 4 {
		return undecoded("the key of a control record has %d bytes", len(key))
	}
	kind := int16(binary.BigEndian.Uint16(key[2:]))
	name, ok := controlTypes[kind]
	if !ok {
		return undecoded("control record type %d is not known", kind)
	}
	d := Decoded{Type: name}
	if l := controlRecords[kind]; l != nil {
		return d.control(l, value)
	}
	switch kind {
	case 0, 1:
		var m kmsg.EndTxnMarker
		if err := m.ReadFrom(value); err != nil {
			d.Problem = fmt.Sprintf("the value: %v", err)
			return d
		}
		d.CoordinatorEpoch = &m.CoordinatorEpoch
	case 2:
		m := kmsg.NewLeaderChangeMessage()
		if err := m.ReadFrom(value); err != nil {
			d.Problem = fmt.Sprintf("the value: %v", err)
			return d
		}
		d.Leader = fmt.Sprint(m.LeaderID)
		for _, v := range m.Voters {
			d.Voters = append(d.Voters, v.VoterID)
		}
	}
	return d
}
