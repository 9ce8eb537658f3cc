package zktest

import (
	"testing"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

var multiTests = map[string]func(*testing.T, Server){
	"AllOrNothing":      testMultiAllOrNothing,
	"Results":           testMultiResults,
	"DependentOps":      testMultiDependentOps,
	"Empty":             testMultiEmpty,
	"ControllerFencing": testControllerFencing,
	"BrokerEpoch":       testBrokerEpoch,
	"Sequential":        testMultiSequential,
}

func testMultiAllOrNothing(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/a", "0")
	c.create("/b", "0")
	for failing, want := range map[int]error{0: zkop.ErrBadVersion, 1: zkop.ErrBadVersion, 2: zkop.ErrBadVersion} {
		ops := []zkop.Request{
			{Kind: zkop.Set, Path: "/a", Data: []byte("1"), Version: zkop.AnyVersion},
			{Kind: zkop.Create, Path: "/c"},
			{Kind: zkop.Delete, Path: "/b", Version: zkop.AnyVersion},
		}
		bad := zkop.Request{Kind: zkop.Check, Path: "/a", Version: 9}
		ops = append(ops[:failing:failing], append([]zkop.Request{bad}, ops[failing:]...)...)
		results, err := c.Multi(c.ctx, ops...)
		wantErr(t, err, want)
		if len(results) != len(ops) {
			t.Fatalf("%d results for %d ops", len(results), len(ops))
		}
		for i, r := range results {
			if i == failing {
				wantErr(t, r.Err, want)
			} else {
				wantErr(t, r.Err, zkop.ErrRolledBack)
			}
		}
	}
	data, stat := c.get("/a")
	_, created, _ := c.Exists(c.ctx, "/c")
	_, kept, _ := c.Exists(c.ctx, "/b")
	if data != "0" || stat.Version != 0 || created || !kept {
		t.Errorf("a failed multi left its mark: data %q, stat %+v, c %v, b %v", data, stat, created, kept)
	}
}

func testMultiResults(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/a", "")
	c.create("/gone", "")
	results, err := c.Multi(c.ctx,
		zkop.Request{Kind: zkop.Check, Path: "/a", Version: 0},
		zkop.Request{Kind: zkop.Set, Path: "/a", Data: []byte("x"), Version: 0},
		zkop.Request{Kind: zkop.Create, Path: "/new", Data: []byte("y")},
		zkop.Request{Kind: zkop.Delete, Path: "/gone", Version: 0})
	if err != nil || len(results) != 4 {
		t.Fatalf("%v, %v", results, err)
	}
	_, a := c.get("/a")
	_, n := c.get("/new")
	if results[1].Stat != a || results[2].Path != "/new" {
		t.Errorf("results %+v; stat of /a is %+v", results, a)
	}
	if a.Mzxid != n.Czxid {
		t.Errorf("one transaction, two zxids: %x and %x", a.Mzxid, n.Czxid)
	}
}

func testMultiDependentOps(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	_, err := c.Multi(c.ctx,
		zkop.Request{Kind: zkop.Create, Path: "/p"},
		zkop.Request{Kind: zkop.Create, Path: "/p/c"},
		zkop.Request{Kind: zkop.Set, Path: "/p/c", Data: []byte("1"), Version: 0},
		zkop.Request{Kind: zkop.Set, Path: "/p/c", Data: []byte("2"), Version: 1})
	if err != nil {
		t.Fatal(err)
	}
	if data, stat := c.get("/p/c"); data != "2" || stat.Version != 2 {
		t.Errorf("data %q, version %d", data, stat.Version)
	}
	_, err = c.Multi(c.ctx,
		zkop.Request{Kind: zkop.Delete, Path: "/p/c", Version: 2},
		zkop.Request{Kind: zkop.Delete, Path: "/p", Version: 0},
		zkop.Request{Kind: zkop.Create, Path: "/p"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Multi(c.ctx,
		zkop.Request{Kind: zkop.Create, Path: "/q"},
		zkop.Request{Kind: zkop.Create, Path: "/q"})
	wantErr(t, err, zkop.ErrNodeExists)
	if _, ok, _ := c.Exists(c.ctx, "/q"); ok {
		t.Error("/q was created by a multi that failed")
	}
}

func testMultiEmpty(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	if results, err := c.Multi(c.ctx); err != nil || len(results) != 0 {
		t.Errorf("%v, %v", results, err)
	}
}

// testControllerFencing plays two controllers: what the deposed one still wants to write is refused.
func testControllerFencing(t *testing.T, s Server) {
	first, second := dial(t, s.Addr()), dial(t, s.Addr())
	ctx := first.ctx
	first.create(znode.ControllerEpochPath, "0")
	tp := cluster.TopicPartition{Topic: "t", Partition: 0}
	if err := first.EnsurePath(ctx, znode.PartitionPath(tp)); err != nil {
		t.Fatal(err)
	}
	r := first.Do(znode.ElectController(znode.NewController(1, 1), 1, 0))[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	version := cluster.ZKVersion(r.Results[1].Stat.Version)
	state := znode.State{LeaderAndISR: cluster.LeaderAndISR{Leader: 1, ISR: []cluster.BrokerID{1}, ControllerEpoch: 1}}
	create := zkop.Request{Kind: zkop.Create, Path: znode.StatePath(tp), Data: state.Encode()}
	if r := first.Do(znode.Fenced(version, create))[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	// A second candidate loses while the first lives.
	r = second.Do(znode.ElectController(znode.NewController(2, 2), 2, cluster.ZKVersion(1)))[0]
	wantErr(t, r.Err, zkop.ErrNodeExists)
	// Someone removes /controller by hand, the second is elected, the first does not know yet.
	second.remove(znode.ControllerPath)
	if r = second.Do(znode.ElectController(znode.NewController(2, 2), 2, cluster.ZKVersion(1)))[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
	state.LeaderEpoch++
	set := zkop.Request{Kind: zkop.Set, Path: znode.StatePath(tp), Data: state.Encode(), Version: 0}
	r = first.Do(znode.Fenced(version, set))[0]
	wantErr(t, r.Err, zkop.ErrBadVersion)
	wantErr(t, r.Results[0].Err, zkop.ErrBadVersion)
	wantErr(t, r.Results[1].Err, zkop.ErrRolledBack)
	if _, stat := first.get(znode.StatePath(tp)); stat.Version != 0 {
		t.Error("a fenced write went through")
	}
}

func testBrokerEpoch(t *testing.T, s Server) {
	a, b := dial(t, s.Addr()), dial(t, s.Addr())
	if err := a.EnsurePaths(a.ctx, znode.PersistentPaths()); err != nil {
		t.Fatal(err)
	}
	if err := b.EnsurePaths(b.ctx, znode.PersistentPaths()); err != nil {
		t.Fatal(err)
	}
	reg := znode.Registration{ID: 7, JMXPort: -1, Endpoints: []cluster.Endpoint{
		{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 9092}}}
	r := a.Do(znode.RegisterBroker(reg))[0]
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	_, stat := b.get(znode.BrokerPath(7))
	if r.Results[1].Stat.Czxid != stat.Czxid || stat.Version != 1 || stat.EphemeralOwner != a.Session().ID {
		t.Errorf("answer %+v, node %+v", r.Results[1].Stat, stat)
	}
	wantErr(t, b.Do(znode.RegisterBroker(reg))[0].Err, zkop.ErrNodeExists)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	r = b.Do(znode.RegisterBroker(reg))[0]
	if r.Err != nil || r.Results[1].Stat.Czxid <= stat.Czxid {
		t.Errorf("registered anew: %+v, %v", r.Results, r.Err)
	}
}

func testMultiSequential(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/s", "")
	results, err := c.Multi(c.ctx,
		zkop.Request{Kind: zkop.Create, Path: "/s/n_", Mode: zkop.PersistentSequential},
		zkop.Request{Kind: zkop.Create, Path: "/s/n_", Mode: zkop.EphemeralSequential})
	if err != nil || results[0].Path != "/s/n_0000000000" || results[1].Path != "/s/n_0000000001" {
		t.Errorf("%+v, %v", results, err)
	}
}
