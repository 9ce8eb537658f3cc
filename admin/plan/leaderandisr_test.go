package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

type brokers = []cluster.BrokerID

func isrFacts(leader cluster.BrokerID, replicas, isr, live brokers) LeaderAndISRFacts {
	f := LeaderAndISRFacts{Live: map[cluster.BrokerID]bool{}, ControllerEpoch: 7}
	f.State = model.StateNode{Topic: "t", Partition: 0, Replicas: replicas, ZKVersion: 5}
	f.State.LeaderAndISR = cluster.LeaderAndISR{Leader: leader, LeaderEpoch: 3, ISR: isr, ControllerEpoch: 6}
	for _, b := range live {
		f.Live[b] = true
	}
	return f
}

func TestLeaderAndISR(t *testing.T) {
	all := brokers{1, 2, 3}
	keep := cluster.KeepLeader
	for name, tc := range map[string]struct {
		facts  LeaderAndISRFacts
		wish   LeaderAndISRWish
		leader cluster.BrokerID
		isr    brokers
		want   string // "": granted, "same": nothing to do, else part of the refusal
	}{
		"chosen leader":              {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: 3}, 3, all, ""},
		"in force":                   {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: 1}, 1, all, "same"},
		"shrink":                     {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: keep, ISR: brokers{1, 2}}, 1, brokers{1, 2}, ""},
		"dead member goes":           {isrFacts(1, all, all, brokers{1, 2}), LeaderAndISRWish{Leader: 2}, 2, brokers{1, 2}, ""},
		"dead leader":                {isrFacts(1, all, all, brokers{1, 2}), LeaderAndISRWish{Leader: 3}, 0, nil, "broker 3 is not live: it cannot lead"},
		"stranger leads":             {isrFacts(1, all, all, brokers{1, 2, 3, 4}), LeaderAndISRWish{Leader: 4}, 0, nil, "broker 4 is not one of the replicas 1,2,3"},
		"outside the ISR":            {isrFacts(1, all, brokers{1, 2}, all), LeaderAndISRWish{Leader: 3}, 0, nil, "broker 3 is outside the ISR 1,2"},
		"unclean":                    {isrFacts(1, all, brokers{1, 2}, all), LeaderAndISRWish{Leader: 3, Unclean: true}, 3, brokers{3}, ""},
		"unclean is alone":           {isrFacts(1, all, brokers{1, 2}, all), LeaderAndISRWish{Leader: 3, ISR: brokers{1, 3}, Unclean: true}, 0, nil, "is alone in the new one"},
		"unclean not needed":         {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: 3, Unclean: true}, 3, all, ""},
		"empty ISR":                  {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: keep, ISR: brokers{}}, 0, nil, "the ISR would be empty"},
		"ISR without leader":         {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: keep, ISR: brokers{2, 3}}, 0, nil, "does not hold the leader 1"},
		"ISR twice":                  {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: keep, ISR: brokers{1, 1}}, 0, nil, "names broker 1 twice"},
		"ISR with a stranger":        {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: keep, ISR: brokers{1, 9}}, 0, nil, "broker 9 of the ISR is not one of the replicas"},
		"ISR grows":                  {isrFacts(1, all, brokers{1}, all), LeaderAndISRWish{Leader: keep, ISR: brokers{1, 2}}, 0, nil, "broker 2 is not in the ISR 1"},
		"ISR grows, unclean":         {isrFacts(1, all, brokers{1}, all), LeaderAndISRWish{Leader: keep, ISR: brokers{1, 2}, Unclean: true}, 0, nil, "broker 2 is not in the ISR 1"},
		"dead in the ISR":            {isrFacts(1, all, all, brokers{1, 2}), LeaderAndISRWish{Leader: keep, ISR: all}, 0, nil, "broker 3 of the ISR is not live"},
		"nobody leads":               {isrFacts(-1, all, brokers{1}, all), LeaderAndISRWish{Leader: keep}, 0, nil, "has no leader"},
		"nobody leads, one is named": {isrFacts(-1, all, brokers{1}, all), LeaderAndISRWish{Leader: 1}, 1, brokers{1}, ""},
		"version":                    {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: 2, IfVersion: 4}, 0, nil, "has version 5, not 4"},
		"version fits":               {isrFacts(1, all, all, all), LeaderAndISRWish{Leader: 2, IfVersion: 5}, 2, all, ""},
		"deleting":                   {LeaderAndISRFacts{Deleting: true}, LeaderAndISRWish{Leader: 2}, 0, nil, "is being deleted"},
		"missing":                    {LeaderAndISRFacts{State: model.StateNode{Missing: true}}, LeaderAndISRWish{Leader: 2}, 0, nil, "has no state node"},
		"undecodable":                {LeaderAndISRFacts{State: model.StateNode{Err: "not JSON"}}, LeaderAndISRWish{Leader: 2}, 0, nil, "not JSON"},
		"newer controller": {func() LeaderAndISRFacts {
			f := isrFacts(1, all, all, all)
			f.ControllerEpoch = 5
			return f
		}(), LeaderAndISRWish{Leader: 2}, 0, nil, "written by controller epoch 6, above the present one, 5"},
		"epoch at its end": {func() LeaderAndISRFacts {
			f := isrFacts(1, all, all, all)
			f.State.LeaderEpoch = 1<<31 - 1
			return f
		}(), LeaderAndISRWish{Leader: 2}, 0, nil, "cannot rise"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.wish.IfVersion == 0 {
				tc.wish.IfVersion = cluster.AnyVersion
			}
			p, err := LeaderAndISR(tc.facts, tc.wish)
			if tc.want != "" && tc.want != "same" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("got %+v, %v, want %q", p, err, tc.want)
				}
				return
			}
			if err != nil || p.Change == (tc.want == "same") || p.Next.Leader != tc.leader || !slices.Equal(p.Next.ISR, tc.isr) {
				t.Fatalf("got %+v, %v", p, err)
			}
		})
	}
}

func TestLeaderAndISRWarnings(t *testing.T) {
	f := isrFacts(1, brokers{1, 2, 3}, brokers{1, 2, 3}, brokers{1, 2, 3})
	f.MinISR = 2
	p, err := LeaderAndISR(f, LeaderAndISRWish{Leader: 1, ISR: brokers{1}, IfVersion: cluster.AnyVersion})
	if err != nil || len(p.Warnings) != 3 || !strings.Contains(p.Warnings[0], "min.insync.replicas=2") {
		t.Errorf("%q, %v", p.Warnings, err)
	}
}

// TestLeaderAndISRNeverUnsafe: whatever is wished of whatever partition, what is granted is safe.
func TestLeaderAndISRNeverUnsafe(t *testing.T) {
	ids := rapid.SliceOfNDistinct(rapid.Int32Range(0, 5), 0, 5, rapid.ID[int32])
	list := rapid.SliceOfN(rapid.Int32Range(-2, 6), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		f := isrFacts(cluster.BrokerID(rapid.Int32Range(-1, 5).Draw(t, "leader")), cluster.IDsFromInt32(ids.Draw(t, "replicas")),
			cluster.IDsFromInt32(ids.Draw(t, "isr")), cluster.IDsFromInt32(ids.Draw(t, "live")))
		w := LeaderAndISRWish{
			Leader: cluster.BrokerID(rapid.Int32Range(-2, 6).Draw(t, "wanted")), Unclean: rapid.Bool().Draw(t, "unclean"),
			IfVersion: cluster.ZKVersion(rapid.Int32Range(-1, 6).Draw(t, "version")),
		}
		if rapid.Bool().Draw(t, "has isr") {
			w.ISR = cluster.IDsFromInt32(list.Draw(t, "wanted isr"))
		}
		if rapid.Bool().Draw(t, "restore") {
			earlier := cluster.LeaderAndISR{Leader: w.Leader, ISR: w.ISR}
			w, _ = RestoreLeaderAndISR(f, earlier, w.Unclean)
		}
		before := f.State.LeaderAndISR.Clone()
		p, err := LeaderAndISR(f, w)
		if !f.State.LeaderAndISR.Equal(before) {
			t.Fatal("the facts were changed")
		}
		if err != nil {
			if _, ok := errors.AsType[*LeaderAndISRRefusal](err); !ok {
				t.Fatalf("%T", err)
			}
			return
		}
		mustBeSafe(t, f, w, p)
	})
}

func mustBeSafe(t *rapid.T, f LeaderAndISRFacts, w LeaderAndISRWish, p LeaderAndISRPlan) {
	n, s := p.Next, f.State
	switch {
	case len(n.ISR) == 0, !slices.Contains(n.ISR, n.Leader), !slices.Contains(s.Replicas, n.Leader), !f.Live[n.Leader]:
		t.Fatalf("unsafe leader: %+v of %+v", n, s)
	case p.Change && n.LeaderEpoch != s.LeaderEpoch+1, !p.Change && n.LeaderEpoch != s.LeaderEpoch:
		t.Fatalf("epoch %d of %d", n.LeaderEpoch, s.LeaderEpoch)
	case w.IfVersion >= 0 && w.IfVersion != s.ZKVersion:
		t.Fatal("another version was accepted")
	}
	outside := !slices.Contains(s.ISR, n.Leader)
	if outside && (!w.Unclean || len(n.ISR) != 1 || !n.Recovering) {
		t.Fatalf("unclean without consent: %+v of %+v", n, s)
	}
	for i, b := range n.ISR {
		if !slices.Contains(s.Replicas, b) || slices.Contains(n.ISR[:i], b) || !outside && !slices.Contains(s.ISR, b) {
			t.Fatalf("ISR %v of %+v", n.ISR, s)
		}
	}
}
