package controller

import (
	"slices"
	"strings"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
)

// partitionState is Kafka's partition state machine (KAFKA_FACTS 2.2).
type partitionState uint8

const (
	partitionNonExistent partitionState = iota
	partitionNew                        // assignment known, nothing decided yet
	partitionOnline                     // a live broker leads
	partitionOffline                    // decided once, no live leader now
)

// partitionFrom lists the states from which each partition state may be entered.
var partitionFrom = [...][]partitionState{
	partitionNonExistent: {partitionOffline},
	partitionNew:         {partitionNonExistent},
	partitionOnline:      {partitionNew, partitionOnline, partitionOffline},
	partitionOffline:     {partitionNew, partitionOnline, partitionOffline},
}

// replicaState is Kafka's replica state machine (KAFKA_FACTS 2.3).
type replicaState uint8

const (
	replicaNonExistent replicaState = iota
	replicaNew
	replicaOnline
	replicaOffline
	replicaDeletionStarted
	replicaDeletionSuccessful
	replicaDeletionIneligible
)

// replicaFrom lists the states from which each replica state may be entered.
var replicaFrom = [...][]replicaState{
	replicaNonExistent:        {replicaDeletionSuccessful},
	replicaNew:                {replicaNonExistent},
	replicaOnline:             {replicaNew, replicaOnline, replicaOffline, replicaDeletionIneligible},
	replicaOffline:            {replicaNew, replicaOnline, replicaOffline, replicaDeletionIneligible},
	replicaDeletionStarted:    {replicaOffline},
	replicaDeletionSuccessful: {replicaDeletionStarted},
	replicaDeletionIneligible: {replicaOffline, replicaDeletionStarted},
}

// replica is one assigned copy of a partition.
type replica struct {
	broker cluster.BrokerID
	state  replicaState
}

// partition is what the controller knows of one partition. li and version mirror the state znode as last
// read or written; leaders that write their ISR themselves may be ahead of it, so every decision reads first.
type partition struct {
	topic      *topic
	num        int32
	assignment cluster.Assignment
	origin     []cluster.BrokerID // replicas in order before the reassignment that this controller began
	state      partitionState
	replicas   []replica // parallel to assignment.Replicas

	known   bool // the state znode exists
	li      cluster.LeaderAndISR
	version cluster.ZKVersion
	mzxid   int64 // of the state's last write, as last read or written; see doubtful
	isNew   bool  // no LeaderAndISR has been confirmed since this controller created it

	transition *transition
	alerted    bool // an alert is raised
	alertNode  bool // its znode exists
}

func (p *partition) tp() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: p.topic.name, Partition: p.num}
}

func comparePartitions(a, b *partition) int {
	if a.topic == b.topic {
		return int(a.num) - int(b.num)
	}
	if n := strings.Compare(a.topic.name, b.topic.name); n != 0 {
		return n
	}
	return a.topic.seq - b.topic.seq // the deleted one before the one that was made anew
}

// setState moves the partition along the transition table.
func (p *partition) setState(to partitionState) {
	invariant.Assert(slices.Contains(partitionFrom[to], p.state), "partition %v: %d -> %d", p.tp(), p.state, to)
	p.state = to
}

// setReplica moves one replica along the transition table.
func (p *partition) setReplica(b cluster.BrokerID, to replicaState) {
	i := p.replicaIndex(b)
	invariant.Assert(i >= 0, "partition %v has no replica on %d", p.tp(), b)
	from := p.replicas[i].state
	invariant.Assert(slices.Contains(replicaFrom[to], from), "replica %v on %d: %d -> %d", p.tp(), b, from, to)
	p.replicas[i].state = to
}

func (p *partition) replicaIndex(b cluster.BrokerID) int {
	for i := range p.replicas {
		if p.replicas[i].broker == b {
			return i
		}
	}
	return -1
}

// topic is one topic with its partitions in ascending order of number.
type topic struct {
	name       string
	id         cluster.TopicID
	seq        int // rises with each topic added; tells namesakes apart
	partitions []*partition
	// parentKnown: the node /brokers/topics/<t>/partitions exists.
	parentKnown bool

	deleting   bool
	started    bool // deletion has been started by this controller
	finishing  bool // znodes are being removed
	ineligible bool // deletion waits for a broker, a log directory or a reassignment
}

func (t *topic) partition(num int32) *partition {
	i, ok := slices.BinarySearchFunc(t.partitions, num, func(p *partition, n int32) int { return int(p.num) - int(n) })
	if !ok {
		return nil
	}
	return t.partitions[i]
}

func (t *topic) reassigning() bool {
	for _, p := range t.partitions {
		if p.assignment.Reassigning() {
			return true
		}
	}
	return false
}

// add inserts a new partition. The assignment has been checked by validAssignment.
func (t *topic) add(num int32, a cluster.Assignment) *partition {
	p := &partition{topic: t, num: num, assignment: a, replicas: make([]replica, len(a.Replicas))}
	for i, b := range a.Replicas {
		p.replicas[i].broker = b
	}
	i, found := slices.BinarySearchFunc(t.partitions, num, func(p *partition, n int32) int { return int(p.num) - int(n) })
	invariant.Assert(!found, "partition %s-%d added twice", t.name, num)
	t.partitions = slices.Insert(t.partitions, i, p)
	p.setState(partitionNew)
	for _, r := range a.Replicas {
		p.setReplica(r, replicaNew)
	}
	return p
}

// validAssignment refuses what an admin tool should not have written: no replica, or one broker twice
// (V3 point 1.5: the broker id serves as replica id).
func validAssignment(a cluster.Assignment) bool {
	if len(a.Replicas) == 0 {
		return false
	}
	for i, b := range a.Replicas {
		if b < 0 || slices.Contains(a.Replicas[:i], b) {
			return false
		}
	}
	return true
}

// insertTopic keeps c.order sorted by name.
func (c *Controller) insertTopic(t *topic) {
	i, found := slices.BinarySearchFunc(c.order, t.name, func(t *topic, n string) int { return strings.Compare(t.name, n) })
	invariant.Assert(!found, "topic %s added twice", t.name)
	c.topicSeq++
	t.seq = c.topicSeq
	c.order = slices.Insert(c.order, i, t)
	c.topics[t.name] = t
	if !t.id.IsZero() {
		c.topicByID[t.id] = t
	}
}

func (c *Controller) removeTopic(t *topic) {
	if i := slices.Index(c.order, t); i >= 0 {
		c.order = slices.Delete(c.order, i, i+1)
	}
	for _, p := range t.partitions {
		delete(c.reassigning, p)
	}
	delete(c.topics, t.name)
	if c.topicByID[t.id] == t {
		delete(c.topicByID, t.id)
	}
}

func (c *Controller) partition(tp cluster.TopicPartition) *partition {
	if t := c.topics[tp.Topic]; t != nil {
		return t.partition(tp.Partition)
	}
	return nil
}

// each visits every partition in order of topic and number.
func (c *Controller) each(visit func(*partition)) {
	for _, t := range c.order {
		for _, p := range t.partitions {
			visit(p)
		}
	}
}

// collect returns the partitions of live topics (not being deleted) that satisfy keep.
func (c *Controller) collect(keep func(*partition) bool) []*partition {
	var out []*partition
	for _, t := range c.order {
		if t.deleting {
			continue
		}
		for _, p := range t.partitions {
			if keep(p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// alive: the replica's process runs and its log directory works. It may be shutting down.
func (c *Controller) alive(b cluster.BrokerID, p *partition) bool {
	br := c.brokers[b]
	if br == nil {
		return false
	}
	_, off := br.offline[p]
	return !off
}

// live: alive and not about to stop, so it may take over a leadership.
func (c *Controller) live(b cluster.BrokerID, p *partition) bool {
	return c.alive(b, p) && !c.brokers[b].shuttingDown
}

// brokerIDs returns the registered brokers in ascending order.
func (c *Controller) brokerIDs() []cluster.BrokerID {
	ids := make([]cluster.BrokerID, 0, len(c.brokers))
	for id := range c.brokers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// settle derives the partition's and replicas' states from the decision and who is alive.
func (c *Controller) settle(p *partition) {
	if p.topic.deleting {
		return
	}
	for i := range p.replicas {
		to := replicaOffline
		if c.alive(p.replicas[i].broker, p) {
			to = replicaOnline
		}
		p.setReplica(p.replicas[i].broker, to)
	}
	switch {
	case !p.known:
		// New stays New until a first decision could be made.
	case p.li.Leader >= 0 && c.alive(p.li.Leader, p):
		p.setState(partitionOnline)
	default:
		p.setState(partitionOffline)
	}
}
