package replicashell

import (
	"context"
	"sync"
	"time"

	"kctl/broker/replica"
)

// ticks is the list of partitions that the next tick looks at: those this broker leads and whose ISR a mere
// passing of time can change. A settled one, with all replicas in the ISR and level, is not in it: tens of
// thousands of idle partitions are more memory than any cache holds, and looking at them all is what an idle
// broker would otherwise spend its time with.
type ticks struct {
	mu   sync.Mutex // innermost
	list []*partition
}

func (t *ticks) add(p *partition) {
	t.mu.Lock()
	t.list = append(t.list, p)
	t.mu.Unlock()
}

func (t *ticks) take() []*partition {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.list
	t.list = nil
	return list
}

// pruneInterval is how often settled partitions leave the list: soon, while what they are made of is still in the
// processor's caches, since a partition that is led anew is in the list until its followers have fetched.
const pruneInterval = time.Second

func (m *Manager) tickLoop(ctx context.Context) {
	t := time.NewTicker(max(m.opts.ReplicaLagTimeMax/2, time.Millisecond))
	defer t.Stop()
	prune := time.NewTicker(pruneInterval)
	defer prune.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			for _, p := range m.ticks.take() {
				p.tick()
			}
		case <-prune.C:
			for _, p := range m.ticks.take() {
				p.mu.Lock()
				p.tickAgain()
				p.mu.Unlock()
			}
		}
	}
}

// tickAgain puts the partition back into the list if a tick may change it. p.mu is held.
func (p *partition) tickAgain() {
	p.ticked = p.core.Role() == replica.Leader && !p.core.Settled()
	if p.ticked {
		p.m.ticks.add(p)
	}
}

// tick lets the state machine look at the time. Followers whose fetch is parked here are in touch through
// their session, not through this partition: tell the state machine first.
func (p *partition) tick() {
	var a after
	p.mu.Lock()
	p.noteParked(&a)
	p.run(replica.Tick{At: p.m.opts.Now()}, &a)
	p.tickAgain()
	p.mu.Unlock()
	a.run()
}

// noteParked tells the state machine when the followers that are parked at the log end were last in contact.
func (p *partition) noteParked(a *after) {
	if p.core.Role() != replica.Leader {
		return
	}
	for i := 0; i < len(p.waiters); i++ {
		s := p.waiters[i].Session
		if s.Replica < 0 {
			continue
		}
		p.run(replica.FollowerSeen{At: time.Unix(0, s.LastContact.Load()), Replica: s.Replica,
			Alive: p.m.opts.IsAlive(s.Replica)}, a)
	}
}
