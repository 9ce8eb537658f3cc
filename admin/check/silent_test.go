package check_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// TestSilentLeader: a broker that dies with a thousand partitions is one finding until its session ends, which counts them, names
// the first, says which of them nobody else can lead, and how long it may last.
func TestSilentLeader(t *testing.T) {
	s := snapshot()
	top := model.Topic{Name: "big"}
	live := map[cluster.BrokerID]bool{1: true, 2: true, 3: true}
	var ts []model.Transition
	for i := range int32(1000) {
		p := model.Partition{Topic: "big", Partition: i, Leader: 3, LeaderEpoch: 2, Replicas: ids{3, 1, 2}, ISR: ids{3, 1, 2}}
		if i < 2 {
			p.ISR = ids{3}
		}
		top.Partitions = append(top.Partitions, p)
		o := model.Observation{
			State:        model.StateNode{Topic: "big", Partition: i, Replicas: p.Replicas, LeaderAndISR: cluster.LeaderAndISR{Leader: 3, LeaderEpoch: 2, ISR: p.ISR, ControllerEpoch: 3}},
			LeaderAnswer: model.AnswerUnreachable, Detail: "connection refused", MetadataEpoch: 2, Age: time.Hour,
		}
		switch i {
		case 997: // the controller itself says that this one is stuck
			o.Alert = &model.Alert{Epoch: 2, Reason: "broker 3 has not answered"}
		case 998: // no broker was told
			o.MetadataEpoch = 1
		case 999: // the controller will not touch it
			o.State.ControllerEpoch = 9
		}
		ts = append(ts, check.Transition(o, check.TransitionContext{Live: live, ControllerEpoch: 3, OlderThan: 10 * time.Second}))
	}
	s.Topics = append(s.Topics, top)
	count, silent := map[string]int{}, model.Finding{}
	for _, f := range check.Health(check.Input{Snapshot: s, Transitions: ts, Session: 18 * time.Second}) {
		if count[f.ID]++; f.ID == check.LeaderUnreachable {
			silent = f
		}
	}
	if count[check.LeaderUnreachable] != 1 || count[check.StuckTransition] != 3 {
		t.Errorf("%v", count)
	}
	for _, want := range []string{
		"leader 3 does not answer: connection refused", "leads 997 partitions: big-0, big-1, big-2, big-3, big-4 and 992 more",
		"no other replica in sync lives for 2 of them: big-0, big-1;", "at most 18s from now",
	} {
		if !strings.Contains(silent.Evidence, want) {
			t.Errorf("no %q in %q", want, silent.Evidence)
		}
	}
	if silent.Object != "broker 3" || silent.Severity != model.SeverityCritical || !strings.HasPrefix(silent.Fix, "kctl brokers describe 3 ") {
		t.Errorf("%+v", silent)
	}
	if ts[0].State != model.TransitionStuck { // kctl transitions lists each
		t.Errorf("%+v", ts[0])
	}
}

// TestControllerDenies: the broker in /controller is believed when it says that it is not the controller, once it had time to take over.
func TestControllerDenies(t *testing.T) {
	names := func(f *check.Facts, id cluster.BrokerID) { f.Views[0].Controller = id }
	since := func(f *check.Facts, age time.Duration) {
		f.Snapshot.At = time.Unix(1_700_000_000, 0)
		f.Snapshot.Controller.Since = f.Snapshot.At.Add(-age)
	}
	for name, tt := range map[string]struct {
		change func(*check.Facts)
		want   string // of the evidence; empty: no finding
	}{
		"it acts":                        {func(f *check.Facts) { since(f, time.Hour) }, ""},
		"another in its metadata":        {func(f *check.Facts) { names(f, 3); since(f, time.Hour) }, "its own metadata names broker 3"},
		"none in its metadata":           {func(f *check.Facts) { names(f, -1) }, "its own metadata names no controller"},
		"both":                           {func(f *check.Facts) { names(f, 2); f.Office.Refuses = "NOT_CONTROLLER" }, "names broker 2, and it answers NOT_CONTROLLER"},
		"made by hand":                   {func(f *check.Facts) { names(f, 2); f.Office.Persistent = true }, "belongs to no session"},
		"it takes over":                  {func(f *check.Facts) { names(f, 3); since(f, 9*time.Second) }, ""},
		"it lost the office meanwhile":   {func(f *check.Facts) { names(f, 3); f.Office.Changed = true }, ""},
		"it does not answer":             {func(f *check.Facts) { f.Views[0].Err, f.Views[0].Controller = "no answer in time", 0 }, ""},
		"another broker is behind":       {func(f *check.Facts) { f.Views[1].Controller = 3 }, ""},
		"it is gone":                     {func(f *check.Facts) { names(f, 3); f.Snapshot.Brokers[0].Live = false }, ""},
		"nobody is named":                {func(f *check.Facts) { names(f, 3); f.Tree.Controller = -1 }, ""},
		"ZooKeeper was not read":         {func(f *check.Facts) { names(f, 3); f.Tree = nil; f.Missing[check.FromZooKeeper] = "no -z" }, ""},
		"a client's clock is far behind": {func(f *check.Facts) { names(f, 3); since(f, -time.Hour) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			tt.change(f)
			got := check.Diagnose(f, []string{check.ControllerDenies}).Findings
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0].Evidence, tt.want)) {
				t.Errorf("%s", fmt.Sprint(got))
			}
		})
	}
}
