package check

import (
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// Ids of findings on the state znodes of partitions.
const (
	StateMalformed       = "state-malformed"
	StateMissing         = "state-missing"
	StateUnknownFields   = "state-unknown-fields"
	ControllerEpochAhead = "controller-epoch-ahead"
	EpochBehindBroker    = "epoch-behind-broker"
	EmptyISR             = "empty-isr"
	StatesOfNobody       = "partition-not-in-topic"
)

var fromStates = []Source{FromBrokers, FromZooKeeper}

func stateChecks() []Check {
	return []Check{
		{StateMalformed, model.SeverityCritical, "a partition's state znode cannot be decoded", fromStates,
			"The controller cannot read who leads: it will elect nobody for this partition, and a controller that starts now may fail on it.",
			"An edit by hand, or a tool that wrote something else there.",
			"The fix writes what the brokers follow back into the znode. A backup of `kctl leader-and-isr set` can be brought back with `kctl leader-and-isr restore`.", stateMalformed},
		{StateMissing, model.SeverityCritical, "a topic names a partition that has no state znode", fromStates,
			"The controller has not created the partition: it has no leader and never had one. Or the znode was deleted: brokers serve on, but no decision can be written.",
			"Partitions were added or the topic created while no controller acted, or none of its replicas was alive; somebody deleted it.",
			"A new controller creates what is missing: `kctl controller move`. It needs a live replica. Where brokers follow a decision, the fix writes that back with an epoch past theirs: a new controller would begin at 0, which they ignore.", stateMissing},
		{StateUnknownFields, model.SeverityInfo, "a state znode has fields that kctl does not know", fromStates,
			"Nothing is wrong by itself: a newer program wrote it. Older tools may drop the fields; kctl keeps them.",
			"A newer broker version, or a tool of your own.", "None is needed. `kctl leader-and-isr get` names the fields.", stateUnknownFields},
		{ControllerEpochAhead, model.SeverityCritical, "a state znode carries a controller epoch above the real one", fromStates,
			"The controller takes the state for the work of a later controller and will not touch the partition any more.",
			"An edit by hand that guessed the epoch; /controller_epoch was set back.",
			"The fix writes the same decision with the real controller epoch, at the version that was read.", controllerEpochAhead},
		{EpochBehindBroker, model.SeverityCritical, "a broker acts in a newer leader epoch than ZooKeeper knows", append(slices.Clone(fromStates), FromPositions, FromTransitions),
			"ZooKeeper has lost a decision that brokers follow. The next election reuses an epoch, and brokers ignore it.",
			"ZooKeeper was restored from a backup, or lost writes; the state was edited by hand.",
			"The fix writes the same decision with an epoch past the highest that a broker acts in; a new controller then sends it.", epochBehindBroker},
		{EmptyISR, model.SeverityCritical, "a state znode has an empty ISR", fromStates,
			"No replica counts as in sync: the controller can elect nobody without an unclean election.",
			"An edit by hand: brokers never write an empty ISR.", "Name the replica with the longest log (`kctl lag replicas`) as leader and ISR.", emptyISR},
		{StatesOfNobody, model.SeverityWarning, "brokers know a partition that the topic's znode does not name", fromStates,
			"Metadata still has a partition that ZooKeeper's assignment has lost. The next controller will not know it.",
			"The topic's znode was written by a tool from an old copy.", "The fix puts the assignment back that the brokers have.", partitionNotInTopic},
	}
}

// states calls fn for every state node that belongs to a topic.
func (s *scene) states(fn func(n *model.StateNode, tp cluster.TopicPartition)) {
	for i := range s.Tree.States {
		n := &s.Tree.States[i]
		fn(n, cluster.TopicPartition{Topic: n.Topic, Partition: n.Partition})
	}
}

func pathOf(tp cluster.TopicPartition) string {
	return fmt.Sprintf("/brokers/topics/%s/partitions/%d/state", tp.Topic, tp.Partition)
}

func stateMalformed(s *scene, add report) {
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		if !n.Missing && n.Err != "" {
			fix := "kctl zk get " + pathOf(tp)
			if m := s.ofMetadata(tp); len(m.ISR) > 0 {
				fix = s.writeState(n, tp, m)
			}
			add(tp.String(), n.Err, fix)
		}
	})
}

func stateMissing(s *scene, add report) {
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		if !n.Missing {
			return
		}
		fix := "kctl controller move --yes"
		if dead := notIn(n.Replicas, s.live); len(dead) == len(n.Replicas) {
			fix = startBroker(dead...)
		} else if m := s.ofMetadata(tp); m.Leader >= 0 && len(m.ISR) > 0 {
			st := znode.State{LeaderAndISR: pastEpoch(m, m.LeaderEpoch)}
			st.ControllerEpoch = max(s.Tree.ControllerEpoch, 0)
			fix = fmt.Sprintf("kctl zk create %s %s --break-glass --yes   # then kctl controller move --yes", model.ShellWord(pathOf(tp)), model.ShellQuote(string(st.Encode())))
		}
		add(tp.String(), fmt.Sprintf("%s does not exist; replicas %s", pathOf(tp), IDList(n.Replicas)), fix)
	})
}

func stateUnknownFields(s *scene, add report) {
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		if len(n.UnknownFields) > 0 {
			add(tp.String(), "fields "+strings.Join(n.UnknownFields, ", "), "kctl leader-and-isr get "+target(tp)+" -o json")
		}
	})
}

// edited calls fn for every state node that is not what the brokers follow, with the command that writes back what they do. A
// controller reads the node when it next decides, or when it is replaced; until then metadata has nothing wrong.
func (s *scene) edited(fn func(n *model.StateNode, p *model.Partition, fix string)) {
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		p := s.parts[tp]
		if n.Err != "" || n.Missing || p == nil || p.Leader < 0 || !p.InSync(p.Leader) || n.Leader == p.Leader && slices.Equal(n.ISR, p.ISR) {
			return
		}
		want := s.ofMetadata(tp)
		if n.LeaderEpoch <= want.LeaderEpoch {
			fn(n, p, s.writeState(n, tp, want))
			return
		}
		fn(n, p, s.writeState(n, tp, pastEpoch(want, n.LeaderEpoch))+"   # then kctl controller move --yes")
	})
}

func controllerEpochAhead(s *scene, add report) {
	if s.Tree.ControllerEpoch < 0 {
		return
	}
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		if n.Err == "" && n.ControllerEpoch > s.Tree.ControllerEpoch {
			add(tp.String(), fmt.Sprintf("state says controller epoch %d, /controller_epoch is %d", n.ControllerEpoch, s.Tree.ControllerEpoch),
				s.writeState(n, tp, n.LeaderAndISR))
		}
	})
}

// ofMetadata is the decision that the brokers follow.
func (s *scene) ofMetadata(tp cluster.TopicPartition) cluster.LeaderAndISR {
	p := s.parts[tp]
	if p == nil {
		return cluster.LeaderAndISR{Leader: cluster.NoLeader}
	}
	return cluster.LeaderAndISR{Leader: p.Leader, LeaderEpoch: max(p.LeaderEpoch, 0), ISR: p.ISR}
}

// writeState is the command that writes a state node with the present controller epoch, at the version that was read; fields that
// are not known stay. Only a direct write mends what the controller refuses to touch or cannot read.
func (s *scene) writeState(n *model.StateNode, tp cluster.TopicPartition, want cluster.LeaderAndISR) string {
	want.ControllerEpoch = max(s.Tree.ControllerEpoch, 0)
	return writeState(n, tp, want)
}

func writeState(n *model.StateNode, tp cluster.TopicPartition, want cluster.LeaderAndISR) string {
	st, err := znode.DecodeState(tp, n.Raw)
	if err != nil {
		st = znode.State{}
	}
	st.LeaderAndISR = want
	return zkSet(pathOf(tp), st.Encode(), int32(n.ZKVersion))
}

// zkSet is a write of a znode that brokers own, at the version read.
func zkSet(path string, data []byte, version int32) string {
	return fmt.Sprintf("kctl zk set %s %s --if-version %d --break-glass --yes", model.ShellWord(path), model.ShellQuote(string(data)), max(version, 0))
}

func epochBehindBroker(s *scene, add report) {
	ahead := map[cluster.TopicPartition]model.ReplicaPosition{}
	for _, p := range s.Positions {
		tp := cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		if p.Err == "" && p.LeaderEpoch > ahead[tp].LeaderEpoch {
			ahead[tp] = p
		}
	}
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		p, ok := ahead[tp]
		if !ok || n.Err != "" || p.LeaderEpoch <= n.LeaderEpoch {
			return
		}
		if m := s.parts[tp]; m != nil && m.LeaderEpoch >= p.LeaderEpoch && !s.agrees(tp, p.LeaderEpoch) {
			return // an election came between the two readings
		}
		add(tp.String(), fmt.Sprintf("state has leader epoch %d, broker %d acts in %d", n.LeaderEpoch, p.Broker, p.LeaderEpoch),
			s.writeState(n, tp, pastEpoch(n.LeaderAndISR, p.LeaderEpoch))+"   # then kctl controller move --yes")
	})
}

// pastEpoch is the same decision above an epoch that a broker acts in.
func pastEpoch(l cluster.LeaderAndISR, epoch cluster.LeaderEpoch) cluster.LeaderAndISR {
	l.LeaderEpoch = epoch + 1
	return l
}

// agrees reports whether the transition, which is read again and again, also saw the broker ahead.
func (s *scene) agrees(tp cluster.TopicPartition, epoch cluster.LeaderEpoch) bool {
	for i := range s.Transitions {
		t := &s.Transitions[i]
		if t.Topic == tp.Topic && t.Partition == tp.Partition {
			return t.LeaderEpoch < epoch
		}
	}
	return false
}

func emptyISR(s *scene, add report) {
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) {
		if n.Err == "" && len(n.ISR) == 0 && len(n.Replicas) > 0 {
			add(tp.String(), fmt.Sprintf("leader %s, isr none, replicas %s", IDText(n.Leader), IDList(n.Replicas)),
				fmt.Sprintf("kctl leader-and-isr set %s --leader %d --unclean --yes", target(tp), n.Replicas[0]))
		}
	})
}

func partitionNotInTopic(s *scene, add report) {
	known := map[cluster.TopicPartition]bool{}
	bad := map[string]bool{}
	for i := range s.Tree.Topics {
		t := &s.Tree.Topics[i]
		bad[t.Name] = t.Err != ""
		for j := range t.Partitions {
			known[t.Partitions[j].TP()] = true
		}
	}
	s.partitions(func(p *model.Partition) {
		_, has := s.Tree.TopicNodes[p.Topic]
		if has && !bad[p.Topic] && !known[p.TP()] {
			add(p.TP().String(), fmt.Sprintf("Metadata has it with replicas %s, /brokers/topics/%s does not", IDList(p.Replicas), p.Topic),
				s.writeTopic(p.Topic))
		}
	})
}
