package check

import (
	"strings"
	"testing"

	"kctl/zkutil/cluster"
)

func isrView(leader cluster.BrokerID, epoch cluster.LeaderEpoch, isr, replicas []cluster.BrokerID) *ISRView {
	return &ISRView{LeaderAndISR: cluster.LeaderAndISR{Leader: leader, LeaderEpoch: epoch, ISR: isr}, Replicas: replicas, ZKVersion: 1}
}

func TestISRChangeOf(t *testing.T) {
	type ids = []cluster.BrokerID
	all := ids{1, 2, 3}
	live := func(b ...cluster.BrokerID) map[cluster.BrokerID]bool {
		m := map[cluster.BrokerID]bool{}
		for _, id := range b {
			m[id] = true
		}
		return m
	}
	up := live(1, 2, 3, 4)
	moving := func(v *ISRView, adding, removing ids) *ISRView { v.Adding, v.Removing = adding, removing; return v }
	recovering := func(v *ISRView) *ISRView { v.Recovering = true; return v }
	for name, tc := range map[string]struct {
		before, after *ISRView
		live          map[cluster.BrokerID]bool
		event         ISREvent
		why           string
	}{
		"same":              {isrView(1, 0, all, all), isrView(1, 0, all, all), up, "", ""},
		"nothing":           {nil, nil, up, "", ""},
		"created":           {nil, isrView(1, 0, all, all), up, EventCreated, "leader 1"},
		"created, no one":   {nil, isrView(-1, 0, all, all), up, EventCreated, "leader none"},
		"deleted":           {isrView(1, 0, all, all), nil, up, EventDeleted, "gone"},
		"leader died":       {isrView(1, 0, all, all), isrView(2, 1, ids{2, 3}, all), live(2, 3), EventElection, "leader 1 is dead"},
		"preferred":         {isrView(2, 3, all, all), isrView(1, 4, all, all), up, EventElection, "1 is the preferred leader"},
		"operator":          {isrView(1, 3, all, all), isrView(3, 4, all, all), up, EventElection, "by an operator"},
		"stopping":          {isrView(1, 3, all, all), isrView(2, 4, ids{2, 3}, all), up, EventElection, "shutting down"},
		"reassigned away":   {isrView(1, 3, all, all), isrView(4, 4, ids{4, 2}, ids{4, 2}), up, EventUnclean, "not in the ISR"},
		"reassigned leader": {isrView(1, 3, all, all), isrView(3, 4, ids{2, 3}, ids{2, 3}), up, EventElection, "reassigned away"},
		"back":              {isrView(-1, 3, ids{1}, all), isrView(1, 4, ids{1}, all), up, EventElection, "broker 1 of the ISR is back"},
		"unclean":           {isrView(1, 3, ids{1}, all), isrView(2, 4, ids{2}, all), live(2, 3), EventUnclean, "2 was not in the ISR 1"},
		"unclean from none": {isrView(-1, 3, ids{1}, all), recovering(isrView(2, 4, ids{2}, all)), live(2), EventUnclean, "2 was not in the ISR 1"},
		"offline":           {isrView(1, 3, ids{1}, all), isrView(-1, 4, ids{1}, all), live(2, 3), EventNoLeader, "every member of the ISR 1 is dead"},
		"deleting":          {isrView(1, 0, all, all), isrView(-1, 1, all, all), up, EventNoLeader, "the topic is being deleted"},
		"fell behind":       {isrView(1, 3, all, all), isrView(1, 3, ids{1, 2}, all), up, EventShrink, "3 fell behind the leader 1"},
		"follower died":     {isrView(1, 3, all, all), isrView(1, 4, ids{1, 2}, all), live(1, 2), EventShrink, "3 left the ISR: dead"},
		"taken out":         {isrView(1, 3, all, all), isrView(1, 4, ids{1, 2}, all), up, EventShrink, "by decision of the controller"},
		"caught up":         {isrView(1, 3, ids{1}, all), isrView(1, 3, ids{1, 3}, all), up, EventGrowth, "3 caught up with the leader 1"},
		"kicked":            {isrView(1, 3, all, all), isrView(1, 4, all, all), up, EventResent, "decided again"},
		"order":             {isrView(1, 3, all, all), isrView(1, 3, ids{3, 2, 1}, all), up, EventResent, "another order"},
		"reassignment":      {isrView(1, 3, all, all), moving(isrView(1, 4, all, ids{4, 1, 2, 3}), ids{4}, ids{3}), up, EventReassignment, "begun: adding 4, removing 3"},
		"reassignment ends": {moving(isrView(1, 4, all, ids{4, 1, 2, 3}), ids{4}, ids{3}), isrView(1, 5, ids{4, 1, 2}, ids{4, 1, 2}), up, EventReassignment, "ended with replicas 4,1,2"},
		"replica order":     {isrView(1, 3, all, all), isrView(1, 3, all, ids{2, 1, 3}), up, EventReassignment, "another order"},
	} {
		t.Run(name, func(t *testing.T) {
			ch, ok := ISRChangeOf(cluster.TopicPartition{Topic: "t"}, tc.before, tc.after, tc.live)
			if ok != (tc.event != "") || ch.Event != tc.event || !strings.Contains(ch.Why, tc.why) {
				t.Errorf("%v %q %q, want %q %q", ok, ch.Event, ch.Why, tc.event, tc.why)
			}
		})
	}
}
