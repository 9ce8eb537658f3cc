package replicashell

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"kctl/broker/replica"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// inDirs makes led partitions with some records, each in the directory that is named.
func (b *broker) inDirs(t *testing.T, l *lab, dirs ...string) (tps []cluster.TopicPartition) {
	t.Helper()
	for i, dir := range dirs {
		tp := cluster.TopicPartition{Topic: fmt.Sprintf("t%d", i)}
		if code := b.move(tp, dir); code != 9 {
			t.Fatalf("no replica yet: %d", code)
		}
		l.decide(tp, 1, ids(1), ids(1))
		for range 5 {
			b.produce(t, tp, -1, string(bytes.Repeat([]byte("x"), 1<<16)), 1)
		}
		if got := b.dirOf(tp); got != dir {
			t.Fatalf("%s is in %s", tp, got)
		}
		tps = append(tps, tp)
	}
	return tps
}

// TestADeadDirectoryHoldsBackItsOwnMovesOnly: a directory answers nothing any more, neither when it is written to nor
// when it is read. Moves between the others come to their end, back and forth, and those of the dead one when it answers.
func TestADeadDirectoryHoldsBackItsOwnMovesOnly(t *testing.T) {
	l := newLabDirs(t, 1, "/a", "/b", "/c")
	b := l.brokers[1]
	tps := b.inDirs(t, l, "/a", "/a", "/b")
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	stuck := make(chan struct{}, 100)
	b.fs.SetHook(func(_ vfs.Op, name string) {
		if strings.HasPrefix(name, "/c/") && strings.HasSuffix(name, ".log") {
			select {
			case stuck <- struct{}{}:
			default:
			}
			<-answer
		}
	})
	if code := b.move(tps[0], "/c"); code != 0 {
		t.Fatal(code)
	}
	<-stuck
	for _, to := range []string{"/b", "/a", "/b"} {
		if code := b.move(tps[1], to); code != 0 {
			t.Fatal(code)
		}
		eventually(t, "the replica is in "+to, func() bool { return b.dirOf(tps[1]) == to })
	}
	if code := b.move(tps[2], "/a"); code != 0 {
		t.Fatal(code)
	}
	eventually(t, "the other way goes too", func() bool { return b.dirOf(tps[2]) == "/a" })
	if r := b.produce(t, tps[0], -1, "still taken", 1); r.Err != 0 || b.dirOf(tps[0]) != "/a" {
		t.Errorf("%+v in %s", r, b.dirOf(tps[0]))
	}
	want := b.contents(t, tps[0])
	release()
	eventually(t, "the directory answers, the move ends", func() bool { return b.dirOf(tps[0]) == "/c" })
	if !bytes.Equal(want, b.contents(t, tps[0])) {
		t.Error("the records differ")
	}
	eventually(t, "lanes without moves are gone", func() bool {
		b.m.moves.mu.Lock()
		defer b.m.moves.mu.Unlock()
		return len(b.m.moves.lanes) == 0
	})
}

// TestLanesShareOneThrottle: moves between two pairs of directories together copy what the bound allows, not each.
func TestLanesShareOneThrottle(t *testing.T) {
	l := newLabDirs(t, 1, "/a", "/b", "/c")
	l.tune = func(o *Options) { o.Throttles = func() Throttles { return Throttles{math.MaxInt64, math.MaxInt64, 1} } }
	l.stop(1)
	b := l.start(1, l.brokers[1].fs)
	tps := b.inDirs(t, l, "/a", "/a")
	for range 40 {
		for _, tp := range tps {
			b.produce(t, tp, -1, string(bytes.Repeat([]byte("x"), 1<<16)), 1)
		}
	}
	for i, to := range []string{"/b", "/c"} {
		if code := b.move(tps[i], to); code != 0 {
			t.Fatal(code)
		}
	}
	copied := func() (n int64) {
		for _, f := range b.store.Futures() {
			n += f.Size()
		}
		return n
	}
	eventually(t, "something is copied", func() bool { return copied() > 0 })
	if !b.m.throttles.moves.exceeded(b.m.opts.Now()) {
		t.Fatal("the bound is not reached")
	}
	// Both lanes may have looked before the first chunk was counted; more than a chunk each is too much.
	if n := copied(); n > 2*(moveChunk+1<<17) {
		t.Errorf("%d bytes are copied", n)
	}
	b.m.opts.Throttles = func() Throttles { return Unthrottled }
	b.m.ThrottlesChanged()
	eventually(t, "both are done", func() bool { return b.dirOf(tps[0]) == "/b" && b.dirOf(tps[1]) == "/c" })
}

// TestSwapFailsHalfWay: the directory of the old log fails at the very swap. The replica goes offline at once instead of
// refusing records without a word; after a restart it is there, once, with all of them.
func TestSwapFailsHalfWay(t *testing.T) {
	l := newLabDirs(t, 1, "/a", "/b")
	b := l.brokers[1]
	tps := b.inDirs(t, l, "/a", "/b")
	want := b.contents(t, tps[0])
	b.fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpSyncDir}, Pattern: "/a", Err: errors.New("input/output error")})
	if code := b.move(tps[0], "/b"); code != 0 {
		t.Fatal(code)
	}
	eventually(t, "the replica is offline", func() bool { return b.info(t, tps[0]).Role == replica.Offline })
	if r := b.produce(t, tps[0], -1, "refused", 1); r.Err != 56 {
		t.Errorf("%+v", r)
	}
	if r := b.produce(t, tps[1], -1, "taken", 1); r.Err != 0 {
		t.Errorf("the other directory: %+v", r)
	}
	l.stop(1)
	b.fs.ClearFaults()
	b = l.start(1, b.fs.CrashClone(vfs.KeepUnsynced, 1))
	l.decide(tps[0], 1, ids(1), ids(1))
	eventually(t, "the move is done", func() bool { return b.dirOf(tps[0]) == "/b" })
	if !bytes.Equal(want, b.contents(t, tps[0])) {
		t.Error("the records differ")
	}
	if _, moving := b.store.Future(tps[0]); moving {
		t.Error("and it moves again")
	}
}
