package controller

import (
	"slices"
	"strings"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// watchFired turns a watch event into the job that looks at what changed.
func (c *Controller) watchFired(ev zkop.Event) {
	if c.role == roleNone {
		return
	}
	if ev.Path == znode.ControllerPath {
		c.enqueueElection()
		return
	}
	if c.role == roleStandby {
		return
	}
	switch ev.Path {
	case znode.BrokerIDsPath:
		c.enqueueOnce("BrokerChange", "", c.brokerChange)
	case znode.BrokerTopicsPath:
		c.enqueueOnce("TopicChange", "", c.topicChange)
	case znode.DeleteTopicsPath:
		c.enqueueOnce("TopicDeletion", "", c.deletionChange)
	case znode.ISRChangeNotificationPath:
		c.enqueueOnce("IsrChange", "", c.isrChange)
	case znode.LogDirEventNotificationPath:
		c.enqueueOnce("LogDirChange", "", c.logDirChange)
	case znode.ReassignPartitionsPath:
		c.enqueueOnce("ZkPartitionReassignment", "", c.reassignZnode)
	case znode.PreferredReplicaElectionPath:
		c.enqueueOnce("ManualLeaderBalance", "", c.preferredZnode)
	default:
		c.childFired(ev)
	}
}

func (c *Controller) childFired(ev zkop.Event) {
	if name, ok := znode.ParseTopicPath(ev.Path); ok {
		if ev.Type != zkop.NodeDeleted { // the children watch of the parent tells of deletions
			c.enqueueOnce("TopicUncleanOrPartitionChange", name, func(done func()) { c.partitionsChange(name, done) })
		}
		return
	}
	// A broker whose registration vanished changes the list too, whose own watch fires.
	if strings.HasPrefix(ev.Path, znode.BrokerIDsPath+"/") && ev.Type == zkop.NodeDataChanged {
		c.enqueueOnce("BrokerChange", "", c.brokerChange)
	}
}

// readBrokers lists the registered brokers, leaving a watch on the list and on each registration.
func (c *Controller) readBrokers(then func(map[cluster.BrokerID]cluster.Broker)) {
	c.read([]zkop.Request{{Kind: zkop.Children, Path: znode.BrokerIDsPath, Watch: true}}, func(got []zkop.Response) {
		if !c.usable(znode.BrokerIDsPath, &got[0]) {
			c.abandon("broker list cannot be read: " + got[0].Err.Error())
			return
		}
		c.readRegistrations(got[0].Children, then)
	})
}

func (c *Controller) readRegistrations(children []string, then func(map[cluster.BrokerID]cluster.Broker)) {
	var ids []cluster.BrokerID
	var reqs []zkop.Request
	for _, child := range children {
		id, err := znode.ParseBrokerID(child)
		if err != nil {
			c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
			continue
		}
		ids = append(ids, id)
		reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: znode.BrokerPath(id), Watch: true})
	}
	c.read(reqs, func(got []zkop.Response) {
		out := make(map[cluster.BrokerID]cluster.Broker, len(ids))
		for i, id := range ids {
			if !c.usable(reqs[i].Path, &got[i]) {
				continue // gone meanwhile; the watch on the list fires again
			}
			r, err := znode.DecodeRegistration(id, got[i].Data)
			if err != nil {
				c.emit(Note{Kind: NoteBadZnode, Broker: id, Reason: err.Error()})
				continue
			}
			out[id] = r.Broker(cluster.BrokerEpoch(got[i].Stat.Czxid))
		}
		then(out)
	})
}

// brokerChange compares the registrations with what we know (V3 points A.1, A.2; KAFKA_FACTS 2.6). A
// broker that came back under a new czxid was down in between, even if no watch saw it (KIP-380): it is
// handled as a failure followed by a start.
func (c *Controller) brokerChange(done func()) {
	c.readBrokers(func(now map[cluster.BrokerID]cluster.Broker) {
		var gone, joined, crashed []cluster.BrokerID
		for _, id := range c.brokerIDs() {
			info, ok := now[id]
			switch {
			case !ok:
				gone = append(gone, id)
				c.emit(Note{Kind: NoteBrokerFailed, Broker: id})
			case info.Epoch != c.brokers[id].info.Epoch:
				gone, joined = append(gone, id), append(joined, id)
				c.emit(Note{Kind: NoteBrokerBounced, Broker: id})
			default:
				c.brokerUpdated(info)
			}
		}
		for id := range now {
			if c.brokers[id] == nil {
				joined = append(joined, id)
			}
		}
		slices.Sort(joined)
		for _, id := range joined {
			if old := c.brokers[id]; c.crashed(now[id]) || old != nil && old.info.DataEpoch != now[id].DataEpoch {
				crashed = append(crashed, id)
			}
		}
		for _, id := range joined {
			c.emit(Note{Kind: NoteBrokerStarted, Broker: id})
		}
		c.brokersFailed(gone, crashed, func() {
			c.brokersStarted(joined, crashed, now, func() { c.noteDataEpochs(done) })
		})
	})
}

// brokerUpdated takes over changed listeners of a broker that stayed.
func (c *Controller) brokerUpdated(info cluster.Broker) {
	b := c.brokers[info.ID]
	if slices.Equal(b.info.Endpoints, info.Endpoints) && b.info.Rack == info.Rack {
		return
	}
	b.info = info
	c.emit(Connect{Broker: info})
	for _, other := range c.brokers {
		other.meta.brokersFirst = true
	}
}

// brokersFailed removes brokers and gives their partitions to others: every partition with a replica on
// one of them is read from ZooKeeper and repaired in one pass. crashed are those of them that are
// back already and may have lost records.
func (c *Controller) brokersFailed(gone, crashed []cluster.BrokerID, then func()) {
	if len(gone) == 0 {
		then()
		return
	}
	for _, id := range gone {
		delete(c.brokers, id)
		c.emit(Disconnect{Broker: id})
	}
	for _, b := range c.brokers {
		b.meta.brokers = true
	}
	var affected []*partition
	for _, t := range c.order {
		for _, p := range t.partitions {
			hit := false
			for _, id := range gone {
				if p.replicaIndex(id) >= 0 {
					hit = true
					c.untrack(p, id)
				}
			}
			if hit && !t.deleting {
				affected = append(affected, p)
			}
		}
	}
	c.deletionBrokersGone(gone)
	for _, p := range affected {
		c.settle(p)
	}
	c.repairWith(c.repairAfter(crashed), affected, "broker-failure", then)
}

// repairPartitions decides existing partitions and initialises those without state.
func (c *Controller) repairPartitions(ps []*partition, reason string, then func()) {
	c.repairWith(c.repairStrategy, ps, reason, then)
}

// repairWith is repairPartitions with another strategy for those that exist.
func (c *Controller) repairWith(s strategy, ps []*partition, reason string, then func()) {
	var known, fresh []*partition
	for _, p := range ps {
		if p.known {
			known = append(known, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	c.decide(known, reason, s, func(outcomes map[*partition]outcome) {
		if n := count(outcomes, outcomeChanged); n > 0 {
			c.note(NoteElections, n, reason)
		}
		for _, p := range known {
			// Whoever is offline must be seen as such by clients even if nothing was written.
			if outcomes[p] != outcomeChanged {
				c.publishMetadata(p)
			}
		}
		c.initPartitions(fresh, then)
	})
}

// brokersStarted adds brokers: first the others learn where they are, then they are sent their partitions
// (V3 point A.11), then what has no leader is tried again.
func (c *Controller) brokersStarted(joined, crashed []cluster.BrokerID, now map[cluster.BrokerID]cluster.Broker, then func()) {
	if len(joined) == 0 {
		then()
		return
	}
	for _, id := range joined {
		c.addBroker(now[id])
	}
	for _, b := range c.brokers {
		b.meta.brokersFirst = true
	}
	c.each(func(p *partition) {
		if p.topic.deleting {
			return
		}
		hit := false
		for _, id := range joined {
			if p.replicaIndex(id) >= 0 {
				hit = true
				if p.known {
					c.publishTo(p, id, "broker-start")
				}
			}
		}
		if hit {
			c.settle(p)
			c.reassignMoved(p)
			if p.known {
				c.publishMetadata(p) // it is not among the offline replicas any more
			}
		}
	})
	// What has no leader is tried again; so are ISRs to which a leader added a broker that was dead and crashed.
	c.repairCrashed(crashed, "leaderless", func() { c.resumeDeletions(then) })
}

func (c *Controller) addBroker(info cluster.Broker) {
	b := newBroker(info)
	b.meta = metadataCursor{next: c.metadata.end(), full: true, brokersFirst: true}
	c.brokers[info.ID] = b
	c.emit(Connect{Broker: info})
}

// electMissing tries every partition without a live leader again, and those whose ISR a leader gave a member
// that was dead then and has crashed.
func (c *Controller) electMissing(done func()) {
	c.repairPartitions(c.collect(c.wantsRepair), "leaderless", done)
}
