package plan

import (
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Election is what one preferred election does to one partition.
type Election struct {
	Topic     string
	Partition int32
	From, To  cluster.BrokerID
	Action    ElectionAction
	Reason    string // why it is skipped or impossible
}

// ElectionAction says whether a partition moves.
type ElectionAction string

// The actions. Impossible means that the preferred replica is dead or out of sync: the controller would
// refuse it, so it is an error when the partition was asked for by name.
const (
	Move       ElectionAction = "move"
	NotNeeded  ElectionAction = "not-needed"
	Impossible ElectionAction = "impossible"
)

// Preferred plans a preferred leader election of the partitions that match targets (all when empty).
// The snapshot's order is kept. Targets that match nothing are returned as missing.
func Preferred(s *model.Snapshot, live map[cluster.BrokerID]bool, targets []Target) (plan []Election, missing []Target) {
	hit := make([]map[int32]bool, len(targets))
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			if !Match(targets, p.Topic, p.Partition) {
				continue
			}
			for k, t := range targets {
				if t.Topic == p.Topic {
					if hit[k] == nil {
						hit[k] = map[int32]bool{}
					}
					hit[k][p.Partition] = true
				}
			}
			plan = append(plan, electOne(p, live))
		}
	}
	for k, t := range targets {
		if hit[k] == nil {
			missing = append(missing, t)
			continue
		}
		var gone []int32
		for _, n := range t.Partitions {
			if !hit[k][n] {
				gone = append(gone, n)
			}
		}
		if len(gone) > 0 {
			missing = append(missing, Target{Topic: t.Topic, Partitions: gone})
		}
	}
	return plan, missing
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

// Moves returns the elections that move a leader.
func Moves(plan []Election) []Election {
	var out []Election
	for _, e := range plan {
		if e.Action == Move {
			out = append(out, e)
		}
	}
	return out
}
