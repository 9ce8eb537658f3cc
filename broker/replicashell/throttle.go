package replicashell

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kctl/broker/quota"
	"kctl/zkutil/cluster"
)

// Throttles are the bounds of replication in bytes per second (KIP-73); math.MaxInt64 is none.
type Throttles struct {
	Leader   int64 // leader.replication.throttled.rate
	Follower int64 // follower.replication.throttled.rate
	Moves    int64 // replica.alter.log.dirs.io.max.bytes.per.second
}

// Unthrottled is no bound at all.
var Unthrottled = Throttles{Leader: math.MaxInt64, Follower: math.MaxInt64, Moves: math.MaxInt64}

// throttlePause is how long a follower leaves a partition alone before it looks again whether it may ask for it.
const throttlePause = 100 * time.Millisecond

// throttle bounds what goes on for the listed replicas. All their bytes count; held back are only those of
// replicas that are not in sync, so that a low bound shrinks no ISR.
type throttle struct {
	listed atomic.Bool // some topic is: spares the lock when nothing is throttled

	mu     sync.Mutex // innermost
	bound  int64
	topics map[string]throttledPartitions
	rate   quota.Rate
}

// throttledPartitions are those of one topic.
type throttledPartitions struct {
	all  bool
	some []int32
}

// parseThrottled reads *.replication.throttled.replicas: * or partition:broker pairs, of which those of self count.
// What cannot be read is left out: a broker starts with any configuration.
func parseThrottled(list string, self cluster.BrokerID) (out throttledPartitions) {
	if strings.TrimSpace(list) == "*" {
		return throttledPartitions{all: true}
	}
	for _, pair := range strings.Split(list, ",") {
		part, broker, ok := strings.Cut(strings.TrimSpace(pair), ":")
		if !ok {
			continue
		}
		p, perr := strconv.ParseInt(part, 10, 32)
		b, berr := strconv.ParseInt(broker, 10, 32)
		if perr == nil && berr == nil && cluster.BrokerID(b) == self && !slices.Contains(out.some, int32(p)) {
			out.some = append(out.some, int32(p))
		}
	}
	return out
}

func newThrottle() *throttle {
	return &throttle{bound: math.MaxInt64, topics: map[string]throttledPartitions{}}
}

func (t *throttle) setBound(bytesPerSecond int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bound = bytesPerSecond
}

func (t *throttle) setTopic(topic string, parts throttledPartitions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !parts.all && len(parts.some) == 0 {
		delete(t.topics, topic)
	} else {
		t.topics[topic] = parts
	}
	t.listed.Store(len(t.topics) > 0)
}

// lists reports whether the replica is throttled at all.
func (t *throttle) lists(tp cluster.TopicPartition) bool {
	if !t.listed.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	parts, ok := t.topics[tp.Topic]
	return ok && (parts.all || slices.Contains(parts.some, tp.Partition))
}

func (t *throttle) exceeded(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bound < math.MaxInt64 && t.rate.Exceeds(now, t.bound)
}

func (t *throttle) record(now time.Time, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate.Record(now, int64(bytes))
}

// throttles are the three of a broker.
type throttles struct {
	leader, follower, moves *throttle
}

func newThrottles() throttles { return throttles{newThrottle(), newThrottle(), newThrottle()} }

// ThrottlesChanged takes up the brokers' bounds anew.
func (m *Manager) ThrottlesChanged() {
	bounds := m.opts.Throttles()
	m.throttles.leader.setBound(bounds.Leader)
	m.throttles.follower.setBound(bounds.Follower)
	m.throttles.moves.setBound(bounds.Moves)
}

// topicThrottled takes up a topic's lists anew.
func (m *Manager) topicThrottled(topic string) {
	leader, follower := m.opts.ThrottledReplicas(topic)
	m.throttles.leader.setTopic(topic, parseThrottled(leader, m.opts.BrokerID))
	m.throttles.follower.setTopic(topic, parseThrottled(follower, m.opts.BrokerID))
}

// heldBack reports whether a follower gets no records now: the partition is throttled, more than the bound has gone
// out, and the follower is out of sync. p.mu is held.
func (p *partition) heldBack(follower cluster.BrokerID, now time.Time) bool {
	t := p.m.throttles.leader
	return follower >= 0 && t.lists(p.tp) && !slices.Contains(p.core.ISR(), follower) && t.exceeded(now)
}

// countSent counts what an answer gives of throttled partitions, to replicas in sync too.
func (m *Manager) countSent(results []FetchResult) {
	t := m.throttles.leader
	if !t.listed.Load() {
		return
	}
	now := m.opts.Now()
	for i := range results {
		if n := results[i].Records.Size(); n > 0 && t.lists(results[i].TP) {
			t.record(now, n)
		}
	}
}

// holdBack leaves a partition out of the requests for a while when it is throttled, not level, and more than the
// bound has come in. s.mu is held.
func (s *stream) holdBack(f *follow) bool {
	t := s.m.throttles.follower
	if f.level || !t.lists(f.tp) {
		return false
	}
	now := s.m.opts.Now()
	if !t.exceeded(now) {
		return false
	}
	s.leaveSession(f)
	f.delayed, f.throttled, f.until = true, true, now.Add(throttlePause)
	s.delayed = append(s.delayed, f)
	return true
}

// countReceived counts what came in for a throttled partition, and notes whether it lacks more.
func (s *stream) countReceived(f *follow, bytes int, lag int64) {
	t := s.m.throttles.follower
	if !t.lists(f.tp) {
		return
	}
	if bytes > 0 {
		t.record(s.m.opts.Now(), bytes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.level = lag <= 0
}
