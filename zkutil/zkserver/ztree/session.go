package ztree

import (
	"sort"
	"time"
)

// session is one client session. ephemerals are the paths it owns.
type session struct {
	timeoutMs  int64
	deadlineMs int64
	ephemerals map[string]struct{}
}

// SessionInfo describes one session, for tools.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration
	Deadline   time.Time
	Ephemerals int
}

// OpenSession opens a session at once and returns its id: positive, and greater than every earlier one.
// timeout is the negotiated one; it is kept in whole milliseconds, at least 1.
func (t *Tree) OpenSession(at time.Time, timeout time.Duration) int64 {
	txn := t.PrepareOpenSession(at, timeout)
	t.Apply(txn)
	return txn.Session
}

// CloseSession ends a session at once and deletes its ephemeral nodes. An unknown session is no error. The
// fired watches are valid until the next call.
func (t *Tree) CloseSession(at time.Time, id int64) []FiredWatch {
	txn := t.PrepareCloseSession(at, id)
	if txn == nil {
		return nil
	}
	_, fired := t.Apply(txn)
	return fired
}

// Expire closes every session whose deadline has passed and returns their ids in order, with the watches that
// their ephemerals fired. The fired watches are valid until the next call.
func (t *Tree) Expire(at time.Time) ([]int64, []FiredWatch) {
	ids := t.Expired(at)
	if len(ids) == 0 {
		return nil, nil
	}
	var all []FiredWatch
	for _, id := range ids {
		all = append(all, t.CloseSession(at, id)...)
	}
	return ids, all
}

// Expired returns the sessions whose deadline has passed, in the order of their ids, without closing them.
func (t *Tree) Expired(at time.Time) []int64 {
	var ids []int64
	now := at.UnixMilli()
	for id, s := range t.sessions {
		if s.deadlineMs <= now {
			if _, closing := t.closing[id]; !closing {
				ids = append(ids, id)
			}
		}
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

// NextDeadline is the earliest session deadline; false when there is no session.
func (t *Tree) NextDeadline() (time.Time, bool) {
	least := int64(0)
	for _, s := range t.sessions {
		if least == 0 || s.deadlineMs < least {
			least = s.deadlineMs
		}
	}
	return time.UnixMilli(least), least != 0
}

// Touch notes that the session was heard at that time, which moves its deadline; never backwards. False: no
// such session, or it is being closed.
func (t *Tree) Touch(at time.Time, id int64) bool {
	s := t.sessions[id]
	if s == nil {
		return false
	}
	if len(t.closing) > 0 {
		if _, closing := t.closing[id]; closing {
			return false
		}
	}
	if d := t.deadline(at.UnixMilli(), s.timeoutMs); d > s.deadlineMs {
		s.deadlineMs = d
	}
	return true
}

// SetTimeout changes a session's timeout, as when a client that comes back asks for another one. The change is
// not logged: after a restart the session has the timeout it was opened with.
func (t *Tree) SetTimeout(at time.Time, id int64, timeout time.Duration) {
	if s := t.sessions[id]; s != nil {
		s.timeoutMs = millis(timeout)
		s.deadlineMs = t.deadline(at.UnixMilli(), s.timeoutMs)
	}
}

// RestartTimers gives every session its full timeout from now, as a server does when it starts: nobody could
// have been heard while it was down.
func (t *Tree) RestartTimers(at time.Time) {
	for _, s := range t.sessions {
		s.deadlineMs = t.deadline(at.UnixMilli(), s.timeoutMs)
	}
}

// SessionTimeout returns the timeout of a live session.
func (t *Tree) SessionTimeout(id int64) (time.Duration, bool) {
	s := t.sessions[id]
	if s == nil {
		return 0, false
	}
	_, closing := t.closing[id]
	return time.Duration(s.timeoutMs) * time.Millisecond, !closing
}

// Sessions lists the sessions in the order of their ids.
func (t *Tree) Sessions() []SessionInfo {
	out := make([]SessionInfo, 0, len(t.sessions))
	for id, s := range t.sessions {
		out = append(out, SessionInfo{
			ID: id, Timeout: time.Duration(s.timeoutMs) * time.Millisecond,
			Deadline: time.UnixMilli(s.deadlineMs), Ephemerals: len(s.ephemerals),
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// EphemeralCount is the number of ephemeral nodes of all sessions.
func (t *Tree) EphemeralCount() int {
	n := 0
	for _, s := range t.sessions {
		n += len(s.ephemerals)
	}
	return n
}

// Ephemerals lists the paths of the session's ephemeral nodes, sorted.
func (t *Tree) Ephemerals(id int64) []string {
	s := t.sessions[id]
	if s == nil || len(s.ephemerals) == 0 {
		return nil
	}
	out := make([]string, 0, len(s.ephemerals))
	for p := range s.ephemerals {
		out = append(out, p)
	}
	sort.Strings(out)
	return out
}

// deadline is when a session that was heard at now expires.
func (t *Tree) deadline(nowMs, timeoutMs int64) int64 {
	d := nowMs + timeoutMs
	if tick := t.tick.Milliseconds(); tick > 0 {
		d = (d/tick + 1) * tick
	}
	return d
}

func millis(d time.Duration) int64 {
	return max(d.Milliseconds(), 1)
}

// newSessionID is greater than all before it and carries the time of opening, so that ids also differ between
// servers that were set up anew. The top byte is 1, as the server id of a single ZooKeeper.
func (t *Tree) newSessionID(nowMs int64) int64 {
	const low56 = 1<<56 - 1
	id := int64(1)<<56 | (nowMs<<12)&low56
	return max(id, t.lastSID+1)
}
