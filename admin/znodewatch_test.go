package admin

import (
	"context"
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
		l.conns = append(l.conns, in, out)
		l.mu.Unlock()
		wg.Go(func() { _, _ = io.Copy(in, out); _ = in.Close(); _ = out.Close() })
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

// waitFor waits until the last event is the one wanted and returns all.
func (s *watchedZnodes) waitFor(last string) []string {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		var got []string
		for _, e := range s.all {
			got = append(got, eventText(e))
		}
		s.mu.Unlock()
		if len(got) > 0 && got[len(got)-1] == last {
			return got
		}
		select {
		case <-s.wake:
		case <-deadline:
			s.t.Fatalf("no %q after\n%s", last, strings.Join(got, "\n"))
		}
	}
}

// watchServer starts a server and a watch through a line that can be cut, with a session of 500 ms.
func watchServer(t *testing.T, opts ZnodeWatchOptions) (zkutil.Client, *cutLine, *watchedZnodes) {
	t.Helper()
	s, err := zkserver.Start(t.Context(), zkserver.Config{TickTime: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	hand, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: s.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hand.Close() })
	line := newCutLine(t, s.Addr())
	seen := &watchedZnodes{t: t, wake: make(chan struct{}, 1)}
	c, err := Open(t.Context(), Config{
		Timeout: 2 * time.Second, ZooKeeper: ZooKeeperAddress{Servers: []string{line.ln.Addr().String()}},
		ConnectZooKeeper: func(ctx context.Context, a ZooKeeperAddress, _ time.Duration, _ *slog.Logger) (zkutil.Client, error) {
			return zkutil.Connect(ctx, zkutil.Config{Connect: a.Servers[0], SessionTimeout: 500 * time.Millisecond})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	armed, ended := make(chan struct{}), make(chan error, 1)
	opts.Armed = func(int) { close(armed) }
	opts.Gap = func(why string) { seen.mu.Lock(); seen.gaps = append(seen.gaps, why); seen.mu.Unlock() }
	opts.Changed = func(e ZnodeEvent) error {
		seen.mu.Lock()
		seen.all = append(seen.all, e)
		seen.mu.Unlock()
		select {
		case seen.wake <- struct{}{}:
		default:
		}
		return nil
	}
	go func() { ended <- c.WatchZnodes(ctx, opts) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ended with %v", err)
		}
		_ = c.Close()
	})
	select {
	case <-armed:
	case err := <-ended:
		ended <- err
		t.Fatalf("the watch did not begin: %v", err)
	}
	return hand, line, seen
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
	c, _, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/a"}})
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
	c, _, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/"}, Recursive: true})
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
	c, line, seen := watchServer(t, ZnodeWatchOptions{Paths: []string{"/w"}, Recursive: true})
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
		if round%3 == 2 { // longer than the session lives
			gone := time.Now().Add(900 * time.Millisecond)
			for time.Now().Before(gone) {
				random()
			}
		}
		line.set(false)
		mark := fmt.Sprintf("/w/mark%d", round)
		do(t, c, creates(mark, ""))
		seen.waitFor("created " + mark + "=")
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if diff := cmp.Diff(treeOf(t, c, "/w"), replayed(t, seen.all)); diff != "" {
		t.Errorf("the tree, and what the events make of it: %s", diff)
	}
	for _, want := range []string{"the connection to ZooKeeper was lost", "the session expired"} {
		if !slices.ContainsFunc(seen.gaps, func(g string) bool { return strings.HasPrefix(g, want) }) {
			t.Errorf("no gap %q: %q", want, seen.gaps)
		}
	}
}

// replayed applies events to an empty tree; a node must come after its parent and go before it.
func replayed(t *testing.T, events []ZnodeEvent) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range events {
		_, had := out[e.Path]
		switch e.Event {
		case ZnodeCreated:
			if _, ok := out[path.Dir(e.Path)]; had || !ok && e.Path != "/w" {
				t.Errorf("%s: had %v, parent %v", eventText(e), had, ok)
			}
			out[e.Path] = string(e.Znode.Data)
		case ZnodeChanged:
			if !had {
				t.Errorf("%s: it was not there", eventText(e))
			}
			out[e.Path] = string(e.Znode.Data)
		case ZnodeDeleted:
			if !had || slices.ContainsFunc(slices.Collect(maps.Keys(out)), func(p string) bool { return path.Dir(p) == e.Path }) {
				t.Errorf("%s: had %v", eventText(e), had)
			}
			delete(out, e.Path)
		}
	}
	return out
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
