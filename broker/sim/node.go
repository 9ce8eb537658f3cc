package sim

import (
	"fmt"
	"time"

	"kctl/broker/controller"
	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// node is one broker: a machine with a disk, and on it a process that lives and dies.
type node struct {
	sim *Sim
	id  cluster.BrokerID
	fs  *vfs.Mem

	// The process. inc counts its lives: what was meant for an earlier one is dropped.
	inc        int
	up         bool
	pauseUntil time.Time
	backAt     time.Time // start of the first process after the machine's last crash

	zk          *zkConn
	zkEpoch     uint64
	zkCut       bool
	brokerEpoch cluster.BrokerEpoch // of our newest registration
	registered  bool
	// dataEpoch is that of the first registration since the disk lost something; 0 before it.
	dataEpoch cluster.BrokerEpoch

	ctl       *controller.Controller
	ctlTimers map[controller.Timer]*scheduled

	store           *storage.Manager
	throttles       nodeThrottles
	parts           map[cluster.TopicPartition]*part
	graves          replica.Graves
	order           []*part                 // of parts, in the order of their first appearance
	controllerEpoch cluster.ControllerEpoch // highest seen in control requests
	alive           map[cluster.BrokerID]bool
	leaders         map[cluster.TopicPartition]metaEntry // as UpdateMetadata told
}

// metaEntry is one partition of a node's metadata cache.
type metaEntry struct {
	leader cluster.BrokerID
	epoch  cluster.LeaderEpoch
}

func newNode(s *Sim, id cluster.BrokerID) *node {
	return &node{sim: s, id: id, fs: vfs.NewMem(s.nowMs)}
}

func (n *node) paused() bool { return n.sim.now.Before(n.pauseUntil) }

// at schedules fn in the node's process of incarnation inc: dropped when that ended, late when it stands still.
func (n *node) at(inc int, t time.Time, name string, fn func()) *scheduled {
	return n.sim.at(t, name, noTP, int64(n.id), int64(inc), func() { n.run(inc, name, fn) })
}

func (n *node) run(inc int, name string, fn func()) {
	if n.inc != inc || !n.up {
		return
	}
	if n.paused() {
		n.at(inc, n.pauseUntil.Add(n.sim.between(time.Microsecond, 20*time.Millisecond)), name, fn)
		return
	}
	fn()
}

// start begins a new life of the process.
func (n *node) start() {
	s := n.sim
	n.inc++
	n.up = true
	if n.dataEpoch == 0 {
		n.backAt = s.now
	}
	n.pauseUntil = time.Time{}
	n.registered = false
	n.brokerEpoch = cluster.NoBrokerEpoch
	n.controllerEpoch = 0
	n.parts = map[cluster.TopicPartition]*part{}
	n.order = nil
	n.graves = replica.Graves{}
	n.alive = map[cluster.BrokerID]bool{}
	n.leaders = map[cluster.TopicPartition]metaEntry{}
	n.ctlTimers = map[controller.Timer]*scheduled{}
	n.ctl = controller.New(s.controllerConfig(n.id))
	n.throttles = s.newThrottles(n.id)
	store, err := storage.OpenManager(n.fs, logDirs, s.storageOptions(n.id))
	if err != nil {
		s.fail("broker %d: open storage: %v", n.id, err)
		return
	}
	n.store = store
	s.check.storeOpened(n)
	n.zk = nil
	n.openZK()
	n.every(time.Second, "isr tick", n.tickPartitions)
	n.every(5*time.Second, "hw checkpoint", n.checkpoint)
	n.every(4*time.Second, "housekeep", n.housekeep)
}

// every runs fn again and again in this life of the process.
func (n *node) every(d time.Duration, name string, fn func()) {
	inc := n.inc
	var again func()
	again = func() {
		fn()
		if n.inc == inc && n.up {
			n.at(inc, n.sim.now.Add(d), name, again)
		}
	}
	n.at(inc, n.sim.now.Add(n.sim.between(d/2, d)), name, again)
}

// kill ends the process. With crash the machine goes down too: what was not synced is lost or torn.
func (n *node) kill(crash bool) {
	if crash {
		n.down(n.fs.CrashClone(unsynced(n.sim.rng.IntN(2)), n.sim.rng.Uint64()), true)
	} else {
		n.down(n.fs.CrashClone(vfs.KeepUnsynced, 0), false)
	}
}

// down ends the process and leaves left on the disk.
func (n *node) down(left *vfs.Mem, crash bool) {
	s := n.sim
	n.up = false
	n.inc++
	n.fs = left
	if crash {
		s.report.Crashes++
		n.dataEpoch = 0 // broker/continuity.go tells by the boot id
	} else {
		s.report.Kills++
	}
	for _, p := range n.order {
		p.dropWaiting()
	}
	s.check.nodeDown(n, crash)
	n.store = nil
}

// unsynced draws what a machine crash leaves of unsynced data.
func unsynced(draw int) vfs.Unsynced {
	if draw == 0 {
		return vfs.DropUnsynced
	}
	return vfs.MixUnsynced
}

// stop is the end of the run: nothing is left open.
func (n *node) stop() {
	if n.store != nil {
		n.store.Close()
	}
}

// openZK opens a session and registers, again and again until it works.
func (n *node) openZK() {
	if n.zkCut {
		n.at(n.inc, n.sim.now.Add(200*time.Millisecond), "zk connect", n.openZK)
		return
	}
	n.zk = n.sim.openSession(n)
	n.registered = false
	n.register()
}

// register makes the broker's ephemeral node. A registration left over by an earlier life with the same
// address is replaced in one multi, guarded by its version.
func (n *node) register() {
	c := n.zk
	path := n.sim.brokerPath(n.id)
	data := n.sim.registration(n.id)
	create := []zkop.Request{{Kind: zkop.Create, Path: path, Data: data, Mode: zkop.Ephemeral}, {Kind: zkop.Set, Path: path, Data: data, Version: 0}}
	c.do([]zkop.Request{{Kind: zkop.Multi, Ops: create}, {Kind: zkop.Get, Path: path}}, func(r []zkop.Response) {
		got := r[1]
		switch {
		case got.Err == nil && got.Stat.EphemeralOwner == c.id:
			n.brokerEpoch = cluster.BrokerEpoch(got.Stat.Czxid)
			n.registered = true
			if n.dataEpoch == 0 {
				n.dataEpoch = n.brokerEpoch
			}
			n.sim.trace.line("broker %d registered with epoch %d", n.id, n.brokerEpoch)
			n.ctlStep(controller.SessionStarted{At: n.sim.now, Session: c.epoch, SessionID: c.id, Seed: n.sim.seed16()})
			return
		case got.Err == nil:
			drop := zkop.Request{Kind: zkop.Delete, Path: path, Version: got.Stat.Version}
			c.do([]zkop.Request{{Kind: zkop.Multi, Ops: append([]zkop.Request{drop}, create...)}}, func([]zkop.Response) {})
		}
		n.at(n.inc, n.sim.now.Add(100*time.Millisecond), "register again", func() {
			if n.zk == c && !n.registered {
				n.register()
			}
		})
	})
}

// sessionContact is what a process notices about its session at a heartbeat.
func (n *node) sessionContact() {
	c, now := n.zk, n.sim.now
	switch {
	case c.cut:
		if now.Sub(c.lastContact) > zkPresumeLost && !c.presumedLost {
			c.presumedLost = true
			n.ctlStep(controller.SessionEnded{At: now, Reason: "no contact for two thirds of the session time-out"})
		}
	case c.gone:
		n.zk = nil
		n.registered = false
		n.ctlStep(controller.SessionEnded{At: now, Reason: "session expired"})
		n.at(n.inc, now.Add(n.sim.between(time.Millisecond, 100*time.Millisecond)), "zk connect", n.openZK)
	default:
		c.lastContact = now
		if c.presumedLost {
			c.presumedLost = false
			if n.registered {
				n.ctlStep(controller.SessionStarted{At: now, Session: c.epoch, SessionID: c.id, Seed: n.sim.seed16()})
			}
		}
	}
}

func (n *node) watchFired(ev zkop.Event) {
	n.ctlStep(controller.WatchFired{At: n.sim.now, Event: ev})
}

// tickPartitions drives ISR shrinking.
func (n *node) tickPartitions() {
	for _, p := range n.order {
		p.step(replica.Tick{At: n.sim.now})
	}
}

func (n *node) checkpoint() {
	hw := map[cluster.TopicPartition]int64{}
	for _, p := range n.order {
		if p.log != nil {
			hw[p.tp] = p.log.HighWatermark()
		}
	}
	if err := n.store.CheckpointHighWatermarks(hw); err != nil {
		n.diskFailed(err)
	}
}

func (n *node) housekeep() {
	if err := n.store.Housekeep(n.sim.now); err != nil {
		n.diskFailed(err)
		return
	}
	if n.sim.rng.IntN(4) == 0 { // now and then everything is synced, as the kernel's write-back does
		for _, p := range n.order {
			if p.log == nil || p.core.Role() == replica.Offline {
				continue
			}
			if err := p.log.Flush(); err != nil {
				n.diskFailed(err)
				return
			}
		}
	}
}

// diskFailed is what a broker does when its last log directory fails, here when the disk under both is full: it stops at
// once, and is started again when there is room.
func (n *node) diskFailed(err error) {
	n.sim.trace.line("broker %d: disk failed: %v", n.id, err)
	n.sim.check.lastLook(n)
	n.kill(false)
	n.sim.startLater(n)
}

func (n *node) String() string { return fmt.Sprintf("broker %d", n.id) }
