package groupshell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/group"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// Versions of the records as Apache Kafka 3.9 writes them, and the highest that we read.
const (
	offsetKeyVersion        = 1
	groupKeyVersion         = 2
	offsetValueVersion      = 3
	offsetValueExpiryOnly   = 1 // the one version with an expiry of its own
	offsetValueVersionMax   = 4
	groupValueVersion       = 3
	groupValueVersionMax    = 4
	unpackedBytesMax        = 64 << 20 // bound of one batch when unpacked
	noTimestamp             = -1
	groupValueTimestampFrom = 2
)

// errUnknownRecord says that a record is of a kind or version that we do not know; the loader skips it, as
// Apache Kafka does for forward compatibility.
var errUnknownRecord = errors.New("unknown record in the offsets topic")

// encodeBatch makes one record batch of several appends of the same producer.
func encodeBatch(b *record.Builder, appends []group.Append, now time.Time) ([]byte, error) {
	b.Reset()
	b.Transactional = false
	if pid := appends[0].ProducerID; pid != group.NoProducer {
		b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = pid, appends[0].ProducerEpoch, 0, true
	}
	ts := now.UnixMilli()
	for _, a := range appends {
		for _, o := range a.Offsets {
			b.Add(ts, offsetKey(o), offsetValue(o))
		}
		for _, g := range a.Groups {
			b.Add(ts, groupKey(g.Group), groupValue(g))
		}
	}
	return b.Build(nil)
}

func offsetKey(o group.OffsetRecord) []byte {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: o.Group, Topic: o.TP.Topic, Partition: o.TP.Partition}
	return k.AppendTo(nil)
}

// offsetValue is nil for a tombstone.
func offsetValue(o group.OffsetRecord) []byte {
	if o.Tombstone {
		return nil
	}
	v := kmsg.OffsetCommitValue{
		Version: offsetValueVersion, Offset: o.Offset.Offset, LeaderEpoch: o.LeaderEpoch,
		Metadata: o.Metadata, CommitTimestamp: o.CommitTimestamp, ExpireTimestamp: o.ExpireTimestamp,
	}
	if o.ExpireTimestamp >= 0 {
		v.Version = offsetValueExpiryOnly
	}
	return v.AppendTo(nil)
}

func groupKey(id string) []byte {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: id}
	return k.AppendTo(nil)
}

// groupValue is nil for a tombstone.
func groupValue(g group.GroupRecord) []byte {
	if g.Tombstone {
		return nil
	}
	v := kmsg.GroupMetadataValue{
		Version: groupValueVersion, ProtocolType: g.ProtocolType, Generation: g.Generation,
		Protocol: g.Protocol, Leader: g.Leader, CurrentStateTimestamp: g.StateTimestamp,
	}
	for _, m := range g.Members {
		v.Members = append(v.Members, kmsg.GroupMetadataValueMember{
			MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			RebalanceTimeoutMillis: int32(m.RebalanceTimeout.Milliseconds()),
			SessionTimeoutMillis:   int32(m.SessionTimeout.Milliseconds()),
			Subscription:           m.Subscription, Assignment: m.Assignment,
		})
	}
	return v.AppendTo(nil)
}

// loadBatch feeds one batch to the loader. Records that cannot be read are counted in skipped with the
// last one's error; err is for a batch that cannot be read at all.
func loadBatch(l *group.Loader, b record.Batch, scratch []byte) (skipped int, last, err error) {
	if b.IsControl() {
		c, err := b.ParseControl()
		if err != nil {
			return 1, err, nil
		}
		if c.Type == record.ControlAbort || c.Type == record.ControlCommit {
			l.Marker(b.ProducerID(), c.Type == record.ControlCommit)
		}
		return 0, nil, nil
	}
	producer := group.NoProducer
	if b.IsTransactional() {
		producer = b.ProducerID()
	}
	it, err := b.Records(scratch[:0], unpackedBytesMax)
	if err != nil {
		return 0, nil, err
	}
	for it.Next() {
		if err := loadRecord(l, it.Record().Key, it.Record().Value, producer); err != nil {
			skipped, last = skipped+1, err
		}
	}
	return skipped, last, it.Err()
}

func loadRecord(l *group.Loader, key, value []byte, producer int64) error {
	if len(key) < 2 {
		return fmt.Errorf("key of %d bytes: %w", len(key), errUnknownRecord)
	}
	switch version := int16(binary.BigEndian.Uint16(key)); version {
	case 0, offsetKeyVersion:
		o, err := decodeOffset(key, value)
		if err != nil {
			return err
		}
		l.Offset(o, producer)
	case groupKeyVersion:
		g, err := decodeGroup(key, value)
		if err != nil {
			return err
		}
		l.Group(g)
	default:
		return fmt.Errorf("key version %d: %w", version, errUnknownRecord)
	}
	return nil
}

func decodeOffset(key, value []byte) (group.OffsetRecord, error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(key); err != nil {
		return group.OffsetRecord{}, fmt.Errorf("read offset key: %w", err)
	}
	o := group.OffsetRecord{Group: k.Group, TP: cluster.TopicPartition{Topic: k.Topic, Partition: k.Partition}}
	if value == nil {
		o.Tombstone = true
		return o, nil
	}
	if err := checkVersion(value, offsetValueVersionMax); err != nil {
		return o, fmt.Errorf("offset of group %q for %v: %w", k.Group, o.TP, err)
	}
	var v kmsg.OffsetCommitValue
	if err := v.ReadFrom(value); err != nil {
		return o, fmt.Errorf("read offset of group %q for %v: %w", k.Group, o.TP, err)
	}
	o.Offset = group.Offset{
		Offset: v.Offset, LeaderEpoch: -1, Metadata: v.Metadata, CommitTimestamp: v.CommitTimestamp, ExpireTimestamp: noTimestamp,
	}
	if v.Version >= offsetValueVersion {
		o.LeaderEpoch = v.LeaderEpoch
	}
	if v.Version == offsetValueExpiryOnly {
		o.ExpireTimestamp = v.ExpireTimestamp
	}
	return o, nil
}

func decodeGroup(key, value []byte) (group.GroupRecord, error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return group.GroupRecord{}, fmt.Errorf("read group key: %w", err)
	}
	g := group.GroupRecord{Group: k.Group}
	if value == nil {
		g.Tombstone = true
		return g, nil
	}
	if err := checkVersion(value, groupValueVersionMax); err != nil {
		return g, fmt.Errorf("group %q: %w", k.Group, err)
	}
	var v kmsg.GroupMetadataValue
	if err := v.ReadFrom(value); err != nil {
		return g, fmt.Errorf("read group %q: %w", k.Group, err)
	}
	g.ProtocolType, g.Protocol, g.Leader, g.Generation = v.ProtocolType, v.Protocol, v.Leader, v.Generation
	g.StateTimestamp = noTimestamp
	if v.Version >= groupValueTimestampFrom {
		g.StateTimestamp = v.CurrentStateTimestamp
	}
	for _, m := range v.Members {
		mr := group.MemberRecord{
			MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, ClientHost: m.ClientHost,
			SessionTimeout:   time.Duration(m.SessionTimeoutMillis) * time.Millisecond,
			RebalanceTimeout: time.Duration(m.RebalanceTimeoutMillis) * time.Millisecond,
			Subscription:     m.Subscription, Assignment: m.Assignment,
		}
		if v.Version == 0 { // had no rebalance timeout
			mr.RebalanceTimeout = mr.SessionTimeout
		}
		g.Members = append(g.Members, mr)
	}
	return g, nil
}

func checkVersion(value []byte, highest int16) error {
	if len(value) < 2 {
		return fmt.Errorf("value of %d bytes: %w", len(value), errUnknownRecord)
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 || v > highest {
		return fmt.Errorf("value version %d: %w", v, errUnknownRecord)
	}
	return nil
}
