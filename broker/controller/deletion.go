package controller

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// deletionChange reads /admin/delete_topics (KAFKA_FACTS 2.9). Entries for unknown topics, and all of them
// while delete.topic.enable is false, are dropped.
func (c *Controller) deletionChange(done func()) {
	c.read([]zkop.Request{{Kind: zkop.Children, Path: znode.DeleteTopicsPath, Watch: true}}, func(got []zkop.Response) {
		if !c.usable(znode.DeleteTopicsPath, &got[0]) {
			done()
			return
		}
		names := slices.Clone(got[0].Children)
		slices.Sort(names)
		unknown := slices.ContainsFunc(names, func(n string) bool { return c.topics[n] == nil })
		if !unknown {
			c.startDeletions(names, done)
			return
		}
		// The topic may be newer than our last look at the list.
		c.topicChange(func() { c.startDeletions(names, done) })
	})
}

func (c *Controller) startDeletions(names []string, done func()) {
	var drop []writeOp
	for _, name := range names {
		if c.topics[name] == nil || !c.cfg.DeleteTopicEnable {
			drop = append(drop, deleteOp(znode.DeleteTopicPath(name)))
		}
	}
	for _, t := range c.order {
		if !t.deleting && t.ineligible && !slices.Contains(names, t.name) {
			t.ineligible = false // the request was withdrawn while it waited
		}
	}
	c.markDeletions(names)
	c.write(drop, func([]writeResult) { c.resumeDeletions(done) })
}

// markDeletions notes which topics are to go; from then on clients are told that they do not exist.
func (c *Controller) markDeletions(names []string) {
	if !c.cfg.DeleteTopicEnable {
		return
	}
	for _, name := range names {
		t := c.topics[name]
		if t == nil || t.deleting {
			continue
		}
		if t.reassigning() {
			// It stays a topic like any other until then; the last reassignment looks at the requests again.
			c.haltDeletion(t, "a reassignment is in progress")
			continue
		}
		for _, p := range t.partitions {
			c.settle(p) // replicas: online or offline
		}
		t.deleting, t.ineligible = true, false
		for _, p := range t.partitions {
			for i := range p.replicas {
				if p.replicas[i].state == replicaNew {
					p.setReplica(p.replicas[i].broker, replicaOffline)
				}
			}
			c.dropTransition(p)
			c.publishMetadata(p)
		}
		c.emit(Note{Kind: NoteTopicDeleting, Partition: cluster.TopicPartition{Topic: name, Partition: -1}})
	}
}

// resumeDeletions moves every deletion as far as it can go.
func (c *Controller) resumeDeletions(done func()) {
	var start []*topic
	for _, t := range c.order {
		if t.deleting && !t.finishing {
			start = append(start, t)
		}
	}
	c.fenceLeaders(start, func() {
		for _, t := range start {
			c.stopReplicas(t)
		}
		c.finishDeletions(start, done)
	})
}

// fenceLeaders takes the leader away from every partition that is to go, so that no leader's ISR write can
// interfere.
func (c *Controller) fenceLeaders(topics []*topic, then func()) {
	var all, known []*partition
	for _, t := range topics {
		if t.started {
			continue
		}
		t.started = true
		all = append(all, t.partitions...)
		for _, p := range t.partitions {
			if p.known {
				known = append(known, p)
			}
		}
	}
	c.decide(known, "topic-deletion", deleteStrategy, func(map[*partition]outcome) {
		for _, p := range all {
			// Queued by decide for the brokers; they are to be stopped instead.
			c.dropTransition(p)
			for _, b := range c.brokers {
				delete(b.lead, p)
				delete(b.later, p)
			}
			p.setState(partitionOffline)
		}
		then()
	})
}

// stopReplicas sends StopReplica(delete) to every replica that is alive and not gone yet; the others make
// the deletion wait.
func (c *Controller) stopReplicas(t *topic) {
	waits := ""
	for _, p := range t.partitions {
		for i := range p.replicas {
			r := &p.replicas[i]
			switch {
			case r.state == replicaDeletionStarted || r.state == replicaDeletionSuccessful:
				continue
			case !c.alive(r.broker, p):
				if r.state != replicaDeletionIneligible {
					c.toOffline(p, r.broker)
					p.setReplica(r.broker, replicaDeletionIneligible)
				}
				waits = "a replica's broker or log directory is offline"
			default:
				c.toOffline(p, r.broker)
				p.setReplica(r.broker, replicaDeletionStarted)
				c.publishStop(p, r.broker, true)
			}
		}
	}
	if waits != "" {
		c.haltDeletion(t, waits)
		return
	}
	t.ineligible = false
}

func (c *Controller) toOffline(p *partition, b cluster.BrokerID) {
	if p.replicas[p.replicaIndex(b)].state != replicaOffline {
		p.setReplica(b, replicaOffline)
	}
}

func (c *Controller) haltDeletion(t *topic, why string) {
	if !t.ineligible {
		t.ineligible = true
		c.emit(Note{Kind: NoteTopicHalted, Partition: cluster.TopicPartition{Topic: t.name, Partition: -1}, Reason: why})
	}
}

// deletionBrokersGone: replicas whose deletion was under way on a broker that died wait for its return.
func (c *Controller) deletionBrokersGone(gone []cluster.BrokerID) {
	for _, t := range c.order {
		if !t.deleting {
			continue
		}
		for _, p := range t.partitions {
			for _, id := range gone {
				i := p.replicaIndex(id)
				if i < 0 {
					continue
				}
				switch p.replicas[i].state {
				case replicaDeletionStarted, replicaOffline:
					p.setReplica(id, replicaDeletionIneligible)
				case replicaOnline:
					p.setReplica(id, replicaOffline)
					p.setReplica(id, replicaDeletionIneligible)
				default:
					continue
				}
				c.haltDeletion(t, "a replica's broker is offline")
			}
		}
	}
}

// stopReplicaAnswered notes which deletions a broker has done. Failures are tried again by the repair timer.
func (c *Controller) stopReplicaAnswered(b *broker, in *inflight, resp *kmsg.StopReplicaResponse) {
	codes := make(map[cluster.TopicPartition]int16, len(resp.Partitions))
	for _, p := range resp.Partitions {
		codes[cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = p.ErrorCode
	}
	finished := false
	for _, s := range in.stop {
		if !s.delete {
			continue
		}
		i := s.p.replicaIndex(b.info.ID)
		if i < 0 || s.p.replicas[i].state != replicaDeletionStarted {
			continue
		}
		code, ok := codes[s.p.tp()]
		if ok && (code == codeNone || code == codeUnknownTopicOrPartition) {
			s.p.setReplica(b.info.ID, replicaDeletionSuccessful)
			finished = finished || s.p.topic.gone()
			continue
		}
		s.p.setReplica(b.info.ID, replicaDeletionIneligible)
		c.haltDeletion(s.p.topic, "broker refused StopReplica: "+codeName(code))
		c.armRepair()
	}
	if finished {
		c.enqueueOnce("TopicDeletionStopReplicaResponseReceived", "", func(done func()) {
			c.finishDeletions(slices.Clone(c.order), done)
		})
	}
}

// gone: every replica of the topic has been deleted.
func (t *topic) gone() bool {
	for _, p := range t.partitions {
		for i := range p.replicas {
			if p.replicas[i].state != replicaDeletionSuccessful {
				return false
			}
		}
	}
	return t.deleting && t.started
}

// finishDeletions removes the znodes of topics whose replicas are all gone.
func (c *Controller) finishDeletions(topics []*topic, done func()) {
	var gone []*topic
	for _, t := range topics {
		if t.deleting && !t.finishing && t.gone() {
			t.finishing = true
			gone = append(gone, t)
		}
	}
	if len(gone) == 0 {
		done()
		return
	}
	paths := make([]string, len(gone))
	for i, t := range gone {
		paths[i] = znode.TopicPath(t.name)
	}
	c.listTree(paths, func(deletes []string) {
		c.deletePaths(deletes, func(results []writeResult) {
			// The roots are the last ones. What could not be removed is tried again, its request kept.
			results = results[len(results)-len(gone):]
			var ok []*topic
			for i, t := range gone {
				if err := results[i].err; err != nil && !errors.Is(err, zkop.ErrNoNode) {
					t.finishing = false
					c.haltDeletion(t, "znodes: "+err.Error())
					c.armRepair()
					continue
				}
				ok = append(ok, t)
			}
			c.forgetRequests(ok, done)
		})
	})
}

// forgetRequests removes the configs and, last of all, the requests of deleted topics: an interrupted
// deletion is taken up again as long as its request is there.
func (c *Controller) forgetRequests(topics []*topic, done func()) {
	var paths []string
	for _, t := range topics {
		paths = append(paths, znode.ConfigEntityPath(znode.TopicConfig, t.name), znode.DeleteTopicPath(t.name))
	}
	c.deletePaths(paths, func([]writeResult) { c.deleted(topics, done) })
}

// listTree finds every node below the roots, deepest level first, the roots last.
func (c *Controller) listTree(roots []string, then func([]string)) {
	reqs := make([]zkop.Request, len(roots))
	for i, path := range roots {
		reqs[i] = zkop.Request{Kind: zkop.Children, Path: path}
	}
	c.read(reqs, func(got []zkop.Response) {
		var below []string
		for i, r := range got {
			children := slices.Clone(r.Children)
			slices.Sort(children)
			for _, child := range children {
				below = append(below, roots[i]+"/"+child)
			}
		}
		if len(below) == 0 {
			then(slices.Clone(roots))
			return
		}
		c.listTree(below, func(deletes []string) { then(append(deletes, roots...)) })
	})
}

// deletePaths deletes nodes in the given order, which is Kafka's: state, partition, partitions, topic.
func (c *Controller) deletePaths(paths []string, then func([]writeResult)) {
	ops := make([]writeOp, len(paths))
	for i, path := range paths {
		ops[i] = deleteOp(path)
	}
	c.write(ops, then)
}

func (c *Controller) deleted(topics []*topic, done func()) {
	for _, t := range topics {
		for _, p := range t.partitions {
			for i := range p.replicas {
				p.replicas[i].state = replicaNonExistent
			}
			for _, b := range c.brokers {
				delete(b.offline, p)
			}
			p.setState(partitionNonExistent)
		}
		c.removeTopic(t)
		c.emit(Note{Kind: NoteTopicDeleted, Partition: cluster.TopicPartition{Topic: t.name, Partition: -1}})
	}
	done()
}

// sendStopReplica sends every waiting StopReplica of a broker in one v4 request.
func (c *Controller) sendStopReplica(b *broker) {
	ps := sorted(b.stop)
	in := &inflight{kind: kindStopReplica}
	req := &kmsg.StopReplicaRequest{
		Version: 4, ControllerID: int32(c.cfg.BrokerID), ControllerEpoch: int32(c.epoch), BrokerEpoch: int64(b.info.Epoch),
	}
	var last *topic
	for _, p := range ps {
		if p.topic != last {
			last = p.topic
			req.Topics = append(req.Topics, kmsg.StopReplicaRequestTopic{Topic: last.name})
		}
		del := b.stop[p]
		epoch := p.li.LeaderEpoch
		if del && p.topic.deleting {
			epoch = cluster.EpochDuringDelete // wins over every epoch (KIP-570)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.PartitionStates = append(t.PartitionStates, kmsg.StopReplicaRequestTopicPartitionState{
			Partition: p.num, LeaderEpoch: int32(epoch), Delete: del,
		})
		in.stop = append(in.stop, sentStop{p, del})
	}
	clear(b.stop)
	c.send(b, in, req)
}
