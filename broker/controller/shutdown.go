package controller

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// handoverWait bounds how long the answer to a ControlledShutdown waits for the new leaders.
const handoverWait = 5 * time.Second

// handover is the answer to a ControlledShutdown that waits until the new leaders have taken over. Apache
// Kafka answers as soon as the elections are written, and the broker may be gone before anybody leads
// (KAFKA-6029).
type handover struct {
	broker    cluster.BrokerID
	requestID uint64
	request   kmsg.Request
	resp      *kmsg.ControlledShutdownResponse
	moved     map[*partition]cluster.LeaderEpoch // not yet confirmed by their leaders
}

// controlledShutdown moves leaderships away from a broker that wants to stop and takes it out of ISRs
// (KAFKA_FACTS 2.11). The answer names the partitions it still leads; it asks again until there are none.
func (c *Controller) controlledShutdown(ev ControlledShutdownRequested, done func()) {
	resp := ev.Request.ResponseKind().(*kmsg.ControlledShutdownResponse)
	id := cluster.BrokerID(ev.Request.BrokerID)
	b := c.brokers[id]
	switch {
	case b == nil:
		resp.ErrorCode = codeBrokerNotAvailable
	case ev.Request.Version >= 2 && ev.Request.BrokerEpoch >= 0 && cluster.BrokerEpoch(ev.Request.BrokerEpoch) < b.info.Epoch:
		resp.ErrorCode = codeStaleBrokerEpoch
	}
	if resp.ErrorCode != codeNone {
		c.reply(ev.RequestID, resp)
		done()
		return
	}
	if !b.shuttingDown {
		b.shuttingDown = true
		c.emit(Note{Kind: NoteBrokerStopping, Broker: id})
	}
	ps := c.collect(func(p *partition) bool {
		return p.known && len(p.assignment.Replicas) > 1 && p.li.Leader != cluster.NoLeader && p.replicaIndex(id) >= 0
	})
	c.decide(ps, "controlled-shutdown", c.shutdownStrategy(id), func(map[*partition]outcome) {
		for _, p := range ps {
			if p.li.Leader == id {
				resp.PartitionsRemaining = append(resp.PartitionsRemaining,
					kmsg.ControlledShutdownResponsePartitionsRemaining{Topic: p.topic.name, Partition: p.num})
			} else {
				// Also where it led until now: as a follower it would catch up and be taken into the ISR again.
				c.publishStop(p, id, false)
			}
		}
		if len(resp.PartitionsRemaining) > 0 && !c.anyStays() {
			resp.ErrorCode = codeEligibleLeadersNotAvailable
		}
		c.awaitHandover(ev, resp, ps)
		done()
	})
}

// anyStays reports whether a live broker is there that does not want to stop. If not, the cluster stops as a whole
// and whoever asks again will get no other answer; brokers of ours then give up at once, Apache Kafka's do after
// their retries.
func (c *Controller) anyStays() bool {
	for _, b := range c.brokers {
		if !b.shuttingDown {
			return true
		}
	}
	return false
}

// awaitHandover holds the answer back until the leaders of ps have confirmed, for a while at most.
func (c *Controller) awaitHandover(ev ControlledShutdownRequested, resp *kmsg.ControlledShutdownResponse, ps []*partition) {
	h := &handover{
		broker: cluster.BrokerID(ev.Request.BrokerID), requestID: ev.RequestID, request: ev.Request, resp: resp,
		moved: map[*partition]cluster.LeaderEpoch{},
	}
	for _, p := range ps {
		if p.leaderPending(p.li.LeaderEpoch) {
			h.moved[p] = p.li.LeaderEpoch
		}
	}
	if len(h.moved) == 0 {
		c.reply(ev.RequestID, resp)
		return
	}
	c.running.request = nil // the hand-over owns the answer now
	c.handovers = append(c.handovers, h)
	c.emit(ArmTimer{Timer: Timer{Kind: TimerHandover, Broker: h.broker}, At: c.now.Add(handoverWait)})
}

// leaderPending: the decision of that epoch still waits for its leader.
func (p *partition) leaderPending(epoch cluster.LeaderEpoch) bool {
	t := p.transition
	return t != nil && t.epoch == epoch && p.li.Leader >= 0 && t.index(p.li.Leader) >= 0
}

// settleHandovers answers those whose new leaders have all confirmed.
func (c *Controller) settleHandovers() {
	c.handovers = slices.DeleteFunc(c.handovers, func(h *handover) bool {
		for p, epoch := range h.moved {
			if !p.leaderPending(epoch) {
				delete(h.moved, p)
			}
		}
		if len(h.moved) > 0 {
			return false
		}
		c.emit(CancelTimer{Timer{Kind: TimerHandover, Broker: h.broker}})
		c.emit(Reply{RequestID: h.requestID, Response: h.resp})
		return true
	})
}

// handoverDue answers the requests of a broker that has waited long enough. The alert tells of the leader.
func (c *Controller) handoverDue(id cluster.BrokerID) {
	c.handovers = slices.DeleteFunc(c.handovers, func(h *handover) bool {
		if h.broker != id {
			return false
		}
		c.emit(Reply{RequestID: h.requestID, Response: h.resp})
		return true
	})
}
