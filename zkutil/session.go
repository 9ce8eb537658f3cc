package zkutil

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"kctl/zkutil/zkop"
)

// Log keys of this package, which stands below broker/obs and shares its spelling.
const (
	keySession = "session"
	keyState   = "state"
	keyAddr    = "addr"
	keyError   = "error"
)

// String names the state.
func (s SessionState) String() string {
	switch s {
	case Connecting:
		return "connecting"
	case Connected:
		return "connected"
	case Suspended:
		return "suspended"
	case PresumedLost:
		return "presumed-lost"
	case Expired:
		return "expired"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// sessions is the state of the session, its feeds, and the clock that presumes it lost.
//
// mu is never held across I/O or a channel operation that may block.
type sessions struct {
	logger *slog.Logger
	start  time.Time

	// contact is when the server was last certainly alive: the send time of a request that it has
	// answered, in nanoseconds since start.
	contact  atomic.Int64
	presumed atomic.Bool // state is PresumedLost, read without mu on the data path

	mu         sync.Mutex
	current    Session
	timeout    time.Duration // as negotiated; 0 before the first session
	generation uint64        // of the live connection; 0 when there is none
	changed    chan struct{} // closed at every change of current or generation, and replaced
	feeds      map[*feed]struct{}
}

func newSessions(logger *slog.Logger) *sessions {
	return &sessions{logger: logger, start: time.Now(), changed: make(chan struct{}), feeds: map[*feed]struct{}{}}
}

func (s *sessions) get() Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// snapshot returns the session, the live connection and a channel that is closed at the next change.
func (s *sessions) snapshot() (Session, uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current, s.generation, s.changed
}

// connected takes up a session on a connection. Another id than before is a new session.
func (s *sessions) connected(id int64, timeout time.Duration, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.State == Closed {
		return
	}
	next := s.current
	if next.Epoch == 0 || next.ID != id {
		next.Epoch++
		next.ID = id
	}
	next.State = Connected
	s.timeout, s.generation = timeout, generation
	s.publish(next)
}

// disconnected: the session may live on, unless it has been presumed lost or has ended.
func (s *sessions) disconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation = 0
	if s.current.State == Connected {
		next := s.current
		next.State = Suspended
		s.publish(next)
		return
	}
	s.wakeLocked()
}

func (s *sessions) expired() { s.end(Expired) }
func (s *sessions) closed()  { s.end(Closed) }

func (s *sessions) end(state SessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation = 0
	if s.current.State == Closed || s.current.State == state {
		return
	}
	next := s.current
	next.State = state
	s.publish(next)
}

// publish is called with mu held.
func (s *sessions) publish(next Session) {
	if next == s.current {
		s.wakeLocked()
		return
	}
	s.current = next
	s.presumed.Store(next.State == PresumedLost)
	s.logger.Info("zookeeper session", keySession, next.ID, keyState, next.State.String())
	for f := range s.feeds {
		f.put(Notice{Session: next})
	}
	s.wakeLocked()
}

func (s *sessions) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// fired passes a watch event on.
func (s *sessions) fired(ev zkop.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		f.put(Notice{Watch: &ev, Session: s.current})
	}
}

// alive records that the server answered a request that was sent at that time.
func (s *sessions) alive(at time.Time) {
	ns := int64(at.Sub(s.start))
	if ns > s.contact.Load() {
		s.contact.Store(ns)
	}
	if s.presumed.Load() {
		s.revive()
	}
}

// revive takes a presumption back when the connection was only slow.
func (s *sessions) revive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.State == PresumedLost && s.generation != 0 && s.remaining() > 0 {
		next := s.current
		next.State = Connected
		s.publish(next)
	}
}

// remaining is the time until the session must be presumed lost; mu held.
func (s *sessions) remaining() time.Duration {
	last := s.start.Add(time.Duration(s.contact.Load()))
	return time.Until(last.Add(s.timeout * 2 / 3))
}

// check presumes the session lost when it is due and returns when to look again.
func (s *sessions) check() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timeout == 0 || s.current.State != Connected && s.current.State != Suspended {
		return max(s.timeout/6, 100*time.Millisecond)
	}
	left := s.remaining()
	if left > 0 {
		return left
	}
	next := s.current
	next.State = PresumedLost
	s.publish(next)
	return s.timeout / 6
}

// watch runs check until stop is closed.
func (s *sessions) watch(stop <-chan struct{}) {
	t := time.NewTimer(s.check())
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			t.Reset(s.check())
		}
	}
}

// feed is one subscriber's queue. It is unbounded on purpose: a lost watch event is a lost wake-up.
type feed struct {
	mu    sync.Mutex
	queue []Notice
	wake  chan struct{} // capacity 1
	stop  chan struct{}
}

func (f *feed) put(n Notice) {
	f.mu.Lock()
	f.queue = append(f.queue, n)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) take() []Notice {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue
	f.queue = nil
	return q
}

// run moves the queue into out until stop; at the end it leaves what fits into out's buffer.
func (f *feed) run(out chan<- Notice) {
	defer close(out)
	for {
		queue := f.take()
		for i, n := range queue {
			select {
			case out <- n:
			case <-f.stop:
				leave(out, queue[i:])
				return
			}
		}
		select {
		case <-f.wake:
		case <-f.stop:
			leave(out, f.take())
			return
		}
	}
}

func leave(out chan<- Notice, rest []Notice) {
	for _, n := range rest {
		select {
		case out <- n:
		default:
			return
		}
	}
}

// subscribe adds a feed and has start run it; on a closed client the feed has ended from the beginning.
func (s *sessions) subscribe(start func(*feed)) *feed {
	f := &feed{wake: make(chan struct{}, 1), stop: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.State == Closed {
		close(f.stop)
	} else {
		s.feeds[f] = struct{}{}
	}
	start(f)
	return f
}

// endFeeds ends every feed.
func (s *sessions) endFeeds() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		close(f.stop)
	}
	clear(s.feeds)
}

func (s *sessions) unsubscribe(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.feeds[f]; ok {
		delete(s.feeds, f)
		close(f.stop)
	}
}
