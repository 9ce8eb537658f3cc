package zkserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kctl/zkutil/zkserver/jute"
	"kctl/zkutil/zkserver/ztree"
)

const (
	handshakeTimeout  = 10 * time.Second
	handshakeBytesMax = 4096 // of a connect request
	closeTimeout      = 5 * time.Second
	smallFrame        = 64 << 10 // larger ones count against bigFramesMax and their buffers are not kept
	bigFramesMax      = 512 << 20
	outPauseBytes     = 1 << 20  // a reader waits while so many replies are unsent
	outMaxBytes       = 64 << 20 // a peer that leaves so much unread is cut off
	identitiesMax     = 256
)

// conn is one client connection: a goroutine that reads, answers reads itself and hands writes to the
// committer. Replies are appended to out in request order; whoever appends makes sure that somebody drains it.
type conn struct {
	srv    *Server
	nc     net.Conn
	remote string
	since  time.Time

	// Of the reading goroutine.
	frame   []byte
	scratch request
	ready   chan bool // the committer's verdict on the handshake

	auth    atomic.Pointer[[]ztree.Identity] // replaced, never changed
	session atomic.Int64
	heard   atomic.Int64 // clock of the last packet, ms
	pending atomic.Int32 // requests in the commit queue

	gone bool // guarded by srv.mu: the connection has ended

	// mu guards what follows; it is taken after srv.mu and held across no I/O.
	mu      sync.Mutex
	drained *sync.Cond
	out     []byte
	spare   []byte
	writing bool
	closing bool // close when out is drained
	closed  bool

	received, sent          atomic.Int64
	lastOp                  atomic.Int32
	lastXid                 atomic.Int32
	lastLatency, maxLatency atomic.Int64 // µs
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, remote: nc.RemoteAddr().String(), since: time.Now(), ready: make(chan bool, 1)}
	c.drained = sync.NewCond(&c.mu)
	var ids []ztree.Identity
	if host, _, err := net.SplitHostPort(c.remote); err == nil {
		ids = []ztree.Identity{{Scheme: "ip", ID: host}}
	}
	c.auth.Store(&ids)
	return c
}

// run serves the connection until it ends. The error is for the log only.
func (c *conn) run() error {
	defer c.abort()
	_ = c.nc.SetReadDeadline(time.Now().Add(handshakeTimeout)) // a failure shows in the read
	br := bufio.NewReaderSize(c.nc, 4096)
	first, err := br.Peek(4)
	if err != nil {
		return err
	}
	if cmd, ok := fourLetter(first); ok {
		_ = c.nc.SetDeadline(time.Now().Add(handshakeTimeout))
		_, err := c.nc.Write(cmd(c.srv))
		return err
	}
	if err := c.handshake(br); err != nil {
		return err
	}
	_ = c.nc.SetReadDeadline(time.Time{})
	for {
		if !frameBuffered(br) || c.unsent() > smallFrame {
			c.flush()
		}
		body, err := c.readFrame(br, c.srv.cfg.JuteMaxBuffer)
		if err != nil {
			return err
		}
		if err := c.handle(body); err != nil {
			return err
		}
		c.releaseFrame(body)
		c.awaitDrain()
	}
}

// frameBuffered tells whether the next frame can be read without waiting for the peer.
func frameBuffered(br *bufio.Reader) bool {
	if br.Buffered() < 4 {
		return false
	}
	h, err := br.Peek(4)
	return err == nil && int64(br.Buffered()) >= 4+int64(int32(binary.BigEndian.Uint32(h)))
}

// readFrame reads one length-prefixed frame. A big one grows with the bytes that arrive, not with the length
// that the peer claims. The result is valid until releaseFrame.
func (c *conn) readFrame(br *bufio.Reader, limit int) ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(br, h[:]); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(h[:])))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("request of %d bytes, the limit is %d", n, limit)
	}
	if n <= smallFrame {
		if cap(c.frame) < n {
			c.frame = make([]byte, n, max(n, 512))
		}
		c.frame = c.frame[:n]
		_, err := io.ReadFull(br, c.frame)
		return c.frame, err
	}
	if c.srv.bigFrames.Add(int64(n)) > bigFramesMax {
		c.srv.bigFrames.Add(-int64(n))
		return nil, errors.New("too many large requests at once")
	}
	b := make([]byte, 0, smallFrame)
	for len(b) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(2*cap(b), n)), b...)
		}
		k, err := io.ReadFull(br, b[len(b):min(cap(b), n)])
		b = b[:len(b)+k]
		if err != nil {
			c.srv.bigFrames.Add(-int64(n))
			return nil, err
		}
	}
	return b, nil
}

func (c *conn) releaseFrame(body []byte) {
	if len(body) > smallFrame {
		c.srv.bigFrames.Add(-int64(len(body)))
	}
}

// handshake reads the connect request and waits until the committer has opened or re-attached the session.
func (c *conn) handshake(br *bufio.Reader) error {
	body, err := c.readFrame(br, handshakeBytesMax)
	if err != nil {
		return err
	}
	c.received.Add(1)
	d := jute.NewDecoder(body)
	d.Int() // protocol version
	seen, timeout, session, password := d.Long(), d.Int(), d.Long(), d.Buffer()
	if d.Err() != nil {
		return fmt.Errorf("connect request: %w", d.Err())
	}
	if zxid := c.srv.zxid(); seen > zxid {
		c.srv.log.Warn("zkserver refused a client that has seen a later state: it belongs to another server or the data was wiped",
			"remote", c.remote, "seen_zxid", seen, "zxid", zxid)
		return errors.New("client has seen a later zxid")
	}
	r := &request{c: c, op: opOpenSession, session: session, received: time.Now()}
	r.mode = int32(min(len(d.Rest()), 1)) // clients since 3.4 end with a read-only flag and expect one back
	r.timeout = min(max(time.Duration(timeout)*time.Millisecond, c.srv.cfg.MinSessionTimeout), c.srv.cfg.MaxSessionTimeout)
	if session != 0 {
		r.op = opReattach
		if !c.srv.passwordValid(session, password) {
			r.code = codeSessionExpired
		}
	}
	c.heard.Store(c.srv.clockMs())
	if !c.srv.queue.put(r, true) {
		return ErrClosed
	}
	select {
	case ok := <-c.ready:
		if !ok {
			c.awaitClosed() // the client must read the verdict: without it, it would try again for ever
			return errors.New("session is unknown or expired")
		}
		return nil
	case <-c.srv.stopping:
		return ErrClosed
	}
}

// handle runs one request or queues it. An error ends the connection.
func (c *conn) handle(body []byte) error {
	now := time.Now()
	c.heard.Store(c.srv.clockAt(now))
	c.received.Add(1)
	c.srv.stats.received.Add(1)
	d := jute.NewDecoder(body)
	r := &c.scratch
	*r = request{c: c, session: c.session.Load(), received: now, auth: *c.auth.Load(), size: len(body)}
	r.xid, r.op = d.Int(), d.Int()
	if d.Err() != nil {
		return fmt.Errorf("request header: %w", d.Err())
	}
	switch r.op {
	case opPing:
		r.xid = xidPing
		c.send(r, c.srv.zxid(), codeOK)
		return nil
	case opAuth:
		return c.addAuth(r, d.Rest())
	}
	decodeRequest(r, d.Rest())
	if !r.write && c.pending.Load() == 0 {
		return c.srv.readNow(r)
	}
	queued := new(request)
	*queued = *r
	c.pending.Add(1)
	if !c.srv.queue.put(queued, true) {
		return ErrClosed
	}
	return nil
}

// addAuth proves an identity of the connection for all later requests.
func (c *conn) addAuth(r *request, body []byte) error {
	d := jute.NewDecoder(body)
	d.Int() // type
	scheme, credential := d.String(), d.String()
	ok := d.Err() == nil && len(r.auth) < identitiesMax
	switch {
	case !ok:
	case scheme == "ip": // the address is known already
	case scheme == "digest":
		var id ztree.Identity
		if id, ok = ztree.DigestIdentity(credential); ok {
			ids := append([]ztree.Identity(nil), r.auth...)
			if super := c.srv.cfg.SuperDigest; super != "" && id.ID == super {
				ids = append(ids, ztree.Identity{Scheme: ztree.SchemeSuper})
			}
			if !hasIdentity(ids, id) {
				ids = append(ids, id)
			}
			c.auth.Store(&ids)
		}
	default:
		ok = false
	}
	if !ok {
		c.send(r, c.srv.zxid(), codeAuthFailed)
		c.finish()
		c.awaitClosed()
		return fmt.Errorf("authentication with scheme %q failed", scheme)
	}
	c.send(r, c.srv.zxid(), codeOK)
	return nil
}

func hasIdentity(ids []ztree.Identity, id ztree.Identity) bool {
	for _, have := range ids {
		if have == id {
			return true
		}
	}
	return false
}

// send appends a reply. It is counted before: who has the reply sees it in the four-letter commands too.
func (c *conn) send(r *request, zxid int64, code int32) {
	c.account(r)
	c.mu.Lock()
	if !c.closed {
		c.out = appendReply(c.out, r, zxid, code)
		c.checkOut()
	}
	c.mu.Unlock()
}

func (c *conn) account(r *request) {
	took := time.Since(r.received)
	c.sent.Add(1)
	c.lastOp.Store(r.op)
	c.lastXid.Store(r.xid)
	us := took.Microseconds()
	c.lastLatency.Store(us)
	if us > c.maxLatency.Load() {
		c.maxLatency.Store(us)
	}
	c.srv.stats.answered(took)
}

// append queues bytes that are no reply.
func (c *conn) append(fill func(b []byte) []byte) {
	c.mu.Lock()
	if !c.closed {
		c.out = fill(c.out)
		c.checkOut()
	}
	c.mu.Unlock()
}

// checkOut cuts off a peer that does not read. The caller holds mu.
func (c *conn) checkOut() {
	if len(c.out) > outMaxBytes+c.srv.cfg.JuteMaxBuffer {
		c.closeLocked()
	}
}

// flush writes out from the calling goroutine unless another one is at it.
func (c *conn) flush() {
	c.mu.Lock()
	if c.writing || c.closed || len(c.out) == 0 && !c.closing {
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.mu.Unlock()
	c.drain()
}

// kick makes another goroutine write out: the caller must not block on the peer.
func (c *conn) kick() {
	c.mu.Lock()
	start := !c.writing && !c.closed && (len(c.out) > 0 || c.closing)
	c.writing = c.writing || start
	c.mu.Unlock()
	if start {
		c.srv.wg.Go(c.drain)
	}
}

// drain writes until nothing is left. The caller has set writing.
func (c *conn) drain() {
	for {
		c.mu.Lock()
		if len(c.out) == 0 || c.closed {
			if c.closing {
				c.closeLocked()
			}
			c.writing = false
			c.drained.Broadcast()
			c.mu.Unlock()
			return
		}
		b := c.out
		c.out, c.spare = c.spare[:0], nil
		c.drained.Broadcast()
		c.mu.Unlock()
		_, err := c.nc.Write(b)
		c.mu.Lock()
		if err != nil {
			c.closeLocked()
		}
		if cap(b) <= smallFrame {
			c.spare = b[:0]
		}
		c.mu.Unlock()
	}
}

// unsent is the number of reply bytes that wait to be written.
func (c *conn) unsent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out)
}

// awaitDrain pauses the reader while its peer leaves replies unread.
func (c *conn) awaitDrain() {
	c.mu.Lock()
	for len(c.out) > outPauseBytes && c.writing && !c.closed {
		c.drained.Wait()
	}
	c.mu.Unlock()
}

// awaitClosed waits until the connection that finish was called for has been written out and closed.
func (c *conn) awaitClosed() {
	c.mu.Lock()
	for !c.closed {
		c.drained.Wait()
	}
	c.mu.Unlock()
}

// finish closes the connection after what is in out.
func (c *conn) finish() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	_ = c.nc.SetWriteDeadline(time.Now().Add(closeTimeout))
	c.kick()
}

// abort closes the connection at once.
func (c *conn) abort() {
	c.mu.Lock()
	c.closeLocked()
	c.mu.Unlock()
}

func (c *conn) closeLocked() {
	if c.closed {
		return
	}
	c.closed = true
	c.out, c.spare = nil, nil
	_ = c.nc.Close()
	c.drained.Broadcast()
}

// expected tells the ends of a connection that are not worth a log line.
func expected(err error) bool {
	return err == nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.Canceled)
}
