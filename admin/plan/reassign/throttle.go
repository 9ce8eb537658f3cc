package reassign

import (
	"fmt"
	"slices"
	"strings"

	"kctl/zkutil/cluster"
)

// The configuration keys of a replication throttle (KIP-73).
const (
	LeaderRate       = "leader.replication.throttled.rate"
	FollowerRate     = "follower.replication.throttled.rate"
	LeaderReplicas   = "leader.replication.throttled.replicas"
	FollowerReplicas = "follower.replication.throttled.replicas"
)

// Throttled is what a throttle of some steps needs: for each topic the replicas whose leader and follower side is
// held back ("partition:broker", sorted by partition), and the brokers that need a rate.
type Throttled struct {
	Leader, Follower map[string][]string
	Brokers          []cluster.BrokerID // sorted
}

// Throttle computes the throttle of steps as Kafka's tool does: the leader side of all present replicas, the follower
// side of the new ones. Steps that copy nothing need none. Ids below zero never get into a list.
func Throttle(steps []Step) Throttled {
	t := Throttled{Leader: map[string][]string{}, Follower: map[string][]string{}}
	sorted := slices.Clone(steps)
	slices.SortStableFunc(sorted, func(a, b Step) int { return a.TP().Compare(b.TP()) })
	use := func(list map[string][]string, s *Step, ids []cluster.BrokerID) {
		for _, id := range ids {
			if id < 0 {
				continue
			}
			list[s.Topic] = append(list[s.Topic], fmt.Sprintf("%d:%d", s.Partition, id))
			if !slices.Contains(t.Brokers, id) {
				t.Brokers = append(t.Brokers, id)
			}
		}
	}
	for i := range sorted {
		s := &sorted[i]
		added := s.Added()
		if len(added) == 0 {
			continue
		}
		use(t.Leader, s, s.From)
		use(t.Follower, s, added)
	}
	slices.Sort(t.Brokers)
	return t
}

// SplitList reads a list value of a configuration.
func SplitList(value string) []string {
	var out []string
	for _, v := range strings.Split(value, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// Missing returns those of want that a list value lacks. A list of "*" holds every replica.
func MissingFrom(value string, want []string) []string {
	have := SplitList(value)
	if slices.Contains(have, "*") {
		return nil
	}
	var out []string
	for _, w := range want {
		if !slices.Contains(have, w) {
			out = append(out, w)
		}
	}
	return out
}

// Without returns a list value without some of its entries.
func Without(value string, gone []string) string {
	return strings.Join(slices.DeleteFunc(SplitList(value), func(v string) bool { return slices.Contains(gone, v) }), ",")
}

// OfPartitions returns the entries of a list value that belong to some partitions.
func OfPartitions(value string, partitions []int32) []string {
	var out []string
	for _, v := range SplitList(value) {
		part, _, _ := strings.Cut(v, ":")
		if slices.ContainsFunc(partitions, func(p int32) bool { return fmt.Sprint(p) == part }) {
			out = append(out, v)
		}
	}
	return out
}
