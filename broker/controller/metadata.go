package controller

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// metadataLog is the sequence of partitions whose metadata changed. Each broker has a position in it, so a
// change costs one append however many brokers there are, and brokers at the same position share one
// encoded body.
type metadataLog struct {
	first   int // position of changes[0]
	changes []*partition
	// built caches bodies of the current flush by start position; -1 is the full one.
	built   map[int][]kmsg.UpdateMetadataRequestTopicState
	builtAt int
}

func (l *metadataLog) end() int { return l.first + len(l.changes) }

// trim forgets what every broker has been sent.
func (l *metadataLog) trim(brokers map[cluster.BrokerID]*broker) {
	least := l.end()
	for _, b := range brokers {
		least = min(least, b.meta.next)
		if b.inflight != nil && b.inflight.kind == kindMetadata && !b.inflight.meta.full {
			least = min(least, b.inflight.meta.next)
		}
	}
	if n := least - l.first; n > 0 {
		clear(l.changes[:n])
		l.changes = l.changes[n:]
		l.first = least
	}
	if len(l.changes) == 0 {
		l.changes = nil
	}
	l.built = nil
}

// metadataCursor says what a broker still has to be told.
type metadataCursor struct {
	next         int  // position in the log
	full         bool // everything, whatever the position
	brokers      bool // the set of live brokers changed
	brokersFirst bool // send that set on its own before anything else: a broker joined or moved
}

func (m metadataCursor) waits(l *metadataLog) bool {
	return m.full || m.brokers || m.brokersFirst || m.next < l.end()
}

// back is the cursor after a failed request that was built at from.
func (m metadataCursor) back(from metadataCursor) metadataCursor {
	return metadataCursor{
		next: min(m.next, from.next), full: m.full || from.full, brokers: m.brokers || from.brokers,
		brokersFirst: m.brokersFirst || from.brokersFirst,
	}
}

// publishMetadata queues a partition's metadata for every broker.
func (c *Controller) publishMetadata(p *partition) {
	if len(c.brokers) > 0 {
		c.metadata.changes = append(c.metadata.changes, p)
		c.metadata.built = nil
	}
}

// sendMetadata sends UpdateMetadata v8: only the live brokers, or all that the broker has not heard yet.
func (c *Controller) sendMetadata(b *broker, brokersOnly bool) {
	in := &inflight{kind: kindMetadata, meta: b.meta}
	req := &kmsg.UpdateMetadataRequest{
		Version: 8, ControllerID: int32(c.cfg.BrokerID), ControllerEpoch: int32(c.epoch),
		BrokerEpoch: int64(b.info.Epoch), LiveBrokers: c.liveBrokers(),
	}
	b.meta.brokersFirst, b.meta.brokers = false, false
	if !brokersOnly {
		req.TopicStates = c.metadataBody(b.meta)
		b.meta.full, b.meta.next = false, c.metadata.end()
	}
	c.send(b, in, req)
}

func (c *Controller) metadataBody(at metadataCursor) []kmsg.UpdateMetadataRequestTopicState {
	key := at.next
	if at.full {
		key = -1
	}
	if body, ok := c.metadata.built[key]; ok && c.metadata.builtAt == c.metadata.end() {
		return body
	}
	var ps []*partition
	if at.full {
		c.each(func(p *partition) {
			if p.known {
				ps = append(ps, p)
			}
		})
	} else {
		set := make(map[*partition]struct{}, c.metadata.end()-at.next)
		for _, p := range c.metadata.changes[at.next-c.metadata.first:] {
			if p.known {
				set[p] = struct{}{}
			}
		}
		ps = sorted(set)
	}
	body := c.metadataTopics(ps)
	if c.metadata.built == nil || c.metadata.builtAt != c.metadata.end() {
		c.metadata.built, c.metadata.builtAt = map[int][]kmsg.UpdateMetadataRequestTopicState{}, c.metadata.end()
	}
	c.metadata.built[key] = body
	return body
}

// metadataTopics groups partitions, sorted by topic, into the request's form.
func (c *Controller) metadataTopics(ps []*partition) []kmsg.UpdateMetadataRequestTopicState {
	var out []kmsg.UpdateMetadataRequestTopicState
	var last *topic
	for _, p := range ps {
		if p.topic != last {
			last = p.topic
			out = append(out, kmsg.UpdateMetadataRequestTopicState{Topic: last.name, TopicID: last.id})
		}
		leader := p.li.Leader
		if p.topic.deleting {
			leader = cluster.LeaderDuringDelete
		}
		t := &out[len(out)-1]
		t.PartitionStates = append(t.PartitionStates, kmsg.UpdateMetadataRequestTopicPartition{
			Partition: p.num, ControllerEpoch: int32(p.li.ControllerEpoch), Leader: int32(leader),
			LeaderEpoch: int32(p.li.LeaderEpoch), ISR: cluster.IDsToInt32(p.li.ISR), ZKVersion: int32(p.version),
			Replicas: cluster.IDsToInt32(p.assignment.Replicas), OfflineReplicas: c.offlineReplicas(p),
		})
	}
	return out
}

func (c *Controller) offlineReplicas(p *partition) []int32 {
	var out []int32
	for _, id := range p.assignment.Replicas {
		if !c.alive(id, p) {
			out = append(out, int32(id))
		}
	}
	return out
}

// liveBrokers lists all registered brokers with their listeners, those that are shutting down included.
func (c *Controller) liveBrokers() []kmsg.UpdateMetadataRequestLiveBroker {
	out := make([]kmsg.UpdateMetadataRequestLiveBroker, 0, len(c.brokers))
	for _, id := range c.brokerIDs() {
		info := c.brokers[id].info
		lb := kmsg.UpdateMetadataRequestLiveBroker{ID: int32(id)}
		for _, e := range info.Endpoints {
			lb.Endpoints = append(lb.Endpoints, kmsg.UpdateMetadataRequestLiveBrokerEndpoint{
				Port: e.Port, Host: e.Host, ListenerName: e.Listener, SecurityProtocol: securityProtocol(e.Protocol),
			})
		}
		if info.Rack != "" {
			rack := info.Rack
			lb.Rack = &rack
		}
		out = append(out, lb)
	}
	return out
}

// securityProtocol is Kafka's number for a protocol's name.
func securityProtocol(name string) int16 {
	switch name {
	case "SSL":
		return 1
	case "SASL_PLAINTEXT":
		return 2
	case "SASL_SSL":
		return 3
	default:
		return 0
	}
}
