package replica

import (
	"slices"
	"time"

	"kctl/zkutil/cluster"
)

// isrChange is an ISR change that is not committed. While there is one, no other is begun.
type isrChange struct {
	isr       []cluster.BrokerID
	reason    ISRReason
	ifVersion cluster.ZKVersion
	stage     isrStage
	// asked is true while a ReadState is unanswered.
	asked bool
	// found is the ISR that the znode was seen to hold when it was not ours: it counts into the maximal ISR.
	found []cluster.BrokerID
}

type isrStage uint8

const (
	stageWriting isrStage = iota + 1 // a WriteISR is unanswered
	stageReading                     // the write was refused or its reply lost: reading back
	stageBlocked                     // the znode holds another decision: only a new LeaderAndISR ends this
)

// inMaximalISR reports whether id is in the ISR that the znode may hold at this moment: the committed one, or
// what the change in flight would make of it. A removal counts only when it is committed.
func (p *Partition) inMaximalISR(id cluster.BrokerID) bool {
	if slices.Contains(p.isr, id) {
		return true
	}
	return p.pending != nil && (slices.Contains(p.pending.isr, id) || slices.Contains(p.pending.found, id))
}

// maximalISRSize counts the members of the maximal ISR.
func (p *Partition) maximalISRSize() int {
	n := len(p.isr)
	if p.pending == nil {
		return n
	}
	for i := range p.followers {
		if id := p.followers[i].id; !slices.Contains(p.isr, id) && p.inMaximalISR(id) {
			n++
		}
	}
	return n
}

// tick shrinks the ISR by those that lag (V3 G.6, G.9), and repeats what an unanswered read-back left open.
func (p *Partition) tick(at time.Time, out []Effect) []Effect {
	if p.role != Leader {
		return out
	}
	if p.pending != nil {
		if p.pending.stage == stageReading && !p.pending.asked {
			p.pending.asked = true
			out = append(out, ReadState{})
		}
		return out
	}
	var slow []cluster.BrokerID
	for i := range p.followers {
		f := &p.followers[i]
		if slices.Contains(p.isr, f.id) && f.end != p.log.end && at.Sub(f.caughtUpAt) > p.cfg.LagTimeMax {
			slow = append(slow, f.id)
		}
	}
	out = p.removeFromISR(slow, Lagged, out)
	out = p.expandISR(at, out)
	return p.advanceHighWatermark(at, out)
}

func (p *Partition) removeFromISR(gone []cluster.BrokerID, reason ISRReason, out []Effect) []Effect {
	if len(gone) == 0 || p.pending != nil {
		return out
	}
	keep := make([]cluster.BrokerID, 0, len(p.isr))
	for _, id := range p.isr {
		if !slices.Contains(gone, id) {
			keep = append(keep, id)
		}
	}
	return p.propose(keep, reason, out)
}

// expandISR adds every replica that has caught up (V3 G.7): its log end reaches the high watermark and the
// start of this leader epoch (KAFKA-7128), its broker is registered, and it fetched lately and in this epoch.
func (p *Partition) expandISR(at time.Time, out []Effect) []Effect {
	if p.pending != nil {
		return out
	}
	var grown []cluster.BrokerID
	for i := range p.followers {
		f := &p.followers[i]
		if f.end < p.log.hw || f.end < p.epochStart || !f.alive || !f.heard || at.Sub(f.lastFetchAt) > p.cfg.LagTimeMax {
			continue
		}
		if slices.Contains(p.isr, f.id) || !slices.Contains(p.replicas, f.id) {
			continue
		}
		if grown == nil {
			grown = slices.Clone(p.isr)
		}
		grown = append(grown, f.id)
	}
	if grown == nil {
		return out
	}
	return p.propose(grown, Joined, out)
}

func (p *Partition) propose(isr []cluster.BrokerID, reason ISRReason, out []Effect) []Effect {
	p.pending = &isrChange{isr: isr, reason: reason, ifVersion: p.zkVersion, stage: stageWriting}
	return append(out, p.write())
}

func (p *Partition) write() WriteISR {
	return WriteISR{Leader: p.cfg.Self, LeaderEpoch: p.epoch, ControllerEpoch: p.controllerEpoch,
		ISR: p.pending.isr, IfVersion: p.pending.ifVersion}
}

func (p *Partition) isrWritten(ev ISRWritten, out []Effect) []Effect {
	if p.role != Leader || p.pending == nil || p.pending.stage != stageWriting || p.pending.ifVersion != ev.IfVersion {
		return out // answers a change that a newer decision ended
	}
	if ev.Outcome == Written {
		return p.commit(ev.At, p.pending.isr, ev.Version, p.pending.reason, out)
	}
	p.pending.stage, p.pending.asked = stageReading, true
	return append(out, ReadState{})
}

// stateRead decides what a write that was refused or unknown has come to.
func (p *Partition) stateRead(ev StateRead, out []Effect) []Effect {
	c := p.pending
	if p.role != Leader || c == nil || c.stage != stageReading {
		return out
	}
	c.asked = false
	mine := ev.State.Leader == p.cfg.Self && ev.State.LeaderEpoch == p.epoch
	switch {
	case !ev.OK:
		return out // asked again at the next Tick
	case ev.Gone || !mine:
		return p.block(ev, out)
	case ev.Version == c.ifVersion:
		// Not applied yet, but a lost write may still land. The same write again is harmless either way;
		// another one would not be.
		c.stage = stageWriting
		return append(out, p.write())
	case ev.Version > c.ifVersion && slices.Equal(ev.State.ISR, c.isr):
		return p.commit(ev.At, c.isr, ev.Version, c.reason, out) // it was ours; only the reply was lost
	case ev.Version > c.ifVersion && slices.Equal(ev.State.ISR, p.isr):
		// Somebody wrote the same bytes: the version moved, the decision did not. Take the version up and look
		// anew at what is to be changed.
		p.pending, p.zkVersion = nil, ev.Version
		return p.tick(ev.At, out)
	}
	return p.block(ev, out)
}

// block leaves the ISR alone until the controller speaks. The leader goes on: it cannot commit past members
// that have left for a newer leader, so nothing is lost meanwhile (V3 discussion 3).
func (p *Partition) block(ev StateRead, out []Effect) []Effect {
	p.pending.stage, p.pending.found = stageBlocked, ev.State.ISR
	return append(out, ISRChangeBlocked{Wanted: p.pending.isr, IfVersion: p.pending.ifVersion,
		Found: ev.State, FoundAt: ev.Version, LeaderEpoch: p.epoch})
}

func (p *Partition) commit(at time.Time, isr []cluster.BrokerID, version cluster.ZKVersion, reason ISRReason, out []Effect) []Effect {
	from := p.isr
	p.isr, p.zkVersion, p.pending = isr, version, nil
	out = append(out, ISRChanged{From: from, To: isr, LeaderEpoch: p.epoch, ZKVersion: version, Reason: reason})
	if reason != Told {
		out = append(out, NotifyISRChange{})
	}
	out = p.advanceHighWatermark(at, out)
	if len(isr) < p.effectiveMin() && len(from) >= p.effectiveMin() {
		// They are in the log and may yet commit, but not while the ISR is this small.
		out = append(out, FailWaiting{CodeNotEnoughReplicasAppended})
	}
	if reason != Told {
		out = p.removeFromISR(p.lostMembers(), LostData, out)
	}
	return p.expandISR(at, out)
}

// lostMembers lists members of the ISR that lost their logs while a write was on its way, also the one that let them in.
func (p *Partition) lostMembers() []cluster.BrokerID {
	var gone []cluster.BrokerID
	for i := range p.followers {
		if f := &p.followers[i]; f.lost && slices.Contains(p.isr, f.id) {
			gone = append(gone, f.id)
		}
	}
	return gone
}

// adopt takes the ISR of a newer version of the state znode at the same leader epoch, from the controller.
func (p *Partition) adopt(at time.Time, isr []cluster.BrokerID, version cluster.ZKVersion, out []Effect) []Effect {
	switch {
	case p.role != Leader:
		p.isr, p.zkVersion = isr, version
		return out
	case p.pending != nil && slices.Equal(isr, p.pending.isr):
		return p.commit(at, isr, version, p.pending.reason, out) // our own write, heard of by another way
	case !slices.Equal(isr, p.isr):
		for i := range p.followers {
			if f := &p.followers[i]; slices.Contains(isr, f.id) && !slices.Contains(p.isr, f.id) {
				f.caughtUpAt = later(f.caughtUpAt, at)
			}
		}
		return p.commit(at, isr, version, Told, out)
	}
	p.pending, p.zkVersion = nil, version
	out = p.advanceHighWatermark(at, out)
	return p.expandISR(at, out)
}
