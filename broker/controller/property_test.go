package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// stateID tells the state nodes of namesake topics apart.
type stateID struct {
	czxid int64
	tp    cluster.TopicPartition
}

// history is what the invariants of KAFKA_FACTS part 7 are checked against.
type history struct {
	w       *world
	epochs  map[stateID]cluster.LeaderEpoch
	isr     map[stateID][]cluster.BrokerID
	leaders map[stateID]map[cluster.LeaderEpoch]cluster.BrokerID
	fail    func(format string, args ...any)
}

// check looks at every state znode (invariants 2 and 3).
func (h *history) check() {
	h.w.tree.Walk(znode.BrokerTopicsPath, func(path string, data []byte, stat zkop.Stat) bool {
		tp, ok := znode.ParseStatePath(path)
		if !ok {
			return true
		}
		s, err := znode.DecodeState(tp, data)
		if err != nil {
			h.fail("%s: %v", path, err)
		}
		id := stateID{stat.Czxid, tp}
		if s.LeaderEpoch < h.epochs[id] {
			h.fail("%v: leader epoch fell from %d to %d", tp, h.epochs[id], s.LeaderEpoch)
		}
		h.epochs[id], h.isr[id] = s.LeaderEpoch, s.ISR
		if h.leaders[id] == nil {
			h.leaders[id] = map[cluster.LeaderEpoch]cluster.BrokerID{}
		}
		if l, known := h.leaders[id][s.LeaderEpoch]; known && l != s.Leader {
			h.fail("%v: epoch %d named leader %d and then %d", tp, s.LeaderEpoch, l, s.Leader)
		}
		h.leaders[id][s.LeaderEpoch] = s.Leader
		h.checkISR(tp, s)
		return true
	})
}

func (h *history) checkISR(tp cluster.TopicPartition, s znode.State) {
	if len(s.ISR) == 0 {
		h.fail("%v: the ISR is empty", tp)
	}
	if s.Leader != cluster.NoLeader && !slices.Contains(s.ISR, s.Leader) {
		h.fail("%v: leader %d is not in the ISR %v", tp, s.Leader, s.ISR)
	}
	resp := h.w.do(h.w.admin, zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(tp.Topic)})
	z, err := znode.DecodeTopic(tp.Topic, resp.Data)
	if err != nil || !subset(s.ISR, z.Partitions[tp.Partition].Replicas) {
		h.fail("%v: ISR %v is not a subset of %v", tp, s.ISR, z.Partitions[tp.Partition].Replicas)
	}
}

// written checks invariant 1: only the controller of the present epoch gets a fenced write through.
func (h *history) written(n *node, req zkop.Request) {
	if len(req.Ops) == 0 || req.Ops[0].Kind != zkop.Check {
		return
	}
	resp := h.w.do(h.w.admin, zkop.Request{Kind: zkop.Get, Path: znode.ControllerEpochPath})
	epoch, err := znode.DecodeControllerEpoch(resp.Data)
	if err != nil || req.Ops[0].Version != resp.Stat.Version {
		h.fail("controller %d wrote with fence v%d, /controller_epoch is v%d (%v)", n.id, req.Ops[0].Version, resp.Stat.Version, err)
	}
	for _, op := range req.Ops[1:] {
		tp, ok := znode.ParseStatePath(op.Path)
		if !ok || op.Data == nil {
			continue
		}
		if s, err := znode.DecodeState(tp, op.Data); err != nil || s.ControllerEpoch != epoch {
			h.fail("controller %d of epoch %d wrote %s", n.id, epoch, op.Data)
		} else if op.Kind == zkop.Set {
			h.shrinksOnly(tp, s)
		}
	}
}

// shrinksOnly: a controller never puts a replica into the ISR; a leader's shrink that it overwrote would do
// so and could lose committed records (V3 discussion 3).
func (h *history) shrinksOnly(tp cluster.TopicPartition, s znode.State) {
	stat := h.w.do(h.w.admin, zkop.Request{Kind: zkop.Exists, Path: znode.StatePath(tp)}).Stat
	before, known := h.isr[stateID{stat.Czxid, tp}]
	if known && !s.Recovering && !subset(s.ISR, before) {
		h.fail("%v: a controller grew the ISR %v to %v", tp, before, s.ISR)
	}
}

// chaos is one random run: four brokers, of which all may become controller.
type chaos struct {
	*world
	h      *history
	rt     *rapid.T
	topics int
	// unnotified ISR changes will be announced later; stopping brokers asked for a controlled shutdown.
	unnotified map[cluster.TopicPartition]bool
	stopping   map[cluster.BrokerID]bool
	nextID     uint64
	log        []string
}

func (c *chaos) note(format string, args ...any) { c.log = append(c.log, fmt.Sprintf(format, args...)) }

func (c *chaos) pick(label string) *node {
	return c.nodes[cluster.BrokerID(rapid.IntRange(1, 4).Draw(c.rt, label))]
}

// act does one random thing; the weights favour the steps that make progress.
func (c *chaos) act() {
	switch k := rapid.IntRange(0, 99).Draw(c.rt, "act"); {
	case k < 40:
		n := c.pick("zk")
		fault := zkFault(0)
		if f := rapid.IntRange(0, 9).Draw(c.rt, "fault"); f > 7 {
			fault = zkFault(f - 7)
		}
		rounds := rapid.IntRange(1, 4).Draw(c.rt, "rounds")
		c.note("zk %d fault %d, %d rounds", n.id, fault, rounds)
		c.zkStep(n, fault)
		for range rounds - 1 {
			c.zkStep(n, zkOK)
		}
	case k < 65:
		c.deliverOne()
	case k < 75:
		d := time.Duration(rapid.IntRange(1, 6000).Draw(c.rt, "ms")) * time.Millisecond
		c.note("tick %v", d)
		c.fireTimers(d)
	case k < 80:
		c.kill()
	case k < 86:
		c.revive()
	case k < 91:
		c.leaderWrites()
	case k < 95:
		c.admin2()
	default:
		c.request()
	}
}

// deliverOne serves or loses one waiting request; a lost one may have been served all the same.
func (c *chaos) deliverOne() {
	n := c.pick("from")
	if len(n.sends) == 0 {
		return
	}
	i := rapid.IntRange(0, len(n.sends)-1).Draw(c.rt, "send")
	s := n.sends[i]
	n.sends = slices.Delete(n.sends, i, i+1)
	lost := rapid.IntRange(0, 9).Draw(c.rt, "lost")
	c.note("send %d->%d lost=%d", n.id, s.Broker, lost)
	if lost < 8 {
		c.answer(n, s)
		return
	}
	if target := c.nodes[s.Broker]; lost == 8 && target.session != 0 {
		target.serve(c.world, s.Request)
	}
	c.step(n, Answered{At: c.now, Broker: s.Broker, Token: s.Token, Err: fmt.Errorf("connection reset")})
}

// kill ends a broker's session; half of the times the process learns of it only later.
func (c *chaos) kill() {
	n := c.pick("kill")
	if n.session == 0 {
		return
	}
	told := rapid.Bool().Draw(c.rt, "told")
	c.note("kill %d told=%v", n.id, told)
	c.expire(n, told)
}

func (c *chaos) revive() {
	n := c.pick("revive")
	if n.session == 0 || !c.registered(n) {
		c.restart(n)
	}
}

func (c *chaos) restart(n *node) {
	c.note("restart %d", n.id)
	if n.session != 0 { // it did not know yet
		n.session, n.zk = 0, nil
		c.step(n, SessionEnded{At: c.now, Reason: "late news"})
		n.sends = nil
	}
	delete(c.stopping, n.id)
	c.start(n.id, Config{}, true)
}

func (c *chaos) registered(n *node) bool {
	return c.do(c.world.admin, zkop.Request{Kind: zkop.Exists, Path: znode.BrokerPath(n.id)}).Stat.EphemeralOwner == n.session
}

// leaderWrites lets some partition's leader, which knows the newest version, change its ISR by itself.
func (c *chaos) leaderWrites() {
	tp := cluster.TopicPartition{Topic: fmt.Sprintf("t%d", rapid.IntRange(0, 3).Draw(c.rt, "topic")), Partition: 0}
	s, version, ok := c.state(tp)
	if !ok || s.Leader < 0 {
		return
	}
	n := c.nodes[s.Leader]
	if n.session == 0 || n.leaderEpochs[tp] != int32(s.LeaderEpoch) {
		return
	}
	resp := c.do(c.world.admin, zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(tp.Topic)})
	z, err := znode.DecodeTopic(tp.Topic, resp.Data)
	if err != nil {
		return
	}
	isr := []cluster.BrokerID{s.Leader}
	for _, b := range z.Partitions[0].Replicas {
		if b != s.Leader && c.nodes[b].session != 0 && rapid.Bool().Draw(c.rt, "member") {
			isr = append(isr, b)
		}
	}
	s.ISR = isr
	c.note("leader %d writes isr %v of %v", s.Leader, isr, tp)
	c.do(c.world.admin, zkop.Request{Kind: zkop.Set, Path: znode.StatePath(tp), Version: version, Data: s.Encode()})
	if c.unnotified[tp] = true; rapid.Bool().Draw(c.rt, "notify") {
		c.notify(tp)
	}
}

func (c *chaos) notify(tp cluster.TopicPartition) {
	delete(c.unnotified, tp)
	c.do(c.world.admin, zkop.Request{Kind: zkop.Create, Path: znode.ISRChangePrefix, Mode: zkop.PersistentSequential,
		Data: znode.EncodeISRChange([]cluster.TopicPartition{tp})})
}

// admin2 creates, expands or deletes a topic, or deletes /controller by hand.
func (c *chaos) admin2() {
	name := fmt.Sprintf("t%d", rapid.IntRange(0, 3).Draw(c.rt, "topic"))
	path := znode.TopicPath(name)
	resp := c.do(c.world.admin, zkop.Request{Kind: zkop.Get, Path: path})
	what := rapid.IntRange(0, 9).Draw(c.rt, "admin")
	c.note("admin %s %d exists=%v", name, what, resp.Err == nil)
	switch {
	case what == 9:
		c.do(c.world.admin, zkop.Request{Kind: zkop.Delete, Path: znode.ControllerPath, Version: -1})
	case resp.Err != nil:
		c.createTopic(name)
	case what < 3:
		c.do(c.world.admin, zkop.Request{Kind: zkop.Create, Path: znode.DeleteTopicPath(name)})
	case what >= 7:
		c.reassign(name)
	case what < 6:
		z, err := znode.DecodeTopic(name, resp.Data)
		if err != nil {
			c.h.fail("%s: %v", path, err)
		}
		z.Partitions[int32(len(z.Partitions))] = cluster.Assignment{Replicas: c.replicas()}
		c.do(c.world.admin, zkop.Request{Kind: zkop.Set, Path: path, Version: resp.Stat.Version, Data: z.Encode()})
	}
}

// reassign asks for other replicas, or cancels; half of the times the old way.
func (c *chaos) reassign(name string) {
	tp := cluster.TopicPartition{Topic: name, Partition: int32(rapid.IntRange(0, 1).Draw(c.rt, "partition"))}
	target := c.replicas()
	if rapid.Bool().Draw(c.rt, "old way") {
		c.note("reassign %v to %v in ZooKeeper", tp, target)
		c.do(c.world.admin, zkop.Request{Kind: zkop.Create, Path: znode.ReassignPartitionsPath,
			Data: znode.EncodeReassignments([]znode.Reassignment{{Partition: tp, Replicas: target}})})
		return
	}
	part := kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: tp.Partition, Replicas: cluster.IDsToInt32(target)}
	if rapid.IntRange(0, 3).Draw(c.rt, "cancel") == 0 {
		part.Replicas = nil
	}
	c.nextID++
	n := c.pick("controller")
	c.note("reassign %v to %v at %d", tp, part.Replicas, n.id)
	c.step(n, AlterReassignmentsRequested{At: c.now, RequestID: c.nextID, Request: &kmsg.AlterPartitionAssignmentsRequest{
		Topics: []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: name, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{part}}}}})
}

// grow lets every leader that can take all living replicas into its ISR, as replicas that fetch are.
func (c *chaos) grow() {
	c.tree.Walk(znode.BrokerTopicsPath, func(path string, data []byte, stat zkop.Stat) bool {
		tp, ok := znode.ParseStatePath(path)
		if !ok {
			return true
		}
		s, err := znode.DecodeState(tp, data)
		z, _ := znode.DecodeTopic(tp.Topic, c.do(c.world.admin, zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(tp.Topic)}).Data)
		replicas := z.Partitions[tp.Partition].Replicas
		if err != nil || s.Leader < 0 || c.nodes[s.Leader].leaderEpochs[tp] != int32(s.LeaderEpoch) || subset(replicas, s.ISR) {
			return true
		}
		s.ISR = replicas
		c.do(c.world.admin, zkop.Request{Kind: zkop.Set, Path: path, Version: stat.Version, Data: s.Encode()})
		c.notify(tp)
		return true
	})
	c.h.check()
}

func (c *chaos) replicas() []cluster.BrokerID {
	all := rapid.Permutation([]cluster.BrokerID{1, 2, 3, 4}).Draw(c.rt, "replicas")
	return all[:rapid.IntRange(1, 3).Draw(c.rt, "rf")]
}

func (c *chaos) createTopic(name string) {
	c.topics++
	z := znode.Topic{ID: cluster.TopicID{1, byte(c.topics >> 8), byte(c.topics)}, Partitions: map[int32]cluster.Assignment{
		0: {Replicas: c.replicas()}, 1: {Replicas: c.replicas()},
	}}
	c.do(c.world.admin, zkop.Request{Kind: zkop.Create, Path: znode.TopicPath(name), Data: z.Encode()})
}

// setLeader asks for a leader and an ISR, good or bad, never unclean.
func (c *chaos) setLeader(n *node, topic string) {
	w := cluster.LeaderChange{
		TopicPartition: cluster.TopicPartition{Topic: topic, Partition: rapid.Int32Range(0, 2).Draw(c.rt, "partition")},
		Leader:         cluster.BrokerID(rapid.SampledFrom([]int32{-2, 1, 2, 3, 9}).Draw(c.rt, "leader")),
		ExpectEpoch:    cluster.LeaderEpoch(rapid.Int32Range(-1, 1).Draw(c.rt, "epoch")), ExpectVersion: cluster.AnyVersion,
	}
	if rapid.Bool().Draw(c.rt, "has isr") {
		w.ISR = cluster.IDsFromInt32(rapid.SliceOfN(rapid.Int32Range(1, 4), 0, 3).Draw(c.rt, "isr"))
	}
	req := &kmsg.ElectLeadersRequest{Version: 2, ElectionType: cluster.SetLeaderAndISRElection,
		Topics: []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: []int32{w.Partition}}}}
	c.note("set %+v at %d", w, n.id)
	c.step(n, LeaderAndISRRequested{At: c.now, RequestID: c.nextID, Request: req, Changes: []cluster.LeaderChange{w}})
}

func (c *chaos) request() {
	n := c.pick("controller")
	c.nextID++
	name := fmt.Sprintf("t%d", rapid.IntRange(0, 3).Draw(c.rt, "topic"))
	if rapid.Bool().Draw(c.rt, "elect") {
		req := &kmsg.ElectLeadersRequest{Version: 2, Topics: []kmsg.ElectLeadersRequestTopic{{Topic: name, Partitions: []int32{0, 1}}}}
		c.note("elect %s at %d", name, n.id)
		c.step(n, ElectLeadersRequested{At: c.now, RequestID: c.nextID, Request: req})
		return
	}
	if rapid.Bool().Draw(c.rt, "set") {
		c.setLeader(n, name)
		return
	}
	b := c.pick("stopping")
	c.note("controlled shutdown of %d at %d", b.id, n.id)
	c.stopping[b.id] = true
	c.step(n, ControlledShutdownRequested{At: c.now, RequestID: c.nextID, Request: &kmsg.ControlledShutdownRequest{Version: 3, BrokerID: int32(b.id), BrokerEpoch: b.czxid}})
}

// heal brings back every broker that is gone, lets everything finish, and checks that nothing is left
// undone. Who is up stays up, the controller too, so that nothing is repaired by a takeover.
func (c *chaos) heal() {
	c.note("heal")
	for _, n := range c.sorted() {
		if n.session == 0 || !c.registered(n) || c.stopping[n.id] {
			if n.session != 0 && c.registered(n) {
				c.expire(n, true)
			}
			c.restart(n)
		}
	}
	for tp := range c.unnotified {
		c.notify(tp)
	}
	for range 8 {
		c.settle()
		c.deliver()
		c.grow()
		c.tick(15 * time.Second)
	}
	c.settle()
	c.h.check()
	var active *node
	for _, n := range c.sorted() {
		if n.active {
			if active != nil {
				c.h.fail("both %d and %d are controller", active.id, n.id)
			}
			active = n
		}
	}
	if active == nil {
		c.h.fail("nobody is controller")
		return
	}
	c.finished(active)
}

func (c *chaos) finished(active *node) {
	if s := active.ctl.Stats(); s.Offline != 0 || s.Transitions != 0 || s.Alerts != 0 || s.TopicsToDelete != 0 || s.Reassigning != 0 || s.QueuedJobs != 0 || s.QueuedRequests != 0 {
		c.h.fail("not finished: %+v", s)
	}
	seen := 0
	c.tree.Walk("/", func(path string, data []byte, stat zkop.Stat) bool {
		if strings.HasPrefix(path, znode.LeadershipAlertsPath+"/") || strings.HasPrefix(path, znode.DeleteTopicsPath+"/") ||
			strings.HasPrefix(path, znode.ISRChangeNotificationPath+"/") || path == znode.ReassignPartitionsPath {
			c.h.fail("%s is left over", path)
		}
		tp, ok := znode.ParseStatePath(path)
		if !ok {
			return true
		}
		seen++
		c.confirmedEverywhere(active, tp, stat.Version)
		return true
	})
	if want := active.ctl.Stats().Partitions; seen != want {
		c.h.fail("%d state znodes, the controller knows %d partitions", seen, want)
	}
}

// confirmedEverywhere: memory equals ZooKeeper (invariant 14), every replica is on the decision's epoch
// (invariant 13) and every broker's metadata says the same.
func (c *chaos) confirmedEverywhere(active *node, tp cluster.TopicPartition, version int32) {
	s, _, _ := c.state(tp)
	p := active.ctl.partition(tp)
	if p == nil || !p.li.Equal(s.LeaderAndISR) {
		c.h.fail("%v: controller remembers %+v, ZooKeeper has %+v v%d", tp, p, s, version)
		return
	}
	for _, r := range p.assignment.Replicas {
		if got := c.nodes[r].leaderEpochs[tp]; got != int32(s.LeaderEpoch) {
			c.h.fail("%v: replica %d is on epoch %d, decided is %d", tp, r, got, s.LeaderEpoch)
		}
	}
	for _, n := range c.sorted() {
		if m := n.metadata[tp]; m.Leader != int32(s.Leader) || m.LeaderEpoch != int32(s.LeaderEpoch) {
			c.h.fail("%v: broker %d believes leader %d epoch %d, decided is %d epoch %d", tp, n.id, m.Leader, m.LeaderEpoch, s.Leader, s.LeaderEpoch)
		}
	}
}

// TestRandomFailures runs controllers that compete while brokers die and return, sessions expire unnoticed,
// replies get lost and leaders change ISRs, and checks invariants 1, 2, 3, 13 and 14 of KAFKA_FACTS part 7.
func TestRandomFailures(t *testing.T) {
	for i := range 10 { // of 100 runs each, unless -rapid.checks says otherwise
		t.Run(fmt.Sprint(i), testRandomFailures)
	}
}

func testRandomFailures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.quiet = true
		c := &chaos{world: w, rt: rt, unnotified: map[cluster.TopicPartition]bool{}, stopping: map[cluster.BrokerID]bool{}}
		c.h = &history{w: w, epochs: map[stateID]cluster.LeaderEpoch{}, isr: map[stateID][]cluster.BrokerID{}, leaders: map[stateID]map[cluster.LeaderEpoch]cluster.BrokerID{}}
		c.h.fail = func(format string, args ...any) {
			rt.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(c.log, "\n"))
		}
		w.written = c.h.written
		for id := cluster.BrokerID(1); id <= 4; id++ {
			w.start(id, Config{DeleteTopicEnable: true, AutoRebalance: true}, true)
		}
		w.settle()
		c.createTopic("t0")
		for range rapid.IntRange(20, 250).Draw(rt, "steps") {
			c.act()
			c.h.check()
		}
		c.heal()
	})
}
