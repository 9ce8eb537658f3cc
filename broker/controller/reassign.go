package controller

import (
	"errors"
	"slices"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// Reassignment moves a partition to other brokers (V3 points F.1 to F.8, KAFKA_FACTS 2.10, KIP-455). With ORS the
// original, TRS the target and RS the present replicas, AR those being added and RR those being removed:
//
//	begin    RS = TRS + rest of ORS, AR, RR; next leader epoch; LeaderAndISR to all of RS
//	wait     until TRS is part of the ISR, which the leader grows itself
//	complete RS = TRS; leader within TRS, RR out of the ISR, next leader epoch; StopReplica(delete) to RR
//
// Apache Kafka writes the topic's node and the state of the partition one after the other; here both are in one
// multi, so that nobody ever sees an ISR outside RS and a crash leaves either step whole. What a crash leaves undone
// on brokers, the next controller's complete LeaderAndISR does: replicas that it does not name are put aside.
//
// All of it is remembered in the topic's node alone, from which the next controller goes on.

// movesPerMultiMax bounds the partitions of one topic that move in one multi; the topic's node is in it too.
const movesPerMultiMax = multiOpsMax - 1

// move is one partition on its way to target.
type move struct {
	p      *partition
	target []cluster.BrokerID
	// written says that a step must be written even when it changes no list: the begin of a reassignment, and the
	// first look of a new controller, which does not know whether the replicas have heard of the last step.
	written bool

	assignment cluster.Assignment // of the step that is being written
	state      znode.State
	version    int32 // of the state that the step is based on; the state is unknown when p is
	done       bool  // the step completes the reassignment
}

// moving is one run of moves through as many rounds as they need.
type moving struct {
	c        *Controller
	reason   string
	outcomes map[*partition]outcome
	perMulti int
	idle     int // rounds in a row in which nothing could be written
	then     func(map[*partition]outcome)
}

// moveAll takes the next step of each move that can take one. The answer tells what became of each; a move that
// still waits for replicas is unchanged.
func (c *Controller) moveAll(ms []*move, reason string, then func(map[*partition]outcome)) {
	d := &moving{c: c, reason: reason, outcomes: make(map[*partition]outcome, len(ms)), perMulti: movesPerMultiMax, then: then}
	d.round(ms)
}

func (d *moving) round(ms []*move) {
	if d.idle > decideRoundsMax {
		for _, m := range ms {
			d.outcomes[m.p] = outcomeBusy
		}
		d.c.armRepair()
		ms = nil
	}
	if len(ms) == 0 {
		d.then(d.outcomes)
		return
	}
	d.readTopics(ms, func(topics map[*topic]topicRead) {
		var known []*partition
		for _, m := range ms {
			if m.p.known {
				known = append(known, m.p)
			}
		}
		d.c.readStates(known, func(reads []stateRead, bad map[*partition]outcome) {
			for p, o := range bad {
				d.outcomes[p] = o
			}
			d.plan(ms, topics, reads)
		})
	})
}

// topicRead is a topic's node as just read.
type topicRead struct {
	value   znode.Topic
	version int32
}

func (d *moving) readTopics(ms []*move, then func(map[*topic]topicRead)) {
	var topics []*topic
	var reqs []zkop.Request
	for _, m := range ms {
		if !slices.Contains(topics, m.p.topic) {
			topics = append(topics, m.p.topic)
			reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(m.p.topic.name)})
		}
	}
	d.c.read(reqs, func(got []zkop.Response) {
		out := make(map[*topic]topicRead, len(topics))
		for i, t := range topics {
			if !d.c.usable(reqs[i].Path, &got[i]) {
				continue
			}
			z, err := znode.DecodeTopic(t.name, got[i].Data)
			if err != nil {
				d.c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
				continue
			}
			out[t] = topicRead{z, got[i].Stat.Version}
		}
		then(out)
	})
}

// plan lays out this round's writes: for each topic one multi with its node and as many partitions as fit; the rest
// waits for the next round, since each such write needs the version that the previous one left.
func (d *moving) plan(ms []*move, topics map[*topic]topicRead, reads []stateRead) {
	states := make(map[*partition]stateRead, len(reads))
	for _, r := range reads {
		states[r.p] = r
	}
	var rest []*move
	var order []*topic
	groups := map[*topic][]*move{}
	for _, m := range ms {
		p := m.p
		_, haveTopic := topics[p.topic]
		r, haveState := states[p]
		switch {
		case !haveTopic, p.known && !haveState:
			if d.outcomes[p] == outcomeUnchanged {
				d.outcomes[p] = outcomeRefused
			}
			continue
		case !d.c.step(m, r):
			d.outcomes[p] = outcomeUnchanged
			continue
		}
		group := groups[p.topic]
		if len(group) == 0 {
			order = append(order, p.topic)
		}
		if len(group) >= d.perMulti {
			rest = append(rest, m)
			continue
		}
		groups[p.topic] = append(group, m)
	}
	d.write(order, groups, topics, rest)
}

func (d *moving) write(order []*topic, groups map[*topic][]*move, topics map[*topic]topicRead, rest []*move) {
	ops := make([]writeOp, len(order))
	for i, t := range order {
		ops[i] = groupOp(t, topics[t], groups[t])
	}
	d.c.write(ops, func(results []writeResult) {
		progress := false
		for i, t := range order {
			switch err := results[i].err; {
			case err == nil:
				progress = true
				d.written(groups[t], results[i])
			case errors.Is(err, zkop.ErrBadVersion):
				rest = append(rest, groups[t]...)
			default:
				d.refused(groups[t], err)
			}
		}
		if d.idle++; progress {
			d.idle = 0
		} else if d.idle%3 == 0 {
			d.perMulti = max(1, d.perMulti/2) // a busy partition shall not hold up the others for ever
		}
		d.round(rest)
	})
}

// groupOp is one multi: the topic's node with the new assignments, and the states that go with them. Everything else
// in the node stays as it was read.
func groupOp(t *topic, read topicRead, ms []*move) writeOp {
	for _, m := range ms {
		read.value.Partitions[m.p.num] = m.assignment
	}
	op := setOp(znode.TopicPath(t.name), read.value.Encode(), read.version)
	for _, m := range ms {
		if m.p.known {
			op.reqs = append(op.reqs, setOp(znode.StatePath(m.p.tp()), m.state.Encode(), m.version).reqs...)
		}
	}
	return op
}

func (d *moving) refused(ms []*move, err error) {
	for _, m := range ms {
		d.outcomes[m.p] = outcomeRefused
		d.c.emit(Note{Kind: NoteBadZnode, Partition: m.p.tp(), Reason: "write reassignment: " + err.Error()})
	}
	d.c.armRepair()
}

// written adopts what has become durable. r is of the last state of the multi, all of which have one mzxid.
func (d *moving) written(ms []*move, r writeResult) {
	for _, m := range ms {
		d.outcomes[m.p] = outcomeChanged
		d.adopt(m, r.mzxid)
	}
}

func (d *moving) adopt(m *move, mzxid int64) {
	c, p := d.c, m.p
	if !p.assignment.Reassigning() {
		p.origin = slices.Clone(p.assignment.Replicas)
	}
	c.setAssignment(p, m.assignment)
	if p.known {
		p.li, p.version, p.mzxid = m.state.LeaderAndISR, cluster.ZKVersion(m.version)+1, mzxid
	}
	c.settle(p)
	if p.known {
		c.publish(p, d.reason)
	}
	if !m.done {
		c.emit(Note{Kind: NoteReassigning, Partition: p.tp(), Reason: d.reason})
		return
	}
	p.origin = nil
	c.emit(Note{Kind: NoteReassigned, Partition: p.tp(), Reason: d.reason})
	if _, listed := c.legacy[p.tp()]; listed {
		c.enqueueOnce("ZkPartitionReassignment", "", c.reassignZnode)
	}
	if t := p.topic; t.ineligible && !t.deleting && !t.reassigning() {
		c.enqueueOnce("TopicDeletion", "", c.deletionChange) // it has waited for this
	}
}

// setAssignment changes who holds the partition: new replicas are to be made, those that are not in the list any
// more are stopped and deleted where their broker lives. A dead one is put aside when its broker returns.
func (c *Controller) setAssignment(p *partition, a cluster.Assignment) {
	old := p.replicas
	p.assignment, p.replicas = a.Clone(), make([]replica, len(a.Replicas))
	for i, b := range a.Replicas {
		p.replicas[i].broker = b
		if k := slices.IndexFunc(old, func(r replica) bool { return r.broker == b }); k >= 0 {
			p.replicas[i] = old[k]
		} else {
			p.setReplica(b, replicaNew)
		}
	}
	for _, r := range old {
		if p.replicaIndex(r.broker) >= 0 {
			continue
		}
		c.untrack(p, r.broker)
		if b := c.brokers[r.broker]; b != nil {
			delete(b.offline, p)
			c.publishStop(p, r.broker, true)
		}
	}
	delete(c.reassigning, p)
	if a.Reassigning() {
		c.reassigning[p] = struct{}{}
	}
}

// step works out the next step of a move from the stored state; false: there is none now.
func (c *Controller) step(m *move, r stateRead) bool {
	p, cur := m.p, r.state.LeaderAndISR
	if !p.known {
		// Nobody has ever led it, so there is nothing to hand over.
		m.assignment, m.done = reassignTo(p.assignment, m.target), false
		if !m.assignment.Reassigning() {
			m.done = true
		}
		return m.written
	}
	isr := filter(cur.ISR, func(b cluster.BrokerID) bool { return !c.doubtful(p, b) })
	if len(isr) == 0 {
		isr = cur.ISR
	}
	a := c.keepCommitted(p, reassignTo(p.assignment, m.target), isr)
	m.done = !a.Reassigning() || c.complete(p, m.target, isr)
	if m.done {
		a = cluster.Assignment{Replicas: slices.Clone(m.target)}
	} else if !m.written {
		return false
	}
	isr = filter(isr, func(b cluster.BrokerID) bool { return slices.Contains(a.Replicas, b) })
	leader := cur.Leader
	if leader < 0 || !c.alive(leader, p) || !slices.Contains(isr, leader) {
		leader = c.firstEligibleOf(a.Replicas, p, isr)
	}
	m.assignment, m.version = a, r.version
	m.state = znode.State{LeaderAndISR: cluster.LeaderAndISR{
		Leader: leader, LeaderEpoch: cur.LeaderEpoch + 1, ControllerEpoch: c.epoch, ISR: isr, Recovering: cur.Recovering,
	}, Unknown: r.state.Unknown}
	return true
}

// reassignTo is the assignment with which the way to target begins: the target first, then the rest of the
// replicas that there were before the reassignment that may be under way (KIP-455).
func reassignTo(cur cluster.Assignment, target []cluster.BrokerID) cluster.Assignment {
	origin := originOf(cur)
	a := cluster.Assignment{Replicas: slices.Clone(target)}
	for _, b := range origin {
		if !slices.Contains(target, b) {
			a.Replicas = append(a.Replicas, b)
		}
	}
	a.Adding = filter(a.Replicas, func(b cluster.BrokerID) bool { return !slices.Contains(origin, b) })
	a.Removing = filter(a.Replicas, func(b cluster.BrokerID) bool { return !slices.Contains(target, b) })
	return a
}

// originOf is the replicas that a partition had before its reassignment.
func originOf(a cluster.Assignment) []cluster.BrokerID {
	return filter(a.Replicas, func(b cluster.BrokerID) bool { return !slices.Contains(a.Adding, b) })
}

// keepCommitted keeps replicas that a cancelled or overridden reassignment would drop, as ones that are being
// removed, when nobody else could lead: the last live member of the ISR, or all of the ISR if nobody in it would
// be left. Apache Kafka drops them and loses the partition.
func (c *Controller) keepCommitted(p *partition, a cluster.Assignment, isr []cluster.BrokerID) cluster.Assignment {
	stays := func(b cluster.BrokerID) bool { return slices.Contains(a.Replicas, b) }
	lives := func(b cluster.BrokerID) bool { return c.alive(b, p) }
	left := filter(isr, stays)
	if slices.ContainsFunc(left, lives) {
		return a
	}
	replicas := a.Replicas
	for _, b := range isr {
		if !slices.Contains(replicas, b) && (lives(b) || len(left) == 0) {
			a.Replicas, a.Removing = append(a.Replicas, b), append(a.Removing, b)
		}
	}
	return a
}

// complete: the whole target is in sync, and one of it can lead.
func (c *Controller) complete(p *partition, target, isr []cluster.BrokerID) bool {
	return subset(target, isr) && slices.ContainsFunc(target, func(b cluster.BrokerID) bool { return c.alive(b, p) })
}

// reassignMoved looks, after an ISR or a broker changed, whether a reassignment can be completed.
func (c *Controller) reassignMoved(p *partition) {
	if _, ok := c.reassigning[p]; ok && c.complete(p, p.assignment.Target(), p.li.ISR) {
		c.enqueueOnce("PartitionReassignmentIsrChange", "", c.advanceReassignments)
	}
}

// advanceReassignments completes the reassignments whose targets are in sync.
func (c *Controller) advanceReassignments(done func()) {
	var ms []*move
	for _, p := range sorted(c.reassigning) {
		if p.known && c.complete(p, p.assignment.Target(), p.li.ISR) {
			ms = append(ms, &move{p: p, target: p.assignment.Target()})
		}
	}
	c.moveAll(ms, "reassignment", func(map[*partition]outcome) { done() })
}

// resumeReassignments goes on with what an earlier controller began (V3 point D.7). Whatever it wrote, its
// replicas may not have heard of it, so each gets a new leader epoch.
func (c *Controller) resumeReassignments(done func()) {
	var ms []*move
	for _, p := range sorted(c.reassigning) {
		if p.known {
			ms = append(ms, &move{p: p, target: p.assignment.Target(), written: true})
		}
	}
	c.moveAll(ms, "reassignment-resumed", func(map[*partition]outcome) { done() })
}
