package controller

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// isrItem is one partition of an AlterPartition request on its way.
type isrItem struct {
	topic, num int // place in the response
	p          *partition
	req        *kmsg.AlterPartitionRequestTopicPartition
	isr        []cluster.BrokerID
	next       znode.State
}

// alterPartition writes ISR changes for leaders that do not write ZooKeeper themselves: Apache Kafka 2.7
// and later (KIP-497). The states are read first, so that the answer is about what is stored, and checked in
// Kafka's order (KAFKA_FACTS 2.7).
func (c *Controller) alterPartition(ev AlterPartitionRequested, done func()) {
	req := ev.Request
	resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
	b := c.brokers[cluster.BrokerID(req.BrokerID)]
	if b == nil || int64(b.info.Epoch) != req.BrokerEpoch {
		resp.ErrorCode = codeStaleBrokerEpoch
		c.reply(ev.RequestID, resp)
		done()
		return
	}
	items := c.isrItems(req, resp)
	ps := make([]*partition, len(items))
	for i := range items {
		ps[i] = items[i].p
	}
	c.readStates(ps, func(reads []stateRead, _ map[*partition]outcome) {
		stored := make(map[*partition]stateRead, len(reads))
		for _, r := range reads {
			stored[r.p] = r
		}
		c.alterChecked(req, resp, items, stored, func() {
			c.reply(ev.RequestID, resp)
			done()
		})
	})
}

// isrItems lays out the response and finds the partitions.
func (c *Controller) isrItems(req *kmsg.AlterPartitionRequest, resp *kmsg.AlterPartitionResponse) []isrItem {
	var items []isrItem
	seen := map[*partition]bool{}
	for i := range req.Topics {
		rt := &req.Topics[i]
		var t *topic
		unknown := codeUnknownTopicOrPartition
		if req.Version >= 2 {
			t, unknown = c.topicByID[rt.TopicID], codeUnknownTopicID
		} else {
			t = c.topics[rt.Topic]
		}
		out := kmsg.AlterPartitionResponseTopic{Topic: rt.Topic, TopidID: rt.TopicID}
		for k := range rt.Partitions {
			part := &rt.Partitions[k]
			o := kmsg.AlterPartitionResponseTopicPartition{Partition: part.Partition, ErrorCode: unknown}
			if t != nil {
				o.ErrorCode = codeUnknownTopicOrPartition
				if p := t.partition(part.Partition); p != nil && p.known && !t.deleting && !seen[p] {
					seen[p] = true
					o.ErrorCode = codeNone
					items = append(items, isrItem{topic: i, num: k, p: p, req: part, isr: isrOf(req.Version, part)})
				}
			}
			out.Partitions = append(out.Partitions, o)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return items
}

func isrOf(version int16, part *kmsg.AlterPartitionRequestTopicPartition) []cluster.BrokerID {
	if version < 3 {
		return cluster.IDsFromInt32(part.NewISR)
	}
	isr := make([]cluster.BrokerID, 0, len(part.NewEpochISR))
	for _, e := range part.NewEpochISR {
		isr = append(isr, cluster.BrokerID(e.BrokerID))
	}
	return isr
}

// alterChecked writes what passes the checks.
func (c *Controller) alterChecked(req *kmsg.AlterPartitionRequest, resp *kmsg.AlterPartitionResponse,
	items []isrItem, stored map[*partition]stateRead, then func(),
) {
	var ops []writeOp
	var writing []*isrItem
	for i := range items {
		it := &items[i]
		out := &resp.Topics[it.topic].Partitions[it.num]
		r, ok := stored[it.p]
		if !ok {
			out.ErrorCode = codeUnknownServerError
			continue
		}
		code, write := c.checkISR(req, it, r)
		out.ErrorCode = code
		switch {
		case code != codeNone:
		case !write:
			describeISR(out, it.p)
		default:
			it.next = znode.State{LeaderAndISR: r.state.LeaderAndISR.Clone(), Unknown: r.state.Unknown}
			it.next.ISR, it.next.Recovering = it.isr, it.req.LeaderRecoveryState == 1
			it.next.ControllerEpoch = c.epoch
			ops = append(ops, setOp(znode.StatePath(it.p.tp()), it.next.Encode(), r.version))
			writing = append(writing, it)
		}
	}
	c.write(ops, func(results []writeResult) {
		for k, it := range writing {
			c.isrWritten(it, results[k], &resp.Topics[it.topic].Partitions[it.num])
		}
		then()
	})
}

// checkISR goes through Kafka's checks; write is false for a request that is in force already.
func (c *Controller) checkISR(req *kmsg.AlterPartitionRequest, it *isrItem, r stateRead) (code int16, write bool) {
	cur, part := r.state.LeaderAndISR, it.req
	recovering := part.LeaderRecoveryState == 1
	switch {
	case int32(cur.LeaderEpoch) < part.LeaderEpoch || r.version < part.PartitionEpoch:
		return codeNotController, false // the leader knows more than ZooKeeper tells us: we are a zombie
	case int32(cur.LeaderEpoch) > part.LeaderEpoch:
		return codeFencedLeaderEpoch, false
	case cur.Leader != cluster.BrokerID(req.BrokerID):
		return codeInvalidRequest, false
	case slices.Equal(cur.ISR, it.isr) && cur.Recovering == recovering:
		return codeNone, false
	case r.version > part.PartitionEpoch:
		return codeInvalidUpdateVersion, false
	case len(it.isr) == 0 || !slices.Contains(it.isr, cur.Leader) || !subset(it.isr, it.p.assignment.Replicas):
		return codeInvalidRequest, false
	case recovering && len(it.isr) > 1, recovering && !cur.Recovering:
		return codeInvalidRequest, false
	}
	if !c.eligible(req, it, cur.ISR) {
		if req.Version >= 2 {
			return codeIneligibleReplica, false
		}
		return codeOperationNotAttempted, false
	}
	return codeNone, true
}

// eligible: every new member of the ISR is live, and is the incarnation that the leader means (KIP-903).
func (c *Controller) eligible(req *kmsg.AlterPartitionRequest, it *isrItem, cur []cluster.BrokerID) bool {
	for i, id := range it.isr {
		if slices.Contains(cur, id) {
			continue
		}
		if !c.live(id, it.p) {
			return false
		}
		if req.Version >= 3 {
			if e := it.req.NewEpochISR[i].BrokerEpoch; e >= 0 && e != int64(c.brokers[id].info.Epoch) {
				return false
			}
		}
	}
	return true
}

func (c *Controller) isrWritten(it *isrItem, r writeResult, out *kmsg.AlterPartitionResponseTopicPartition) {
	switch {
	case r.err == nil:
		it.p.li, it.p.version = it.next.LeaderAndISR, cluster.ZKVersion(r.version)
		c.publishMetadata(it.p)
		c.reassignMoved(it.p)
		describeISR(out, it.p)
	case errors.Is(r.err, zkop.ErrBadVersion):
		out.ErrorCode = codeInvalidUpdateVersion
	default:
		out.ErrorCode = codeUnknownServerError
	}
}

func describeISR(out *kmsg.AlterPartitionResponseTopicPartition, p *partition) {
	out.LeaderID, out.LeaderEpoch, out.PartitionEpoch = int32(p.li.Leader), int32(p.li.LeaderEpoch), int32(p.version)
	out.ISR = cluster.IDsToInt32(p.li.ISR)
	if p.li.Recovering {
		out.LeaderRecoveryState = 1
	}
}

// subset also refuses a list that names a broker twice.
func subset(ids, of []cluster.BrokerID) bool {
	for i, id := range ids {
		if !slices.Contains(of, id) || slices.Contains(ids[:i], id) {
			return false
		}
	}
	return true
}
