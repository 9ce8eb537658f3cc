package replica

import (
	"math"
	"time"

	"kctl/zkutil/cluster"
)

// lateMax is how long a control request may be under way: longer than any connection that a controller has given up lives on, in a
// broker that stands still or in the network.
const lateMax = 30 * time.Minute

// Graves remembers the decisions by which replicas were deleted. The controller sends its requests one after the other, but one that
// it has given up may still arrive behind a later one, over the broken connection. A LeaderAndISR behind the StopReplica that deleted
// the replica would make an empty one that acts in an epoch that is over, and followers that were not told either would follow it: such a leader
// could acknowledge records that nobody keeps. A process that starts anew needs no memory: requests to the one before carry its broker
// epoch. The zero value is ready; it is not safe for concurrent use.
type Graves struct {
	of   map[cluster.TopicPartition]grave
	next int // sweep when there are so many
}

type grave struct {
	topic cluster.TopicID
	epoch cluster.LeaderEpoch // the newest that is over
	at    time.Time
}

// Bury remembers a replica that ev deleted, once it was stepped and granted. One whose topic id is not known is not remembered: its
// namesake could not be told from it.
func (g *Graves) Bury(tp cluster.TopicPartition, p *Partition, ev StopReplica) {
	if p.topicID.IsZero() {
		return
	}
	over := p.epoch
	switch {
	case !ev.Delete:
		over-- // put aside: the controller that did not name it may name it yet, by the same decision
	case ev.LeaderEpoch == cluster.EpochDuringDelete:
		over = math.MaxInt32 // the topic is gone for good
	}
	if g.of == nil {
		g.of, g.next = map[cluster.TopicPartition]grave{}, 1000
	}
	g.of[tp] = grave{p.topicID, over, ev.At}
	if len(g.of) < g.next {
		return
	}
	for old, b := range g.of {
		if ev.At.Sub(b.at) > lateMax {
			delete(g.of, old)
		}
	}
	g.next = max(1000, 2*len(g.of))
}

// Late reports whether a decision is older than the one by which the replica was deleted; it must not be applied.
func (g *Graves) Late(tp cluster.TopicPartition, ev LeaderAndISR) bool {
	b, ok := g.of[tp]
	return ok && b.topic == ev.TopicID && ev.LeaderEpoch <= b.epoch && ev.At.Sub(b.at) <= lateMax
}
