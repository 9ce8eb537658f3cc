package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kctl/zkutil/cluster"
)

// NewTopic describes a topic to create. With Assignment, Partitions and ReplicationFactor are those of the
// assignment; -1 leaves the choice to the broker's defaults (KIP-464).
type NewTopic struct {
	Name              string
	Partitions        int32
	ReplicationFactor int16
	Assignment        [][]cluster.BrokerID
	Configs           map[string]string
}

// PartitionsMax bounds what one request may ask for, so that a slip of the finger cannot flood a cluster.
const PartitionsMax = 200_000

// Validate checks everything that can be checked without asking the cluster.
func (t *NewTopic) Validate() error {
	if err := TopicName(t.Name); err != nil {
		return err
	}
	if t.Assignment != nil {
		return validateAssignment(t.Assignment)
	}
	if t.Partitions != -1 && (t.Partitions < 1 || t.Partitions > PartitionsMax) {
		return fmt.Errorf("--partitions %d is not between 1 and %d", t.Partitions, PartitionsMax)
	}
	if t.ReplicationFactor != -1 && t.ReplicationFactor < 1 {
		return fmt.Errorf("--replication-factor %d is below 1", t.ReplicationFactor)
	}
	return nil
}

func validateAssignment(a [][]cluster.BrokerID) error {
	for i, replicas := range a {
		if len(replicas) != len(a[0]) {
			return fmt.Errorf("partition %d has %d replicas, partition 0 has %d: all partitions of a new topic need the same number",
				i, len(replicas), len(a[0]))
		}
		for j, id := range replicas {
			if slices.Contains(replicas[:j], id) {
				return fmt.Errorf("partition %d names broker %d twice", i, id)
			}
		}
	}
	return nil
}

// ParseAssignment reads Kafka's form of a replica assignment: replicas of a partition joined by colons,
// partitions by commas, as in 1:2:3,2:3:1. The order of replicas is kept: the first is the preferred leader.
func ParseAssignment(s string) ([][]cluster.BrokerID, error) {
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("the replica assignment is empty (the form is 1:2:3,2:3:1)")
	}
	var out [][]cluster.BrokerID
	for i, part := range strings.Split(s, ",") {
		var ids []cluster.BrokerID
		for _, f := range strings.Split(part, ":") {
			n, err := strconv.ParseInt(strings.TrimSpace(f), 10, 32)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("replica assignment %q: %q of partition %d is not a broker id (the form is 1:2:3,2:3:1)", s, f, i)
			}
			ids = append(ids, cluster.BrokerID(n))
		}
		out = append(out, ids)
	}
	return out, validateAssignment(out)
}

// ParseConfigs reads key=value pairs; a value may contain '='.
func ParseConfigs(pairs []string) (map[string]string, error) {
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		k = strings.TrimSpace(k)
		if !ok || k == "" {
			return nil, fmt.Errorf("config %q is not key=value", p)
		}
		if _, twice := out[k]; twice {
			return nil, fmt.Errorf("config %q is given twice", k)
		}
		out[k] = v
	}
	return out, nil
}
