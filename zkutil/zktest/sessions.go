package zktest

import (
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest scheme is SHA-1
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

func digestOf(userPassword string) string {
	sum := sha1.Sum([]byte(userPassword)) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}

var sessionTests = map[string]func(*testing.T, Server){
	"ReattachAfterCut":         testReattachAfterCut,
	"ExpiryByTheServer":        testExpiryByTheServer,
	"PresumedLostFirst":        testPresumedLostFirst,
	"PresumptionTakenBack":     testPresumptionTakenBack,
	"OldEpochIsRefused":        testOldEpochIsRefused,
	"WatchesRearmed":           testWatchesRearmed,
	"MissedChangesAreTold":     testMissedChangesAreTold,
	"CredentialsRepeated":      testCredentialsRepeated,
	"IdleClient":               testIdleClient,
	"LostReply":                testLostReply,
	"LostReplyOfAFailedWrite":  testLostReplyOvertaken,
	"EphemeralAtExpiry":        testEphemeralAtExpiry,
	"QueuedNotRunAfterACut":    testQueuedNotRunAfterACut,
	"ReadsOutliveCuts":         testReadsOutliveCuts,
	restarted:                  testRestartedServer,
	"ClosedClient":             testClosedClient,
	"ClosedWhileCallsStart":    testClosedWhileCallsStart,
	"FeedOutlivesManySessions": testFeedOutlivesManySessions,
}

// firstOf is one address of a server: a proxy has one target.
func firstOf(s Server) string {
	addr, _, _ := strings.Cut(s.Addr(), ",")
	return addr
}

func throughProxy(t testing.TB, s Server, opts ...option) (*client, *Proxy) {
	t.Helper()
	p := NewProxy(t, firstOf(s))
	return dial(t, p.Addr(), opts...), p
}

func testReattachAfterCut(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	before := c.Session()
	if _, err := c.Create(c.ctx, "/e", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		proxy.Cut()
		c.awaitState(zkutil.Suspended)
		after := c.awaitState(zkutil.Connected)
		if after.ID != before.ID || after.Epoch != before.Epoch {
			t.Fatalf("session %+v became %+v", before, after)
		}
		if _, stat := c.get("/e"); stat.EphemeralOwner != before.ID {
			t.Errorf("owner %x", stat.EphemeralOwner)
		}
	}
}

func testExpiryByTheServer(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s, withSession(shortSession))
	other := dial(t, s.Addr())
	first := c.Session()
	if _, err := c.Create(c.ctx, "/e", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	other.watchExists("/e")
	proxy.Silence()
	c.awaitState(zkutil.PresumedLost)
	other.nextWatch() // the server has given the session up
	proxy.Cut()
	proxy.Heal()
	expired := c.awaitState(zkutil.Expired)
	if expired.Epoch != first.Epoch || expired.ID != first.ID {
		t.Errorf("expired %+v, was %+v", expired, first)
	}
	fresh := c.awaitState(zkutil.Connected)
	if fresh.Epoch != first.Epoch+1 || fresh.ID == first.ID {
		t.Errorf("new session %+v, old %+v", fresh, first)
	}
	c.create("/works", "")
}

// testPresumedLostFirst: a client that is cut off knows that it can no longer trust its session before the
// server gives the ephemeral nodes away.
func testPresumedLostFirst(t *testing.T, s Server) {
	// Two timers race here by design; a third of the session timeout lies between them.
	c, proxy := throughProxy(t, s, withSession(6*time.Second))
	other := dial(t, s.Addr())
	if _, err := c.Create(c.ctx, "/owner", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	other.watchExists("/owner")
	proxy.Silence()
	if ev := other.nextWatch(); ev != event(zkop.NodeDeleted, "/owner") {
		t.Fatalf("event %v", ev)
	}
	if st := c.Session().State; st != zkutil.PresumedLost {
		t.Errorf("the node is gone, and the client holds its session to be %v", st)
	}
}

func testPresumptionTakenBack(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s, withSession(6*time.Second))
	before := c.Session()
	proxy.Silence()
	c.awaitState(zkutil.PresumedLost)
	proxy.Heal()
	after := c.awaitState(zkutil.Connected)
	if after.ID != before.ID || after.Epoch != before.Epoch {
		t.Errorf("session %+v became %+v", before, after)
	}
}

func testOldEpochIsRefused(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s, withSession(shortSession))
	old := zkutil.Within(c.Client, c.Session().Epoch)
	if _, err := old.Create(c.ctx, "/mine", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	proxy.Silence()
	// A write of the old session that is under way while the session dies must not run in the next one.
	done := make(chan error, 1)
	go func() {
		_, err := old.Create(c.ctx, "/late", nil, zkop.Persistent)
		done <- err
	}()
	other := dial(t, s.Addr())
	other.watchExists("/mine")
	if ev := other.nextWatch(); ev.Type != zkop.NodeDeleted {
		t.Fatalf("event %v", ev)
	}
	proxy.Cut()
	proxy.Heal()
	for c.awaitState(zkutil.Connected).Epoch == 1 {
		continue
	}
	err := <-done
	if !errors.Is(err, zkop.ErrOutcomeUnknown) && !errors.Is(err, zkop.ErrSessionExpired) {
		t.Errorf("the write under way ended in %v", err)
	}
	_, err = old.Create(c.ctx, "/later", nil, zkop.Persistent)
	wantErr(t, err, zkop.ErrSessionExpired)
	for _, path := range []string{"/late", "/later"} {
		if _, ok, err := other.Exists(other.ctx, path); ok || err != nil {
			t.Errorf("%s was written by a session that is over (%v)", path, err)
		}
	}
	fresh := zkutil.Within(c.Client, c.Session().Epoch)
	if _, err := fresh.Create(c.ctx, "/mine", nil, zkop.Ephemeral); err != nil {
		t.Error(err)
	}
}

func testWatchesRearmed(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	other := dial(t, s.Addr())
	other.create("/d", "")
	other.create("/p", "")
	c.watchData("/d")
	c.watchExists("/x")
	c.watchChildren("/p")
	proxy.Cut()
	c.awaitState(zkutil.Connected)
	c.get("/d") // the connection works; its watches are set before or just after
	eventually(t, "watches set again", func() bool {
		other.set("/d", "1")
		select {
		case n := <-c.feed:
			return n.Watch != nil && *n.Watch == event(zkop.NodeDataChanged, "/d")
		default:
			return false
		}
	})
	other.create("/x", "")
	if ev := c.nextWatch(); ev != event(zkop.NodeCreated, "/x") {
		t.Errorf("event %v", ev)
	}
	other.create("/p/c", "")
	if ev := c.nextWatch(); ev != event(zkop.NodeChildrenChanged, "/p") {
		t.Errorf("event %v", ev)
	}
}

func testMissedChangesAreTold(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	other := dial(t, s.Addr())
	for _, p := range []string{"/changed", "/deleted", "/parent", "/quiet"} {
		other.create(p, "")
		c.watchData(p)
	}
	c.watchChildren("/parent")
	c.watchExists("/created")
	c.watchExists("/never")
	proxy.Refuse()
	c.awaitState(zkutil.Suspended)
	other.set("/changed", "x")
	other.remove("/deleted")
	other.create("/parent/child", "")
	other.create("/created", "")
	proxy.Heal()
	want := map[zkop.Event]bool{
		event(zkop.NodeDataChanged, "/changed"): true, event(zkop.NodeDeleted, "/deleted"): true,
		event(zkop.NodeChildrenChanged, "/parent"): true, event(zkop.NodeCreated, "/created"): true,
	}
	for len(want) > 0 {
		ev := c.nextWatch()
		if !want[ev] {
			t.Fatalf("unexpected event %v; still open: %v", ev, want)
		}
		delete(want, ev)
	}
	// Those that saw nothing are still there.
	other.set("/quiet", "x")
	if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/quiet") {
		t.Errorf("event %v", ev)
	}
	other.create("/never", "")
	if ev := c.nextWatch(); ev != event(zkop.NodeCreated, "/never") {
		t.Errorf("event %v", ev)
	}
}

func testCredentialsRepeated(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s, withAuth("dave:pw"))
	if _, err := c.CreateACL(c.ctx, "/mine", nil, zkop.Persistent, creatorOnly()); err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	c.awaitState(zkutil.Connected)
	c.set("/mine", "x")
}

// testIdleClient: pings alone keep the connection, also when the limit of the handshake was short.
func testIdleClient(t *testing.T, s Server) {
	quick := func(c *zkutil.Config) { c.ConnectTimeout = 1500 * time.Millisecond }
	c := dial(t, s.Addr(), withAuth("eve:pw"), withSession(8*time.Second), quick)
	idle := time.NewTimer(6 * time.Second) // longer than the client would take silence for a dead server
	defer idle.Stop()
	select {
	case n := <-c.feed:
		t.Errorf("notice %+v", n)
	case <-idle.C:
	}
	if _, _, err := c.Children(c.ctx, "/"); err != nil {
		t.Error(err)
	}
}

// testLostReply: the write was applied, its answer lost (KAFKA-1382). The client must not report a version
// conflict with itself.
func testLostReply(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	other := dial(t, s.Addr())
	c.create("/state", "0")
	other.watchData("/state")
	proxy.Mute()
	type result struct {
		stat zkop.Stat
		err  error
	}
	done := make(chan result, 1)
	go func() {
		stat, err := c.SetIfVersion(c.ctx, "/state", []byte("mine"), 0)
		done <- result{stat, err}
	}()
	if ev := other.nextWatch(); ev != event(zkop.NodeDataChanged, "/state") {
		t.Fatalf("event %v", ev)
	}
	proxy.Cut()
	proxy.Heal()
	r := <-done
	if r.err != nil || r.stat.Version != 1 {
		t.Errorf("stat %+v, %v", r.stat, r.err)
	}
	if data, stat := other.get("/state"); data != "mine" || stat.Version != 1 {
		t.Errorf("data %q, version %d: written twice?", data, stat.Version)
	}
}

func testLostReplyOvertaken(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	other := dial(t, s.Addr())
	c.create("/state", "0")
	proxy.Silence() // the write does not even reach the server
	done := make(chan error, 1)
	go func() {
		_, err := c.SetIfVersion(c.ctx, "/state", []byte("mine"), 0)
		done <- err
	}()
	eventually(t, "the write has been sent", proxy.Holds)
	other.set("/state", "theirs")
	proxy.Cut()
	proxy.Heal()
	wantErr(t, <-done, zkop.ErrBadVersion)
	if data, stat := other.get("/state"); data != "theirs" || stat.Version != 1 {
		t.Errorf("data %q, version %d", data, stat.Version)
	}
	// And when nobody else wrote, it is sent again.
	proxy.Refuse()
	go func() {
		_, err := c.SetIfVersion(c.ctx, "/state", []byte("mine"), 1)
		done <- err
	}()
	proxy.Heal()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func testEphemeralAtExpiry(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s, withSession(shortSession))
	other := dial(t, s.Addr())
	start := time.Now() // the session was in touch after this
	if _, err := c.Multi(c.ctx,
		zkop.Request{Kind: zkop.Create, Path: "/e1", Mode: zkop.Ephemeral},
		zkop.Request{Kind: zkop.Create, Path: "/keep"},
		zkop.Request{Kind: zkop.Create, Path: "/keep/e2", Mode: zkop.Ephemeral}); err != nil {
		t.Fatal(err)
	}
	other.watchExists("/e1")
	other.watchChildren("/keep")
	proxy.Silence()
	events := map[zkop.Event]bool{other.nextWatch(): true, other.nextWatch(): true}
	if !events[event(zkop.NodeDeleted, "/e1")] || !events[event(zkop.NodeChildrenChanged, "/keep")] {
		t.Errorf("events %v", events)
	}
	if d := time.Since(start); d < shortSession {
		t.Errorf("the session of %s expired after %s", shortSession, d)
	}
	if _, _, err := other.Get(other.ctx, "/keep"); err != nil {
		t.Error(err)
	}
}

// testQueuedNotRunAfterACut: what was queued behind a broken connection does not run on the next one, out
// of its order, without the caller knowing.
func testQueuedNotRunAfterACut(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	proxy.Silence()
	const n = 1200 // more than the window, so that some are not even sent
	reqs := make([]zkop.Request, n)
	for i := range reqs {
		reqs[i] = zkop.Request{Kind: zkop.Create, Path: fmt.Sprintf("/q%04d", i)}
	}
	done := make(chan []zkop.Response, 1)
	go func() { done <- c.Do(reqs...) }()
	eventually(t, "the first request has been sent", proxy.Holds)
	proxy.Cut()
	proxy.Heal()
	answers := <-done
	if err := c.Sync(c.ctx, "/"); err != nil {
		t.Fatal(err)
	}
	gap := false
	for i, r := range answers {
		_, ok, err := c.Exists(c.ctx, reqs[i].Path)
		switch {
		case err != nil:
			t.Fatal(err)
		case errors.Is(r.Err, zkutil.ErrNotSent) && ok:
			t.Fatalf("request %d was reported as not sent, and was applied", i)
		case r.Err == nil && !ok:
			t.Fatalf("request %d was acknowledged, and is not there", i)
		case ok && gap:
			t.Fatalf("request %d ran although one before it did not", i)
		}
		gap = gap || !ok
	}
	if !errors.Is(answers[n-1].Err, zkop.ErrOutcomeUnknown) {
		t.Errorf("the last request: %v", answers[n-1].Err)
	}
}

func testReadsOutliveCuts(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	c.create("/r", "x")
	var reads atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			data, _, err := c.Get(c.ctx, "/r")
			if err != nil || string(data) != "x" {
				t.Errorf("data %q, %v", data, err)
				return
			}
			reads.Add(1)
		}
	}()
	for range 6 {
		before := reads.Load()
		eventually(t, "reads go on", func() bool { return reads.Load() > before+20 })
		proxy.Cut()
	}
	close(stop)
	<-ended
}

func testRestartedServer(t *testing.T, s Server) {
	r, ok := s.(Restarter)
	if !ok {
		t.Skip("the server cannot be restarted by the test")
	}
	c := dial(t, s.Addr(), withSession(20*time.Second))
	before := c.Session()
	if _, err := c.Create(c.ctx, "/e", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	c.create("/data", "kept")
	c.set("/data", "kept too")
	c.watchData("/data")
	r.Restart(t)
	if after := c.awaitState(zkutil.Connected); after.ID != before.ID || after.Epoch != before.Epoch {
		t.Errorf("session %+v became %+v", before, after)
	}
	if data, stat := c.get("/data"); data != "kept too" || stat.Version != 1 {
		t.Errorf("data %q, stat %+v", data, stat)
	}
	if _, stat := c.get("/e"); stat.EphemeralOwner != before.ID {
		t.Errorf("owner %x, session %x", stat.EphemeralOwner, before.ID)
	}
	other := dial(t, s.Addr())
	other.set("/data", "new")
	if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/data") {
		t.Errorf("event %v", ev)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := other.Exists(other.ctx, "/e"); ok || err != nil {
		t.Errorf("the ephemeral node outlived its session: %v", err)
	}
}

func testClosedClient(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	done := make(chan error, 1)
	blocked := dialBlocked(t, s, done)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	_, err := c.Create(c.ctx, "/x", nil, zkop.Persistent)
	wantErr(t, err, zkop.ErrClosed)
	if st := c.Session().State; st != zkutil.Closed {
		t.Errorf("state %v", st)
	}
	for n := range c.feed {
		if n.Watch == nil && n.Session.State != zkutil.Closed {
			t.Errorf("notice %+v", n)
		}
	}
	feed, cancel := c.Subscribe()
	if _, ok := <-feed; ok {
		t.Error("a feed of a closed client delivers")
	}
	cancel()
	if err := blocked.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, <-done, zkop.ErrClosed)
}

// testClosedWhileCallsStart: calls that begin at the moment of Close end, and so does Close.
func testClosedWhileCallsStart(t *testing.T, s Server) {
	for range 50 {
		c := dial(t, s.Addr())
		var callers sync.WaitGroup
		begun := make(chan struct{}, 4)
		for range cap(begun) {
			callers.Go(func() {
				_, _, err := c.Exists(c.ctx, "/x")
				for begun <- struct{}{}; err == nil; {
					_, _, err = c.Exists(c.ctx, "/x")
				}
			})
		}
		for range cap(begun) {
			<-begun
		}
		closed := make(chan struct{})
		go func() { defer close(closed); _ = c.Close(); callers.Wait() }()
		select {
		case <-closed:
		case <-c.ctx.Done():
			t.Fatal("Close or a call hangs")
		}
	}
}

// dialBlocked returns a client whose write hangs in a silent connection.
func dialBlocked(t *testing.T, s Server, done chan<- error) *client {
	c, proxy := throughProxy(t, s)
	proxy.Silence()
	go func() {
		_, err := c.Create(c.ctx, "/hangs", nil, zkop.Persistent)
		done <- err
	}()
	eventually(t, "the write has been sent", proxy.Holds)
	return c
}

func testFeedOutlivesManySessions(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s, withSession(shortSession))
	other := dial(t, s.Addr())
	for want := uint64(2); want < 4; want++ {
		path := fmt.Sprint("/e", want)
		if _, err := c.Create(c.ctx, path, nil, zkop.Ephemeral); err != nil {
			t.Fatal(err)
		}
		other.watchExists(path)
		proxy.Silence()
		other.nextWatch()
		proxy.Cut()
		proxy.Heal()
		for {
			n := c.next()
			if n.Watch == nil && n.Session.State == zkutil.Connected && n.Session.Epoch == want {
				break
			}
			if n.Session.Epoch > want {
				t.Fatalf("notice %+v while waiting for session %d", n, want)
			}
		}
	}
	// Watches of an old session do not fire in the new one; those of the new one do.
	other.create("/w", "")
	c.watchData("/w")
	other.set("/w", "x")
	if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/w") {
		t.Errorf("event %v", ev)
	}
}
