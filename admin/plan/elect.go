package plan

import (
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Election is what one election does to one partition.
type Election struct {
	Topic     string
	Partition int32
	From, To  cluster.BrokerID
	Action    ElectionAction
	Unclean   bool   // To is outside the ISR: records that it lacks are lost
	Reason    string // why it is skipped or impossible
}

// TP names the partition.
func (e *Election) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: e.Topic, Partition: e.Partition}
}

// ElectionAction says whether a partition moves.
type ElectionAction string

// The actions. Impossible means that the controller would refuse: for a preferred election the preferred
// replica is dead or out of sync, for an unclean one no replica is on a live broker.
const (
	Move       ElectionAction = "move"
	NotNeeded  ElectionAction = "not-needed"
	Impossible ElectionAction = "impossible"
)

// Preferred plans a preferred leader election of the partitions that match targets (all when empty).
// The snapshot's order is kept. Targets that match nothing are returned as missing.
func Preferred(s *model.Snapshot, live map[cluster.BrokerID]bool, targets []Target) (plan []Election, missing []Target) {
	return eachTarget(s, targets, func(p *model.Partition) Election { return electOne(p, live) })
}

// Unclean plans an election of the partitions without a live leader that may take a replica outside the ISR,
// as Kafka does for ElectLeaders(UNCLEAN): the first live replica that is in sync, else the first live one.
func Unclean(s *model.Snapshot, live map[cluster.BrokerID]bool, targets []Target) (plan []Election, missing []Target) {
	return eachTarget(s, targets, func(p *model.Partition) Election { return electUnclean(p, live) })
}

// eachTarget plans every partition that matches, in one pass whatever the number of targets.
func eachTarget(s *model.Snapshot, targets []Target, one func(*model.Partition) Election) (plan []Election, missing []Target) {
	wanted := make(map[string]map[int32]bool, len(targets)) // nil: all partitions
	for _, t := range targets {
		nums := make(map[int32]bool, len(t.Partitions))
		for _, n := range t.Partitions {
			nums[n] = true
		}
		wanted[t.Topic] = nums
	}
	found := map[string]map[int32]bool{}
	for i := range s.Topics {
		t := &s.Topics[i]
		nums, ok := wanted[t.Name]
		if !ok && len(targets) > 0 {
			continue
		}
		hit := make(map[int32]bool, len(t.Partitions))
		for j := range t.Partitions {
			if p := &t.Partitions[j]; len(nums) == 0 || nums[p.Partition] {
				hit[p.Partition] = true
				plan = append(plan, one(p))
			}
		}
		found[t.Name] = hit
	}
	for _, t := range targets {
		hit := found[t.Topic]
		if len(hit) == 0 {
			missing = append(missing, t)
			continue
		}
		if gone := without(t.Partitions, hit); len(gone) > 0 {
			missing = append(missing, Target{Topic: t.Topic, Partitions: gone})
		}
	}
	return plan, missing
}

func without(nums []int32, hit map[int32]bool) []int32 {
	var out []int32
	for _, n := range nums {
		if !hit[n] {
			out = append(out, n)
		}
	}
	return out
}

func electOne(p *model.Partition, live map[cluster.BrokerID]bool) Election {
	e := Election{Topic: p.Topic, Partition: p.Partition, From: p.Leader, To: p.Preferred(), Action: Move}
	switch {
	case e.To < 0:
		e.Action, e.Reason = Impossible, "it has no replicas"
	case e.From == e.To:
		e.Action, e.Reason = NotNeeded, fmt.Sprintf("broker %d leads already", e.To)
	case !live[e.To]:
		e.Action, e.Reason = Impossible, fmt.Sprintf("preferred replica %d is not registered", e.To)
	case !slices.Contains(p.ISR, e.To):
		e.Action, e.Reason = Impossible, fmt.Sprintf("preferred replica %d is not in sync", e.To)
	}
	return e
}

func electUnclean(p *model.Partition, live map[cluster.BrokerID]bool) Election {
	e := Election{Topic: p.Topic, Partition: p.Partition, From: p.Leader, To: cluster.NoLeader, Action: Move}
	if p.Leader >= 0 && live[p.Leader] {
		e.To, e.Action, e.Reason = p.Leader, NotNeeded, fmt.Sprintf("broker %d leads", p.Leader)
		return e
	}
	online := func(id cluster.BrokerID) bool { return live[id] && !(p.Leader < 0 && slices.Contains(p.Offline, id)) }
	for _, id := range p.Replicas {
		if online(id) && p.InSync(id) {
			e.To = id
			return e
		}
	}
	for _, id := range p.Replicas {
		if online(id) {
			e.To, e.Unclean = id, true
			return e
		}
	}
	e.Action, e.Reason = Impossible, "no replica is on a live broker with a working log directory"
	return e
}

// Moves returns the elections that move a leader.
func Moves(plan []Election) []Election {
	return pick(plan, func(e *Election) bool { return e.Action == Move })
}

// Imbalanced returns all but those that need nothing.
func Imbalanced(plan []Election) []Election {
	return pick(plan, func(e *Election) bool { return e.Action != NotNeeded })
}

func pick(plan []Election, keep func(*Election) bool) []Election {
	var out []Election
	for i := range plan {
		if keep(&plan[i]) {
			out = append(out, plan[i])
		}
	}
	return out
}

// TargetsOf names the partitions of a plan.
func TargetsOf(plan []Election) []Target {
	at := map[string]int{}
	var out []Target
	for i := range plan {
		k, ok := at[plan[i].Topic]
		if !ok {
			k = len(out)
			at[plan[i].Topic] = k
			out = append(out, Target{Topic: plan[i].Topic})
		}
		out[k].Partitions = append(out[k].Partitions, plan[i].Partition)
	}
	return out
}

// electionBytesMax bounds the value of /admin/preferred_replica_election. ZooKeeper refuses requests above
// jute.maxbuffer (1 MiB unless configured), and closes the connection without a word.
const electionBytesMax = 512 << 10

// ElectionChunks cuts a plan into parts whose JSON stays below ZooKeeper's limit, and that have no more than
// partsMax partitions (0: no bound but the size).
func ElectionChunks(plan []Election, partsMax int) [][]Election {
	var out [][]Election
	size, first := 0, 0
	for i := range plan {
		entry := len(plan[i].Topic) + len(`{"topic":"","partition":2147483647},`)
		if i > first && (size+entry > electionBytesMax || partsMax > 0 && i-first >= partsMax) {
			out = append(out, plan[first:i])
			first, size = i, 0
		}
		size += entry
	}
	if first < len(plan) {
		out = append(out, plan[first:])
	}
	return out
}
