package group

import (
	"maps"
	"slices"
	"time"

	"kctl/zkutil/cluster"
)

// tombstones are the records that remove offsets, in the order of the partitions.
func (g *consumerGroup) tombstones(tps []cluster.TopicPartition) []OffsetRecord {
	slices.SortFunc(tps, compareTP)
	out := make([]OffsetRecord, 0, len(tps))
	for _, tp := range tps {
		out = append(out, OffsetRecord{Group: g.id, TP: tp, Tombstone: true})
	}
	return out
}

// known returns the partitions of which the group has an offset, committed or on its way.
func (g *consumerGroup) known() []cluster.TopicPartition {
	tps := slices.Collect(maps.Keys(g.offsets))
	for tp := range g.pendingCommits {
		if _, ok := g.offsets[tp]; !ok {
			tps = append(tps, tp)
		}
	}
	return tps
}

// removeGroup makes an empty group Dead and writes its tombstones. A group that only ever stored offsets
// (generation 0) has no record of its own to remove.
func (s *Shard) removeGroup(g *consumerGroup, at time.Time, request RequestID, expired int) {
	stateSince := g.stateSince
	g.transition(Dead, at)
	p := pendingRemoval{group: g, request: request, stateSince: stateSince, expired: expired}
	a := Append{Offsets: g.tombstones(g.known()), ProducerID: NoProducer}
	if g.generation > 0 {
		a.Groups = []GroupRecord{{Group: g.id, Tombstone: true}}
	}
	if len(a.Offsets) == 0 && len(a.Groups) == 0 {
		p.settle(s, at, 0, None)
		return
	}
	s.append(a, p)
}

// pendingRemoval is a group whose tombstones are on their way.
type pendingRemoval struct {
	group      *consumerGroup
	request    RequestID // 0: by expiry
	stateSince int64
	expired    int
}

func (p pendingRemoval) abandon(s *Shard, code Code) {
	if p.request != 0 {
		s.emit(DeleteGroupReply{Request: p.request, Code: code})
	}
}

func (p pendingRemoval) settle(s *Shard, at time.Time, _ AppendID, code Code) {
	g := p.group
	switch {
	case code == None || mayBeInLog(code):
		for producer := range g.pendingTxns {
			delete(s.txns[producer], g.id)
		}
		delete(s.groups, g.id)
		if p.expired > 0 {
			s.note(NoteOffsetsExpired, g, "", "", p.expired)
		}
		s.note(NoteGroupRemoved, g, "", "", 1)
	default:
		g.transition(Empty, at)
		g.stateSince = p.stateSince
		s.note(NoteAppendFailed, g, "", code.String(), 1)
	}
	p.abandon(s, groupCode(code))
}

func (s *Shard) deleteGroup(e DeleteGroup) {
	g := s.groups[e.Group]
	switch {
	case g == nil || g.state == Dead:
		s.emit(DeleteGroupReply{Request: e.Request, Code: GroupIDNotFound})
	case g.state != Empty:
		s.emit(DeleteGroupReply{Request: e.Request, Code: NonEmptyGroup})
	default:
		s.removeGroup(g, e.At, e.Request, 0)
	}
}

func (s *Shard) deleteOffsets(e DeleteOffsets) {
	g := s.groups[e.Group]
	switch {
	case g == nil || g.state == Dead:
		s.emit(DeleteOffsetsReply{Request: e.Request, Code: GroupIDNotFound})
		return
	case g.state != Empty && (g.protocolType == nil || *g.protocolType != consumerProtocolType):
		s.emit(DeleteOffsetsReply{Request: e.Request, Code: NonEmptyGroup})
		return
	}
	codes := repeat(None, len(e.Partitions))
	var gone []cluster.TopicPartition
	for i, tp := range e.Partitions {
		if g.state != Empty && g.subscribedTo(tp.Topic) {
			codes[i] = GroupSubscribedToTopic
		} else {
			gone = append(gone, tp)
		}
	}
	s.removeOffsets(g, gone, pendingOffsetRemoval{group: g, request: e.Request, codes: codes}, e.At)
}

// removeOffsets writes tombstones for those of the partitions that the group has offsets of.
func (s *Shard) removeOffsets(g *consumerGroup, tps []cluster.TopicPartition, p pendingOffsetRemoval, at time.Time) {
	seen := make(map[cluster.TopicPartition]struct{})
	for _, tp := range tps {
		_, has := g.offsets[tp]
		_, coming := g.pendingCommits[tp]
		if _, again := seen[tp]; (has || coming) && !again {
			seen[tp] = struct{}{}
			p.tps = append(p.tps, tp)
		}
	}
	if len(p.tps) == 0 {
		p.settle(s, at, 0, None)
		return
	}
	s.append(Append{Offsets: g.tombstones(p.tps), ProducerID: NoProducer}, p)
}

// pendingOffsetRemoval is a set of offsets whose tombstones are on their way. They stay visible until then.
type pendingOffsetRemoval struct {
	group   *consumerGroup
	request RequestID // 0: nobody asked
	expired bool
	tps     []cluster.TopicPartition
	codes   []Code
}

func (p pendingOffsetRemoval) abandon(s *Shard, code Code) {
	if p.request != 0 {
		s.emit(DeleteOffsetsReply{Request: p.request, Code: code})
	}
}

func (p pendingOffsetRemoval) settle(s *Shard, _ time.Time, id AppendID, code Code) {
	g := p.group
	if code == None || mayBeInLog(code) {
		for _, tp := range p.tps {
			// A commit written after the tombstone is newer than the removal and stays.
			if c, ok := g.offsets[tp]; ok && c.by < id {
				delete(g.offsets, tp)
			}
		}
		if p.expired {
			s.note(NoteOffsetsExpired, g, "", "", len(p.tps))
		}
	}
	if code != None {
		s.note(NoteAppendFailed, g, "", code.String(), len(p.tps))
	}
	if p.request == 0 {
		return
	}
	if code != None {
		p.abandon(s, groupCode(code))
		return
	}
	s.emit(DeleteOffsetsReply{Request: p.request, Codes: p.codes})
}

// expire removes what is past its retention.
func (s *Shard) expire(at time.Time) {
	for _, id := range sortedKeys(s.groups) {
		g := s.groups[id]
		if g.state == Dead {
			continue
		}
		gone := s.expired(g, at.UnixMilli())
		if g.state == Empty && len(g.pending) == 0 && len(gone) == len(g.offsets) &&
			len(g.pendingCommits) == 0 && len(g.pendingTxns) == 0 {
			s.removeGroup(g, at, 0, len(gone))
			continue
		}
		if len(gone) > 0 {
			s.removeOffsets(g, gone, pendingOffsetRemoval{group: g, expired: true}, at)
		}
	}
}

// expired applies KIP-211: offsets of a group that has members are kept unless it reads other topics now;
// an empty group's run from the moment it became empty; those of consumers without group management from
// their commit. Commits of old clients bring their own time.
func (s *Shard) expired(g *consumerGroup, now int64) []cluster.TopicPartition {
	base := func(c committed) int64 { return c.CommitTimestamp }
	skip := map[string]struct{}(nil)
	switch {
	case g.protocolType == nil:
	case g.state == Empty:
		if g.stateSince >= 0 {
			base = func(committed) int64 { return g.stateSince }
		}
	case g.state == Stable && *g.protocolType == consumerProtocolType && g.subscriptionsKnown:
		skip = g.subscribed
	default:
		return nil
	}
	var gone []cluster.TopicPartition
	for tp, c := range g.offsets {
		_, subscribed := skip[tp.Topic]
		if subscribed || g.unstable(tp) {
			continue
		}
		if c.ExpireTimestamp >= 0 && now >= c.ExpireTimestamp ||
			c.ExpireTimestamp < 0 && now-base(c) >= s.cfg.OffsetsRetention.Milliseconds() {
			gone = append(gone, tp)
		}
	}
	return gone
}

// topicsDeleted removes the offsets of topics that are gone; their group stays until it expires.
func (s *Shard) topicsDeleted(e TopicsDeleted) {
	for _, id := range sortedKeys(s.groups) {
		g := s.groups[id]
		if g.state == Dead {
			continue
		}
		var gone []cluster.TopicPartition
		for tp := range g.offsets {
			if slices.Contains(e.Topics, tp.Topic) {
				gone = append(gone, tp)
			}
		}
		if len(gone) > 0 {
			s.removeOffsets(g, gone, pendingOffsetRemoval{group: g}, e.At)
		}
	}
}
