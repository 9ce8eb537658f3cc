package logexec

import (
	"bytes"
	"errors"
	"testing"

	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

func other(log *storage.Log) string {
	if log.Dir() == "/a" {
		return "/b"
	}
	return "/a"
}

func whole(t *testing.T, log *storage.Log) []byte {
	t.Helper()
	s, err := log.Read(log.LogStartOffset(), 1<<20, log.LogEndOffset(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	data := make([]byte, s.Size())
	if _, err := s.ReadInto(data); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestMoveFollowsTruncations: what a change of leaders cuts off the log is cut off its copy, whether the log has grown
// beyond it again or not; above the high watermark too, and down to nothing.
func TestMoveFollowsTruncations(t *testing.T) {
	for _, to := range []int64{9, 5, 0} {
		for _, again := range []int{0, 1, 30} {
			m := open(t, mem(), "/a", "/b")
			log := create(t, m)
			for range 2 {
				lead(t, log, 1, 5)
			}
			lead(t, log, 3, 5) // a batch of its own
			log.SetHighWatermark(min(to, 5))
			future, err := SetMove(m, log, other(log))
			if err != nil || future == nil {
				t.Fatal(err)
			}
			var buf []byte
			for n := 1; n > 0; {
				if n, err = CopyMove(log, future, log.LogEndOffset(), 100, &buf); err != nil {
					t.Fatal(err)
				}
			}
			if future.LogEndOffset() != 15 {
				t.Fatalf("copied to %d", future.LogEndOffset())
			}
			if _, _, err := Execute(log, replica.TruncateTo{Offset: to}, now); err != nil {
				t.Fatal(err)
			}
			for range again {
				lead(t, log, 4, 1)
			}
			want := whole(t, log)
			next := (*storage.Log)(nil)
			for steps := 0; next == nil; steps++ {
				if steps == 100 {
					t.Fatalf("cut at %d, %d records since: the move does not end", to, again)
				}
				if next, _, err = FinishMove(m, log, future, 100, 4, &buf); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(want, whole(t, next)) || next.LogEndOffset() != log.LogEndOffset() || LastEpoch(next) != LastEpoch(log) {
				t.Errorf("cut at %d, %d records since: the records differ, end %d and %d", to, again, next.LogEndOffset(), log.LogEndOffset())
			}
		}
	}
}

// TestMoveBeginsTurnsAndEnds: the directory in which the replica is ends a move; none begins while one is offline.
func TestMoveBeginsTurnsAndEnds(t *testing.T) {
	m := open(t, mem(), "/a", "/b", "/c")
	log := create(t, m)
	lead(t, log, 1, 5)
	to := other(log)
	for _, dir := range []string{to, "/c", to} {
		if future, err := SetMove(m, log, dir); err != nil || future == nil || future.Dir() != dir {
			t.Fatalf("to %s: %v %v", dir, future, err)
		}
		if l, ok := LaneOf(m, tp); !ok || l != (Lane{log.Dir(), dir}) {
			t.Errorf("lane %+v %v", l, ok)
		}
	}
	if future, err := SetMove(m, log, log.Dir()); future != nil || err != nil {
		t.Fatal(future, err)
	}
	if _, ok := LaneOf(m, tp); ok {
		t.Error("it still moves")
	}
	if _, err := SetMove(m, log, "/nowhere"); !errors.Is(err, storage.ErrNoDir) {
		t.Error(err)
	}
	m.MarkOffline("/c", errors.New("dead disk"))
	if _, err := SetMove(m, log, to); !errors.Is(err, storage.ErrOffline) {
		t.Error(err)
	}
}

// TestMoveOfAnotherTopic: a copy of the topic's namesake is no beginning.
func TestMoveOfAnotherTopic(t *testing.T) {
	fs := mem()
	m := open(t, fs, "/a", "/b")
	log := create(t, m)
	lead(t, log, 1, 5)
	to := other(log)
	if _, err := SetMove(m, log, to); err != nil {
		t.Fatal(err)
	}
	m.MarkOffline(to, errors.New("dead disk"))
	if err := m.Delete(tp); err != nil {
		t.Fatal(err)
	}
	log, _, err := Open(m, tp, storage.DefaultConfig(), replica.OpenLog{TopicID: cluster.TopicID{9}, IsNew: true}, now)
	if err != nil {
		t.Fatal(err)
	}
	lead(t, log, 1, 1)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = open(t, fs.CrashClone(vfs.KeepUnsynced, 1), "/a", "/b")
	log, _ = m.Log(tp)
	if _, ok := m.Future(tp); !ok {
		t.Fatal("no copy was found")
	}
	if future, err := ResumeMove(m, log); future != nil || err != nil {
		t.Errorf("the move of another topic goes on: %v", err)
	}
	if _, ok := m.Future(tp); ok {
		t.Error("its copy is still there")
	}
}

// TestWhoseFaultItIs: the directory that failed is named, be it read or written.
func TestWhoseFaultItIs(t *testing.T) {
	for _, of := range []string{"log", "future"} {
		fs := mem()
		m := open(t, fs, "/a", "/b")
		log := create(t, m)
		lead(t, log, 1, 5)
		future, err := SetMove(m, log, other(log))
		if err != nil {
			t.Fatal(err)
		}
		dir := map[string]string{"log": log.Dir(), "future": future.Dir()}[of]
		fs.Inject(vfs.Rule{Pattern: dir + "/*/*", Err: errors.New("input/output error")})
		var buf []byte
		_, err = CopyMove(log, future, log.LogEndOffset(), 100, &buf)
		if me, ok := errors.AsType[*MoveError](err); !ok || me.Dir != dir || me.Spoil {
			t.Errorf("%s: %v", of, err)
		}
		if LostInMove(m, log) {
			t.Errorf("%s: the log is lost", of)
		}
	}
}
