package check_test

import (
	"strings"
	"testing"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

type ids = []cluster.BrokerID

func snapshot(parts ...model.Partition) *model.Snapshot {
	s := &model.Snapshot{ZooKeeper: true, Controller: model.Controller{ID: 1, Epoch: 3}}
	for _, id := range (ids{1, 2, 3}) {
		s.Brokers = append(s.Brokers, model.Broker{ID: id, Live: true, Asked: true, Sees: 1})
	}
	for _, p := range parts {
		if p.Topic == "" {
			p.Topic = "t"
		}
		s.Topics = append(s.Topics, model.Topic{Name: p.Topic, Partitions: []model.Partition{p}})
	}
	return s
}

// healthy is a partition without any finding.
func healthy() model.Partition {
	return model.Partition{Leader: 1, LeaderEpoch: 4, Replicas: ids{1, 2, 3}, ISR: ids{1, 2, 3}, MinISR: 2}
}

func TestHealth(t *testing.T) {
	with := func(change func(*model.Partition)) model.Partition {
		p := healthy()
		change(&p)
		return p
	}
	tests := []struct {
		name string
		in   func() check.Input
		want []string // id/severity/object, in order
	}{
		{"healthy", func() check.Input { return check.Input{Snapshot: snapshot(healthy())} }, nil},
		{"offline", func() check.Input {
			return check.Input{Snapshot: snapshot(with(func(p *model.Partition) { p.Leader = -1; p.ISR = ids{2} }))}
		}, []string{"offline-partition/critical/t-0", "under-replicated/warning/t-0"}},
		{"under min isr", func() check.Input {
			return check.Input{Snapshot: snapshot(with(func(p *model.Partition) { p.ISR = ids{1} }))}
		}, []string{"under-min-isr/critical/t-0", "under-replicated/warning/t-0"}},
		{"at min isr with all replicas in sync", func() check.Input {
			return check.Input{Snapshot: snapshot(with(func(p *model.Partition) { p.Replicas, p.ISR = ids{1, 2}, ids{1, 2} }))}
		}, []string{"at-min-isr/info/t-0"}},
		{"not preferred", func() check.Input {
			return check.Input{Snapshot: snapshot(with(func(p *model.Partition) { p.Leader = 2 }))}
		}, []string{"not-preferred/info/t-0"}},
		{"adding replicas are not missed", func() check.Input {
			return check.Input{Snapshot: snapshot(with(func(p *model.Partition) { p.Replicas = ids{1, 2, 3, 4}; p.Adding = ids{4} }))}
		}, nil},
		{"dead broker in the isr", func() check.Input {
			s := snapshot(healthy())
			s.Brokers[1].Live = false
			return check.Input{Snapshot: s}
		}, []string{"broker-down/critical/broker 2", "dead-replica-in-isr/warning/t-0"}},
		{"silent broker", func() check.Input {
			s := snapshot(healthy())
			s.Brokers[2].Err = "no answer in time"
			return check.Input{Snapshot: s}
		}, []string{"broker-unreachable/critical/broker 3"}},
		{"no controller", func() check.Input {
			s := snapshot(healthy())
			s.Controller.ID = -1
			return check.Input{Snapshot: s}
		}, []string{"no-controller/critical/cluster"}},
		{"controller is not registered", func() check.Input {
			s := snapshot(healthy())
			s.Controller.ID = 9
			return check.Input{Snapshot: s}
		}, []string{"no-controller/critical/broker 9"}},
		{"brokers name another controller", func() check.Input {
			s := snapshot(healthy())
			s.Brokers[1].Sees, s.Brokers[2].Sees = 3, -1
			return check.Input{Snapshot: s}
		}, []string{"controller-mismatch/warning/broker 1"}},
		{"without ZooKeeper any broker may be named", func() check.Input {
			s := snapshot(healthy())
			s.ZooKeeper, s.Brokers[1].Sees = false, 3
			return check.Input{Snapshot: s}
		}, nil},
		{"stuck and pending transitions", func() check.Input {
			return check.Input{Snapshot: snapshot(healthy()), Transitions: []model.Transition{
				{Topic: "t", State: model.TransitionPending}, {Topic: "u", State: model.TransitionStuck}, {Topic: "v", State: model.TransitionDone},
			}}
		}, []string{"stuck-transition/critical/u-0", "pending-transition/info/t-0"}},
		{"silent leaders are one finding each, and what else is stuck stays", func() check.Input {
			silent := func(topic string, p int32, leader cluster.BrokerID, state model.TransitionState) model.Transition {
				return model.Transition{Topic: topic, Partition: p, Leader: leader, State: state, LeaderSilent: true}
			}
			return check.Input{Snapshot: snapshot(healthy()), Transitions: []model.Transition{
				silent("t", 0, 3, model.TransitionStuck), silent("t", 1, 2, model.TransitionStuck), silent("t", 2, 3, model.TransitionPending),
				{Topic: "u", Leader: 3, State: model.TransitionStuck},
			}}
		}, []string{"leader-unreachable/critical/broker 2", "leader-unreachable/critical/broker 3", "stuck-transition/critical/u-0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			findings := check.Health(tt.in())
			for _, f := range findings {
				got = append(got, f.ID+"/"+string(f.Severity)+"/"+f.Object)
			}
			if strings.Join(got, " ") != strings.Join(tt.want, " ") {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			wantHealthy := !strings.Contains(strings.Join(tt.want, " "), "critical") && !strings.Contains(strings.Join(tt.want, " "), "warning")
			if check.Healthy(findings) != wantHealthy {
				t.Errorf("healthy = %v", !wantHealthy)
			}
		})
	}
}

// TestPreferredFix: the election is named as the fix only where it can succeed.
func TestPreferredFix(t *testing.T) {
	for _, tt := range []struct {
		dead bool
		isr  ids
		want string
	}{
		{false, ids{1, 2}, "kctl elect preferred big:0 --yes"},
		{false, ids{1}, "kctl lag replicas big:0   # broker 2 has to catch up first"},
		{true, ids{1}, "kctl brokers list   # start broker 2"},
	} {
		s := snapshot()
		s.Topics = append(s.Topics, model.Topic{Name: "big", Partitions: []model.Partition{{Topic: "big", Leader: 1, Replicas: ids{2, 1}, ISR: tt.isr}}})
		for i := range s.Brokers {
			s.Brokers[i].Live = s.Brokers[i].ID != 2 || !tt.dead
		}
		found := false
		for _, f := range check.Health(check.Input{Snapshot: s}) {
			if f.ID == check.NotPreferred {
				if found = true; f.Fix != tt.want {
					t.Errorf("dead %v, isr %v: %q, want %q", tt.dead, tt.isr, f.Fix, tt.want)
				}
			}
		}
		if !found {
			t.Errorf("dead %v, isr %v: no finding", tt.dead, tt.isr)
		}
	}
}

// TestHealthListsEverything: five hundred problems are five hundred findings.
func TestHealthListsEverything(t *testing.T) {
	s := snapshot()
	top := model.Topic{Name: "big"}
	for i := range int32(500) {
		top.Partitions = append(top.Partitions, model.Partition{Topic: "big", Partition: i, Leader: 1, Replicas: ids{1, 2}, ISR: ids{1}})
	}
	s.Topics = append(s.Topics, top)
	if n := len(check.Health(check.Input{Snapshot: s})); n != 500 {
		t.Errorf("%d findings, want 500", n)
	}
}

// TestIDsAreComplete: every id that Health can emit is listed, kebab-case, once.
func TestIDsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range check.IDs() {
		if seen[id[0]] || strings.ToLower(id[0]) != id[0] || strings.ContainsAny(id[0], "_ ") {
			t.Errorf("id %q is doubled or not kebab-case", id[0])
		}
		seen[id[0]] = true
	}
	if len(seen) != 14 {
		t.Errorf("%d ids listed: a new one needs a row in the documentation and here", len(seen))
	}
}

func TestTransition(t *testing.T) {
	live := map[cluster.BrokerID]bool{1: true, 2: true, 3: true}
	base := func() model.Observation {
		return model.Observation{
			State: model.StateNode{Topic: "t", Partition: 1, Replicas: ids{2, 1, 3}, LeaderAndISR: cluster.LeaderAndISR{
				Leader: 1, LeaderEpoch: 7, ISR: ids{1, 2, 3}, ControllerEpoch: 4}},
			LeaderAnswer: model.AnswerOK, Age: time.Minute, MetadataEpoch: 7,
			FollowerEpoch: map[cluster.BrokerID]cluster.LeaderEpoch{2: 7, 3: 7},
		}
	}
	tests := []struct {
		name    string
		change  func(*model.Observation)
		state   model.TransitionState
		waiting ids
		reason  string // a part of it
		fix     string
	}{
		{"carried out", func(*model.Observation) {}, model.TransitionDone, nil, "", ""},
		{"leader has not applied it", func(o *model.Observation) { o.LeaderAnswer = model.AnswerBehind }, model.TransitionStuck, ids{1}, "has not applied epoch 7", "kctl elect preferred t:1 --yes"},
		{"the same, but young", func(o *model.Observation) { o.LeaderAnswer, o.Age = model.AnswerBehind, time.Second }, model.TransitionPending, ids{1}, "has not applied", "kctl elect preferred t:1 --yes"},
		{"age not known", func(o *model.Observation) { o.LeaderAnswer, o.Age = model.AnswerBehind, -1 }, model.TransitionPending, ids{1}, "has not applied", "kctl elect preferred t:1 --yes"},
		{"preferred leads already", func(o *model.Observation) {
			o.LeaderAnswer, o.State.Replicas = model.AnswerNotLeader, ids{1, 2, 3}
		}, model.TransitionStuck, ids{1}, "does not act as leader of epoch 7", "restart broker 1"},
		{"leader not registered", func(o *model.Observation) {
			o.LeaderAnswer, o.State.Leader = model.AnswerNotRegistered, 9
		}, model.TransitionStuck, ids{9}, "leader 9 is not registered", "start broker 9"},
		{"leader silent", func(o *model.Observation) {
			o.LeaderAnswer, o.Detail = model.AnswerUnreachable, "connection refused"
		}, model.TransitionStuck, ids{1}, "connection refused", "restart broker 1 or repair its network"},
		{"log directory gone", func(o *model.Observation) { o.LeaderAnswer = model.AnswerStorageError }, model.TransitionStuck, ids{1}, "log directory", "replace the disk of broker 1, then restart it"},
		{"not hosted", func(o *model.Observation) { o.LeaderAnswer = model.AnswerNotHosted }, model.TransitionStuck, ids{1}, "does not host", "kctl elect preferred t:1 --yes"},
		{"broker is ahead of ZooKeeper", func(o *model.Observation) { o.LeaderAnswer = model.AnswerAhead }, model.TransitionStuck, ids{1}, "newer epoch", "kctl elect preferred t:1 --yes"},
		{"another error", func(o *model.Observation) { o.LeaderAnswer, o.Detail = model.AnswerOther, "UNKNOWN" }, model.TransitionStuck, ids{1}, "UNKNOWN", "kctl elect preferred t:1 --yes"},
		{"follower has not followed", func(o *model.Observation) { o.FollowerEpoch[3] = 6 }, model.TransitionStuck, ids{3}, "follower 3 (epoch 6)", "kctl elect preferred t:1 --yes"},
		{"the controller does not know of it", func(o *model.Observation) {
			o.LeaderAnswer, o.MetadataEpoch = model.AnswerNotLeader, 6
		}, model.TransitionStuck, ids{1}, "the brokers' metadata has 6", "kctl controller move --yes"},
		{"metadata not read", func(o *model.Observation) {
			o.LeaderAnswer, o.MetadataEpoch = model.AnswerNotLeader, -1
		}, model.TransitionStuck, ids{1}, "does not act as leader", "kctl elect preferred t:1 --yes"},
		{"dead follower is not waited for", func(o *model.Observation) { o.FollowerEpoch = map[cluster.BrokerID]cluster.LeaderEpoch{2: 7} }, model.TransitionDone, nil, "", ""},
		{"no leader chosen", func(o *model.Observation) { o.State.Leader, o.LeaderAnswer = -1, model.AnswerNone }, model.TransitionDone, nil, "", ""},
		{"controller epoch from nowhere", func(o *model.Observation) { o.State.ControllerEpoch = 99 }, model.TransitionStuck, ids{1}, "controller epoch 99", `kctl zk set /brokers/topics/t/partitions/1/state '{"controller_epoch":5,"leader":1,"version":1,"leader_epoch":7,"isr":[1,2,3]}' --if-version 0 --break-glass --yes`},
		{"never created", func(o *model.Observation) {
			o.State.Missing, o.State.Leader, o.State.Replicas = true, -1, ids{8, 1}
		}, model.TransitionStuck, ids{8}, "has not created", "start broker 8"},
		{"not created although all its replicas live", func(o *model.Observation) {
			o.State.Missing, o.State.Leader, o.State.Replicas = true, -1, ids{1}
		}, model.TransitionStuck, nil, "has not created", "kctl controller move --yes"},
		{"the controller's own alert", func(o *model.Observation) {
			o.LeaderAnswer, o.Age, o.Alert = model.AnswerBehind, time.Second, &model.Alert{Reason: "broker 1 has not answered"}
		}, model.TransitionStuck, ids{1}, "the controller's alert: broker 1 has not answered", "kctl elect preferred t:1 --yes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := base()
			tt.change(&o)
			got := check.Transition(o, check.TransitionContext{Live: live, ControllerEpoch: 5, OlderThan: 10 * time.Second})
			if got.State != tt.state || check.IDList(got.WaitingFor) != check.IDList(tt.waiting) ||
				!strings.Contains(got.Reason, tt.reason) || tt.reason == "" != (got.Reason == "") || got.Fix != tt.fix {
				t.Errorf("got state %s waiting %v\nreason %q\nfix %q", got.State, got.WaitingFor, got.Reason, got.Fix)
			}
		})
	}
}
