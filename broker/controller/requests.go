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
	case *kmsg.AlterPartitionAssignmentsResponse:
		resp.ErrorCode = codeNotController
	case *kmsg.ListPartitionReassignmentsResponse:
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
