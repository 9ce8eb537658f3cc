package replicashell

import (
	"sync/atomic"
	"time"

	"kctl/broker/replica"
	"kctl/zkutil/cluster"
)

// follow is the replication of one partition: what its state machine asked for, as the stream needs it. A new
// StartFetching makes a new follow.
type follow struct {
	p       *partition
	tp      cluster.TopicPartition
	topicID cluster.TopicID
	stream  *stream
	epoch   cluster.LeaderEpoch
	level   atomic.Bool // replica.Partition.Level; changed under p.mu

	// The rest is guarded by stream.mu.
	offset    int64
	lastEpoch cluster.LeaderEpoch
	ask       *replica.AskLeader // the leader is to be asked before the next fetch
	inSession bool               // the leader's fetch session knows the partition
	queued    bool               // in stream.changed
	delayed   bool               // in stream.delayed
	until     time.Time          // end of the back-off
	throttled bool               // delayed by the throttle: whether it is over is looked at again then
	removed   bool
	logStart  int64 // as last sent
}

// startFetching is called under p.mu, as the next one.
func (p *partition) startFetching(eff replica.StartFetching) {
	if p.follow != nil {
		p.follow.stream.remove(p.follow)
	}
	p.follow = &follow{p: p, tp: p.tp, topicID: p.log.TopicID(), epoch: eff.LeaderEpoch, offset: eff.From, lastEpoch: eff.LastEpoch}
	p.follow.level.Store(p.core.Level())
	p.m.streams.add(eff.Leader, p.log.Dir(), p.follow)
}

func (p *partition) steerFetching(eff replica.Effect) {
	f := p.follow
	if f == nil {
		return
	}
	s := f.stream
	switch eff := eff.(type) {
	case replica.StopFetching:
		s.remove(f)
		p.follow = nil
	case replica.FetchFrom:
		s.update(f, func() { f.offset, f.lastEpoch = eff.Offset, eff.LastEpoch })
	case replica.BackOff:
		s.delay(f, p.m.opts.Now().Add(p.m.backOff(eff.Retry)))
	case replica.AskLeader:
		s.update(f, func() { f.ask = &eff })
	}
}

// backOff grows from a fiftieth of replica.fetch.backoff.ms to the whole: right after an election the leader is
// usually a few milliseconds behind its followers, and a second would be the longest part of a failover.
func (m *Manager) backOff(retry int) time.Duration {
	d := m.opts.FetchBackoff / 50
	for i := 1; i < retry && d < m.opts.FetchBackoff; i++ {
		d *= 2
	}
	return min(d, m.opts.FetchBackoff)
}
