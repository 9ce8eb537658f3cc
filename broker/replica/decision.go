package replica

import (
	"slices"
	"time"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
)

// leaderAndISR applies a decision by its leader epoch alone, so that replay, duplication and reordering end
// in the same state.
func (p *Partition) leaderAndISR(ev LeaderAndISR, out []Effect) []Effect {
	invariant.Assert(p.applying == nil, "a decision arrived while another was being applied")
	switch {
	case p.role == Offline:
		return append(out, Answer{CodeKafkaStorageError})
	case !ev.TopicID.IsZero() && !p.log.topicID.IsZero() && ev.TopicID != p.log.topicID:
		return append(out, Answer{CodeInconsistentTopicID})
	case ev.LeaderEpoch < p.epoch:
		return append(out, Answer{CodeStaleControllerEpoch})
	case ev.LeaderEpoch == p.epoch:
		return p.sameEpoch(ev, out)
	case !slices.Contains(ev.Replicas, p.cfg.Self):
		return append(out, Answer{CodeUnknownTopicOrPartition})
	}
	// V3 C.6: before anything else, nothing more from the old leader may be appended.
	out = p.stopFetching(out)
	p.applying = &applying{ev: ev, wait: waitOpen}
	if !p.log.open {
		return append(out, OpenLog{TopicID: ev.TopicID, IsNew: ev.IsNew})
	}
	return p.apply(out)
}

// sameEpoch answers a decision of the epoch that is already applied. A resend confirms. One that carries a
// newer version of the state znode brings the leader up to date and frees an ISR change that waits for it.
func (p *Partition) sameEpoch(ev LeaderAndISR, out []Effect) []Effect {
	if p.stopped || ev.Leader != p.leader {
		return append(out, Answer{CodeStaleControllerEpoch})
	}
	if ev.ZKVersion > p.zkVersion {
		p.replicas, p.adding, p.removing = ev.Replicas, ev.Adding, ev.Removing
		out = p.adopt(ev.At, ev.ISR, ev.ZKVersion, out)
	}
	return append(out, Answer{CodeNone})
}

// apply goes on with p.applying once the log is open.
func (p *Partition) apply(out []Effect) []Effect {
	ev := p.applying.ev
	if ev.LeaderEpoch < p.log.lastEpoch {
		// The log holds records of a later epoch: the decision is an old one, or ZooKeeper has lost writes
		// (KAFKA-12163). Epochs in a log must never fall. The code is not that of a stale decision, which the
		// controller takes for a confirmation.
		p.applying = nil
		return append(out, Answer{CodeFencedLeaderEpoch})
	}
	if ev.Leader == p.cfg.Self {
		p.applying.wait = waitEpochStart
		return append(out, AssignEpochStart{Epoch: ev.LeaderEpoch, Offset: p.log.end})
	}
	if p.log.end > p.log.start && p.log.lastEpoch < 0 && p.log.end > p.log.hw {
		// Without epochs there is no telling where this log parts from the leader's.
		p.applying.wait = waitCut
		out = append(out, p.logCut(p.log.hw, NoEpochs))
		return append(out, TruncateTo{Offset: p.log.hw})
	}
	if p.log.emptyEpoch {
		// We led and appended nothing. Records of an older epoch may follow from the leader; they must not be
		// taken for ours.
		p.applying.wait = waitCut
		return append(out, TruncateTo{Offset: p.log.end})
	}
	return p.becomeFollower(out)
}

func (p *Partition) logOpened(ev LogOpened, out []Effect) []Effect {
	invariant.Assert(p.applying != nil && p.applying.wait == waitOpen, "a log was opened that nobody asked for")
	if ev.Failed {
		return p.logFailed(out)
	}
	want := p.applying.ev.TopicID
	if !want.IsZero() && !ev.TopicID.IsZero() && want != ev.TopicID {
		p.applying = nil
		return append(out, Answer{CodeInconsistentTopicID})
	}
	p.log = logState{open: true, start: ev.LogStart, end: ev.LogEnd, lastEpoch: ev.LastEpoch, emptyEpoch: ev.EmptyEpoch,
		topicID: ev.TopicID}
	p.log.hw = min(max(ev.HighWatermark, ev.LogStart), ev.LogEnd)
	out = append(out, SetHighWatermark{p.log.hw})
	return p.apply(out)
}

func (p *Partition) epochStartAssigned(ev EpochStartAssigned, out []Effect) []Effect {
	invariant.Assert(p.applying != nil && p.applying.wait == waitEpochStart, "an epoch start nobody asked for")
	if ev.Failed {
		return p.logFailed(out)
	}
	return p.becomeLeader(out)
}

// accept records the decision that is being applied as the newest one.
func (p *Partition) accept() LeaderAndISR {
	ev := p.applying.ev
	p.applying = nil
	p.epoch, p.controllerEpoch, p.leader = ev.LeaderEpoch, ev.ControllerEpoch, ev.Leader
	p.replicas, p.adding, p.removing = ev.Replicas, ev.Adding, ev.Removing
	p.isr, p.zkVersion = ev.ISR, ev.ZKVersion
	p.topicID, p.stopped = ev.TopicID, false
	p.pending, p.deposed = nil, deposedState{}
	return ev
}

func (p *Partition) becomeLeader(out []Effect) []Effect {
	ev := p.accept()
	from := p.setRole(Leader)
	p.epochStart, p.log.emptyEpoch = p.log.end, true
	p.resetFollowers(ev.At, from == Leader)
	out = append(out, p.roleChanged(from))
	out = p.advanceHighWatermark(ev.At, out)
	return append(out, Answer{CodeNone})
}

// becomeFollower also takes a decision without a leader: whoever led stops at once (KAFKA-13193).
func (p *Partition) becomeFollower(out []Effect) []Effect {
	p.accept()
	from := p.setRole(Follower)
	p.followers = nil
	if from == Leader {
		out = append(out, FailWaiting{CodeNotLeaderOrFollower})
	}
	out = append(out, p.roleChanged(from))
	if p.leader >= 0 {
		out = p.startFetching(out)
	}
	return append(out, Answer{CodeNone})
}

func (p *Partition) roleChanged(from Role) RoleChanged {
	return RoleChanged{From: from, To: p.role, Leader: p.leader, LeaderEpoch: p.epoch, ISR: p.isr, ZKVersion: p.zkVersion}
}

// stopReplica ends the replica. The epoch is remembered, so that a LeaderAndISR of the same decision or an
// older one that comes late does not bring it back (KAFKA-9539).
func (p *Partition) stopReplica(ev StopReplica, out []Effect) []Effect {
	invariant.Assert(p.applying == nil, "StopReplica while a decision is being applied")
	if ev.LeaderEpoch >= 0 && ev.LeaderEpoch < p.epoch {
		return append(out, Answer{CodeFencedLeaderEpoch})
	}
	if p.role == Offline {
		return append(out, Answer{CodeKafkaStorageError})
	}
	out = p.stopFetching(out)
	from := p.setRole(None)
	if from == Leader {
		out = append(out, FailWaiting{CodeNotLeaderOrFollower})
	}
	p.epoch = max(p.epoch, ev.LeaderEpoch)
	p.stopped, p.leader = true, cluster.NoLeader
	p.pending, p.followers, p.isr = nil, nil, nil
	if from != None {
		out = append(out, p.roleChanged(from))
	}
	if ev.Delete {
		p.log = logState{}
		out = append(out, DeleteLog{})
	}
	return append(out, Answer{CodeNone})
}

// logFailed ends the role: without its log directory a replica can neither lead nor follow. The controller
// learns it from the KAFKA_STORAGE_ERROR answers and from the broker's log directory notification.
func (p *Partition) logFailed(out []Effect) []Effect {
	if p.role == Offline {
		return out
	}
	out = p.stopFetching(out)
	from := p.setRole(Offline)
	p.pending, p.followers = nil, nil
	if from == Leader {
		out = append(out, FailWaiting{CodeKafkaStorageError})
	}
	out = append(out, p.roleChanged(from))
	if p.applying != nil {
		p.applying = nil
		out = append(out, Answer{CodeKafkaStorageError})
	}
	return out
}

// resetFollowers makes the follower table of a new leader epoch. Members of the ISR count as caught up now:
// a new leader must not throw out healthy followers for a silence it has not listened to. stay is true when
// this broker led before, so what it knows of their logs still holds.
func (p *Partition) resetFollowers(at time.Time, stay bool) {
	old := p.followers
	p.followers = make([]follower, 0, len(p.replicas))
	add := func(id cluster.BrokerID) {
		if id == p.cfg.Self || p.follower(id) != nil {
			return
		}
		f := follower{id: id, end: -1, start: -1, leaderEndAtFetch: -1, brokerEpoch: cluster.NoBrokerEpoch}
		if i := slices.IndexFunc(old, func(o follower) bool { return o.id == id }); stay && i >= 0 {
			f = old[i]
			f.caughtUpAt, f.heard = time.Time{}, false
		}
		if slices.Contains(p.isr, id) {
			f.caughtUpAt = at
		}
		p.followers = append(p.followers, f)
	}
	for _, id := range p.replicas {
		add(id)
	}
	for _, id := range p.isr { // a broker that is no longer a replica may still be listed (KAFKA-9672)
		add(id)
	}
}
