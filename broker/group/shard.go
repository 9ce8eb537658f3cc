package group

import (
	"fmt"
	"time"

	"kctl/broker/invariant"
)

// newMemberJoinTimeout bounds how long a member that never completed a rebalance may wait in one. Its
// client cannot send heartbeats yet, so its session timeout does not apply (KAFKA-7610).
const newMemberJoinTimeout = 5 * time.Minute

// Config holds the settings that the rules depend on. It is a plain value.
type Config struct {
	SessionTimeoutMin     time.Duration
	SessionTimeoutMax     time.Duration
	InitialRebalanceDelay time.Duration
	MaxSize               int           // largest number of members of a group
	OffsetMetadataMax     int           // largest length of an offset's metadata
	OffsetsRetention      time.Duration // of offsets nobody consumes any more
}

// Shard is the state of all groups of one partition of __consumer_offsets. The zero value is unusable; see
// NewShard. It must not be used by two goroutines at once.
type Shard struct {
	cfg        Config
	groups     map[string]*consumerGroup
	appends    map[AppendID]pendingAppend
	lastAppend AppendID
	txns       map[int64]map[string]struct{} // producer id -> groups with offsets of its open transaction
	unloaded   bool
	out        []Effect // the effects of the Step in progress
}

// pendingAppend is what becomes of an append when its outcome is known.
type pendingAppend interface {
	settle(s *Shard, at time.Time, id AppendID, code Code)
}

// NewShard returns a shard without groups.
func NewShard(cfg Config) *Shard {
	return &Shard{
		cfg:     cfg,
		groups:  make(map[string]*consumerGroup),
		appends: make(map[AppendID]pendingAppend),
		txns:    make(map[int64]map[string]struct{}),
	}
}

// SetConfig replaces the settings; they apply from the next event on.
func (s *Shard) SetConfig(cfg Config) { s.cfg = cfg }

// Groups returns the number of groups and of committed offsets held.
func (s *Shard) Groups() (groups, offsets int) {
	for _, g := range s.groups {
		offsets += len(g.offsets)
	}
	return len(s.groups), offsets
}

// Step applies one event and appends to out what the caller must do, in order.
func (s *Shard) Step(ev Event, out []Effect) []Effect {
	invariant.Assert(!s.unloaded, "event %T for an unloaded shard", ev)
	s.out = out
	switch e := ev.(type) {
	case Join:
		s.join(e)
	case Sync:
		s.sync(e)
	case Heartbeat:
		s.heartbeat(e)
	case Leave:
		s.leave(e)
	case CommitOffsets:
		s.commitOffsets(e)
	case EndTransaction:
		s.endTransaction(e)
	case DeleteGroup:
		s.deleteGroup(e)
	case DeleteOffsets:
		s.deleteOffsets(e)
	case Expire:
		s.expire(e.At)
	case TopicsDeleted:
		s.topicsDeleted(e)
	case TimerFired:
		s.timerFired(e)
	case Appended:
		s.appended(e)
	case Unload:
		s.unload()
	default:
		panic(fmt.Sprintf("unknown event %T", ev))
	}
	out, s.out = s.out, nil
	return out
}

func (s *Shard) emit(e Effect) { s.out = append(s.out, e) }

func (s *Shard) note(kind NoteKind, g *consumerGroup, member, reason string, count int) {
	s.emit(Note{Kind: kind, Group: g.id, Generation: g.generation, Member: member, Reason: reason, Count: count})
}

// append emits the records as one batch and remembers what to do with the outcome.
func (s *Shard) append(a Append, then pendingAppend) AppendID {
	s.lastAppend++
	a.ID = s.lastAppend
	s.appends[a.ID] = then
	s.emit(a)
	return a.ID
}

func (s *Shard) appended(e Appended) {
	then, ok := s.appends[e.ID]
	invariant.Assert(ok, "append %d answered twice or never asked for", e.ID)
	delete(s.appends, e.ID)
	then.settle(s, e.At, e.ID, e.Code)
}

// getOrCreate returns the group, made on the spot when create allows it; nil otherwise.
func (s *Shard) getOrCreate(id string, create bool, at time.Time) *consumerGroup {
	g := s.groups[id]
	if g == nil && create {
		g = newGroup(id, at.UnixMilli())
		s.groups[id] = g
	}
	return g
}

// alarm is a deadline and the one timer that watches it. Moving the deadline later does not touch the
// timer: when it fires too early it is armed again, so that heartbeats cost nothing.
type alarm struct {
	deadline time.Time // zero: off
	armed    time.Time // when the outstanding timer fires; zero: none outstanding
}

func (s *Shard) arm(a *alarm, id TimerID, deadline time.Time) {
	a.deadline = deadline
	if a.armed.IsZero() || deadline.Before(a.armed) {
		a.armed = deadline
		s.emit(ArmTimer{Timer: id, At: deadline})
	}
}

func (a *alarm) cancel() { a.deadline = time.Time{} }

// ring reports whether the deadline has come; a timer that fired for an earlier deadline is armed anew.
func (s *Shard) ring(a *alarm, id TimerID, at time.Time) bool {
	if a.armed.IsZero() || at.Before(a.armed) {
		return false
	}
	a.armed = time.Time{}
	if a.deadline.IsZero() {
		return false
	}
	if at.Before(a.deadline) {
		s.arm(a, id, a.deadline)
		return false
	}
	a.cancel()
	return true
}

func (s *Shard) timerFired(e TimerFired) {
	g := s.groups[e.Timer.Group]
	if g == nil || g.state == Dead {
		return
	}
	switch e.Timer.Kind {
	case MemberTimer:
		m := g.byID[e.Timer.Member]
		if m != nil && s.ring(&m.life, e.Timer, e.At) && !m.excused() {
			s.removeMember(g, m, e.At, "no heartbeat within the session timeout")
		}
	case PendingMemberTimer:
		a := g.pending[e.Timer.Member]
		if a != nil && s.ring(a, e.Timer, e.At) {
			delete(g.pending, e.Timer.Member)
			s.maybeCompleteJoin(g, e.At)
		}
	case JoinTimer:
		if s.ring(&g.joinAlarm, e.Timer, e.At) {
			s.joinPhaseOver(g, e.At)
		}
	case SyncTimer:
		if s.ring(&g.syncAlarm, e.Timer, e.At) {
			s.syncPhaseOver(g, e.At)
		}
	}
}

// unload answers everyone who waits and forgets all.
func (s *Shard) unload() {
	for _, id := range sortedKeys(s.groups) {
		g := s.groups[id]
		for _, m := range g.members {
			s.answerJoin(g, m, JoinReply{Code: NotCoordinator, MemberID: m.id, Generation: -1})
			s.answerSync(m, SyncReply{Code: NotCoordinator})
		}
	}
	for _, id := range sortedKeys(s.appends) {
		if w, ok := s.appends[id].(waiter); ok {
			w.abandon(s, NotCoordinator)
		}
	}
	s.groups, s.appends, s.txns = nil, nil, nil
	s.unloaded = true
}

// waiter is a pendingAppend with a request behind it that no member holds.
type waiter interface{ abandon(s *Shard, code Code) }
