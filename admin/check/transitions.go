package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// TransitionContext is what Transition needs to know of the cluster around an observation.
// OlderThan is the age from which an unfinished decision counts as stuck.
type TransitionContext struct {
	Live            map[cluster.BrokerID]bool
	ControllerEpoch cluster.ControllerEpoch // of /controller_epoch; -1 when not known
	OlderThan       time.Duration
}

// Transition judges one decision: done when the decided leader acts in the decided epoch and every live
// in-sync follower has followed it, else pending, or stuck once it is older than OlderThan. A decision of
// unknown age is pending (the caller asks again and measures). A controller's own alert counts as stuck as
// long as the state node still holds the decision it speaks of and the leader has not confirmed it.
func Transition(o model.Observation, tc TransitionContext) model.Transition {
	t := model.Transition{
		Topic: o.State.Topic, Partition: o.State.Partition, State: model.TransitionDone,
		DecidedAt: o.State.Mtime, Age: o.Age, Leader: o.State.Leader, LeaderEpoch: o.State.LeaderEpoch,
		ControllerEpoch: o.State.ControllerEpoch,
	}
	waiting, reason := unfinished(o, tc)
	if reason == "" {
		return t
	}
	t.State, t.WaitingFor, t.Reason = model.TransitionPending, waiting, reason
	if o.Age >= tc.OlderThan || o.Alert != nil {
		t.State = model.TransitionStuck
	}
	if unknownToController(o) {
		t.Reason += fmt.Sprintf("; the controller does not know of epoch %d (the brokers' metadata has %d)", o.State.LeaderEpoch, o.MetadataEpoch)
	}
	if o.Alert != nil && o.Alert.Reason != "" {
		t.Reason += "; the controller's alert: " + o.Alert.Reason
	}
	t.Fix = transitionFix(o, tc, waiting)
	t.LeaderSilent = leaderSilent(o, tc)
	return t
}

// leaderSilent reports whether the silence of a registered leader is all that is known against a decision. The controller's alert
// on it, an epoch that no broker was told of, or one that the controller will not touch stay when the leader is back.
func leaderSilent(o model.Observation, tc TransitionContext) bool {
	ahead := tc.ControllerEpoch >= 0 && o.State.ControllerEpoch > tc.ControllerEpoch
	return o.LeaderAnswer == model.AnswerUnreachable && o.Alert == nil && !ahead && !unknownToController(o)
}

// unfinished names the brokers a decision waits for and why; an empty reason means that it is done.
func unfinished(o model.Observation, tc TransitionContext) ([]cluster.BrokerID, string) {
	s := &o.State
	if s.Missing {
		return notIn(s.Replicas, tc.Live), "no state node: the controller has not created the partition"
	}
	if s.Leader < 0 {
		// No leader was chosen: nothing is being carried out. Health reports the partition as offline.
		return nil, ""
	}
	leader := []cluster.BrokerID{s.Leader}
	if tc.ControllerEpoch >= 0 && s.ControllerEpoch > tc.ControllerEpoch {
		return leader, fmt.Sprintf("the state node carries controller epoch %d, above the real one (%d): the controller will not touch it",
			s.ControllerEpoch, tc.ControllerEpoch)
	}
	switch o.LeaderAnswer {
	case model.AnswerNotRegistered:
		return leader, fmt.Sprintf("leader %d is not registered", s.Leader)
	case model.AnswerNotLeader:
		return leader, fmt.Sprintf("broker %d does not act as leader of epoch %d", s.Leader, s.LeaderEpoch)
	case model.AnswerBehind:
		return leader, fmt.Sprintf("broker %d has not applied epoch %d", s.Leader, s.LeaderEpoch)
	case model.AnswerNotHosted:
		return leader, fmt.Sprintf("broker %d does not host the partition", s.Leader)
	case model.AnswerStorageError:
		return leader, fmt.Sprintf("broker %d cannot use the log directory of the partition", s.Leader)
	case model.AnswerUnreachable:
		return leader, fmt.Sprintf("leader %d does not answer: %s", s.Leader, o.Detail)
	case model.AnswerOther:
		return leader, fmt.Sprintf("leader %d answers: %s", s.Leader, o.Detail)
	case model.AnswerAhead:
		return leader, fmt.Sprintf("broker %d acts in a newer epoch than %d: ZooKeeper lost a write, or was read from a lagging server", s.Leader, s.LeaderEpoch)
	case model.AnswerNone:
		return nil, ""
	}
	return followersBehind(o, tc)
}

func followersBehind(o model.Observation, tc TransitionContext) ([]cluster.BrokerID, string) {
	var behind []cluster.BrokerID
	var parts []string
	for _, id := range o.State.Replicas {
		epoch, asked := o.FollowerEpoch[id]
		if id == o.State.Leader || !asked || !tc.Live[id] || epoch < 0 || epoch >= o.State.LeaderEpoch {
			continue
		}
		behind = append(behind, id)
		parts = append(parts, fmt.Sprintf("%d (epoch %d)", id, epoch))
	}
	if len(behind) == 0 {
		return nil, ""
	}
	return behind, fmt.Sprintf("the leader acts in epoch %d, but follower %s does not yet", o.State.LeaderEpoch, strings.Join(parts, ", "))
}

// unknownToController: a controller sends metadata together with its decision, so a state node that is ahead of
// all metadata was written by somebody else, or by a controller that is gone.
func unknownToController(o model.Observation) bool {
	return o.MetadataEpoch >= 0 && o.MetadataEpoch < o.State.LeaderEpoch
}

// transitionFix names one command or action that frees the decision.
func transitionFix(o model.Observation, tc TransitionContext, waiting []cluster.BrokerID) string {
	s := &o.State
	switch {
	case s.Missing && len(waiting) == 0:
		return "kctl controller move --yes"
	case s.Missing:
		return "start broker " + IDList(waiting)
	case o.LeaderAnswer == model.AnswerNotRegistered:
		return fmt.Sprintf("start broker %d", s.Leader)
	case o.LeaderAnswer == model.AnswerUnreachable:
		return fmt.Sprintf("restart broker %d or repair its network", s.Leader)
	case o.LeaderAnswer == model.AnswerStorageError:
		return fmt.Sprintf("replace the disk of broker %d, then restart it", s.Leader)
	case tc.ControllerEpoch >= 0 && s.ControllerEpoch > tc.ControllerEpoch:
		want := s.LeaderAndISR
		want.ControllerEpoch = tc.ControllerEpoch
		return writeState(s, cluster.TopicPartition{Topic: s.Topic, Partition: s.Partition}, want)
	case unknownToController(o):
		return "kctl controller move --yes"
	case canElectPreferred(s, tc):
		return fmt.Sprintf("kctl elect preferred %s:%d --yes", s.Topic, s.Partition)
	case len(waiting) > 0:
		return "restart broker " + IDList(waiting)
	}
	return "ask again in a few seconds"
}

// canElectPreferred: an election makes a new epoch, and a new epoch is never ignored by brokers.
func canElectPreferred(s *model.StateNode, tc TransitionContext) bool {
	return len(s.Replicas) > 0 && s.Replicas[0] != s.Leader && tc.Live[s.Replicas[0]] && slices.Contains(s.ISR, s.Replicas[0])
}
