package znode

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"kctl/zkutil/cluster"
)

// recode decodes a value by the codec of its path and encodes it again. ok is false for paths whose
// codec is not here.
func recode(path string, data []byte) (out []byte, ok bool, err error) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	tp, isState := ParseStatePath(path)
	topic, isTopic := ParseTopicPath(path)
	switch {
	case isState:
		v, err := DecodeState(tp, data)
		return v.Encode(), true, err
	case isTopic:
		v, err := DecodeTopic(topic, data)
		return v.Encode(), true, err
	case path == ControllerPath:
		v, err := DecodeController(data)
		return v.Encode(), true, err
	case path == ControllerEpochPath:
		v, err := DecodeControllerEpoch(data)
		return EncodeControllerEpoch(v), true, err
	case strings.HasPrefix(path, BrokerIDsPath+"/"):
		id, err := ParseBrokerID(name)
		if err != nil {
			return nil, true, err
		}
		v, err := DecodeRegistration(id, data)
		return v.Encode(), true, err
	case path == ClusterIDPath:
		v, err := DecodeClusterID(data)
		return EncodeClusterID(v), true, err
	case path == FeaturePath:
		v, err := DecodeFeature(data)
		return v.Encode(), true, err
	case path == ProducerIDBlockPath:
		v, _, err := DecodeProducerIDBlock(data)
		return v.Encode(), true, err
	}
	return recodeNotices(path, name, data)
}

func recodeNotices(path, name string, data []byte) (out []byte, ok bool, err error) {
	resource, isACLs := ParseACLPath(path)
	switch {
	case isACLs:
		if resource.Path() != path {
			return nil, true, errors.New(path + " is written back as " + resource.Path())
		}
		v, err := DecodeACLs(path, data)
		return v.Encode(), true, err
	case strings.HasPrefix(path, ACLChangePrefix), strings.HasPrefix(path, ExtendedACLChangePrefix):
		v, err := DecodeACLChange(path, data)
		_, out := v.Change()
		return out, true, err
	case strings.HasPrefix(path, ConfigChangePrefix):
		v, err := DecodeConfigChange(name, data)
		return v.Encode(), true, err
	case strings.HasPrefix(path, ConfigPath+"/"):
		kind, entity, _ := strings.Cut(strings.TrimPrefix(path, ConfigPath+"/"), "/")
		v, err := DecodeConfig(ConfigType(kind), entity, data)
		return v.Encode(), true, err
	case strings.HasPrefix(path, ISRChangePrefix):
		v, err := DecodeISRChange(name, data)
		return EncodeISRChange(v), true, err
	case strings.HasPrefix(path, LogDirEventPrefix):
		v, err := DecodeLogDirEvent(name, data)
		return v.Encode(), true, err
	case path == ReassignPartitionsPath:
		v, err := DecodeReassignments(data)
		return EncodeReassignments(v), true, err
	case path == PreferredReplicaElectionPath:
		v, err := DecodePreferredReplicaElection(data)
		return EncodePreferredReplicaElection(v), true, err
	case strings.HasPrefix(path, LeadershipAlertsPath+"/"):
		tp, err := ParseLeadershipAlertChild(name)
		if err != nil {
			return nil, true, err
		}
		v, err := DecodeLeadershipAlert(tp, data)
		return v.Encode(), true, err
	}
	return nil, false, nil
}

type captured struct{ path, data string }

func readCaptured(t testing.TB) []captured {
	t.Helper()
	file, err := os.ReadFile("testdata/captured.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []captured
	for _, line := range strings.Split(strings.TrimSpace(string(file)), "\n") {
		if path, data, ok := strings.Cut(line, "\t"); ok {
			out = append(out, captured{path, data})
		}
	}
	if len(out) < 90 {
		t.Fatalf("only %d captured values", len(out))
	}
	return out
}

// TestCapturedBytes reads what Apache Kafka wrote and writes the same bytes. Only the order of the fifty
// partitions of __consumer_offsets, a Scala map's, is ours.
func TestCapturedBytes(t *testing.T) {
	codecs := 0
	for _, c := range readCaptured(t) {
		got, ok, err := recode(c.path, []byte(c.data))
		if !ok {
			t.Errorf("%s has no codec", c.path)
			continue
		}
		codecs++
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if c.path == TopicPath("__consumer_offsets") {
			if !sameJSON(t, got, []byte(c.data)) || !strings.HasPrefix(string(got), `{"partitions":{"0":[1,2,3],"1":[2,3,1],"2":[3,1,2],`) {
				t.Errorf("%s:\n%s\nbecame\n%s", c.path, c.data, got)
			}
			continue
		}
		if string(got) != c.data {
			t.Errorf("%s:\n%s\nbecame\n%s", c.path, c.data, got)
		}
	}
	if codecs < 85 {
		t.Errorf("only %d captured values went through a codec", codecs)
	}
}

func sameJSON(t testing.TB, a, b []byte) bool {
	t.Helper()
	var va, vb any
	if err := json.Unmarshal(a, &va); err != nil {
		t.Errorf("%s: %v", a, err)
		return false
	}
	if err := json.Unmarshal(b, &vb); err != nil {
		t.Errorf("%s: %v", b, err)
		return false
	}
	return reflect.DeepEqual(va, vb)
}

// TestBootPaths compares PersistentPaths with the order in which the first broker created them.
func TestBootPaths(t *testing.T) {
	file, err := os.ReadFile("testdata/boot.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(PersistentPaths(), "\n")+"\n", string(file); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestFormsNotCaptured holds what the capture does not show, from Kafka's sources and older versions: the
// value and what we write after reading it.
func TestFormsNotCaptured(t *testing.T) {
	cases := []struct{ name, path, in, out string }{
		{"controller v1", "/controller", `{"version":1,"brokerid":3,"timestamp":"1"}`,
			`{"version":2,"brokerid":3,"timestamp":"1","kraftControllerEpoch":-1}`},
		{"controller before 0.8.1", "/controller", `7`,
			`{"version":2,"brokerid":7,"timestamp":"0","kraftControllerEpoch":-1}`},
		{"registration v1", "/brokers/ids/0", `{"jmx_port":9999,"timestamp":"5","host":"h","version":1,"port":9092}`,
			`{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://h:9092"],` +
				`"jmx_port":9999,"port":9092,"host":"h","version":5,"timestamp":"5"}`},
		{"registration v2", "/brokers/ids/0",
			`{"jmx_port":-1,"timestamp":"5","endpoints":["SSL://h:9093"],"host":null,"version":2,"port":-1}`,
			`{"features":{},"listener_security_protocol_map":{"SSL":"SSL"},"endpoints":["SSL://h:9093"],` +
				`"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"5"}`},
		{"registration v3 with rack", "/brokers/ids/0",
			`{"jmx_port":-1,"timestamp":"5","endpoints":["PLAINTEXT://:9092"],"rack":"r1","host":"","version":3,"port":9092}`,
			`{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},"endpoints":["PLAINTEXT://:9092"],"rack":"r1",` +
				`"jmx_port":-1,"port":9092,"host":"","version":5,"timestamp":"5"}`},
		{"registration v4, named listeners, IPv6", "/brokers/ids/12",
			`{"listener_security_protocol_map":{"IN":"SASL_SSL","OUT":"PLAINTEXT"},"endpoints":["IN://[::1]:1","OUT://h:2"],` +
				`"jmx_port":-1,"port":2,"host":"h","version":4,"timestamp":"5"}`,
			`{"features":{},"listener_security_protocol_map":{"IN":"SASL_SSL","OUT":"PLAINTEXT"},"endpoints":["IN://[::1]:1","OUT://h:2"],` +
				`"jmx_port":-1,"port":2,"host":"h","version":5,"timestamp":"5"}`},
		{"registration v5 with features", "/brokers/ids/1",
			`{"features":{"f":{"min_version":1,"max_version":2}},"listener_security_protocol_map":{},"endpoints":[],` +
				`"jmx_port":-1,"port":-1,"host":null,"version":5,"timestamp":"5"}`, ""},
		{"topic v1", "/brokers/topics/t", `{"version":1,"partitions":{"1":[2],"0":[1]}}`,
			`{"partitions":{"0":[1],"1":[2]},"adding_replicas":{},"removing_replicas":{},"version":2}`},
		{"topic v2", "/brokers/topics/t", `{"version":2,"partitions":{"10":[1,2],"9":[2]},"adding_replicas":{"10":[2]},"removing_replicas":{}}`,
			`{"partitions":{"9":[2],"10":[1,2]},"adding_replicas":{"10":[2]},"removing_replicas":{},"version":2}`},
		{"state recovering", "/brokers/topics/t/partitions/0/state",
			`{"controller_epoch":1,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":0,"isr":[1]}`, ""},
		{"state recovered", "/brokers/topics/t/partitions/0/state",
			`{"controller_epoch":1,"leader":1,"version":1,"leader_recovery_state":0,"leader_epoch":0,"isr":[1]}`,
			`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`},
		{"state with empty isr and spaces", "/brokers/topics/t/partitions/0/state",
			" { \"isr\" : [ ] , \"leader\" : -1 ,\n\"version\":1, \"leader_epoch\": 3, \"controller_epoch\":2 }\n",
			`{"controller_epoch":2,"leader":-1,"version":1,"leader_epoch":3,"isr":[]}`},
		{"isr change", "/isr_change_notification/isr_change_0000000001",
			`{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"b","partition":12}]}`, ""},
		{"isr change of nothing", "/isr_change_notification/isr_change_0000000001", `{"version":1,"partitions":[]}`, ""},
		{"reassignment with log dirs", "/admin/reassign_partitions",
			`{"version":1,"partitions":[{"topic":"U","partition":0,"replicas":[2,3],"log_dirs":["any","any"]}]}`, ""},
		{"config change v1", "/config/changes/config_change_0000000001", `{"version":1,"entity_type":"topics","entity_name":"T"}`,
			`{"version":2,"entity_path":"topics/T"}`},
		{"feature v1", "/feature", `{"features":{"f":{"min_version_level":1,"max_version_level":2}},"version":1,"status":1}`, ""},
		{"alert", "/admin/leadership_alerts/a-b-3",
			`{"version":1,"topic":"a-b","partition":3,"leader":1,"leader_epoch":4,"isr":[1,2],"controller_epoch":2,` +
				`"decided":"1000","raised":"11000","reason":"broker-failure",` +
				`"waiting":[{"broker":1,"error":"KAFKA_STORAGE_ERROR","attempts":3},{"broker":2,"attempts":1}]}`, ""},
		{"config with all that JSON escapes", "/config/topics/t", `{"version":1,"config":{"k":"<a> & \"b\" \\ \n \u0001 é \u2028"}}`,
			`{"version":1,"config":{"k":"<a> & \"b\" \\ \n \u0001 é ` + "\u2028" + `"}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := c.out
			if want == "" {
				want = c.in
			}
			got, ok, err := recode(c.path, []byte(c.in))
			if !ok || err != nil {
				t.Fatalf("codec %v, error %v", ok, err)
			}
			if string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestUnknownFieldsSurvive: a read, a change of what we know, and a write keep what we do not know.
func TestUnknownFieldsSurvive(t *testing.T) {
	const extra = `,"x":{"deep":[1,{"y":null}]},"a b":"\u00e9\"","n":-1.5e3,"t":true}`
	with := func(data string) []byte { return []byte(strings.TrimSuffix(data, "}") + extra) }
	keeps := func(what string, got []byte) {
		t.Helper()
		for _, part := range []string{`"x":{"deep":[1,{"y":null}]}`, `"a b":"\u00e9\""`, `"n":-1.5e3`, `"t":true`} {
			if !strings.Contains(string(got), part) {
				t.Errorf("%s lost %s: %s", what, part, got)
			}
		}
	}
	state, err := DecodeState(cluster.TopicPartition{Topic: "t"}, with(`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`))
	if err != nil {
		t.Fatal(err)
	}
	state.LeaderEpoch++
	state.ISR = append(state.ISR, 2)
	keeps("state", state.Encode())
	topic, err := DecodeTopic("t", with(`{"partitions":{"0":[1]},"topic_id":"HVmojrR2Tv-TQSYV1QhZnw","version":3}`))
	if err != nil {
		t.Fatal(err)
	}
	topic.Partitions[1] = cluster.Assignment{Replicas: []cluster.BrokerID{2}}
	keeps("topic", topic.Encode())
	if !strings.Contains(string(topic.Encode()), `"topic_id":"HVmojrR2Tv-TQSYV1QhZnw"`) {
		t.Errorf("the topic id is gone: %s", topic.Encode())
	}
	for path, data := range map[string]string{
		"/controller":       `{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}`,
		"/brokers/ids/1":    `{"features":{},"listener_security_protocol_map":{},"endpoints":[],"jmx_port":-1,"port":-1,"host":null,"version":6,"timestamp":"1"}`,
		"/config/topics/t":  `{"version":1,"config":{}}`,
		"/feature":          `{"features":{},"version":2,"status":1}`,
		"/brokers/topics/t": `{"version":4,"partitions":{}}`,
		"/admin/leadership_alerts/t-0": `{"version":2,"leader":1,"leader_epoch":4,"isr":[1],"controller_epoch":2,` +
			`"decided":"1","raised":"2","waiting":[]}`,
	} {
		got, _, err := recode(path, with(data))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		keeps(path, got)
	}
}
