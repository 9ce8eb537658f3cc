//go:build peers

package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"kctl/admin"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

// TestPeerWatchZnodes watches a subtree of Apache ZooKeeper while it is made, changed and removed.
func TestPeerWatchZnodes(t *testing.T) {
	c := patientPeer(t)
	hand, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: os.Getenv("KCTL_PEER_ZOOKEEPER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hand.Close() })
	root := "/kctl-watch-" + time.Now().Format("150405.000")
	ops := []zkop.Request{
		{Kind: zkop.Create, Path: root}, {Kind: zkop.Create, Path: root + "/a", Data: []byte("1")}, {Kind: zkop.Set, Path: root + "/a", Data: []byte("2"), Version: 0},
		{Kind: zkop.Delete, Path: root + "/a", Version: zkop.AnyVersion}, {Kind: zkop.Delete, Path: root, Version: zkop.AnyVersion},
	}
	t.Cleanup(func() {
		for _, p := range []string{root + "/a", root} {
			hand.Do(context.WithoutCancel(t.Context()), zkutil.AnySession, zkop.Request{Kind: zkop.Delete, Path: p, Version: zkop.AnyVersion})
		}
	})
	var got []string
	enough := errors.New("enough")
	next := func() error { // one change at a time, so that each is seen
		if len(ops) == 0 {
			return enough
		}
		r := hand.Do(t.Context(), zkutil.AnySession, ops[0])[0]
		ops = ops[1:]
		return r.Err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var begin error
	err = c.WatchZnodes(ctx, admin.ZnodeWatchOptions{
		Paths: []string{root}, Recursive: true,
		Armed: func(int) { begin = next() },
		Gap:   func(why string) { t.Log(why) },
		Changed: func(e admin.ZnodeEvent) error {
			got = append(got, fmt.Sprintf("%s %s", e.Event, e.Path[len(root):]))
			return next()
		},
	})
	want := []string{"created ", "created /a", "changed /a", "deleted /a", "deleted "}
	if begin != nil || !errors.Is(err, enough) || !slices.Equal(got, want) {
		t.Errorf("%v, %v: %q, want %q", begin, err, got, want)
	}
}
