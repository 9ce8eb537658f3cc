package controller

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// LeaderAndISRRequested is an operator's wish for the leader and the ISR of partitions, each conditional on the
// stored leader epoch and znode version. Request is the ElectLeaders request that carried Changes; it is
// answered by one Reply as soon as the decisions are durable in ZooKeeper. They are published, tracked and fenced like
// any other decision.
type LeaderAndISRRequested struct {
	At        time.Time
	RequestID uint64
	Request   *kmsg.ElectLeadersRequest
	Changes   []cluster.LeaderChange
}

func (e LeaderAndISRRequested) at() time.Time { return e.At }

// setAnswer is what one partition is answered: a code with a sentence, and the decision in force.
type setAnswer struct {
	code    int16
	message string
}

// setLeaderAndISR decides partitions as an operator asks, or says why not. The states are read first, so that the
// checks are about what is stored; a leader that changes its ISR meanwhile makes them be made again.
func (c *Controller) setLeaderAndISR(ev LeaderAndISRRequested, done func()) {
	answers := make(map[cluster.TopicPartition]setAnswer, len(ev.Changes))
	wanted := make(map[*partition]*cluster.LeaderChange, len(ev.Changes))
	var ps []*partition
	for i := range ev.Changes {
		w := &ev.Changes[i]
		p := c.partition(w.TopicPartition)
		switch {
		case p == nil:
			answers[w.TopicPartition] = setAnswer{codeUnknownTopicOrPartition, "the controller does not know the partition"}
		case p.topic.deleting:
			answers[w.TopicPartition] = setAnswer{codeInvalidTopic, "the topic is being deleted"}
		case wanted[p] != nil:
			answers[w.TopicPartition] = setAnswer{codeInvalidRequest, "the partition is named twice"}
		default:
			wanted[p] = w
			ps = append(ps, p)
		}
	}
	ps = slices.DeleteFunc(ps, func(p *partition) bool { return answers[p.tp()].code != codeNone })
	strategy := func(p *partition, cur cluster.LeaderAndISR, _ uncleanRule) choice {
		ch, refusal := c.changeAsked(p, cur, wanted[p])
		answers[p.tp()] = refusal
		return ch
	}
	c.decide(ps, "operator", strategy, func(outcomes map[*partition]outcome) {
		for _, p := range ps {
			if code := electionCode(outcomes[p], answers[p.tp()].code); code != answers[p.tp()].code {
				answers[p.tp()] = setAnswer{code: code}
			}
		}
		if n := count(outcomes, outcomeChanged); n > 0 {
			c.note(NoteElections, n, "operator")
		}
		c.reply(ev.RequestID, c.setResponse(ev.Request, ev.Changes, answers))
		done()
	})
}

// changeAsked checks one wish against the stored decision and makes the next one. The ISR may lose members, and
// gains none: that a replica is in sync is for the leader to say. Only an unclean change lets a leader in from
// outside, and then it is alone. p.version is that of cur.
func (c *Controller) changeAsked(p *partition, cur cluster.LeaderAndISR, w *cluster.LeaderChange) (choice, setAnswer) {
	refuse := func(code int16, format string, args ...any) (choice, setAnswer) {
		return choice{verdict: noCandidate}, setAnswer{code, fmt.Sprintf(format, args...)}
	}
	leader := w.Leader
	if leader == cluster.KeepLeader {
		leader = cur.Leader
	}
	inSync := c.trusted(p, cur.ISR)
	isr := w.ISR
	if isr == nil {
		isr = filter(inSync, func(b cluster.BrokerID) bool { return c.alive(b, p) })
	}
	outside := !slices.Contains(inSync, leader)
	if outside && w.ISR == nil {
		isr = []cluster.BrokerID{leader}
	}
	switch {
	case w.ExpectVersion != cluster.AnyVersion && w.ExpectVersion != p.version:
		return refuse(codeInvalidUpdateVersion, "the state znode has version %d, not %d", p.version, w.ExpectVersion)
	case w.ExpectEpoch != cluster.NoLeaderEpoch && w.ExpectEpoch != cur.LeaderEpoch:
		return refuse(codeFencedLeaderEpoch, "the leader epoch is %d, not %d", cur.LeaderEpoch, w.ExpectEpoch)
	case cur.LeaderEpoch == math.MaxInt32:
		return refuse(codeInvalidRequest, "the leader epoch %d cannot rise", cur.LeaderEpoch)
	case p.replicaIndex(leader) < 0:
		return refuse(codeInvalidReplicaAssignment, "leader %d is not one of the replicas %v", leader, p.assignment.Replicas)
	case !c.live(leader, p):
		return refuse(codeBrokerNotAvailable, "leader %d is not live, is stopping, or its log directory is offline", leader)
	case len(isr) == 0 || !slices.Contains(isr, leader):
		return refuse(codeInvalidRequest, "the ISR %v must hold the leader %d", isr, leader)
	case !subset(isr, p.assignment.Replicas):
		return refuse(codeInvalidReplicaAssignment, "the ISR %v is not a part of the replicas %v", isr, p.assignment.Replicas)
	case outside && !w.Unclean:
		return refuse(codeIneligibleReplica, "leader %d is outside the ISR %v: records would be lost", leader, inSync)
	case outside && len(isr) > 1:
		return refuse(codeInvalidRequest, "a leader from outside the ISR is alone in the new one, not in %v", isr)
	case outside:
		ch := changeTo(cluster.LeaderAndISR{Leader: leader, ISR: isr, Recovering: true})
		ch.unclean = true
		return ch, setAnswer{}
	}
	for _, b := range isr {
		if !slices.Contains(inSync, b) {
			return refuse(codeIneligibleReplica, "replica %d is not in the ISR %v; its leader adds it as soon as it has caught up", b, inSync)
		}
		if !c.alive(b, p) {
			return refuse(codeBrokerNotAvailable, "replica %d is not live, or its log directory is offline", b)
		}
	}
	if leader == cur.Leader && slices.Equal(isr, cur.ISR) {
		return choice{verdict: notNeeded}, setAnswer{code: codeElectionNotNeeded}
	}
	return changeTo(cluster.LeaderAndISR{Leader: leader, ISR: isr, Recovering: cur.Recovering}), setAnswer{}
}

// trusted is the ISR without members whose machine crashed after the state was written, as long as others are left.
func (c *Controller) trusted(p *partition, isr []cluster.BrokerID) []cluster.BrokerID {
	out := filter(isr, func(b cluster.BrokerID) bool { return !c.doubtful(p, b) })
	if len(out) == 0 {
		return isr
	}
	return out
}

// setResponse lists the answers in the order of the changes, with the decision in force of each partition that is known.
func (c *Controller) setResponse(req *kmsg.ElectLeadersRequest, changes []cluster.LeaderChange, answers map[cluster.TopicPartition]setAnswer) *kmsg.ElectLeadersResponse {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	for i := range changes {
		tp := changes[i].TopicPartition
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != tp.Topic {
			resp.Topics = append(resp.Topics, kmsg.ElectLeadersResponseTopic{Topic: tp.Topic})
		}
		a := answers[tp]
		part := kmsg.ElectLeadersResponseTopicPartition{Partition: tp.Partition, ErrorCode: a.code}
		if a.code != codeNone {
			if a.message == "" {
				a.message = codeName(a.code)
			}
			part.ErrorMessage = &a.message
		}
		if p := c.partition(tp); p != nil && p.known {
			part.UnknownTags.Set(cluster.LeaderChangeTag, cluster.LeaderChanged{
				Leader: p.li.Leader, LeaderEpoch: p.li.LeaderEpoch, ControllerEpoch: p.li.ControllerEpoch, ZKVersion: p.version, ISR: p.li.ISR,
			}.Encode())
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, part)
	}
	return resp
}
