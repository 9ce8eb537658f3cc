package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An operator's change of leaderAndISR travels to the controller as an ElectLeaders request (API key 43, version 2) of a
// type of our own, with the changes in a tagged field (KIP-482). Apache Kafka refuses the type and skips the
// tags, so that neither can take one for the other.
const (
	// SetLeaderAndISRElection is the election type of such a request.
	SetLeaderAndISRElection int8 = 100
	// LeaderChangeTag is the tag of EncodeLeaderChanges in the request, of LeaderChanged in each partition of
	// the answer, and of the served version (one byte) in ApiVersions.
	LeaderChangeTag uint32 = 10100
	// LeaderChangeVersion is the newest version of the encoding.
	LeaderChangeVersion byte = 1
)

// KeepLeader in a LeaderChange means that the partition's leader stays.
const KeepLeader BrokerID = -2

// LeaderChange is what an operator asks for one partition.
type LeaderChange struct {
	TopicPartition
	Leader        BrokerID    // KeepLeader: as it is
	ISR           []BrokerID  // nil: as it is, without dead members
	ExpectEpoch   LeaderEpoch // the stored leader epoch must be this one; NoLeaderEpoch: any
	ExpectVersion ZKVersion   // the state znode's version must be this one; AnyVersion: any
	Unclean       bool        // the leader may be outside the ISR: records may be lost
}

// LeaderChanged is the decision in force after a change was answered.
type LeaderChanged struct {
	Leader          BrokerID
	LeaderEpoch     LeaderEpoch
	ControllerEpoch ControllerEpoch
	ZKVersion       ZKVersion
	ISR             []BrokerID
}

var errLeaderChange = errors.New("leader change does not decode")

// EncodeLeaderChanges writes the changes without their partitions, which the request lists in the same order.
func EncodeLeaderChanges(changes []LeaderChange) []byte {
	b := binary.BigEndian.AppendUint32([]byte{LeaderChangeVersion}, uint32(len(changes)))
	for i := range changes {
		c := &changes[i]
		b = binary.BigEndian.AppendUint32(b, uint32(c.Leader))
		b = binary.BigEndian.AppendUint32(b, uint32(c.ExpectEpoch))
		b = binary.BigEndian.AppendUint32(b, uint32(c.ExpectVersion))
		if c.Unclean {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
		b = appendWireIDs(b, c.ISR)
	}
	return b
}

// DecodeLeaderChanges reads what EncodeLeaderChanges wrote for the given partitions.
func DecodeLeaderChanges(of []TopicPartition, data []byte) ([]LeaderChange, error) {
	d := wireReader{rest: data}
	if v := d.byte(); v != LeaderChangeVersion {
		return nil, fmt.Errorf("%w: version %d", errLeaderChange, v)
	}
	if n := d.int32(); int(n) != len(of) {
		return nil, fmt.Errorf("%w: %d changes for %d partitions", errLeaderChange, n, len(of))
	}
	out := make([]LeaderChange, len(of))
	for i := range out {
		out[i] = LeaderChange{
			TopicPartition: of[i], Leader: BrokerID(d.int32()), ExpectEpoch: LeaderEpoch(d.int32()),
			ExpectVersion: ZKVersion(d.int32()), Unclean: d.byte() == 1,
		}
		out[i].ISR = d.ids()
	}
	if d.bad || len(d.rest) > 0 {
		return nil, errLeaderChange
	}
	return out, nil
}

// Encode writes the decision for the answer.
func (c LeaderChanged) Encode() []byte {
	b := []byte{LeaderChangeVersion}
	for _, v := range []int32{int32(c.Leader), int32(c.LeaderEpoch), int32(c.ControllerEpoch), int32(c.ZKVersion)} {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return appendWireIDs(b, c.ISR)
}

// DecodeLeaderChanged reads what Encode wrote.
func DecodeLeaderChanged(data []byte) (LeaderChanged, error) {
	d := wireReader{rest: data}
	if v := d.byte(); v != LeaderChangeVersion {
		return LeaderChanged{}, fmt.Errorf("%w: version %d", errLeaderChange, v)
	}
	c := LeaderChanged{
		Leader: BrokerID(d.int32()), LeaderEpoch: LeaderEpoch(d.int32()),
		ControllerEpoch: ControllerEpoch(d.int32()), ZKVersion: ZKVersion(d.int32()),
	}
	c.ISR = d.ids()
	if d.bad || len(d.rest) > 0 {
		return LeaderChanged{}, errLeaderChange
	}
	return c, nil
}

// appendWireIDs writes a count, -1 for nil, and the ids.
func appendWireIDs(b []byte, ids []BrokerID) []byte {
	if ids == nil {
		return binary.BigEndian.AppendUint32(b, ^uint32(0))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(ids)))
	for _, id := range ids {
		b = binary.BigEndian.AppendUint32(b, uint32(id))
	}
	return b
}

// wireReader reads big-endian numbers; after the end everything is zero and bad is set.
type wireReader struct {
	rest []byte
	bad  bool
}

func (r *wireReader) take(n int) []byte {
	if len(r.rest) < n {
		r.bad, r.rest = true, nil
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *wireReader) byte() byte { return r.take(1)[0] }

func (r *wireReader) int32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }

func (r *wireReader) ids() []BrokerID {
	n := int(r.int32())
	if n == -1 {
		return nil
	}
	if n < 0 || n > len(r.rest)/4 {
		r.bad = true
		return nil
	}
	out := make([]BrokerID, n)
	for i := range out {
		out[i] = BrokerID(r.int32())
	}
	return out
}
