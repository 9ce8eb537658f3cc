package znode

import (
	"encoding/json"
	"strings"
	"testing"
)

// fuzzPath fuzzes the codec of one path: no input panics, what is accepted encodes to JSON that is read
// again, and a second round changes nothing.
func fuzzPath(f *testing.F, path string, seeds ...string) {
	f.Helper()
	for _, c := range readCaptured(f) {
		if samePlace(c.path, path) {
			f.Add([]byte(c.data))
		}
	}
	for _, s := range append(seeds, "", "null", "{}", "[]", `{"version":1}`, `{"a":`, "\"", `{"version":1,"version":2,"\ud800":[[[]]]}`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, ok, err := recode(path, data)
		if !ok {
			t.Fatalf("%s has no codec", path)
		}
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("error %q does not name %s", err, path)
			}
			return
		}
		if path != ControllerEpochPath && !strings.HasPrefix(path, ACLChangePrefix) && !json.Valid(once) {
			t.Fatalf("%q became %q, which is not JSON", data, once)
		}
		if len(data) == 0 {
			return
		}
		twice, _, err := recode(path, once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%q became %q, then %q, %v", data, once, twice, err)
		}
	})
}

// samePlace compares paths up to their numbers and names.
func samePlace(a, b string) bool {
	cut := func(p string) string { return p[:strings.LastIndexByte(p, '/')+1] }
	return a == b || cut(a) == cut(b) && cut(a) != "/"
}

func FuzzController(f *testing.F) {
	fuzzPath(f, "/controller", `{"version":1,"brokerid":1,"timestamp":"1"}`, "7")
}

func FuzzControllerEpoch(f *testing.F) { fuzzPath(f, "/controller_epoch", "0", "2147483647", "007") }

func FuzzRegistration(f *testing.F) {
	fuzzPath(f, "/brokers/ids/1",
		`{"jmx_port":9999,"timestamp":"5","host":"h","version":1,"port":9092}`,
		`{"jmx_port":-1,"timestamp":"5","endpoints":["SSL://[::1]:9093"],"rack":"r","host":null,"version":3,"port":-1}`)
}

func FuzzTopic(f *testing.F) {
	fuzzPath(f, "/brokers/topics/T", `{"version":2,"partitions":{"10":[1,2],"9":[2]},"adding_replicas":{"10":[2]},"removing_replicas":{}}`)
}

func FuzzState(f *testing.F) {
	fuzzPath(f, "/brokers/topics/T/partitions/0/state",
		`{"controller_epoch":1,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":0,"isr":[1],"x":{}}`)
}

func FuzzISRChange(f *testing.F) {
	fuzzPath(f, "/isr_change_notification/isr_change_0000000001", `{"version":1,"partitions":[{"topic":"a","partition":0}]}`)
}

func FuzzLogDirEvent(f *testing.F) {
	fuzzPath(f, "/log_dir_event_notification/log_dir_event_0000000000")
}

func FuzzReassignments(f *testing.F) {
	fuzzPath(f, "/admin/reassign_partitions", `{"version":1,"partitions":[{"topic":"U","partition":0,"replicas":[2,3],"log_dirs":["any"]}]}`)
}

func FuzzPreferredReplicaElection(f *testing.F) { fuzzPath(f, "/admin/preferred_replica_election") }

func FuzzLeadershipAlert(f *testing.F) {
	fuzzPath(f, "/admin/leadership_alerts/t-0",
		`{"version":1,"topic":"t","partition":0,"leader":1,"leader_epoch":4,"isr":[1,2],"controller_epoch":2,"decided":"1",`+
			`"raised":"2","reason":"r","waiting":[{"broker":1,"error":"E","attempts":3}]}`)
}

func FuzzConfig(f *testing.F) {
	fuzzPath(f, "/config/topics/T", `{"version":1,"config":{"a":"\u0000\ud83d\ude00"}}`)
}

func FuzzConfigChange(f *testing.F) {
	fuzzPath(f, "/config/changes/config_change_0000000000", `{"version":1,"entity_type":"topics","entity_name":"T"}`)
}

func FuzzClusterID(f *testing.F) { fuzzPath(f, "/cluster/id") }

func FuzzProducerIDBlock(f *testing.F) { fuzzPath(f, "/latest_producer_id_block") }

func FuzzFeature(f *testing.F) {
	fuzzPath(f, "/feature", `{"features":{"f":{"max_version_level":2}},"version":1,"status":0}`)
}
