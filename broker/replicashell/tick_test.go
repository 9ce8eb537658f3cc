package replicashell

import (
	"sync/atomic"
	"testing"
	"time"

	"kctl/zkutil/cluster"
)

// TestSettledPartitionKeepsItsFollowers: no tick looks at a partition whose replicas are level. When it is written to after
// hours, its followers were in touch all the while through their sessions, and must not count as lagging.
func TestSettledPartitionKeepsItsFollowers(t *testing.T) {
	var ahead atomic.Int64 // of the clocks, in nanoseconds
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	l := newLab(t, 2, func(o *Options) { o.Now, o.ReplicaLagTimeMax = now, time.Minute })
	tp := cluster.TopicPartition{Topic: "t", Partition: 0}
	l.decideAll([]cluster.TopicPartition{tp}, 1, ids(1, 2), ids(1, 2))
	if r := l.brokers[1].produce(t, tp, -1, "a", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	m := l.brokers[1].m
	p := m.partition(tp)
	eventually(t, "the partition is settled", func() bool {
		for _, p := range m.ticks.take() {
			p.mu.Lock()
			p.tickAgain()
			p.mu.Unlock()
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return !p.ticked && len(p.waiters) == 1
	})
	// The next fetch takes the high watermark along; those after it have no news of the partition.
	contacts := map[int64]bool{}
	eventually(t, "fetches without news", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, w := range p.waiters {
			contacts[w.Session.LastContact.Load()] = true
		}
		return len(contacts) > 3 && !p.ticked && len(p.waiters) == 1
	})
	before, _ := l.zk.state(t, tp)
	ahead.Add(int64(2 * time.Hour))
	eventually(t, "the follower fetches by the new time", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiters) == 1 && now().Sub(time.Unix(0, p.waiters[0].Session.LastContact.Load())) < time.Minute
	})
	p.mu.Lock()
	if p.ticked {
		t.Error("a fetch without news has put the partition into the list")
	}
	p.mu.Unlock()

	l.setCut(1, true) // so that nobody can fetch before the tick
	if r := l.brokers[1].produce(t, tp, 1, "b", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	p.mu.Lock()
	if !p.ticked {
		t.Error("no tick would look at a partition that was written to")
	}
	p.mu.Unlock()
	p.tick()
	p.mu.Lock()
	pending, _ := p.core.ISRChangePending()
	full := len(p.core.ISR()) == 2
	p.mu.Unlock()
	if !full || pending {
		t.Error("the follower counted as lagging right after the append")
	}

	ahead.Add(int64(2 * time.Minute)) // now it does lag
	p.tick()
	eventually(t, "the dead follower leaves the ISR", func() bool { s, _ := l.zk.state(t, tp); return len(s.ISR) == 1 && before.LeaderEpoch == s.LeaderEpoch })
}
