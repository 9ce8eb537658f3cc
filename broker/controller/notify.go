package controller

import (
	"slices"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// readNotifications reads the children of a notification path and hands over their values.
func (c *Controller) readNotifications(parent string, done func(), then func(names []string, values [][]byte)) {
	c.read([]zkop.Request{{Kind: zkop.Children, Path: parent, Watch: true}}, func(got []zkop.Response) {
		if !c.usable(parent, &got[0]) || len(got[0].Children) == 0 {
			done()
			return
		}
		names := slices.Clone(got[0].Children)
		slices.Sort(names)
		reqs := make([]zkop.Request, len(names))
		for i, n := range names {
			reqs[i] = zkop.Request{Kind: zkop.Get, Path: parent + "/" + n}
		}
		c.read(reqs, func(got []zkop.Response) {
			values := make([][]byte, len(names))
			for i := range got {
				values[i] = got[i].Data
			}
			then(names, values)
		})
	})
}

func (c *Controller) deleteNotifications(parent string, names []string, done func()) {
	ops := make([]writeOp, len(names))
	for i, n := range names {
		ops[i] = deleteOp(parent + "/" + n)
	}
	c.write(ops, func([]writeResult) { done() })
}

// isrChange takes over ISR changes that leaders made themselves (V3 points 0.7, 1.7): the states are read
// again and every broker's metadata is brought up to date. A state whose leader epoch moved was decided by
// an admin tool; it is sent to its replicas as a decision.
func (c *Controller) isrChange(done func()) {
	parent := znode.ISRChangeNotificationPath
	c.readNotifications(parent, done, func(names []string, values [][]byte) {
		set := map[*partition]struct{}{}
		for i, name := range names {
			if values[i] == nil {
				continue
			}
			tps, err := znode.DecodeISRChange(name, values[i])
			if err != nil {
				c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
				continue
			}
			for _, tp := range tps {
				if p := c.partition(tp); p != nil && p.known {
					set[p] = struct{}{}
				}
			}
		}
		ps := sorted(set)
		c.readStates(ps, func([]stateRead, map[*partition]outcome) {
			c.note(NoteISRChanged, len(ps), "")
			// A leader may have added a broker that died before the news of that reached it.
			broken := slices.DeleteFunc(slices.Clone(ps), func(p *partition) bool { return !c.wantsRepair(p) || p.topic.deleting })
			c.deleteNotifications(parent, names, func() { c.repairPartitions(broken, "isr-change", done) })
		})
	})
}

// logDirChange asks brokers that reported a dead log directory which replicas they lost: every replica's
// decision is sent again, and those that cannot be served answer KAFKA_STORAGE_ERROR.
func (c *Controller) logDirChange(done func()) {
	parent := znode.LogDirEventNotificationPath
	c.readNotifications(parent, done, func(names []string, values [][]byte) {
		ids := map[cluster.BrokerID]bool{}
		for i, name := range names {
			if values[i] == nil {
				continue
			}
			ev, err := znode.DecodeLogDirEvent(name, values[i])
			if err != nil {
				c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
				continue
			}
			ids[ev.Broker] = true
		}
		c.deleteNotifications(parent, names, func() {
			c.each(func(p *partition) {
				for i := range p.replicas {
					if id := p.replicas[i].broker; ids[id] && c.brokers[id] != nil && p.known && !p.topic.deleting {
						c.publishTo(p, id, "log-dir-failure")
					}
				}
			})
			done()
		})
	})
}

// replicasFailed takes replicas offline whose broker answered KAFKA_STORAGE_ERROR, and repairs their
// partitions as if the broker had died for them.
func (c *Controller) replicasFailed(b *broker, ps []*partition) {
	fresh := false
	for _, p := range ps {
		if p.topic.deleting || p.replicaIndex(b.info.ID) < 0 {
			continue
		}
		if _, known := b.offline[p]; !known {
			b.offline[p] = struct{}{}
			fresh = true
			c.emit(Note{Kind: NoteReplicaOffline, Partition: p.tp(), Broker: b.info.ID})
		}
		c.untrack(p, b.info.ID)
		c.settle(p)
	}
	if !fresh {
		return
	}
	c.enqueueOnce("ReplicasOffline", "", func(done func()) {
		affected := c.collect(func(p *partition) bool {
			for i := range p.replicas {
				if br := c.brokers[p.replicas[i].broker]; br != nil {
					if _, off := br.offline[p]; off {
						return true
					}
				}
			}
			return false
		})
		c.repairPartitions(affected, "log-dir-failure", done)
	})
}
