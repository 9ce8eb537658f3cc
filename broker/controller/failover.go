package controller

import (
	"crypto/sha256"
	"errors"
	"slices"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// repairs remembers what a later look must repair.
type repairs struct {
	armed bool
	// unreadableTopics: the value of some topic's znode was refused, so not every assignment is known.
	unreadableTopics bool
}

// armRepair arranges another look at what could not be done now.
func (c *Controller) armRepair() {
	if !c.repair.armed {
		c.repair.armed = true
		c.emit(ArmTimer{Timer: Timer{Kind: TimerRepair}, At: c.now.Add(repairDelay)})
	}
}

func (c *Controller) repairDue() {
	c.repair.armed = false
	c.enqueueOnce("Repair", "", func(done func()) {
		c.repairPartitions(c.collect(c.wantsRepair), "repair", func() {
			c.resumeDeletions(func() { c.advanceReassignments(done) })
		})
	})
}

// fixedPaths are the lists that the controller watches; a missing one (nobody created it yet) is made.
var fixedPaths = []string{
	znode.BrokersPath, znode.BrokerIDsPath, znode.BrokerTopicsPath, znode.AdminPath, znode.DeleteTopicsPath,
	znode.ISRChangeNotificationPath, znode.LogDirEventNotificationPath,
}

// loaded collects what one takeover reads.
type loaded struct {
	brokers       map[cluster.BrokerID]cluster.Broker
	topics        []string
	deletes       []string
	notifications []string // paths of ISR and log-dir notifications that were pending
	alerts        []string
	preferred     bool
	reassign      bool // /admin/reassign_partitions exists
}

// load takes over the cluster in Kafka's order (KAFKA_FACTS 2.1): watches first, so that nothing that
// happens during the load is missed; then brokers, topics and every state, each in one pipelined round; only
// then decisions. A controller's memory comes from ZooKeeper alone (V3 points D.3, D.8).
func (c *Controller) load(done func()) {
	reqs := []zkop.Request{
		{Kind: zkop.Children, Path: znode.BrokerIDsPath, Watch: true},
		{Kind: zkop.Children, Path: znode.BrokerTopicsPath, Watch: true},
		{Kind: zkop.Children, Path: znode.DeleteTopicsPath, Watch: true},
		{Kind: zkop.Children, Path: znode.LogDirEventNotificationPath, Watch: true},
		{Kind: zkop.Children, Path: znode.ISRChangeNotificationPath, Watch: true},
		{Kind: zkop.Exists, Path: znode.PreferredReplicaElectionPath, Watch: true},
		{Kind: zkop.Children, Path: znode.LeadershipAlertsPath},
		{Kind: zkop.Exists, Path: znode.FeaturePath},
		{Kind: zkop.Get, Path: znode.BrokerDataEpochsPath},
		{Kind: zkop.Exists, Path: znode.ReassignPartitionsPath, Watch: true},
	}
	c.read(reqs, func(got []zkop.Response) {
		for i := range 5 {
			if errors.Is(got[i].Err, zkop.ErrNoNode) {
				c.createFixed(done)
				return
			}
			if got[i].Err != nil {
				c.abandon("takeover: " + reqs[i].Path + ": " + got[i].Err.Error())
				return
			}
		}
		l := &loaded{topics: got[1].Children, deletes: got[2].Children, alerts: got[6].Children, preferred: got[5].Err == nil, reassign: got[9].Err == nil}
		for _, n := range got[3].Children {
			l.notifications = append(l.notifications, znode.LogDirEventNotificationPath+"/"+n)
		}
		for _, n := range got[4].Children {
			l.notifications = append(l.notifications, znode.ISRChangeNotificationPath+"/"+n)
		}
		slices.Sort(l.topics)
		slices.Sort(l.deletes)
		slices.Sort(l.notifications)
		c.transitions.parentKnown = got[6].Err == nil
		c.loadDataEpochs(&got[8])
		c.loadHousekeeping(l, errors.Is(got[7].Err, zkop.ErrNoNode), done)
	})
}

func (c *Controller) createFixed(done func()) {
	ops := make([]writeOp, len(fixedPaths))
	for i, path := range fixedPaths {
		ops[i] = createOp(path, nil)
	}
	c.write(ops, func(results []writeResult) {
		for i, r := range results {
			if r.err != nil && !errors.Is(r.err, zkop.ErrNodeExists) {
				c.abandon("takeover: create " + fixedPaths[i] + ": " + r.err.Error())
				return
			}
		}
		c.load(done)
	})
}

// loadHousekeeping deletes pending notifications, since everything is about to be read and sent anyway, and
// creates /feature on a new cluster.
func (c *Controller) loadHousekeeping(l *loaded, noFeature bool, done func()) {
	var ops []writeOp
	for _, path := range l.notifications {
		ops = append(ops, deleteOp(path))
	}
	if noFeature {
		ops = append(ops, createOp(znode.FeaturePath, znode.NewFeature().Encode()))
	}
	c.write(ops, func([]writeResult) {
		c.readRegistrationsOf(l, done)
	})
}

func (c *Controller) readRegistrationsOf(l *loaded, done func()) {
	c.readBrokers(func(now map[cluster.BrokerID]cluster.Broker) {
		l.brokers = now
		c.readTopics(l.topics, func() { c.loadStates(l, done) })
	})
}

// readTopics reads topic nodes, leaving a watch on each, and adds those that are not known yet. A topic
// whose value cannot be understood is left alone.
func (c *Controller) readTopics(names []string, then func()) {
	reqs := make([]zkop.Request, len(names))
	for i, name := range names {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(name), Watch: true}
	}
	c.read(reqs, func(got []zkop.Response) {
		var withoutID []idlessTopic
		for i, name := range names {
			if !c.usable(reqs[i].Path, &got[i]) {
				continue
			}
			z, err := znode.DecodeTopic(name, got[i].Data)
			if err != nil {
				c.repair.unreadableTopics = true
				c.emit(Note{Kind: NoteBadZnode, Reason: err.Error()})
				continue
			}
			t := c.addTopic(name, z)
			if t.id.IsZero() {
				withoutID = append(withoutID, idlessTopic{t, z, got[i].Stat.Version})
			}
		}
		c.fillTopicIDs(withoutID, then)
	})
}

func (c *Controller) addTopic(name string, z znode.Topic) *topic {
	t := &topic{name: name, id: z.ID}
	for _, num := range z.PartitionNumbers() {
		c.addPartition(t, num, z.Partitions[num])
	}
	c.insertTopic(t)
	return t
}

func (c *Controller) addPartition(t *topic, num int32, a cluster.Assignment) *partition {
	if !validAssignment(a) {
		c.repair.unreadableTopics = true
		c.emit(Note{Kind: NoteBadZnode, Partition: cluster.TopicPartition{Topic: t.name, Partition: num},
			Reason: "the assignment is empty or names a broker twice"})
		return nil
	}
	// Lists of a running reassignment that name others than replicas, or leave no target, cannot be followed.
	replica := func(b cluster.BrokerID) bool { return slices.Contains(a.Replicas, b) }
	a.Adding, a.Removing = filter(a.Adding, replica), filter(a.Removing, replica)
	if len(a.Target()) == 0 || len(originOf(a)) == 0 {
		a.Adding, a.Removing = nil, nil
	}
	p := t.add(num, a)
	if a.Reassigning() {
		c.reassigning[p] = struct{}{}
	}
	return p
}

// idlessTopic is a topic node written by a tool or broker from before topic ids.
type idlessTopic struct {
	t       *topic
	value   znode.Topic
	version int32
}

// fillTopicIDs gives an id to topics that have none: the one by which this broker knows the topic, since replicas put a log aside
// that has another id; else a new one, as Kafka since 2.8 does. Everything else in the node is kept. A clash with another writer
// leaves the topic without id until its data watch fires.
func (c *Controller) fillTopicIDs(list []idlessTopic, then func()) {
	if len(list) == 0 {
		then()
		return
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].t.name
	}
	c.recall(names, func(known map[string]cluster.TopicID) { c.writeTopicIDs(list, known, then) })
}

// recall is a round like one with ZooKeeper: whoever calls it must be the running job.
func (c *Controller) recall(names []string, then func(map[string]cluster.TopicID)) {
	invariant.Assert(c.zkThen == nil && c.zkRetry == nil, "ids are recalled in the middle of a ZooKeeper round")
	c.next.zk++
	c.zkID = c.next.zk
	c.zkThen = func([]zkop.Response) {
		ids := c.recalledIDs
		c.recalledIDs = nil
		then(ids)
	}
	c.emit(RecallTopicIDs{ID: c.zkID, Topics: names})
}

func (c *Controller) recalled(ev TopicIDsRecalled) {
	if ev.ID == c.zkID {
		c.recalledIDs = ev.IDs
	}
	c.zkDone(ZKDone{At: ev.At, ID: ev.ID})
}

func (c *Controller) writeTopicIDs(list []idlessTopic, known map[string]cluster.TopicID, then func()) {
	ops := make([]writeOp, len(list))
	for i := range list {
		id := known[list[i].t.name]
		if id.IsZero() || c.topicByID[id] != nil {
			id = c.newTopicID(list[i].t.name)
		}
		list[i].value.ID = id
		ops[i] = setOp(znode.TopicPath(list[i].t.name), list[i].value.Encode(), list[i].version)
	}
	c.write(ops, func(results []writeResult) {
		for i, r := range results {
			if r.err == nil {
				list[i].t.id = list[i].value.ID
				c.topicByID[list[i].t.id] = list[i].t
			}
		}
		then()
	})
}

// newTopicID derives a version 4 UUID from the shell's randomness, so that the core stays reproducible.
func (c *Controller) newTopicID(name string) cluster.TopicID {
	var n byte
	return cluster.NewTopicID(func(b []byte) {
		n++
		sum := sha256.Sum256(append(append(c.seed[:], n), name...))
		copy(b, sum[:])
	})
}

// loadStates reads the state of every partition and of every pending alert.
func (c *Controller) loadStates(l *loaded, done func()) {
	var ps []*partition
	c.each(func(p *partition) { ps = append(ps, p) })
	reqs := make([]zkop.Request, len(ps))
	for i, p := range ps {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.StatePath(p.tp())}
	}
	c.read(reqs, func(got []zkop.Response) {
		for i, p := range ps {
			r, o := c.parseState(p, &got[i])
			switch o {
			case outcomeUnchanged:
				p.known, p.li, p.version = true, r.state.LeaderAndISR, cluster.ZKVersion(r.version)
				p.mzxid = got[i].Stat.Mzxid
				p.topic.parentKnown = true
			case outcomeRefused:
				c.repair.unreadableTopics = true
			}
		}
		c.takeOver(l, done)
	})
}

// takeOver decides and publishes: all brokers are sent everything (V3 point D.4), deaths in the gap are
// handled (D.5), topics made in the gap get leaders (D.6).
func (c *Controller) takeOver(l *loaded, done func()) {
	c.role = roleActive
	ids := make([]cluster.BrokerID, 0, len(l.brokers))
	for id := range l.brokers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var crashed []cluster.BrokerID
	for _, id := range ids {
		c.addBroker(l.brokers[id])
		if c.crashed(l.brokers[id]) {
			crashed = append(crashed, id)
		}
	}
	c.adoptAlerts(l.alerts)
	c.markDeletions(l.deletes)
	c.each(func(p *partition) {
		c.settle(p)
		if p.known && !p.topic.deleting {
			c.publish(p, "controller-failover")
		}
	})
	c.repairCrashed(crashed, "controller-failover", func() {
		c.note(NoteFailover, len(c.order), "")
		c.startTerm(l)
		c.noteDataEpochs(done)
	})
}

// startTerm queues what comes after the takeover: topic deletions, a pending preferred election, timers.
func (c *Controller) startTerm(l *loaded) {
	c.sweepAlerts()
	if l.reassign { // the list wins over what runs
		c.enqueueOnce("ZkPartitionReassignment", "", c.reassignZnode)
	}
	if len(c.reassigning) > 0 {
		c.enqueueOnce("ReassignmentResume", "", c.resumeReassignments)
	}
	if len(l.deletes) > 0 {
		c.enqueueOnce("TopicDeletion", "", c.deletionChange)
	}
	if l.preferred {
		c.enqueueOnce("ManualLeaderBalance", "", c.preferredZnode)
	}
	if c.cfg.AutoRebalance {
		c.emit(ArmTimer{Timer: Timer{Kind: TimerRebalance}, At: c.now.Add(rebalanceFirstDelay)})
	}
}

// adoptAlerts takes over the alerts of earlier controllers: as every decision is sent anew, each is
// confirmed (and its alert cleared) or raised again. Those of partitions that are gone are removed.
func (c *Controller) adoptAlerts(children []string) {
	slices.Sort(children)
	for _, child := range children {
		tp, err := znode.ParseLeadershipAlertChild(child)
		if err != nil {
			continue // not ours
		}
		p := c.partition(tp)
		if p == nil {
			p = &partition{topic: &topic{name: tp.Topic, deleting: true}, num: tp.Partition}
		}
		p.alertNode = true
		c.transitions.inherited = append(c.transitions.inherited, p)
	}
}

// sweepAlerts removes inherited alerts for which nothing is awaited any more.
func (c *Controller) sweepAlerts() {
	for _, p := range c.transitions.inherited {
		if p.transition == nil && p.alertNode {
			c.alertChanged(p)
		}
	}
	c.transitions.inherited = nil
}
