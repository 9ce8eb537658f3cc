package zkserver

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// startServer runs a server until the end of the test.
func startServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	if testing.Verbose() && cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// connect returns a client with a live session.
func connect(t testing.TB, addr string, timeout time.Duration) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	awaitState(t, events, zk.StateHasSession)
	return c
}

func awaitState(t testing.TB, events <-chan zk.Event, want zk.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case ev := <-events:
			if ev.State == want {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no %v within %s", want, patience)
		}
	}
}

var open = zk.WorldACL(zk.PermAll)

func TestBasic(t *testing.T) {
	s := startServer(t, Config{DataDir: t.TempDir(), Fsync: true})
	c := connect(t, s.Addr(), 10*time.Second)
	if p, err := c.Create("/a", []byte("x"), 0, open); err != nil || p != "/a" {
		t.Fatal(p, err)
	}
	if _, err := c.Create("/a", nil, 0, open); err != zk.ErrNodeExists {
		t.Fatal(err)
	}
	d, st, w, err := c.GetW("/a")
	if err != nil || string(d) != "x" || st.Version != 0 {
		t.Fatal(d, st, err)
	}
	if _, err := c.Set("/a", []byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	if ev := <-w; ev.Type != zk.EventNodeDataChanged {
		t.Fatal(ev)
	}
	for i := range 3 {
		p, err := c.Create("/a/s-", nil, zk.FlagSequence|zk.FlagEphemeral, open)
		t.Log(i, p, err)
	}
	kids, st, err := c.Children("/a")
	t.Log(kids, st, err)
	res, err := c.Multi(&zk.CheckVersionRequest{Path: "/a", Version: 1}, &zk.CreateRequest{Path: "/b", Acl: open}, &zk.DeleteRequest{Path: "/zzz", Version: -1}, &zk.DeleteRequest{Path: "/b", Version: -1})
	t.Log(res, err)
	for _, r := range res {
		t.Log(r.Error)
	}
}
