package check_test

import (
	"strings"
	"testing"

	"kctl/admin/check"
	"kctl/admin/model"
)

// TestEditedStates: a state znode that somebody wrote is looked at itself: brokers follow what they were told before, so their
// metadata is in order until the next election. The fix never takes an epoch back.
func TestEditedStates(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(n *model.StateNode)
		id     string // of the finding; the other check finds nothing
		fix    string
	}{
		{"leader out of the isr", func(n *model.StateNode) { n.ISR = ids{2, 3} }, check.LeaderNotInISR, `"leader":1,"version":1,"leader_epoch":4,"isr":[1,2,3]}' --if-version 7 --break-glass --yes`},
		{"stranger in the isr", func(n *model.StateNode) { n.ISR = ids{1, 9} }, check.NotAReplica, `"leader":1,"version":1,"leader_epoch":4,"isr":[1,2,3]}' --if-version 7`},
		{"stranger leads", func(n *model.StateNode) { n.Leader, n.ISR = 9, ids{9} }, check.NotAReplica, `"leader":1,"version":1,"leader_epoch":4,`},
		{"epoch ahead", func(n *model.StateNode) { n.ISR, n.LeaderEpoch = ids{2, 3}, 6 }, check.LeaderNotInISR, `"leader_epoch":7,"isr":[1,2,3]}' --if-version 7 --break-glass --yes   # then kctl controller move --yes`},
		{"the isr has shrunk just now", func(n *model.StateNode) { n.ISR = ids{1, 2} }, "", ""},
		{"an election just now", func(n *model.StateNode) { n.Leader, n.LeaderEpoch = 2, 5 }, "", ""},
	} {
		f := facts()
		f.Tree.States[0].ZKVersion = 7
		tt.change(&f.Tree.States[0])
		found := check.Diagnose(f, []string{check.LeaderNotInISR, check.NotAReplica}).Findings
		switch {
		case tt.id == "" && len(found) > 0, tt.id != "" && len(found) != 1:
			t.Errorf("%s: %+v", tt.name, found)
		case tt.id != "" && (found[0].ID != tt.id || !strings.Contains(found[0].Fix, tt.fix)):
			t.Errorf("%s: %+v", tt.name, found[0])
		}
	}
}

// TestStateDeleted: a new controller would write epoch 0, which brokers that act in a later one ignore.
func TestStateDeleted(t *testing.T) {
	f := facts()
	f.Tree.States[0].Missing = true
	found := check.Diagnose(f, []string{check.StateMissing}).Findings
	const want = `kctl zk create /brokers/topics/t/partitions/0/state '{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":5,"isr":[1,2,3]}' --break-glass --yes   # then kctl controller move --yes`
	if len(found) != 1 || found[0].Fix != want {
		t.Errorf("%+v", found)
	}
	f.Snapshot.Topics[0].Partitions = nil // brokers never heard of it
	if found = check.Diagnose(f, []string{check.StateMissing}).Findings; len(found) != 1 || found[0].Fix != "kctl controller move --yes" {
		t.Errorf("%+v", found)
	}
}

// TestEpochBehindIsFoundAlone: the check reads the transitions that it compares with, also when it is the only one asked for.
func TestEpochBehindIsFoundAlone(t *testing.T) {
	for _, c := range check.Checks() {
		if c.ID != check.EpochBehindBroker {
			continue
		}
		for _, s := range c.Needs {
			if s == check.FromTransitions {
				return
			}
		}
	}
	t.Error("transitions are not read for it")
}
