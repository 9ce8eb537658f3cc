package replica

import (
	"fmt"
	"testing"
	"time"

	"kctl/zkutil/cluster"
)

// TestGraves: a decision that comes behind the deletion of its replica is known for it: of the same topic, by its epoch, for a while.
func TestGraves(t *testing.T) {
	tp, now := cluster.TopicPartition{Topic: "t"}, time.Unix(5000, 0)
	stopped := func(id cluster.TopicID, ev StopReplica) *Graves {
		p := New(Config{Self: 1})
		p.topicID, p.epoch = id, 4
		ev.At = now
		p.Step(ev, nil)
		g := &Graves{}
		g.Bury(tp, p, ev)
		return g
	}
	id, namesake := cluster.TopicID{1}, cluster.TopicID{2}
	removed := stopped(id, StopReplica{LeaderEpoch: 7, Delete: true})
	gone := stopped(id, StopReplica{LeaderEpoch: cluster.EpochDuringDelete, Delete: true})
	old := stopped(id, StopReplica{LeaderEpoch: cluster.NoLeaderEpoch, Delete: true})
	aside := stopped(id, StopReplica{LeaderEpoch: cluster.EpochDuringDelete})
	unknown := stopped(cluster.TopicID{}, StopReplica{LeaderEpoch: 7, Delete: true})
	for name, tt := range map[string]struct {
		g     *Graves
		topic cluster.TopicID
		epoch cluster.LeaderEpoch
		after time.Duration
		late  bool
	}{
		"older":                             {removed, id, 5, time.Minute, true},
		"the decision that removed it":      {removed, id, 7, time.Minute, true},
		"it is assigned again":              {removed, id, 8, time.Minute, false},
		"a topic of the same name":          {removed, namesake, 0, time.Minute, false},
		"nothing is under way for so long":  {removed, id, 5, time.Hour, false},
		"the topic is gone":                 {gone, id, 9, time.Minute, true},
		"made anew":                         {gone, namesake, 0, time.Minute, false},
		"a controller that tells no epoch":  {old, id, 4, time.Minute, true},
		"the same, assigned again":          {old, id, 5, time.Minute, false},
		"put aside, by an older controller": {aside, id, 3, time.Minute, true},
		"put aside, and named after all":    {aside, id, 4, time.Minute, false},
		"whose topic had no id":             {unknown, cluster.TopicID{}, 5, time.Minute, false},
		"of which nothing was ever deleted": {&Graves{}, id, 0, time.Minute, false},
	} {
		if got := tt.g.Late(tp, LeaderAndISR{At: now.Add(tt.after), TopicID: tt.topic, LeaderEpoch: tt.epoch}); got != tt.late {
			t.Errorf("%s: late is %v", name, got)
		}
	}
}

// TestGravesAreFew: those of which nothing can come any more are dropped.
func TestGravesAreFew(t *testing.T) {
	g, p, now := &Graves{}, New(Config{Self: 1}), time.Unix(5000, 0)
	p.topicID = cluster.TopicID{1}
	for i := range 20_000 {
		now = now.Add(time.Minute)
		g.Bury(cluster.TopicPartition{Topic: fmt.Sprint(i)}, p, StopReplica{At: now, Delete: true})
	}
	if len(g.of) > 1000 {
		t.Errorf("%d are kept", len(g.of))
	}
}
