package zkutil

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Operation codes of the protocol, as far as wireConn looks at them.
const (
	opExists       int32 = 3
	opGetData      int32 = 4
	opSetData      int32 = 5
	opCreate       int32 = 1
	opPing         int32 = 11
	opGetACL       int32 = 6
	opSync         int32 = 9
	opGetChildren2 int32 = 12
	opMulti        int32 = 14
	opSetAuth      int32 = 100
	opSetWatches   int32 = 101
	opClose        int32 = -11
)

const (
	xidWatchEvent   int32 = -1
	xidAuth         int32 = -4 // as in ZooKeeper's own client
	xidSetWatches   int32 = -8
	handshakeMaxLen       = 4096
	replyHeaderLen        = 16
	codeMarshalling int32 = -5
)

// opStale marks a request that go-zk had queued on one connection and took up again on the next. Its place
// in the order is gone, so it must not run. go-zk needs an answer for it all the same: an exists of / is sent
// in its place, and the reply to that becomes code -4, connection loss.
const (
	opStale            int32 = -2000
	codeNoNode         int32 = -101
	codeConnectionLoss int32 = -4
)

// gate lets the requests of the current turn pass to the wire and counts them. See pipeline.go.
type gate struct {
	generation atomic.Uint64 // connection on which requests may be sent
	issued     atomic.Uint64
	wake       chan struct{} // capacity 1: issued has grown
}

func (g *gate) pass(generation uint64) bool {
	if g.generation.Load() != generation {
		return false
	}
	g.issued.Add(1)
	select {
	case g.wake <- struct{}{}:
	default:
	}
	return true
}

// wireConn stands between go-zk and the socket. It sees every packet as a whole, and with that it bounds the
// handshake in time and size, presents the credentials and sets the watches again before anything else is
// sent, refuses requests of an earlier connection, checks each reply's lengths before go-zk allocates by them,
// and knows when the server was last certainly alive.
//
// go-zk writes each packet with one Write, from one goroutine at a time, and reads from another.
type wireConn struct {
	net.Conn
	generation uint64
	gate       *gate
	watches    *watchTable
	auth       []Auth
	// handshake bounds the time from now to the session's opening.
	handshake time.Duration
	maxReply  int
	// onSession is called with the negotiated timeout and id when the server has granted a session and
	// taken every credential.
	onSession func(w *wireConn, timeout time.Duration, id int64)
	// onContact is called with the send time of the oldest unanswered request when a reply has come.
	onContact func(time.Time)

	in      *bufio.Reader
	buf     []byte // rest of the frame that go-zk is reading
	frame   []byte // backing of buf, reused
	opened  atomic.Bool
	ready   atomic.Bool           // opened, and every credential taken
	failure atomic.Pointer[error] // why it did not become ready

	timeout time.Duration // as granted; these three are the reader's
	session int64
	unknown int // credentials that the server has not answered

	mu      sync.Mutex // guards sent and waiting
	sent    []sentRequest
	began   time.Time
	waiting int // index of the oldest unanswered entry of sent
}

type sentRequest struct {
	xid, op int32
	at      time.Time
	watch   string // path of a read that leaves a watch
}

func (w *wireConn) fail(err error) error {
	if !w.ready.Load() {
		w.failure.CompareAndSwap(nil, &err)
	}
	return err
}

// Write sends one packet: length, xid and operation, body; the first packet is the session request.
func (w *wireConn) Write(p []byte) (int, error) {
	now, n := time.Now(), len(p)
	if !w.opened.Load() {
		w.began = now
	} else if len(p) >= 12 {
		r := sentRequest{xid: int32(binary.BigEndian.Uint32(p[4:])), op: int32(binary.BigEndian.Uint32(p[8:])), at: now}
		switch r.op {
		case opPing, opSetAuth, opSetWatches, opClose:
		case opGetData, opExists, opGetChildren2:
			p, r.watch = takeMark(p)
			fallthrough
		default:
			if !w.gate.pass(w.generation) {
				return w.refuse(r.xid, now, n)
			}
		}
		w.note(r)
	}
	if k, err := w.Conn.Write(p); err != nil {
		return min(k, n), w.fail(fmt.Errorf("write to %s: %w", w.RemoteAddr(), err))
	}
	return n, nil
}

// takeMark turns a read whose path ends in watchMark into one with the watch flag.
func takeMark(p []byte) (packet []byte, watch string) {
	if len(p) < 17 {
		return p, ""
	}
	n := int(binary.BigEndian.Uint32(p[12:]))
	if len(p) != 16+n+1 || !strings.HasSuffix(string(p[16:16+n]), watchMark) {
		return p, ""
	}
	watch = string(p[16 : 16+n-len(watchMark)])
	out := append(make([]byte, 0, len(p)), p[:12]...)
	return sealPacket(append(appendText(out, watch), 1)), watch
}

func (w *wireConn) note(r sentRequest) {
	w.mu.Lock()
	w.sent = append(w.sent, r)
	w.mu.Unlock()
}

// refuse sends the stand-in of a stale request and reports its n bytes as written.
func (w *wireConn) refuse(xid int32, now time.Time, n int) (int, error) {
	w.note(sentRequest{xid: xid, op: opStale, at: now})
	p := append(appendText(packetHead(xid, opExists), "/"), 0)
	if _, err := w.Conn.Write(sealPacket(p)); err != nil {
		return 0, err
	}
	return n, nil
}

// Read hands go-zk the bytes of whole, checked frames.
func (w *wireConn) Read(p []byte) (int, error) {
	if len(w.buf) == 0 {
		if err := w.nextFrame(); err != nil {
			return 0, w.fail(err)
		}
	}
	n := copy(p, w.buf)
	w.buf = w.buf[n:]
	return n, nil
}

// nextFrame reads frames until there is one for go-zk.
func (w *wireConn) nextFrame() error {
	for len(w.buf) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(w.in, head[:]); err != nil {
			return w.readError(err)
		}
		if err := w.readFrame(head, int(int32(binary.BigEndian.Uint32(head[:])))); err != nil {
			return err
		}
	}
	return nil
}

func (w *wireConn) readFrame(head [4]byte, size int) error {
	if !w.opened.Load() {
		return w.sessionFrame(head, size)
	}
	if size < replyHeaderLen {
		return fmt.Errorf("%w: %s sent a reply of %d bytes", ErrNotZooKeeper, w.RemoteAddr(), size)
	}
	if size > w.maxReply {
		return w.skipFrame(size)
	}
	w.grow(4 + size)
	copy(w.frame, head[:])
	if _, err := io.ReadFull(w.in, w.frame[4:]); err != nil {
		return w.readError(err)
	}
	switch xid := int32(binary.BigEndian.Uint32(w.frame[4:])); xid {
	case xidSetWatches:
		return nil // ours
	case xidAuth:
		return w.authReply(int32(binary.BigEndian.Uint32(w.frame[16:])))
	default:
		w.buf = w.frame
		return w.reply(xid, w.frame[4:])
	}
}

func (w *wireConn) grow(n int) {
	if cap(w.frame) < n || cap(w.frame) > 1<<20 && n < 1<<16 {
		w.frame = make([]byte, max(n, 4096))
	}
	w.frame = w.frame[:n]
}

// sessionFrame reads the answer to the session request: version, timeout, id, password.
func (w *wireConn) sessionFrame(head [4]byte, size int) error {
	if size < 36 || size > handshakeMaxLen {
		return fmt.Errorf("%w: %s answered the session request with %s", ErrNotZooKeeper, w.RemoteAddr(),
			strconv.QuoteToASCII(string(head[:])))
	}
	w.grow(4 + size)
	copy(w.frame, head[:])
	if _, err := io.ReadFull(w.in, w.frame[4:]); err != nil {
		return w.readError(err)
	}
	body := w.frame[4:]
	if n := int(int32(binary.BigEndian.Uint32(body[16:]))); n < 0 || 20+n > len(body) {
		return fmt.Errorf("%w: %s sent a password of %d bytes", ErrNotZooKeeper, w.RemoteAddr(), n)
	}
	timeout := time.Duration(int32(binary.BigEndian.Uint32(body[4:]))) * time.Millisecond
	id := int64(binary.BigEndian.Uint64(body[8:]))
	if id != 0 && timeout < 0 {
		return fmt.Errorf("%w: %s granted a session of %s", ErrNotZooKeeper, w.RemoteAddr(), timeout)
	}
	w.buf = w.frame
	w.opened.Store(true)
	if id == 0 {
		return nil // the session has expired
	}
	w.timeout, w.session, w.unknown = timeout, id, len(w.auth)
	if err := w.greet(); err != nil {
		return err
	}
	if w.unknown == 0 {
		w.becomeReady()
	}
	return nil
}

// greet sends what must stand before all else on a connection: the credentials, then the session's watches.
// It runs within go-zk's own handshake, so nothing else is written meanwhile.
func (w *wireConn) greet() error {
	var packets [][]byte
	for _, a := range w.auth {
		packets = append(packets, authPacket(a))
	}
	packets = append(packets, w.watches.begin(w.session)...)
	_ = w.Conn.SetWriteDeadline(time.Now().Add(w.handshake)) // a failure shows in the write
	for _, p := range packets {
		if _, err := w.Conn.Write(p); err != nil {
			return fmt.Errorf("write to %s: %w", w.RemoteAddr(), err)
		}
	}
	return w.Conn.SetWriteDeadline(time.Time{})
}

func (w *wireConn) authReply(code int32) error {
	if code != 0 {
		return fmt.Errorf("%w: %s answered with code %d", ErrAuthFailed, w.RemoteAddr(), code)
	}
	if w.unknown--; w.unknown > 0 {
		return nil
	}
	w.becomeReady()
	// The read goes on, and no longer under the handshake's limit.
	return w.Conn.SetReadDeadline(time.Now().Add(w.timeout * 2 / 3))
}

func (w *wireConn) becomeReady() {
	w.ready.Store(true)
	w.onContact(w.began)
	w.onSession(w, w.timeout, w.session)
}

func (w *wireConn) readError(err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout() && !w.ready.Load():
		return fmt.Errorf("%s accepted the connection but did not answer the session request within %s: %w",
			w.RemoteAddr(), w.handshake, err)
	case !w.ready.Load():
		return fmt.Errorf("%s closed the connection during the session handshake: %w", w.RemoteAddr(), err)
	}
	return err
}

// reply matches a reply to its request and checks its lengths.
func (w *wireConn) reply(xid int32, body []byte) error {
	if xid == xidWatchEvent {
		return w.watchEvent(body[replyHeaderLen:])
	}
	code := int32(binary.BigEndian.Uint32(body[12:]))
	r, ok := w.answered(xid)
	if !ok {
		return nil
	}
	if r.op == opStale {
		w.frame = w.frame[:4+replyHeaderLen]
		w.replaceByError(codeConnectionLoss)
		return nil
	}
	w.watches.saw(int64(binary.BigEndian.Uint64(body[4:])))
	if r.watch != "" && (code == 0 || code == codeNoNode) {
		w.watches.registered(r.op, r.watch, code == codeNoNode)
	}
	if code != 0 {
		return nil
	}
	return w.check(checkReply(r.op, body[replyHeaderLen:]))
}

// watchEvent is type, state, path.
func (w *wireConn) watchEvent(b []byte) error {
	if !checkWatchEvent(b) {
		return w.check(false)
	}
	if n := int(int32(binary.BigEndian.Uint32(b[8:]))); n > 0 {
		w.watches.fired(int32(binary.BigEndian.Uint32(b)), string(b[12:12+n]))
	}
	return nil
}

func (w *wireConn) check(ok bool) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s sent a reply whose lengths do not add up", ErrNotZooKeeper, w.RemoteAddr())
}

// answered takes the request of a reply from the list of those sent. Replies come in the order of requests.
func (w *wireConn) answered(xid int32) (r sentRequest, ok bool) {
	w.mu.Lock()
	var at time.Time
	for i := w.waiting; i < len(w.sent); i++ {
		if w.sent[i].xid != xid {
			continue
		}
		r, ok, at = w.sent[i], true, w.sent[w.waiting].at
		w.sent[i] = w.sent[w.waiting]
		w.waiting++
		break
	}
	if w.waiting == len(w.sent) {
		w.sent, w.waiting = w.sent[:0], 0
	} else if w.waiting > 1024 {
		w.sent = w.sent[:copy(w.sent, w.sent[w.waiting:])]
		w.waiting = 0
	}
	w.mu.Unlock()
	if ok {
		w.onContact(at)
	}
	return r, ok
}

// skipFrame drops a reply that is larger than allowed and gives go-zk an error reply in its place, so that
// only this request fails and not the connection.
func (w *wireConn) skipFrame(size int) error {
	w.grow(4 + replyHeaderLen)
	if _, err := io.ReadFull(w.in, w.frame[4:]); err != nil {
		return w.readError(err)
	}
	if _, err := io.CopyN(io.Discard, w.in, int64(size-replyHeaderLen)); err != nil {
		return w.readError(err)
	}
	w.replaceByError(codeMarshalling)
	return w.reply(int32(binary.BigEndian.Uint32(w.frame[4:])), w.frame[4:])
}

// replaceByError makes the frame, a reply's header, an error reply.
func (w *wireConn) replaceByError(code int32) {
	binary.BigEndian.PutUint32(w.frame, replyHeaderLen)
	binary.BigEndian.PutUint32(w.frame[16:], uint32(code))
	w.buf = w.frame
}

// SetReadDeadline and SetWriteDeadline bound the handshake by our own limit: go-zk would wait for ten times
// the read timeout for a server that has accepted the connection and stands still.
func (w *wireConn) SetReadDeadline(t time.Time) error { return w.Conn.SetReadDeadline(w.bound(t)) }

// SetWriteDeadline see SetReadDeadline.
func (w *wireConn) SetWriteDeadline(t time.Time) error { return w.Conn.SetWriteDeadline(w.bound(t)) }

func (w *wireConn) bound(t time.Time) time.Time {
	if w.ready.Load() {
		return t
	}
	if limit := time.Now().Add(w.handshake); t.IsZero() || t.After(limit) {
		return limit
	}
	return t
}
