package plan

import (
	"fmt"
	"math"
	"slices"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// LeaderAndISRWish is what an operator asks for one partition.
type LeaderAndISRWish struct {
	Leader    cluster.BrokerID   // cluster.KeepLeader: as it is
	ISR       []cluster.BrokerID // nil: as it is, without dead members
	IfVersion cluster.ZKVersion  // only at this version of the state znode; cluster.AnyVersion: any
	Unclean   bool               // a leader from outside the ISR: records may be lost
}

// LeaderAndISRFacts is what is known of the partition. State.ZKVersion is cluster.AnyVersion and ControllerEpoch is -1 when
// ZooKeeper was not read.
type LeaderAndISRFacts struct {
	State           model.StateNode
	Live            map[cluster.BrokerID]bool
	MinISR          int // effective min.insync.replicas; 0: not known
	Deleting        bool
	Reassigning     bool // replicas are being added or removed
	ControllerEpoch cluster.ControllerEpoch
}

// LeaderAndISRPlan is the decision that grants a wish.
type LeaderAndISRPlan struct {
	Change   bool // false: in force already
	Next     cluster.LeaderAndISR
	Unclean  bool     // the leader comes from outside the ISR
	Warnings []string // what the operator should know before saying yes
}

// LeaderAndISRRefusal says why a wish is not granted. Conflict means that the partition is not as the wish
// supposes, or not in a state that can be changed now; otherwise the wish itself is wrong.
type LeaderAndISRRefusal struct {
	Msg, Hint string
	Conflict  bool
}

// Error returns the reason; the hint is shown apart.
func (r *LeaderAndISRRefusal) Error() string { return r.Msg }

// LeaderAndISR decides whether and how a wish is granted. Whatever the facts, a granted plan has a leader that is
// a live, assigned replica and a member of the ISR; an ISR of assigned replicas without doubles that was in sync before;
// and the next leader epoch. Only an unclean wish takes a leader from outside, and then it is alone in the ISR,
// in recovery (KIP-704). That a replica is in sync is for its leader to find out, so that an ISR never grows here.
func LeaderAndISR(f LeaderAndISRFacts, w LeaderAndISRWish) (LeaderAndISRPlan, error) {
	if err := changeable(f, w); err != nil {
		return LeaderAndISRPlan{}, err
	}
	cur := f.State.LeaderAndISR
	leader := w.Leader
	if leader == cluster.KeepLeader {
		leader = cur.Leader
	}
	if err := canLead(f, leader); err != nil {
		return LeaderAndISRPlan{}, err
	}
	p := LeaderAndISRPlan{Next: cur.Clone(), Unclean: !slices.Contains(cur.ISR, leader)}
	isr := w.ISR
	switch {
	case isr != nil:
	case p.Unclean:
		isr = []cluster.BrokerID{leader}
	default:
		isr = slices.DeleteFunc(slices.Clone(cur.ISR), func(b cluster.BrokerID) bool { return !f.Live[b] })
	}
	if err := inSync(f, w, leader, isr); err != nil {
		return LeaderAndISRPlan{}, err
	}
	p.Change = leader != cur.Leader || !slices.Equal(isr, cur.ISR)
	p.Next.Leader, p.Next.ISR = leader, slices.Clone(isr)
	p.Next.Recovering = cur.Recovering || p.Unclean
	if p.Change {
		p.Next.LeaderEpoch++
	}
	p.Warnings = warnings(f, p)
	return p, nil
}

// changeable checks the partition itself.
func changeable(f LeaderAndISRFacts, w LeaderAndISRWish) error {
	s := &f.State
	name := fmt.Sprintf("%s:%d", s.Topic, s.Partition)
	switch {
	case f.Deleting:
		return &LeaderAndISRRefusal{Msg: "topic " + s.Topic + " is being deleted", Conflict: true}
	case s.Missing:
		return &LeaderAndISRRefusal{Msg: name + " has no state node: the controller has not created the partition", Hint: "kctl controller describe shows whether there is a controller", Conflict: true}
	case s.Err != "":
		return &LeaderAndISRRefusal{Msg: name + ": " + s.Err, Conflict: true}
	case w.IfVersion != cluster.AnyVersion && s.ZKVersion >= 0 && w.IfVersion != s.ZKVersion:
		return &LeaderAndISRRefusal{
			Msg:  fmt.Sprintf("the state znode of %s has version %d, not %d", name, s.ZKVersion, w.IfVersion),
			Hint: fmt.Sprintf("kctl leader-and-isr get %s shows what it is now", name), Conflict: true,
		}
	case f.ControllerEpoch >= 0 && s.ControllerEpoch > f.ControllerEpoch:
		return &LeaderAndISRRefusal{
			Msg:  fmt.Sprintf("%s was written by controller epoch %d, above the present one, %d: the controller refuses to touch it", name, s.ControllerEpoch, f.ControllerEpoch),
			Hint: "kctl controller move until the epoch is past it", Conflict: true,
		}
	case s.LeaderEpoch == math.MaxInt32:
		return &LeaderAndISRRefusal{Msg: fmt.Sprintf("the leader epoch of %s, %d, cannot rise", name, s.LeaderEpoch), Conflict: true}
	}
	return nil
}

func canLead(f LeaderAndISRFacts, leader cluster.BrokerID) error {
	s := &f.State
	switch {
	case leader < 0:
		return &LeaderAndISRRefusal{Msg: fmt.Sprintf("%s:%d has no leader", s.Topic, s.Partition), Hint: "name one with --leader ID"}
	case !slices.Contains(s.Replicas, leader):
		return &LeaderAndISRRefusal{Msg: fmt.Sprintf("broker %d is not one of the replicas %s", leader, idList(s.Replicas)), Hint: "kctl reassign moves replicas"}
	case !f.Live[leader]:
		return &LeaderAndISRRefusal{Msg: fmt.Sprintf("broker %d is not live: it cannot lead", leader), Hint: "kctl brokers list shows who is"}
	}
	return nil
}

// inSync checks the new ISR against the old one.
func inSync(f LeaderAndISRFacts, w LeaderAndISRWish, leader cluster.BrokerID, isr []cluster.BrokerID) error {
	s := &f.State
	for i, b := range isr {
		switch {
		case slices.Contains(isr[:i], b):
			return &LeaderAndISRRefusal{Msg: fmt.Sprintf("the ISR %s names broker %d twice", idList(isr), b)}
		case !slices.Contains(s.Replicas, b):
			return &LeaderAndISRRefusal{Msg: fmt.Sprintf("broker %d of the ISR is not one of the replicas %s", b, idList(s.Replicas))}
		}
	}
	outside := !slices.Contains(s.ISR, leader)
	switch {
	case len(isr) == 0:
		return &LeaderAndISRRefusal{Msg: "the ISR would be empty", Hint: "an ISR holds at least the leader"}
	case !slices.Contains(isr, leader):
		return &LeaderAndISRRefusal{Msg: fmt.Sprintf("the ISR %s does not hold the leader %d", idList(isr), leader)}
	case outside && !w.Unclean:
		return &LeaderAndISRRefusal{
			Msg:  fmt.Sprintf("broker %d is outside the ISR %s: records that it has not fetched would be lost", leader, idList(s.ISR)),
			Hint: "--unclean accepts the loss; kctl lag replicas shows how much it would be",
		}
	case outside && len(isr) > 1:
		return &LeaderAndISRRefusal{Msg: fmt.Sprintf("a leader from outside the ISR is alone in the new one, not in %s", idList(isr)), Hint: "leave --isr out: the others join when they have caught up"}
	case outside:
		return nil
	}
	for _, b := range isr {
		switch {
		case !slices.Contains(s.ISR, b):
			return &LeaderAndISRRefusal{
				Msg:  fmt.Sprintf("broker %d is not in the ISR %s, and nobody but its leader can know that it has caught up", b, idList(s.ISR)),
				Hint: "kctl lag replicas shows what it lacks; the leader adds it by itself",
			}
		case !f.Live[b]:
			return &LeaderAndISRRefusal{Msg: fmt.Sprintf("broker %d of the ISR is not live", b)}
		}
	}
	return nil
}

func warnings(f LeaderAndISRFacts, p LeaderAndISRPlan) []string {
	var out []string
	if p.Unclean {
		out = append(out, fmt.Sprintf("unclean: records that broker %d has not fetched are lost for good", p.Next.Leader))
	}
	if p.Change && f.MinISR > 0 && len(p.Next.ISR) < f.MinISR {
		out = append(out, fmt.Sprintf("the ISR %s is below min.insync.replicas=%d: producers with acks=all are refused until it grows", idList(p.Next.ISR), f.MinISR))
	}
	for _, b := range f.State.ISR {
		if p.Change && f.Live[b] && !slices.Contains(p.Next.ISR, b) && !p.Unclean {
			out = append(out, fmt.Sprintf("broker %d leaves the ISR; the leader lets it in again as soon as it has caught up", b))
		}
	}
	return out
}

func idList(ids []cluster.BrokerID) string {
	s := ""
	for i, b := range ids {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprint(int32(b))
	}
	if s == "" {
		return "(empty)"
	}
	return s
}

// RestoreLeaderAndISR is the wish that comes nearest to an earlier decision: its leader, if that one can still lead, and
// of its ISR the members that are in sync and live now. What cannot be had is named; members of the ISR that are
// missing join by themselves when they have caught up.
func RestoreLeaderAndISR(f LeaderAndISRFacts, earlier cluster.LeaderAndISR, unclean bool) (w LeaderAndISRWish, missing []string) {
	w = LeaderAndISRWish{Leader: earlier.Leader, IfVersion: cluster.AnyVersion, Unclean: unclean}
	now := &f.State
	if earlier.Leader < 0 {
		w.Leader = cluster.KeepLeader
		missing = append(missing, "the backup has no leader: the present one stays")
	}
	for _, b := range earlier.ISR {
		switch {
		case !slices.Contains(now.Replicas, b):
			missing = append(missing, fmt.Sprintf("broker %d is not a replica any more", b))
		case !f.Live[b]:
			missing = append(missing, fmt.Sprintf("broker %d is not live", b))
		case !slices.Contains(now.ISR, b):
			missing = append(missing, fmt.Sprintf("broker %d is not in sync now; its leader lets it in again", b))
		case !slices.Contains(w.ISR, b):
			w.ISR = append(w.ISR, b)
		}
	}
	leader := w.Leader
	if leader == cluster.KeepLeader {
		leader = now.Leader
	}
	if !slices.Contains(w.ISR, leader) {
		w.ISR = nil // the leader's own checks decide
	}
	return w, missing
}
