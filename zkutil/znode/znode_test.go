package znode

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// TestErrorsNamePathAndField feeds broken values and reads the error.
func TestErrorsNamePathAndField(t *testing.T) {
	cases := []struct{ path, data, field string }{
		{"/controller", `{"version":2}`, "brokerid"},
		{"/controller", `{"version":"2","brokerid":1}`, "version"},
		{"/controller", `{"version":2,"brokerid":1,"timestamp":"x"}`, "timestamp"},
		{"/controller", ``, ""},
		{"/controller", `null`, ""},
		{"/controller", `[1]`, ""},
		{"/controller", `{"version":2,"brokerid":1`, ""},
		{"/controller_epoch", ``, ""},
		{"/controller_epoch", `-1`, ""},
		{"/controller_epoch", `1 `, ""},
		{"/controller_epoch", `99999999999`, ""},
		{"/brokers/ids/1", `{"version":5,"endpoints":[]}`, "listener_security_protocol_map"},
		{"/brokers/ids/1", `{"version":5,"listener_security_protocol_map":{},"endpoints":["x"]}`, "endpoints"},
		{"/brokers/ids/1", `{"version":5,"listener_security_protocol_map":{},"endpoints":["A://h:99999"]}`, "endpoints"},
		{"/brokers/ids/1", `{"version":5,"listener_security_protocol_map":{"A":1},"endpoints":[]}`, "listener_security_protocol_map"},
		{"/brokers/ids/1", `{"version":5,"listener_security_protocol_map":{},"endpoints":[7]}`, "endpoints"},
		{"/brokers/ids/1", `{"version":5,"listener_security_protocol_map":{},"endpoints":[],"features":7}`, "features"},
		{"/brokers/ids/1", `{"version":0}`, "version"},
		{"/brokers/ids/1", `{"version":2,"endpoints":{}}`, "endpoints"},
		{"/brokers/topics/t", `{"version":3}`, "partitions"},
		{"/brokers/topics/t", `{"version":3,"partitions":{"x":[1]}}`, "partitions"},
		{"/brokers/topics/t", `{"version":3,"partitions":{"-1":[1]}}`, "partitions"},
		{"/brokers/topics/t", `{"version":3,"partitions":{"0":1}}`, "partitions"},
		{"/brokers/topics/t", `{"version":3,"partitions":{"0":[-1]}}`, "partitions"},
		{"/brokers/topics/t", `{"version":3,"partitions":{"0":[4294967296]}}`, "partitions"},
		{"/brokers/topics/t", `{"version":3,"partitions":{},"topic_id":"short"}`, "topic_id"},
		{"/brokers/topics/t", `{"version":3,"partitions":{},"topic_id":7}`, "topic_id"},
		{"/brokers/topics/t", `{"version":3,"partitions":{},"adding_replicas":[]}`, "adding_replicas"},
		{"/brokers/topics/t/partitions/0/state", `{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1}`, "isr"},
		{"/brokers/topics/t/partitions/0/state", `{"version":1,"leader":-2,"leader_epoch":0,"controller_epoch":1,"isr":[]}`, "leader"},
		{"/brokers/topics/t/partitions/0/state", `{"version":1,"leader":1,"leader_epoch":-1,"controller_epoch":1,"isr":[]}`, "leader_epoch"},
		{"/brokers/topics/t/partitions/0/state", `{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1.5,"isr":[]}`, "controller_epoch"},
		{"/brokers/topics/t/partitions/0/state", `{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":["1"]}`, "isr"},
		{"/brokers/topics/t/partitions/0/state",
			`{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[],"leader_recovery_state":2}`, "leader_recovery_state"},
		{"/isr_change_notification/isr_change_0000000000", `{"version":1,"partitions":[7]}`, "partitions"},
		{"/isr_change_notification/isr_change_0000000000", `{"version":1,"partitions":[{"topic":"t"}]}`, "partition"},
		{"/isr_change_notification/isr_change_0000000000", `{"version":1,"partitions":[{"partition":1}]}`, "topic"},
		{"/log_dir_event_notification/log_dir_event_0000000000", `{"version":1,"event":1}`, "broker"},
		{"/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"t","partition":0}]}`, "replicas"},
		{"/admin/preferred_replica_election", `{"version":1}`, "partitions"},
		{"/admin/leadership_alerts/t-0", `{"version":1}`, "leader"},
		{"/admin/leadership_alerts/t-0",
			`{"version":1,"leader":1,"leader_epoch":1,"controller_epoch":1,"decided":"1","raised":"1","waiting":[{}]}`, "broker"},
		{"/config/topics/t", `{"version":1}`, "config"},
		{"/config/topics/t", `{"version":1,"config":{"a":1}}`, "config"},
		{"/config/changes/config_change_0000000000", `{"version":2,"entity_path":"topics"}`, "entity_path"},
		{"/config/changes/config_change_0000000000", `{"version":1,"entity_type":"brokers","entity_name":"1"}`, "entity_type"},
		{"/cluster/id", `{"version":"1"}`, "id"},
		{"/cluster/id", `{"version":"1","id":""}`, "id"},
		{"/latest_producer_id_block", `{"version":1,"broker":1,"block_start":"0"}`, "block_end"},
		{"/latest_producer_id_block", `{"version":1,"broker":1,"block_start":"5","block_end":"4"}`, "block_end"},
		{"/feature", `{"version":2,"status":7}`, "status"},
	}
	for _, c := range cases {
		_, ok, err := recode(c.path, []byte(c.data))
		var de *DecodeError
		switch {
		case !ok:
			t.Errorf("%s has no codec", c.path)
		case !errors.As(err, &de):
			t.Errorf("%s %s: error %v", c.path, c.data, err)
		case de.Path != c.path || de.Field != c.field:
			t.Errorf("%s %s: error names %q %q, want %q %q", c.path, c.data, de.Path, de.Field, c.path, c.field)
		case !strings.Contains(err.Error(), c.path):
			t.Errorf("text %q", err)
		}
	}
}

func TestNullData(t *testing.T) {
	if _, ok, err := DecodeProducerIDBlock(nil); ok || err != nil {
		t.Errorf("block %v, %v", ok, err)
	}
	if c, err := DecodeConfig(UserConfig, "alice", nil); err != nil || len(c.Values) != 0 {
		t.Errorf("config %v, %v", c, err)
	}
}

func TestDoubledKeysLastWins(t *testing.T) {
	s, err := DecodeState(cluster.TopicPartition{}, []byte(`{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[1],"leader":2}`))
	if err != nil || s.Leader != 2 || len(s.Unknown) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPaths(t *testing.T) {
	tp := cluster.TopicPartition{Topic: "a-b.c_d", Partition: 12}
	if got := StatePath(tp); got != "/brokers/topics/a-b.c_d/partitions/12/state" {
		t.Errorf("state path %s", got)
	}
	if got, ok := ParseStatePath(StatePath(tp)); !ok || got != tp {
		t.Errorf("parsed %v, %v", got, ok)
	}
	for _, bad := range []string{"", "/", "/brokers/topics", "/brokers/topics/t", "/brokers/topics/t/partitions/x/state",
		"/brokers/topics/t/partitions/01/state", "/brokers/topics//partitions/0/state", "/brokers/topics/t/partitions/0/state/x"} {
		if _, ok := ParseStatePath(bad); ok {
			t.Errorf("%q is a state path", bad)
		}
	}
	alert := strings.TrimPrefix(LeadershipAlertPath(tp), LeadershipAlertsPath+"/")
	if got, err := ParseLeadershipAlertChild(alert); err != nil || got != tp {
		t.Errorf("parsed %v, %v", got, err)
	}
	for _, bad := range []string{"", "t", "-1", "t-", "t-x", "t--1"} {
		if tp, err := ParseLeadershipAlertChild(bad); err == nil && bad != "t--1" {
			t.Errorf("%q is the alert of %v", bad, tp)
		}
	}
	for _, bad := range []string{"", "x", "-1", "01", "2147483648", "+1"} {
		if _, err := ParseBrokerID(bad); err == nil {
			t.Errorf("%q is a broker id", bad)
		}
	}
	if topic, ok := ParseTopicPath("/brokers/topics/t"); !ok || topic != "t" {
		t.Errorf("topic %q, %v", topic, ok)
	}
}

func TestSequenceNumber(t *testing.T) {
	for name, want := range map[string]int32{
		"isr_change_0000000042": 42, "/a/config_change_0000000000": 0, "0000000007": 7, "x2147483647": 2147483647,
		"n_123_0000000009": 9, "t90000000001": 1,
	} {
		if n, ok := SequenceNumber(name); !ok || n != want {
			t.Errorf("%q: %d, %v", name, n, ok)
		}
	}
	for _, name := range []string{"", "x", "x123", "0000000001x", "9999999999"} {
		if n, ok := SequenceNumber(name); ok {
			t.Errorf("%q: %d", name, n)
		}
	}
}

func TestSanitizeEntity(t *testing.T) {
	for name, want := range map[string]string{
		"alice": "alice", "CN=a b,O=*": "CN%3Da%20b%2CO%3D%2A", "a+b": "a%2Bb", "a~b.c-d_e": "a%7Eb.c-d_e", "é/": "%C3%A9%2F",
		DefaultEntity: "%3Cdefault%3E",
		// As Apache Kafka 3.9.1 wrote it.
		"we ird*~/%ü<default>": "we%20ird%2A%7E%2F%25%C3%BC%3Cdefault%3E",
	} {
		if got := SanitizeEntity(name); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
		if back, err := DesanitizeEntity(want); err != nil || back != name {
			t.Errorf("%q came back as %q, %v", name, back, err)
		}
	}
	if _, err := DesanitizeEntity("%zz"); err == nil {
		t.Error("%zz was taken")
	}
}

func TestConfigPaths(t *testing.T) {
	if got := ConfigEntityPath(UserConfig, UserClientEntity("alice", "app1")); got != "/config/users/alice/clients/app1" {
		t.Error(got)
	}
	if got := ConfigEntityPath(BrokerConfig, DefaultEntity); got != "/config/brokers/<default>" {
		t.Error(got)
	}
}

// TestConfigOrderIsStable: many properties, the same bytes from any map order.
func TestConfigOrderIsStable(t *testing.T) {
	c := Config{Values: map[string]string{}}
	for i := range 60 {
		c.Values[fmt.Sprintf("some.property.%d", i)] = "v"
	}
	want := string(c.Encode())
	for range 5 {
		back, err := DecodeConfig(TopicConfig, "t", []byte(want))
		if err != nil || len(back.Values) != 60 || string(back.Encode()) != want {
			t.Fatalf("%v: %s", err, back.Encode())
		}
	}
}

func TestFencedRequests(t *testing.T) {
	op := zkop.Request{Kind: zkop.Delete, Path: "/x", Version: 3}
	r := Fenced(7, op)
	if r.Kind != zkop.Multi || len(r.Ops) != 2 || r.Ops[0].Kind != zkop.Check || r.Ops[0].Path != ControllerEpochPath ||
		r.Ops[0].Version != 7 || r.Ops[1].Path != "/x" {
		t.Errorf("%+v", r)
	}
	e := ElectController(NewController(1, 9), 5, 4)
	if e.Ops[0].Mode != zkop.Ephemeral || string(e.Ops[1].Data) != "5" || e.Ops[1].Version != 4 {
		t.Errorf("%+v", e)
	}
	b := RegisterBroker(Registration{ID: 3})
	if b.Ops[0].Path != "/brokers/ids/3" || b.Ops[0].Mode != zkop.Ephemeral || b.Ops[1].Version != 0 {
		t.Errorf("%+v", b)
	}
}

func TestRegistrationBroker(t *testing.T) {
	r := Registration{ID: 3, Rack: "r", Endpoints: []cluster.Endpoint{{Listener: "A", Protocol: "SSL", Host: "h", Port: 1}}}
	b := r.Broker(99)
	if b.ID != 3 || b.Epoch != 99 || b.Rack != "r" || !slices.Equal(b.Endpoints, r.Endpoints) {
		t.Errorf("%+v", b)
	}
	b.Endpoints[0].Host = "other"
	if r.Endpoints[0].Host != "h" {
		t.Error("the broker shares its endpoints with the registration")
	}
}

// TestTopicRoundTrip with random assignments.
func TestTopicRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ids := func(n int) []cluster.BrokerID {
		out := make([]cluster.BrokerID, n)
		for i := range out {
			out[i] = cluster.BrokerID(rnd.IntN(2000))
		}
		return out
	}
	for range 200 {
		topic := Topic{Partitions: map[int32]cluster.Assignment{}}
		for range rnd.IntN(30) {
			topic.Partitions[rnd.Int32N(1000)] = cluster.Assignment{Replicas: ids(rnd.IntN(4)), Adding: ids(rnd.IntN(2)), Removing: ids(rnd.IntN(2))}
		}
		for i := range topic.ID {
			topic.ID[i] = byte(rnd.IntN(256))
		}
		back, err := DecodeTopic("t", topic.Encode())
		if err != nil || back.ID != topic.ID || len(back.Partitions) != len(topic.Partitions) {
			t.Fatalf("%v: %s", err, topic.Encode())
		}
		for p, a := range topic.Partitions {
			b := back.Partitions[p]
			if !slices.Equal(a.Replicas, b.Replicas) || !slices.Equal(a.Adding, b.Adding) || !slices.Equal(a.Removing, b.Removing) {
				t.Fatalf("partition %d: %v became %v", p, a, b)
			}
		}
		clone := back.Clone()
		for p, a := range clone.Partitions {
			a.Replicas = append(a.Replicas[:0], 9999)
			clone.Partitions[p] = a
		}
		if string(back.Encode()) != string(topic.Encode()) {
			t.Fatal("a clone shares replicas with its source")
		}
	}
}

func BenchmarkDecodeState(b *testing.B) {
	data := []byte(`{"controller_epoch":2,"leader":2,"version":1,"leader_epoch":4,"isr":[2,3,1]}`)
	tp := cluster.TopicPartition{Topic: "T"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeState(tp, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeState(b *testing.B) {
	s := State{LeaderAndISR: cluster.LeaderAndISR{Leader: 2, LeaderEpoch: 4, ISR: []cluster.BrokerID{2, 3, 1}, ControllerEpoch: 2}}
	b.ReportAllocs()
	for b.Loop() {
		s.Encode()
	}
}
