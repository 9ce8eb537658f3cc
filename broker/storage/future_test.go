package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// mover is a broker with two directories whose replica moves.
type mover struct {
	t    *testing.T
	c    *clock
	fs   *vfs.Mem
	next uint64
}

func newMover(t *testing.T) *mover {
	v := &mover{t: t, c: &clock{ms: 1_000_000}}
	v.fs = vfs.NewMem(func() int64 { return v.c.ms })
	for _, d := range []string{"/a", "/b"} {
		must(t, v.fs.MkdirAll(d))
	}
	must(t, v.fs.SyncDir("/"))
	return v
}

func (v *mover) open(fs vfs.FS) *Manager {
	v.t.Helper()
	o := testOptions(v.c, nil)
	o.Random = func(p []byte) {
		v.next++
		binary.BigEndian.PutUint64(p, v.next)
	}
	m, err := OpenManager(fs, []string{"/a", "/b"}, o)
	must(v.t, err)
	return m
}

// copyAll makes the future log level.
func (v *mover) copyAll(m *Manager) {
	v.t.Helper()
	log, _ := m.Log(testTP)
	future, _ := m.Future(testTP)
	if future.LogEndOffset() < log.LogStartOffset() {
		must(v.t, future.TruncateFullyAndStartAt(log.LogStartOffset()))
	}
	for future.LogEndOffset() < log.LogEndOffset() {
		s, err := log.Read(future.LogEndOffset(), 300, math.MaxInt64, true)
		must(v.t, err)
		data := make([]byte, s.Size())
		_, err = s.ReadInto(data)
		must(v.t, err)
		s.Release()
		_, err = future.AppendAsFollower(data)
		must(v.t, err)
	}
}

func (v *mover) folders(fs vfs.FS, dir string) (names []string) {
	v.t.Helper()
	entries, err := fs.List(dir)
	must(v.t, err)
	for _, e := range entries {
		if e.IsDir {
			names = append(names, e.Name)
		}
	}
	return names
}

// fill makes the replica in /a with records, a log start above its first segment and an epoch without records.
func (v *mover) fill(m *Manager) *Log {
	v.t.Helper()
	must(v.t, m.Prefer(testTP, "/a"))
	l, err := m.Create(testTP, testID, smallConfig())
	must(v.t, err)
	for i := range 30 {
		mustAppend(v.t, l, batch(v.t, 3, v.c.ms, withProducer(7, 0, int32(3*i))), cluster.LeaderEpoch(i/10))
	}
	l.SetHighWatermark(l.LogEndOffset())
	must(v.t, l.AdvanceLogStart(9))
	must(v.t, l.AssignEpochStart(9, l.LogEndOffset()))
	must(v.t, l.Flush())
	return l
}

func TestMoveToAnotherDirectory(t *testing.T) {
	v := newMover(t)
	m := v.open(v.fs)
	l := v.fill(m)
	if l.Dir() != "/a" {
		t.Fatalf("made in %s, not where it was to be", l.Dir())
	}
	want := readAllBytes(t, l, math.MaxInt64)
	if _, err := m.Promote(testTP); !errors.Is(err, ErrNoFuture) {
		t.Fatal(err)
	}
	if _, err := m.CreateFuture(testTP, "/c"); !errors.Is(err, ErrNoDir) {
		t.Fatal(err)
	}
	future, err := m.CreateFuture(testTP, "/b")
	must(t, err)
	if again, err := m.CreateFuture(testTP, "/b"); err != nil || again != future {
		t.Fatal("a second call makes another one")
	}
	if _, err := m.Promote(testTP); !errors.Is(err, ErrUnexpectedOffset) {
		t.Fatal(err)
	}
	v.copyAll(m)
	moved, err := m.Promote(testTP)
	must(t, err)
	check := func(m *Manager, latest cluster.LeaderEpoch) {
		t.Helper()
		l, ok := m.Log(testTP)
		if !ok || l.Dir() != "/b" || l.LogStartOffset() != 9 || l.HighWatermark() != 90 || l.TopicID() != testID {
			t.Fatalf("%v %s start %d hw %d", ok, l.Dir(), l.LogStartOffset(), l.HighWatermark())
		}
		if epoch, _ := l.LatestEpoch(); epoch != latest {
			t.Errorf("latest epoch %d", epoch)
		}
		if hw, ok := m.HighWatermark(testTP); !ok || hw != 90 {
			t.Errorf("high watermark %d %v", hw, ok)
		}
		if !bytes.Equal(readAllBytes(t, l, math.MaxInt64), want) {
			t.Error("the records differ")
		}
		if p := l.ActiveProducers(); len(p) != 1 || p[0].LastSequence != 89 {
			t.Errorf("producers %+v", p)
		}
		checkLog(t, l)
	}
	check(m, 9)
	if now, _ := m.Log(testTP); now != moved {
		t.Error("another log")
	}
	if _, err := l.AppendAsLeader(batch(t, 1, 1), 9, AppendOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("the old log takes records: %v", err)
	}
	must(t, m.Housekeep(v.c.now()))
	if f := v.folders(v.fs, "/a"); len(f) != 0 {
		t.Errorf("left in /a: %v", f)
	}
	must(t, m.Close())
	m = v.open(v.fs)
	check(m, 2) // an epoch without records does not outlive a restart
	must(t, m.Close())
}

// TestMoveSurvivesCrashes: at every operation of a move, of its end and of a deletion while it is under way, the
// machine or the process stops. The replica is there once with all that was durable, or deleted.
func TestMoveSurvivesCrashes(t *testing.T) {
	crashes, moved := 0, 0
	for _, keep := range []vfs.Unsynced{vfs.KeepUnsynced, vfs.DropUnsynced, vfs.MixUnsynced} {
		v := newMover(t)
		m := v.open(v.fs)
		want := readAllBytes(t, v.fill(m), math.MaxInt64)
		must(t, m.CheckpointHighWatermarks(map[cluster.TopicPartition]int64{testTP: 90}))
		must(t, m.CheckpointLogStartOffsets())
		v.fs.SetHook(func(vfs.Op, string) {
			crashes++
			fs := v.fs.CrashClone(keep, uint64(crashes))
			m := v.open(fs)
			l, ok := m.Log(testTP)
			if !ok || l.LogStartOffset() != 9 || !bytes.Equal(readAllBytes(t, l, math.MaxInt64), want) {
				t.Fatalf("crash %d: the replica is not what it was: %v", crashes, ok)
			}
			if hw, ok := m.HighWatermark(testTP); !ok || hw != 90 {
				t.Fatalf("crash %d: high watermark %d %v", crashes, hw, ok)
			}
			if l.Dir() == "/b" {
				moved++
				if _, ok := m.Future(testTP); ok {
					t.Fatalf("crash %d: moved and moving", crashes)
				}
			}
			if _, ok := m.Future(testTP); ok {
				v.copyAll(m)
				if _, err := m.Promote(testTP); err != nil {
					t.Fatalf("crash %d: the move cannot go on: %v", crashes, err)
				}
			}
			must(t, m.Housekeep(v.c.now()))
			if n := len(v.folders(fs, "/a")) + len(v.folders(fs, "/b")); n != 1 {
				t.Fatalf("crash %d: %v and %v are left", crashes, v.folders(fs, "/a"), v.folders(fs, "/b"))
			}
			must(t, m.Close())
		})
		_, err := m.CreateFuture(testTP, "/b")
		must(t, err)
		v.copyAll(m)
		_, err = m.Promote(testTP)
		must(t, err)
		v.fs.SetHook(nil)
	}
	if crashes < 60 || moved == 0 {
		t.Errorf("%d crashes, %d of them after the swap", crashes, moved)
	}
}

// TestDeletedWhileMoving: no crash brings a deleted replica back as half of its copy.
func TestDeletedWhileMoving(t *testing.T) {
	for _, stray := range []bool{false, true} {
		v := newMover(t)
		m := v.open(v.fs)
		v.fill(m)
		_, err := m.CreateFuture(testTP, "/b")
		must(t, err)
		v.fs.SetHook(func(vfs.Op, string) {
			for keep := range 3 {
				m := v.open(v.fs.CrashClone([]vfs.Unsynced{vfs.KeepUnsynced, vfs.DropUnsynced, vfs.MixUnsynced}[keep], 1))
				if l, ok := m.Log(testTP); ok && (l.Dir() != "/a" || l.LogEndOffset() != 90) {
					t.Fatalf("the copy came back: %s, end %d", l.Dir(), l.LogEndOffset())
				}
				must(t, m.Close())
			}
		})
		if stray {
			must(t, m.Stray(testTP))
		} else {
			must(t, m.Delete(testTP))
		}
		v.fs.SetHook(nil)
		if _, ok := m.Future(testTP); ok {
			t.Error("the copy is still there")
		}
		must(t, m.Close())
	}
}

// TestMoveCancelledAndFailed: a move ends with its copy deleted; when the directory fails, the replica goes on.
func TestMoveCancelledAndFailed(t *testing.T) {
	v := newMover(t)
	m := v.open(v.fs)
	l := v.fill(m)
	_, err := m.CreateFuture(testTP, "/b")
	must(t, err)
	must(t, m.DeleteFuture(testTP))
	must(t, m.DeleteFuture(testTP))
	must(t, m.Housekeep(v.c.now()))
	if f := v.folders(v.fs, "/b"); len(f) != 0 {
		t.Errorf("left in /b: %v", f)
	}
	_, err = m.CreateFuture(testTP, "/b")
	must(t, err)
	if gone := m.MarkOffline("/b", errors.New("disk")); len(gone) != 0 {
		t.Errorf("%v went with the other directory", gone)
	}
	if _, ok := m.Future(testTP); ok || l.Failed() != nil {
		t.Error("the copy outlived its directory")
	}
	mustAppend(t, l, batch(t, 1, v.c.ms), 9)
	if err := m.Prefer(testTP, "/b"); !errors.Is(err, ErrOffline) {
		t.Error(err)
	}
	if _, err := m.CreateFuture(cluster.TopicPartition{Topic: "none"}, "/a"); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	must(t, m.Close())
}

func TestFutureFolderNames(t *testing.T) {
	for name, want := range map[string]string{
		"t-0.0123abcd-future": "t-0", "a.b-c-12.ffff-future": "a.b-c-12", "t-0-future": "", "t-x.ff-future": "", ".ff-future": "", "t-0.ff-delete": "",
	} {
		tp, ok := parseFuture(name)
		if ok != (want != "") || ok && tp.String() != want {
			t.Errorf("%s is %s %v", name, tp, ok)
		}
	}
	v := newMover(t)
	m := v.open(v.fs)
	long := cluster.TopicPartition{Topic: string(bytes.Repeat([]byte("x"), 240))}
	_, err := m.Create(long, testID, smallConfig())
	must(t, err)
	l, _ := m.Log(long)
	other := map[string]string{"/a": "/b", "/b": "/a"}[l.Dir()]
	if _, err := m.CreateFuture(long, other); !errors.Is(err, kerr.InvalidTopicException) {
		t.Error(err)
	}
	must(t, m.Close())
}
