package zkserver

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"kctl/zkutil/zkserver/jute"
)

// rawClient speaks the protocol frame by frame.
type rawClient struct {
	t        testing.TB
	nc       net.Conn
	session  int64
	password []byte
	timeout  int32
	seen     int64
	xid      int32
}

// dialRaw connects without a handshake.
func dialRaw(t testing.TB, addr string) *rawClient {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &rawClient{t: t, nc: nc, password: make([]byte, passwordSize)}
}

func (c *rawClient) writeFrame(body []byte) error {
	_, err := c.nc.Write(append(jute.AppendInt(nil, int32(len(body))), body...))
	return err
}

func (c *rawClient) readFrame() ([]byte, error) {
	var h [4]byte
	if _, err := io.ReadFull(c.nc, h[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(h[:]))
	_, err := io.ReadFull(c.nc, b)
	return b, err
}

func connectFrame(seen int64, timeout time.Duration, session int64, password []byte) []byte {
	b := jute.AppendInt(nil, 0)
	b = jute.AppendLong(b, seen)
	b = jute.AppendInt(b, int32(timeout.Milliseconds()))
	b = jute.AppendLong(b, session)
	b = jute.AppendBuffer(b, password)
	return jute.AppendBool(b, false)
}

// handshake opens a session, or re-attaches the one in c. False: refused.
func (c *rawClient) handshake(timeout time.Duration) bool {
	c.t.Helper()
	if err := c.writeFrame(connectFrame(c.seen, timeout, c.session, c.password)); err != nil {
		c.t.Fatal(err)
	}
	b, err := c.readFrame()
	if err != nil {
		return false
	}
	d := jute.NewDecoder(b)
	d.Int()
	c.timeout, c.session, c.password = d.Int(), d.Long(), d.Buffer()
	d.Bool()
	if d.Err() != nil || len(d.Rest()) != 0 || len(c.password) != passwordSize {
		c.t.Fatalf("connect response %x", b)
	}
	return c.timeout > 0
}

func startRaw(t testing.TB, addr string, timeout time.Duration) *rawClient {
	t.Helper()
	c := dialRaw(t, addr)
	if !c.handshake(timeout) {
		t.Fatal("refused")
	}
	return c
}

func (c *rawClient) send(op int32, body []byte) {
	c.t.Helper()
	c.xid++
	if err := c.writeFrame(append(jute.AppendInt(jute.AppendInt(nil, c.xid), op), body...)); err != nil {
		c.t.Fatal(err)
	}
}

type rawReply struct {
	xid, code int32
	zxid      int64
	d         jute.Decoder
}

func (c *rawClient) receive() (rawReply, error) {
	b, err := c.readFrame()
	if err != nil {
		return rawReply{}, err
	}
	r := rawReply{d: jute.NewDecoder(b)}
	r.xid, r.zxid, r.code = r.d.Int(), r.d.Long(), r.d.Int()
	if r.zxid > 0 {
		c.seen = r.zxid
	}
	return r, r.d.Err()
}

// mustReceive expects a reply with that xid and code.
func (c *rawClient) mustReceive(xid, code int32) rawReply {
	c.t.Helper()
	r, err := c.receive()
	if err != nil {
		c.t.Fatal(err)
	}
	if r.xid != xid || r.code != code {
		c.t.Fatalf("reply xid %d code %d, want %d %d", r.xid, r.code, xid, code)
	}
	return r
}

// call sends one request and expects that code.
func (c *rawClient) call(op int32, body []byte, code int32) rawReply {
	c.t.Helper()
	c.send(op, body)
	return c.mustReceive(c.xid, code)
}

// mustEvent expects a watch event.
func (c *rawClient) mustEvent(typ int32, path string) {
	c.t.Helper()
	r := c.mustReceive(xidWatch, 0)
	if got, state, p := r.d.Int(), r.d.Int(), r.d.String(); got != typ || state != 3 || p != path {
		c.t.Fatalf("event %d %s, want %d %s", got, p, typ, path)
	}
}

// mustClose expects that the server closes the connection.
func (c *rawClient) mustClose() {
	c.t.Helper()
	for {
		_, err := c.readFrame()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			c.t.Fatal("the server did not close the connection")
		}
		if err != nil {
			return
		}
	}
}

func bodyCreate(path string, data []byte, flags int32) []byte {
	b := jute.AppendBuffer(jute.AppendString(nil, path), data)
	b = jute.AppendInt(b, 1)
	b = jute.AppendString(jute.AppendString(jute.AppendInt(b, 31), "world"), "anyone")
	return jute.AppendInt(b, flags)
}

func bodyPath(path string, watch bool) []byte {
	return jute.AppendBool(jute.AppendString(nil, path), watch)
}

func bodySet(path string, data []byte, version int32) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendString(nil, path), data), version)
}

func bodyDelete(path string) []byte { return jute.AppendInt(jute.AppendString(nil, path), -1) }
