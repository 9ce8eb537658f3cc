package zkserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"kctl/zkutil/zkserver/jute"
)

const long = 20 * time.Second

// patience bounds every wait for what must happen. Only a test that fails waits so long.
const patience = 2 * time.Minute

// TestPipelinedOrder: replies come in request order and a read behind a write of the same connection sees it,
// although reads and writes take different ways through the server.
func TestPipelinedOrder(t *testing.T) {
	s := startServer(t, Config{DataDir: t.TempDir(), Fsync: true})
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/p", []byte("0"), 0), 0)
	const rounds = 300
	first := c.xid + 1
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; i <= rounds; i++ {
			c.send(opSetData, bodySet("/p", fmt.Appendf(nil, "%d", i), int32(i-1)))
			c.send(opGetData, bodyPath("/p", false))
		}
	})
	for i := 1; i <= rounds; i++ {
		c.mustReceive(first+int32(2*i-2), 0)
		r := c.mustReceive(first+int32(2*i-1), 0)
		if got := string(r.d.Buffer()); got != fmt.Sprint(i) {
			t.Fatalf("read %q after write %d", got, i)
		}
	}
	wg.Wait()
}

// TestEventBeforeReply: the event of a watch arrives before any reply that shows the change, also of the very
// request that made it.
func TestEventBeforeReply(t *testing.T) {
	s := startServer(t, Config{})
	c, other := startRaw(t, s.Addr(), long), startRaw(t, s.Addr(), long)
	c.call(opExists, bodyPath("/w", true), codeNoNode)
	c.send(opCreate, bodyCreate("/w", nil, 0))
	c.mustEvent(1, "/w")
	c.mustReceive(c.xid, 0)
	for i := range 200 {
		c.call(opGetData, bodyPath("/w", true), 0)
		other.send(opSetData, bodySet("/w", nil, -1))
		for seen := false; ; {
			c.send(opGetData, bodyPath("/w", false))
			r, err := c.receive()
			if err != nil {
				t.Fatal(err)
			}
			if r.xid == xidWatch {
				seen = true
				if r, err = c.receive(); err != nil {
					t.Fatal(err)
				}
			}
			r.d.Buffer()
			for range 4 {
				r.d.Long()
			}
			if version := r.d.Int(); version > int32(i) {
				if !seen {
					t.Fatal("a read shows the change before the event")
				}
				break
			}
		}
		other.mustReceive(other.xid, 0)
	}
}

func TestReattach(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{DataDir: dir, Fsync: true}
	s := startServer(t, cfg)
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/e", nil, 1), 0)
	c.call(opGetData, bodyPath("/e", true), 0)

	again := dialRaw(t, s.Addr()) // the old connection still stands
	again.session, again.password, again.seen = c.session, c.password, c.seen
	if !again.handshake(long) || again.session != c.session {
		t.Fatal("cannot re-attach")
	}
	c.mustClose()
	again.call(opSetData, bodySet("/e", nil, -1), 0) // the watch of the old connection is gone: no event comes
	w := jute.AppendLong(nil, again.seen-1)
	w = jute.AppendStrings(jute.AppendStrings(jute.AppendStrings(w, []string{"/e"}), nil), nil)
	again.send(opSetWatches, w)
	again.mustEvent(3, "/e") // missed while away
	again.mustReceive(again.xid, 0)

	wrong := dialRaw(t, s.Addr())
	wrong.session = c.session
	if wrong.handshake(long) || wrong.session != 0 {
		t.Fatal("re-attached with a wrong password")
	}
	wrong.mustClose()
	unknown := dialRaw(t, s.Addr())
	unknown.session, unknown.password = 12345, s.password(12345)
	if unknown.handshake(long) {
		t.Fatal("re-attached an unknown session")
	}
	ahead := dialRaw(t, s.Addr())
	ahead.seen = 1 << 60
	if ahead.handshake(long) {
		t.Fatal("took a client from the future")
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, cfg) // sessions survive a restart
	back := dialRaw(t, s.Addr())
	back.session, back.password, back.seen = again.session, again.password, again.seen
	if !back.handshake(long) {
		t.Fatal("the session did not survive the restart")
	}
	back.call(opExists, bodyPath("/e", false), 0)
	back.call(opCloseSession, nil, 0)
	back.mustClose()
	check := startRaw(t, s.Addr(), long)
	check.call(opExists, bodyPath("/e", false), codeNoNode)
	if check.seen>>32 != 2 {
		t.Fatalf("zxid 0x%x after a restart", check.seen)
	}
}

// TestExpiry: silence ends a session between its timeout and one tick later; a ping is enough to keep it.
func TestExpiry(t *testing.T) {
	const tick = 500 * time.Millisecond // a late ping must not look like silence: three of them may be late
	s := startServer(t, Config{TickTime: tick})
	dead, alive := startRaw(t, s.Addr(), 4*tick), startRaw(t, s.Addr(), 4*tick)
	if dead.timeout != int32((4 * tick).Milliseconds()) {
		t.Fatal(dead.timeout)
	}
	watcher := startRaw(t, s.Addr(), 20*tick)
	dead.call(opCreate, bodyCreate("/dead", nil, 1), 0)
	silent := time.Now()
	alive.call(opCreate, bodyCreate("/alive", nil, 1), 0)
	watcher.call(opExists, bodyPath("/dead", true), 0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				_ = alive.writeFrame(jute.AppendInt(jute.AppendInt(nil, xidPing), opPing))
			}
		}
	})
	watcher.mustEvent(2, "/dead")
	if took := time.Since(silent); took < 4*tick {
		t.Fatalf("expired after %v, the timeout is %v", took, 4*tick)
	}
	close(stop)
	wg.Wait()
	dead.mustClose()
	watcher.call(opExists, bodyPath("/alive", false), 0)
}

func TestTimeoutIsNegotiated(t *testing.T) {
	s := startServer(t, Config{TickTime: time.Second, MinSessionTimeout: 3 * time.Second, MaxSessionTimeout: 5 * time.Second})
	for asked, want := range map[time.Duration]int32{0: 3000, 4 * time.Second: 4000, time.Hour: 5000, -time.Second: 3000} {
		if c := startRaw(t, s.Addr(), asked); c.timeout != want {
			t.Errorf("asked %v, got %d ms", asked, c.timeout)
		}
	}
}

func TestAuth(t *testing.T) {
	s := startServer(t, Config{SuperDigest: "super:Z3dqc6aPbvbSpFf45hrhLBB44xU="})
	addAuth := func(c *zk.Conn, who string) {
		t.Helper()
		if err := c.AddAuth("digest", []byte(who)); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, s.Addr(), long)
	addAuth(c, "bob:secret")
	if _, err := c.Create("/p", []byte("x"), 0, zk.AuthACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create("/bad", nil, 0, nil); err != zk.ErrInvalidACL {
		t.Fatal(err)
	}
	other := connect(t, s.Addr(), long)
	if _, _, err := other.Get("/p"); err != zk.ErrNoAuth {
		t.Fatal(err)
	}
	addAuth(other, "bob:secret")
	if _, _, err := other.Get("/p"); err != nil {
		t.Fatal(err)
	}
	super := connect(t, s.Addr(), long)
	addAuth(super, "super:duper")
	if acl, _, err := super.GetACL("/p"); err != nil || !strings.HasPrefix(acl[0].ID, "bob:") {
		t.Fatal(acl, err)
	}
	raw := startRaw(t, s.Addr(), long)
	b := jute.AppendInt(jute.AppendInt(nil, xidAuth), opAuth)
	b = jute.AppendBuffer(jute.AppendString(jute.AppendInt(b, 0), "kerberos"), []byte("x"))
	if err := raw.writeFrame(b); err != nil {
		t.Fatal(err)
	}
	raw.mustReceive(xidAuth, codeAuthFailed)
	raw.mustClose()
}

// TestHostileBytes: each peer gets a closed connection or an error code; the server lives on.
func TestHostileBytes(t *testing.T) {
	s := startServer(t, Config{})
	frame := func(n int32, body ...byte) []byte { return append(jute.AppendInt(nil, n), body...) }
	for name, b := range map[string][]byte{
		"negative length": frame(-1), "least length": frame(-1 << 31), "2 GiB": frame(1<<31 - 1), "too large": frame(1 << 20),
		"empty": frame(0), "short": frame(3, 1, 2, 3), "http": []byte("GET / HTTP/1.1\r\n\r\n"), "zeros": make([]byte, 100),
		"long handshake": frame(5000, make([]byte, 5000)...), "negative password": append(frame(28, make([]byte, 24)...), 0xff, 0xff, 0xff, 0xf0),
	} {
		c := dialRaw(t, s.Addr())
		_, _ = c.nc.Write(b)
		done := make(chan struct{})
		go func() { c.mustClose(); close(done) }()
		select {
		case <-done:
		case <-time.After(handshakeTimeout - time.Second): // at once, not by the timeout
			t.Errorf("before the handshake, %s: not closed", name)
		}
	}
	for name, b := range map[string][]byte{
		"negative length": frame(-1), "over jute.maxbuffer": frame(1 << 20), "no header": frame(2, 0, 0), "no op": frame(4, 0, 0, 0, 1),
	} {
		c := startRaw(t, s.Addr(), long)
		if _, err := c.nc.Write(b); err != nil {
			t.Fatal(err)
		}
		c.mustClose()
		_ = name
	}
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, []byte{0, 0}, codeMarshalling)
	c.call(opCreate, jute.AppendInt(nil, -7), codeMarshalling)
	c.call(9999, nil, codeUnimplemented)
	c.call(16, nil, codeUnimplemented) // reconfig
	c.call(opMulti, jute.AppendInt(nil, 1), codeMarshalling)
	c.call(opCreate2, bodyCreate("/x", nil, 77), codeBadArguments)
	c.call(opCreateTTL, append(bodyCreate("/x", nil, 0), make([]byte, 8)...), codeBadArguments)
	c.call(opSetWatches, jute.AppendInt(jute.AppendLong(nil, 0), 1<<30), codeMarshalling)
	c.call(opAddWatch, jute.AppendInt(jute.AppendString(nil, "/"), 7), codeMarshalling)
	c.call(opExists, bodyPath("/", false), 0)
}

func TestLargestRequest(t *testing.T) {
	s := startServer(t, Config{JuteMaxBuffer: 300_000})
	c := startRaw(t, s.Addr(), long)
	overhead := len(bodyCreate("/big", nil, 0)) + 8
	data := bytes.Repeat([]byte("x"), 300_000-overhead)
	c.call(opCreate, bodyCreate("/big", data, 0), 0)
	r := c.call(opGetData, bodyPath("/big", false), 0)
	if !bytes.Equal(r.d.Buffer(), data) {
		t.Fatal("data differs")
	}
	if s.bigFrames.Load() != 0 {
		t.Fatalf("%d bytes of large requests still counted", s.bigFrames.Load())
	}
	_ = c.writeFrame(append(jute.AppendInt(jute.AppendInt(nil, 9), opCreate), bodyCreate("/bi2", append(data, 'x'), 0)...))
	c.mustClose()
}

func TestConnectionLimit(t *testing.T) {
	s := startServer(t, Config{MaxConnections: 2})
	a := startRaw(t, s.Addr(), long)
	startRaw(t, s.Addr(), long)
	third := dialRaw(t, s.Addr())
	third.mustClose()
	a.call(opCloseSession, nil, 0)
	a.mustClose()
	await(t, func() bool { return len(s.connections()) == 1 })
	startRaw(t, s.Addr(), long)
}

func TestWatchLimit(t *testing.T) {
	s := startServer(t, Config{MaxWatches: 3})
	c := startRaw(t, s.Addr(), long)
	for i := range 3 {
		c.call(opExists, bodyPath(fmt.Sprintf("/%d", i), true), codeNoNode)
	}
	c.call(opExists, bodyPath("/3", false), codeNoNode)
	c.send(opExists, bodyPath("/3", true))
	c.mustClose()
	await(t, func() bool { s.mu.RLock(); defer s.mu.RUnlock(); n, _, _ := s.tree.WatchCounts(); return n == 0 })
}

// await polls an observed condition.
func await(t testing.TB, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("condition not met within %s", patience)
		case <-tick.C:
		}
	}
}

// TestSlowReader: a peer that sends requests and reads nothing does not make replies pile up, and others are
// served meanwhile.
func TestSlowReader(t *testing.T) {
	s := startServer(t, Config{})
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/big", bytes.Repeat([]byte("x"), 1<<20-100), 0), 0)
	slow := startRaw(t, s.Addr(), long)
	sent := make(chan error, 1)
	go func() {
		one := append(jute.AppendInt(jute.AppendInt(nil, 1), opGetData), bodyPath("/big", false)...)
		one = append(jute.AppendInt(nil, int32(len(one))), one...)
		_, err := slow.nc.Write(bytes.Repeat(one, 2000)) // 2 GB of replies
		sent <- err
	}()
	var conn *conn
	await(t, func() bool {
		for _, sc := range s.connections() {
			if sc.session.Load() == slow.session && sc.received.Load() > 2 {
				conn = sc
			}
		}
		return conn != nil
	})
	for range 50 {
		c.call(opExists, bodyPath("/big", false), 0)
		conn.mu.Lock()
		queued := len(conn.out)
		conn.mu.Unlock()
		if queued > 4<<20 {
			t.Fatalf("%d bytes queued for a peer that does not read", queued)
		}
	}
	_ = slow.nc.Close()
	<-sent
}

func TestFourLetterCommands(t *testing.T) {
	s := startServer(t, Config{DataDir: t.TempDir()})
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/eph", nil, 1), 0)
	c.call(opGetData, bodyPath("/eph", true), 0)
	for cmd, want := range map[string][]string{
		"ruok": {"imok"}, "isro": {"rw"},
		"srvr": {"Zookeeper version: ", "Latency min/avg/max: ", "Connections: 2\n", "Zxid: 0x1000000", "Mode: standalone\n", "Node count: 5\n"},
		"stat": {"Clients:\n /127.0.0.1:", "Node count: 5\n"},
		"mntr": {"zk_server_state\tstandalone\n", "zk_znode_count\t5\n", "zk_ephemerals_count\t1\n", "zk_watch_count\t1\n", "zk_packets_received\t2\n"},
		"cons": {fmt.Sprintf("sid=0x%x,lop=GETD", c.session)},
		"conf": {"clientPort=" + s.Addr()[strings.LastIndex(s.Addr(), ":")+1:] + "\n", "tickTime=2000\n", "dataDir=/"},
		"dump": {fmt.Sprintf("0x%x:\n\t/eph\n", c.session), "Session Sets (1)"},
		"wchs": {"1 connections watching 1 paths\nTotal watches:1\n"},
	} {
		// The server may still be taking leave of the connection before, and counts it.
		await(t, func() bool { return len(s.connections()) == 1 })
		nc, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = nc.Write([]byte(cmd))
		b, err := io.ReadAll(nc)
		_ = nc.Close()
		if err != nil {
			t.Errorf("%s: %v", cmd, err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s: no %q in\n%s", cmd, w, b)
			}
		}
	}
}

func TestOtherOperations(t *testing.T) {
	s := startServer(t, Config{})
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/a", []byte("data"), 0), 0)
	c.call(opCreate, bodyCreate("/a/e2", nil, 1), 0)
	c.call(opCreate, bodyCreate("/a/e1", nil, 1), 0)
	r := c.call(opGetEphemerals, jute.AppendString(nil, "/a/e"), 0)
	if got := r.d.Strings(); fmt.Sprint(got) != "[/a/e1 /a/e2]" {
		t.Fatal(got)
	}
	r = c.call(opGetEphemerals, jute.AppendString(nil, "/b"), 0)
	if got := r.d.Strings(); len(got) != 0 {
		t.Fatal(got)
	}
	r = c.call(opAllChildren, jute.AppendString(nil, "/a"), 0)
	if n := r.d.Int(); n != 2 {
		t.Fatal(n)
	}
	r = c.call(opAllChildren, jute.AppendString(nil, "/"), 0)
	if n := r.d.Int(); n != 6 {
		t.Fatal(n)
	}
	c.call(opAllChildren, jute.AppendString(nil, "/none"), codeNoNode)
	r = c.call(opSync, jute.AppendString(nil, "/a"), 0)
	if r.d.String() != "/a" {
		t.Fatal("sync")
	}
	r = c.call(opWhoAmI, nil, 0)
	if n, scheme, user := r.d.Int(), r.d.String(), r.d.String(); n != 1 || scheme != "ip" || user != "127.0.0.1" {
		t.Fatal(n, scheme, user)
	}
	c.call(opCheck, jute.AppendInt(jute.AppendString(nil, "/a"), 3), codeBadVersion)

	// multiRead answers each read on its own.
	multi := func(b []byte, op int32, body []byte) []byte { return append(multiHeader(b, op, false, -1), body...) }
	b := multi(nil, opGetData, bodyPath("/a", false))
	b = multi(b, opGetChildren, bodyPath("/a", false))
	b = multi(b, opGetData, bodyPath("/none", false))
	r = c.call(opMultiRead, multiHeader(b, -1, true, -1), 0)
	header := func() (op int32, done bool, code int32) { return r.d.Int(), r.d.Bool(), r.d.Int() }
	if op, _, _ := header(); op != opGetData || string(r.d.Buffer()) != "data" {
		t.Fatal("multiRead data")
	}
	for range 68 {
		r.d.Bool()
	}
	if op, _, _ := header(); op != opGetChildren || fmt.Sprint(r.d.Strings()) != "[e1 e2]" {
		t.Fatal("multiRead children")
	}
	if op, _, code := header(); op != opError || code != codeNoNode || r.d.Int() != codeNoNode {
		t.Fatal("multiRead error")
	}
	if _, done, _ := header(); !done {
		t.Fatal("multiRead end")
	}
	b = multi(nil, opGetData, bodyPath("/a", false))
	b = multi(b, opDelete, bodyDelete("/a"))
	c.call(opMulti, multiHeader(b, -1, true, -1), codeMarshalling) // mixed

	c.call(opAddWatch, jute.AppendInt(jute.AppendString(nil, "/a"), 1), 0)
	c.call(opCheckWatches, jute.AppendInt(jute.AppendString(nil, "/a"), 3), 0)
	c.send(opDelete, bodyDelete("/a/e1"))
	c.mustEvent(2, "/a/e1")
	c.mustReceive(c.xid, 0)
	c.call(opRemoveWatches, jute.AppendInt(jute.AppendString(nil, "/a"), 3), 0)
	c.call(opRemoveWatches, jute.AppendInt(jute.AppendString(nil, "/a"), 3), codeNoWatcher)
	c.call(opCheckWatches, jute.AppendInt(jute.AppendString(nil, "/a"), 3), codeNoWatcher)
	c.call(opDelete, bodyDelete("/a/e2"), 0)
}
