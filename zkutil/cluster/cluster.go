package cluster

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// BrokerID identifies a broker; it is also the replica id, since a broker holds at most one replica of a
// partition (V3 point 1.5). Valid ids are >= 0.
type BrokerID int32

// Special broker ids on the wire and in the state znode.
const (
	// NoLeader says that a partition has no leader (state znode, Metadata).
	NoLeader BrokerID = -1
	// LeaderDuringDelete marks a partition whose topic is being deleted (UpdateMetadata only).
	LeaderDuringDelete BrokerID = -2
)

// LeaderEpoch counts the controller's decisions on one partition; it never falls (V3 point 1.12).
type LeaderEpoch int32

// Special leader epochs.
const (
	// NoLeaderEpoch means that the sender does not know or does not check the epoch.
	NoLeaderEpoch LeaderEpoch = -1
	// EpochDuringDelete is the StopReplica sentinel that wins over every epoch (KIP-570).
	EpochDuringDelete LeaderEpoch = -2
)

// ControllerEpoch counts controller elections; it is the text in /controller_epoch.
type ControllerEpoch int32

// BrokerEpoch is the czxid of /brokers/ids/<id>: it changes whenever a broker registers anew (KIP-380).
type BrokerEpoch int64

// NoBrokerEpoch means unknown or not checked.
const NoBrokerEpoch BrokerEpoch = -1

// ZKVersion is the data version of a znode. For a state znode Kafka's protocol calls it partition epoch.
type ZKVersion int32

// AnyVersion makes a conditional ZooKeeper write unconditional.
const AnyVersion ZKVersion = -1

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String returns topic-partition, which is also the name of the partition's folder on disk.
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// Compare orders by topic, then partition number.
func (tp TopicPartition) Compare(o TopicPartition) int {
	if c := strings.Compare(tp.Topic, o.Topic); c != 0 {
		return c
	}
	return int(tp.Partition) - int(o.Partition)
}

// TopicID is the 128-bit id of a topic (KIP-516). The zero value means none.
type TopicID [16]byte

// IsZero reports whether the id is unset.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// String returns the unpadded URL-safe base64 form that Kafka writes into ZooKeeper and partition.metadata.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads the form that String writes.
func ParseTopicID(s string) (TopicID, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 16 {
		return TopicID{}, fmt.Errorf("topic id %q is not 22 characters of URL-safe base64", s)
	}
	return TopicID(b), nil
}

// LeaderAndISR is the decision of a partition's state znode: who leads, since which epoch, and which
// replicas are in sync. The order of ISR is kept as written.
type LeaderAndISR struct {
	Leader      BrokerID
	LeaderEpoch LeaderEpoch
	ISR         []BrokerID
	// ControllerEpoch is that of the controller which made the decision.
	ControllerEpoch ControllerEpoch
	// Recovering is set after an unclean election until the leader has recovered (KIP-704).
	Recovering bool
}

// Clone returns a copy that shares nothing.
func (l LeaderAndISR) Clone() LeaderAndISR {
	l.ISR = slices.Clone(l.ISR)
	return l
}

// Equal reports whether both say the same; the ISR is compared in order.
func (l LeaderAndISR) Equal(o LeaderAndISR) bool {
	return l.Leader == o.Leader && l.LeaderEpoch == o.LeaderEpoch && l.ControllerEpoch == o.ControllerEpoch &&
		l.Recovering == o.Recovering && slices.Equal(l.ISR, o.ISR)
}

// Assignment is a partition's replica list with the changes of a running reassignment (KIP-455).
// Replicas[0] is the preferred leader (V3 point 1.4); the order must never be lost.
type Assignment struct {
	Replicas []BrokerID
	Adding   []BrokerID
	Removing []BrokerID
}

// Clone returns a copy that shares nothing.
func (a Assignment) Clone() Assignment {
	return Assignment{slices.Clone(a.Replicas), slices.Clone(a.Adding), slices.Clone(a.Removing)}
}

// Reassigning reports whether a reassignment is in progress.
func (a Assignment) Reassigning() bool { return len(a.Adding) > 0 || len(a.Removing) > 0 }

// Target returns the replicas that will remain: all but those being removed.
func (a Assignment) Target() []BrokerID {
	out := make([]BrokerID, 0, len(a.Replicas))
	for _, r := range a.Replicas {
		if !slices.Contains(a.Removing, r) {
			out = append(out, r)
		}
	}
	return out
}

// Endpoint is one listener of a broker as it is advertised.
type Endpoint struct {
	Listener string // listener name, such as PLAINTEXT or INTERNAL
	Protocol string // security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Host     string
	Port     int32
}

// Broker is one live broker as its registration in ZooKeeper describes it.
type Broker struct {
	ID    BrokerID
	Epoch BrokerEpoch
	// DataEpoch is the oldest Epoch since which the broker's logs have lost nothing. It differs from Epoch when
	// only the session or the process ended, not the machine: what was written was still there.
	DataEpoch BrokerEpoch
	Endpoints []Endpoint
	Rack      string // empty: none
}

// Endpoint returns the endpoint of the named listener.
func (b Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// IDsToInt32 and IDsFromInt32 translate replica lists at the wire's edge. A nil list stays nil.
func IDsToInt32(ids []BrokerID) []int32 {
	if ids == nil {
		return nil
	}
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}

// IDsFromInt32 is the reverse of IDsToInt32.
func IDsFromInt32(ids []int32) []BrokerID {
	if ids == nil {
		return nil
	}
	out := make([]BrokerID, len(ids))
	for i, id := range ids {
		out[i] = BrokerID(id)
	}
	return out
}

// JavaStringHash is String.hashCode of Java over UTF-16 units: Kafka uses it to spread groups over
// partitions of __consumer_offsets, so clients and Apache Kafka brokers must find the same place.
func JavaStringHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			h = 31*h + int32(0xd800+(r>>10))
			h = 31*h + int32(0xdc00+(r&0x3ff))
			continue
		}
		h = 31*h + int32(r)
	}
	return h
}

// NewTopicID makes a random (version 4) id from 16 random bytes; the caller supplies the randomness so
// that simulations stay reproducible. Ids with a leading dash in text form are avoided as Kafka does.
func NewTopicID(random func([]byte)) TopicID {
	for {
		var id TopicID
		random(id[:])
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if binary.BigEndian.Uint64(id[:8]) > 1 && !strings.HasPrefix(id.String(), "-") {
			return id
		}
	}
}
