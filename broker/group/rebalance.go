package group

import "time"

// alive starts the member's session anew.
func (s *Shard) alive(g *consumerGroup, m *member, at time.Time) {
	s.arm(&m.life, TimerID{MemberTimer, g.id, m.id}, at.Add(m.session))
}

// answerJoin answers the member's waiting JoinGroup, if there is one.
func (s *Shard) answerJoin(g *consumerGroup, m *member, r JoinReply) {
	if m.join == 0 {
		return
	}
	r.Request = m.join
	m.join = 0
	g.awaitingJoin--
	s.emit(r)
}

// answerSync answers the member's waiting SyncGroup and reports whether there was one.
func (s *Shard) answerSync(m *member, r SyncReply) bool {
	if m.sync == 0 {
		return false
	}
	r.Request = m.sync
	m.sync = 0
	s.emit(r)
	return true
}

func (s *Shard) maybeRebalance(g *consumerGroup, at time.Time, reason string) {
	if g.canRebalance() {
		s.rebalance(g, at, reason)
	}
}

// rebalance begins the join phase.
func (s *Shard) rebalance(g *consumerGroup, at time.Time, reason string) {
	if g.state == CompletingRebalance {
		s.handOut(g, at, nil, RebalanceInProgress)
	}
	g.syncAlarm.cancel()
	wait := g.rebalanceTimeout()
	g.initialJoin = g.state == Empty
	if g.initialJoin {
		delay := s.cfg.InitialRebalanceDelay
		g.joinRemaining = max(wait-delay, 0)
		wait = delay
	}
	g.transition(PreparingRebalance, at)
	s.note(NoteRebalancing, g, "", reason, len(g.members))
	s.arm(&g.joinAlarm, TimerID{Kind: JoinTimer, Group: g.id}, at.Add(wait))
	s.maybeCompleteJoin(g, at)
}

// maybeCompleteJoin ends the join phase early when everyone expected is there. The first phase of a group
// always lasts group.initial.rebalance.delay.ms, so that members starting together meet in one generation.
func (s *Shard) maybeCompleteJoin(g *consumerGroup, at time.Time) {
	if g.state == PreparingRebalance && !g.initialJoin && g.awaitingJoin == len(g.members) && len(g.pending) == 0 {
		s.completeJoin(g, at)
	}
}

// joinPhaseOver handles the end of the join phase by time.
func (s *Shard) joinPhaseOver(g *consumerGroup, at time.Time) {
	if g.state != PreparingRebalance {
		return
	}
	if g.initialJoin && g.newMemberAdded && g.joinRemaining > 0 {
		g.newMemberAdded = false
		delay := min(s.cfg.InitialRebalanceDelay, g.joinRemaining)
		g.joinRemaining -= delay
		s.arm(&g.joinAlarm, TimerID{Kind: JoinTimer, Group: g.id}, at.Add(delay))
		return
	}
	s.completeJoin(g, at)
}

// completeJoin makes the next generation of those who joined. Dynamic members who did not are removed;
// static ones stay until their session ends.
func (s *Shard) completeJoin(g *consumerGroup, at time.Time) {
	g.joinAlarm.cancel()
	g.initialJoin, g.newMemberAdded = false, false
	var late []*member
	for _, m := range g.members {
		if m.join == 0 && m.instanceID == nil {
			late = append(late, m)
		}
	}
	for _, m := range late {
		s.note(NoteMemberRemoved, g, m.id, "did not rejoin within the rebalance timeout", 1)
		s.dropMember(g, m)
	}
	if len(g.members) > 0 && !g.electJoinedLeader() {
		// Only silent static members are left: wait for their sessions to end.
		s.arm(&g.joinAlarm, TimerID{Kind: JoinTimer, Group: g.id}, at.Add(g.rebalanceTimeout()))
		return
	}
	g.generation++
	clear(g.pendingSync)
	if len(g.members) == 0 {
		s.becomeEmpty(g, at)
		return
	}
	protocol := g.selectProtocol()
	g.protocol = &protocol
	g.computeSubscriptions()
	g.transition(CompletingRebalance, at)
	s.note(NoteGeneration, g, "", protocol, len(g.members))
	for _, m := range g.members {
		s.answerJoin(g, m, g.joined(m, m.join))
		s.alive(g, m, at)
		m.isNew = false
		setIn(&g.pendingSync, m.id, struct{}{})
	}
	s.arm(&g.syncAlarm, TimerID{Kind: SyncTimer, Group: g.id}, at.Add(g.rebalanceTimeout()))
}

func (s *Shard) becomeEmpty(g *consumerGroup, at time.Time) {
	g.protocol = nil
	g.computeSubscriptions()
	g.transition(Empty, at)
	s.note(NoteEmpty, g, "", "", 0)
	s.append(Append{Groups: []GroupRecord{g.record(nil)}, ProducerID: NoProducer}, pendingEmpty{g})
}

// pendingEmpty is the record of a group without members on its way. When it fails the last generation in
// the log would be active again after a failover; its members are gone and time out, so nothing is lost.
type pendingEmpty struct{ group *consumerGroup }

func (p pendingEmpty) settle(s *Shard, _ time.Time, _ AppendID, code Code) {
	if code != None {
		s.note(NoteAppendFailed, p.group, "", code.String(), 1)
	}
}

// syncPhaseOver removes members who got the new generation and never sent SyncGroup.
func (s *Shard) syncPhaseOver(g *consumerGroup, at time.Time) {
	if g.state != CompletingRebalance && g.state != Stable || len(g.pendingSync) == 0 {
		return
	}
	for _, id := range sortedKeys(g.pendingSync) {
		s.note(NoteMemberRemoved, g, id, "did not send SyncGroup within the rebalance timeout", 1)
		s.dropMember(g, g.byID[id])
	}
	s.maybeRebalance(g, at, "members did not send SyncGroup")
}

// handOut gives every member its part of the assignment (nil: none) and answers those who wait for it.
func (s *Shard) handOut(g *consumerGroup, at time.Time, assignment map[string][]byte, code Code) {
	for _, m := range g.members {
		m.assignment = assignment[m.id]
		r := SyncReply{Code: code}
		if code == None {
			r.ProtocolType, r.Protocol, r.Assignment = g.protocolType, g.protocol, m.assignment
		}
		if s.answerSync(m, r) {
			s.alive(g, m, at)
		}
	}
}

// dropMember takes a member out and answers whatever it still waits for.
func (s *Shard) dropMember(g *consumerGroup, m *member) {
	s.answerJoin(g, m, JoinReply{Code: UnknownMemberID, Generation: -1})
	s.answerSync(m, SyncReply{Code: UnknownMemberID})
	g.drop(m)
}

// removeMember takes a member out and lets the group go on without it.
func (s *Shard) removeMember(g *consumerGroup, m *member, at time.Time, reason string) {
	s.note(NoteMemberRemoved, g, m.id, reason, 1)
	s.dropMember(g, m)
	switch g.state {
	case Stable, CompletingRebalance:
		s.maybeRebalance(g, at, reason)
	case PreparingRebalance:
		s.maybeCompleteJoin(g, at)
	}
}
