package zkserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"kctl/zkutil/zkserver/ztree"
)

const (
	passwordSize       = 16
	leftoverTicks      = 30 // between looks for container and TTL nodes to delete
	leftoversAtOnce    = 10_000
	acceptBackoff      = 20 * time.Millisecond
	stallTicksTolerate = 1
)

// Server is a running server.
type Server struct {
	cfg    Config
	log    *slog.Logger
	ln     net.Listener
	dir    *dataDir // nil: in memory
	wal    *wal     // of the committer; nil: in memory
	secret []byte
	queue  *queue
	stats  stats
	start  time.Time // of the monotonic clock

	bigFrames atomic.Int64 // bytes of large requests being read
	lastZxid  atomic.Int64

	// mu guards the tree, owners and conn.gone. Changes of nodes and sessions are the committer's alone.
	mu     sync.RWMutex
	tree   *ztree.Tree
	owners map[int64]*conn // session → its connection

	// Of the committer.
	notified     []*conn
	txnsSince    int // the newest snapshot
	snapshotting atomic.Bool

	connMu sync.Mutex // guards conns
	conns  map[*conn]struct{}

	wg       sync.WaitGroup
	stop     context.CancelFunc
	stopping <-chan struct{}
	done     chan struct{}
	errMu    sync.Mutex // guards err
	err      error
	closer   sync.Once
}

// Start recovers the data directory, listens and serves in the background until Close, the end of ctx or a
// failure of the disk. When it returns, clients can connect to Addr. Its errors wrap ErrForeignDir, ErrCorrupt
// or ErrLocked where they apply.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger, queue: newQueue(), owners: make(map[int64]*conn), conns: make(map[*conn]struct{}),
		done: make(chan struct{}), start: time.Now(),
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("zkserver: %w", err), s.release())
	}
	s.ln = ln
	ctx, s.stop = context.WithCancel(ctx)
	s.stopping = ctx.Done()
	go s.supervise(ctx)
	return s, nil
}

// open recovers the state.
func (s *Server) open() error {
	o := ztree.Options{Tick: s.cfg.TickTime}
	if s.cfg.DataDir == "" {
		s.tree = ztree.New(o)
		s.secret = make([]byte, secretSize)
		if _, err := rand.Read(s.secret); err != nil {
			return fmt.Errorf("zkserver: make a secret: %w", err)
		}
	} else {
		dir, err := openDataDir(s.cfg.DataDir)
		if err != nil {
			return fmt.Errorf("zkserver: %w", err)
		}
		dir.fsync = s.cfg.Fsync
		s.dir, s.secret = dir, dir.secret
		began := time.Now()
		r, err := dir.recover(s.clock(), o, s.log)
		if err != nil {
			return errors.Join(fmt.Errorf("zkserver: recover %s: %w", s.cfg.DataDir, err), dir.close())
		}
		s.tree, s.txnsSince = r.tree, r.replayed
		s.wal = &wal{dir: dir.path, fsync: s.cfg.Fsync, prev: r.tree.Zxid()}
		s.log.Info("zkserver recovered", "dir", s.cfg.DataDir, "zxid", fmt.Sprintf("0x%x", r.tree.Zxid()),
			"snapshot", fmt.Sprintf("0x%x", r.snapshot), "replayed", r.replayed, "nodes", r.tree.NodeCount(),
			"took", time.Since(began))
	}
	s.tree.RestartTimers(s.clock())
	s.tree.StartEpoch()
	s.lastZxid.Store(s.tree.Zxid())
	return nil
}

// supervise owns all goroutines of the server.
func (s *Server) supervise(ctx context.Context) {
	defer close(s.done)
	committed := make(chan error, 1)
	s.wg.Go(func() { committed <- s.commitLoop() })
	s.wg.Go(func() { s.expiryLoop(ctx) })
	s.wg.Go(func() { s.acceptLoop(ctx) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-committed:
		s.log.Error("zkserver stops: the log failed", "error", err)
	}
	s.stop()
	err = errors.Join(err, s.shutdown())
	s.errMu.Lock()
	s.err = err
	s.errMu.Unlock()
}

// shutdown: stop accepting, cut the connections, commit what is queued, release the directory.
func (s *Server) shutdown() error {
	_ = s.ln.Close()
	s.connMu.Lock()
	for c := range s.conns {
		c.abort()
	}
	s.connMu.Unlock()
	s.queue.close()
	s.wg.Wait()
	return s.release()
}

func (s *Server) release() error {
	if s.dir == nil {
		return nil
	}
	return errors.Join(s.wal.close(), s.dir.close())
}

// Addr is the address clients connect to, host:port.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Done is closed when the server has stopped; Err then says why.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err is nil while the server runs and after an orderly stop; else what stopped it.
func (s *Server) Err() error {
	s.errMu.Lock()
	defer s.errMu.Unlock()
	return s.err
}

// Close stops serving, syncs the log and releases the data directory. Sessions stay and have their full
// timeout to come back after the next Start. It may be called more than once; it returns Err.
func (s *Server) Close() error {
	s.closer.Do(s.stop)
	<-s.done
	return s.Err()
}

func (s *Server) acceptLoop(ctx context.Context) {
	for {
		nc, err := s.ln.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.log.Warn("zkserver cannot accept a connection", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(acceptBackoff): // out of file descriptors: wait for some to close
			}
			continue
		}
		c := newConn(s, nc)
		if !s.register(ctx, c) {
			c.abort()
			continue
		}
		s.wg.Go(func() { s.serve(c) })
	}
}

// register counts the connection in; false: too many, or the server stops.
func (s *Server) register(ctx context.Context, c *conn) bool {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	if len(s.conns) >= s.cfg.MaxConnections {
		s.stats.rejected.Add(1)
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) serve(c *conn) {
	if err := c.run(); !expected(err) {
		s.log.Debug("zkserver connection ended", "remote", c.remote, "session", fmt.Sprintf("0x%x", c.session.Load()), "error", err)
	}
	s.mu.Lock()
	c.gone = true
	if id := c.session.Load(); id != 0 && s.owners[id] == c {
		delete(s.owners, id)
		s.tree.DropWatches(id)
	}
	s.mu.Unlock()
	s.connMu.Lock()
	delete(s.conns, c)
	s.connMu.Unlock()
}

// clock is the time by which sessions expire: it starts as the wall clock and never jumps.
func (s *Server) clock() time.Time { return time.UnixMilli(s.clockMs()) }

func (s *Server) clockMs() int64 { return s.clockAt(time.Now()) }

func (s *Server) clockAt(now time.Time) int64 {
	return s.start.UnixMilli() + now.Sub(s.start).Milliseconds()
}

func (s *Server) zxid() int64 { return s.lastZxid.Load() }

// expiryLoop wakes at the ends of ticks, where deadlines lie.
func (s *Server) expiryLoop(ctx context.Context) {
	tick := s.cfg.TickTime.Milliseconds()
	timer := time.NewTimer(0)
	defer timer.Stop()
	expected := s.clockMs()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := s.clockMs()
		stalled := now-expected > max(stallTicksTolerate*tick, 1000)
		s.expire(now, stalled)
		if n%leftoverTicks == leftoverTicks-1 {
			s.collectLeftovers()
		}
		now = s.clockMs()
		expected = (now/tick + 1) * tick
		timer.Reset(time.Duration(expected-now) * time.Millisecond)
	}
}

// expire queues the sessions whose time is over. After a stall of this process (a suspended laptop) nobody
// could be heard, so every session gets its full timeout again.
func (s *Server) expire(nowMs int64, stalled bool) {
	now := time.UnixMilli(nowMs)
	s.mu.Lock()
	if stalled {
		s.log.Warn("zkserver was stalled; all sessions get their full timeout again")
		s.tree.RestartTimers(now)
	}
	for id, c := range s.owners {
		s.tree.Touch(time.UnixMilli(c.heard.Load()), id)
	}
	expired := s.tree.Expired(now)
	s.mu.Unlock()
	for _, id := range expired {
		s.queue.put(&request{op: opExpire, session: id}, false)
	}
}

func (s *Server) collectLeftovers() {
	s.mu.RLock()
	paths := s.tree.Leftovers(time.Now(), leftoversAtOnce)
	s.mu.RUnlock()
	for _, path := range paths {
		r := &request{op: opDeleteExpired}
		r.z.Path = path
		s.queue.put(r, false)
	}
}

// maybeSnapshot starts a snapshot and rolls the log when enough was logged. The committer calls it.
func (s *Server) maybeSnapshot() error {
	if s.wal == nil || s.txnsSince < s.cfg.SnapshotEvery && s.wal.size < logRollBytes || s.snapshotting.Load() {
		return nil
	}
	if err := s.wal.roll(); err != nil {
		return err
	}
	s.wal.size = 0
	s.txnsSince = 0
	s.mu.RLock()
	im := s.tree.Freeze()
	s.mu.RUnlock()
	s.snapshotting.Store(true)
	s.wg.Go(func() {
		defer s.snapshotting.Store(false)
		began := time.Now()
		err := s.dir.writeSnapshot(im)
		if err == nil {
			err = s.dir.purge(s.cfg.KeepSnapshots)
		}
		if err != nil { // the log still has everything
			s.log.Error("zkserver cannot write a snapshot", "error", err)
			return
		}
		s.log.Info("zkserver wrote a snapshot", "file", filepath.Join(s.dir.path, snapName(im.Zxid())), "nodes", im.Nodes(), "took", time.Since(began))
	})
	return nil
}

// password proves that a client owns a session; it follows from the directory's secret, so that sessions
// survive restarts.
func (s *Server) password(session int64) []byte {
	mac := hmac.New(sha256.New, s.secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(session)))
	return mac.Sum(nil)[:passwordSize]
}

func (s *Server) passwordValid(session int64, password []byte) bool {
	return subtle.ConstantTimeCompare(s.password(session), password) == 1
}
