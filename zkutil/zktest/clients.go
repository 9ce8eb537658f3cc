package zktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

var clientTests = map[string]func(*testing.T, Server){
	"PipelinedInOrder":  testPipelinedInOrder,
	"OrderAcrossCalls":  testOrderAcrossCalls,
	"MixedPipeline":     testMixedPipeline,
	"ManyGoroutines":    testManyGoroutines,
	"Chroot":            testChroot,
	"MissingChroot":     testMissingChroot,
	"ContextEnds":       testContextEnds,
	"RefusedRequests":   testRefusedRequests,
	"ThousandsInOneDo":  testThousandsInOneDo,
	"EnsurePath":        testEnsurePath,
	"TwoFeeds":          testTwoFeeds,
	"DeadServerInAList": testDeadServerInAList,
}

// testPipelinedInOrder: 500 conditional writes of one node, each right only behind the one before.
func testPipelinedInOrder(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/n", "")
	const n = 500
	reqs := make([]zkop.Request, n)
	for i := range reqs {
		reqs[i] = zkop.Request{Kind: zkop.Set, Path: "/n", Data: []byte(fmt.Sprint(i)), Version: int32(i)}
	}
	for i, r := range c.Do(reqs...) {
		if r.Err != nil || r.Stat.Version != int32(i+1) {
			t.Fatalf("write %d: version %d, %v", i, r.Stat.Version, r.Err)
		}
	}
}

// testOrderAcrossCalls: a Do that was called after another one returned the turn runs behind it.
func testOrderAcrossCalls(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/n", "")
	version := int32(0)
	for range 50 {
		r := c.Do(
			zkop.Request{Kind: zkop.Set, Path: "/n", Version: version},
			zkop.Request{Kind: zkop.Set, Path: "/n", Version: version + 1})
		if r[0].Err != nil || r[1].Err != nil {
			t.Fatal(r[0].Err, r[1].Err)
		}
		version += 2
	}
}

// testMixedPipeline: reads see the writes before them and not those behind.
func testMixedPipeline(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/m", "")
	var reqs []zkop.Request
	for i := range 100 {
		reqs = append(reqs,
			zkop.Request{Kind: zkop.Set, Path: "/m", Data: []byte(fmt.Sprint(i)), Version: zkop.AnyVersion},
			zkop.Request{Kind: zkop.Get, Path: "/m"},
			zkop.Request{Kind: zkop.Exists, Path: "/m"},
			zkop.Request{Kind: zkop.Create, Path: fmt.Sprintf("/m/%03d", i)},
			zkop.Request{Kind: zkop.Children, Path: "/m"})
	}
	r := c.Do(reqs...)
	for i := range 100 {
		a := r[5*i : 5*i+5]
		for k, resp := range a {
			if resp.Err != nil {
				t.Fatalf("round %d, request %d: %v", i, k, resp.Err)
			}
		}
		if string(a[1].Data) != fmt.Sprint(i) || a[2].Stat.Version != int32(i+1) || len(a[4].Children) != i+1 {
			t.Fatalf("round %d: data %q, version %d, %d children", i, a[1].Data, a[2].Stat.Version, len(a[4].Children))
		}
	}
}

func testManyGoroutines(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	var all sync.WaitGroup
	for g := range 32 {
		all.Go(func() {
			parent := fmt.Sprintf("/g%02d", g)
			reqs := []zkop.Request{{Kind: zkop.Create, Path: parent}}
			for i := range 20 {
				reqs = append(reqs, zkop.Request{Kind: zkop.Create, Path: fmt.Sprintf("%s/%d", parent, i)})
			}
			for i, r := range c.Do(reqs...) {
				if r.Err != nil {
					t.Errorf("%s: %v", reqs[i].Path, r.Err)
				}
			}
			names, _, err := c.Children(c.ctx, parent)
			if err != nil || len(names) != 20 {
				t.Errorf("%s: %d children, %v", parent, len(names), err)
			}
		})
	}
	all.Wait()
}

func testChroot(t *testing.T, s Server) {
	outside := dial(t, s.Addr())
	outside.create("/kc", "")
	cfg := zkutil.Config{Connect: s.Addr() + chrootOf(t) + "/kc/"} // the trailing slash is dropped
	inner, err := zkutil.Connect(outside.ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	feed, cancel := inner.Subscribe()
	defer func() {
		cancel()
		_ = inner.Close()
	}()
	c := &client{Client: inner, Ops: zkutil.Any(inner), t: t, ctx: outside.ctx, feed: feed}
	c.create("/in", "x")
	if data, _ := outside.get("/kc/in"); data != "x" {
		t.Errorf("data %q", data)
	}
	names, _, err := c.Children(c.ctx, "/")
	if err != nil || len(names) != 1 || names[0] != "in" {
		t.Errorf("children of / are %v, %v", names, err)
	}
	path, err := c.Create(c.ctx, "/seq_", nil, zkop.PersistentSequential)
	if err != nil || path != "/seq_0000000001" {
		t.Errorf("created %q, %v", path, err)
	}
	c.watchData("/in")
	c.watchChildren("/")
	outside.set("/kc/in", "y")
	if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/in") {
		t.Errorf("event %v", ev)
	}
	outside.create("/kc/more", "")
	if ev := c.nextWatch(); ev != event(zkop.NodeChildrenChanged, "/") {
		t.Errorf("event %v", ev)
	}
	results, err := c.Multi(c.ctx, zkop.Request{Kind: zkop.Create, Path: "/multi"})
	if err != nil || results[0].Path != "/multi" {
		t.Errorf("%+v, %v", results, err)
	}
}

func testMissingChroot(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	cfg := zkutil.Config{Connect: s.Addr() + chrootOf(t) + "/not/there"}
	_, err := zkutil.Connect(c.ctx, cfg)
	wantErr(t, err, zkutil.ErrNoChroot)
	if _, ok, _ := c.Exists(c.ctx, "/not"); ok {
		t.Error("looking made the chroot")
	}
	cfg.CreateChroot = true
	made, err := zkutil.Connect(c.ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = made.Close() }()
	if _, ok, err := c.Exists(c.ctx, "/not/there"); !ok || err != nil {
		t.Errorf("the chroot was not made: %v", err)
	}
}

func testContextEnds(t *testing.T, s Server) {
	c, proxy := throughProxy(t, s)
	c.create("/n", "")
	proxy.Silence()
	short, cancel := context.WithTimeout(c.ctx, 2*time.Second) // enough to send both
	defer cancel()
	start := time.Now()
	r := c.Client.Do(short, zkutil.AnySession,
		zkop.Request{Kind: zkop.Set, Path: "/n", Version: 0}, zkop.Request{Kind: zkop.Get, Path: "/n"})
	for _, resp := range r {
		wantErr(t, resp.Err, zkop.ErrOutcomeUnknown)
		wantErr(t, resp.Err, context.DeadlineExceeded)
	}
	ended, stop := context.WithCancel(c.ctx)
	stop()
	resp := c.Client.Do(ended, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: "/n"})[0]
	wantErr(t, resp.Err, zkutil.ErrNotSent)
	if d := time.Since(start); d > limit/2 {
		t.Errorf("it took %s", d)
	}
	proxy.Heal()
	if _, stat := c.get("/n"); stat.Version > 1 {
		t.Errorf("version %d", stat.Version)
	}
}

func testRefusedRequests(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	r := c.Do(
		zkop.Request{Kind: zkop.Create, Path: "/ok"},
		zkop.Request{Path: "/kindless"},
		zkop.Request{Kind: zkop.Create, Path: "relative"},
		zkop.Request{Kind: zkop.Set, Path: "/ok", Data: make([]byte, 2<<20), Version: zkop.AnyVersion},
		zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{{Kind: zkop.Get, Path: "/ok"}}},
		zkop.Request{Kind: zkop.Exists, Path: "/ok"})
	for i, want := range []error{nil, zkop.ErrBadArguments, zkop.ErrBadArguments, zkop.ErrTooLarge, zkop.ErrBadArguments, nil} {
		if !errors.Is(r[i].Err, want) {
			t.Errorf("request %d: %v, want %v", i, r[i].Err, want)
		}
	}
	if r := c.Do(); len(r) != 0 {
		t.Errorf("no requests, %d responses", len(r))
	}
}

func testThousandsInOneDo(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/p", "")
	const n = 2000
	creates, sets := make([]zkop.Request, n), make([]zkop.Request, n)
	for i := range n {
		path := fmt.Sprintf("/p/%04d", i)
		creates[i] = zkop.Request{Kind: zkop.Create, Path: path, Data: []byte("0123456789012345678901234567890123456789")}
		sets[i] = zkop.Request{Kind: zkop.Set, Path: path, Data: []byte("x"), Version: 0}
	}
	for _, reqs := range [][]zkop.Request{creates, sets} {
		start := time.Now()
		for i, r := range c.Do(reqs...) {
			if r.Err != nil {
				t.Fatalf("%s: %v", reqs[i].Path, r.Err)
			}
		}
		t.Logf("%d operations in %s", n, time.Since(start))
	}
}

func testEnsurePath(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	for range 2 {
		if err := c.EnsurePath(c.ctx, "/a/b/c"); err != nil {
			t.Fatal(err)
		}
		if err := c.EnsurePaths(c.ctx, []string{"/a", "/a/d", "/a/d/e"}); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, c.EnsurePaths(c.ctx, []string{"/z/y"}), zkop.ErrNoNode)
	if names, _, err := c.Children(c.ctx, "/a"); err != nil || fmt.Sprint(names) != "[b d]" {
		t.Errorf("%v, %v", names, err)
	}
}

func testTwoFeeds(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	second, cancel := c.Subscribe()
	third, drop := c.Subscribe()
	drop()
	if _, ok := <-third; ok {
		t.Error("a cancelled feed delivered")
	}
	c.watchExists("/x")
	c.create("/x", "")
	want := event(zkop.NodeCreated, "/x")
	if ev := c.nextWatch(); ev != want {
		t.Errorf("event %v", ev)
	}
	select {
	case n := <-second:
		if n.Watch == nil || *n.Watch != want {
			t.Errorf("notice %+v", n)
		}
	case <-c.ctx.Done():
		t.Fatal("the second feed got nothing")
	}
	cancel()
	cancel() // twice is once
}

func testDeadServerInAList(t *testing.T, s Server) {
	dead := NewProxy(t, "127.0.0.1:1")
	dead.Refuse()
	silent := NewProxy(t, firstOf(s))
	silent.Silence()
	for range 3 {
		c := dial(t, dead.Addr()+","+s.Addr()+","+silent.Addr(), func(c *zkutil.Config) { c.ConnectTimeout = 3 * time.Second })
		if _, _, err := c.Children(c.ctx, "/"); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
