package controller

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// The request type of LeaderAndISR v5 and later.
const (
	requestIncremental int8 = 1
	requestFull        int8 = 2
)

// sendLeaderAndISR sends every waiting decision of a broker in one LeaderAndISR v7 (V3 point 2.6). Each
// carries the znode version, so that a leader can change its ISR without a read (V3 point 2.7).
func (c *Controller) sendLeaderAndISR(b *broker) {
	ps := sorted(b.lead)
	clear(b.lead)
	in := &inflight{kind: kindLeaderAndISR, lead: make([]sentDecision, 0, len(ps))}
	req := &kmsg.LeaderAndISRRequest{
		Version: 7, ControllerID: int32(c.cfg.BrokerID), ControllerEpoch: int32(c.epoch),
		BrokerEpoch: int64(b.info.Epoch), Type: requestIncremental,
	}
	leaders := map[cluster.BrokerID]bool{}
	var last *topic
	for _, p := range ps {
		if p.topic.deleting || !p.known || p.replicaIndex(b.info.ID) < 0 {
			continue
		}
		if p.topic != last {
			last = p.topic
			req.TopicStates = append(req.TopicStates, kmsg.LeaderAndISRRequestTopicState{Topic: last.name, TopicID: last.id})
		}
		t := &req.TopicStates[len(req.TopicStates)-1]
		t.PartitionStates = append(t.PartitionStates, leaderAndISRPartition(p, b.info.ID))
		in.lead = append(in.lead, sentDecision{p, p.li.LeaderEpoch})
		c.transitionSent(p, b.info.ID)
		leaders[p.li.Leader] = true
	}
	if len(in.lead) == 0 {
		c.flushTo(b)
		return
	}
	if !b.contacted && c.isFull(b, in) {
		req.Type = requestFull
	}
	req.LiveLeaders = c.liveLeaders(leaders)
	c.send(b, in, req)
}

// leaderAndISRPartition is new to a broker that has never held the partition: it may be made where another log
// directory has failed.
func leaderAndISRPartition(p *partition, to cluster.BrokerID) kmsg.LeaderAndISRRequestTopicPartition {
	out := kmsg.LeaderAndISRRequestTopicPartition{
		Partition: p.num, ControllerEpoch: int32(p.li.ControllerEpoch), Leader: int32(p.li.Leader),
		LeaderEpoch: int32(p.li.LeaderEpoch), ISR: cluster.IDsToInt32(p.li.ISR), ZKVersion: int32(p.version),
		Replicas:       cluster.IDsToInt32(p.assignment.Replicas),
		AddingReplicas: cluster.IDsToInt32(p.assignment.Adding), RemovingReplicas: cluster.IDsToInt32(p.assignment.Removing),
		IsNew: p.isNew || slices.Contains(p.assignment.Adding, to) && !slices.Contains(p.li.ISR, to),
	}
	if p.li.Recovering {
		out.LeaderRecoveryState = 1
	}
	return out
}

// isFull: the request names every partition of the broker, so that the broker may treat what is absent
// from it as stray (V3 point C.5). Topics that are being deleted need not be named; a partition whose state
// we could not read must not be taken for a stray one.
func (c *Controller) isFull(b *broker, in *inflight) bool {
	sent := make(map[*partition]struct{}, len(in.lead))
	for _, s := range in.lead {
		sent[s.p] = struct{}{}
	}
	if c.repair.unreadableTopics {
		return false
	}
	full := true
	c.each(func(p *partition) {
		if _, ok := sent[p]; !ok && !p.topic.deleting && p.replicaIndex(b.info.ID) >= 0 {
			full = false
		}
	})
	return full
}

// liveLeaders names the leaders with the address that followers are to fetch from.
func (c *Controller) liveLeaders(leaders map[cluster.BrokerID]bool) []kmsg.LeaderAndISRRequestLiveLeader {
	var out []kmsg.LeaderAndISRRequestLiveLeader
	for _, id := range c.brokerIDs() {
		if !leaders[id] {
			continue
		}
		info := c.brokers[id].info
		e, ok := info.Endpoint(c.cfg.InterBrokerListener)
		if !ok && len(info.Endpoints) > 0 {
			e = info.Endpoints[0]
		}
		out = append(out, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: int32(id), Host: e.Host, Port: e.Port})
	}
	return out
}

// partKey finds a partition in a LeaderAndISR response, which names topics by id.
type partKey struct {
	topic cluster.TopicID
	num   int32
}

// leaderAndISRAnswered matches the answer to the decisions. Code 0 confirms; STALE_CONTROLLER_EPOCH on a
// partition means that the broker has this leader epoch (or a later one) already, as after a resend, which
// confirms too. A storage error takes the replica offline. Anything else is sent again after a wait, and
// so is what the answer does not mention.
func (c *Controller) leaderAndISRAnswered(b *broker, in *inflight, resp *kmsg.LeaderAndISRResponse) {
	codes := make(map[partKey]int16, len(in.lead))
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			codes[partKey{t.TopicID, p.Partition}] = p.ErrorCode
		}
	}
	refused := false
	var failed []*partition
	for _, s := range in.lead {
		code, ok := codes[partKey{s.p.topic.id, s.p.num}]
		switch {
		case !ok:
			code = codeUnknownServerError
			fallthrough
		case code != codeNone && code != codeStaleControllerEpoch && code != codeKafkaStorageError:
			refused = true
			c.transitionFailed(s.p, b.info.ID, s.epoch, code, nil)
			c.sendLater(b, s.p)
		case code == codeKafkaStorageError:
			c.transitionFailed(s.p, b.info.ID, s.epoch, code, nil)
			failed = append(failed, s.p)
		default:
			c.confirmed(b, s, code)
		}
	}
	if refused {
		b.refusals++
		c.emit(ArmTimer{Timer: Timer{Kind: TimerResend, Broker: b.info.ID}, At: c.now.Add(backoff(refuseDelayMin, refuseDelayMax, b.refusals))})
	} else {
		b.refusals = 0
	}
	c.replicasFailed(b, failed)
}

// sendLater queues a refused decision for the next TimerResend, unless a newer one waits already.
func (c *Controller) sendLater(b *broker, p *partition) {
	_, newer := b.lead[p]
	_, stopping := b.stop[p]
	if !newer && !stopping && !p.topic.deleting {
		b.later[p] = struct{}{}
	}
}

func (c *Controller) confirmed(b *broker, s sentDecision, code int16) {
	if s.p.topic.deleting {
		return
	}
	c.transitionDone(s.p, b.info.ID, s.epoch)
	if s.epoch == s.p.li.LeaderEpoch && s.p.transition == nil {
		s.p.isNew = false
	}
	if _, was := b.offline[s.p]; was && code == codeNone {
		delete(b.offline, s.p) // its log directory works again
		c.enqueueOnce("ReplicasOnline", "", c.electMissing)
	}
}
