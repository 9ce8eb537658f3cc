package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// scheduleFaults starts one endless sequence for each kind of fault and of operator's action.
func (s *Sim) scheduleFaults() {
	f := s.faults
	s.repeat(f.KillEvery, "kill", func() { s.killOne(false) })
	s.repeat(f.CrashEvery, "crash", func() { s.killOne(true) })
	s.repeat(f.CutEvery, "cut brokers", s.cutOne)
	s.repeat(f.ZKCutEvery, "cut from zk", s.cutZKOne)
	s.repeat(f.PauseEvery, "pause", s.pauseOne)
	s.repeat(f.DiskEvery, "disk full", s.fillOne)
	s.repeat(f.DirEvery, "log directory fails", s.failDirOne)
	s.repeat(f.ElectEvery, "elect", s.electPreferred)
	s.repeat(f.CreateEvery, "create topic", func() {
		if len(s.topics) < 5 {
			s.createTopic(s.newTopicName(), 1+s.rng.IntN(2), 1+s.rng.IntN(brokers))
		}
	})
	s.repeat(f.DeleteEvery, "delete topic", func() {
		if len(s.topics) > 2 {
			s.deleteTopic(s.topics[2+s.rng.IntN(len(s.topics)-2)])
		}
	})
	s.repeat(f.ExpandEvery, "expand topic", func() { s.expandTopic(s.topics[s.rng.IntN(len(s.topics))]) })
	s.repeat(f.ReassignEvery, "reassign", s.reassignOne)
	s.repeat(f.SetEvery, "set leader and ISR", s.setLeaderOne)
	s.repeat(f.MoveEvery, "move between directories", s.moveOne)
	s.repeat(f.TrimEvery, "delete records", s.deleteOne)
	s.repeat(f.ThrottleEvery, "throttle", s.throttleOne)
	s.repeat(f.ForgetEvery, "delete /controller", func() {
		s.adminDo(zkop.Request{Kind: zkop.Delete, Path: znode.ControllerPath, Version: zkop.AnyVersion})
	})
}

// repeat runs fn at random times with the given mean pause, until everything is healed.
func (s *Sim) repeat(mean time.Duration, name string, fn func()) {
	if mean == 0 {
		return
	}
	s.after(s.between(mean/2, mean*3/2), name, noTP, 0, 0, func() {
		if s.healed {
			return
		}
		fn()
		s.repeat(mean, name, fn)
	})
}

func (s *Sim) anyNode() *node { return s.nodes[s.rng.IntN(len(s.nodes))] }

func (s *Sim) killOne(crash bool) {
	if n := s.anyNode(); n.up {
		n.kill(crash)
		s.startLater(n)
	}
}

func (s *Sim) cutOne() {
	a, b := s.anyNode(), s.anyNode()
	if a == b {
		return
	}
	s.setCut(a, b, true)
	s.after(s.between(10*time.Millisecond, 3*zkSessionTimeout), "heal brokers", noTP, int64(a.id), int64(b.id), func() { s.setCut(a, b, false) })
}

func (s *Sim) cutZKOne() {
	n := s.anyNode()
	if n.zkCut {
		return
	}
	s.setZKCut(n, true)
	s.after(s.between(10*time.Millisecond, 2*zkSessionTimeout), "heal zk", noTP, int64(n.id), 0, func() { s.setZKCut(n, false) })
}

func (s *Sim) pauseOne() {
	if n := s.anyNode(); n.up && !n.paused() {
		n.pauseUntil = s.now.Add(s.between(10*time.Millisecond, 2*zkSessionTimeout))
	}
}

// fillOne lets a broker's next writes fail; the process ends at the first and starts again with room.
func (s *Sim) fillOne() {
	if n := s.anyNode(); n.up {
		n.fs.SetCapacity(1)
		fs := n.fs
		s.after(s.between(10*time.Millisecond, 5*time.Second), "disk has room", noTP, int64(n.id), 0, func() { fs.ClearFaults() })
	}
}

// electPreferred asks whichever broker believes to be the controller.
func (s *Sim) electPreferred() {
	for _, n := range s.nodes {
		if !n.up || n.paused() || !n.ctl.Stats().Active {
			continue
		}
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.TimeoutMillis = 2, 10000
		n.ctlStep(controller.ElectLeadersRequested{At: s.now, RequestID: s.seq, Request: req})
		return
	}
}

// setLeaderOne asks whichever broker believes to be the controller for a random leader and a random ISR of a partition,
// good or bad, sometimes conditional on an epoch that may have passed. Never unclean: no record may be lost.
func (s *Sim) setLeaderOne() {
	name := s.topics[s.rng.IntN(len(s.topics))]
	t, _, ok := s.topic(name)
	if !ok {
		return
	}
	w := cluster.LeaderChange{
		TopicPartition: cluster.TopicPartition{Topic: name, Partition: int32(s.rng.IntN(len(t.Partitions)))},
		Leader:         cluster.BrokerID(1 + s.rng.IntN(brokers)), ExpectEpoch: cluster.NoLeaderEpoch, ExpectVersion: cluster.AnyVersion,
	}
	if s.rng.IntN(3) == 0 {
		w.Leader = cluster.KeepLeader
	}
	if s.rng.IntN(2) == 0 {
		for _, i := range s.rng.Perm(brokers)[:s.rng.IntN(brokers+1)] {
			w.ISR = append(w.ISR, cluster.BrokerID(1+i))
		}
	}
	if s.rng.IntN(3) == 0 {
		w.ExpectEpoch = cluster.LeaderEpoch(s.rng.IntN(20))
	}
	for _, n := range s.nodes {
		if !n.up || n.paused() || !n.ctl.Stats().Active {
			continue
		}
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.ElectionType, req.TimeoutMillis = 2, cluster.SetLeaderAndISRElection, 10000
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: name, Partitions: []int32{w.Partition}}}
		s.trace.line("  %s leader %d isr %v", w.TopicPartition, w.Leader, w.ISR)
		n.ctlStep(controller.LeaderAndISRRequested{At: s.now, RequestID: s.seq, Request: req, Changes: []cluster.LeaderChange{w}})
		return
	}
}
