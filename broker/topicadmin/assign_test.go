package topicadmin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// TestAssignIsFair draws clusters and checks what an assignment must hold: distinct live replicas, leaders and
// replicas spread evenly, racks spread as far as there are racks.
func TestAssignIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "brokers")
		racks := rapid.IntRange(0, 4).Draw(t, "racks")
		brokers := make([]cluster.Broker, n)
		rackOf := make(map[cluster.BrokerID]string)
		for i := range brokers {
			brokers[i].ID = cluster.BrokerID(3*i + 1)
			if racks > 0 {
				brokers[i].Rack = fmt.Sprintf("r%d", i%racks)
			}
			rackOf[brokers[i].ID] = brokers[i].Rack
		}
		factor := rapid.IntRange(1, n).Draw(t, "factor")
		count := rapid.IntRange(1, 60).Draw(t, "partitions")
		spread := Spread{Start: rapid.IntRange(0, 20).Draw(t, "start"), Shift: rapid.IntRange(0, 20).Draw(t, "shift"), First: int32(rapid.IntRange(0, 9).Draw(t, "first"))}
		got, err := Assign(brokers, count, factor, spread)
		if err != nil {
			t.Fatal(err)
		}
		leads := make(map[cluster.BrokerID]int)
		for p := spread.First; p < spread.First+int32(count); p++ {
			replicas := got[p]
			if len(replicas) != factor {
				t.Fatalf("partition %d has replicas %v, want %d", p, replicas, factor)
			}
			used := make(map[string]bool)
			for i, r := range replicas {
				if _, ok := rackOf[r]; !ok || slices.Contains(replicas[:i], r) {
					t.Fatalf("partition %d has replicas %v", p, replicas)
				}
				used[rackOf[r]] = true
			}
			if racks > 0 && len(used) != min(factor, racks, n) {
				t.Fatalf("partition %d: replicas %v are in %d racks of %d", p, replicas, len(used), racks)
			}
			leads[replicas[0]]++
		}
		for _, b := range brokers {
			if l := leads[b.ID]; l < count/n || l > count/n+1 {
				t.Fatalf("broker %d leads %d of %d partitions on %d brokers", b.ID, l, count, n)
			}
		}
	})
}

func TestAssignRefuses(t *testing.T) {
	brokers := []cluster.Broker{{ID: 1}, {ID: 2}}
	for _, c := range []struct {
		count, factor int
		want          *kerr.Error
	}{{0, 1, kerr.InvalidPartitions}, {-1, 1, kerr.InvalidPartitions}, {1, 0, kerr.InvalidReplicationFactor}, {1, 3, kerr.InvalidReplicationFactor}} {
		if _, err := Assign(brokers, c.count, c.factor, Spread{}); !errors.Is(err, c.want) {
			t.Errorf("%d partitions, %d replicas: %v, want %v", c.count, c.factor, err, c.want)
		}
	}
}

func TestCheckAssignment(t *testing.T) {
	alive := func(id cluster.BrokerID) bool { return id <= 3 }
	type as = map[int32][]cluster.BrokerID
	if err := CheckAssignment(as{4: {1, 2}, 5: {2, 3}}, 4, alive); err != nil {
		t.Error(err)
	}
	for _, bad := range []as{{}, {0: {1}, 2: {2}}, {0: {}}, {0: {1, 1}}, {0: {9}}, {0: {1, 2}, 1: {3}}} {
		if err := CheckAssignment(bad, 0, alive); !errors.Is(err, kerr.InvalidReplicaAssignment) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "A-b_c.9", strings.Repeat("x", 249)} {
		if err := ValidateName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", "ü", "a b", "a\x00", strings.Repeat("x", 250)} {
		if err := ValidateName(bad); !errors.Is(err, kerr.InvalidTopicException) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := checkCollision("a.b", []string{"x", "a_b"}); !errors.Is(err, kerr.InvalidTopicException) {
		t.Errorf("collision: %v", err)
	}
	if err := checkCollision("a.b", []string{"a.b", "a-b"}); err != nil {
		t.Error(err)
	}
}

func TestGrow(t *testing.T) {
	topic := znode.Topic{ID: cluster.TopicID{1}, Partitions: map[int32]cluster.Assignment{0: {Replicas: []cluster.BrokerID{2, 3}}, 1: {Replicas: []cluster.BrokerID{3, 1}}}}
	brokers := []cluster.Broker{{ID: 1}, {ID: 2}, {ID: 3}}
	got, err := grow("t", topic, Growth{Total: 5, Brokers: brokers})
	if err != nil || len(got.Partitions) != 5 || len(topic.Partitions) != 2 {
		t.Fatalf("%v %v, old %v", got.Partitions, err, topic.Partitions)
	}
	if !slices.Equal(got.Partitions[1].Replicas, []cluster.BrokerID{3, 1}) {
		t.Errorf("an old partition changed: %v", got.Partitions[1])
	}
	cases := []struct {
		g    Growth
		want *kerr.Error
	}{
		{Growth{Total: 2, Brokers: brokers}, kerr.InvalidPartitions},
		{Growth{Total: 4, Brokers: brokers, Assignment: [][]cluster.BrokerID{{1, 2}}}, kerr.InvalidReplicaAssignment},
		{Growth{Total: 3, Brokers: brokers, Assignment: [][]cluster.BrokerID{{1, 9}}}, kerr.InvalidReplicaAssignment},
		{Growth{Total: 3, Brokers: brokers, Assignment: [][]cluster.BrokerID{{1}}}, kerr.InvalidReplicaAssignment},
	}
	for _, c := range cases {
		if _, err := grow("t", topic, c.g); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.g, err, c.want)
		}
	}
	topic.Partitions[1] = cluster.Assignment{Replicas: []cluster.BrokerID{3, 1}, Adding: []cluster.BrokerID{1}}
	if _, err := grow("t", topic, Growth{Total: 3, Brokers: brokers}); !errors.Is(err, kerr.ReassignmentInProgress) {
		t.Errorf("reassigning: %v", err)
	}
}
