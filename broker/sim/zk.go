package sim

import (
	"time"

	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/ztree"
)

const (
	zkSessionTimeout = 6 * time.Second
	zkPresumeLost    = zkSessionTimeout * 2 / 3
	zkHeartbeat      = 300 * time.Millisecond
)

// zkConn is one node's ZooKeeper session as both ends see it. Requests and answers keep their order, as on
// a TCP connection.
type zkConn struct {
	sim   *Sim
	node  *node
	id    int64
	epoch uint64 // counts the node's sessions, as zkutil.Session.Epoch

	toServer, toClient time.Time // nothing sent later arrives earlier
	cut                bool      // no bytes pass
	lastContact        time.Time
	presumedLost       bool
	gone               bool // the server has expired it; the node learns of that at the next contact
	waiting            []zkop.Event
}

// openSession connects a node in a new session.
func (s *Sim) openSession(n *node) *zkConn {
	n.zkEpoch++
	c := &zkConn{sim: s, node: n, id: s.tree.OpenSession(s.now, zkSessionTimeout), epoch: n.zkEpoch, lastContact: s.now, cut: n.zkCut}
	s.sessions[c.id] = c
	return c
}

// do runs requests in order and calls done with their responses, some of which may be of unknown outcome.
func (c *zkConn) do(reqs []zkop.Request, done func([]zkop.Response)) {
	s := c.sim
	at := later(s.now.Add(s.between(100*time.Microsecond, 2*time.Millisecond)), c.toServer)
	c.toServer = at
	applied := len(reqs) // how many reach the server before the connection breaks
	if s.chance(s.faults.ZKLose) {
		applied = s.rng.IntN(len(reqs) + 1)
	}
	answered := applied // how many replies come back
	if applied == len(reqs) && s.chance(s.faults.ZKLoseReply) {
		answered = s.rng.IntN(len(reqs))
	}
	inc := c.node.inc
	s.at(at, "zk arrive", noTP, int64(c.node.id), int64(len(reqs)), func() {
		if c.cut {
			applied, answered = 0, 0
		}
		c.answer(inc, c.apply(reqs, applied, answered), done)
	})
}

// apply runs the first requests in the tree and hides the replies that will be lost.
func (c *zkConn) apply(reqs []zkop.Request, applied, answered int) []zkop.Response {
	out := make([]zkop.Response, len(reqs))
	for i := range reqs {
		if i >= applied {
			out[i] = zkop.Response{Err: zkop.ErrOutcomeUnknown}
			continue
		}
		resp, fired := c.sim.tree.Do(c.sim.now, c.id, nil, reqs[i])
		if c.sim.trace.on() {
			c.sim.trace.line("zk %s %s v%d -> %v", kindName(reqs[i].Kind), requestPath(reqs[i]), reqs[i].Version, resp.Err)
		}
		c.sim.check.zkApplied(c, &reqs[i], &resp)
		c.sim.dispatch(fired)
		if i < answered {
			out[i] = resp
		} else {
			out[i] = zkop.Response{Err: zkop.ErrOutcomeUnknown}
		}
	}
	return out
}

func (c *zkConn) answer(inc int, resps []zkop.Response, done func([]zkop.Response)) {
	s := c.sim
	delay := s.between(100*time.Microsecond, 2*time.Millisecond)
	for _, r := range resps {
		if r.Err == zkop.ErrOutcomeUnknown { // noticed by a time-out or a reset, later
			delay = s.between(5*time.Millisecond, 400*time.Millisecond)
			break
		}
	}
	at := later(s.now.Add(delay), c.toClient)
	c.toClient = at
	c.node.at(inc, at, "zk answer", func() {
		if c.node.zk != c { // another session meanwhile: the client refuses what belongs to an older one
			for i := range resps {
				resps[i] = zkop.Response{Err: zkop.ErrSessionExpired}
			}
		} else if !c.cut {
			c.lastContact = s.now
		}
		done(resps)
	})
}

// dispatch sends fired watches to their sessions; events for a cut connection wait, as SetWatches makes them.
func (s *Sim) dispatch(fired []ztree.FiredWatch) {
	for _, f := range fired {
		if c := s.sessions[f.Session]; c != nil {
			c.waiting = append(c.waiting, f.Event)
			c.deliverWaiting()
		}
	}
}

func (c *zkConn) deliverWaiting() {
	if c.cut {
		return
	}
	for _, ev := range c.waiting {
		at := later(c.sim.now.Add(c.sim.between(100*time.Microsecond, 2*time.Millisecond)), c.toClient)
		c.toClient = at
		c.node.at(c.node.inc, at, "zk watch", func() {
			if c.node.zk == c {
				c.sim.trace.line("watch %d %s", ev.Type, ev.Path)
				c.node.watchFired(ev)
			}
		})
	}
	c.waiting = nil
}

// heartbeats keeps the sessions of reachable nodes alive, expires the others and lets nodes learn of it.
func (s *Sim) heartbeats() {
	for _, n := range s.nodes {
		if c := n.zk; c != nil && n.up && !n.paused() && !c.cut && !c.gone {
			s.tree.Touch(s.now, c.id)
		}
	}
	expired, fired := s.tree.Expire(s.now)
	for _, id := range expired {
		s.report.Expiries++
		s.trace.line("session %x expired", id)
		if c := s.sessions[id]; c != nil {
			c.gone = true
			delete(s.sessions, id)
		}
	}
	s.dispatch(fired)
	for _, n := range s.nodes {
		if n.up && !n.paused() && n.zk != nil {
			n.sessionContact()
		}
	}
	s.after(zkHeartbeat, "zk heartbeat", noTP, 0, 0, s.heartbeats)
}

// setZKCut cuts or heals the node's way to ZooKeeper.
func (s *Sim) setZKCut(n *node, cut bool) {
	n.zkCut = cut
	if c := n.zk; c != nil {
		c.cut = cut
		c.deliverWaiting()
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func kindName(k zkop.Kind) string {
	return [...]string{"?", "get", "exists", "children", "create", "set", "delete", "check", "multi", "sync"}[k]
}

func requestPath(r zkop.Request) string {
	if r.Kind != zkop.Multi {
		return r.Path
	}
	text := ""
	for _, op := range r.Ops {
		text += " " + kindName(op.Kind) + " " + op.Path + " " + string(op.Data)
	}
	return text
}
