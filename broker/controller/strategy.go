package controller

import (
	"slices"

	"kctl/zkutil/cluster"
)

// verdict is what a strategy makes of one partition's present decision.
type verdict uint8

const (
	keep        verdict = iota // nothing to change
	change                     // write next
	noCandidate                // the wanted leader is not eligible; nothing to change
	notNeeded                  // the wanted leader leads already
	askUnclean                 // nobody of the ISR is alive: whether others may lead depends on the topic's config
)

// choice is a strategy's answer. next is set for change; its epochs are filled in by the caller.
type choice struct {
	verdict verdict
	next    cluster.LeaderAndISR
	unclean bool
}

// uncleanRule says what a strategy may do when nobody of the ISR is alive.
type uncleanRule uint8

const (
	uncleanUnknown uncleanRule = iota
	uncleanForbidden
	uncleanAllowed
)

// strategy decides one partition from its present decision; it changes nothing (KAFKA_FACTS 2.4).
type strategy func(p *partition, cur cluster.LeaderAndISR, unclean uncleanRule) choice

// doubtful: the broker's machine crashed after the partition's state was written last (its data epoch is newer; zxids
// order both), so that records which it was in sync with, but had not flushed, may be gone. A broker that stopped in
// order, or whose process or session alone ended, has lost nothing and keeps its data epoch.
func (c *Controller) doubtful(p *partition, b cluster.BrokerID) bool {
	br := c.brokers[b]
	return br != nil && int64(br.info.DataEpoch) > p.mzxid
}

// repairStrategy is the offline election together with the removal of dead replicas from the ISR, so that
// a broker's death costs one write per partition: a live leader stays and loses dead ISR members; a dead
// one is replaced by the first assigned replica that is alive and in the ISR; with nobody left the
// partition has no leader and the ISR stays as it was, since each of its members holds every committed
// record (V3 points A.5, A.6, A.7).
//
// Doubtful members leave the ISR as long as it has others, alive or not, for the others hold every record (KIP-903,
// KAFKA-14139). A doubtful leader never keeps its epoch, or followers with longer logs of that epoch would not see
// that they diverge.
func (c *Controller) repairStrategy(p *partition, cur cluster.LeaderAndISR, unclean uncleanRule) choice {
	return c.repairDecision(p, cur, unclean, c.doubtful)
}

// repairAfter is repairStrategy for brokers that have just been found dead; crashed are those of them that are back
// already with another data epoch.
func (c *Controller) repairAfter(crashed []cluster.BrokerID) strategy {
	return func(p *partition, cur cluster.LeaderAndISR, unclean uncleanRule) choice {
		return c.repairDecision(p, cur, unclean, func(p *partition, b cluster.BrokerID) bool {
			return slices.Contains(crashed, b) || c.doubtful(p, b)
		})
	}
}

func (c *Controller) repairDecision(p *partition, cur cluster.LeaderAndISR, unclean uncleanRule, doubtful func(*partition, cluster.BrokerID) bool) choice {
	isr := filter(cur.ISR, func(b cluster.BrokerID) bool { return !doubtful(p, b) })
	if len(isr) == 0 {
		isr = cur.ISR
	}
	aliveISR := filter(isr, func(b cluster.BrokerID) bool { return c.alive(b, p) })
	leader := cur.Leader
	if leader < 0 || !c.alive(leader, p) || !slices.Contains(isr, leader) {
		leader = c.firstEligible(p, isr)
	}
	if leader >= 0 {
		if leader == cur.Leader && len(aliveISR) == len(cur.ISR) && !doubtful(p, leader) {
			return choice{verdict: keep}
		}
		// An unclean leader stays in recovery until it says otherwise; a clean change keeps that.
		return changeTo(cluster.LeaderAndISR{Leader: leader, ISR: aliveISR, Recovering: cur.Recovering})
	}
	return c.withoutISR(p, cur, isr, unclean)
}

// wantsRepair: the partition has no leader, or its ISR names somebody who is dead or doubtful.
func (c *Controller) wantsRepair(p *partition) bool {
	return p.state != partitionOnline || slices.ContainsFunc(p.li.ISR, func(b cluster.BrokerID) bool {
		return !c.alive(b, p) || c.doubtful(p, b)
	})
}

// withoutISR handles a partition none of whose ISR members is alive; isr is what remains of its ISR.
func (c *Controller) withoutISR(p *partition, cur cluster.LeaderAndISR, isr []cluster.BrokerID, unclean uncleanRule) choice {
	candidate := cluster.NoLeader
	for _, b := range p.assignment.Replicas {
		if c.live(b, p) {
			candidate = b
			break
		}
	}
	switch {
	case candidate >= 0 && unclean == uncleanUnknown:
		return choice{verdict: askUnclean}
	case candidate >= 0 && unclean == uncleanAllowed:
		ch := changeTo(cluster.LeaderAndISR{Leader: candidate, ISR: []cluster.BrokerID{candidate}, Recovering: true})
		ch.unclean = true
		return ch
	case cur.Leader == cluster.NoLeader && len(isr) == len(cur.ISR):
		return choice{verdict: noCandidate}
	}
	return changeTo(cluster.LeaderAndISR{Leader: cluster.NoLeader, ISR: isr, Recovering: cur.Recovering})
}

// firstEligible is the first assigned replica that is in the ISR and live; one that is shutting down is
// better than none.
func (c *Controller) firstEligible(p *partition, isr []cluster.BrokerID) cluster.BrokerID {
	return c.firstEligibleOf(p.assignment.Replicas, p, isr)
}

// firstEligibleOf is firstEligible for another list than the assigned replicas.
func (c *Controller) firstEligibleOf(replicas []cluster.BrokerID, p *partition, isr []cluster.BrokerID) cluster.BrokerID {
	for _, fit := range []func(cluster.BrokerID, *partition) bool{c.live, c.alive} {
		for _, b := range replicas {
			if fit(b, p) && slices.Contains(isr, b) {
				return b
			}
		}
	}
	return cluster.NoLeader
}

// preferredStrategy makes the first assigned replica lead, if it is live and in the ISR (V3 point 1.4).
func (c *Controller) preferredStrategy(p *partition, cur cluster.LeaderAndISR, _ uncleanRule) choice {
	want := p.assignment.Replicas[0]
	switch {
	case cur.Leader == want:
		return choice{verdict: notNeeded}
	case !c.live(want, p) || !slices.Contains(cur.ISR, want):
		return choice{verdict: noCandidate}
	}
	return changeTo(cluster.LeaderAndISR{Leader: want, ISR: cur.ISR, Recovering: cur.Recovering})
}

// uncleanStrategy is the election that an admin asked for with ElectLeaders(UNCLEAN): only for partitions
// without a live leader, whatever the topic's config says.
func (c *Controller) uncleanStrategy(p *partition, cur cluster.LeaderAndISR, _ uncleanRule) choice {
	if cur.Leader >= 0 && c.alive(cur.Leader, p) {
		return choice{verdict: notNeeded}
	}
	ch := c.repairStrategy(p, cur, uncleanAllowed)
	if ch.verdict == change && ch.next.Leader == cluster.NoLeader {
		return choice{verdict: noCandidate}
	}
	return ch
}

// shutdownStrategy takes leadership and ISR membership away from a broker that wants to stop (KAFKA_FACTS
// 2.11). The last ISR member stays one; a leader nobody can replace stays leader.
func (c *Controller) shutdownStrategy(stopping cluster.BrokerID) strategy {
	return func(p *partition, cur cluster.LeaderAndISR, _ uncleanRule) choice {
		if cur.Leader != stopping {
			return removeFromISR(cur, stopping)
		}
		for _, b := range p.assignment.Replicas {
			if c.live(b, p) && slices.Contains(cur.ISR, b) {
				isr := filter(cur.ISR, func(b cluster.BrokerID) bool {
					br := c.brokers[b]
					return br == nil || !br.shuttingDown
				})
				return changeTo(cluster.LeaderAndISR{Leader: b, ISR: isr, Recovering: cur.Recovering})
			}
		}
		return choice{verdict: noCandidate}
	}
}

func removeFromISR(cur cluster.LeaderAndISR, gone cluster.BrokerID) choice {
	if len(cur.ISR) <= 1 || !slices.Contains(cur.ISR, gone) {
		return choice{verdict: keep}
	}
	isr := filter(cur.ISR, func(b cluster.BrokerID) bool { return b != gone })
	return changeTo(cluster.LeaderAndISR{Leader: cur.Leader, ISR: isr, Recovering: cur.Recovering})
}

// deleteStrategy takes the leader away from a partition of a topic that is being deleted: from then on no
// leader can change its ISR.
func deleteStrategy(_ *partition, cur cluster.LeaderAndISR, _ uncleanRule) choice {
	if cur.Leader == cluster.NoLeader {
		return choice{verdict: keep}
	}
	return changeTo(cluster.LeaderAndISR{Leader: cluster.NoLeader, ISR: cur.ISR, Recovering: cur.Recovering})
}

func changeTo(next cluster.LeaderAndISR) choice { return choice{verdict: change, next: next} }

func filter(ids []cluster.BrokerID, keep func(cluster.BrokerID) bool) []cluster.BrokerID {
	out := make([]cluster.BrokerID, 0, len(ids))
	for _, b := range ids {
		if keep(b) {
			out = append(out, b)
		}
	}
	return out
}
