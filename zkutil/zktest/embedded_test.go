package zktest_test

import (
	"context"
	"testing"
	"time"

	"kctl/zkutil/zkserver"
	"kctl/zkutil/zktest"
)

// TestEmbeddedInMemory runs the contract on the embedded server without a data directory; its own package
// runs it on the durable one.
func TestEmbeddedInMemory(t *testing.T) {
	zktest.Run(t, func(t testing.TB) zktest.Server {
		s, err := zkserver.Start(context.WithoutCancel(t.Context()), zkserver.Config{
			TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
