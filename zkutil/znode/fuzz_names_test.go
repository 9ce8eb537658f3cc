package znode

import (
	"testing"

	"kctl/zkutil/cluster"
)

// FuzzNames: what a parser of paths and child names accepts is written back as it was.
func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"", "0", "7", "-1", "007", "2147483648", "/brokers/topics/t", "/brokers/topics/t/partitions/3/state",
		"/brokers/topics//partitions/3/state", "t-0", "a-b-12", "-0", "t-", "t-00", "AAAAAAAAAAAAAAAAAAAAAQ",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		same := func(what, got string) {
			t.Helper()
			if got != s {
				t.Errorf("%s: %q is written back as %q", what, s, got)
			}
		}
		if id, err := ParseBrokerID(s); err == nil {
			same("broker", BrokerPath(id)[len(BrokerIDsPath)+1:])
		}
		if tp, ok := ParseStatePath(s); ok {
			same("state", StatePath(tp))
		}
		if topic, ok := ParseTopicPath(s); ok {
			same("topic", TopicPath(topic))
		}
		if tp, err := ParseLeadershipAlertChild(s); err == nil {
			same("alert", tp.String())
		}
		if id, err := cluster.ParseTopicID(s); err == nil {
			if again, err := cluster.ParseTopicID(id.String()); err != nil || again != id {
				t.Errorf("topic id %q becomes %s, then %v, %v", s, id, again, err)
			}
		}
	})
}

// FuzzEndpoint: what is read as an endpoint names the same one when it is written and read again.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"PLAINTEXT://h:9092", "SSL://[::1]:9093", "A://:0", "://h:1", "A://h", "A://[::1:1", "A://h:-1", "A://[[x]]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseEndpoint(s)
		if err != nil {
			return
		}
		again, err := ParseEndpoint(FormatEndpoint(e))
		if err != nil || again != e {
			t.Fatalf("%q: %+v, then %+v, %v", s, e, again, err)
		}
	})
}
