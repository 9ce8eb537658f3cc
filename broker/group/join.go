package group

import "time"

// textBytesMax is the longest text that the records of __consumer_offsets can hold. Requests of flexible
// versions can carry longer ones.
const textBytesMax = 1<<15 - 1

// storable reports whether all texts of the member fit into a record.
func (e Join) storable() bool {
	longest := max(len(e.ClientID)+1+len(e.Suffix), len(e.ClientHost), len(e.ProtocolType))
	if e.InstanceID != nil {
		longest = max(longest, len(*e.InstanceID)+1+len(e.Suffix))
	}
	for _, p := range e.Protocols {
		longest = max(longest, len(p.Name))
	}
	return longest <= textBytesMax
}

func (s *Shard) joinError(e Join, memberID string, code Code) {
	s.emit(JoinReply{Request: e.Request, Code: code, MemberID: memberID, Generation: -1})
}

func (s *Shard) join(e Join) {
	e.Protocols = uniqueProtocols(e.Protocols)
	switch {
	case e.Group == "" || len(e.Group) > textBytesMax:
		s.joinError(e, e.MemberID, InvalidGroupID)
		return
	case !e.storable():
		s.joinError(e, e.MemberID, InvalidRequest)
		return
	case e.SessionTimeout < s.cfg.SessionTimeoutMin || e.SessionTimeout > s.cfg.SessionTimeoutMax:
		s.joinError(e, e.MemberID, InvalidSessionTimeout)
		return
	}
	g := s.getOrCreate(e.Group, e.MemberID == "", e.At)
	if g == nil {
		s.joinError(e, e.MemberID, UnknownMemberID)
		return
	}
	switch {
	case !s.accepts(g, e.MemberID):
		if m := g.byID[e.MemberID]; m != nil {
			s.dropMember(g, m)
		}
		delete(g.pending, e.MemberID)
		s.joinError(e, "", GroupMaxSizeReached)
	case e.MemberID == "":
		s.joinNew(g, e)
	default:
		s.joinKnown(g, e)
	}
	s.maybeCompleteJoin(g, e.At)
}

// accepts applies group.max.size. While members rejoin only those already waiting count, so that a group
// which is too large after the limit was lowered sheds those who come last.
func (s *Shard) accepts(g *consumerGroup, memberID string) bool {
	m := g.byID[memberID]
	switch g.state {
	case PreparingRebalance:
		return m != nil && m.join != 0 || g.awaitingJoin < s.cfg.MaxSize
	case CompletingRebalance, Stable:
		return m != nil || len(g.members) < s.cfg.MaxSize
	default:
		return true
	}
}

// joinNew serves a JoinGroup without member id.
func (s *Shard) joinNew(g *consumerGroup, e Join) {
	switch {
	case g.state == Dead:
		s.joinError(e, "", CoordinatorNotAvailable)
	case !g.supports(e.ProtocolType, e.Protocols):
		s.joinError(e, "", InconsistentGroupProtocol)
	case e.InstanceID != nil:
		id := *e.InstanceID + "-" + e.Suffix
		if m := g.byID[g.static[*e.InstanceID]]; m != nil {
			s.replaceStatic(g, m, id, e)
		} else {
			s.addMember(g, id, e)
		}
	case e.RequireKnownMemberID:
		id := e.ClientID + "-" + e.Suffix
		a := &alarm{}
		setIn(&g.pending, id, a)
		s.arm(a, TimerID{PendingMemberTimer, g.id, id}, e.At.Add(e.SessionTimeout))
		s.joinError(e, id, MemberIDRequired)
	default:
		s.addMember(g, e.ClientID+"-"+e.Suffix, e)
	}
}

// joinKnown serves a JoinGroup with a member id.
func (s *Shard) joinKnown(g *consumerGroup, e Join) {
	_, pending := g.pending[e.MemberID]
	switch {
	case g.state == Dead:
		s.joinError(e, e.MemberID, CoordinatorNotAvailable)
		return
	case !g.supports(e.ProtocolType, e.Protocols):
		s.joinError(e, e.MemberID, InconsistentGroupProtocol)
		return
	case pending && e.InstanceID == nil:
		s.addMember(g, e.MemberID, e)
		return
	}
	m, code := g.identify(e.MemberID, e.InstanceID)
	if code != None {
		s.joinError(e, e.MemberID, code)
		return
	}
	switch g.state {
	case PreparingRebalance:
		s.rejoin(g, m, e, "a member rejoins")
	case CompletingRebalance:
		if m.offers(e.Protocols) {
			// The answer to its first JoinGroup did not reach it.
			s.emit(g.joined(m, e.Request))
			return
		}
		s.rejoin(g, m, e, "a member's metadata changed")
	case Stable:
		switch {
		case g.isLeader(m.id):
			// The leader may ask for a rebalance by joining, for instance when partitions were added.
			s.rejoin(g, m, e, "the leader rejoins")
		case !m.offers(e.Protocols):
			s.rejoin(g, m, e, "a member's metadata changed")
		default:
			s.emit(g.joined(m, e.Request))
		}
	default:
		s.joinError(e, e.MemberID, UnknownMemberID)
	}
}

// identify finds the member of a request. An instance id must be known and belong to the member id.
func (g *consumerGroup) identify(memberID string, instanceID *string) (*member, Code) {
	if instanceID != nil {
		current, ok := g.static[*instanceID]
		if !ok {
			return nil, UnknownMemberID
		}
		if current != memberID {
			return nil, FencedInstanceID
		}
	}
	m := g.byID[memberID]
	if m == nil {
		return nil, UnknownMemberID
	}
	return m, None
}

// joined is the answer to a member for the current generation; the leader gets the list of members.
func (g *consumerGroup) joined(m *member, req RequestID) JoinReply {
	r := JoinReply{
		Request: req, Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol,
		Leader: g.leader, MemberID: m.id,
	}
	if g.isLeader(m.id) {
		r.Members = g.memberList()
	}
	return r
}

func (g *consumerGroup) memberList() []JoinedMember {
	list := make([]JoinedMember, 0, len(g.members))
	for _, m := range g.members {
		list = append(list, JoinedMember{MemberID: m.id, InstanceID: m.instanceID, Metadata: m.metadata(*g.protocol)})
	}
	return list
}

func (s *Shard) addMember(g *consumerGroup, id string, e Join) {
	m := &member{
		id: id, instanceID: e.InstanceID, clientID: e.ClientID, clientHost: e.ClientHost,
		session: e.SessionTimeout, rebalance: e.RebalanceTimeout, protocols: e.Protocols,
		isNew: true, join: e.Request,
	}
	if g.state == PreparingRebalance && g.generation == 0 {
		g.newMemberAdded = true
	}
	g.add(m, e.ProtocolType)
	s.arm(&m.life, TimerID{MemberTimer, g.id, m.id}, e.At.Add(newMemberJoinTimeout))
	s.maybeRebalance(g, e.At, "a member joins")
}

// update takes over what a member's new JoinGroup says and lets it wait.
func (s *Shard) update(g *consumerGroup, m *member, e Join) {
	g.setProtocols(m, e.Protocols)
	m.session, m.rebalance = e.SessionTimeout, e.RebalanceTimeout
	s.answerJoin(g, m, JoinReply{Code: RebalanceInProgress, MemberID: m.id, Generation: -1})
	m.join = e.Request
	g.awaitingJoin++
}

func (s *Shard) rejoin(g *consumerGroup, m *member, e Join, reason string) {
	s.update(g, m, e)
	s.maybeRebalance(g, e.At, reason)
}

// replaceStatic lets a static member that lost its member id (it restarted) take its old place under a new
// one, without a rebalance when the group's protocol would stay the same.
func (s *Shard) replaceStatic(g *consumerGroup, m *member, newID string, e Join) {
	old := pendingStatic{
		group: g, member: m, oldID: m.id, newID: newID, oldLeader: g.leader, request: e.Request,
		protocols: m.protocols, session: m.session, rebalance: m.rebalance, skip: e.SkipAssignment,
	}
	// Whoever still waits under the old id is a duplicate and must not go on.
	s.answerJoin(g, m, JoinReply{Code: FencedInstanceID, MemberID: m.id, Generation: -1})
	s.answerSync(m, SyncReply{Code: FencedInstanceID})
	g.rename(m, newID)
	s.alive(g, m, e.At)
	s.update(g, m, e)

	switch g.state {
	case Stable:
		if *g.protocol == g.selectProtocol() {
			s.append(Append{Groups: []GroupRecord{g.record(nil)}, ProducerID: NoProducer}, old)
			return
		}
		s.maybeRebalance(g, e.At, "a static member came back and the protocol changes")
	case CompletingRebalance:
		// The leader may assign by the old member id; nobody would get that assignment.
		s.rebalance(g, e.At, "a static member came back")
	}
}

// pendingStatic is a static member's new member id that is being stored.
type pendingStatic struct {
	group        *consumerGroup
	member       *member
	oldID, newID string
	oldLeader    string
	request      RequestID
	protocols    []Protocol
	session      time.Duration
	rebalance    time.Duration
	skip         bool
}

func (p pendingStatic) settle(s *Shard, at time.Time, _ AppendID, code Code) {
	g, m := p.group, p.member
	if m.join != p.request || g.state != Stable {
		return // answered already, or a rebalance has begun that will answer it
	}
	if code != None {
		s.note(NoteAppendFailed, g, m.id, code.String(), 1)
		g.setProtocols(m, p.protocols)
		m.session, m.rebalance = p.session, p.rebalance
		s.answerJoin(g, m, JoinReply{
			Code: groupCode(code), Generation: g.generation, ProtocolType: g.protocolType, Protocol: g.protocol,
			Leader: p.oldLeader,
		})
		g.rename(m, p.oldID)
		s.alive(g, m, at)
		return
	}
	r := g.joined(m, p.request)
	if p.skip {
		r.SkipAssignment = g.isLeader(m.id)
	} else {
		// Before version 9 a leader must not assign here: its SyncGroup would not be handed out by a stable
		// group. Naming the old id as leader keeps it from trying.
		r.Leader, r.Members = p.oldLeader, nil
	}
	s.answerJoin(g, m, r)
	s.alive(g, m, at)
}
