package sim

import (
	"errors"
	"time"

	"kctl/broker/replica"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// logDirs are the log directories of each broker. One of them fails now and then, the process lives on with the other.
var logDirs = []string{"data", "data2"}

var errDisk = errors.New("input/output error")

// failDirOne takes one of a broker's directories away. Its disk is as good as new some time later, and the broker is
// started again with it.
func (s *Sim) failDirOne() {
	n := s.anyNode()
	if !n.up || n.paused() || n.dirOffline() {
		return
	}
	n.loseDir(logDirs[s.rng.IntN(len(logDirs))])
}

// loseDir lets a directory fail, and the broker start anew with it later.
func (n *node) loseDir(dir string) {
	s := n.sim
	n.dirFailed(dir)
	inc := n.inc
	s.after(s.between(time.Second, 20*time.Second), "disk is replaced", noTP, int64(n.id), 0, func() {
		if n.up && n.inc == inc {
			n.kill(false)
			s.startLater(n)
		}
	})
}

func (n *node) dirOffline() bool {
	for _, d := range n.store.Dirs() {
		if !d.Online() {
			return true
		}
	}
	return false
}

// dirFailed is what a broker does when one of several log directories fails: the replicas in it go offline, the
// controller is told.
func (n *node) dirFailed(dir string) {
	s := n.sim
	s.report.DirFailures++
	s.trace.line("broker %d: log directory %s failed", n.id, dir)
	s.check.dirFailed(n, dir)
	for _, tp := range n.store.MarkOffline(dir, errDisk) {
		if p := n.parts[tp]; p != nil {
			p.step(replica.LogFailed{At: s.now})
		}
	}
	n.notifyDirFailure()
}

// notifyDirFailure tells the controller through ZooKeeper until that is known to have worked.
func (n *node) notifyDirFailure() {
	again := func() {
		n.at(n.inc, n.sim.now.Add(200*time.Millisecond), "dir notify again", n.notifyDirFailure)
	}
	if n.zk == nil {
		again()
		return
	}
	ev := znode.LogDirEvent{Broker: n.id, Event: znode.LogDirFailure}
	n.zk.do([]zkop.Request{{Kind: zkop.Create, Path: znode.LogDirEventPrefix, Data: ev.Encode(), Mode: zkop.PersistentSequential}}, func(r []zkop.Response) {
		if r[0].Err != nil {
			again()
		}
	})
}

// dirFailed remembers how far the logs reach that cannot be seen any more: they are there, and come back.
func (c *checker) dirFailed(n *node, dir string) {
	hidden := map[cluster.TopicPartition]int64{}
	for _, l := range n.store.Logs() {
		if l.Dir() == dir {
			hidden[l.TopicPartition()] = l.LogEndOffset()
		}
	}
	if c.hidden == nil {
		c.hidden = map[cluster.BrokerID]map[cluster.TopicPartition]int64{}
	}
	c.hidden[n.id] = hidden
}
