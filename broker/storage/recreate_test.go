package storage

import (
	"fmt"
	"testing"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// formerLog leaves a deleted log of which all checkpoints of its directory still speak.
func formerLog(t *testing.T) (*vfs.Mem, *Manager, *clock) {
	t.Helper()
	fs, m, l, c := newTestLog(t)
	for i := range 20 {
		mustAppend(t, l, batch(t, 3, int64(i)), 1)
	}
	l.SetHighWatermark(60)
	must(t, l.Flush())
	must(t, l.AdvanceLogStart(50))
	must(t, m.Housekeep(c.now()))
	must(t, m.CheckpointRecoveryPoints())
	must(t, m.CheckpointHighWatermarks(map[cluster.TopicPartition]int64{testTP: 60}))
	for _, name := range []string{fileRecovery, fileLogStart, fileHW} {
		if text := fileText(t, fs, "/data/"+name); text == "" || text == "0\n0\n" {
			t.Fatalf("%s holds %q", name, text)
		}
	}
	must(t, m.Delete(testTP))
	return fs, m, c
}

// TestRecreatedLogInheritsNothing: a topic is deleted and made anew before the checkpoints are written again. What they say
// of the former log must not count for the new one, whatever happens next: not its start, its high watermark or how much
// of it is durable.
func TestRecreatedLogInheritsNothing(t *testing.T) {
	fs, m, c := formerLog(t)
	l, err := m.Create(testTP, cluster.TopicID{9}, smallConfig())
	must(t, err)
	if hw, ok := m.HighWatermark(testTP); ok && hw > 0 {
		t.Errorf("the high watermark of the former log, %d, counts for the new one", hw)
	}
	for i := range 10 {
		mustAppend(t, l, batch(t, 3, int64(i)), 1)
	}
	killed := openMem(t, fs.CrashClone(vfs.KeepUnsynced, 1), c, nil)
	l, ok := killed.Log(testTP)
	if !ok || l.LogStartOffset() != 0 || l.LogEndOffset() != 30 || l.HighWatermark() != 0 {
		t.Fatalf("after a kill: start %d, end %d, high watermark %d", l.LogStartOffset(), l.LogEndOffset(), l.HighWatermark())
	}
	checkLog(t, l)
	for seed := range uint64(50) {
		crashed := openMem(t, fs.CrashClone(vfs.MixUnsynced, seed), c, nil)
		if d := crashed.Dirs(); !d[0].Online() {
			t.Fatalf("seed %d: the directory is offline: %v", seed, d[0].Err)
		}
		if l, ok := crashed.Log(testTP); ok {
			if l.LogStartOffset() != 0 || l.LogEndOffset() > 30 || l.HighWatermark() != 0 {
				t.Fatalf("seed %d: start %d, end %d, high watermark %d", seed, l.LogStartOffset(), l.LogEndOffset(), l.HighWatermark())
			}
			checkLog(t, l)
		}
		must(t, crashed.Close())
	}
}

// TestRecreatedElsewhere: the new log is in another directory than the former one.
func TestRecreatedElsewhere(t *testing.T) {
	fs, m, c := formerLog(t)
	fs = fs.CrashClone(vfs.KeepUnsynced, 1)
	_ = m
	m, err := OpenManager(fs, []string{"/data", "/other"}, testOptions(c, nil))
	must(t, err)
	must(t, writeAtomic(fs, "/data/"+fileHW, fmt.Appendf(nil, "0\n1\n%s %d 60\n", testTP.Topic, testTP.Partition), true))
	must(t, m.Close())
	m, err = OpenManager(fs, []string{"/data", "/other"}, testOptions(c, nil))
	must(t, err)
	must(t, m.Prefer(testTP, "/other"))
	l, err := m.Create(testTP, cluster.TopicID{9}, smallConfig())
	must(t, err)
	mustAppend(t, l, batch(t, 3, 1), 1)
	killed, err := OpenManager(fs.CrashClone(vfs.KeepUnsynced, 1), []string{"/data", "/other"}, testOptions(c, nil))
	must(t, err)
	if hw, ok := killed.HighWatermark(testTP); ok && hw > 0 {
		t.Errorf("the high watermark of the former log, %d, counts for the new one", hw)
	}
	if l, ok := killed.Log(testTP); !ok || l.HighWatermark() != 0 || l.LogEndOffset() != 3 {
		t.Fatalf("%+v", l)
	}
}

// TestMovedLogInheritsNothing: the same for a log that moves to a directory in which the partition had one before.
func TestMovedLogInheritsNothing(t *testing.T) {
	fs, m, c := formerLog(t)
	must(t, m.Close())
	open := func(fs *vfs.Mem) *Manager {
		m, err := OpenManager(fs, []string{"/data", "/other"}, testOptions(c, nil))
		must(t, err)
		return m
	}
	// As formerLog left them: a clean stop has written them anew.
	former := fmt.Appendf(nil, "0\n1\n%s %d 55\n", testTP.Topic, testTP.Partition)
	for _, name := range []string{fileRecovery, fileLogStart, fileHW} {
		must(t, writeAtomic(fs, "/data/"+name, former, true))
	}
	m = open(fs)
	must(t, m.Prefer(testTP, "/other"))
	l, err := m.Create(testTP, cluster.TopicID{9}, smallConfig())
	must(t, err)
	mustAppend(t, l, batch(t, 3, 1), 1)
	_, err = m.CreateFuture(testTP, "/data")
	must(t, err)
	next := copyAll(t, m, l)
	for i := range 10 {
		mustAppend(t, next, batch(t, 3, int64(i)), 1)
	}
	for seed := range uint64(50) {
		crashed := open(fs.CrashClone(vfs.MixUnsynced, seed))
		for _, d := range crashed.Dirs() {
			if !d.Online() {
				t.Fatalf("seed %d: %s is offline: %v", seed, d.Path, d.Err)
			}
		}
		if l, ok := crashed.Log(testTP); !ok || l.LogStartOffset() != 0 || l.LogEndOffset() < 3 || l.LogEndOffset() > 33 || l.HighWatermark() != 0 {
			t.Fatalf("seed %d: start %d, end %d, high watermark %d", seed, l.LogStartOffset(), l.LogEndOffset(), l.HighWatermark())
		}
		must(t, crashed.Close())
	}
}

// copyAll copies what the log holds into its future log and swaps them.
func copyAll(t *testing.T, m *Manager, l *Log) *Log {
	t.Helper()
	future, ok := m.Future(l.TopicPartition())
	if !ok {
		t.Fatal("no future log")
	}
	for future.LogEndOffset() < l.LogEndOffset() {
		s, err := l.Read(future.LogEndOffset(), 1<<20, l.LogEndOffset(), true)
		must(t, err)
		data := make([]byte, s.Size())
		_, err = s.ReadInto(data)
		must(t, err)
		s.Release()
		_, err = future.AppendAsFollower(data)
		must(t, err)
	}
	next, err := m.Promote(l.TopicPartition())
	must(t, err)
	return next
}
