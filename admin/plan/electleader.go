package plan

import (
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// LeaderGoal is what `elect leader` wants of a partition: who leads, and in which order the replicas stand in
// the end. The order is the assignment before the first step, so that a goal that was interrupted can be
// taken up again.
type LeaderGoal struct {
	Leader cluster.BrokerID
	Order  []cluster.BrokerID
}

// LeaderStep is the next thing to do towards a LeaderGoal.
type LeaderStep string

// The steps, in their order. Each is taken only when the partition shows that those before it are done.
const (
	LeaderReorder LeaderStep = "reorder" // put the leader to be first in the replica list; no data moves
	LeaderElect   LeaderStep = "elect"   // elect the first replica
	LeaderRestore LeaderStep = "restore" // put the replica list back into its order
	LeaderReached LeaderStep = "done"
)

// CheckLeader refuses what cannot be done safely: only a live member of the ISR may be chosen, the order in
// the end must be of the same replicas, and no reassignment may be under way.
func CheckLeader(p *model.Partition, live map[cluster.BrokerID]bool, g LeaderGoal) error {
	name := fmt.Sprintf("%s:%d", p.Topic, p.Partition)
	switch {
	case len(p.Adding)+len(p.Removing) > 0:
		return fmt.Errorf("%s is being reassigned (adding %s, removing %s): wait until it is done, or cancel it", name, idList(p.Adding), idList(p.Removing))
	case !slices.Contains(p.Replicas, g.Leader):
		return fmt.Errorf("broker %d is not a replica of %s: its replicas are %s", g.Leader, name, idList(p.Replicas))
	case !sameMembers(p.Replicas, g.Order):
		return fmt.Errorf("the order %s is not one of the replicas of %s, %s", idList(g.Order), name, idList(p.Replicas))
	case !live[g.Leader]:
		return fmt.Errorf("broker %d is not registered: it cannot lead %s", g.Leader, name)
	case p.Leader == g.Leader:
		return nil
	case !p.InSync(g.Leader):
		return fmt.Errorf("broker %d is not in sync: committed records of %s could be lost; the ISR is %s", g.Leader, name, idList(p.ISR))
	}
	return nil
}

// NextLeaderStep decides from what a partition shows now. It remembers nothing: after a crash at any place the
// same goal leads to the same end.
func NextLeaderStep(p *model.Partition, g LeaderGoal) LeaderStep {
	switch {
	case p.Leader == g.Leader && slices.Equal(p.Replicas, g.Order):
		return LeaderReached
	case p.Leader == g.Leader:
		return LeaderRestore
	case p.Preferred() == g.Leader:
		return LeaderElect
	}
	return LeaderReorder
}

// LeaderSteps lists the steps from where a partition is to the goal, for the plan that is shown.
func LeaderSteps(p *model.Partition, g LeaderGoal) []LeaderStep {
	var out []LeaderStep
	now := *p
	for {
		step := NextLeaderStep(&now, g)
		switch step {
		case LeaderReached:
			return out
		case LeaderReorder:
			now.Replicas = FirstInOrder(g)
		case LeaderElect:
			now.Leader = g.Leader
		case LeaderRestore:
			now.Replicas = g.Order
		}
		out = append(out, step)
	}
}

// FirstInOrder is the order in the end with the leader moved to the front.
func FirstInOrder(g LeaderGoal) []cluster.BrokerID {
	out := []cluster.BrokerID{g.Leader}
	for _, id := range g.Order {
		if id != g.Leader {
			out = append(out, id)
		}
	}
	return out
}

func sameMembers(a, b []cluster.BrokerID) bool {
	x, y := slices.Clone(a), slices.Clone(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
