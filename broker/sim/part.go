package sim

import (
	"errors"
	"time"

	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

const (
	lagTimeMax   = 4 * time.Second
	idleFetch    = 300 * time.Millisecond
	fetchBytes   = 16 << 10
	backOffFetch = 200 * time.Millisecond

	throttlePause = 100 * time.Millisecond
)

// part is one replica on one node: the product's core and log, with the simulation's scheduling around them.
type part struct {
	n      *node
	tp     cluster.TopicPartition
	core   *replica.Partition
	log    *storage.Log
	answer replica.Code

	fetch   *fetching
	moving  *scheduled // the next step of a move between log directories
	waiting []*produceWait
}

// fetching is the follower's side; a new one replaces it at every StartFetching.
type fetching struct {
	leader    cluster.BrokerID
	epoch     cluster.LeaderEpoch
	offset    int64
	lastEpoch cluster.LeaderEpoch
	next      *scheduled
}

// produceWait is a produce with acks=all that waits for the high watermark.
type produceWait struct {
	required int64
	done     func(replica.Code)
}

// part returns the node's replica of tp, made at its first mention.
func (n *node) part(tp cluster.TopicPartition) *part {
	if p := n.parts[tp]; p != nil {
		return p
	}
	p := &part{n: n, tp: tp, core: replica.New(replica.Config{Self: n.id, LagTimeMax: lagTimeMax, MinInSync: minInSync})}
	n.parts[tp] = p
	n.order = append(n.order, p)
	return p
}

// forget drops a replica whose log was deleted.
func (n *node) forget(p *part) {
	p.stopFetch()
	delete(n.parts, p.tp)
	for i, q := range n.order {
		if q == p {
			n.order = append(n.order[:i:i], n.order[i+1:]...)
			return
		}
	}
}

// step feeds one event to the core and carries out everything that follows from it.
func (p *part) step(ev replica.Event) {
	p.n.sim.check.touch(p)
	queue := p.core.Step(ev, nil)
	for len(queue) > 0 && p.n.up {
		eff := queue[0]
		queue = queue[1:]
		if answer := p.effect(eff); answer != nil {
			// The answer is stepped before the log is used for anything else.
			queue = append(p.core.Step(answer, nil), queue...)
		}
	}
}

// stepAnswer is step for events that are answered by an Answer effect.
func (p *part) stepAnswer(ev replica.Event) int16 {
	p.answer = -1
	p.step(ev)
	return int16(p.answer)
}

// effect carries out one effect and returns the event that answers it, if it is answered at once.
func (p *part) effect(eff replica.Effect) replica.Event {
	s := p.n.sim
	if open, ok := eff.(replica.OpenLog); ok {
		log, ev, err := logexec.Open(p.n.store, p.tp, s.topicConfig(), open, s.now)
		p.log = log
		if log != nil {
			p.resumeMove()
		}
		return p.checked(ev, err)
	}
	if ev, handled, err := p.logEffect(eff); handled {
		return p.checked(ev, err)
	}
	switch e := eff.(type) {
	case replica.DeleteLog:
		p.log = nil
		if err := p.n.store.Delete(p.tp); err != nil {
			p.n.diskFailed(err)
		}
		s.check.logDeleted(p)
	case replica.WriteISR:
		p.writeISR(e)
	case replica.ReadState:
		p.readState()
	case replica.NotifyISRChange:
		p.notifyISR()
	case replica.StartFetching:
		p.stopFetch()
		p.fetch = &fetching{leader: e.Leader, epoch: e.LeaderEpoch, offset: e.From, lastEpoch: e.LastEpoch}
		p.fetchAfter(p.fetch, s.between(0, 5*time.Millisecond))
	case replica.StopFetching:
		p.stopFetch()
	case replica.FetchFrom:
		p.fetch.offset, p.fetch.lastEpoch = e.Offset, e.LastEpoch
	case replica.BackOff:
		p.fetchAfter(p.fetch, backOffFetch)
	case replica.AskLeader:
		p.askLeader(e)
	case replica.FailWaiting:
		p.failWaiting(e.Code)
	case replica.Answer:
		p.answer = e.Code
	case replica.RoleChanged:
		s.trace.line("broker %d %s: %s -> %s, epoch %d, isr %v, log end %d, hw %d", p.n.id, p.tp, e.From, e.To, e.LeaderEpoch, e.ISR, p.core.LogEnd(), p.core.HighWatermark())
		s.check.roleChanged(p, e)
	case replica.ISRChanged:
		s.report.ISRChanges++
	case replica.LogCut:
		s.report.Truncations++
		s.trace.line("broker %d %s: cut %d -> %d (hw %d, reason %d)", p.n.id, p.tp, e.From, e.To, e.HighWatermark, e.Reason)
		s.check.logCut(p, e)
	case replica.ISRChangeBlocked:
		s.trace.line("broker %d %s: ISR change to %v blocked, found %+v", p.n.id, p.tp, e.Wanted, e.Found)
	}
	return nil
}

// logEffect runs an effect on the log through the product's executor.
func (p *part) logEffect(eff replica.Effect) (replica.Event, bool, error) {
	if cut, ok := eff.(replica.TruncateTo); ok {
		if err := p.copyAhead(cut.Offset); err != nil {
			return nil, true, err
		}
	}
	ev, handled, err := logexec.Execute(p.log, eff, p.n.sim.now)
	if _, moved := eff.(replica.SetHighWatermark); moved {
		p.completeWaiting()
	}
	return ev, handled, err
}

// checked turns a storage failure into the end of the process: a full disk is that of all directories. A log in a
// directory that is offline answers so.
func (p *part) checked(ev replica.Event, err error) replica.Event {
	if errors.Is(err, storage.ErrOffline) {
		return ev
	}
	if errors.Is(err, storage.ErrStorage) {
		p.n.diskFailed(err)
		return nil
	}
	if err != nil {
		p.n.sim.fail("%s %s: log effect: %v", p.n, p.tp, err)
	}
	return ev
}

func (p *part) completeWaiting() {
	kept := p.waiting[:0]
	for _, w := range p.waiting {
		if done, code := p.core.CheckAcked(w.required); done {
			w.done(code)
		} else {
			kept = append(kept, w)
		}
	}
	p.waiting = kept
}

func (p *part) failWaiting(code replica.Code) {
	waiting := p.waiting
	p.waiting = nil
	for _, w := range waiting {
		w.done(code)
	}
}

// dropWaiting forgets waiting produces without an answer: the process is gone.
func (p *part) dropWaiting() { p.waiting = nil }

// writeISR is the leader's conditional write of its ISR (V3 0.7), with whatever became of it.
func (p *part) writeISR(e replica.WriteISR) {
	s, c := p.n.sim, p.n.zk
	state := znode.State{LeaderAndISR: cluster.LeaderAndISR{Leader: e.Leader, LeaderEpoch: e.LeaderEpoch, ControllerEpoch: e.ControllerEpoch, ISR: e.ISR}}
	s.trace.line("broker %d %s: write isr %v if version %d", p.n.id, p.tp, e.ISR, e.IfVersion)
	req := zkop.Request{Kind: zkop.Set, Path: znode.StatePath(p.tp), Data: state.Encode(), Version: int32(e.IfVersion)}
	p.zk(c, req, func(r zkop.Response) {
		ev := replica.ISRWritten{At: s.now, IfVersion: e.IfVersion, Outcome: replica.Unknown}
		switch {
		case r.Err == nil:
			ev.Outcome, ev.Version = replica.Written, cluster.ZKVersion(r.Stat.Version)
		case errors.Is(r.Err, zkop.ErrBadVersion) || errors.Is(r.Err, zkop.ErrNoNode):
			ev.Outcome = replica.Refused
		}
		p.step(ev)
	})
}

func (p *part) readState() {
	s := p.n.sim
	p.zk(p.n.zk, zkop.Request{Kind: zkop.Get, Path: znode.StatePath(p.tp)}, func(r zkop.Response) {
		ev := replica.StateRead{At: s.now, OK: r.Err == nil}
		if errors.Is(r.Err, zkop.ErrNoNode) {
			ev.OK, ev.Gone = true, true
		}
		if r.Err == nil {
			state, err := znode.DecodeState(p.tp, r.Data)
			if err != nil {
				s.fail("state of %s: %v", p.tp, err)
				return
			}
			ev.State, ev.Version = state.LeaderAndISR, cluster.ZKVersion(r.Stat.Version)
		}
		p.step(ev)
	})
}

// zk runs one request; without a session the outcome is unknown after a while.
func (p *part) zk(c *zkConn, req zkop.Request, done func(zkop.Response)) {
	n := p.n
	answer := func(r zkop.Response) {
		if n.parts[p.tp] == p {
			done(r)
		}
	}
	if c == nil {
		n.at(n.inc, n.sim.now.Add(100*time.Millisecond), "zk none", func() { answer(zkop.Response{Err: zkop.ErrOutcomeUnknown}) })
		return
	}
	c.do([]zkop.Request{req}, func(r []zkop.Response) { answer(r[0]) })
}

// notifyISR tells the controller of an ISR change through ZooKeeper until that is known to have worked.
func (p *part) notifyISR() {
	n := p.n
	req := zkop.Request{Kind: zkop.Create, Path: znode.ISRChangePrefix,
		Data: znode.EncodeISRChange([]cluster.TopicPartition{p.tp}), Mode: zkop.PersistentSequential}
	p.zk(n.zk, req, func(r zkop.Response) {
		if r.Err != nil {
			n.at(n.inc, n.sim.now.Add(200*time.Millisecond), "isr notify again", p.notifyISR)
		}
	})
}
