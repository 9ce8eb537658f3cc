package sim

import (
	"fmt"
	"strings"

	"kctl/broker/quota"
	"kctl/zkutil/cluster"
)

// throttleSettings are what the configuration says: the lists of each topic, the bound of each broker.
type throttleSettings struct {
	leader, follower map[string]string
	bounds           map[cluster.BrokerID]int64
}

// nodeThrottles are those of one process.
type nodeThrottles struct{ leader, follower, moves *quota.Throttle }

// settledBound is the bound when everything is healed: reassignments and moves come to an end under it.
const settledBound = 20 << 10

// newThrottles are what a process starts with.
func (s *Sim) newThrottles(id cluster.BrokerID) nodeThrottles {
	t := nodeThrottles{quota.NewThrottle(), quota.NewThrottle(), quota.NewThrottle()}
	t.take(&s.throttles, id)
	return t
}

// take takes up the configuration, as a broker does when it is told of a change.
func (t *nodeThrottles) take(c *throttleSettings, id cluster.BrokerID) {
	bound, ok := c.bounds[id]
	if !ok {
		bound = quota.Unbounded
	}
	for _, each := range []*quota.Throttle{t.leader, t.follower, t.moves} {
		each.SetBound(bound)
	}
	for topic, list := range c.leader {
		t.leader.List(topic, quota.ParseReplicas(list, id))
	}
	for topic, list := range c.follower {
		t.follower.List(topic, quota.ParseReplicas(list, id))
	}
}

// throttleOne changes the lists of one topic and the bound of one broker.
func (s *Sim) throttleOne() {
	if s.throttles.bounds == nil {
		s.throttles = throttleSettings{leader: map[string]string{}, follower: map[string]string{}, bounds: map[cluster.BrokerID]int64{}}
	}
	topic := s.topics[s.rng.IntN(len(s.topics))]
	s.throttles.leader[topic], s.throttles.follower[topic] = s.drawReplicas(), s.drawReplicas()
	n := s.anyNode()
	s.throttles.bounds[n.id] = []int64{300, 2000, 20000, quota.Unbounded}[s.rng.IntN(4)]
	s.trace.line("throttle %s leader %q follower %q, broker %d %d", topic, s.throttles.leader[topic], s.throttles.follower[topic], n.id, s.throttles.bounds[n.id])
	s.throttlesChanged()
}

func (s *Sim) drawReplicas() string {
	switch s.rng.IntN(4) {
	case 0:
		return ""
	case 1:
		return "*"
	}
	var pairs []string
	for range 1 + s.rng.IntN(6) {
		pairs = append(pairs, fmt.Sprintf("%d:%d", s.rng.IntN(4), 1+s.rng.IntN(brokers)))
	}
	return strings.Join(pairs, ",")
}

func (s *Sim) throttlesChanged() {
	for _, n := range s.nodes {
		if n.up {
			n.throttles.take(&s.throttles, n.id)
		}
	}
}

// settleThrottles leaves every throttle in place, with a bound that lets things end in time.
func (s *Sim) settleThrottles() {
	for id := range s.throttles.bounds {
		s.throttles.bounds[id] = max(s.throttles.bounds[id], settledBound)
	}
	s.throttlesChanged()
}
