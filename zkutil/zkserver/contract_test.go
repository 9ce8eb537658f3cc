package zkserver_test

import (
	"context"
	"testing"
	"time"

	"kctl/zkutil/zkserver"
	"kctl/zkutil/zktest"
)

// contractServer is a durable server that the contract suite may restart.
type contractServer struct {
	cfg    zkserver.Config
	server *zkserver.Server
}

func (c *contractServer) Addr() string { return c.cfg.Addr }

func (c *contractServer) Restart(t testing.TB) {
	t.Helper()
	if err := c.server.Close(); err != nil {
		t.Fatal(err)
	}
	c.start(t)
}

func (c *contractServer) start(t testing.TB) {
	t.Helper()
	s, err := zkserver.Start(context.WithoutCancel(t.Context()), c.cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.server, c.cfg.Addr = s, s.Addr()
}

// TestContract runs the product's ZooKeeper contract with the log synced and snapshots all the time.
func TestContract(t *testing.T) {
	zktest.Run(t, func(t testing.TB) zktest.Server {
		c := &contractServer{cfg: zkserver.Config{
			DataDir: t.TempDir(), Addr: "127.0.0.1:0", Fsync: true, SnapshotEvery: 10,
			TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute,
		}}
		c.start(t)
		t.Cleanup(func() { _ = c.server.Close() })
		return c
	})
}
