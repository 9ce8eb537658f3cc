package offline

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestDecodeOffsets(t *testing.T) {
	key := (&kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "t", Partition: 3}).AppendTo(nil)
	for v := int16(0); v <= 3; v++ {
		value := kmsg.NewOffsetCommitValue()
		value.Version, value.Offset, value.Metadata, value.CommitTimestamp, value.LeaderEpoch = v, 55, "m", 99, 4
		d := DecodeOffsets(key, value.AppendTo(nil))
		if d.Type != "offset-commit" || d.Group != "g" || d.Topic != "t" || *d.Partition != 3 || d.Problem != "" || *d.Offset != 55 || (d.LeaderEpoch != nil) != (v == 3) {
			t.Errorf("version %d: %+v", v, d)
		}
	}
	if d := DecodeOffsets(key, nil); !d.Tombstone || d.Offset != nil {
		t.Errorf("%+v", d)
	}
	if d := DecodeOffsets(key, []byte{0, 1, 2}); d.Problem == "" || d.Group != "g" {
		t.Errorf("%+v", d)
	}
	if d := DecodeOffsets([]byte{0, 99}, nil); !strings.Contains(d.Problem, "key version 99") {
		t.Errorf("%+v", d)
	}
	if d := DecodeOffsets([]byte{0, 5, 0, 1, 'x', 0, 0}, nil); d.Type != "consumer-group-member" || d.Group != "x" {
		t.Errorf("%+v", d)
	}
}

func TestDecodeGroup(t *testing.T) {
	key := (&kmsg.GroupMetadataKey{Version: 2, Group: "g"}).AppendTo(nil)
	a := kmsg.NewConsumerMemberAssignment()
	topic := kmsg.NewConsumerMemberAssignmentTopic()
	topic.Topic, topic.Partitions = "t", []int32{1, 2}
	a.Topics = append(a.Topics, topic)
	m := kmsg.NewGroupMetadataValueMember()
	m.MemberID, m.ClientID, m.ClientHost, m.Assignment = "id-1", "c", "/h", a.AppendTo(nil)
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.Protocol, v.Leader = 3, "consumer", 6, kmsg.StringPtr("range"), kmsg.StringPtr("id-1")
	v.Members = append(v.Members, m)
	d := DecodeOffsets(key, v.AppendTo(nil))
	if d.Type != "group-metadata" || *d.Generation != 6 || d.Protocol != "range" || len(d.Members) != 1 || strings.Join(d.Members[0].Assigned, ",") != "t:1,t:2" {
		t.Errorf("%+v", d)
	}
}

func TestDecodeTransactions(t *testing.T) {
	key := (&kmsg.TxnMetadataKey{TransactionalID: "tx"}).AppendTo(nil)
	v := kmsg.NewTxnMetadataValue()
	v.ProducerID, v.ProducerEpoch, v.TimeoutMillis, v.State = 9, 2, 60000, 1
	topic := kmsg.NewTxnMetadataValueTopic()
	topic.Topic, topic.Partitions = "t", []int32{0}
	v.Topics = append(v.Topics, topic)
	d := DecodeTransactions(key, v.AppendTo(nil))
	if d.TransactionalID != "tx" || *d.ProducerID != 9 || d.State != "Ongoing" || strings.Join(d.Partitions, "") != "t:0" || d.Problem != "" {
		t.Errorf("%+v", d)
	}
	if d := DecodeTransactions(key, nil); !d.Tombstone {
		t.Errorf("%+v", d)
	}
	if d := DecodeTransactions(nil, nil); d.Problem == "" {
		t.Errorf("%+v", d)
	}
}
