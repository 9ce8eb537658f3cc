package ztree

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/zkutil/zkop"
)

var t0 = time.UnixMilli(1_700_000_000_000)

func newTree(t *testing.T, sessions int) (*Tree, []int64) {
	t.Helper()
	tree := New(Options{})
	var ids []int64
	for range sessions {
		ids = append(ids, tree.OpenSession(t0, 10*time.Second))
	}
	return tree, ids
}

func mustDo(t *testing.T, tree *Tree, session int64, req zkop.Request) zkop.Response {
	t.Helper()
	r, _ := tree.Do(t0, session, nil, req)
	if r.Err != nil {
		t.Fatalf("%+v: %v", req, r.Err)
	}
	return r
}

func create(path string) zkop.Request { return zkop.Request{Kind: zkop.Create, Path: path} }

func TestSessionExpiry(t *testing.T) {
	for _, tc := range []struct {
		tick          time.Duration
		alive, expire time.Duration // after the last sign of life
	}{
		{0, 9999 * time.Millisecond, 10 * time.Second},
		{2 * time.Second, 11999 * time.Millisecond, 12 * time.Second}, // t0 is a multiple of the tick
		{3 * time.Second, 10 * time.Second, 13 * time.Second},
	} {
		tree := New(Options{Tick: tc.tick})
		id := tree.OpenSession(t0, 10*time.Second)
		if r, _ := tree.Do(t0, id, nil, zkop.Request{Kind: zkop.Create, Path: "/e", Mode: zkop.Ephemeral}); r.Err != nil {
			t.Fatal(r.Err)
		}
		heard := t0.Add(5 * time.Second)
		if tc.tick == 2*time.Second {
			heard = t0.Add(4 * time.Second)
		}
		tree.Touch(heard, id)
		tree.Touch(heard.Add(-3*time.Second), id) // an older packet must not shorten it
		if ids, _ := tree.Expire(heard.Add(tc.alive)); len(ids) != 0 {
			t.Errorf("tick %v: expired %v after its last packet", tc.tick, tc.alive)
		}
		ids, _ := tree.Expire(heard.Add(tc.expire))
		if !slices.Equal(ids, []int64{id}) || tree.NodeCount() != 4 {
			t.Errorf("tick %v: expired %v, %d nodes", tc.tick, ids, tree.NodeCount())
		}
		if r, _ := tree.Do(heard, id, nil, create("/x")); !errors.Is(r.Err, zkop.ErrSessionExpired) {
			t.Errorf("write of an expired session: %v", r.Err)
		}
	}
}

func TestSessionIDsRise(t *testing.T) {
	tree := New(Options{})
	last := int64(0)
	for i := range 5000 {
		id := tree.OpenSession(t0.Add(time.Duration(-i)*time.Second), time.Second) // a clock that goes backwards
		if id <= last {
			t.Fatalf("id 0x%x after 0x%x", id, last)
		}
		last = id
	}
}

func TestCloseRemovesEphemeralsAndFires(t *testing.T) {
	tree, s := newTree(t, 2)
	mustDo(t, tree, s[0], create("/d"))
	for _, p := range []string{"/d/z", "/d/a"} {
		mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Create, Path: p, Mode: zkop.Ephemeral})
	}
	mustDo(t, tree, s[1], zkop.Request{Kind: zkop.Children, Path: "/d", Watch: true})
	mustDo(t, tree, s[1], zkop.Request{Kind: zkop.Exists, Path: "/d/z", Watch: true})
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Exists, Path: "/d/a", Watch: true}) // of the closing session
	fired := tree.CloseSession(t0, s[0])
	want := []zkop.Event{{Type: zkop.NodeChildrenChanged, Path: "/d"}, {Type: zkop.NodeDeleted, Path: "/d/z"}}
	var got []zkop.Event
	for _, f := range fired {
		if f.Session != s[1] {
			t.Errorf("event for session 0x%x", f.Session)
		}
		got = append(got, f.Event)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("fired %v, want %v", got, want)
	}
	if st := mustDo(t, tree, s[1], zkop.Request{Kind: zkop.Exists, Path: "/d"}).Stat; st.NumChildren != 0 || st.Cversion != 4 {
		t.Fatalf("%+v", st)
	}
}

func TestSequenceNames(t *testing.T) {
	for n, want := range map[int32]string{0: "/n0000000000", 42: "/n0000000042", 1<<31 - 1: "/n2147483647", -1 << 31: "/n-2147483648", -5: "/n-000000005"} {
		if got := sequencePath("/n", n); got != want || got != fmt.Sprintf("/n%010d", n) {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	for p, want := range map[string]bool{
		"/": true, "/a": true, "/a/b.c/..d": true, "/ä/€": true, "/a b": true, "/...": true,
		"": false, "a": false, "/a/": false, "//": false, "/a//b": false, "/.": false, "/a/..": false, "/a/./b": false,
		"/a\x00": false, "/a\x01b": false, "/a\x7f": false, "/\u0085": false, "/\ue000": false, "/\ufffd": false, "/\xff": false,
	} {
		if validPath(p) != want {
			t.Errorf("%q: %v", p, !want)
		}
	}
}

func TestInvalidWrites(t *testing.T) {
	tree, s := newTree(t, 1)
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Create, Path: "/e", Mode: zkop.Ephemeral})
	for _, tc := range []struct {
		req  zkop.Request
		want error
	}{
		{create("no-slash"), zkop.ErrBadArguments},
		{create("/a/"), zkop.ErrNoNode}, // the parent comes first
		{create("/e//"), zkop.ErrNoNode},
		{create("/."), zkop.ErrBadArguments},
		{create("/"), zkop.ErrNodeExists},
		{create(""), zkop.ErrBadArguments},
		{create("/x/y"), zkop.ErrNoNode},
		{create("/e/y"), zkop.ErrNoChildrenForEphemeral},
		{create("/zookeeper"), zkop.ErrNodeExists},
		{zkop.Request{Kind: zkop.Create, Path: "/m", Mode: 99}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Create, Path: "/m", Mode: zkop.PersistentTTL}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Create, Path: "/m", Mode: zkop.PersistentTTL, TTL: 1 << 40}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Create, Path: "/m", ACL: []zkop.ACL{}}, zkop.ErrInvalidACL},
		{zkop.Request{Kind: zkop.Create, Path: "/m", ACL: []zkop.ACL{{Perms: 31, Scheme: "world", ID: "me"}}}, zkop.ErrInvalidACL},
		{zkop.Request{Kind: zkop.Create, Path: "/m", ACL: []zkop.ACL{{Perms: 31, Scheme: "auth"}}}, zkop.ErrInvalidACL},
		{zkop.Request{Kind: zkop.Create, Path: "/m", ACL: []zkop.ACL{{Perms: 31, Scheme: "digest", ID: "nocolon"}}}, zkop.ErrInvalidACL},
		{zkop.Request{Kind: zkop.Create, Path: "/m", ACL: []zkop.ACL{{Perms: 31, Scheme: "ip", ID: "1.2.3.4/99"}}}, zkop.ErrInvalidACL},
		{zkop.Request{Kind: zkop.Create, Path: "/m", ACL: []zkop.ACL{{Perms: 31, Scheme: "sasl", ID: "x"}}}, zkop.ErrInvalidACL},
		{zkop.Request{Kind: zkop.Delete, Path: "/", Version: -1}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Delete, Path: "/zookeeper/config", Version: -1}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Delete, Path: "/nope", Version: -1}, zkop.ErrNoNode},
		{zkop.Request{Kind: zkop.Set, Path: "/zookeeper/config", Version: -1}, zkop.ErrNoAuth},
		{zkop.Request{Kind: zkop.Set, Path: "rel", Version: -1}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{{Kind: zkop.Multi}, create("/q")}}, zkop.ErrBadArguments},
		{zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{create("/q"), {Kind: zkop.Get, Path: "/q"}}}, zkop.ErrBadArguments},
		{zkop.Request{Kind: 99}, zkop.ErrBadArguments},
	} {
		r, fired := tree.Do(t0, s[0], nil, tc.req)
		if !errors.Is(r.Err, tc.want) || len(fired) != 0 {
			t.Errorf("%+v: %v, want %v", tc.req, r.Err, tc.want)
		}
	}
	if tree.NodeCount() != 5 || len(tree.queue) != 0 || len(tree.pending) != 0 {
		t.Errorf("%d nodes, %d pending after refused writes", tree.NodeCount(), len(tree.queue))
	}
}

func TestACLEnforcement(t *testing.T) {
	tree, s := newTree(t, 1)
	bob, ok := DigestIdentity("bob:secret")
	if !ok || bob.ID != "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=" { // as zkCli's addauth computes it
		t.Fatal(bob)
	}
	eve, _ := DigestIdentity("eve:x")
	near, far := Identity{"ip", "10.1.2.3"}, Identity{"ip", "10.2.0.1"}
	super := Identity{Scheme: SchemeSuper}
	do := func(req zkop.Request, auth ...Identity) error {
		r, _ := tree.Do(t0, s[0], auth, req)
		return r.Err
	}
	acl := func(perms int32, scheme, id string) []zkop.ACL {
		return []zkop.ACL{{Perms: perms, Scheme: scheme, ID: id}}
	}
	if err := do(zkop.Request{Kind: zkop.Create, Path: "/p", ACL: acl(zkop.PermAll, "auth", "")}, near, bob); err != nil {
		t.Fatal(err)
	}
	if err := do(zkop.Request{Kind: zkop.Create, Path: "/net", ACL: acl(zkop.PermRead, "ip", "10.1.0.0/16")}); err != nil {
		t.Fatal(err)
	}
	if err := do(zkop.Request{Kind: zkop.Create, Path: "/p/c"}, bob); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		what string
		req  zkop.Request
		auth []Identity
		want error
	}{
		{"get", zkop.Request{Kind: zkop.Get, Path: "/p"}, nil, zkop.ErrNoAuth},
		{"get", zkop.Request{Kind: zkop.Get, Path: "/p"}, []Identity{eve, near}, zkop.ErrNoAuth},
		{"get", zkop.Request{Kind: zkop.Get, Path: "/p"}, []Identity{eve, bob}, nil},
		{"get by super", zkop.Request{Kind: zkop.Get, Path: "/p"}, []Identity{super}, nil},
		{"children", zkop.Request{Kind: zkop.Children, Path: "/p"}, nil, zkop.ErrNoAuth},
		{"exists", zkop.Request{Kind: zkop.Exists, Path: "/p"}, nil, zkop.ErrNoAuth},
		{"getACL", zkop.Request{Kind: zkop.GetACL, Path: "/p"}, nil, zkop.ErrNoAuth},
		{"set", zkop.Request{Kind: zkop.Set, Path: "/p", Version: -1}, []Identity{eve}, zkop.ErrNoAuth},
		{"set", zkop.Request{Kind: zkop.Set, Path: "/p", Version: -1}, []Identity{bob}, nil},
		{"create below", create("/p/new"), nil, zkop.ErrNoAuth},
		{"delete below", zkop.Request{Kind: zkop.Delete, Path: "/p/c", Version: -1}, nil, zkop.ErrNoAuth},
		{"check", zkop.Request{Kind: zkop.Check, Path: "/p", Version: -1}, nil, zkop.ErrNoAuth},
		{"setACL", zkop.Request{Kind: zkop.SetACL, Path: "/p", Version: -1}, nil, zkop.ErrNoAuth},
		{"ip in", zkop.Request{Kind: zkop.Get, Path: "/net"}, []Identity{near}, nil},
		{"ip out", zkop.Request{Kind: zkop.Get, Path: "/net"}, []Identity{far}, zkop.ErrNoAuth},
		{"ip read only", zkop.Request{Kind: zkop.Set, Path: "/net", Version: -1}, []Identity{near}, zkop.ErrNoAuth},
		{"multi", zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{create("/ok"), create("/p/no")}}, nil, zkop.ErrNoAuth},
		{"delete below", zkop.Request{Kind: zkop.Delete, Path: "/p/c", Version: -1}, []Identity{bob}, nil},
	} {
		if err := do(tc.req, tc.auth...); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.what, err, tc.want)
		}
	}
	// The digest shows only to those who may administer the node.
	if err := do(zkop.Request{Kind: zkop.SetACL, Path: "/p", Version: 0, ACL: []zkop.ACL{
		{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}, {Perms: zkop.PermAll, Scheme: bob.Scheme, ID: bob.ID},
	}}, bob); err != nil {
		t.Fatal(err)
	}
	r, _ := tree.Do(t0, s[0], nil, zkop.Request{Kind: zkop.GetACL, Path: "/p"})
	if len(r.ACL) != 2 || r.ACL[1].ID != "bob:x" || r.Stat.Aversion != 1 {
		t.Errorf("%+v", r)
	}
	r, _ = tree.Do(t0, s[0], []Identity{bob}, zkop.Request{Kind: zkop.GetACL, Path: "/p"})
	if r.ACL[1].ID != bob.ID {
		t.Errorf("%+v", r.ACL)
	}
	if err := do(zkop.Request{Kind: zkop.SetACL, Path: "/p", Version: 0}, bob); !errors.Is(err, zkop.ErrBadVersion) {
		t.Errorf("stale aversion: %v", err)
	}
	if _, ok := DigestIdentity("nocolon"); ok {
		t.Error("a credential without a user is accepted")
	}
}

// TestACLOfPendingNodes: a write is checked against the access list that a prepared, unapplied one gave.
func TestACLOfPendingNodes(t *testing.T) {
	tree, s := newTree(t, 1)
	bob, _ := DigestIdentity("bob:secret")
	first := zkop.Request{Kind: zkop.Create, Path: "/p", ACL: []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth"}}}
	txn, _ := tree.Prepare(t0, s[0], []Identity{bob}, &first)
	below := create("/p/c")
	if _, r := tree.Prepare(t0, s[0], nil, &below); !errors.Is(r.Err, zkop.ErrNoAuth) {
		t.Fatal(r.Err)
	}
	tree.Apply(txn)
	if r, _ := tree.Do(t0, s[0], []Identity{bob}, below); r.Err != nil {
		t.Fatal(r.Err)
	}
}

// TestEventsOfUnreadableNodes: the event says who may see it.
func TestEventsOfUnreadableNodes(t *testing.T) {
	tree, s := newTree(t, 2)
	bob, _ := DigestIdentity("bob:secret")
	tree.Do(t0, s[0], nil, zkop.Request{Kind: zkop.Exists, Path: "/p", Watch: true})
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Children, Path: "/", Watch: true})
	r, fired := tree.Do(t0, s[1], []Identity{bob}, zkop.Request{Kind: zkop.Create, Path: "/p", ACL: []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth"}}})
	if r.Err != nil || len(fired) != 2 {
		t.Fatal(r.Err, fired)
	}
	if fired[0].Readable(nil) || !fired[0].Readable([]Identity{bob}) || !fired[1].Readable(nil) {
		t.Fatal("wrong audience")
	}
}

// TestRefusedMultiRestoresPending: a multi that is refused leaves the states that earlier prepared writes gave.
func TestRefusedMultiRestoresPending(t *testing.T) {
	tree, s := newTree(t, 1)
	mustDo(t, tree, s[0], create("/a"))
	set := zkop.Request{Kind: zkop.Set, Path: "/a", Version: 0}
	first, _ := tree.Prepare(t0, s[0], nil, &set)
	bad := zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{
		{Kind: zkop.Set, Path: "/a", Version: 1}, {Kind: zkop.Delete, Path: "/a", Version: 2}, create("/a"), create("/none/x"),
	}}
	if txn, r := tree.Prepare(t0, s[0], nil, &bad); txn != nil || !errors.Is(r.Results[3].Err, zkop.ErrNoNode) {
		t.Fatal(r)
	}
	set.Version = 1
	second, r := tree.Prepare(t0, s[0], nil, &set)
	if second == nil {
		t.Fatal("the pending version is forgotten: ", r.Err)
	}
	tree.Apply(first)
	if r, _ := tree.Apply(second); r.Stat.Version != 2 || len(tree.pending) != 0 || len(tree.queue) != 0 {
		t.Fatal(r.Stat, len(tree.pending))
	}
}

// TestDeletionEndsChildWatch: the watch goes with the node and does not wait for the next of that name.
func TestDeletionEndsChildWatch(t *testing.T) {
	tree, s := newTree(t, 1)
	mustDo(t, tree, s[0], create("/a"))
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Children, Path: "/a", Watch: true})
	_, fired := tree.Do(t0, s[0], nil, zkop.Request{Kind: zkop.Delete, Path: "/a", Version: -1})
	if len(fired) != 1 || fired[0].Event.Type != zkop.NodeDeleted {
		t.Fatal(fired)
	}
	mustDo(t, tree, s[0], create("/a"))
	if _, fired := tree.Do(t0, s[0], nil, create("/a/b")); len(fired) != 0 {
		t.Fatal(fired)
	}
}

func TestRestoredSessionIDsRise(t *testing.T) {
	tree, s := newTree(t, 1)
	tree.CloseSession(t0, s[0])
	got, err := Restore(imageBytes(t, tree), t0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if id := got.OpenSession(t0.Add(-time.Hour), time.Second); id <= s[0] {
		t.Fatalf("0x%x after 0x%x", id, s[0])
	}
}

func TestLeftovers(t *testing.T) {
	tree, s := newTree(t, 1)
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Create, Path: "/c", Mode: zkop.Container})
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Create, Path: "/t", Mode: zkop.PersistentTTL, TTL: 1000})
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Create, Path: "/t-", Mode: zkop.PersistentSequentialTTL, TTL: 5000})
	sweep := func(at time.Time) []string {
		got := tree.Leftovers(at, 100)
		slices.Sort(got)
		for _, p := range got {
			if txn := tree.PrepareDeleteLeftover(at, p); txn != nil {
				tree.Apply(txn)
			}
		}
		return got
	}
	if got := sweep(t0.Add(time.Second)); len(got) != 0 { // a container without a child yet stays
		t.Fatal(got)
	}
	mustDo(t, tree, s[0], create("/c/x"))
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Delete, Path: "/c/x", Version: -1})
	if got := sweep(t0.Add(1001 * time.Millisecond)); !slices.Equal(got, []string{"/c", "/t"}) {
		t.Fatal(got)
	}
	if got := sweep(t0.Add(5001 * time.Millisecond)); !slices.Equal(got, []string{"/t-0000000002"}) {
		t.Fatal(got)
	}
	if tree.NodeCount() != 4 || len(tree.special) != 0 || tree.PrepareDeleteLeftover(t0, "/c") != nil {
		t.Fatal("leftovers left")
	}
}

func TestSetWatches(t *testing.T) {
	tree, s := newTree(t, 2)
	for _, p := range []string{"/same", "/changed", "/gone", "/kids"} {
		mustDo(t, tree, s[0], create(p))
	}
	seen := tree.Zxid()
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Set, Path: "/changed", Version: -1})
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Delete, Path: "/gone", Version: -1})
	mustDo(t, tree, s[0], create("/kids/k"))
	mustDo(t, tree, s[0], create("/new"))
	fired := tree.SetWatches(s[1], seen, []string{"/same", "/changed", "/gone"}, []string{"/new", "/never"}, []string{"/same", "/kids"}, nil, nil)
	var got []string
	for _, f := range fired {
		got = append(got, fmt.Sprint(f.Event.Type, f.Event.Path))
	}
	want := []string{"3/changed", "2/gone", "1/new", "4/kids"}
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if paths := tree.WatchedPaths(s[1]); !slices.Equal(paths, []string{"/never", "/same"}) {
		t.Fatal(paths)
	}
	tree.DropWatches(s[1])
	if w, p, n := tree.WatchCounts(); w+p+n != 0 {
		t.Fatal("watches left", w, p, n)
	}
}

func TestPersistentWatches(t *testing.T) {
	tree, s := newTree(t, 3)
	mustDo(t, tree, s[0], create("/a"))
	tree.AddPersistentWatch(s[1], "/a", false)
	tree.AddPersistentWatch(s[2], "/", true)
	tree.AddPersistentWatch(s[2], "/a", true)
	run := func(req zkop.Request) string {
		r, fired := tree.Do(t0, s[0], nil, req)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		var out []string
		for _, f := range fired {
			out = append(out, fmt.Sprint(slices.Index(s, f.Session), ":", f.Event.Type, f.Event.Path))
		}
		return strings.Join(out, " ")
	}
	for range 2 { // they stay
		if got := run(create("/a/b")); got != "2:1/a/b 1:4/a" {
			t.Fatal(got)
		}
		if got := run(zkop.Request{Kind: zkop.Set, Path: "/a", Version: -1}); got != "1:3/a 2:3/a" {
			t.Fatal(got)
		}
		if got := run(zkop.Request{Kind: zkop.Delete, Path: "/a/b", Version: -1}); got != "2:2/a/b 1:4/a" {
			t.Fatal(got)
		}
	}
	if !tree.HasWatch(s[2], "/", AnyWatch) || tree.HasWatch(s[2], "/", DataWatch) || tree.RemoveWatch(s[1], "/a", ChildWatch) {
		t.Fatal("wrong kinds")
	}
	if !tree.RemoveWatch(s[2], "/", AnyWatch) || !tree.RemoveWatch(s[2], "/a", PersistentRecursiveWatch) || !tree.RemoveWatch(s[1], "/a", PersistentWatch) {
		t.Fatal("cannot remove")
	}
	if w, _, _ := tree.WatchCounts(); w != 0 || tree.watches.recursive != 0 {
		t.Fatal("watches left")
	}
}

func TestEpochs(t *testing.T) {
	tree, s := newTree(t, 1)
	if tree.Zxid() != 1 {
		t.Fatal(tree.Zxid())
	}
	tree.StartEpoch()
	if mustDo(t, tree, s[0], create("/a")); tree.Zxid() != 1<<32+1 {
		t.Fatalf("0x%x", tree.Zxid())
	}
	tree.StartEpoch()
	tree.StartEpoch() // without a change in between
	if st := mustDo(t, tree, s[0], create("/b")).Stat; st.Czxid != 2<<32+1 {
		t.Fatalf("0x%x", st.Czxid)
	}
}

func TestVersionSkipsAny(t *testing.T) {
	tree, s := newTree(t, 1)
	mustDo(t, tree, s[0], create("/a"))
	tree.nodes["/a"].version = -2
	if st := mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Set, Path: "/a", Version: -2}).Stat; st.Version != 0 {
		t.Fatal(st.Version)
	}
}

func TestReplayRefusesForeignTxns(t *testing.T) {
	tree, s := newTree(t, 1)
	mustDo(t, tree, s[0], create("/a"))
	for name, txn := range map[string]*Txn{
		"old zxid":       {Kind: TxnWrite, Zxid: 1, Changes: []Change{{Kind: zkop.Create, Path: "/x"}}},
		"no parent":      {Kind: TxnWrite, Zxid: 9, Changes: []Change{{Kind: zkop.Create, Path: "/x/y"}}},
		"exists":         {Kind: TxnWrite, Zxid: 9, Changes: []Change{{Kind: zkop.Create, Path: "/a"}}},
		"nothing to set": {Kind: TxnWrite, Zxid: 9, Changes: []Change{{Kind: zkop.Set, Path: "/x"}}},
		"not empty":      {Kind: TxnWrite, Zxid: 9, Changes: []Change{{Kind: zkop.Delete, Path: "/zookeeper"}}},
		"two in one":     {Kind: TxnWrite, Zxid: 9, Changes: []Change{{Kind: zkop.Check, Path: "/"}, {Kind: zkop.Check, Path: "/"}}},
		"half":           {Kind: TxnMulti, Zxid: 9, Changes: []Change{{Kind: zkop.Create, Path: "/x"}, {Kind: zkop.Create, Path: "/a"}}},
		"open twice":     {Kind: TxnOpenSession, Zxid: 9, Session: s[0]},
		"close unknown":  {Kind: TxnCloseSession, Zxid: 9, Session: 7},
		"unowned":        {Kind: TxnWrite, Zxid: 9, Changes: []Change{{Kind: zkop.Create, Path: "/x", Owner: 7}}},
	} {
		before := tree.Freeze()
		if err := tree.Replay(txn); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if tree.zxid != before.zxid || tree.NodeCount() != before.Nodes() || len(tree.pending) != 0 {
			t.Errorf("%s: the tree changed", name)
		}
	}
}

func imageBytes(t testing.TB, tree *Tree) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := tree.Freeze().WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatal(n, err)
	}
	return b.Bytes()
}

func TestRestoreRefusesDamage(t *testing.T) {
	tree, s := newTree(t, 2)
	mustDo(t, tree, s[0], create("/a"))
	mustDo(t, tree, s[0], zkop.Request{Kind: zkop.Create, Path: "/a/e", Mode: zkop.Ephemeral, Data: []byte("d")})
	b := imageBytes(t, tree)
	got, err := Restore(b, t0, Options{})
	if err != nil || Equal(tree, got) != nil {
		t.Fatal(err, Equal(tree, got))
	}
	for i := range b {
		if _, err := Restore(b[:i], t0, Options{}); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

func FuzzRestore(f *testing.F) {
	tree := New(Options{})
	id := tree.OpenSession(t0, time.Second)
	tree.Do(t0, id, nil, zkop.Request{Kind: zkop.Create, Path: "/a", Data: []byte("x"), Mode: zkop.Ephemeral})
	var b bytes.Buffer
	if _, err := tree.Freeze().WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := Restore(b, t0, Options{})
		if err != nil {
			return
		}
		again, err := Restore(imageBytes(t, tree), t0, Options{})
		if err != nil || Equal(tree, again) != nil {
			t.Fatal(err, Equal(tree, again))
		}
	})
}

// FuzzReplay: no bytes in a log record can panic the tree or leave it inconsistent.
func FuzzReplay(f *testing.F) {
	base := New(Options{})
	id := base.OpenSession(t0, time.Second)
	for _, req := range []zkop.Request{
		{Kind: zkop.Create, Path: "/a", Data: []byte("x"), Mode: zkop.EphemeralSequential},
		{Kind: zkop.Multi, Ops: []zkop.Request{create("/b"), create("/b/c"), {Kind: zkop.Delete, Path: "/b/c", Version: -1}, {Kind: zkop.Set, Path: "/b"}}},
		{Kind: zkop.SetACL, Path: "/", Version: -1, ACL: []zkop.ACL{{Perms: 1, Scheme: "ip", ID: "::1"}}},
	} {
		txn, _ := base.Prepare(t0, id, nil, &req)
		f.Add(AppendTxn(nil, txn))
	}
	f.Add(AppendTxn(nil, base.PrepareOpenSession(t0, time.Second)))
	f.Add(AppendTxn(nil, base.PrepareCloseSession(t0, id)))
	f.Fuzz(func(t *testing.T, b []byte) {
		txn, err := DecodeTxn(b)
		if err != nil {
			return
		}
		if !bytes.Equal(AppendTxn(nil, txn), b) {
			again, err := DecodeTxn(AppendTxn(nil, txn)) // varints may be padded
			if err != nil || again.Zxid != txn.Zxid || len(again.Changes) != len(txn.Changes) {
				t.Fatal("does not round-trip", err)
			}
		}
		tree := New(Options{})
		tree.OpenSession(t0, time.Second)
		if tree.Replay(txn) != nil {
			return
		}
		count := 0
		tree.Walk("/", func(string, []byte, zkop.Stat) bool { count++; return true })
		if count != tree.NodeCount() {
			t.Fatalf("walked %d of %d nodes", count, tree.NodeCount())
		}
	})
}

func BenchmarkDo(b *testing.B) {
	b.Run("create+delete", func(b *testing.B) {
		tree := New(Options{})
		id := tree.OpenSession(t0, time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			tree.Do(t0, id, nil, create("/x"))
			tree.Do(t0, id, nil, zkop.Request{Kind: zkop.Delete, Path: "/x", Version: -1})
		}
	})
	b.Run("set", func(b *testing.B) {
		tree := New(Options{})
		id := tree.OpenSession(t0, time.Hour)
		tree.Do(t0, id, nil, create("/x"))
		b.ReportAllocs()
		for b.Loop() {
			tree.Do(t0, id, nil, zkop.Request{Kind: zkop.Set, Path: "/x", Version: -1})
		}
	})
	b.Run("get", func(b *testing.B) {
		tree := New(Options{})
		id := tree.OpenSession(t0, time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			tree.Do(t0, id, nil, zkop.Request{Kind: zkop.Get, Path: "/zookeeper"})
		}
	})
}
