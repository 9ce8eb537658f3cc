package check

import (
	"fmt"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// ISREvent is the kind of a change of leaderAndISR.
type ISREvent string

// The kinds. A change of several kinds at once is named by the first of them in this order.
const (
	EventCreated      ISREvent = "created"
	EventDeleted      ISREvent = "deleted"
	EventNoLeader     ISREvent = "no-leader"
	EventUnclean      ISREvent = "unclean-election"
	EventElection     ISREvent = "election"
	EventReassignment ISREvent = "reassignment"
	EventShrink       ISREvent = "shrink"
	EventGrowth       ISREvent = "growth"
	EventResent       ISREvent = "resent" // a new epoch or version without another leader or ISR
)

// ISRView is a partition as a watcher sees it; Replicas are the target once a reassignment runs.
type ISRView struct {
	cluster.LeaderAndISR
	Replicas, Adding, Removing []cluster.BrokerID
	ZKVersion                  cluster.ZKVersion // cluster.AnyVersion: not known
}

// ViewOfState makes the view of a state node; with its partition's assignment when that is known.
func ViewOfState(n *model.StateNode, p *model.Partition) ISRView {
	v := ISRView{LeaderAndISR: n.LeaderAndISR, Replicas: n.Replicas, ZKVersion: n.ZKVersion}
	if p != nil {
		v.Adding, v.Removing = p.Adding, p.Removing
	}
	return v
}

// noView is what a partition is before it is created and after it is deleted.
var noView = ISRView{
	LeaderAndISR: cluster.LeaderAndISR{Leader: cluster.NoLeader, LeaderEpoch: cluster.NoLeaderEpoch, ControllerEpoch: -1}, ZKVersion: cluster.AnyVersion,
}

// ISRChange is one change: what changed, and why as far as what was seen tells.
type ISRChange struct {
	Topic         string
	Partition     int32
	Event         ISREvent
	Why           string
	Before, After ISRView
}

// ISRChangeOf compares two views of a partition; nil stands for one that does not exist. live is who is registered now.
// ok is false when nothing changed that concerns leader, ISR or replicas.
func ISRChangeOf(tp cluster.TopicPartition, before, after *ISRView, live map[cluster.BrokerID]bool) (ch ISRChange, ok bool) {
	ch = ISRChange{Topic: tp.Topic, Partition: tp.Partition, Before: noView, After: noView}
	if before != nil {
		ch.Before = *before
	}
	if after != nil {
		ch.After = *after
	}
	b, a := &ch.Before, &ch.After
	switch {
	case before == nil && after == nil:
		return ch, false
	case after == nil:
		ch.Event, ch.Why = EventDeleted, "the topic or its state node is gone"
	case before == nil:
		ch.Event, ch.Why = EventCreated, fmt.Sprintf("made with leader %s", leaderName(a.Leader))
	case a.Leader == cluster.NoLeader && b.Leader != cluster.NoLeader:
		ch.Event, ch.Why = EventNoLeader, noLeaderWhy(b, a, live)
	case a.Leader != b.Leader && b.Leader >= 0 && !slices.Contains(b.ISR, a.Leader), a.Leader != b.Leader && a.Recovering && !b.Recovering:
		ch.Event, ch.Why = EventUnclean, fmt.Sprintf("%d was not in the ISR %s: records may be lost", a.Leader, IDList(b.ISR))
	case a.Leader != b.Leader:
		ch.Event, ch.Why = EventElection, electionWhy(b, a, live)
	case !slices.Equal(a.Replicas, b.Replicas) || !slices.Equal(a.Adding, b.Adding) || !slices.Equal(a.Removing, b.Removing):
		ch.Event, ch.Why = EventReassignment, reassignmentWhy(b, a)
	case len(gone(b.ISR, a.ISR)) > 0:
		ch.Event, ch.Why = EventShrink, shrinkWhy(b, a, live)
	case len(gone(a.ISR, b.ISR)) > 0:
		ch.Event, ch.Why = EventGrowth, growthWhy(b, a)
	case a.LeaderEpoch != b.LeaderEpoch:
		ch.Event, ch.Why = EventResent, "the controller decided again: same leader, same ISR"
	case !slices.Equal(a.ISR, b.ISR):
		ch.Event, ch.Why = EventResent, "the ISR was written in another order"
	default:
		return ch, false
	}
	return ch, true
}

func leaderName(b cluster.BrokerID) string {
	if b < 0 {
		return "none"
	}
	return fmt.Sprint(int32(b))
}

// gone lists what of is not in now.
func gone(of, now []cluster.BrokerID) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, b := range of {
		if !slices.Contains(now, b) {
			out = append(out, b)
		}
	}
	return out
}

func dead(ids []cluster.BrokerID, live map[cluster.BrokerID]bool) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, b := range ids {
		if !live[b] {
			out = append(out, b)
		}
	}
	return out
}

func noLeaderWhy(b, a *ISRView, live map[cluster.BrokerID]bool) string {
	if d := dead(a.ISR, live); len(d) == len(a.ISR) && len(d) > 0 {
		return fmt.Sprintf("every member of the ISR %s is dead", IDList(a.ISR))
	} else if len(d) == 0 && len(a.ISR) > 0 {
		return fmt.Sprintf("all of the ISR %s live: the topic is being deleted, or their log directories failed", IDList(a.ISR))
	}
	return fmt.Sprintf("leader %d is gone and nobody of the ISR %s can lead", b.Leader, IDList(a.ISR))
}

func electionWhy(b, a *ISRView, live map[cluster.BrokerID]bool) string {
	switch {
	case b.Leader < 0:
		return fmt.Sprintf("broker %d of the ISR is back", a.Leader)
	case !live[b.Leader]:
		return fmt.Sprintf("leader %d is dead", b.Leader)
	case !slices.Contains(a.Replicas, b.Leader) || slices.Contains(a.Removing, b.Leader):
		return fmt.Sprintf("leader %d is reassigned away", b.Leader)
	case len(a.Replicas) > 0 && a.Leader == a.Replicas[0]:
		return fmt.Sprintf("%d is the preferred leader", a.Leader)
	case !slices.Contains(a.ISR, b.Leader):
		return fmt.Sprintf("leader %d is shutting down or lost its log directory", b.Leader)
	}
	return fmt.Sprintf("leader %d was replaced although it is live: by an operator, or as it shuts down", b.Leader)
}

func reassignmentWhy(b, a *ISRView) string {
	was, is := len(b.Adding)+len(b.Removing) > 0, len(a.Adding)+len(a.Removing) > 0
	switch {
	case is && !was:
		return fmt.Sprintf("begun: adding %s, removing %s", IDList(a.Adding), IDList(a.Removing))
	case was && !is:
		return fmt.Sprintf("ended with replicas %s", IDList(a.Replicas))
	case len(gone(a.Replicas, b.Replicas)) == 0 && len(gone(b.Replicas, a.Replicas)) == 0:
		return "the replicas are in another order"
	}
	return fmt.Sprintf("replicas %s", IDList(a.Replicas))
}

func shrinkWhy(b, a *ISRView, live map[cluster.BrokerID]bool) string {
	left := gone(b.ISR, a.ISR)
	if d := dead(left, live); len(d) > 0 {
		return fmt.Sprintf("%s left the ISR: dead", IDList(d))
	}
	if len(gone(left, a.Replicas)) > 0 {
		return fmt.Sprintf("%s left the ISR: not a replica any more", IDList(left))
	}
	if a.LeaderEpoch != b.LeaderEpoch {
		return fmt.Sprintf("%s left the ISR by decision of the controller", IDList(left))
	}
	return fmt.Sprintf("%s fell behind the leader %s", IDList(left), leaderName(a.Leader))
}

func growthWhy(b, a *ISRView) string {
	return fmt.Sprintf("%s caught up with the leader %s", IDList(gone(a.ISR, b.ISR)), leaderName(a.Leader))
}
