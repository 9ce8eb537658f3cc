package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kctl/broker/obs"
)

// Options configure a Server. Zero limits mean: none.
type Options struct {
	Handler             Handler
	Logger              *slog.Logger
	Registerer          prometheus.Registerer // nil: no metrics
	MaxRequestBytes     int                   // socket.request.max.bytes
	RequestBytesMax     func(key int16) int   // the same by API key, 0: no other bound; nil: none
	MaxFrameBytes       int64                 // of all requests being read or served together; queued.max.request.bytes, 0: 1 GiB
	MaxConnections      int
	MaxConnectionsPerIP int
	IdleTimeout         time.Duration // connections.max.idle.ms
	WriteTimeout        time.Duration // a client that takes nothing for this long is cut off
	SendBufferBytes     int           // SO_SNDBUF, 0: the system's
	ReceiveBufferBytes  int           // SO_RCVBUF, 0: the system's
}

// linesPerSecond bounds the log lines about connections that ended badly.
const linesPerSecond = 5

// Server accepts connections on several listeners. Use: New, Listen for each listener, Run, Drain.
type Server struct {
	opts     Options
	handler  Handler
	log      *slog.Logger
	metrics  metrics
	lines    obs.Limiter // of connections that ended badly
	nextID   atomic.Uint64
	draining atomic.Bool

	frameBytes atomic.Int64 // held by frames beyond the first bytes

	mu        sync.Mutex // guards the fields below
	listeners []listener
	conns     map[*Conn]struct{}
	perIP     map[string]int
	idle      *sync.Cond // signalled when conns becomes empty
}

type listener struct {
	name string
	ln   net.Listener
}

// New returns a server without listeners.
func New(opts Options) *Server {
	if opts.MaxRequestBytes <= 0 {
		opts.MaxRequestBytes = 100 << 20
	}
	if opts.MaxFrameBytes <= 0 {
		opts.MaxFrameBytes = 1 << 30
	}
	s := &Server{opts: opts, handler: opts.Handler, log: opts.Logger, metrics: newMetrics(opts.Registerer),
		lines: obs.Limiter{PerSecond: linesPerSecond},
		conns: make(map[*Conn]struct{}), perIP: make(map[string]int)}
	s.idle = sync.NewCond(&s.mu)
	return s
}

// SetHandler sets the handler when it could not be known at New. It must be called before Run.
func (s *Server) SetHandler(h Handler) { s.handler = h }

// Listen binds addr for the named listener and returns the address that it got. Connections wait in the
// system's queue until Run.
func (s *Server) Listen(name, addr string) (net.Addr, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listener %s cannot bind %s: %w", name, addr, err)
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, listener{name, ln})
	s.mu.Unlock()
	return ln.Addr(), nil
}

// Run accepts and serves until Drain or Close is called; it returns when every connection is closed. ctx is the
// context of requests: its end makes those that wait (long polls) return, and closes nothing by itself.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	s.mu.Lock()
	listeners := s.listeners
	s.mu.Unlock()
	for _, l := range listeners {
		wg.Go(func() { s.accept(ctx, l, &wg) })
	}
	wg.Wait()
	return nil
}

// Drain stops accepting and reading, lets requests in progress finish and their answers leave, and closes what
// is left when ctx ends. The caller should have ended the context of requests that wait (long polls) first.
func (s *Server) Drain(ctx context.Context) {
	s.draining.Store(true)
	s.mu.Lock()
	for _, l := range s.listeners {
		l.ln.Close()
	}
	for c := range s.conns {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.Close)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.conns) > 0 {
		s.idle.Wait()
	}
}

// Close closes all listeners and connections at once.
func (s *Server) Close() {
	s.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.listeners {
		l.ln.Close()
	}
	for c := range s.conns {
		c.kill()
	}
}

// accept takes connections of one listener until it is closed. Out of descriptors is no reason to give up:
// it waits, longer each time up to a second.
func (s *Server) accept(ctx context.Context, l listener, wg *sync.WaitGroup) {
	pause := time.Duration(0)
	for {
		nc, err := l.ln.Accept()
		switch {
		case err == nil:
			pause = 0
			s.start(ctx, l.name, nc, wg)
		case s.draining.Load() || errors.Is(err, net.ErrClosed):
			return
		default:
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("accept failed", "listener", l.name, obs.Err(err))
			<-time.After(pause)
		}
	}
}

// start admits a connection and serves it in its own goroutine.
func (s *Server) start(ctx context.Context, name string, nc net.Conn, wg *sync.WaitGroup) {
	host, _, err := net.SplitHostPort(nc.RemoteAddr().String())
	if err != nil {
		host = nc.RemoteAddr().String()
	}
	c := &Conn{ID: s.nextID.Add(1), Listener: name, Remote: host, srv: s, nc: nc}
	c.room.L = &c.mu
	if reason := s.admit(c); reason != "" {
		nc.Close()
		s.metrics.rejected.Inc()
		s.log.Debug("connection refused", obs.KeyAddr, host, obs.KeyReason, reason)
		return
	}
	s.setSocketOptions(nc)
	s.metrics.accepted.Inc()
	s.metrics.connections.Inc()
	wg.Go(func() {
		err := c.serve(ctx)
		s.remove(c)
		s.metrics.connections.Dec()
		if !expected(err) {
			if ok, dropped := s.lines.Allow(time.Now()); ok {
				s.log.Info("connection closed", obs.KeyAddr, nc.RemoteAddr().String(), "listener", name, obs.Err(err), obs.KeyUnlogged, dropped)
			}
		}
	})
}

func (s *Server) setSocketOptions(nc net.Conn) {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	// Neither is worth refusing a client for.
	if s.opts.SendBufferBytes > 0 {
		_ = tc.SetWriteBuffer(s.opts.SendBufferBytes)
	}
	if s.opts.ReceiveBufferBytes > 0 {
		_ = tc.SetReadBuffer(s.opts.ReceiveBufferBytes)
	}
}

// admit counts the connection in, or says why it may not be.
func (s *Server) admit(c *Conn) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining.Load():
		return "draining"
	case s.opts.MaxConnections > 0 && len(s.conns) >= s.opts.MaxConnections:
		return "max.connections reached"
	case s.opts.MaxConnectionsPerIP > 0 && s.perIP[c.Remote] >= s.opts.MaxConnectionsPerIP:
		return "max.connections.per.ip reached"
	}
	s.conns[c] = struct{}{}
	s.perIP[c.Remote]++
	return ""
}

func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.perIP[c.Remote]--; s.perIP[c.Remote] <= 0 {
		delete(s.perIP, c.Remote)
	}
	if len(s.conns) == 0 {
		s.idle.Broadcast()
	}
}

// Connections counts the open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// expected tells the ends of connections that deserve no log line.
func expected(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errHangup) || isReset(err)
}
