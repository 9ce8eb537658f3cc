package replica

import (
	"slices"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
)

// fetchState is a follower's replication from its leader. The next fetch is always at the log end.
type fetchState struct {
	active bool // StartFetching was emitted, StopFetching was not
	retry  int  // back-offs in a row
	busy   busy // why answers are ignored at the moment
	cutEnd int64
	cutEp  cluster.LeaderEpoch
	level  bool // see Level
}

type busy uint8

const (
	notBusy busy = iota
	cutting      // a truncation is unanswered
	asking       // an AskLeader is unanswered
)

func (p *Partition) startFetching(out []Effect) []Effect {
	p.fetch = fetchState{active: true, level: slices.Contains(p.isr, p.cfg.Self)}
	return append(out, StartFetching{Leader: p.leader, LeaderEpoch: p.epoch, From: p.log.end, LastEpoch: p.log.lastEpoch})
}

func (p *Partition) stopFetching(out []Effect) []Effect {
	if !p.fetch.active {
		return out
	}
	p.fetch = fetchState{}
	return append(out, StopFetching{})
}

// Level reports whether a follower lacks nothing that it knows to be committed: the decision that made it follow lists
// it in the ISR, the newest answer ended at or above the leader's high watermark, or an answer was lost since, which may
// have been the one after which the leader counts it in sync. A replica in sync is always level,
// so whoever holds back only those that are not (KIP-73) shrinks no ISR, whatever it knew before.
func (p *Partition) Level() bool { return p.role == Follower && p.fetch.active && p.fetch.level }

// AcceptsFetch reports whether the answer to a fetch that was sent with this leader epoch, at this offset and
// with this last fetched epoch, may be applied now. Offset and last epoch together name the log up to there: an
// answer to what the log was before a truncation does not fit what it is after.
func (p *Partition) AcceptsFetch(epoch cluster.LeaderEpoch, offset int64, fetched cluster.LeaderEpoch) bool {
	return p.role == Follower && p.fetch.active && p.fetch.busy == notBusy &&
		epoch == p.epoch && offset == p.log.end && fetched == p.log.lastEpoch
}

func (p *Partition) fetchAnswered(ev FetchAnswered, out []Effect) []Effect {
	if !p.AcceptsFetch(ev.LeaderEpoch, ev.FetchOffset, ev.FetchedEpoch) {
		return out
	}
	switch {
	case ev.Code == CodeOffsetOutOfRange:
		p.fetch.busy = asking
		return append(out, AskLeader{Leader: p.leader, LeaderEpoch: p.epoch, LastEpoch: p.log.lastEpoch})
	case ev.Code == CodeFencedLeaderEpoch:
		return p.stopFetching(out) // the leader is ahead of us: a new LeaderAndISR is on its way
	case ev.Code != CodeNone:
		return p.backOff(ev.Code, out)
	case ev.Diverging != nil:
		return p.cut(p.cutPoint(*ev.Diverging, ev.LocalEnd), ev.LogStart, out)
	case p.BeginsAnew(ev.LogStart):
		p.fetch.level = p.log.end >= ev.HighWatermark
		return p.beginAnew(ev.LogStart, out)
	}
	out = p.progress(ev, out)
	p.fetch.level = p.log.end >= ev.HighWatermark
	if ev.AppendFailed {
		return p.backOff(CodeNone, out)
	}
	p.fetch.retry = 0
	return out
}

func (p *Partition) fetchLost(ev FetchLost) {
	if p.fetch.active && ev.LeaderEpoch == p.epoch {
		p.fetch.level = true
	}
}

// progress takes over what the leader's answer brought. The high watermark trails the leader's by one fetch
// (V3 G.5) and never falls.
func (p *Partition) progress(ev FetchAnswered, out []Effect) []Effect {
	invariant.Assert(ev.LogEnd >= p.log.end, "log end fell from %d to %d by a fetch", p.log.end, ev.LogEnd)
	if ev.LogEnd > p.log.end {
		p.log.end, p.log.lastEpoch = ev.LogEnd, ev.LastEpoch
		out = append(out, FetchFrom{Offset: p.log.end, LastEpoch: p.log.lastEpoch})
	}
	if hw := min(ev.HighWatermark, p.log.end); hw > p.log.hw {
		p.log.hw = hw
		out = append(out, SetHighWatermark{hw})
	}
	if start := min(ev.LogStart, p.log.hw); start > p.log.start {
		out = append(out, AdvanceLogStart{start})
	}
	return out
}

func (p *Partition) backOff(code Code, out []Effect) []Effect {
	p.fetch.retry++
	return append(out, BackOff{Code: code, Retry: p.fetch.retry})
}

// cutPoint is where our log parts from the leader's: theirs is the leader's end of the largest epoch not above
// our newest, ours our own end of that epoch (KIP-101, KIP-279).
func (p *Partition) cutPoint(theirs, ours EpochEnd) int64 {
	switch {
	case !theirs.Known():
		return p.log.hw // what was committed is all that is certain
	case !ours.Known():
		return min(theirs.Offset, p.log.end)
	case ours.Epoch != theirs.Epoch:
		// We never had the leader's epoch: cut to the end of our next smaller one and ask again.
		return min(ours.Offset, p.log.end)
	}
	return min(theirs.Offset, ours.Offset, p.log.end)
}

// BeginsAnew reports whether a follower whose log ends where its leader's begins throws all of it away before it takes
// more. The leader forgot the epochs of what it deleted and answers for none of that: whatever an earlier leader
// left above our high watermark may never have been committed, and must not become so by being older than the rest.
func (p *Partition) BeginsAnew(leaderStart int64) bool {
	return leaderStart == p.log.end && p.log.hw < leaderStart && p.log.lastEpoch < p.epoch
}

// beginAnew empties the log: it starts where the leader's does.
func (p *Partition) beginAnew(leaderStart int64, out []Effect) []Effect {
	p.fetch.busy, p.fetch.cutEnd, p.fetch.cutEp = cutting, p.log.end, p.log.lastEpoch
	out = append(out, p.logCut(leaderStart, BelowLeaderStart))
	return append(out, TruncateFullyAndStartAt{leaderStart})
}

// cut takes away what is not the leader's, whose log starts at leaderStart.
func (p *Partition) cut(to, leaderStart int64, out []Effect) []Effect {
	if to <= leaderStart && p.log.hw < leaderStart {
		// Nothing is left that the leader holds. What it deleted it cannot compare (see BeginsAnew).
		return p.beginAnew(leaderStart, out)
	}
	p.fetch.busy, p.fetch.cutEnd, p.fetch.cutEp = cutting, p.log.end, p.log.lastEpoch
	if to < p.log.start {
		// The epochs agree nowhere in what we hold. Keep nothing, go on from where our log began.
		to = p.log.start
	}
	out = append(out, p.logCut(to, DivergedFromLeader))
	return append(out, TruncateTo{Offset: to})
}

func (p *Partition) logCut(to int64, reason CutReason) LogCut {
	return LogCut{From: p.log.end, To: to, HighWatermark: p.log.hw, BelowHighWatermark: to < p.log.hw, Reason: reason}
}

func (p *Partition) truncated(ev Truncated, out []Effect) []Effect {
	if ev.Failed {
		return p.logFailed(out)
	}
	p.log.start, p.log.end, p.log.lastEpoch, p.log.emptyEpoch = ev.LogStart, ev.LogEnd, ev.LastEpoch, false
	// After a full truncation the high watermark is the new start: log start <= HW <= LEO, always (KAFKA-9491).
	if hw := min(max(p.log.hw, ev.LogStart), ev.LogEnd); hw != p.log.hw {
		p.log.hw = hw
		out = append(out, SetHighWatermark{hw})
	}
	if p.applying != nil && p.applying.wait == waitCut {
		return p.becomeFollower(out)
	}
	if !p.fetch.active || p.fetch.busy != cutting {
		return out
	}
	p.fetch.busy = notBusy
	out = append(out, FetchFrom{Offset: p.log.end, LastEpoch: p.log.lastEpoch})
	if p.log.end == p.fetch.cutEnd && p.log.lastEpoch == p.fetch.cutEp {
		return p.backOff(CodeNone, out) // nothing changed: do not ask the same thing in a tight loop
	}
	return out
}

// leaderAsked decides after OFFSET_OUT_OF_RANGE. The log is thrown away only when the leader no longer holds
// anything that we could append to; everything else goes by epochs (KAFKA-2143, KAFKA-7414).
func (p *Partition) leaderAsked(ev LeaderAsked, out []Effect) []Effect {
	if p.role != Follower || !p.fetch.active || p.fetch.busy != asking || ev.LeaderEpoch != p.epoch {
		return out
	}
	p.fetch.busy = notBusy
	if ev.Code != CodeNone {
		return p.backOff(ev.Code, out)
	}
	if ev.LogStart > p.log.end {
		return p.beginAnew(ev.LogStart, out)
	}
	diverged := ev.EpochEnd.Known() && (ev.EpochEnd.Epoch < p.log.lastEpoch || ev.EpochEnd.Offset < p.log.end)
	switch {
	case diverged:
		return p.cut(p.cutPoint(ev.EpochEnd, ev.LocalEnd), ev.LogStart, out)
	case !ev.EpochEnd.Known() && ev.LogEnd < p.log.end:
		return p.cut(min(p.log.hw, ev.LogEnd), ev.LogStart, out)
	}
	return p.backOff(CodeOffsetOutOfRange, out) // the leader has grown meanwhile: fetch again
}

func (p *Partition) logStartAdvanced(ev LogStartAdvanced, out []Effect) []Effect {
	if ev.Failed {
		return p.logFailed(out)
	}
	if !p.log.open || ev.LogStart <= p.log.start {
		return out
	}
	p.log.start = min(ev.LogStart, p.log.end)
	if p.log.hw < p.log.start {
		p.log.hw = p.log.start
		out = append(out, SetHighWatermark{p.log.hw})
	}
	return p.advanceHighWatermark(ev.At, out)
}
