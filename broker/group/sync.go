package group

import "time"

func (s *Shard) sync(e Sync) {
	g := s.groups[e.Group]
	m, code := syncCheck(g, e)
	if code != None {
		s.emit(SyncReply{Request: e.Request, Code: code})
		return
	}
	switch g.state {
	case PreparingRebalance:
		s.emit(SyncReply{Request: e.Request, Code: RebalanceInProgress})
	case CompletingRebalance:
		s.answerSync(m, SyncReply{Code: RebalanceInProgress})
		m.sync = e.Request
		s.synced(g, m)
		if g.isLeader(m.id) {
			s.storeAssignment(g, e)
		}
	case Stable:
		s.synced(g, m)
		s.emit(SyncReply{Request: e.Request, ProtocolType: g.protocolType, Protocol: g.protocol, Assignment: m.assignment})
		s.alive(g, m, e.At)
	default:
		s.emit(SyncReply{Request: e.Request, Code: UnknownMemberID})
	}
}

func syncCheck(g *consumerGroup, e Sync) (*member, Code) {
	switch {
	case e.Group == "":
		return nil, InvalidGroupID
	case g == nil:
		return nil, UnknownMemberID
	case g.state == Dead:
		return nil, CoordinatorNotAvailable
	}
	m, code := g.identify(e.MemberID, e.InstanceID)
	switch {
	case code != None:
		return nil, code
	case e.Generation != g.generation:
		return nil, IllegalGeneration
	case e.ProtocolType != nil && !sameText(e.ProtocolType, g.protocolType),
		e.Protocol != nil && !sameText(e.Protocol, g.protocol):
		return nil, InconsistentGroupProtocol
	}
	return m, None
}

func sameText(a, b *string) bool { return a != nil && b != nil && *a == *b }

// synced strikes the member off the list of those still to send SyncGroup.
func (s *Shard) synced(g *consumerGroup, m *member) {
	delete(g.pendingSync, m.id)
	if len(g.pendingSync) == 0 {
		g.syncAlarm.cancel()
	}
}

func (s *Shard) storeAssignment(g *consumerGroup, e Sync) {
	assignment := make(map[string][]byte, len(g.members))
	for _, m := range g.members {
		assignment[m.id] = []byte{} // a member that the leader forgot has nothing to do
	}
	for _, a := range e.Assignments {
		if _, ok := assignment[a.MemberID]; ok {
			assignment[a.MemberID] = a.Data
		}
	}
	s.append(Append{Groups: []GroupRecord{g.record(assignment)}, ProducerID: NoProducer},
		pendingAssignment{group: g, generation: g.generation, assignment: assignment})
}

// pendingAssignment is the leader's assignment on its way to the log.
type pendingAssignment struct {
	group      *consumerGroup
	generation int32
	assignment map[string][]byte
}

func (p pendingAssignment) settle(s *Shard, at time.Time, _ AppendID, code Code) {
	g := p.group
	if g.state != CompletingRebalance || g.generation != p.generation {
		return // another rebalance began meanwhile
	}
	if code != None {
		s.note(NoteAppendFailed, g, "", code.String(), 1)
		s.handOut(g, at, nil, groupCode(code))
		s.maybeRebalance(g, at, "the assignment could not be stored")
		return
	}
	s.handOut(g, at, p.assignment, None)
	g.transition(Stable, at)
	s.note(NoteStable, g, "", *g.protocol, len(g.members))
}

func (s *Shard) heartbeat(e Heartbeat) {
	s.emit(HeartbeatReply{Request: e.Request, Code: s.beat(e)})
}

func (s *Shard) beat(e Heartbeat) Code {
	g := s.groups[e.Group]
	switch {
	case e.Group == "":
		return InvalidGroupID
	case g == nil:
		return UnknownMemberID
	case g.state == Dead:
		return CoordinatorNotAvailable
	}
	m, code := g.identify(e.MemberID, e.InstanceID)
	switch {
	case code != None:
		return code
	case e.Generation != g.generation:
		return IllegalGeneration
	}
	switch g.state {
	case PreparingRebalance:
		s.alive(g, m, e.At)
		return RebalanceInProgress
	case CompletingRebalance, Stable:
		s.alive(g, m, e.At)
		return None
	default:
		return UnknownMemberID
	}
}

func (s *Shard) leave(e Leave) {
	g := s.groups[e.Group]
	r := LeaveReply{Request: e.Request}
	switch {
	case e.Group == "":
		r.Code = InvalidGroupID
	case g != nil && g.state == Dead:
		r.Code = CoordinatorNotAvailable
	default:
		for _, l := range e.Members {
			code := UnknownMemberID
			if g != nil {
				code = s.leaveOne(g, l, e.At)
			}
			r.Members = append(r.Members, Left{MemberID: l.MemberID, InstanceID: l.InstanceID, Code: code})
		}
	}
	s.emit(r)
}

func (s *Shard) leaveOne(g *consumerGroup, l Leaver, at time.Time) Code {
	id := l.MemberID
	if id == "" { // an administrator removes a static member
		if l.InstanceID == nil {
			return UnknownMemberID
		}
		id = g.static[*l.InstanceID]
	}
	if _, ok := g.pending[id]; ok {
		delete(g.pending, id)
		s.maybeCompleteJoin(g, at)
		return None
	}
	m, code := g.identify(id, l.InstanceID)
	if code == None {
		s.removeMember(g, m, at, "left the group")
	}
	return code
}
