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
	ExpireTimestamp *int64   `json:"expireTimestamp,omitempty" doc:"version 1 only: later ones expire by offsets.retention.minutes"`
	TopicID         string   `json:"topicId,omitempty" doc:"of a commit, from version 4 on"`
	ProtocolType    string   `json:"protocolType,omitempty"`
	Protocol        string   `json:"protocol,omitempty"`
	Generation      *int32   `json:"generation,omitempty"`
	Leader          string   `json:"leader,omitempty" doc:"member id"`
	StateTimestamp  *int64   `json:"stateTimestamp,omitempty" doc:"since when the group is in its state: offsets of an empty one expire from then on; -1: not known"`
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

	PreviousProducerID       *int64 `json:"previousProducerId,omitempty" doc:"of the last committed transaction; this and what follows from Apache Kafka 4.0 on"`
	NextProducerID           *int64 `json:"nextProducerId,omitempty"`
	NextProducerEpoch        *int16 `json:"nextProducerEpoch,omitempty"`
	ClientTransactionVersion *int16 `json:"clientTransactionVersion,omitempty"`

	Version *int16         `json:"version,omitempty" doc:"of the value; not of control records"`
	Key     map[string]any `json:"key,omitempty" doc:"fields of the key of a record of the new groups"`
	Data    map[string]any `json:"data,omitempty" doc:"fields of its value, with Kafka's names and values as Kafka's tool prints them; keys and salts of passwords are left out. Of offsets, classic groups and transactions: tagged fields that are not known"`

	Problem string `json:"problem,omitempty" doc:"why it could not be decoded; with --print-data the raw bytes are in key and value"`
	Hex     string `json:"hex,omitempty" doc:"the bytes that could not be decoded, in hexadecimal"`
}

// Member is one member of a classic consumer group. Bytes are in base64.
type Member struct {
	ID                 string   `json:"id"`
	InstanceID         string   `json:"instanceId,omitempty" doc:"of a static member"`
	ClientID           string   `json:"clientId"`
	Host               string   `json:"host"`
	RebalanceTimeoutMs *int32   `json:"rebalanceTimeoutMs,omitempty"`
	SessionTimeoutMs   *int32   `json:"sessionTimeoutMs,omitempty"`
	Subscribed         []string `json:"subscribed" doc:"topics"`
	Owned              []string `json:"owned,omitempty" doc:"TOPIC:P that it had when it joined"`
	Generation         *int32   `json:"generation,omitempty" doc:"in which it had them, -1: unknown"`
	Rack               string   `json:"rack,omitempty"`
	UserData           string   `json:"userData,omitempty" doc:"of its assignor, base64"`
	Assigned           []string `json:"assigned" doc:"TOPIC:P"`
	AssignedUserData   string   `json:"assignedUserData,omitempty" doc:"base64"`
	Subscription       string   `json:"subscription,omitempty" doc:"base64: of a protocol type that is not consumer, or not readable"`
	Assignment         string   `json:"assignment,omitempty" doc:"likewise"`
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
