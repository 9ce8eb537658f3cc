package offline

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

// dataOf prints what was decoded as Kafka's tool does.
func dataOf(t *testing.T, d Decoded) string {
	t.Helper()
	b, err := json.Marshal(d.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const (
	uuidBytes = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
	uuidText  = "AQIDBAUGBwgJCgsMDQ4PEA"
)

func TestDecodeMetadata(t *testing.T) {
	for _, tc := range []struct {
		name, value, kind, data, problem string
	}{
		{"topic", "\x01\x02\x00\x02t" + uuidBytes + "\x00", "topic-record", `{"name":"t","topicId":"` + uuidText + `"}`, ""},
		{"change with tags", "\x01\x05\x02\x00\x00\x00\x03" + uuidBytes + "\x03\x00\x05\x02\x00\x00\x00\x07\x01\x04\xff\xff\xff\xff\x06\x01\x00", "partition-change-record",
			`{"eligibleLeaderReplicas":null,"isr":[7],"leader":-1,"partitionId":3,"topicId":"` + uuidText + `"}`, ""},
		{"tag of a newer version", "\x01\x14\x00\x01\x63\x02\xab\xcd", "no-op-record", `{"tag99":"abcd"}`, ""},
		{"no secrets", "\x01\x0b\x00\x02u\x01\x03sa\x03st\x03se\x00\x00\x10\x00\x00", "user-scram-credential-record", `{"iterations":4096,"mechanism":1,"name":"u"}`, ""},
		{"quota", "\x01\x0e\x00\x02\x05user\x00\x00\x02k\x40\x24\x00\x00\x00\x00\x00\x00\x00\x00", "client-quota-record", `{"entity":[{"entityName":null,"entityType":"user"}],"key":"k","remove":false,"value":10}`, ""},
		{"null name", "\x01\x02\x00\x00" + uuidBytes + "\x00", "topic-record", "null", "name: null where it must not be"},
		{"cut", "\x01\x02\x00\x05t", "topic-record", "null", "it ends in the middle"},
		{"an array longer than the record", "\x01\x03\x00\x00\x00\x00\x01" + uuidBytes + "\xff\xff\xff\x07", "partition-record", "null", "it ends in the middle"},
		{"left over", "\x01\x14\x00\x00\x00", "no-op-record", "{}", "1 bytes are left over"},
		{"unknown type", "\x01\x63\x03\xaa", "unknown", "null", "record type 99 is not known; its 1 bytes may hold a secret and are not shown"},
		{"unknown version", "\x01\x02\x07\xaa", "topic-record", "null", "version 7 is not known: the newest is 0; its 1 bytes may hold a secret and are not shown"},
		{"unknown frame", "\x02\x02\x07", "unknown", "null", "frame version 2 is not known; its 2 bytes may hold a secret and are not shown"},
		{"nothing", "", "unknown", "null", "a value of 0 bytes has no frame"},
	} {
		d := DecodeMetadata(nil, []byte(tc.value))
		if d.Type != tc.kind || dataOf(t, d) != tc.data || d.Problem != tc.problem {
			t.Errorf("%s: %s %s %q\nwant %s %s %q", tc.name, d.Type, dataOf(t, d), d.Problem, tc.kind, tc.data, tc.problem)
		}
	}
	if d := DecodeMetadata(nil, []byte("\x01\x63\x03\xaa\xbb")); d.Hex != "" || *d.Version != 3 {
		t.Errorf("%+v", d)
	}
}

func TestDecodeGroupsOfTheNewProtocol(t *testing.T) {
	key := []byte("\x00\x05\x00\x01g\x00\x01m")
	member := "\x00\x00" + "\x00" + "\x02r" + "\x02c" + "\x02h" + "\x02\x02t" + "\x00" + "\x00\x00\x03\xe8" + "\x00" +
		"\x01\x00\x0a\x01\x00\x00\x00\x07\x02\x02p\x01\x00" + "\x00"
	member = strings.Replace(member, "\x01\x00\x0a\x01", "\x01\x00\x0b\x01", 1)
	d := DecodeOffsets(key, []byte(member))
	want := `{"classicMemberMetadata":{"sessionTimeoutMs":7,"supportedProtocols":[{"metadata":"","name":"p"}]},"clientHost":"h","clientId":"c",` +
		`"instanceId":null,"rackId":"r","rebalanceTimeoutMs":1000,"serverAssignor":null,"subscribedTopicNames":["t"],"subscribedTopicRegex":null}`
	if d.Type != "consumer-group-member" || d.Group != "g" || d.Key["memberId"] != "m" || dataOf(t, d) != want || d.Problem != "" {
		t.Errorf("%+v\n%s\n%s", d, dataOf(t, d), want)
	}
	// as Apache Kafka 4.1.1 writes it: the tagged structure is null
	d = DecodeOffsets(key, []byte("\x00\x00\x00\x00\x11console-consumer\x0b/127.0.0.1\x02\x09newgroup\x01\x00\x04\x93\xe0\x00\x01\x00\x01\x00"))
	if v, ok := d.Data["classicMemberMetadata"]; !ok || v != nil || d.Problem != "" || d.Data["rebalanceTimeoutMs"] != int64(300000) {
		t.Errorf("%+v", d)
	}
	d = DecodeOffsets([]byte("\x00\x08\x00\x01g\x00\x01m"), nil)
	if d.Type != "consumer-group-current-assignment" || !d.Tombstone || d.Problem != "" {
		t.Errorf("%+v", d)
	}
	if d := DecodeOffsets(key, []byte{0}); d.Problem == "" || d.Group != "g" || d.Hex != "00" {
		t.Errorf("%+v", d)
	}
	if d := DecodeOffsets([]byte("\x00\x05\x00\x09g"), nil); d.Problem != "the key: it ends in the middle" {
		t.Errorf("%+v", d)
	}
	d = DecodeShareState([]byte("\x00\x01\x00\x01g"+uuidBytes+"\x00\x00\x00\x02"), []byte("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x09\x01\x00"))
	if d.Type != "share-update" || d.Key["topicId"] != uuidText || dataOf(t, d) != `{"leaderEpoch":2,"snapshotEpoch":1,"startOffset":9,"stateBatches":[]}` {
		t.Errorf("%+v", d)
	}
}

func TestDecodeControlOfKRaft(t *testing.T) {
	d := DecodeControl([]byte{0, 0, 0, 3}, []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00"))
	if d.Type != "snapshot-header" || dataOf(t, d) != `{"lastContainedLogTimestamp":5,"version":0}` || d.Problem != "" {
		t.Errorf("%+v", d)
	}
	voters := "\x00\x00\x02\x00\x00\x00\x01" + uuidBytes + "\x02\x02N\x02h\x23\x84\x00" + "\x00\x00\x00\x01\x00" + "\x00" + "\x00"
	d = DecodeControl([]byte{0, 0, 0, 6}, []byte(voters))
	want := `{"version":0,"voters":[{"endpoints":[{"host":"h","name":"N","port":9092}],"kRaftVersionFeature":{"maxSupportedVersion":1,"minSupportedVersion":0},"voterDirectoryId":"` + uuidText + `","voterId":1}]}`
	if d.Type != "kraft-voters" || dataOf(t, d) != want || d.Problem != "" {
		t.Errorf("%+v\n%s\n%s", d, dataOf(t, d), want)
	}
	if d := DecodeControl([]byte{0, 0, 0, 5}, nil); d.Problem == "" {
		t.Errorf("%+v", d)
	}
}

// TestSecretsOfDamagedRecords: a credential that cannot be decoded, because it is cut, too long or of a version that is not
// known, does not show its bytes instead.
func TestSecretsOfDamagedRecords(t *testing.T) {
	const whole = "\x02u\x01\x03sa\x03st\x03se\x00\x00\x10\x00\x00"
	for name, value := range map[string]string{
		"version": "\x01\x0b\x05" + whole, "cut": "\x01\x0b\x00" + whole[:len(whole)-3], "long": "\x01\x0b\x00" + whole + "more",
	} {
		d := DecodeMetadata(nil, []byte(value))
		if d.Problem == "" || d.Hex != "" || d.Type != "user-scram-credential-record" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for name, value := range map[string]string{
		"a newer version": "\x01\x02\x05secret", "a type that is not known": "\x01\x63\x00secret", "a frame that is not known": "\x02secret",
		"a tag of a credential":   "\x01\x0b\x00" + whole[:len(whole)-1] + "\x01\x63\x06secret",
		"a setting":               "\x01\x04\x00\x04\x021\x16ssl.keystore.password\x07secret\x00",
		"a setting that is long":  "\x01\x04\x00\x04\x021\x16ssl.keystore.password\x07secret\x00more",
		"a setting that is short": "\x01\x04\x00\x04\x021\x16ssl.keystore.password\x08secret",
	} {
		d := DecodeMetadata(nil, []byte(value))
		all, err := json.Marshal(d)
		if err != nil || strings.Contains(string(all), "secret\"") || strings.Contains(string(all), hex.EncodeToString([]byte("secret"))) {
			t.Errorf("%s: %s %v", name, all, err)
		}
	}
	if d := DecodeMetadata(nil, []byte("\x01\x04\x00\x04\x021\x16ssl.keystore.password\x07secret\x00")); d.Problem != "" || d.Data["value"] != "***" {
		t.Errorf("%+v", d)
	}
	if d := DecodeMetadata(nil, []byte("\x01\x02\x00\x05t")); d.Hex == "" {
		t.Errorf("a record without secrets shows what could not be read: %+v", d)
	}
}
