package zktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

// Server is a running ZooKeeper, empty or not: every test works below a chroot of its own.
type Server interface {
	// Addr is host:port, or several with commas in between.
	Addr() string
}

// Restarter is a Server that can be stopped hard and started again on the same address and data.
type Restarter interface {
	Server
	Restart(t testing.TB)
}

// limit bounds every wait of the suite. A test that runs into it has failed.
const limit = time.Minute

// shortSession is the session timeout of tests that wait for expiry; servers must allow it. Until they cut it off, a client
// on a slow machine must keep its session: its heartbeats may be two thirds of this late.
const shortSession = 3 * time.Second

// Run runs the contract. newServer is called once for each group of tests and ends its server with the t
// that it is given.
func Run(t *testing.T, newServer func(t testing.TB) Server) {
	groups := []struct {
		name  string
		tests map[string]func(*testing.T, Server)
	}{
		{"Nodes", nodeTests}, {"Watches", watchTests}, {"Multi", multiTests},
		{"Sessions", sessionTests}, {"Client", clientTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			s := newServer(t)
			for name, test := range g.tests {
				t.Run(name, func(t *testing.T) {
					if name != restarted {
						t.Parallel() // each below its own chroot; those that restart the server come first, alone
					}
					test(t, s)
				})
			}
		})
	}
}

// restarted is the test that takes the server away from all others.
const restarted = "RestartedServer"

// testContext ends with the test, and after limit.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// client is a connection of one test with its feed.
type client struct {
	zkutil.Client
	zkutil.Ops
	t    testing.TB
	ctx  context.Context
	feed <-chan zkutil.Notice
}

// Do is that of the client: Ops has one too.
func (c *client) Do(reqs ...zkop.Request) []zkop.Response {
	return c.Client.Do(c.ctx, zkutil.AnySession, reqs...)
}

type option func(*zkutil.Config)

func withSession(d time.Duration) option { return func(c *zkutil.Config) { c.SessionTimeout = d } }
func withAuth(user string) option {
	return func(c *zkutil.Config) {
		c.Auth = append(c.Auth, zkutil.Auth{Scheme: "digest", Credential: []byte(user)})
	}
}

// chrootOf names a test's own part of the tree.
func chrootOf(t testing.TB) string {
	out := []byte("/t")
	for _, c := range []byte(t.Name()) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			out = append(out, c)
		}
	}
	return string(out)
}

// dial connects below the test's chroot.
func dial(t testing.TB, addr string, opts ...option) *client {
	t.Helper()
	cfg := zkutil.Config{Connect: addr + chrootOf(t), CreateChroot: true, SessionTimeout: 30 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, o := range opts {
		o(&cfg)
	}
	ctx := testContext(t)
	c, err := zkutil.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	feed, cancel := c.Subscribe()
	t.Cleanup(func() {
		cancel()
		_ = c.Close()
	})
	return &client{Client: c, Ops: zkutil.Any(c), t: t, ctx: ctx, feed: feed}
}

func (c *client) create(path, data string) {
	c.t.Helper()
	if _, err := c.Create(c.ctx, path, []byte(data), zkop.Persistent); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) set(path, data string) zkop.Stat {
	c.t.Helper()
	stat, err := c.Set(c.ctx, path, []byte(data), zkop.AnyVersion)
	if err != nil {
		c.t.Fatal(err)
	}
	return stat
}

func (c *client) remove(path string) {
	c.t.Helper()
	if err := c.Delete(c.ctx, path, zkop.AnyVersion); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) get(path string) (string, zkop.Stat) {
	c.t.Helper()
	data, stat, err := c.Get(c.ctx, path)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(data), stat
}

// nextWatch is the next watch event of the feed; session changes are passed over.
func (c *client) nextWatch() zkop.Event {
	c.t.Helper()
	for {
		if n := c.next(); n.Watch != nil {
			return *n.Watch
		}
	}
}

func (c *client) next() zkutil.Notice {
	c.t.Helper()
	select {
	case n, ok := <-c.feed:
		if !ok {
			c.t.Fatal("the feed has ended")
		}
		return n
	case <-c.ctx.Done():
		c.t.Fatal("nothing came through the feed")
	}
	return zkutil.Notice{}
}

// awaitState reads the feed until the session is in a state.
func (c *client) awaitState(want zkutil.SessionState) zkutil.Session {
	c.t.Helper()
	for {
		if n := c.next(); n.Watch == nil && n.Session.State == want {
			return n.Session
		}
	}
}

// wantWatches checks that exactly these events come, in order, before the marker node's own.
func (c *client) wantWatches(want ...zkop.Event) {
	c.t.Helper()
	const marker = "/marker"
	if _, _, err := c.ExistsWatch(c.ctx, marker); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Create(c.ctx, marker, nil, zkop.Persistent); err != nil {
		c.t.Fatal(err)
	}
	var got []zkop.Event
	for {
		ev := c.nextWatch()
		if ev == (zkop.Event{Type: zkop.NodeCreated, Path: marker}) {
			break
		}
		got = append(got, ev)
	}
	c.remove(marker)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.t.Errorf("watch events %v, want %v", got, want)
	}
}

// eventually polls an observed condition.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
