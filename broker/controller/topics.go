package controller

import (
	"errors"
	"slices"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// topicChange compares the topic list with memory (V3 points B.1, B.2): new topics get their first
// leaders, topics whose nodes were removed by hand are forgotten.
func (c *Controller) topicChange(done func()) {
	c.read([]zkop.Request{{Kind: zkop.Children, Path: znode.BrokerTopicsPath, Watch: true}}, func(got []zkop.Response) {
		if !c.usable(znode.BrokerTopicsPath, &got[0]) {
			done()
			return
		}
		names := slices.Clone(got[0].Children)
		slices.Sort(names)
		for _, t := range slices.Clone(c.order) {
			if _, there := slices.BinarySearch(names, t.name); !there && !t.finishing {
				c.forgetTopic(t)
			}
		}
		fresh := slices.DeleteFunc(names, func(n string) bool { return c.topics[n] != nil })
		c.createTopics(fresh, done)
	})
}

// forgetTopic drops a topic whose nodes are gone. Brokers are told that it does not exist any more.
func (c *Controller) forgetTopic(t *topic) {
	t.deleting = true
	for _, p := range t.partitions {
		c.dropTransition(p)
		c.publishMetadata(p)
	}
	c.removeTopic(t)
}

func (c *Controller) createTopics(names []string, done func()) {
	c.readTopics(names, func() {
		var ps []*partition
		for _, name := range names {
			t := c.topics[name]
			if t == nil {
				continue
			}
			c.emit(Note{Kind: NoteTopicCreated, Partition: cluster.TopicPartition{Topic: name, Partition: -1}, Count: len(t.partitions)})
			ps = append(ps, t.partitions...)
		}
		c.initPartitions(ps, done)
	})
}

// partitionsChange looks at a topic's node after its data changed: new partitions are started (V3 point
// H.1); while the topic is being deleted they are rolled back instead (KAFKA-6612). Changes to existing
// partitions are not taken from here, as in Kafka: assignments move by reassignment only. Partitions cannot
// be removed (V3 points 1.11, H.2 were never built): those that vanished are written back.
func (c *Controller) partitionsChange(name string, done func()) {
	path := znode.TopicPath(name)
	c.read([]zkop.Request{{Kind: zkop.Get, Path: path, Watch: true}}, func(got []zkop.Response) {
		t := c.topics[name]
		if t == nil || !c.usable(path, &got[0]) {
			done() // a new or vanished topic is the business of topicChange
			return
		}
		z, err := znode.DecodeTopic(name, got[0].Data)
		if err != nil {
			c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
			done()
			return
		}
		switch {
		case !z.ID.IsZero() && !t.id.IsZero() && z.ID != t.id:
			// Deleted and made anew behind our back: another topic of the same name.
			c.forgetTopic(t)
			c.createTopics([]string{name}, done)
		case t.deleting:
			c.rollBackPartitions(t, z, got[0].Stat.Version, done)
		default:
			c.restorePartitions(t, z, got[0].Stat.Version, func() { c.addPartitions(t, z, done) })
		}
	})
}

// restorePartitions puts partitions back that somebody cut out of the topic's node: their replicas live on,
// and the next controller would not know of them.
func (c *Controller) restorePartitions(t *topic, z znode.Topic, version int32, then func()) {
	lost := 0
	for _, p := range t.partitions {
		if _, there := z.Partitions[p.num]; !there {
			z.Partitions[p.num] = p.assignment.Clone()
			lost++
		}
	}
	if lost == 0 {
		then()
		return
	}
	c.emit(Note{Kind: NoteRemovalRefused, Partition: cluster.TopicPartition{Topic: t.name, Partition: -1}, Count: lost})
	// A version clash means another change, which the watch reports.
	c.write([]writeOp{setOp(znode.TopicPath(t.name), z.Encode(), version)}, func([]writeResult) { then() })
}

func (c *Controller) addPartitions(t *topic, z znode.Topic, done func()) {
	var fresh []*partition
	for _, num := range z.PartitionNumbers() {
		if t.partition(num) == nil {
			if p := c.addPartition(t, num, z.Partitions[num]); p != nil {
				fresh = append(fresh, p)
			}
		}
	}
	if len(fresh) > 0 {
		c.emit(Note{Kind: NoteTopicExpanded, Partition: cluster.TopicPartition{Topic: t.name, Partition: -1}, Count: len(fresh)})
	}
	c.initPartitions(fresh, done)
}

// rollBackPartitions removes partitions that were added while their topic is being deleted; the rest of the
// node (topic id, unknown fields) stays as it is.
func (c *Controller) rollBackPartitions(t *topic, z znode.Topic, version int32, done func()) {
	extra := false
	for _, num := range z.PartitionNumbers() {
		if t.partition(num) == nil {
			delete(z.Partitions, num)
			extra = true
		}
	}
	if !extra {
		done()
		return
	}
	// A version clash means another change, which the watch reports.
	c.write([]writeOp{setOp(znode.TopicPath(t.name), z.Encode(), version)}, func([]writeResult) { done() })
}

// initialState is one partition's first decision on its way into ZooKeeper.
type initialState struct {
	p     *partition
	state znode.State
}

// initPartitions makes the first decision for partitions without state (V3 points B.3 to B.6): the first
// live assigned replica leads, the ISR is all live ones, the epoch is 0. Partitions without a live replica
// stay new and are tried again when a broker starts.
func (c *Controller) initPartitions(ps []*partition, done func()) {
	var init []initialState
	for _, p := range ps {
		if p.known || p.topic.deleting {
			continue
		}
		c.settle(p)
		isr := filter(p.assignment.Replicas, func(b cluster.BrokerID) bool { return c.live(b, p) })
		if len(isr) == 0 {
			c.emit(Note{Kind: NoteNoLeader, Partition: p.tp(), Reason: "no live replica at creation"})
			continue
		}
		li := cluster.LeaderAndISR{Leader: isr[0], ISR: isr, ControllerEpoch: c.epoch}
		init = append(init, initialState{p, znode.State{LeaderAndISR: li}})
	}
	c.createStates(init, done)
}

// parentsOf are the creations of /brokers/topics/<t>/partitions for topics that may have none yet.
func parentsOf(init []initialState) []writeOp {
	var ops []writeOp
	var last *topic
	for _, in := range init {
		if t := in.p.topic; t != last && !t.parentKnown {
			op := createOp(znode.TopicPartitionsPath(t.name), nil)
			op.alone = true // it may be there already
			ops = append(ops, op)
		}
		last = in.p.topic
	}
	return ops
}

// createStates creates the partition nodes and their states, both of a partition in one multi and as many
// partitions per multi as fit, all in one round.
func (c *Controller) createStates(init []initialState, done func()) {
	ops := parentsOf(init)
	parents := len(ops)
	for _, in := range init {
		ops = append(ops, writeOp{reqs: []zkop.Request{
			{Kind: zkop.Create, Path: znode.PartitionPath(in.p.tp())},
			{Kind: zkop.Create, Path: znode.StatePath(in.p.tp()), Data: in.state.Encode()},
		}})
	}
	c.write(ops, func(results []writeResult) {
		results = results[parents:]
		var half []initialState
		for i, in := range init {
			switch err := results[i].err; {
			case err == nil:
				c.initialised(in)
			case errors.Is(err, zkop.ErrNodeExists):
				half = append(half, in)
			default:
				c.createFailed(in.p, err)
			}
		}
		c.completeStates(half, done)
	})
}

// completeStates handles partitions whose nodes exist already, left by a controller that died on the way:
// with only the parent there, the state is created; with a state there, it is adopted and decided anew with
// the next epoch (V3 point B.5).
func (c *Controller) completeStates(half []initialState, done func()) {
	ops := make([]writeOp, len(half))
	for i, in := range half {
		ops[i] = createOp(znode.StatePath(in.p.tp()), in.state.Encode())
	}
	c.write(ops, func(results []writeResult) {
		var existing []*partition
		for i, in := range half {
			switch err := results[i].err; {
			case err == nil:
				c.initialised(in)
			case errors.Is(err, zkop.ErrNodeExists):
				existing = append(existing, in.p)
			default:
				c.createFailed(in.p, err)
			}
		}
		c.decide(existing, "topic-creation", c.repairStrategy, func(map[*partition]outcome) { done() })
	})
}

func (c *Controller) createFailed(p *partition, err error) {
	c.emit(Note{Kind: NoteBadZnode, Partition: p.tp(), Reason: "create state: " + err.Error()})
	p.topic.parentKnown = false
	c.armRepair()
}

func (c *Controller) initialised(in initialState) {
	p := in.p
	p.topic.parentKnown = true
	p.known, p.li, p.version, p.isNew = true, in.state.LeaderAndISR, 0, true
	for _, br := range c.brokers { // written after every registration that we know of
		p.mzxid = max(p.mzxid, int64(br.info.Epoch)+1)
	}
	c.settle(p)
	c.reassignMoved(p)
	c.publish(p, "topic-creation")
}

// topicConfigChanged looks at offline partitions whose topic may have become eligible for unclean elections.
func (c *Controller) topicConfigChanged(name string) {
	if c.role != roleActive {
		return
	}
	c.enqueueOnce("TopicUncleanLeaderElectionEnable", name, func(done func()) {
		ps := c.collect(func(p *partition) bool {
			return p.known && p.state != partitionOnline && (name == "" || p.topic.name == name)
		})
		c.repairPartitions(ps, "unclean-enabled", done)
	})
}
