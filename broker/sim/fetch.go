package sim

import (
	"slices"
	"time"

	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/zkutil/cluster"
)

// fetchAnswer is what a leader sends back for one partition.
type fetchAnswer struct {
	verdict replica.FetchVerdict
	records []byte
}

func (p *part) stopFetch() {
	if p.fetch != nil {
		p.fetch.next.cancel()
		p.fetch = nil
	}
}

func (p *part) fetchAfter(f *fetching, d time.Duration) {
	if f == nil {
		return
	}
	f.next.cancel()
	f.next = p.n.at(p.n.inc, p.n.sim.now.Add(d), "fetch", func() {
		if p.fetch == f {
			p.sendFetch(f)
		}
	})
}

func (p *part) sendFetch(f *fetching) {
	n, s := p.n, p.n.sim
	if n.throttles.follower.HoldsBack(p.tp, p.core.Level(), s.now) {
		s.report.HeldBack++
		s.check.heldBack(p)
		p.fetchAfter(f, throttlePause)
		return
	}
	leader := s.node(f.leader)
	q := replica.FetchQuery{Replica: n.id, CurrentEpoch: f.epoch, LastFetchedEpoch: f.lastEpoch, Offset: f.offset}
	start, epoch := p.log.LogStartOffset(), n.brokerEpoch
	call(s, n, leader, "fetch", p.tp, func(reply func(fetchAnswer)) {
		reply(leader.serveFetch(p.tp, q, start, epoch))
	}, func(a *fetchAnswer) { p.fetched(f, q, a) })
}

// fetched takes an answer, or none, and goes on.
func (p *part) fetched(f *fetching, q replica.FetchQuery, a *fetchAnswer) {
	if a == nil {
		if p.fetch == f {
			p.step(replica.FetchLost{At: p.n.sim.now, LeaderEpoch: q.CurrentEpoch})
			p.fetchAfter(f, backOffFetch)
		}
		return
	}
	if p.log == nil {
		return
	}
	v := a.verdict
	ev, appended, err := logexec.ApplyFetch(p.core, p.log, logexec.Answer{LeaderEpoch: q.CurrentEpoch, FetchOffset: q.Offset, FetchedEpoch: q.LastFetchedEpoch,
		Code: v.Code, HighWatermark: v.HighWatermark, LogStart: v.LogStart, Diverging: v.Diverging, Records: a.records}, p.n.sim.now)
	if p.n.throttles.follower.Lists(p.tp) {
		p.n.throttles.follower.Record(p.n.sim.now, appended)
	}
	if _, failed := ev.(replica.LogFailed); failed {
		p.n.diskFailed(err)
		return
	}
	if err != nil {
		p.n.sim.fail("%s %s: append as follower at %d: %v", p.n, p.tp, q.Offset, err)
		return
	}
	if p.n.sim.trace.on() {
		p.n.sim.trace.line("%s %s at %d epoch %d: code %d, %d bytes, hw %d, diverging %v", p.n, p.tp, q.Offset, q.CurrentEpoch, v.Code, len(a.records), v.HighWatermark, v.Diverging)
	}
	if p.fetch == f { // the next one; a BackOff or FetchFrom among the effects moves it
		pause := idleFetch
		if appended > 0 || v.Diverging != nil {
			pause = p.n.sim.between(0, 3*time.Millisecond)
		}
		p.fetchAfter(f, pause)
	}
	p.step(ev)
}

// serveFetch is the leader's side, for followers and consumers.
func (n *node) serveFetch(tp cluster.TopicPartition, q replica.FetchQuery, followerStart int64, epoch cluster.BrokerEpoch) fetchAnswer {
	p := n.parts[tp]
	if p == nil || p.log == nil {
		return fetchAnswer{verdict: replica.FetchVerdict{Code: replica.CodeUnknownTopicOrPartition}}
	}
	v := p.core.CheckFetch(q, p.log)
	if v.HigherEpoch {
		p.step(replica.HigherEpochSeen{At: n.sim.now, Replica: q.Replica, LeaderEpoch: q.CurrentEpoch})
	}
	n.sim.check.fetchVerdict(p, q, v)
	if v.Code != replica.CodeNone || v.Diverging != nil {
		return fetchAnswer{verdict: v}
	}
	if q.Replica >= 0 {
		p.step(replica.FollowerFetched{At: n.sim.now, Replica: q.Replica, FetchOffset: q.Offset, LogStart: followerStart, Alive: n.alive[q.Replica], ReplicaEpoch: epoch})
		if !n.up || p.log == nil {
			return fetchAnswer{verdict: replica.FetchVerdict{Code: replica.CodeNotLeaderOrFollower}}
		}
		v.HighWatermark = p.core.HighWatermark()
		if n.throttles.leader.HoldsBack(tp, slices.Contains(p.core.ISR(), q.Replica), n.sim.now) {
			n.sim.report.HeldBack++
			return fetchAnswer{verdict: v}
		}
	}
	records, err := readLog(p, q.Offset, v.Bound, fetchBytes)
	if err != nil {
		n.sim.fail("%s %s: read at %d below %d: %v", n, tp, q.Offset, v.Bound, err)
	}
	if q.Replica >= 0 && n.throttles.leader.Lists(tp) {
		n.throttles.leader.Record(n.sim.now, len(records))
	}
	return fetchAnswer{verdict: v, records: records}
}

func readLog(p *part, offset, bound int64, maxBytes int) ([]byte, error) {
	if offset >= bound {
		return nil, nil
	}
	slice, err := p.log.Read(offset, maxBytes, bound, true)
	if err != nil {
		return nil, err
	}
	defer slice.Release()
	buf := make([]byte, slice.Size())
	n, err := slice.ReadInto(buf)
	return buf[:n], err
}

// askLeader is the follower's question after its offset was out of the leader's range.
func (p *part) askLeader(e replica.AskLeader) {
	s, n := p.n.sim, p.n
	leader := s.node(e.Leader)
	call(s, n, leader, "ask leader", p.tp, func(reply func(replica.LeaderAsked)) {
		ev := replica.LeaderAsked{LeaderEpoch: e.LeaderEpoch, Code: replica.CodeUnknownTopicOrPartition}
		if q := leader.parts[p.tp]; q != nil && q.log != nil {
			if ev.Code = q.core.CheckEpoch(e.LeaderEpoch); ev.Code == replica.CodeNone {
				ev.LogStart, ev.LogEnd = q.log.LogStartOffset(), q.log.LogEndOffset()
				ev.EpochEnd = logexec.EpochEnd(q.log, e.LastEpoch)
			}
		}
		reply(ev)
	}, func(ev *replica.LeaderAsked) {
		if p.log == nil || n.parts[p.tp] != p {
			return
		}
		if ev == nil {
			ev = &replica.LeaderAsked{LeaderEpoch: e.LeaderEpoch, Code: replica.CodeRequestTimedOut}
		}
		ev.At, ev.LocalEnd = s.now, replica.UndefinedEpochEnd
		if ev.EpochEnd.Known() {
			ev.LocalEnd = logexec.EpochEnd(p.log, ev.EpochEnd.Epoch)
		}
		p.step(*ev)
	})
}
