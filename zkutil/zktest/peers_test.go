//go:build peers

package zktest_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zktest"
	"kctl/zkutil/zktest/realzk"
)

// real is one server of a real cluster.
type real struct {
	cluster *realzk.Cluster
	index   int
}

func (r *real) Addr() string { return r.cluster.Addr(r.index) }

func (r *real) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.cluster.Restart(ctx, r.index); err != nil {
		t.Fatal(err)
	}
}

func startReal(t testing.TB, servers int) *realzk.Cluster {
	t.Helper()
	jars, err := realzk.JarsFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := realzk.Start(ctx, realzk.Options{Jars: jars, Dir: t.TempDir(), Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestRealZooKeeper(t *testing.T) {
	zktest.Run(t, func(t testing.TB) zktest.Server { return &real{startReal(t, 1), 0} })
}

func TestRealEnsemble(t *testing.T) {
	c := startReal(t, 3)
	// The suite talks to one member; which of them leads is up to the election.
	zktest.Run(t, func(testing.TB) zktest.Server { return &real{c, 0} })
}

func connectAll(t *testing.T, c *realzk.Cluster, timeout time.Duration) (zkutil.Client, zkutil.Ops, <-chan zkutil.Notice) {
	t.Helper()
	client, err := zkutil.Connect(t.Context(), zkutil.Config{
		Connect: c.ConnectString("/kc/prod"), CreateChroot: true, SessionTimeout: timeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	feed, cancel := client.Subscribe()
	t.Cleanup(func() {
		cancel()
		_ = client.Close()
	})
	return client, zkutil.Any(client), feed
}

// TestEnsembleFailover kills the leader of three servers under a client, twice: the session, its ephemeral
// node, its watches and every acknowledged write survive.
func TestEnsembleFailover(t *testing.T) {
	c := startReal(t, 3)
	client, ops, feed := connectAll(t, c, 20*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	session := client.Session()
	if _, err := ops.Create(ctx, "/owner", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	if _, err := ops.Create(ctx, "/n", []byte("0"), zkop.Persistent); err != nil {
		t.Fatal(err)
	}
	version := int32(0)
	for round := range 2 {
		if _, _, err := ops.GetWatch(ctx, "/n"); err != nil {
			t.Fatal(err)
		}
		leader := c.Leader()
		if leader < 0 {
			t.Fatal("the ensemble has no leader")
		}
		if err := c.Kill(leader); err != nil {
			t.Fatal(err)
		}
		// Conditional writes go on through the election; each settles its own lost answer.
		for range 20 {
			stat, err := ops.SetIfVersion(ctx, "/n", []byte(fmt.Sprint(version+1)), version)
			if err != nil || stat.Version != version+1 {
				t.Fatalf("round %d, write at version %d: %+v, %v", round, version, stat, err)
			}
			version++
		}
		for n := range feed {
			if n.Watch != nil {
				break
			}
		}
		if _, stat, err := ops.Get(ctx, "/owner"); err != nil || stat.EphemeralOwner != session.ID {
			t.Fatalf("round %d: owner %x, %v", round, stat.EphemeralOwner, err)
		}
		if now := client.Session(); now.ID != session.ID || now.Epoch != 1 {
			t.Fatalf("round %d: session %+v", round, now)
		}
		if err := c.Restart(ctx, leader); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPausedServer stops the server that the client is connected to with SIGSTOP: the client moves to
// another one within its session.
func TestPausedServer(t *testing.T) {
	c := startReal(t, 3)
	client, ops, _ := connectAll(t, c, 6*time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	session := client.Session()
	paused := -1
	for i := range c.Len() {
		if c.Serves(i, session.ID) {
			paused = i
		}
	}
	if paused < 0 {
		t.Fatal("no server has the client's connection")
	}
	if err := c.Signal(paused, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Signal(paused, syscall.SIGCONT) }()
	start := time.Now()
	if _, _, err := ops.Children(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	t.Logf("served again after %s", time.Since(start))
	if now := client.Session(); now.ID != session.ID {
		t.Errorf("session %+v became %+v", session, now)
	}
}

// TestInstall fills a folder by Maven and starts a server from it.
func TestInstall(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	if err := realzk.Install(ctx, dir); err != nil {
		t.Fatal(err)
	}
	c, err := realzk.Start(ctx, realzk.Options{Jars: dir, Dir: t.TempDir(), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if mode := c.Mode(0); mode != "standalone" {
		t.Errorf("mode %q", mode)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
