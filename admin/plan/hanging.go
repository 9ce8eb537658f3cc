package plan

import (
	"fmt"
	"slices"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// OldTransactions are the open transactions whose producer wrote nothing for longer than a transaction may last.
func OldTransactions(open []model.OpenTransaction, now time.Time, longest time.Duration) []model.OpenTransaction {
	var out []model.OpenTransaction
	for _, t := range open {
		if now.Sub(t.LastTimestamp) > longest {
			out = append(out, t)
		}
	}
	return out
}

// Hanging are the open transactions that no coordinator will end, each with the reason: no transactional id has the
// producer id, or the one that has it is not at work on that partition with that epoch. The states must be those of
// all coordinators.
func Hanging(open []model.OpenTransaction, states []model.TransactionState) []model.OpenTransaction {
	by := make(map[int64]*model.TransactionState, len(states))
	for i := range states {
		by[states[i].ProducerID] = &states[i]
	}
	var out []model.OpenTransaction
	for _, t := range open {
		s := by[t.ProducerID]
		tp := cluster.TopicPartition{Topic: t.Topic, Partition: t.Partition}
		if s != nil {
			t.TransactionalID = s.ID
		}
		switch {
		case s == nil:
			t.Reason = "no coordinator knows the producer id"
		case !UnderWay(s.State):
			t.Reason = fmt.Sprintf("the coordinator has nothing under way for it: %s", s.State)
		case int32(s.ProducerEpoch) > t.ProducerEpoch && !slices.Contains(s.Partitions, tp):
			t.Reason = fmt.Sprintf("it is of producer epoch %d, the coordinator is at %d", t.ProducerEpoch, s.ProducerEpoch)
		case !slices.Contains(s.Partitions, tp):
			t.Reason = "the partition is not part of what the coordinator has under way"
		default:
			continue
		}
		out = append(out, t)
	}
	return out
}

// UnderWay reports whether a coordinator in this state has a transaction that it has not ended yet.
func UnderWay(state string) bool {
	return state == "Ongoing" || state == "PrepareCommit" || state == "PrepareAbort" || state == "PrepareEpochFence"
}
