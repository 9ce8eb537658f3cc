package zktest

import (
	"fmt"
	"testing"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

var watchTests = map[string]func(*testing.T, Server){
	"DataWatch":            testDataWatch,
	"ExistsWatch":          testExistsWatch,
	"ChildrenWatch":        testChildrenWatch,
	"DeleteFiresBoth":      testDeleteFiresBoth,
	"OneShot":              testOneShot,
	"NoWatchLeftByFailure": testNoWatchLeftByFailure,
	"MultiFiresInOrder":    testMultiFiresInOrder,
	"SeveralClients":       testSeveralClients,
	"OwnChanges":           testOwnChanges,
	"NothingIsDropped":     testNothingIsDropped,
	"BeforeTheNewValue":    testBeforeTheNewValue,
}

func event(t zkop.EventType, path string) zkop.Event { return zkop.Event{Type: t, Path: path} }

func (c *client) watchData(path string) {
	c.t.Helper()
	if _, _, err := c.GetWatch(c.ctx, path); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) watchExists(path string) {
	c.t.Helper()
	if _, _, err := c.ExistsWatch(c.ctx, path); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) watchChildren(path string) {
	c.t.Helper()
	if _, _, err := c.ChildrenWatch(c.ctx, path); err != nil {
		c.t.Fatal(err)
	}
}

func testDataWatch(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/d", "")
	c.watchData("/d")
	other.create("/d/child", "") // a child is no change of the data
	other.set("/d", "x")
	if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/d") {
		t.Errorf("event %v", ev)
	}
	other.remove("/d/child")
	c.watchData("/d")
	other.remove("/d")
	if ev := c.nextWatch(); ev != event(zkop.NodeDeleted, "/d") {
		t.Errorf("event %v", ev)
	}
}

func testExistsWatch(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	steps := []struct {
		do   func()
		want zkop.EventType
	}{
		{func() { other.create("/x", "") }, zkop.NodeCreated},
		{func() { other.set("/x", "1") }, zkop.NodeDataChanged},
		{func() { other.remove("/x") }, zkop.NodeDeleted},
		{func() { other.create("/x", "") }, zkop.NodeCreated},
	}
	for i, step := range steps {
		c.watchExists("/x")
		step.do()
		if ev := c.nextWatch(); ev != event(step.want, "/x") {
			t.Errorf("step %d: event %v", i, ev)
		}
	}
}

func testChildrenWatch(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/p", "")
	c.watchChildren("/p")
	other.set("/p", "data") // the node's own data is no change of its children
	other.create("/p/a", "")
	if ev := c.nextWatch(); ev != event(zkop.NodeChildrenChanged, "/p") {
		t.Errorf("event %v", ev)
	}
	c.watchChildren("/p")
	other.set("/p/a", "x")     // nor is a child's data
	other.create("/p/a/b", "") // nor a grandchild
	other.remove("/p/a/b")     //
	other.remove("/p/a")       // but this is
	if ev := c.nextWatch(); ev != event(zkop.NodeChildrenChanged, "/p") {
		t.Errorf("event %v", ev)
	}
	c.watchChildren("/p")
	other.remove("/p")
	if ev := c.nextWatch(); ev != event(zkop.NodeDeleted, "/p") {
		t.Errorf("event %v", ev)
	}
}

func testDeleteFiresBoth(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/p", "")
	c.create("/p/n", "")
	c.watchChildren("/p")
	c.watchData("/p/n")
	c.watchChildren("/p/n")
	other.remove("/p/n")
	// Both watches of the node fire, as one event to the client; then its parent's.
	c.wantWatches(event(zkop.NodeDeleted, "/p/n"), event(zkop.NodeChildrenChanged, "/p"))
	other.create("/p/n", "")
	other.set("/p/n", "x")
	other.remove("/p/n")
	c.wantWatches()
}

func testOneShot(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/o", "")
	c.watchData("/o")
	c.watchData("/o") // a second one on the same data is the same watch
	c.watchExists("/o")
	other.set("/o", "1")
	other.set("/o", "2")
	c.wantWatches(event(zkop.NodeDataChanged, "/o"))
}

func testNoWatchLeftByFailure(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	_, _, err := c.GetWatch(c.ctx, "/f")
	wantErr(t, err, zkop.ErrNoNode)
	_, _, err = c.ChildrenWatch(c.ctx, "/f")
	wantErr(t, err, zkop.ErrNoNode)
	other.create("/f", "")
	other.set("/f", "x")
	c.wantWatches()
}

func testMultiFiresInOrder(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/m1", "")
	c.create("/m2", "")
	c.watchData("/m1")
	c.watchData("/m2")
	c.watchExists("/m3")
	c.watchChildren("/")
	_, err := other.Multi(other.ctx,
		zkop.Request{Kind: zkop.Set, Path: "/m2", Version: zkop.AnyVersion},
		zkop.Request{Kind: zkop.Create, Path: "/m3"},
		zkop.Request{Kind: zkop.Delete, Path: "/m1", Version: zkop.AnyVersion})
	if err != nil {
		t.Fatal(err)
	}
	// A multi that fails fires nothing.
	c.watchData("/m3")
	_, err = other.Multi(other.ctx,
		zkop.Request{Kind: zkop.Set, Path: "/m3", Version: zkop.AnyVersion},
		zkop.Request{Kind: zkop.Check, Path: "/m3", Version: 77})
	wantErr(t, err, zkop.ErrBadVersion)
	c.wantWatches(event(zkop.NodeDataChanged, "/m2"), event(zkop.NodeCreated, "/m3"),
		event(zkop.NodeChildrenChanged, "/"), event(zkop.NodeDeleted, "/m1"))
}

func testSeveralClients(t *testing.T, s Server) {
	other := dial(t, s.Addr())
	other.create("/s", "")
	clients := make([]*client, 5)
	for i := range clients {
		clients[i] = dial(t, s.Addr())
		clients[i].watchData("/s")
	}
	if err := clients[0].Close(); err != nil {
		t.Fatal(err)
	}
	other.set("/s", "x")
	for i, c := range clients[1:] {
		if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/s") {
			t.Errorf("client %d: event %v", i+1, ev)
		}
	}
}

func testOwnChanges(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/own", "")
	c.watchData("/own")
	c.set("/own", "x")
	if ev := c.nextWatch(); ev != event(zkop.NodeDataChanged, "/own") {
		t.Errorf("event %v", ev)
	}
}

// testNothingIsDropped reads the feed only after many more events than any channel holds.
func testNothingIsDropped(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	const n = 500
	creates, watches := make([]zkop.Request, n), make([]zkop.Request, n)
	for i := range n {
		path := fmt.Sprintf("/n%03d", i)
		creates[i] = zkop.Request{Kind: zkop.Create, Path: path}
		watches[i] = zkop.Request{Kind: zkop.Exists, Path: path, Watch: true}
	}
	c.Do(watches...)
	other.Do(creates...)
	eventually(t, "all created", func() bool {
		_, stat, err := c.Children(c.ctx, "/")
		return err == nil && stat.NumChildren == n
	})
	for i := range n {
		if ev := c.nextWatch(); ev != event(zkop.NodeCreated, creates[i].Path) {
			t.Fatalf("event %d: %v", i, ev)
		}
	}
}

// testBeforeTheNewValue: a client sees the watch event before it can see the value that fired it.
func testBeforeTheNewValue(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/b", "old")
	fired, cancel := c.Subscribe()
	defer cancel()
	for i := range 50 {
		value := fmt.Sprint(i)
		c.watchData("/b")
		changed := make(chan error, 1)
		go func() {
			_, err := other.Set(other.ctx, "/b", []byte(value), zkop.AnyVersion)
			changed <- err
		}()
		for {
			if data, _ := c.get("/b"); data == value {
				break
			}
		}
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		// The event is queued by now: it must be next, without another one from a later change.
		var n zkutil.Notice
		select {
		case n = <-fired:
		case <-c.ctx.Done():
			t.Fatal("the new value was seen and no event came")
		}
		if n.Watch == nil || *n.Watch != event(zkop.NodeDataChanged, "/b") {
			t.Fatalf("notice %+v", n)
		}
	}
}
