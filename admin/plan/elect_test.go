package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

type ids = []cluster.BrokerID

func liveOf(list ...cluster.BrokerID) map[cluster.BrokerID]bool {
	out := map[cluster.BrokerID]bool{}
	for _, id := range list {
		out[id] = true
	}
	return out
}

// TestUncleanPlan: a clean leader is taken while there is one, a replica outside the ISR only then, and none
// of those that no broker can serve.
func TestUncleanPlan(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    model.Partition
		live map[cluster.BrokerID]bool
		want string
	}{
		{"led", model.Partition{Leader: 1, Replicas: ids{1, 2}, ISR: ids{1}}, liveOf(1, 2), "not-needed to 1"},
		{"in sync first", model.Partition{Leader: -1, Replicas: ids{3, 2, 1}, ISR: ids{1}}, liveOf(1, 2, 3), "move to 1"},
		{"leader dead, metadata old", model.Partition{Leader: 3, Replicas: ids{3, 2}, ISR: ids{3}, Offline: ids{3}}, liveOf(2), "move to 2 unclean"},
		{"order of the assignment", model.Partition{Leader: -1, Replicas: ids{3, 2, 1}, ISR: ids{3}}, liveOf(1, 2), "move to 2 unclean"},
		{"dead disk", model.Partition{Leader: -1, Replicas: ids{3, 2, 1}, ISR: ids{3}, Offline: ids{3, 2}}, liveOf(1, 2, 3), "move to 1 unclean"},
		{"nobody", model.Partition{Leader: -1, Replicas: ids{3, 2}, ISR: ids{3}}, liveOf(1), "impossible to -1"},
	} {
		tt.p.Topic = "t"
		s := &model.Snapshot{Topics: []model.Topic{{Name: "t", Partitions: []model.Partition{tt.p}}}}
		got, missing := plan.Unclean(s, tt.live, nil)
		if len(missing) > 0 || len(got) != 1 {
			t.Fatalf("%s: %v %v", tt.name, got, missing)
		}
		text := fmt.Sprintf("%s to %d", got[0].Action, got[0].To)
		if got[0].Unclean {
			text += " unclean"
		}
		if text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, text, tt.want)
		}
	}
}

// TestElectionTargets: what matches nothing is said, and a plan names its partitions again.
func TestElectionTargets(t *testing.T) {
	s := &model.Snapshot{Topics: []model.Topic{
		{Name: "a", Partitions: []model.Partition{{Topic: "a", Replicas: ids{1}, Leader: 1}, {Topic: "a", Partition: 1, Replicas: ids{2, 1}, ISR: ids{1, 2}, Leader: 1}}},
		{Name: "b", Partitions: []model.Partition{{Topic: "b", Replicas: ids{2}, Leader: -1}}},
	}}
	got, missing := plan.Preferred(s, liveOf(1, 2), []plan.Target{{Topic: "a", Partitions: []int32{1, 7}}, {Topic: "c"}})
	if fmt.Sprint(missing) != "[{a [7]} {c []}]" || len(got) != 1 {
		t.Errorf("%v missing %v", got, missing)
	}
	all, _ := plan.Preferred(s, liveOf(1, 2), nil)
	if fmt.Sprint(plan.TargetsOf(all)) != "[{a [0 1]} {b [0]}]" || len(plan.Moves(all)) != 1 || len(plan.Imbalanced(all)) != 2 {
		t.Errorf("%+v", all)
	}
}

func TestCheckLeader(t *testing.T) {
	base := model.Partition{Topic: "t", Leader: 1, Replicas: ids{1, 2, 3}, ISR: ids{1, 2}}
	moving := base
	moving.Adding = ids{4}
	for _, tt := range []struct {
		p    model.Partition
		g    plan.LeaderGoal
		want string
	}{
		{base, plan.LeaderGoal{Leader: 2, Order: ids{1, 2, 3}}, ""},
		{base, plan.LeaderGoal{Leader: 1, Order: ids{3, 2, 1}}, ""},
		{base, plan.LeaderGoal{Leader: 3, Order: ids{1, 2, 3}}, "not in sync"},
		{base, plan.LeaderGoal{Leader: 9, Order: ids{1, 2, 3}}, "not a replica"},
		{base, plan.LeaderGoal{Leader: 2, Order: ids{1, 2}}, "not one of the replicas"},
		{base, plan.LeaderGoal{Leader: 2, Order: ids{1, 2, 2}}, "not one of the replicas"},
		{moving, plan.LeaderGoal{Leader: 2, Order: ids{1, 2, 3}}, "being reassigned"},
	} {
		err := plan.CheckLeader(&tt.p, liveOf(1, 2, 3), tt.g)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.g, err, tt.want)
		}
	}
	if err := plan.CheckLeader(&base, liveOf(1, 3), plan.LeaderGoal{Leader: 2, Order: ids{1, 2, 3}}); err == nil || !strings.Contains(err.Error(), "not registered") {
		t.Errorf("dead broker: %v", err)
	}
}

// TestLeaderStepsFromAnywhere: from every order of the replicas and every leader the steps end at the goal,
// each at most once and in their order: what a crash leaves behind is taken up again.
func TestLeaderStepsFromAnywhere(t *testing.T) {
	order := []plan.LeaderStep{plan.LeaderReorder, plan.LeaderElect, plan.LeaderRestore}
	for _, now := range []ids{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		for leader := cluster.BrokerID(-1); leader <= 3; leader++ {
			for want := cluster.BrokerID(1); want <= 3; want++ {
				p := model.Partition{Topic: "t", Leader: leader, Replicas: now, ISR: ids{1, 2, 3}}
				g := plan.LeaderGoal{Leader: want, Order: ids{1, 2, 3}}
				steps := plan.LeaderSteps(&p, g)
				at := -1
				for _, s := range steps {
					i := slices.Index(order, s)
					if i <= at {
						t.Fatalf("from %v led by %d to %d: %v", now, leader, want, steps)
					}
					at = i
				}
				if (len(steps) == 0) != (leader == want && slices.Equal(now, g.Order)) || !slices.Equal(p.Replicas, now) {
					t.Errorf("from %v led by %d to %d: %v", now, leader, want, steps)
				}
			}
		}
	}
	if got := plan.FirstInOrder(plan.LeaderGoal{Leader: 3, Order: ids{1, 2, 3}}); !slices.Equal(got, ids{3, 1, 2}) {
		t.Errorf("%v", got)
	}
}
