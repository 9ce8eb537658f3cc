package topicadmin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/zkutil/cluster"
)

// refusal carries a sentence for the client and the protocol error that it stands for.
type refusal struct {
	kind   *kerr.Error
	reason string
}

func (r refusal) Error() string { return r.reason }
func (r refusal) Unwrap() error { return r.kind }

func refuse(kind *kerr.Error, format string, args ...any) error {
	return refusal{kind, fmt.Sprintf(format, args...)}
}

// Spread says where an assignment begins: the place of the first partition's leader in the list of brokers, and
// the distance between leader and second replica. Random for a new topic, so that topics do not all start on
// the same broker; for added partitions the place continues the topic's.
type Spread struct {
	Start int
	Shift int
	First int32 // number of the first partition to assign
}

// Assign chooses replicas for count partitions. Leaders go round the brokers; the followers of partitions with
// the same leader differ from one round to the next. When every broker names a rack, replicas of a partition go
// to different racks as long as there are some. INVALID_PARTITIONS and INVALID_REPLICATION_FACTOR are the errors.
func Assign(brokers []cluster.Broker, count, factor int, spread Spread) (map[int32][]cluster.BrokerID, error) {
	switch {
	case count <= 0:
		return nil, refuse(kerr.InvalidPartitions, "Number of partitions must be larger than 0.")
	case factor <= 0:
		return nil, refuse(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0.")
	case factor > len(brokers):
		return nil, refuse(kerr.InvalidReplicationFactor, "Replication factor: %d larger than available brokers: %d.", factor, len(brokers))
	}
	ring := byRack(brokers)
	n := len(ring)
	racks := rackCount(ring)
	shift := max(spread.Shift, 0)
	out := make(map[int32][]cluster.BrokerID, count)
	for i := range count {
		p := int(spread.First) + i
		if i > 0 && p%n == 0 {
			shift++
		}
		leader := (max(spread.Start, 0) + p) % n
		out[int32(p)] = replicasOf(ring, leader, shift, factor, racks)
	}
	return out, nil
}

// replicasOf walks the ring from the leader on, the first step being shift, and takes a broker when it brings a
// new rack or all racks are in use.
func replicasOf(ring []cluster.Broker, leader, shift, factor, racks int) []cluster.BrokerID {
	n := len(ring)
	out := []cluster.BrokerID{ring[leader].ID}
	usedRacks := map[string]int{ring[leader].Rack: 1}
	for round := 0; len(out) < factor; round++ {
		for k := 0; k < n-1 && len(out) < factor; k++ {
			b := ring[(leader+1+(shift+k)%(n-1))%n]
			if slices.Contains(out, b.ID) {
				continue
			}
			if racks > 1 && len(usedRacks) < racks && usedRacks[b.Rack] > 0 {
				continue
			}
			// Once every rack holds a replica, the next go to the racks that hold fewest.
			if racks > 1 && usedRacks[b.Rack] > round {
				continue
			}
			out = append(out, b.ID)
			usedRacks[b.Rack]++
		}
	}
	return out
}

// byRack orders brokers by id and, when each has a rack, so that neighbours are in different racks.
func byRack(brokers []cluster.Broker) []cluster.Broker {
	ring := slices.Clone(brokers)
	slices.SortFunc(ring, func(a, b cluster.Broker) int { return int(a.ID) - int(b.ID) })
	groups := make(map[string][]cluster.Broker)
	for _, b := range ring {
		if b.Rack == "" {
			return ring
		}
		groups[b.Rack] = append(groups[b.Rack], b)
	}
	racks := make([]string, 0, len(groups))
	for r := range groups {
		racks = append(racks, r)
	}
	slices.SortFunc(racks, strings.Compare)
	out := ring[:0:0]
	for i := 0; len(out) < len(ring); i++ {
		for _, r := range racks {
			if i < len(groups[r]) {
				out = append(out, groups[r][i])
			}
		}
	}
	return out
}

// rackCount counts the racks, or returns 1 when some broker has none: then racks play no part.
func rackCount(brokers []cluster.Broker) int {
	seen := make(map[string]bool)
	for _, b := range brokers {
		if b.Rack == "" {
			return 1
		}
		seen[b.Rack] = true
	}
	return len(seen)
}

// CheckAssignment checks a replica assignment that a client gave: partitions numbered from first on without
// gaps, replicas distinct and alive, the same number of them everywhere. INVALID_REPLICA_ASSIGNMENT.
func CheckAssignment(assignment map[int32][]cluster.BrokerID, first int32, alive func(cluster.BrokerID) bool) error {
	if len(assignment) == 0 {
		return refuse(kerr.InvalidReplicaAssignment, "The assignment is empty.")
	}
	factor := -1
	for i := range int32(len(assignment)) {
		replicas, ok := assignment[first+i]
		if !ok {
			return refuse(kerr.InvalidReplicaAssignment, "Partitions should be a consecutive 0-based integer sequence; %d is missing.", first+i)
		}
		if len(replicas) == 0 {
			return refuse(kerr.InvalidReplicaAssignment, "Partition %d has no replicas.", first+i)
		}
		if factor < 0 {
			factor = len(replicas)
		}
		if len(replicas) != factor {
			return refuse(kerr.InvalidReplicaAssignment, "Partition %d has %d replicas, other partitions have %d.", first+i, len(replicas), factor)
		}
		for j, r := range replicas {
			if slices.Contains(replicas[:j], r) {
				return refuse(kerr.InvalidReplicaAssignment, "Duplicate broker %d in the assignment of partition %d.", r, first+i)
			}
			if !alive(r) {
				return refuse(kerr.InvalidReplicaAssignment, "Broker %d in the assignment of partition %d is not alive.", r, first+i)
			}
		}
	}
	return nil
}

// Refuse makes an error that tells a client why, under the given protocol error.
func Refuse(kind *kerr.Error, reason string) error { return refusal{kind, reason} }
