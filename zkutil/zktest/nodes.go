package zktest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

var nodeTests = map[string]func(*testing.T, Server){
	"CreateGetSetDelete":  testCreateGetSetDelete,
	"Versions":            testVersions,
	"Stat":                testStat,
	"NullAndEmptyData":    testNullAndEmptyData,
	"Errors":              testErrors,
	"Sequences":           testSequences,
	"EphemeralAtClose":    testEphemeralAtClose,
	"ReadsKeepTheirOrder": testReadsKeepTheirOrder,
	"ACL":                 testACL,
	"AuthSchemeOfCreator": testAuthSchemeOfCreator,
	"LargeNodes":          testLargeNodes,
	"ManyChildren":        testManyChildren,
	"Sync":                testSync,
}

func testCreateGetSetDelete(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	path, err := c.Create(c.ctx, "/a", []byte("one"), zkop.Persistent)
	if err != nil || path != "/a" {
		t.Fatalf("create returned %q, %v", path, err)
	}
	if data, _ := c.get("/a"); data != "one" {
		t.Errorf("data %q", data)
	}
	c.set("/a", "two")
	if data, stat := c.get("/a"); data != "two" || stat.Version != 1 || stat.DataLength != 3 {
		t.Errorf("data %q, stat %+v", data, stat)
	}
	c.create("/a/b", "")
	c.create("/a/a", "")
	children, stat, err := c.Children(c.ctx, "/a")
	if err != nil || !slices.Equal(children, []string{"a", "b"}) || stat.NumChildren != 2 {
		t.Errorf("children %v, stat %+v, %v", children, stat, err)
	}
	c.remove("/a/a")
	c.remove("/a/b")
	c.remove("/a")
	if _, ok, err := c.Exists(c.ctx, "/a"); ok || err != nil {
		t.Errorf("exists %v, %v after delete", ok, err)
	}
}

func testVersions(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/v", "0")
	if _, err := c.Set(c.ctx, "/v", []byte("x"), 1); err == nil {
		t.Error("set at a version that is not there went through")
	} else {
		wantErr(t, err, zkop.ErrBadVersion)
	}
	stat, err := c.Set(c.ctx, "/v", []byte("1"), 0)
	if err != nil || stat.Version != 1 {
		t.Fatalf("stat %+v, %v", stat, err)
	}
	wantErr(t, c.Delete(c.ctx, "/v", 0), zkop.ErrBadVersion)
	if data, _ := c.get("/v"); data != "1" {
		t.Errorf("data %q", data)
	}
	r := c.Do(zkop.Request{Kind: zkop.Check, Path: "/v", Version: 1}, zkop.Request{Kind: zkop.Check, Path: "/v", Version: 0})
	if r[0].Err != nil {
		t.Error(r[0].Err)
	}
	wantErr(t, r[1].Err, zkop.ErrBadVersion)
	if err := c.Delete(c.ctx, "/v", 1); err != nil {
		t.Error(err)
	}
}

func testStat(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/s", "abc")
	_, first := c.get("/s")
	c.create("/s/child", "")
	second := c.set("/s", "de")
	_, parent := c.get("/s")
	if first.Czxid == 0 || first.Czxid != first.Mzxid || first.Pzxid != first.Czxid || first.Cversion != 0 {
		t.Errorf("new node: %+v", first)
	}
	if second.Czxid != first.Czxid || second.Mzxid <= first.Mzxid || second.Version != 1 || second.Cversion != 1 {
		t.Errorf("after child and set: %+v", second)
	}
	if parent.Pzxid <= first.Pzxid || parent.Pzxid >= parent.Mzxid || parent.NumChildren != 1 {
		t.Errorf("parent: %+v", parent)
	}
	if now := time.Now().UnixMilli(); first.Ctime < now-60_000 || first.Ctime > now+60_000 || second.Mtime < first.Mtime {
		t.Errorf("times: created %d, modified %d, now %d", first.Ctime, second.Mtime, now)
	}
	if first.EphemeralOwner != 0 {
		t.Errorf("a persistent node has the owner %x", first.EphemeralOwner)
	}
	c.remove("/s/child")
	if _, after := c.get("/s"); after.Cversion != 2 || after.NumChildren != 0 || after.Pzxid <= parent.Pzxid {
		t.Errorf("after the child went: %+v", after)
	}
}

func testNullAndEmptyData(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	for path, data := range map[string][]byte{"/null": nil, "/empty": {}} {
		if _, err := c.Create(c.ctx, path, data, zkop.Persistent); err != nil {
			t.Fatal(err)
		}
		got, stat, err := c.Get(c.ctx, path)
		if err != nil || len(got) != 0 || stat.DataLength != 0 {
			t.Errorf("%s: data %v, stat %+v, %v", path, got, stat, err)
		}
		if (got == nil) != (data == nil) {
			t.Errorf("%s: null came back as null: %v", path, got == nil)
		}
	}
}

func testErrors(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/p", "")
	c.create("/p/c", "")
	if _, err := c.Create(c.ctx, "/eph", nil, zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	_, err := c.Create(c.ctx, "/no/parent", nil, zkop.Persistent)
	wantErr(t, err, zkop.ErrNoNode)
	_, err = c.Create(c.ctx, "/p", nil, zkop.Persistent)
	wantErr(t, err, zkop.ErrNodeExists)
	_, err = c.Create(c.ctx, "/eph/child", nil, zkop.Persistent)
	wantErr(t, err, zkop.ErrNoChildrenForEphemeral)
	wantErr(t, c.Delete(c.ctx, "/p", zkop.AnyVersion), zkop.ErrNotEmpty)
	wantErr(t, c.Delete(c.ctx, "/none", zkop.AnyVersion), zkop.ErrNoNode)
	_, err = c.Set(c.ctx, "/none", nil, zkop.AnyVersion)
	wantErr(t, err, zkop.ErrNoNode)
	_, _, err = c.Get(c.ctx, "/none")
	wantErr(t, err, zkop.ErrNoNode)
	_, _, err = c.Children(c.ctx, "/none")
	wantErr(t, err, zkop.ErrNoNode)
	for _, bad := range []string{"", "p", "/p/", "//p", "/p/../q", "/p/./q", "/a\x00b"} {
		_, err := c.Create(c.ctx, bad, nil, zkop.Persistent)
		wantErr(t, err, zkop.ErrBadArguments)
	}
	if _, _, err := c.Get(c.ctx, "/p"); err != nil {
		t.Errorf("the connection did not survive bad requests: %v", err)
	}
	if err := c.DeleteRecursive(c.ctx, "/p"); err != nil {
		t.Error(err)
	}
	if _, ok, _ := c.Exists(c.ctx, "/p"); ok {
		t.Error("still there after a recursive delete")
	}
}

func testSequences(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/seq", "")
	for i := range 3 {
		path, err := c.Create(c.ctx, "/seq/n_", nil, zkop.PersistentSequential)
		if want := fmt.Sprintf("/seq/n_%010d", i); err != nil || path != want {
			t.Errorf("created %q, %v, want %q", path, err, want)
		}
	}
	// The number counts the changes to the parent's children: creations of any kind, not deletions.
	c.create("/seq/plain", "")
	c.remove("/seq/n_0000000000")
	path, err := c.Create(c.ctx, "/seq/other_", nil, zkop.EphemeralSequential)
	if err != nil || path != "/seq/other_0000000004" {
		t.Errorf("created %q, %v", path, err)
	}
	_, stat := c.get(path)
	if stat.EphemeralOwner != c.Session().ID {
		t.Errorf("owner %x, session %x", stat.EphemeralOwner, c.Session().ID)
	}
	path, err = c.Create(c.ctx, "/seq/", nil, zkop.PersistentSequential)
	if err != nil || path != "/seq/0000000005" {
		t.Errorf("created %q, %v", path, err)
	}
}

// testReadsKeepTheirOrder: of two reads of a node in one Do the second sees nothing older than the first. Who leaves a watch with
// exists and then reads would else miss a change between the two, and never hear of it.
func testReadsKeepTheirOrder(t *testing.T, s Server) {
	c, writer := dial(t, s.Addr()), dial(t, s.Addr())
	c.create("/n", "")
	done := make(chan error, 1)
	go func() {
		for range 500 {
			if _, err := writer.Set(writer.ctx, "/n", nil, zkop.AnyVersion); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var reqs []zkop.Request
	for range 20 {
		reqs = append(reqs, zkop.Request{Kind: zkop.Exists, Path: "/n"}, zkop.Request{Kind: zkop.Get, Path: "/n"})
	}
	for {
		last := int32(-1)
		for i, r := range c.Client.Do(c.ctx, zkutil.AnySession, reqs...) {
			if r.Err != nil || r.Stat.Version < last {
				t.Fatalf("read %d: version %d after %d, %v", i, r.Stat.Version, last, r.Err)
			}
			last = r.Stat.Version
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func testEphemeralAtClose(t *testing.T, s Server) {
	c, other := dial(t, s.Addr()), dial(t, s.Addr())
	if _, err := c.Create(c.ctx, "/e", []byte("x"), zkop.Ephemeral); err != nil {
		t.Fatal(err)
	}
	_, stat := other.get("/e")
	if stat.EphemeralOwner != c.Session().ID {
		t.Errorf("owner %x, session %x", stat.EphemeralOwner, c.Session().ID)
	}
	if _, _, err := other.ExistsWatch(other.ctx, "/e"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if ev := other.nextWatch(); ev != (zkop.Event{Type: zkop.NodeDeleted, Path: "/e"}) {
		t.Errorf("event %v", ev)
	}
	_, _, err := c.Get(c.ctx, "/e")
	wantErr(t, err, zkop.ErrClosed)
}

func creatorOnly() []zkop.ACL { return []zkop.ACL{{Perms: zkop.PermAll, Scheme: "auth", ID: ""}} }

func testACL(t *testing.T, s Server) {
	owner := dial(t, s.Addr(), withAuth("alice:secret"))
	// The digest is base64(SHA-1("alice:secret")), as in ZooKeeper's DigestAuthenticationProvider.
	digest := zkop.ACL{Perms: zkop.PermAll, Scheme: "digest", ID: "alice:" + digestOf("alice:secret")}
	readable := zkop.ACL{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}
	if _, err := owner.CreateACL(owner.ctx, "/private", []byte("x"), zkop.Persistent, []zkop.ACL{digest}); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.CreateACL(owner.ctx, "/shared", []byte("x"), zkop.Persistent, []zkop.ACL{digest, readable}); err != nil {
		t.Fatal(err)
	}
	for _, auth := range [][]option{nil, {withAuth("alice:wrong")}, {withAuth("bob:secret")}} {
		c := dial(t, s.Addr(), auth...)
		_, _, err := c.Get(c.ctx, "/private")
		wantErr(t, err, zkop.ErrNoAuth)
		_, _, err = c.Children(c.ctx, "/private")
		wantErr(t, err, zkop.ErrNoAuth)
		_, err = c.Create(c.ctx, "/private/child", nil, zkop.Persistent)
		wantErr(t, err, zkop.ErrNoAuth)
		if data, _ := c.get("/shared"); data != "x" {
			t.Errorf("data %q", data)
		}
		_, err = c.Set(c.ctx, "/shared", nil, zkop.AnyVersion)
		wantErr(t, err, zkop.ErrNoAuth)
	}
	again := dial(t, s.Addr(), withAuth("alice:secret"))
	acl, stat, err := again.GetACL(again.ctx, "/shared")
	if err != nil || !slices.Equal(acl, []zkop.ACL{digest, readable}) || stat.DataLength != 1 {
		t.Errorf("the owner sees %+v %+v, %v", acl, stat, err)
	}
	bob := dial(t, s.Addr(), withAuth("bob:secret"))
	hidden := zkop.ACL{Perms: zkop.PermAll, Scheme: "digest", ID: "alice:x"}
	if acl, _, err = bob.GetACL(bob.ctx, "/shared"); err != nil || !slices.Equal(acl, []zkop.ACL{hidden, readable}) {
		t.Errorf("somebody else sees %+v, %v", acl, err)
	}
	_, _, err = bob.GetACL(bob.ctx, "/private")
	wantErr(t, err, zkop.ErrNoAuth)
	_, _, err = bob.GetACL(bob.ctx, "/nothing")
	wantErr(t, err, zkop.ErrNoNode)
	again.set("/private", "y")
	again.create("/private/child", "")
	again.remove("/private/child")
}

func testAuthSchemeOfCreator(t *testing.T, s Server) {
	owner, other := dial(t, s.Addr(), withAuth("carol:pw")), dial(t, s.Addr())
	if _, err := owner.CreateACL(owner.ctx, "/mine", nil, zkop.Persistent, creatorOnly()); err != nil {
		t.Fatal(err)
	}
	owner.set("/mine", "x")
	_, err := other.Set(other.ctx, "/mine", nil, zkop.AnyVersion)
	wantErr(t, err, zkop.ErrNoAuth)
	_, err = other.CreateACL(other.ctx, "/nobody", nil, zkop.Persistent, creatorOnly())
	wantErr(t, err, zkop.ErrInvalidACL)
	cfg := zkutil.Config{Connect: s.Addr(), Auth: []zkutil.Auth{{Scheme: "nosuch", Credential: []byte("x")}}}
	c, err := zkutil.Connect(owner.ctx, cfg)
	if err == nil {
		_ = c.Close()
	}
	wantErr(t, err, zkutil.ErrAuthFailed)
}

func testLargeNodes(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	big := bytes.Repeat([]byte("0123456789abcdef"), 56<<10) // 896 KiB
	if _, err := c.Create(c.ctx, "/big", big, zkop.Persistent); err != nil {
		t.Fatal(err)
	}
	got, _, err := c.Get(c.ctx, "/big")
	if err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	_, err = c.Set(c.ctx, "/big", append(big, big...), zkop.AnyVersion)
	wantErr(t, err, zkop.ErrTooLarge)
	if _, stat := c.get("/big"); stat.Version != 0 {
		t.Errorf("version %d after a refused write", stat.Version)
	}
	if c.Session().Epoch != 1 {
		t.Error("the session did not survive a request that was too large")
	}
}

func testManyChildren(t *testing.T, s Server) {
	c := dial(t, s.Addr())
	c.create("/many", "")
	const n = 3000
	pad := strings.Repeat("x", 200)
	reqs := make([]zkop.Request, n)
	for i := range reqs {
		reqs[i] = zkop.Request{Kind: zkop.Create, Path: fmt.Sprintf("/many/%s%05d", pad, i)}
	}
	for _, r := range c.Do(reqs...) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	children, stat, err := c.Children(c.ctx, "/many")
	if err != nil || len(children) != n || int(stat.NumChildren) != n || !slices.IsSorted(children) {
		t.Errorf("%d children, stat %+v, %v", len(children), stat, err)
	}
}

func testSync(t *testing.T, s Server) {
	a, b := dial(t, s.Addr()), dial(t, s.Addr())
	for i := range 20 {
		path := fmt.Sprintf("/n%d", i)
		a.create(path, "")
		if err := b.Sync(b.ctx, path); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := b.Exists(b.ctx, path); !ok || err != nil {
			t.Fatalf("%s not seen after sync: %v", path, err)
		}
	}
}
