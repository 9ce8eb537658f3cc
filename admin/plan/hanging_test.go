package plan_test

import (
	"strings"
	"testing"
	"time"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func TestHanging(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	open := model.OpenTransaction{Topic: "t", Partition: 1, ProducerID: 7, ProducerEpoch: 3, LastTimestamp: now.Add(-time.Hour)}
	if got := plan.OldTransactions([]model.OpenTransaction{open}, now, time.Hour); len(got) != 0 {
		t.Errorf("one that is just as old as it may be: %v", got)
	}
	if got := plan.OldTransactions([]model.OpenTransaction{open}, now, time.Hour-time.Millisecond); len(got) != 1 {
		t.Error("one that is older is not found")
	}
	here := []cluster.TopicPartition{{Topic: "t", Partition: 1}}
	state := func(state string, epoch int16, tps []cluster.TopicPartition) []model.TransactionState {
		return []model.TransactionState{{ID: "x", ProducerID: 7, ProducerEpoch: epoch, State: state, Partitions: tps}, {ID: "other", ProducerID: 8}}
	}
	for name, tt := range map[string]struct {
		states []model.TransactionState
		reason string // empty: it is not hanging
	}{
		"nobody knows it":               {nil, "no coordinator knows"},
		"under way":                     {state("Ongoing", 3, here), ""},
		"being aborted, fenced":         {state("PrepareAbort", 4, here), ""},
		"being committed":               {state("PrepareCommit", 3, here), ""},
		"ended":                         {state("CompleteAbort", 3, nil), "CompleteAbort"},
		"empty":                         {state("Empty", 3, nil), "Empty"},
		"a later one elsewhere":         {state("Ongoing", 4, []cluster.TopicPartition{{Topic: "t", Partition: 2}}), "epoch 3, the coordinator is at 4"},
		"same epoch, another partition": {state("Ongoing", 3, []cluster.TopicPartition{{Topic: "t", Partition: 2}}), "not part of"},
	} {
		got := plan.Hanging([]model.OpenTransaction{open}, tt.states)
		if (len(got) == 1) != (tt.reason != "") {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if len(got) == 1 && (!strings.Contains(got[0].Reason, tt.reason) || (got[0].TransactionalID == "x") != (tt.states != nil)) {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}
