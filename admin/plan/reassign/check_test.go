package reassign_test

import (
	"strings"
	"testing"

	"kctl/admin/plan/reassign"
	"kctl/zkutil/cluster"
)

// TestCheckLogDirs: a directory that a broker does not have, or that has failed there, is refused before anything is
// sent; where a broker did not tell its directories it is left to the broker.
func TestCheckLogDirs(t *testing.T) {
	v := reassign.View{
		Live: []cluster.BrokerID{1, 2, 3}, Known: []cluster.BrokerID{1, 2, 3},
		Parts: map[cluster.TopicPartition]reassign.Seen{{Topic: "t", Partition: 0}: {Replicas: []cluster.BrokerID{1, 2}}},
		Dirs:  map[cluster.BrokerID][]string{1: {"/d1", "/d2"}, 2: {}},
	}
	for _, tt := range []struct {
		dirs []string
		want string
	}{
		{[]string{"/d2", "any"}, ""},
		{[]string{"any", "any"}, ""},
		{nil, ""},
		{[]string{"/d3", "any"}, "t:0: broker 1 has no log directory /d3 that is online: it has /d1, /d2"},
		{[]string{"/d1/", "any"}, "broker 1 has no log directory /d1/"},
		{[]string{"any", "/d1"}, "broker 2 has no log directory /d1 that is online: it has none"},
	} {
		e := reassign.Entry{Topic: "t", Replicas: []cluster.BrokerID{1, 2}, LogDirs: tt.dirs}
		got := strings.Join(reassign.Check([]reassign.Entry{e}, v, reassign.Options{}).Refused, "; ")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.dirs, got, tt.want)
		}
	}
	e := reassign.Entry{Topic: "t", Replicas: []cluster.BrokerID{1, 3}, LogDirs: []string{"any", "/elsewhere"}}
	if got := reassign.Check([]reassign.Entry{e}, v, reassign.Options{}).Refused; len(got) != 0 {
		t.Errorf("a broker that did not tell its directories: %v", got)
	}
}
