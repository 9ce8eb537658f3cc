package controllershell

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/controller"
	"kctl/broker/obs"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
)

// statsInterval bounds how often the gauges are computed, which costs a pass over all partitions.
const statsInterval = time.Second

// loop is the one owner of the core. Everything in it belongs to Run's goroutine.
type loop struct {
	s       *Shell
	ctx     context.Context //nolint:containedctx // the loop lives exactly as long as Run
	core    *controller.Controller
	work    sync.WaitGroup // senders and the ZooKeeper runner
	session zkutil.Session
	// standing is the session for which the core was told SessionStarted; 0: none.
	standing uint64

	timers  map[controller.Timer]time.Time
	senders map[cluster.BrokerID]*sender
	zkQueue []controller.ZK
	zkBusy  bool

	nextRequest uint64
	waiters     map[uint64]chan<- kmsg.Response

	again    []controller.Event // events that effects of this step caused
	out      []controller.Effect
	statsAt  time.Time // when the gauges were computed last
	statsDue bool
}

// Run stands for election whenever the broker is registered, acts while elected, and returns when ctx
// ends, after all its goroutines have. It deletes nothing in ZooKeeper: closing the session frees /controller.
func (s *Shell) Run(ctx context.Context) error {
	feed, cancel := s.opts.ZK.Subscribe()
	defer cancel()
	defer close(s.done)
	inner, stop := context.WithCancel(ctx)
	l := &loop{
		s: s, ctx: inner, core: controller.New(s.coreConfig()), session: s.opts.ZK.Session(),
		timers: map[controller.Timer]time.Time{}, senders: map[cluster.BrokerID]*sender{},
		waiters: map[uint64]chan<- kmsg.Response{},
	}
	l.run(feed)
	l.end("broker is stopping")
	stop()
	l.work.Wait()
	return ctx.Err()
}

func (l *loop) run(feed <-chan zkutil.Notice) {
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	l.sessionChanged(l.session)
	for {
		l.arm(wake)
		select {
		case <-l.ctx.Done():
			return
		case n, ok := <-feed:
			if !ok {
				return // the client was closed: there is no session to act in any more
			}
			l.notice(n)
		case m := <-l.s.inbox:
			l.accept(m)
		case <-l.s.poke:
			l.maybeStand()
		case <-wake.C:
			l.fire()
		}
	}
}

// arm sets the wake-up to the earliest timer.
func (l *loop) arm(wake *time.Timer) {
	next := time.Hour
	now := l.s.opts.Now()
	for _, at := range l.timers {
		next = min(next, at.Sub(now))
	}
	if l.statsDue {
		next = min(next, l.statsAt.Add(statsInterval).Sub(now))
	}
	wake.Reset(max(next, 0))
}

func (l *loop) fire() {
	now := l.s.opts.Now()
	for t, at := range l.timers {
		if !at.After(now) {
			delete(l.timers, t)
			l.step(controller.TimerFired{At: now, Timer: t})
		}
	}
	if l.statsDue && !l.statsAt.Add(statsInterval).After(now) {
		l.refreshStats(now)
	}
}

func (l *loop) notice(n zkutil.Notice) {
	if n.Watch != nil {
		l.step(controller.WatchFired{At: l.s.opts.Now(), Event: *n.Watch})
		return
	}
	l.sessionChanged(n.Session)
}

// sessionChanged ends the role as soon as the session cannot be trusted: presumed lost counts, since the
// server may have removed /controller before we hear of it.
func (l *loop) sessionChanged(now zkutil.Session) {
	l.session = now
	ended := now.State == zkutil.PresumedLost || now.State == zkutil.Expired || now.State == zkutil.Closed
	if l.standing != 0 && (ended || now.Epoch != l.standing) {
		l.end("ZooKeeper session was lost")
	}
	l.maybeStand()
}

func (l *loop) end(reason string) {
	if l.standing != 0 {
		l.standing = 0
		l.step(controller.SessionEnded{At: l.s.opts.Now(), Reason: reason})
	}
}

// maybeStand stands for election once the broker is registered in the current session.
func (l *loop) maybeStand() {
	if l.standing != 0 || l.session.State != zkutil.Connected || l.s.registered.Load() != l.session.Epoch || l.session.Epoch == 0 {
		return
	}
	l.standing = l.session.Epoch
	ev := controller.SessionStarted{At: l.s.opts.Now(), Session: l.session.Epoch, SessionID: l.session.ID}
	_, _ = rand.Read(ev.Seed[:]) // documented to never fail
	l.step(ev)
}

func (l *loop) accept(m message) {
	if m.request == nil {
		if _, ok := m.event.(controller.ZKDone); ok {
			l.zkBusy = false
			l.runZK()
		}
		l.step(m.event)
		return
	}
	if len(l.waiters) >= requestsMax {
		m.reply <- nil
		return
	}
	l.nextRequest++
	l.waiters[l.nextRequest] = m.reply
	l.step(m.request(l.nextRequest))
}

// step feeds the core and carries out its effects, and those that follow from them.
func (l *loop) step(ev controller.Event) {
	l.apply(ev)
	for len(l.again) > 0 {
		next := l.again[0]
		l.again = l.again[1:]
		l.apply(next)
	}
	l.again = nil
	now := l.s.opts.Now()
	l.statsDue = true
	if !l.statsAt.Add(statsInterval).After(now) {
		l.refreshStats(now)
	}
}

func (l *loop) apply(ev controller.Event) {
	l.out = l.core.Step(ev, l.out[:0])
	logged := newLogBudget()
	for i, e := range l.out {
		l.carryOut(e, logged)
		l.out[i] = nil
	}
	logged.summarise(l.s.log)
}

func (l *loop) carryOut(e controller.Effect, logged *logBudget) {
	switch e := e.(type) {
	case controller.ZK:
		l.zkQueue = append(l.zkQueue, e)
		l.runZK()
	case controller.RecallTopicIDs:
		l.again = append(l.again, controller.TopicIDsRecalled{At: l.s.opts.Now(), ID: e.ID, IDs: l.s.recall(e.Topics)})
	case controller.Send:
		l.send(e)
	case controller.Connect:
		l.connect(e.Broker)
	case controller.Disconnect:
		l.disconnect(e.Broker)
	case controller.ArmTimer:
		l.timers[e.Timer] = e.At
	case controller.CancelTimer:
		delete(l.timers, e.Timer)
	case controller.Reply:
		if w, ok := l.waiters[e.RequestID]; ok {
			delete(l.waiters, e.RequestID)
			w <- e.Response
		}
	case controller.Activated:
		l.s.epoch.Store(int64(e.Epoch))
		l.s.log.Info("elected controller", obs.KeyControllerEpoch, e.Epoch)
	case controller.Resigned:
		l.s.epoch.Store(-1)
		clear(l.timers)
		for id := range l.senders {
			l.disconnect(id)
		}
		l.s.log.Info("resigned as controller", obs.KeyControllerEpoch, e.Epoch, obs.KeyReason, e.Reason)
	case controller.JobStarted:
		l.s.metrics.queueTime.Observe(e.Waited.Seconds())
	default:
		l.report(e, logged)
	}
}

func (l *loop) refreshStats(now time.Time) {
	st := l.core.Stats()
	l.s.stats.Store(&st)
	l.statsAt, l.statsDue = now, false
}

// runZK starts the next ZooKeeper effect; they run one after the other, in order.
func (l *loop) runZK() {
	if l.zkBusy || len(l.zkQueue) == 0 {
		return
	}
	e := l.zkQueue[0]
	l.zkQueue = l.zkQueue[1:]
	if len(l.zkQueue) == 0 {
		l.zkQueue = nil
	}
	l.zkBusy = true
	l.work.Go(func() {
		got := l.s.opts.ZK.Do(l.ctx, e.Session, e.Requests...)
		if len(got) != len(e.Requests) {
			got = make([]zkop.Response, len(e.Requests))
			for i := range got {
				got[i].Err = zkop.ErrOutcomeUnknown
			}
		}
		l.post(controller.ZKDone{At: l.s.opts.Now(), ID: e.ID, Responses: got})
	})
}

// post hands an event to the loop from one of its goroutines; it is dropped when the loop has ended.
func (l *loop) post(ev controller.Event) {
	select {
	case l.s.inbox <- message{event: ev}:
	case <-l.ctx.Done():
	}
}

var errNoSender = errors.New("broker has no connection yet")

func (l *loop) send(e controller.Send) {
	if snd := l.senders[e.Broker]; snd != nil {
		select {
		case snd.work <- e:
			return
		default: // the core has one request per broker under way at most
		}
	}
	l.again = append(l.again, controller.Answered{At: l.s.opts.Now(), Broker: e.Broker, Token: e.Token, Err: errNoSender})
}
