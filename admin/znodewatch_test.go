package admin

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
)

// cutLine forwards connections to a server until it is cut; while it is down new ones are refused.
type cutLine struct {
	ln     net.Listener
	server string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
	hello []byte // the server's answer to the newest client: its session and that one's password
}

func newCutLine(t *testing.T, server string) *cutLine {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &cutLine{ln: ln, server: server}
	var wg sync.WaitGroup
	wg.Go(func() { l.serve(&wg) })
	t.Cleanup(func() { _ = ln.Close(); l.set(true); wg.Wait() })
	return l
}

func (l *cutLine) serve(wg *sync.WaitGroup) {
	for {
		in, err := l.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", l.server)
		l.mu.Lock()
		if l.down || err != nil {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			l.mu.Unlock()
			continue
		}
		l.conns, l.hello = append(l.conns, in, out), nil
		l.mu.Unlock()
		wg.Go(func() { _, _ = io.Copy(in, io.TeeReader(out, l)); _ = in.Close(); _ = out.Close() })
		wg.Go(func() { _, _ = io.Copy(out, in); _ = in.Close(); _ = out.Close() })
	}
}

// set takes the line down, which ends what runs over it, or up.
func (l *cutLine) set(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down = down; down {
		for _, c := range l.conns {
			_ = c.Close()
		}
		l.conns = nil
	}
}

// helloSize is the length of an answer to a connection: its length, version, timeout, session, password with its length, read-only.
const helloSize = 4 + 4 + 4 + 8 + 4 + 16 + 1

// Write sees what the server says.
func (l *cutLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hello = append(l.hello, p[:min(len(p), helloSize-len(l.hello))]...)
	return len(p), nil
}

// expire ends the client's session while the line is down: over a connection of its own, with the session's password. To
// the client it is as if its session had run out, whatever the clocks say.
func (l *cutLine) expire(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	hello := slices.Clone(l.hello)
	l.mu.Unlock()
	if len(hello) < helloSize {
		t.Fatalf("the server's answer has %d bytes", len(hello))
	}
	conn, err := net.Dial("tcp", l.server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	again := slices.Concat(make([]byte, 12), hello[8:helloSize]) // version, last zxid; then as the server has said it
	frame := func(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	closeSession := []byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5} // xid 1, closeSession (-11)
	if _, err := conn.Write(slices.Concat(frame(again), frame(closeSession))); err != nil {
		t.Fatal(err)
	}
	answers := make([]byte, helloSize+20)
	if _, err := io.ReadFull(conn, answers); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(answers[12:20], hello[12:20]) || binary.BigEndian.Uint32(answers[helloSize+16:]) != 0 {
		t.Fatalf("the session was not ended: % x", answers)
	}
}

// watched is a running watch and what it has reported.
type watchedZnodes struct {
	t    *testing.T
	mu   sync.Mutex
	all  []ZnodeEvent
	gaps []string
	wake chan struct{}
}

func eventText(e ZnodeEvent) string {
	s := e.Event + " " + e.Path
	if e.Znode != nil && e.Event != ZnodeChildren {
		s += "=" + string(e.Znode.Data)
	}
	for _, a := range e.Added {
		s += " +" + a
	}
	for _, r := range e.Removed {
		s += " -" + r
	}
	if e.Skipped > 0 {
		s += fmt.Sprintf(" ~%d", e.Skipped)
	}
	return s
}

// until waits until what was reported is as wanted.
func (s *watchedZnodes) until(what string, ok func(all []ZnodeEvent) bool) {
	s.t.Helper()
	deadline := time.After(time.Minute)
	for {
		s.mu.Lock()
		all := slices.Clone(s.all)
		s.mu.Unlock()
		if ok(all) {
			return
		}
		select {
		case <-s.wake:
		case <-deadline:
			s.t.Fatalf("no %s after\n%s", what, strings.Join(eventTexts(all), "\n"))
		}
	}
}

func eventTexts(events []ZnodeEvent) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = eventText(e)
	}
	return out
}

// waitFor waits until the last event is the one wanted and returns all.
func (s *watchedZnodes) waitFor(last string) (got []string) {
	s.t.Helper()
	s.until(last, func(all []ZnodeEvent) bool {
		got = eventTexts(all)
		return len(got) > 0 && got[len(got)-1] == last
	})
	return got
}

// interposed hands requests to ZooKeeper one by one, in the order of their list, and lets a test act before each.
type interposed struct {
	zkutil.Client
	before func(zkop.Request)
}

func (c *interposed) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	var out []zkop.Response
	for _, r := range reqs {
		c.before(r)
		out = append(out, c.Client.Do(ctx, session, r)...)
	}
	return out
}

// watchServer starts a server and a watch through a line that can be cut. before may be nil. No time is short: a machine that
// stands still for a while loses no session.
func watchServer(t *testing.T, opts ZnodeWatchOptions, before func(zkop.Request)) (zkutil.Client, *cutLine, *watchedZnodes) {
	t.Helper()
	s, err := zkserver.Start(t.Context(), zkserver.Config{TickTime: 50 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	hand, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: s.Addr(), SessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hand.Close() })
	line := newCutLine(t, s.Addr())
	seen := &watchedZnodes{t: t, wake: make(chan struct{}, 1)}
	c, err := Open(t.Context(), Config{
		Timeout: time.Minute, ZooKeeper: ZooKeeperAddress{Servers: []string{line.ln.Addr().String()}},
		ConnectZooKeeper: func(ctx context.Context, a ZooKeeperAddress, _ time.Duration, _ *slog.Logger) (zkutil.Client, error) {
			zk, err := zkutil.Connect(ctx, zkutil.Config{Connect: a.Servers[0], SessionTimeout: time.Minute, ConnectTimeout: time.Minute})
			if err != nil || before == nil {
				return zk, err
			}
			return &interposed{zk, before}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen.start(c, opts)
	return hand, line, seen
}

// start begins the watch; it ends with the test.
func (s *watchedZnodes) start(c *Client, opts ZnodeWatchOptions) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	armed, ended := make(chan struct{}), make(chan error, 1)
	opts.Armed = func(int) { close(armed) }
	opts.Gap = func(why string) { s.mu.Lock(); s.gaps = append(s.gaps, why); s.mu.Unlock() }
	opts.Changed = func(e ZnodeEvent) error {
		s.mu.Lock()
		s.all = append(s.all, e)
		s.mu.Unlock()
		select {
		case s.wake <- struct{}{}:
		default:
		}
		return nil
	}
	go func() { ended <- c.WatchZnodes(ctx, opts) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Errorf("the watch ended with %v", err)
		}
		_ = c.Close()
	})
	select {
	case <-armed:
	case err := <-ended:
		ended <- nil
		s.t.Fatalf("the watch did not begin: %v", err)
	}
}

// do makes one change; the watch is awaited before the next where what is wanted says so.
func do(t *testing.T, c zkutil.Client, reqs ...zkop.Request) {
	t.Helper()
	for _, r := range c.Do(t.Context(), zkutil.AnySession, reqs...) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

func creates(p, data string) zkop.Request {
	return zkop.Request{Kind: zkop.Create, Path: p, Data: []byte(data)}
}

func sets(p, data string) zkop.Request {
	return zkop.Request{Kind: zkop.Set, Path: p, Data: []byte(data), Version: zkop.AnyVersion}
}

func deletes(p string) zkop.Request {
	return zkop.Request{Kind: zkop.Delete, Path: p, Version: zkop.AnyVersion}
}

// TestWatchZnodes: a named node that does not exist yet, its data, its children and its end.
func TestWatchZnodes(t *testing.T) {
	c, _, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/a"}}, nil)
	do(t, c, creates("/a", "1"))
	seen.waitFor("created /a=1")
	do(t, c, sets("/a", "2"))
	seen.waitFor("changed /a=2")
	do(t, c, creates("/a/x", ""))
	seen.waitFor("children /a +x")
	do(t, c, sets("/a/x", "not watched"), deletes("/a/x"))
	seen.waitFor("children /a -x")
	do(t, c, deletes("/a"))
	seen.waitFor("deleted /a")
	do(t, c, creates("/a", "again"))
	got := seen.waitFor("created /a=again")
	if len(got) != 6 {
		t.Errorf("events: %q", got)
	}
	do(t, c, zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{sets("/a", "3"), sets("/a", "4"), creates("/a/gone", ""), deletes("/a/gone")}})
	got = seen.waitFor("children /a ~2")
	if !slices.Contains(got, "changed /a=4 ~1") {
		t.Errorf("events: %q", got)
	}
}

// TestWatchZnodesBelow: a subtree, with children of children made at once, and deletion from below.
func TestWatchZnodesBelow(t *testing.T) {
	c, _, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/"}, Recursive: true}, nil)
	do(t, c, zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{creates("/a", ""), creates("/a/b", ""), creates("/a/b/c", "1")}})
	seen.waitFor("created /a/b/c=1")
	do(t, c, zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{deletes("/a/b/c"), deletes("/a/b")}})
	seen.waitFor("deleted /a/b")
	do(t, c, zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{creates("/a/s", ""), deletes("/a/s")}})
	got := seen.waitFor("children /a ~2")
	want := []string{"created /a=", "created /a/b=", "created /a/b/c=1", "deleted /a/b/c", "deleted /a/b", "children /a ~2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWatchZnodesOverGaps: while connections are cut and sessions expire, random changes of a subtree are reported so that
// whoever follows the events alone ends with the tree as it is.
func TestWatchZnodesOverGaps(t *testing.T) {
	c, line, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/w"}, Recursive: true}, nil)
	do(t, c, creates("/w", ""))
	rnd := rand.New(rand.NewPCG(7, 11))
	random := func() {
		p := fmt.Sprintf("/w/%d", rnd.IntN(4))
		if rnd.IntN(2) == 0 {
			p += fmt.Sprintf("/%d", rnd.IntN(3))
		}
		r := []zkop.Request{creates(p, "new"), sets(p, fmt.Sprint(rnd.IntN(1000))), deletes(p)}[rnd.IntN(3)]
		_ = c.Do(t.Context(), zkutil.AnySession, r) // half of them meet no node, or one that is there
	}
	for round := range 6 {
		for range 40 {
			random()
		}
		line.set(true)
		for range 20 {
			random()
		}
		if round%3 == 2 {
			line.expire(t)
			for range 20 {
				random()
			}
		}
		line.set(false)
		mark := fmt.Sprintf("/w/mark%d", round)
		do(t, c, creates(mark, ""))
		seen.until(mark, func(all []ZnodeEvent) bool {
			return slices.ContainsFunc(all, func(e ZnodeEvent) bool { return e.Event == ZnodeCreated && e.Path == mark })
		})
	}
	seen.follow(treeOf(t, c, "/w"))
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, want := range []string{"the connection to ZooKeeper was lost", "the session expired"} {
		if !slices.ContainsFunc(seen.gaps, func(g string) bool { return strings.HasPrefix(g, want) }) {
			t.Errorf("no gap %q: %q", want, seen.gaps)
		}
	}
}

// follow waits until the events make the tree, which does not change any more, and finds them in a possible order.
func (s *watchedZnodes) follow(tree map[string]string) {
	s.t.Helper()
	var wrong []string
	s.until(fmt.Sprint(tree), func(all []ZnodeEvent) bool {
		var got map[string]string
		got, wrong = replayed(all)
		return maps.Equal(got, tree)
	})
	for _, w := range wrong {
		s.t.Error(w)
	}
}

// TestWatchZnodesOfATornReading: a node and its child go and come back while they are being read: the child is read anew,
// its parent, read before, is still the old one. The events are those of a tree all the same.
func TestWatchZnodesOfATornReading(t *testing.T) {
	for name, parentFirst := range map[string]bool{"parent is not read": false, "parent is read before": true} {
		t.Run(name, func(t *testing.T) {
			var act atomic.Pointer[func()]
			c, _, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/w"}, Recursive: true}, func(r zkop.Request) {
				if r.Path == "/w/n/child" && r.Kind == zkop.Exists {
					if fn := act.Swap(nil); fn != nil {
						(*fn)()
					}
				}
			})
			do(t, c, creates("/w", ""), creates("/w/n", "old"), creates("/w/n/child", "old"))
			seen.waitFor("created /w/n/child=old")
			anew := func() {
				do(t, c, deletes("/w/n/child"), deletes("/w/n"), creates("/w/n", "new"), creates("/w/n/child", "new"))
			}
			act.Store(&anew)
			touch := []zkop.Request{sets("/w/n/child", "touched")} // the notice makes the watch read the child
			if parentFirst {
				touch = append([]zkop.Request{sets("/w/n", "touched")}, touch...)
			}
			do(t, c, zkop.Request{Kind: zkop.Multi, Ops: touch})
			seen.until("the new ones", func(all []ZnodeEvent) bool {
				got, _ := replayed(all)
				return got["/w/n"] == "new" && got["/w/n/child"] == "new"
			})
			seen.follow(treeOf(t, c, "/w"))
		})
	}
}

// TestOrderOfZnodeEvents: among events of which no better place is known, a child goes before its parent and comes after it,
// however they are mixed with others.
func TestOrderOfZnodeEvents(t *testing.T) {
	events := []ZnodeEvent{
		{Event: ZnodeDeleted, Path: "/w/3"}, {Event: ZnodeDeleted, Path: "/w/3/1"}, {Event: ZnodeDeleted, Path: "/w/5"},
		{Event: ZnodeCreated, Path: "/w/4", Znode: &Znode{Stat: zkop.Stat{Czxid: 9}}}, {Event: ZnodeCreated, Path: "/w/4/1", Znode: &Znode{Stat: zkop.Stat{Czxid: 9}}},
	}
	now := map[string]*Znode{"/w": {Stat: zkop.Stat{Pzxid: 9}}, "/w/3": nil, "/w/5": nil}
	want := []string{"deleted /w/5", "deleted /w/3/1", "deleted /w/3", "created /w/4=", "created /w/4/1="}
	for range 1000 {
		rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		from := eventTexts(events)
		if diff := cmp.Diff(want, eventTexts(inOrder(slices.Clone(events), now))); diff != "" {
			t.Fatalf("from %q: %s", from, diff)
		}
	}
}

// replayed applies events to an empty tree; a node must come after its parent and go before it.
func replayed(events []ZnodeEvent) (out map[string]string, wrong []string) {
	out = map[string]string{}
	for i, e := range events {
		_, had := out[e.Path]
		_, parent := out[path.Dir(e.Path)]
		ok := had
		switch e.Event {
		case ZnodeCreated:
			ok = !had && (parent || e.Path == "/w")
			out[e.Path] = string(e.Znode.Data)
		case ZnodeChanged:
			out[e.Path] = string(e.Znode.Data)
		case ZnodeDeleted:
			ok = had && !slices.ContainsFunc(slices.Collect(maps.Keys(out)), func(p string) bool { return path.Dir(p) == e.Path })
			delete(out, e.Path)
		}
		if !ok {
			wrong = append(wrong, fmt.Sprintf("event %d, %s, cannot be: its node was there %v, its parent %v", i, eventText(e), had, parent))
		}
	}
	return out, wrong
}

func treeOf(t *testing.T, c zkutil.Client, p string) map[string]string {
	t.Helper()
	rs := c.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: p}, zkop.Request{Kind: zkop.Children, Path: p})
	out := map[string]string{p: string(rs[0].Data)}
	for _, ch := range rs[1].Children {
		maps.Copy(out, treeOf(t, c, path.Join(p, ch)))
	}
	return out
}

// TestWatchZnodesFromFiles: files do not change.
func TestWatchZnodesFromFiles(t *testing.T) {
	cfg := Config{}
	if err := cfg.ReadFromDir(t.TempDir(), "", func(string) {}); err != nil {
		t.Fatal(err)
	}
	c, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WatchZnodes(t.Context(), ZnodeWatchOptions{Paths: []string{"/"}}); KindOf(err) != BadInput {
		t.Error(err)
	}
}
