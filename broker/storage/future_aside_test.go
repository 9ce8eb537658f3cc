package storage

import (
	"errors"
	"math"
	"strings"
	"testing"

	"kctl/broker/vfs"
)

// TestCopyOfADeletedReplica: a replica is deleted while the directory of its half copy cannot be seen. When that is back,
// the copy does not become the replica; nor does one whose replica's disk was replaced. It is kept for whoever wants it.
func TestCopyOfADeletedReplica(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		v := newMover(t)
		m := v.open(v.fs)
		v.fill(m)
		_, err := m.CreateFuture(testTP, "/b")
		must(t, err)
		m.MarkOffline("/b", errors.New("disk"))
		if !replaced {
			must(t, m.Delete(testTP))
		}
		must(t, m.Close())
		if replaced {
			must(t, v.fs.RemoveAll("/a"))
		}
		m = v.open(v.fs.CrashClone(vfs.KeepUnsynced, 1))
		if l, ok := m.Log(testTP); ok {
			t.Errorf("replaced %v: the copy is the replica, end %d", replaced, l.LogEndOffset())
		}
		if _, ok := m.Future(testTP); ok {
			t.Errorf("replaced %v: the copy is a move", replaced)
		}
		if f := v.folders(m.fs, "/b"); len(f) != 1 || !strings.HasSuffix(f[0], dirStray) {
			t.Errorf("replaced %v: left in /b: %v", replaced, f)
		}
		must(t, m.Close())
	}
}

// TestSwapThatFails at each of its operations, in either directory: the replica takes no record until the next start,
// unless nothing has happened to it yet, and that finds all of it, once.
func TestSwapThatFails(t *testing.T) {
	failed, lost := 0, 0
	for skip := range 12 {
		for _, pattern := range []string{"/a", "/a/*", "/a/*/*", "/b", "/b/*", "/b/*/*"} {
			f, l := swapFails(t, pattern, skip)
			failed, lost = failed+f, lost+l
		}
	}
	if failed < 10 || lost < 3 {
		t.Errorf("%d swaps failed, %d of them half-way", failed, lost)
	}
}

func swapFails(t *testing.T, pattern string, skip int) (failed, lost int) {
	t.Helper()
	v := newMover(t)
	m := v.open(v.fs)
	l := v.fill(m)
	must(t, m.CheckpointLogStartOffsets())
	want := readAllBytes(t, l, math.MaxInt64)
	_, err := m.CreateFuture(testTP, "/b")
	must(t, err)
	v.copyAll(m)
	v.fs.Inject(vfs.Rule{Pattern: pattern, Skip: skip, Err: errors.New("input/output error")})
	_, err = m.Promote(testTP)
	v.fs.ClearFaults()
	if err != nil {
		failed = 1
		if !errors.Is(err, ErrStorage) {
			t.Fatalf("%s after %d: %v", pattern, skip, err)
		}
		if now, ok := m.Log(testTP); !ok || now != l {
			lost = 1
		}
		m.MarkOffline(pattern[:2], err)
		if now, ok := m.Log(testTP); ok && now != l {
			t.Fatalf("%s after %d: the replica goes on in %s", pattern, skip, now.Dir())
		}
	}
	must(t, m.Close())
	m = v.open(v.fs.CrashClone(vfs.KeepUnsynced, 1))
	now, ok := m.Log(testTP)
	if !ok || string(readAllBytes(t, now, math.MaxInt64)) != string(want) {
		t.Fatalf("%s after %d: the replica is not what it was: %v", pattern, skip, ok)
	}
	must(t, m.Close())
	return failed, lost
}
