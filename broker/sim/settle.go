package sim

import (
	"fmt"
	"slices"
	"time"

	"kctl/broker/replica"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// settleMax is how long a healed cluster may take to come to rest.
const settleMax = 3 * time.Minute

// settle heals everything, waits until the cluster is at rest, and compares every copy of every partition.
func (s *Sim) settle() {
	s.trace.line("healing")
	s.healed = true
	clear(s.cuts)
	s.settleThrottles()
	for _, n := range s.nodes {
		n.fs.ClearFaults()
		n.pauseUntil = time.Time{}
		s.setZKCut(n, false)
		if n.up && n.dirOffline() {
			n.kill(false)
		}
		if !n.up {
			n.start()
		}
	}
	deadline := s.now.Add(settleMax)
	next := s.now
	for s.failed == nil {
		if !s.now.Before(next) {
			next = s.now.Add(time.Second)
			why := s.unrest()
			if why == "" {
				s.compareAll()
				s.checkWishes()
				return
			}
			if s.now.After(deadline) {
				s.fail("not at rest %s after everything was healed: %s", settleMax, why)
			}
		}
		if !s.next() {
			s.fail("nothing more happens, and not at rest: %s", s.unrest())
		}
	}
}

// unrest says what is still missing, or nothing.
func (s *Sim) unrest() string {
	for _, cl := range s.clients {
		if cl.busy {
			return fmt.Sprintf("producer %d waits for %s", cl.pid, cl.tp)
		}
	}
	if why := s.controllerUnrest(); why != "" {
		return why
	}
	topics := s.adminDo(zkop.Request{Kind: zkop.Children, Path: znode.BrokerTopicsPath}).Children
	slices.Sort(topics)
	for _, name := range topics {
		if s.check.deleted[name] {
			return "topic " + name + " is not deleted"
		}
		t, _, ok := s.topic(name)
		if !ok {
			return "topic " + name + " cannot be read"
		}
		for _, number := range t.PartitionNumbers() {
			if why := s.partitionUnrest(cluster.TopicPartition{Topic: name, Partition: number}, t.Partitions[number]); why != "" {
				return why
			}
		}
	}
	return s.leftovers()
}

func (s *Sim) controllerUnrest() string {
	active := 0
	for _, n := range s.nodes {
		st := n.ctl.Stats()
		if !st.Active {
			continue
		}
		active++
		if st.Transitions > 0 || st.Alerts > 0 || st.QueuedJobs > 0 {
			return fmt.Sprintf("controller %d: %+v", n.id, st)
		}
	}
	if active != 1 {
		return fmt.Sprintf("%d active controllers", active)
	}
	return ""
}

func (s *Sim) partitionUnrest(tp cluster.TopicPartition, a cluster.Assignment) string {
	if a.Reassigning() {
		return fmt.Sprintf("%s is still being reassigned: %+v (11)", tp, a)
	}
	state := s.check.states[tp]
	if state.Leader < 0 || len(state.ISR) != len(a.Replicas) {
		return fmt.Sprintf("%s: leader %d, ISR %v, replicas %v", tp, state.Leader, state.ISR, a.Replicas)
	}
	for _, id := range a.Replicas {
		p := s.node(id).parts[tp]
		switch {
		case p == nil || p.log == nil:
			return fmt.Sprintf("%s: broker %d has no replica", tp, id)
		case p.core.LeaderEpoch() != state.LeaderEpoch || (p.core.Role() == replica.Leader) != (id == state.Leader):
			return fmt.Sprintf("%s: broker %d is %s at epoch %d, decided is leader %d at %d", tp, id, p.core.Role(), p.core.LeaderEpoch(), state.Leader, state.LeaderEpoch)
		case s.startUnrest(p, s.node(state.Leader)):
			return fmt.Sprintf("%s: broker %d has log start %d, below the leader's (18)", tp, id, p.core.LogStart())
		case p.core.HighWatermark() != p.core.LogEnd() || p.core.LogEnd() != s.check.committed(tp):
			return fmt.Sprintf("%s: broker %d has high watermark %d, log end %d, committed is %d", tp, id, p.core.HighWatermark(), p.core.LogEnd(), s.check.committed(tp))
		}
	}
	return ""
}

// leftovers looks for nodes that should be gone and replicas of deleted topics.
func (s *Sim) leftovers() string {
	for _, path := range []string{znode.DeleteTopicsPath, znode.LeadershipAlertsPath, znode.ISRChangeNotificationPath} {
		if kids := s.adminDo(zkop.Request{Kind: zkop.Children, Path: path}).Children; len(kids) > 0 {
			return fmt.Sprintf("%s holds %v", path, kids)
		}
	}
	if s.adminDo(zkop.Request{Kind: zkop.Exists, Path: znode.ReassignPartitionsPath}).Err == nil {
		return znode.ReassignPartitionsPath + " is still there"
	}
	for _, n := range s.nodes {
		if tps := n.movesUnrest(); len(tps) > 0 {
			return fmt.Sprintf("%s still moves %v between directories (16)", n, tps)
		}
		for _, p := range n.order {
			if s.check.deleted[p.tp.Topic] {
				return fmt.Sprintf("%s still has %s of a deleted topic", n, p.tp)
			}
		}
	}
	return ""
}

// compareAll reads every copy from its start and compares it with what was committed. A replica that is not assigned
// any more, and that no complete LeaderAndISR has put aside yet, does not matter.
func (s *Sim) compareAll() {
	s.check.final = true
	for _, n := range s.nodes {
		for _, p := range n.order {
			if t, _, ok := s.topic(p.tp.Topic); ok && !slices.Contains(t.Partitions[p.tp.Partition].Replicas, n.id) {
				continue
			}
			if p.log != nil {
				s.check.compare(p, p.log.LogStartOffset(), p.core.HighWatermark())
			}
		}
	}
}

// close lets go of what the run holds.
func (s *Sim) close() {
	s.trace.flush()
	for _, n := range s.nodes {
		n.stop()
	}
}
