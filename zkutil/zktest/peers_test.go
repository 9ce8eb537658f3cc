//go:build peers

package zktest_test

import (
	"context"
	"testing"
	"time"

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
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
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
