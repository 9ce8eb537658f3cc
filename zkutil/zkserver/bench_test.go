package zkserver

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkGet is the round trip of one read on loopback.
func BenchmarkGet(b *testing.B) {
	s := startServer(b, Config{})
	c := startRaw(b, s.Addr(), long)
	_ = c.nc.SetDeadline(time.Time{})
	c.call(opCreate, bodyCreate("/x", make([]byte, 100), 0), 0)
	body := bodyPath("/x", false)
	b.ReportAllocs()
	for b.Loop() {
		c.call(opGetData, body, 0)
	}
}

// BenchmarkGetPipelined is the cost of a read when 100 are under way.
func BenchmarkGetPipelined(b *testing.B) {
	s := startServer(b, Config{})
	c := startRaw(b, s.Addr(), long)
	_ = c.nc.SetDeadline(time.Time{})
	c.call(opCreate, bodyCreate("/x", make([]byte, 100), 0), 0)
	body := bodyPath("/x", false)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		c.send(opGetData, body)
		if n >= 100 {
			if _, err := c.receive(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCreate is the cost of a durable create with that many clients; each waits for its reply.
func BenchmarkCreate(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		for _, clients := range []int{1, 64} {
			b.Run(fmt.Sprintf("fsync=%v/clients=%d", fsync, clients), func(b *testing.B) {
				s := startServer(b, Config{DataDir: b.TempDir(), Fsync: fsync, SnapshotEvery: 1 << 30})
				var next atomic.Int64
				var wg sync.WaitGroup
				conns := make([]*rawClient, clients)
				for i := range conns {
					conns[i] = startRaw(b, s.Addr(), long)
					_ = conns[i].nc.SetDeadline(time.Time{})
				}
				b.ResetTimer()
				for _, c := range conns {
					wg.Go(func() {
						for {
							n := next.Add(1)
							if n > int64(b.N) {
								return
							}
							c.call(opCreate, bodyCreate(fmt.Sprintf("/n%d", n), make([]byte, 100), 0), 0)
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
