package sim

import (
	"time"

	"kctl/zkutil/cluster"
)

const rpcTimeout = 3 * time.Second

// link is the state of the way between two brokers.
type link struct{ a, b cluster.BrokerID }

// reachable says whether bytes pass between two nodes. Clients reach every broker that is up.
func (s *Sim) reachable(a, b *node) bool {
	if a == b {
		return true
	}
	return !s.cuts[link{min(a.id, b.id), max(a.id, b.id)}]
}

func (s *Sim) setCut(a, b *node, cut bool) {
	s.cuts[link{min(a.id, b.id), max(a.id, b.id)}] = cut
}

func (s *Sim) delay() time.Duration {
	if s.chance(s.faults.Slow) {
		return s.between(50*time.Millisecond, 2*time.Second)
	}
	return s.between(100*time.Microsecond, 3*time.Millisecond)
}

// call sends a request from one node's process to another's and calls done exactly once in the sender's
// process, unless that ends: with the answer, or with nil when none came in time. handle runs in the
// receiver and may run twice, late, or after the sender has given up; it may reply later, or never.
func call[A any](s *Sim, from, to *node, name string, tp cluster.TopicPartition, handle func(reply func(A)), done func(*A)) {
	inc := from.inc
	answered := false
	var timeout *scheduled
	finish := func(a *A) {
		if !answered {
			answered = true
			timeout.cancel()
			done(a)
		}
	}
	reply := func(a A) {
		if answered || s.chance(s.faults.Lose) || !s.reachable(from, to) {
			return
		}
		from.at(inc, s.now.Add(s.delay()), name+" answer", func() { finish(&a) })
	}
	deliver := func() {
		if s.chance(s.faults.Lose) || !s.reachable(from, to) {
			return
		}
		// The receiving process is found at arrival: a message may reach a later incarnation.
		s.after(s.delay(), name, tp, int64(from.id), int64(to.id), func() {
			if s.reachable(from, to) {
				to.run(to.inc, name, func() { handle(reply) })
			}
		})
	}
	deliver()
	if s.chance(s.faults.Double) {
		deliver()
	}
	timeout = from.at(inc, s.now.Add(rpcTimeout), name+" timeout", func() { finish(nil) })
}
