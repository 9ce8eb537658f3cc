package zkdata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kctl/zkutil"
	"kctl/zkutil/zkdata"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
)

// tree reads everything below a path, one line a node.
func tree(t *testing.T, c zkutil.Client, p string) []string {
	t.Helper()
	rs := c.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: p}, zkop.Request{Kind: zkop.Children, Path: p})
	if rs[0].Err != nil {
		t.Fatalf("%s: %v", p, rs[0].Err)
	}
	out := []string{fmt.Sprintf("%s %q %v %+v", p, rs[0].Data, rs[0].Data == nil, rs[0].Stat)}
	kids := rs[1].Children
	slices.Sort(kids)
	for _, k := range kids {
		out = append(out, tree(t, c, strings.TrimSuffix(p, "/")+"/"+k)...)
	}
	return out
}

// TestSameAsEmbedded: the tree read from the files of the embedded server is the one that it served, with every stat,
// from logs alone and from a snapshot with logs.
func TestSameAsEmbedded(t *testing.T) {
	for _, every := range []int{1000, 7} {
		dir := t.TempDir()
		s, err := zkserver.Start(t.Context(), zkserver.Config{DataDir: dir, SnapshotEvery: every})
		if err != nil {
			t.Fatal(err)
		}
		c, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: s.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		ops := []zkop.Request{
			{Kind: zkop.Create, Path: "/a"}, {Kind: zkop.Create, Path: "/a/b", Data: []byte("1")}, {Kind: zkop.Set, Path: "/a/b", Data: []byte("2"), Version: zkop.AnyVersion},
			{Kind: zkop.Create, Path: "/a/e", Data: []byte{}, Mode: zkop.Ephemeral}, {Kind: zkop.Create, Path: "/gone"}, {Kind: zkop.Delete, Path: "/gone", Version: zkop.AnyVersion},
			{Kind: zkop.Multi, Ops: []zkop.Request{{Kind: zkop.Check, Path: "/a", Version: 0}, {Kind: zkop.Create, Path: "/m"}, {Kind: zkop.Set, Path: "/a", Data: []byte("x"), Version: 0}}},
		}
		for i := range 20 {
			ops = append(ops, zkop.Request{Kind: zkop.Create, Path: fmt.Sprintf("/a/n%d", i), Data: []byte("n")})
		}
		for _, r := range c.Do(t.Context(), zkutil.AnySession, ops...) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		want := tree(t, c, "/")
		offline, r, err := zkdata.Open(dir, "")
		if err != nil || len(r.Problems) > 0 || r.Server != "embedded" {
			t.Fatalf("%+v %v", r, err)
		}
		if diff := cmp.Diff(want, tree(t, offline, "/")); diff != "" {
			t.Errorf("snapshot every %d: %s", every, diff)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
