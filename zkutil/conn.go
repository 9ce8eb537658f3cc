package zkutil

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"kctl/zkutil/zkop"
)

// conn is the Client over go-zk. go-zk keeps the connection, the session and its pings, and matches answers to
// requests; conn decides when a request may go out, tells sessions apart, and owns the wrapper of the sockets.
type conn struct {
	cfg      Config
	servers  ConnectString
	zk       *zk.Conn
	sessions *sessions
	gate     gate
	watches  watchTable
	turn     chan struct{} // holds one token: the right to send
	window   chan struct{} // a slot for each unanswered request
	calls    sync.WaitGroup
	loops    sync.WaitGroup // watchdog and feeds
	// life ends with Close. It is stored, against the rule, since go-zk's dialer takes no context.
	life     context.Context
	endLife  context.CancelFunc
	stopOnce sync.Once
	ended    <-chan zk.Event // closed when go-zk's loop has ended

	mu         sync.Mutex // guards the rest; never held across I/O
	wire       *wireConn  // newest connection
	wireServer string
	generation uint64
	attempts   int              // dials since the last session
	failures   map[string]error // of the servers, since the last session
	roundDone  chan struct{}    // closed when every server has failed once
	refused    chan struct{}    // closed when a server has refused a credential
	openedAt   time.Time
	shortLived int // sessions in a row whose connection broke at once
}

func connect(ctx context.Context, cfg Config) (Client, error) {
	servers, err := ParseConnectString(cfg.Connect)
	if err != nil {
		return nil, err
	}
	c := &conn{
		cfg: cfg, servers: servers, sessions: newSessions(cfg.Logger), turn: make(chan struct{}, 1),
		window:   make(chan struct{}, windowRequests),
		failures: map[string]error{}, roundDone: make(chan struct{}), refused: make(chan struct{}),
	}
	c.life, c.endLife = context.WithCancel(context.WithoutCancel(ctx))
	c.turn <- struct{}{}
	c.gate.wake = make(chan struct{}, 1)
	c.zk, c.ended, err = zk.Connect(servers.Servers, cfg.SessionTimeout,
		zk.WithDialer(c.dial), zk.WithHostProvider(&roundRobin{conn: c}), zk.WithEventCallback(c.event),
		zk.WithLogger(zkLogger{cfg.Logger}), zk.WithLogInfo(false),
		zk.WithMaxBufferSize(cfg.MaxResponseBytes+4096), zk.WithMaxConnBufferSize(cfg.MaxRequestBytes+4096))
	if err != nil {
		c.endLife()
		return nil, fmt.Errorf("%w: %w", ErrConnectString, err)
	}
	c.loops.Go(func() { c.sessions.watch(c.life.Done()) })
	err = c.firstSession(ctx)
	if err == nil {
		err = c.enterChroot(ctx)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// firstSession waits until the credentials are taken and the session is there.
func (c *conn) firstSession(ctx context.Context) error {
	for {
		s, _, changed := c.sessions.snapshot()
		if s.State == Connected {
			return nil
		}
		var round <-chan struct{}
		if !c.cfg.KeepTrying {
			round = c.roundDone
		}
		select {
		case <-changed:
		case <-round:
			return c.unreachable(ctx, nil)
		case <-c.refused:
			return c.unreachable(ctx, nil)
		case <-ctx.Done():
			return c.unreachable(ctx, ctx.Err())
		}
	}
}

func (c *conn) enterChroot(ctx context.Context) error {
	if c.servers.Chroot == "" {
		return nil
	}
	outside := Any(outsideChroot{c})
	if c.cfg.CreateChroot {
		if err := outside.EnsurePath(ctx, c.servers.Chroot); err != nil {
			return fmt.Errorf("create chroot %s: %w", c.servers.Chroot, err)
		}
		return nil
	}
	_, ok, err := outside.Exists(ctx, c.servers.Chroot)
	if err != nil {
		return fmt.Errorf("look for chroot %s: %w", c.servers.Chroot, err)
	}
	if !ok {
		return fmt.Errorf("%w: %s at %s", ErrNoChroot, c.servers.Chroot, strings.Join(c.servers.Servers, ","))
	}
	return nil
}

// outsideChroot is the same connection with paths as the server has them.
type outsideChroot struct{ *conn }

// Do see Client.
func (o outsideChroot) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	return o.do(ctx, session, "", reqs)
}

// Session see Client.
func (c *conn) Session() Session { return c.sessions.get() }

// Subscribe see Client. After Close the feed ends; a Closed notice is its last if the reader keeps up.
func (c *conn) Subscribe() (<-chan Notice, func()) {
	out := make(chan Notice, 16)
	f := c.sessions.subscribe(func(f *feed) { c.loops.Go(func() { f.run(out) }) })
	return out, func() { c.sessions.unsubscribe(f) }
}

// Close see Client. It waits at most a second for a server that does not answer.
func (c *conn) Close() error {
	c.stopOnce.Do(func() {
		wasConnected := c.sessions.get().State == Connected
		c.sessions.closed()
		held := false
		if wasConnected {
			// A call that is just starting when go-zk is closed may be answered three times by it (a tie with the end, the failed
			// write, the flush) in a channel with room for two; its loop then never ends. With the turn in hand none is starting.
			select {
			case <-c.turn:
				held = true
			case <-time.After(time.Second): // one is held up by a server that takes nothing
			}
			c.zk.Close() // asks the server to end the session and waits a second for the answer
		}
		c.endLife()
		c.calls.Go(c.zk.Close)
		c.closeWire()
		for range c.ended { // until go-zk closes it
			continue
		}
		if !held {
			<-c.turn
		} // and never given back: no call starts any more
		c.calls.Wait()
		c.sessions.endFeeds()
		c.loops.Wait()
	})
	return nil
}

// event is go-zk's callback: session events from its loop, watch events from its reader, never at once.
func (c *conn) event(ev zk.Event) {
	switch ev.Type {
	case zk.EventSession:
		switch ev.State {
		case zk.StateDisconnected:
			c.sessions.disconnected()
		case zk.StateExpired:
			c.sessions.expired()
			c.closeWire() // go-zk forgets to
		}
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged, zk.EventNodeChildrenChanged:
		if path, ok := withoutRoot(c.servers.Chroot, ev.Path); ok {
			c.sessions.fired(zkop.Event{Type: zkop.EventType(ev.Type), Path: path})
		}
	}
}

func (c *conn) closeWire() {
	c.mu.Lock()
	w := c.wire
	c.mu.Unlock()
	if w != nil {
		_ = w.Close()
	}
}

// dial is go-zk's dialer. It paces itself, since go-zk would wait a whole second between rounds.
func (c *conn) dial(_, server string, _ time.Duration) (net.Conn, error) {
	limit := c.prepareDial(server)
	if limit == 0 {
		return nil, zkop.ErrClosed
	}
	nc, err := dialWithin(c.life, c.cfg, server, limit)
	if err != nil {
		c.mu.Lock()
		c.failures[server] = err
		c.mu.Unlock()
		c.cfg.Logger.Debug("zookeeper connect", keyAddr, server, keyError, err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		// Close has looked for a connection to close before this one was there. go-zk would wait on it for the answer to
		// its session request: ten times two thirds of the session's timeout.
		_ = nc.Close()
		return nil, zkop.ErrClosed
	}
	c.generation++
	c.wireServer = server
	c.wire = &wireConn{
		Conn: nc, generation: c.generation, gate: &c.gate, watches: &c.watches, auth: c.cfg.Auth, handshake: limit,
		maxReply:  c.cfg.MaxResponseBytes,
		onSession: c.opened, onContact: c.sessions.alive, in: bufio.NewReaderSize(nc, 32<<10),
	}
	return c.wire, nil
}

// prepareDial accounts for the attempt before, waits if it must, and returns the time that this attempt may
// take: for a first session the configured one, afterwards what lets every server be tried while the
// session lives. It is 0 when the client is closing.
func (c *conn) prepareDial(server string) time.Duration {
	pause := c.accountForLast()
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.life.Done():
		}
	}
	select {
	case <-c.life.Done():
		return 0
	default:
	}
	limit := c.cfg.ConnectTimeout
	if c.sessions.get().Epoch > 0 {
		share := c.cfg.SessionTimeout / 3 / time.Duration(len(c.servers.Servers))
		limit = min(limit, max(share, 500*time.Millisecond))
	}
	return limit
}

const (
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// accountForLast notes why the connection before came to nothing and returns the pause before the next.
func (c *conn) accountForLast() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.wire; w != nil {
		c.wire = nil
		if !w.ready.Load() {
			if err := w.failure.Load(); err != nil {
				c.failures[c.wireServer] = *err
				if errors.Is(*err, ErrAuthFailed) {
					closeOnce(c.refused)
				}
			}
		} else if time.Since(c.openedAt) > time.Second {
			c.shortLived = 0
		} else {
			c.shortLived++
		}
	}
	n := len(c.servers.Servers)
	rounds := c.attempts / n
	atRoundStart := c.attempts > 0 && c.attempts%n == 0
	c.attempts++
	if rounds == 1 && atRoundStart {
		closeOnce(c.roundDone)
	}
	switch {
	case atRoundStart:
		return min(firstPause<<min(rounds-1, 8), mostPause)
	case c.attempts == 1 && c.shortLived > 1:
		return min(firstPause<<min(c.shortLived, 8), mostPause)
	}
	return 0
}

// closeOnce needs conn.mu.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// opened is called by the newest wireConn when the server has granted a session.
func (c *conn) opened(w *wireConn, timeout time.Duration, id int64) {
	c.mu.Lock()
	c.attempts = 0
	c.openedAt = time.Now()
	clear(c.failures)
	c.mu.Unlock()
	c.sessions.connected(id, timeout, w.generation)
}

func dialWithin(ctx context.Context, cfg Config, server string, limit time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	nc, err := cfg.Dialer.DialContext(ctx, "tcp", server)
	if err != nil || cfg.TLS == nil {
		return nc, err
	}
	tc := cfg.TLS.Clone()
	if tc.ServerName == "" {
		tc.ServerName, _, _ = net.SplitHostPort(server)
	}
	secure := tls.Client(nc, tc)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", server, err)
	}
	return secure, nil
}

// unreachable puts together what each server said.
func (c *conn) unreachable(ctx context.Context, cause error) error {
	c.mu.Lock()
	failures := make(map[string]error, len(c.failures))
	for s, err := range c.failures {
		failures[s] = err
	}
	if w := c.wire; w != nil && !w.ready.Load() && failures[c.wireServer] == nil {
		failures[c.wireServer] = fmt.Errorf("%s accepted the connection but has not answered the session request: %w",
			c.wireServer, cmp.Or(cause, errNotTried))
	}
	c.mu.Unlock()
	var parts []error
	for _, server := range slices.Sorted(slices.Values(c.servers.Servers)) {
		err := failures[server]
		if err == nil {
			parts = append(parts, fmt.Errorf("%s: %w", server, cmp.Or(cause, errNotTried)))
			continue
		}
		if isHandshakeFailure(err) && probeKafka(context.WithoutCancel(ctx), c.cfg, server) {
			err = ErrKafkaBroker
		}
		if errors.Is(err, ErrAuthFailed) {
			return err
		}
		parts = append(parts, fmt.Errorf("%s: %w", server, err))
	}
	return unreachableError(parts)
}

var errNotTried = errors.New("no answer")

func unreachableError(parts []error) error {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Error()
	}
	return &unreachableErr{text: ErrUnreachable.Error() + ": " + strings.Join(texts, "; "), parts: parts}
}

// unreachableErr is ErrUnreachable and everything that the servers said.
type unreachableErr struct {
	text  string
	parts []error
}

func (e *unreachableErr) Error() string   { return e.text }
func (e *unreachableErr) Unwrap() []error { return append([]error{ErrUnreachable}, e.parts...) }

// roundRobin hands go-zk one server after the other, unresolved: names are looked up at every dial.
type roundRobin struct {
	conn    *conn
	servers []string
	next    int
}

// Init takes the servers, which go-zk has shuffled.
func (r *roundRobin) Init(servers []string) error {
	r.servers = servers
	return nil
}

// Len see zk.HostProvider.
func (r *roundRobin) Len() int { return len(r.servers) }

// Next returns the next server. retryStart makes go-zk look whether it was closed, after which it ends.
func (r *roundRobin) Next() (server string, retryStart bool) {
	server = r.servers[r.next%len(r.servers)]
	r.next++
	select {
	case <-r.conn.life.Done():
		return server, true
	default:
		return server, false
	}
}

// Connected see zk.HostProvider.
func (r *roundRobin) Connected() {}

// zkLogger passes go-zk's messages on at debug level.
type zkLogger struct{ logger *slog.Logger }

// Printf see zk.Logger.
func (l zkLogger) Printf(format string, args ...any) {
	l.logger.Debug("zookeeper client", keyState, fmt.Sprintf(format, args...))
}
