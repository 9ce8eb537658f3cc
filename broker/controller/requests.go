package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// reply answers the running job's request.
func (c *Controller) reply(id uint64, resp kmsg.Response) {
	if j := c.running; j != nil && j.requestID == id {
		j.request = nil
	}
	c.emit(Reply{RequestID: id, Response: resp})
}

// notController is the refusal of a request by a broker that is not the controller.
func notController(req kmsg.Request) kmsg.Response {
	resp := req.ResponseKind()
	switch resp := resp.(type) {
	case *kmsg.ControlledShutdownResponse:
		resp.ErrorCode = codeNotController
	case *kmsg.AlterPartitionResponse:
		resp.ErrorCode = codeNotController
	case *kmsg.ElectLeadersResponse:
		resp.ErrorCode = codeNotController
		refuseElections(req.(*kmsg.ElectLeadersRequest), resp)
	}
	return resp
}

// refuseElections names each partition too: version 0 has no other place for an error.
func refuseElections(req *kmsg.ElectLeadersRequest, resp *kmsg.ElectLeadersResponse) {
	for _, t := range req.Topics {
		out := kmsg.ElectLeadersResponseTopic{Topic: t.Topic}
		for _, num := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.ElectLeadersResponseTopicPartition{Partition: num, ErrorCode: codeNotController})
		}
		resp.Topics = append(resp.Topics, out)
	}
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
	moved := func(p *partition) bool {
		return p.known && len(p.assignment.Replicas) > 1 && p.li.Leader != cluster.NoLeader && p.replicaIndex(id) >= 0
	}
	ps := c.collect(moved)
	followed := slices.DeleteFunc(slices.Clone(ps), func(p *partition) bool { return p.li.Leader == id })
	c.decide(ps, "controlled-shutdown", c.shutdownStrategy(id), func(map[*partition]outcome) {
		for _, p := range followed {
			if p.li.Leader != id {
				c.publishStop(p, id, false)
			}
		}
		for _, p := range ps {
			if p.li.Leader == id {
				resp.PartitionsRemaining = append(resp.PartitionsRemaining,
					kmsg.ControlledShutdownResponsePartitionsRemaining{Topic: p.topic.name, Partition: p.num})
			}
		}
		c.reply(ev.RequestID, resp)
		done()
	})
}

// electLeaders runs the elections of an ElectLeaders request (KIP-460). A request without topics is about
// every partition; those that need no election are then left out of the answer.
func (c *Controller) electLeaders(ev ElectLeadersRequested, done func()) {
	all := ev.Request.Topics == nil
	strategy, failure := c.preferredStrategy, codePreferredLeaderNotAvailable
	reason := "preferred-election"
	if ev.Request.ElectionType == 1 {
		strategy, failure = c.uncleanStrategy, codeEligibleLeadersNotAvailable
		reason = "unclean-election"
	}
	codes := map[cluster.TopicPartition]int16{}
	var ps []*partition
	if all {
		ps = c.collect(func(p *partition) bool { return p.known })
		// Only what memory says may need one; reading the whole cluster for each request is waste.
		ps = slices.DeleteFunc(ps, func(p *partition) bool { return strategy(p, p.li, uncleanAllowed).verdict == notNeeded })
	} else {
		ps = c.electable(ev.Request, codes)
	}
	c.decide(ps, reason, strategy, func(outcomes map[*partition]outcome) {
		if n := count(outcomes, outcomeChanged); n > 0 {
			c.note(NoteElections, n, reason)
		}
		for _, p := range ps {
			code := electionCode(outcomes[p], failure)
			if all && code == codeElectionNotNeeded {
				continue
			}
			codes[p.tp()] = code
		}
		c.reply(ev.RequestID, electLeadersResponse(ev.Request, codes))
		done()
	})
}

// electable picks the partitions that can be elected at all; the others get their code.
func (c *Controller) electable(req *kmsg.ElectLeadersRequest, codes map[cluster.TopicPartition]int16) []*partition {
	var ps []*partition
	seen := map[*partition]bool{}
	for _, t := range req.Topics {
		for _, num := range t.Partitions {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: num}
			p := c.partition(tp)
			switch {
			case p == nil:
				codes[tp] = codeUnknownTopicOrPartition
			case p.topic.deleting:
				codes[tp] = codeInvalidTopic
			case !p.known:
				codes[tp] = codeEligibleLeadersNotAvailable
			case !seen[p]:
				seen[p] = true
				ps = append(ps, p)
			}
		}
	}
	return ps
}

func electionCode(o outcome, failure int16) int16 {
	switch o {
	case outcomeChanged:
		return codeNone
	case outcomeUnchanged, outcomeNotNeeded:
		return codeElectionNotNeeded
	case outcomeNoCandidate:
		return failure
	case outcomeNoState:
		return codeUnknownTopicOrPartition
	default:
		return codeUnknownServerError
	}
}

// electLeadersResponse lists the codes by topic, in order.
func electLeadersResponse(req *kmsg.ElectLeadersRequest, codes map[cluster.TopicPartition]int16) *kmsg.ElectLeadersResponse {
	resp := req.ResponseKind().(*kmsg.ElectLeadersResponse)
	tps := make([]cluster.TopicPartition, 0, len(codes))
	for tp := range codes {
		tps = append(tps, tp)
	}
	slices.SortFunc(tps, cluster.TopicPartition.Compare)
	for _, tp := range tps {
		if n := len(resp.Topics); n == 0 || resp.Topics[n-1].Topic != tp.Topic {
			resp.Topics = append(resp.Topics, kmsg.ElectLeadersResponseTopic{Topic: tp.Topic})
		}
		part := kmsg.ElectLeadersResponseTopicPartition{Partition: tp.Partition, ErrorCode: codes[tp]}
		if codes[tp] != codeNone {
			msg := codeName(codes[tp])
			part.ErrorMessage = &msg
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, part)
	}
	return resp
}
