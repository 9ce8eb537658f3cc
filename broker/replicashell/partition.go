package replicashell

import (
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"kctl/broker/obs"
	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/broker/replicashell/session"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// partition is the owner of one replica: its state machine, its log, and what waits on it.
type partition struct {
	m  *Manager
	tp cluster.TopicPartition

	mu       sync.Mutex // guards all below, and the order of appends
	core     *replica.Partition
	log      *storage.Log // nil until opened
	topicID  cluster.TopicID
	produces []waitingProduce // acks=all, by rising required offset
	waiters  []*session.Entry // parked fetches
	follow   *follow          // what replicates it; nil when nothing does
	dead     bool             // removed from the table: look the partition up anew
	ticked   bool             // in the manager's list of those that the next tick looks at
	fetched  chan struct{}    // closed when a follower's fetch is taken; nil while nobody wants to know
	effects  []replica.Effect // scratch
	events   []replica.Event  // scratch

	openLogRef atomic.Pointer[storage.Log] // the same as log, for readers without mu
}

// after is what a critical section leaves to be done once the partition's lock is released.
type after struct {
	answer   replica.Code // of a LeaderAndISR or StopReplica
	produced []*produceOp // have all their answers
	failed   error        // of the log directory dir
	dir      string
	m        *Manager
}

func (a *after) run() {
	for _, op := range a.produced {
		op.finish()
	}
	if a.failed != nil {
		a.m.dirFailed(a.dir, a.failed)
	}
}

func newPartition(m *Manager, tp cluster.TopicPartition) *partition {
	cfg := m.opts.TopicConfig(tp.Topic)
	m.topicThrottled(tp.Topic)
	return &partition{m: m, tp: tp, core: replica.New(replica.Config{
		Self: m.opts.BrokerID, LagTimeMax: m.opts.ReplicaLagTimeMax, MinInSync: int(cfg.MinInSyncReplicas)})}
}

// event steps one event in a critical section of its own.
func (p *partition) event(ev replica.Event) replica.Code {
	var a after
	p.mu.Lock()
	p.step(ev, &a)
	p.mu.Unlock()
	a.run()
	return a.answer
}

// step takes an event, and has the next tick look at a leader's partition to which something happened. p.mu is held.
func (p *partition) step(ev replica.Event, a *after) {
	p.run(ev, a)
	if !p.ticked {
		p.tickAgain()
	}
}

// run runs the state machine and its effects until nothing is left to do. p.mu is held.
func (p *partition) run(ev replica.Event, a *after) {
	p.events = append(p.events[:0], ev)
	for i := 0; i < len(p.events); i++ {
		p.effects = p.core.Step(p.events[i], p.effects[:0])
		for _, eff := range p.effects {
			if answer := p.execute(eff, a); answer != nil {
				p.events = append(p.events, answer)
			}
		}
	}
	clear(p.events)
	clear(p.effects)
}

// execute carries out one effect and returns its answering event when it has one already.
func (p *partition) execute(eff replica.Effect, a *after) replica.Event {
	switch eff := eff.(type) {
	case replica.SetHighWatermark:
		p.log.SetHighWatermark(eff.Offset)
		p.m.hwDirty.Store(true)
		p.highWatermarkMoved(a)
	case replica.OpenLog:
		return p.openLog(eff, a)
	case replica.AssignEpochStart, replica.TruncateTo, replica.TruncateFullyAndStartAt, replica.AdvanceLogStart:
		ev, _, err := logexec.Execute(p.log, eff, p.m.opts.Now())
		if err != nil {
			p.logError("log operation failed", err, a)
		}
		if _, moved := ev.(replica.LogStartAdvanced); moved && p.follow != nil {
			p.follow.stream.update(p.follow, func() {}) // the next fetch tells the leader
		}
		return ev
	case replica.DeleteLog:
		p.log = nil
		p.openLogRef.Store(nil)
		if err := p.m.storage.Delete(p.tp); err != nil {
			p.logError("delete of log failed", err, a)
		}
	case replica.WriteISR, replica.ReadState:
		p.m.isr.enqueue(p, eff)
	case replica.NotifyISRChange:
		p.m.isr.notify(p.tp)
	case replica.StartFetching:
		p.startFetching(eff)
	case replica.StopFetching, replica.FetchFrom, replica.BackOff, replica.AskLeader:
		p.steerFetching(eff)
	case replica.FailWaiting:
		p.failWaiting(eff.Code, a)
		p.wakeAll()
	case replica.Answer:
		a.answer = eff.Code
	default:
		p.report(eff)
	}
	return nil
}

func (p *partition) openLog(eff replica.OpenLog, a *after) replica.Event {
	cfg := p.m.opts.TopicConfig(p.tp.Topic)
	log, ev, err := logexec.Open(p.m.storage, p.tp, cfg, eff, p.m.opts.Now())
	if err != nil {
		p.logError("log could not be opened", err, a)
	}
	p.log = log
	p.openLogRef.Store(log)
	if log != nil {
		p.resumeMove(a)
	}
	return ev
}

// report turns the happenings among the effects into log lines, metrics and callbacks.
func (p *partition) report(eff replica.Effect) {
	log := func(level slog.Level, msg string, attrs ...slog.Attr) {
		attrs = append(attrs, slog.String(obs.KeyTopicPartition, p.tp.String()))
		p.m.chatter.say(level, msg, attrs...)
	}
	epoch := func(e cluster.LeaderEpoch) slog.Attr { return slog.Int(obs.KeyLeaderEpoch, int(e)) }
	switch eff := eff.(type) {
	case replica.RoleChanged:
		log(slog.LevelDebug, "partition changed role", slog.String(obs.KeyState, eff.To.String()),
			slog.Int(obs.KeyLeader, int(eff.Leader)), epoch(eff.LeaderEpoch), slog.Any(obs.KeyISR, eff.ISR))
		if was, is := eff.From == replica.Leader, eff.To == replica.Leader; was || is {
			p.m.leaders.push(leadership{p.tp, is, eff.LeaderEpoch})
		}
		p.wakeAll()
		p.followerMoved()
	case replica.ISRChanged:
		grown := len(eff.To) > len(eff.From)
		p.m.metrics.isrChanged(grown)
		log(slog.LevelInfo, "ISR changed", slog.Any(obs.KeyISR, eff.To), slog.Any("from", eff.From),
			slog.Int(obs.KeyZKVersion, int(eff.ZKVersion)), epoch(eff.LeaderEpoch), slog.String(obs.KeyReason, eff.Reason.String()))
	case replica.ISRChangeBlocked:
		p.m.metrics.isrBlocked()
		log(slog.LevelWarn, "ISR change blocked: the state znode holds another decision; waiting for the controller",
			slog.Any(obs.KeyISR, eff.Wanted), slog.Int(obs.KeyZKVersion, int(eff.IfVersion)),
			slog.Int("found_version", int(eff.FoundAt)), epoch(eff.LeaderEpoch))
	case replica.Deposed:
		log(slog.LevelWarn, "followers carry a higher leader epoch: no more records are taken", epoch(eff.LeaderEpoch),
			slog.Int("seen_epoch", int(eff.Seen)), slog.Int(obs.KeyBroker, int(eff.Replica)))
	case replica.LogCut:
		level := slog.LevelInfo
		if eff.BelowHighWatermark {
			level = slog.LevelWarn
		}
		log(level, "log truncated", slog.Int64(obs.KeyOffset, eff.To), slog.Int64("from", eff.From),
			slog.Int64("high_watermark", eff.HighWatermark), slog.String(obs.KeyReason, eff.Reason.String()))
	}
}

func (p *partition) logError(msg string, err error, a *after) {
	p.m.chatter.say(slog.LevelError, msg,
		slog.String(obs.KeyTopicPartition, p.tp.String()), obs.Err(err))
	if isStorageFailure(err) && p.log != nil && a.failed == nil {
		a.failed, a.dir, a.m = err, p.log.Dir(), p.m
	}
}

func (p *partition) configChanged(cfg storage.Config) {
	var a after
	p.mu.Lock()
	if p.log != nil {
		p.log.SetConfig(cfg)
	}
	p.step(replica.ConfigChanged{At: p.m.opts.Now(), MinInSync: int(cfg.MinInSyncReplicas)}, &a)
	p.mu.Unlock()
	a.run()
}

func (p *partition) brokersChanged() {
	var a after
	p.mu.Lock()
	defer func() { p.mu.Unlock(); a.run() }()
	if p.core.Role() != replica.Leader {
		return
	}
	for _, id := range p.core.Replicas() {
		if id != p.m.opts.BrokerID && !p.m.opts.IsAlive(id) {
			p.step(replica.ReplicaDown{At: p.m.opts.Now(), Replica: id}, &a)
		}
	}
}

// park makes e wait here. p.mu is held.
func (p *partition) park(e *session.Entry) {
	if e.Parked == p {
		return
	}
	p.waiters = append(p.waiters, e)
	e.Parked = p
}

func (p *partition) unpark(e *session.Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Parked != p {
		return
	}
	e.Parked = nil
	if i := slices.Index(p.waiters, e); i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
	}
}

// wakeFollowers lets parked followers fetch what was appended. p.mu is held, as in the next two.
func (p *partition) wakeFollowers() {
	p.wake(func(e *session.Entry) (wake, unpark bool) { return e.Session.Replica >= 0, e.Session.Replica >= 0 })
}

// wakeConsumers lets parked consumers fetch up to the high watermark. Followers learn of it with their next
// answer: it is not worth one of its own.
func (p *partition) wakeConsumers() {
	p.wake(func(e *session.Entry) (wake, unpark bool) {
		if e.Session.Replica >= 0 {
			e.Session.Mark(e, false)
			return false, false
		}
		return true, true
	})
}

// wakeAll lets everything parked look again: the role changed, or the partition is gone.
func (p *partition) wakeAll() {
	p.wake(func(*session.Entry) (wake, unpark bool) { return true, true })
}

func (p *partition) wake(which func(*session.Entry) (wake, unpark bool)) {
	kept := p.waiters[:0]
	for _, e := range p.waiters {
		wake, unpark := which(e)
		if unpark {
			e.Parked = nil
		} else {
			kept = append(kept, e)
		}
		if wake {
			e.Session.Mark(e, true)
		}
	}
	clear(p.waiters[len(kept):])
	p.waiters = kept
}

// highWatermarkMoved answers produces whose records are committed now, and wakes consumers.
func (p *partition) highWatermarkMoved(a *after) {
	p.wakeConsumers()
	hw := p.core.HighWatermark()
	n := 0
	for n < len(p.produces) && p.produces[n].required <= hw {
		w := p.produces[n]
		_, code := p.core.CheckAcked(w.required)
		w.op.settle(w.index, code, a)
		n++
	}
	p.dropProduces(n)
}

func (p *partition) dropProduces(n int) {
	if n == 0 {
		return
	}
	rest := copy(p.produces, p.produces[n:])
	clear(p.produces[rest:])
	p.produces = p.produces[:rest]
}

// failWaiting answers every waiting produce with code.
func (p *partition) failWaiting(code replica.Code, a *after) {
	for _, w := range p.produces {
		w.op.settle(w.index, code, a)
	}
	p.dropProduces(len(p.produces))
}

func (p *partition) info() PartitionInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.core
	return PartitionInfo{TP: p.tp, Role: c.Role(), Leader: c.Leader(), LeaderEpoch: c.LeaderEpoch(),
		ISR: slices.Clone(c.ISR()), Replicas: slices.Clone(c.Replicas()), ZKVersion: c.ZKVersion(),
		LogStart: c.LogStart(), HighWatermark: c.HighWatermark(), LogEnd: c.LogEnd(), UnderMinISR: c.UnderMinISR()}
}
