package zktest_test

import (
	"context"
	"testing"
	"time"

	"kctl/zkutil/zkserver"
	"kctl/zkutil/zktest"
)

// embedded is zkutil/zkserver as a Server of the suite.
type embedded struct {
	cfg    zkserver.Config
	server *zkserver.Server
}

func (e *embedded) Addr() string { return e.cfg.Addr }

func (e *embedded) start(t testing.TB) {
	t.Helper()
	s, err := zkserver.Start(context.WithoutCancel(t.Context()), e.cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.server, e.cfg.Addr = s, s.Addr()
}

// Restart ends the server without ending its sessions, and opens its data again.
func (e *embedded) Restart(t testing.TB) {
	t.Helper()
	if err := e.server.Close(); err != nil {
		t.Fatal(err)
	}
	e.start(t)
}

func TestEmbedded(t *testing.T) {
	zktest.Run(t, func(t testing.TB) zktest.Server {
		e := &embedded{cfg: zkserver.Config{DataDir: t.TempDir(), Addr: "127.0.0.1:0", TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute}}
		e.start(t)
		t.Cleanup(func() { _ = e.server.Close() })
		return e
	})
}
