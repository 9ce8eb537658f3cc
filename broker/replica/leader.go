package replica

import (
	"slices"
	"time"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
)

// deposedGrace is how long a leader that saw a higher epoch waits for its own LeaderAndISR before it refuses
// producers: the command is normally a few milliseconds behind the followers'.
const deposedGrace = 500 * time.Millisecond

// follower is what a leader knows of one other replica.
type follower struct {
	id          cluster.BrokerID
	end, start  int64 // -1: has not fetched in this leader's time
	brokerEpoch cluster.BrokerEpoch
	alive       bool
	// heard is true once it has fetched with this leader epoch. Before that it is not taken (back) into the ISR
	// for what it did earlier: the controller may have taken it out because it is stopping.
	heard bool
	// lost is true since it fetched below the high watermark from a log that had reached further, until it is there again.
	lost        bool
	lastFetchAt time.Time
	// leaderEndAtFetch is our log end at lastFetchAt: a later fetch that reaches it proves that the follower
	// had caught up with that moment.
	leaderEndAtFetch int64
	// caughtUpAt is the latest time at which the follower is known to have held all that we held.
	caughtUpAt time.Time
}

type deposedState struct {
	seen  cluster.LeaderEpoch
	since time.Time
}

func (p *Partition) follower(id cluster.BrokerID) *follower {
	for i := range p.followers {
		if p.followers[i].id == id {
			return &p.followers[i]
		}
	}
	return nil
}

func (p *Partition) appended(ev Appended, out []Effect) []Effect {
	invariant.Assert(p.role == Leader, "append as %s", p.role)
	invariant.Assert(ev.LogEnd >= p.log.end, "log end fell from %d to %d by an append", p.log.end, ev.LogEnd)
	if ev.LogEnd > p.log.end {
		p.log.end, p.log.lastEpoch, p.log.emptyEpoch = ev.LogEnd, p.epoch, false
	}
	return p.advanceHighWatermark(ev.At, out)
}

// followerFetched takes the fetch offset as the follower's log end (V3 G.3), looks whether it may join the
// ISR, then advances the high watermark (G.4).
func (p *Partition) followerFetched(ev FollowerFetched, out []Effect) []Effect {
	f := p.follower(ev.Replica)
	if p.role != Leader || f == nil || ev.ReplicaEpoch >= 0 && ev.ReplicaEpoch < f.brokerEpoch {
		return out
	}
	lost := ev.FetchOffset < p.log.hw && (f.end < 0 || f.brokerEpoch >= 0 && ev.ReplicaEpoch > f.brokerEpoch)
	switch {
	case ev.FetchOffset >= p.log.end:
		f.caughtUpAt = later(f.caughtUpAt, ev.At)
	case f.leaderEndAtFetch >= 0 && ev.FetchOffset >= f.leaderEndAtFetch:
		f.caughtUpAt = later(f.caughtUpAt, f.lastFetchAt)
	}
	f.end, f.start, f.alive, f.brokerEpoch = min(ev.FetchOffset, p.log.end), ev.LogStart, ev.Alive, ev.ReplicaEpoch
	f.heard, f.lost = true, (lost || f.lost) && f.end < p.log.hw
	f.lastFetchAt, f.leaderEndAtFetch = later(f.lastFetchAt, ev.At), p.log.end
	if lost && slices.Contains(p.isr, f.id) {
		// What was committed is on every member's disk; this one lost it and must not be elected.
		out = p.removeFromISR([]cluster.BrokerID{f.id}, LostData, out)
	}
	out = p.expandISR(ev.At, out)
	return p.advanceHighWatermark(ev.At, out)
}

func (p *Partition) followerSeen(ev FollowerSeen, out []Effect) []Effect {
	f := p.follower(ev.Replica)
	if p.role != Leader || f == nil || f.end < 0 || !f.heard && !slices.Contains(p.isr, f.id) {
		return out
	}
	if f.end == p.log.end {
		f.caughtUpAt = later(f.caughtUpAt, ev.At)
	}
	f.lastFetchAt, f.alive = later(f.lastFetchAt, ev.At), ev.Alive
	return p.expandISR(ev.At, out)
}

// Settled reports that a Tick would do nothing until another event comes: every replica is in the ISR and has all
// records, all of them committed. Only a leader is ever settled.
func (p *Partition) Settled() bool {
	if p.role != Leader || p.pending != nil || p.log.hw != p.log.end || len(p.isr) != len(p.replicas) {
		return false
	}
	for i := range p.followers {
		if p.followers[i].end != p.log.end {
			return false
		}
	}
	return true
}

func (p *Partition) replicaDown(ev ReplicaDown, out []Effect) []Effect {
	f := p.follower(ev.Replica)
	if p.role != Leader || f == nil {
		return out
	}
	f.alive = false
	return p.advanceHighWatermark(ev.At, out)
}

func (p *Partition) higherEpochSeen(ev HigherEpochSeen, out []Effect) []Effect {
	if p.role != Leader || ev.LeaderEpoch <= p.epoch || p.follower(ev.Replica) == nil {
		return out
	}
	if p.deposed.seen > p.epoch {
		return out
	}
	p.deposed = deposedState{seen: ev.LeaderEpoch, since: ev.At}
	return append(out, Deposed{LeaderEpoch: p.epoch, Seen: ev.LeaderEpoch, Replica: ev.Replica})
}

// advanceHighWatermark moves the high watermark to the smallest log end that counts. It needs no follower
// when the ISR is the leader alone (V3 G.10).
func (p *Partition) advanceHighWatermark(at time.Time, out []Effect) []Effect {
	if p.role != Leader || len(p.isr) < p.effectiveMin() {
		return out
	}
	hw := p.log.end
	for i := range p.followers {
		f := &p.followers[i]
		if f.end < hw && (p.inMaximalISR(f.id) || p.joining(f, at)) {
			hw = f.end
		}
	}
	if hw <= p.log.hw {
		return out
	}
	p.log.hw = hw
	return append(out, SetHighWatermark{hw})
}

// joining reports whether f is caught up and only the write of the ISR is missing. The high watermark waits
// for it, or it would run ahead of the follower and keep it out for ever.
func (p *Partition) joining(f *follower, at time.Time) bool {
	return f.alive && f.heard && p.caughtUp(f, at) && slices.Contains(p.replicas, f.id)
}

func (p *Partition) caughtUp(f *follower, at time.Time) bool {
	return f.end == p.log.end || at.Sub(f.caughtUpAt) <= p.cfg.LagTimeMax
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
