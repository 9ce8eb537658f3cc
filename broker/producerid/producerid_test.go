package producerid_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"kctl/broker/producerid"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

func connect(t *testing.T) zkutil.Client {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	server, err := zkserver.Start(ctx, zkserver.Config{DataDir: t.TempDir(), Addr: "127.0.0.1:0", TickTime: 200 * time.Millisecond, MaxSessionTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	zk, err := zkutil.Connect(ctx, zkutil.Config{Connect: server.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	return zk
}

func stored(t *testing.T, zk zkutil.Client) (string, int32) {
	t.Helper()
	data, stat, err := zkutil.Any(zk).Get(t.Context(), znode.ProducerIDBlockPath)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), stat.Version
}

// flaky loses answers of Sets as its plan says: it reports the outcome as unknown, having applied it or not.
type flaky struct {
	zkutil.Client
	mu    sync.Mutex
	plan  []string // for each Set: "ok", "applied" (then the answer is lost), "lost" (the request is), "raced"
	steal func()   // what another broker does before a raced Set
}

func (f *flaky) Do(ctx context.Context, session uint64, reqs ...zkop.Request) []zkop.Response {
	if reqs[0].Kind != zkop.Set {
		return f.Client.Do(ctx, session, reqs...)
	}
	f.mu.Lock()
	step := "ok"
	if len(f.plan) > 0 {
		step, f.plan = f.plan[0], f.plan[1:]
	}
	f.mu.Unlock()
	switch step {
	case "applied":
		f.Client.Do(ctx, session, reqs...)
		return []zkop.Response{{Err: zkop.ErrOutcomeUnknown}}
	case "lost":
		return []zkop.Response{{Err: zkop.ErrOutcomeUnknown}}
	case "raced":
		f.steal()
	}
	return f.Client.Do(ctx, session, reqs...)
}

func next(t *testing.T, a *producerid.Allocator) int64 {
	t.Helper()
	id, err := a.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestBytesInZooKeeper: what is written is what Apache Kafka writes, to the byte.
func TestBytesInZooKeeper(t *testing.T) {
	zk := connect(t)
	a := producerid.New(zk, 1)
	for want := range int64(1001) {
		if id := next(t, a); id != want {
			t.Fatalf("id %d, want %d", id, want)
		}
		if want == 0 {
			if data, _ := stored(t, zk); data != `{"version":1,"broker":1,"block_start":"0","block_end":"999"}` {
				t.Fatalf("first block: %s", data)
			}
		}
	}
	if data, version := stored(t, zk); data != `{"version":1,"broker":1,"block_start":"1000","block_end":"1999"}` || version != 2 {
		t.Fatalf("second block: %s, version %d", data, version)
	}
}

func TestGoesOnAfterAForeignBlock(t *testing.T) {
	zk := connect(t)
	ops := zkutil.Any(zk)
	if _, err := ops.Create(t.Context(), znode.ProducerIDBlockPath, []byte(`{"version":1,"broker":3,"block_start":"5000","block_end":"5999"}`), zkop.Persistent); err != nil {
		t.Fatal(err)
	}
	if id := next(t, producerid.New(zk, 1)); id != 6000 {
		t.Fatalf("id %d", id)
	}
}

// TestLostAnswers: a lost answer is read back. The block is used when it was written, and no other one is
// burnt; it is written again when it was not.
func TestLostAnswers(t *testing.T) {
	for _, plan := range [][]string{{"applied"}, {"lost"}, {"lost", "lost", "applied"}} {
		zk := connect(t)
		a := producerid.New(&flaky{Client: zk, plan: plan}, 1)
		if id := next(t, a); id != 0 {
			t.Errorf("%v: first id %d", plan, id)
		}
		if data, version := stored(t, zk); version != 1 {
			t.Errorf("%v: %s in version %d", plan, data, version)
		}
	}
}

// TestRaces: another broker takes the block first, also while our own answer is lost.
func TestRaces(t *testing.T) {
	for _, plan := range [][]string{{"raced"}, {"raced", "raced", "applied"}} {
		zk := connect(t)
		rival := zkutil.Any(zk)
		n := int64(0)
		steal := func() {
			_, stat, err := rival.Get(t.Context(), znode.ProducerIDBlockPath)
			if err != nil {
				t.Error(err)
			}
			b := znode.ProducerIDBlock{Broker: 2, First: n, Last: n + 999}
			if _, err := rival.Set(t.Context(), znode.ProducerIDBlockPath, b.Encode(), stat.Version); err != nil {
				t.Error(err)
			}
			n += 1000
		}
		id := next(t, producerid.New(&flaky{Client: zk, plan: plan, steal: steal}, 1))
		if id != n {
			t.Errorf("%v: id %d, the rival has all below %d", plan, id, n)
		}
	}
}

func TestExhausted(t *testing.T) {
	zk := connect(t)
	b := `{"version":1,"broker":3,"block_start":"9223372036854774000","block_end":"9223372036854774999"}`
	if _, err := zkutil.Any(zk).Create(t.Context(), znode.ProducerIDBlockPath, []byte(b), zkop.Persistent); err != nil {
		t.Fatal(err)
	}
	if id, err := producerid.New(zk, 1).Next(t.Context()); !errors.Is(err, producerid.ErrExhausted) {
		t.Fatalf("id %d, error %v", id, err)
	}
}

func TestUnreadableBlockIsNotOverwritten(t *testing.T) {
	zk := connect(t)
	if _, err := zkutil.Any(zk).Create(t.Context(), znode.ProducerIDBlockPath, []byte(`{"version":1,"broker":3}`), zkop.Persistent); err != nil {
		t.Fatal(err)
	}
	if id, err := producerid.New(zk, 1).Next(t.Context()); err == nil {
		t.Fatalf("id %d out of nowhere", id)
	}
	if data, version := stored(t, zk); version != 0 {
		t.Fatalf("overwritten with %s", data)
	}
}

// TestManyBrokersAtOnce: no id is handed out twice.
func TestManyBrokersAtOnce(t *testing.T) {
	zk := connect(t)
	var mu sync.Mutex
	seen := make(map[int64]bool)
	g, ctx := errgroup.WithContext(t.Context())
	for broker := range cluster.BrokerID(4) {
		a := producerid.New(zk, broker)
		for range 4 {
			g.Go(func() error {
				for range 600 {
					id, err := a.Next(ctx)
					if err != nil {
						return err
					}
					mu.Lock()
					if seen[id] {
						t.Errorf("id %d twice", id)
					}
					seen[id] = true
					mu.Unlock()
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 4*4*600 {
		t.Fatalf("%d ids", len(seen))
	}
}
