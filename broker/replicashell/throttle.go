package replicashell

import (
	"slices"
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
var Unthrottled = Throttles{Leader: quota.Unbounded, Follower: quota.Unbounded, Moves: quota.Unbounded}

// throttlePause is how long a follower leaves a partition alone before it looks again whether it may ask for it.
const throttlePause = 100 * time.Millisecond

// throttle is a quota.Throttle for many goroutines.
type throttle struct {
	listed atomic.Bool // some topic is: spares the lock when nothing is throttled

	mu sync.Mutex // innermost
	t  *quota.Throttle
}

func newThrottle() *throttle { return &throttle{t: quota.NewThrottle()} }

func (t *throttle) setBound(bytesPerSecond int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.SetBound(bytesPerSecond)
}

func (t *throttle) setTopic(topic string, r quota.Replicas) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.List(topic, r)
	t.listed.Store(t.t.Any())
}

// lists reports whether the replica is throttled at all.
func (t *throttle) lists(tp cluster.TopicPartition) bool {
	if !t.listed.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.t.Lists(tp)
}

func (t *throttle) holdsBack(tp cluster.TopicPartition, inSync bool, now time.Time) bool {
	if inSync || !t.listed.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.t.HoldsBack(tp, inSync, now)
}

func (t *throttle) exceeded(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.t.Exceeded(now)
}

func (t *throttle) record(now time.Time, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.t.Record(now, bytes)
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
	m.throttles.leader.setTopic(topic, quota.ParseReplicas(leader, m.opts.BrokerID))
	m.throttles.follower.setTopic(topic, quota.ParseReplicas(follower, m.opts.BrokerID))
}

// heldBack reports whether a follower gets no records now: the partition is throttled, more than the bound has gone
// out, and the follower is out of sync. p.mu is held.
func (p *partition) heldBack(follower cluster.BrokerID, now time.Time) bool {
	return follower >= 0 && p.m.throttles.leader.holdsBack(p.tp, slices.Contains(p.core.ISR(), follower), now)
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
	now := s.m.opts.Now()
	if !s.m.throttles.follower.holdsBack(f.tp, f.level.Load(), now) {
		return false
	}
	s.leaveSession(f)
	f.delayed, f.throttled, f.until = true, true, now.Add(throttlePause)
	s.delayed = append(s.delayed, f)
	return true
}

// countReceived counts what came in for a throttled partition.
func (s *stream) countReceived(f *follow, bytes int) {
	if t := s.m.throttles.follower; bytes > 0 && t.lists(f.tp) {
		t.record(s.m.opts.Now(), bytes)
	}
}
