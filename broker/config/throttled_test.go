package config

import "testing"

// TestThrottledReplicas: a list with a broker -1 in it kept brokers from starting; it never gets in.
func TestThrottledReplicas(t *testing.T) {
	key, ok := TopicKey("leader.replication.throttled.replicas")
	if !ok {
		t.Fatal("no such key")
	}
	for value, want := range map[string]bool{"": true, "*": true, "0:1": true, "0:1, 12:101": true, "0:-1": false, "-1:1": false, "0": false, "0:1:2": false, "*,0:1": false, "a:b": false} {
		if err := key.Check(value); (err == nil) != want {
			t.Errorf("%q: %v", value, err)
		}
	}
	for _, name := range []string{"leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"} {
		k, ok := BrokerKey(name)
		if !ok || k.Scope != ClusterWide || k.Check("-1") == nil || k.Check("1000") != nil {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
