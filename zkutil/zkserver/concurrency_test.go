package zkserver

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kctl/zkutil/zkserver/jute"
)

func statVersion(d *jute.Decoder) int32 {
	for range 4 {
		d.Long()
	}
	return d.Int()
}

// TestCounter: conditional sets of many clients give as many versions as were acknowledged, and no client ever
// sees the node go back.
func TestCounter(t *testing.T) {
	s := startServer(t, Config{DataDir: t.TempDir(), Fsync: true, SnapshotEvery: 50})
	startRaw(t, s.Addr(), long).call(opCreate, bodyCreate("/n", nil, 0), 0)
	var acked atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		c := startRaw(t, s.Addr(), long)
		wg.Go(func() {
			last := int32(0)
			for range 100 {
				r := c.call(opExists, bodyPath("/n", false), 0)
				v := statVersion(&r.d)
				if v < last {
					t.Errorf("version %d after %d", v, last)
				}
				last = v
				c.send(opSetData, bodySet("/n", nil, v))
				r, err := c.receive()
				if err != nil {
					t.Error(err)
					return
				}
				switch r.code {
				case 0:
					acked.Add(1)
					last = statVersion(&r.d)
				case codeBadVersion:
				default:
					t.Errorf("code %d", r.code)
				}
			}
		})
	}
	wg.Wait()
	r := startRaw(t, s.Addr(), long).call(opExists, bodyPath("/n", false), 0)
	if v := statVersion(&r.d); v != acked.Load() || v < 100 {
		t.Fatalf("version %d after %d acknowledged sets", v, acked.Load())
	}
}

// TestReadsDoNotWaitForTheLog: while the log is stuck, reads are answered from what is durable, and what waits
// for the log does not show.
func TestReadsDoNotWaitForTheLog(t *testing.T) {
	s := startServer(t, Config{DataDir: t.TempDir()})
	c, other := startRaw(t, s.Addr(), long), startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/x", []byte("old"), 0), 0)
	real := s.wal.f
	stuck, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.wal.f = w // the committer sees it with its next entry
	big := bytes.Repeat([]byte("n"), 200_000)
	c.send(opSetData, bodySet("/x", big, 0)) // more than the pipe takes
	await(t, func() bool { return s.queue.depth() == 0 && c.onServer(s).pending.Load() == 1 })
	for range 20 {
		r := other.call(opGetData, bodyPath("/x", true), 0)
		if got := string(r.d.Buffer()); got != "old" {
			t.Fatalf("a read shows %d bytes that are not in the log", len(got))
		}
	}
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, stuck); close(drained) }()
	c.mustReceive(c.xid, 0)
	other.mustEvent(3, "/x")
	r := other.call(opGetData, bodyPath("/x", false), 0)
	if got := r.d.Buffer(); !bytes.Equal(got, big) {
		t.Fatal("the write is lost")
	}
	s.wal.f = real
	_ = w.Close()
	<-drained
}

func (c *rawClient) onServer(s *Server) *conn {
	for _, sc := range s.connections() {
		if sc.session.Load() == c.session {
			return sc
		}
	}
	c.t.Fatal("not connected")
	return nil
}

// TestChurn mixes everything: sessions that come, go, expire and re-attach, ephemerals, watches, multis, a
// snapshot every few writes and restarts. At the end nothing is left of dead sessions.
func TestChurn(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{DataDir: dir, SnapshotEvery: 30, TickTime: 20 * time.Millisecond, MinSessionTimeout: 40 * time.Millisecond, MaxSessionTimeout: long}
	s := startServer(t, cfg)
	startRaw(t, s.Addr(), long).call(opCreate, bodyCreate("/d", nil, 0), 0)
	for round := range 3 {
		var wg sync.WaitGroup
		for w := range 6 {
			r := rand.New(rand.NewSource(int64(round*100 + w)))
			wg.Go(func() { churn(t, s.Addr(), r, fmt.Sprintf("/d/%d-%d-", round, w)) })
		}
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = startServer(t, cfg)
	}
	c := startRaw(t, s.Addr(), long)
	await(t, func() bool {
		r := c.call(opGetChildren, bodyPath("/d", false), 0)
		return len(r.d.Strings()) == 0
	})
	s.mu.RLock()
	watches, _, _ := s.tree.WatchCounts()
	ephemerals := s.tree.EphemeralCount()
	s.mu.RUnlock()
	if watches != 0 || ephemerals != 0 {
		t.Fatalf("%d watches and %d ephemerals of dead sessions", watches, ephemerals)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*"+tempSuffix)); len(left) > 1 {
		t.Fatal(left)
	}
}

func churn(t *testing.T, addr string, r *rand.Rand, prefix string) {
	var c *rawClient
	for i := range 60 {
		if c == nil {
			c = dialRaw(t, addr)
			if !c.handshake(time.Second) {
				t.Error("a new session is refused")
				return
			}
		}
		path := fmt.Sprint(prefix, i)
		var err error
		switch r.Intn(8) {
		case 0: // vanish; the session expires
			_ = c.nc.Close()
			c = nil
			continue
		case 1:
			_ = c.try(opCloseSession, nil) // the session is gone either way
			c = nil
			continue
		case 2: // cut and come back
			_ = c.nc.Close()
			again := dialRaw(t, addr)
			again.session, again.password, again.seen, again.xid = c.session, c.password, c.seen, c.xid
			if c = again; !c.handshake(time.Second) {
				c = nil // expired meanwhile
			}
			continue
		case 3:
			err = c.try(opGetChildren2, bodyPath("/d", true))
		case 4:
			err = c.try(opExists, bodyPath(path, true))
		case 5:
			b := append(multiHeader(nil, opCreate, false, -1), bodyCreate(path, []byte("m"), 1)...)
			b = append(multiHeader(b, opCheck, false, -1), jute.AppendInt(jute.AppendString(nil, "/d"), int32(r.Intn(2)))...)
			err = c.try(opMulti, multiHeader(b, -1, true, -1))
		default:
			err = c.try(opCreate2, bodyCreate(path, []byte("e"), int32(1+2*r.Intn(2))))
		}
		if err != nil {
			c = nil // expired under load
		}
	}
	if c != nil {
		_ = c.try(opCloseSession, nil)
	}
}

// try sends a request and skips events until its reply.
func (c *rawClient) try(op int32, body []byte) error {
	c.xid++
	if err := c.writeFrame(append(jute.AppendInt(jute.AppendInt(nil, c.xid), op), body...)); err != nil {
		return err
	}
	for {
		r, err := c.receive()
		if err != nil || r.xid == c.xid {
			return err
		}
	}
}

// TestOldConnectionIsFenced: once a session has a new connection, requests that the old one sent are not run:
// the client may already have read back that they were not.
func TestOldConnectionIsFenced(t *testing.T) {
	s := startServer(t, Config{DataDir: t.TempDir()})
	c, other := startRaw(t, s.Addr(), long), startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/x", nil, 0), 0)
	real := s.wal.f
	stuck, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.wal.f = w
	other.send(opCreate, bodyCreate("/big", make([]byte, 200_000), 0)) // keeps the committer busy
	await(t, func() bool { return s.queue.depth() == 0 && other.onServer(s).pending.Load() == 1 })
	again := dialRaw(t, s.Addr())
	if err := again.writeFrame(connectFrame(0, long, c.session, c.password)); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return s.queue.depth() == 1 })
	c.send(opSetData, bodySet("/x", []byte("late"), -1))
	await(t, func() bool { return s.queue.depth() == 2 })
	drained := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, stuck); close(drained) }()
	if _, err := again.readFrame(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if r := again.call(opGetData, bodyPath("/x", false), 0); len(r.d.Buffer()) != 0 {
			t.Fatal("a write of the old connection was run")
		}
	}
	c.mustClose()
	other.mustReceive(other.xid, 0)
	s.wal.f = real
	_ = w.Close()
	<-drained
}

// TestStallGivesTime: after the process stood still nobody is expired for it.
func TestStallGivesTime(t *testing.T) {
	s := startServer(t, Config{TickTime: time.Hour}) // its own loop stays asleep
	c := startRaw(t, s.Addr(), long)
	later := s.clock().Add(1000 * time.Hour).UnixMilli()
	s.expire(later, true)
	c.call(opExists, bodyPath("/", false), 0)
	s.expire(later, false)
	c.call(opExists, bodyPath("/", false), 0)
	s.expire(later+1000*time.Hour.Milliseconds(), false)
	c.mustClose()
}
