package offline

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupValue is a group with one member that says these things.
func groupValue(version int16, protocolType string, subscription, assignment []byte) []byte {
	m := kmsg.NewGroupMetadataValueMember()
	m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, m.Subscription, m.Assignment = "m", kmsg.StringPtr("i"), "c", "/h", subscription, assignment
	m.RebalanceTimeoutMillis, m.SessionTimeoutMillis = 60000, 10000
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation, v.CurrentStateTimestamp, v.Members = version, protocolType, 6, 77, []kmsg.GroupMetadataValueMember{m}
	return v.AppendTo(nil)
}

func TestClassicMember(t *testing.T) {
	key := (&kmsg.GroupMetadataKey{Version: 2, Group: "g"}).AppendTo(nil)
	s := kmsg.NewConsumerMemberMetadata()
	s.Version, s.Topics, s.UserData, s.Generation, s.Rack = 3, []string{"a", "b"}, []byte{1}, 5, kmsg.StringPtr("r")
	owned := kmsg.NewConsumerMemberMetadataOwnedPartition()
	owned.Topic, owned.Partitions = "a", []int32{0, 7}
	s.OwnedPartitions = append(s.OwnedPartitions, owned)
	newer := append(s.AppendTo(nil), 9, 9)
	newer[1] = 4
	for _, tc := range []struct {
		name                     string
		version                  int16
		protocolType             string
		subscription, assignment []byte
		want                     string
	}{
		{"whole", 3, "consumer", s.AppendTo(nil), []byte("\x00\x00\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x01\xff"),
			`{"id":"m","instanceId":"i","clientId":"c","host":"/h","rebalanceTimeoutMs":60000,"sessionTimeoutMs":10000,"subscribed":["a","b"],"owned":["a:0","a:7"],"generation":5,"rack":"r","userData":"AQ==","assigned":["a:3"],"assignedUserData":"/w=="}`},
		{"flexible", 4, "consumer", nil, nil, `{"id":"m","instanceId":"i","clientId":"c","host":"/h","rebalanceTimeoutMs":60000,"sessionTimeoutMs":10000,"subscribed":[],"assigned":[]}`},
		{"oldest", 0, "consumer", []byte("\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"), nil, `{"id":"m","clientId":"c","host":"/h","sessionTimeoutMs":10000,"subscribed":[],"assigned":[]}`},
		{"a newer protocol is read as the newest that is known", 3, "consumer", newer, nil,
			`{"id":"m","instanceId":"i","clientId":"c","host":"/h","rebalanceTimeoutMs":60000,"sessionTimeoutMs":10000,"subscribed":["a","b"],"owned":["a:0","a:7"],"generation":5,"rack":"r","userData":"AQ==","assigned":[]}`},
		{"not readable", 3, "consumer", []byte{0, 1, 0}, []byte{0xff}, `{"id":"m","instanceId":"i","clientId":"c","host":"/h","rebalanceTimeoutMs":60000,"sessionTimeoutMs":10000,"subscribed":[],"assigned":[],"subscription":"AAEA","assignment":"/w=="}`},
		{"of another protocol", 3, "connect", s.AppendTo(nil)[:4], nil, `{"id":"m","instanceId":"i","clientId":"c","host":"/h","rebalanceTimeoutMs":60000,"sessionTimeoutMs":10000,"subscribed":[],"assigned":[],"subscription":"` +
			base64.StdEncoding.EncodeToString(s.AppendTo(nil)[:4]) + `"}`},
	} {
		d := DecodeOffsets(key, groupValue(tc.version, tc.protocolType, tc.subscription, tc.assignment))
		if d.Problem != "" || len(d.Members) != 1 || d.Version == nil || *d.Version != tc.version || (d.StateTimestamp == nil) != (tc.version < 2) {
			t.Errorf("%s: %+v", tc.name, d)
			continue
		}
		if got, err := json.Marshal(d.Members[0]); err != nil || string(got) != tc.want {
			t.Errorf("%s: %v\n%s\n%s", tc.name, err, got, tc.want)
		}
	}
}

// TestClassicValues: what is longer than its version, of a version that is not known, or of a newer Kafka.
func TestClassicValues(t *testing.T) {
	commit := (&kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "t", Partition: 3}).AppendTo(nil)
	group := (&kmsg.GroupMetadataKey{Version: 2, Group: "g"}).AppendTo(nil)
	transaction := (&kmsg.TxnMetadataKey{TransactionalID: "x"}).AppendTo(nil)
	const tail = "\x00\x00\x00\x00\x00\x00\x00\x07"
	v1 := "\x00\x01" + "\x00\x00\x00\x00\x00\x00\x00\x09" + "\x00\x02" + "\x00\x00\xea\x60" + "\x07" + "\x02" + "\x02t" + "\x02\x00\x00\x00\x04" + "\x00" + tail + tail
	for _, tc := range []struct {
		name       string
		key, value string
		want       string
	}{
		{"commit that expires", string(commit), "\x00\x01" + tail + "\x00\x01m" + tail + tail,
			`{"type":"offset-commit","group":"g","topic":"t","partition":3,"offset":7,"metadata":"m","commitTimestamp":7,"expireTimestamp":7,"version":1}`},
		{"commit with a topic id and a tag of a newer Kafka", string(commit), "\x00\x04" + tail + "\xff\xff\xff\xff" + "\x01" + tail + "\x02\x00\x10" + uuidBytes + "\x09\x01\xab",
			`{"type":"offset-commit","group":"g","topic":"t","partition":3,"offset":7,"leaderEpoch":-1,"commitTimestamp":7,"topicId":"` + uuidText + `","version":4,"data":{"tag9":"ab"}}`},
		{"commit that is too long", string(commit), "\x00\x00" + tail + "\x00\x00" + tail + "\x01",
			`{"type":"offset-commit","group":"g","topic":"t","partition":3,"offset":7,"commitTimestamp":7,"version":0,"problem":"the value: 1 bytes are left over","hex":"00000000000000000007000000000000000000070` + `1"}`},
		{"commit of a newer version", string(commit), "\x00\x05\x00", `{"type":"offset-commit","group":"g","topic":"t","partition":3,"version":5,"problem":"the value: version 5 is not known: the newest is 4","hex":"000500"}`},
		{"commit of nothing", string(commit), "", `{"type":"offset-commit","group":"g","topic":"t","partition":3,"problem":"the value has no version"}`},
		{"commit whose key is cut", string(commit[:5]), "\x00\x00", `{"type":"offset-commit","problem":"the key: it ends in the middle","hex":"0001000167"}`},
		{"group of a newer version", string(group), "\x00\x05", `{"type":"group-metadata","group":"g","version":5,"problem":"the value: version 5 is not known: the newest is 4","hex":"0005"}`},
		{"transaction of 4.1", string(transaction), v1 + "\x04\x00\x08" + tail + "\x01\x08" + tail + "\x02\x02\x00\x02\x03\x02\xff\xff",
			`{"type":"transaction","transactionalId":"x","producerId":9,"producerEpoch":2,"state":"PrepareEpochFence","timeoutMs":60000,"partitions":["t:4"],"lastUpdate":7,"startTimestamp":7,` +
				`"previousProducerId":7,"nextProducerId":7,"nextProducerEpoch":-1,"clientTransactionVersion":2,"version":1}`},
		{"transaction in no state", string(transaction), "\x00\x00" + tail + "\x00\x00" + "\x00\x00\x00\x00" + "\x63" + "\xff\xff\xff\xff" + tail + tail,
			`{"type":"transaction","transactionalId":"x","producerId":7,"producerEpoch":0,"state":"unknown (99)","timeoutMs":0,"lastUpdate":7,"startTimestamp":7,"version":0}`},
		{"transaction of a newer version", string(transaction), "\x00\x02", `{"type":"transaction","transactionalId":"x","version":2,"problem":"the value: version 2 is not known: the newest is 1","hex":"0002"}`},
	} {
		decode := DecodeOffsets
		if strings.HasPrefix(tc.name, "transaction") {
			decode = DecodeTransactions
		}
		if got, err := json.Marshal(decode([]byte(tc.key), []byte(tc.value))); err != nil || string(got) != tc.want {
			t.Errorf("%s: %v\n%s\n%s", tc.name, err, got, tc.want)
		}
	}
	if d := DecodeTransactions([]byte{0, 1}, []byte{7}); d.Problem != "key version 1 is not known" || d.Hex != "07" {
		t.Errorf("%+v", d)
	}
}
