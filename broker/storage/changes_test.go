package storage

import (
	"sync"
	"testing"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// TestAHungSwapHoldsBackItsPartitionOnly: a directory does not answer in the middle of a swap. Logs of other partitions are
// made, moved, put aside and deleted in the other directories meanwhile; what is asked of the partition itself waits.
func TestAHungSwapHoldsBackItsPartitionOnly(t *testing.T) {
	fs := vfs.NewMem(nil)
	m, err := OpenManager(fs, []string{"/a", "/b", "/c"}, testOptions(&clock{ms: 1}, nil))
	must(t, err)
	make1 := func(topic, dir string) (cluster.TopicPartition, *Log) {
		t.Helper()
		tp := cluster.TopicPartition{Topic: topic}
		must(t, m.Prefer(tp, dir))
		l, err := m.Create(tp, testID, smallConfig())
		must(t, err)
		mustAppend(t, l, batch(t, 3, 1), 1)
		if l.Dir() != dir {
			t.Fatalf("%s is in %s", tp, l.Dir())
		}
		return tp, l
	}
	stuck, l := make1("stuck", "/a")
	_, err = m.CreateFuture(stuck, "/b")
	must(t, err)
	hangs, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs.SetHook(func(op vfs.Op, name string) {
		if op == vfs.OpSyncDir && name == "/a" {
			once.Do(func() { close(hangs) })
			<-answer
		}
	})
	promoted := make(chan *Log, 1)
	go func() { defer close(promoted); promoted <- copyAll(t, m, l) }()
	<-hangs
	asked := make(chan error, 1)
	go func() { asked <- m.Delete(stuck) }()

	moved, other := make1("moved", "/b")
	_, err = m.CreateFuture(moved, "/c")
	must(t, err)
	if next := copyAll(t, m, other); next.Dir() != "/c" {
		t.Errorf("moved to %s", next.Dir())
	}
	deleted, _ := make1("deleted", "/c")
	must(t, m.Delete(deleted))
	aside, _ := make1("aside", "/b")
	must(t, m.Stray(aside))
	select {
	case err := <-asked:
		t.Errorf("deleted in the middle of its swap: %v", err)
	default:
	}

	close(answer)
	if next := <-promoted; next == nil || next.Dir() != "/b" || next.LogEndOffset() != 3 {
		t.Errorf("%+v", next)
	}
	must(t, <-asked)
	if _, ok := m.Log(stuck); ok {
		t.Error("the log is still there")
	}
	if len(m.changes.held) != 0 {
		t.Errorf("%d turns are not forgotten", len(m.changes.held))
	}
	must(t, m.Close())
}

// TestLogsMadeAtOnceAreSpread: the choice of a directory counts the logs that are being made.
func TestLogsMadeAtOnceAreSpread(t *testing.T) {
	m, err := OpenManager(vfs.NewMem(nil), []string{"/a", "/b"}, testOptions(&clock{ms: 1}, nil))
	must(t, err)
	var all sync.WaitGroup
	for p := range int32(100) {
		all.Go(func() {
			for range 2 { // the second finds the first's
				if _, err := m.Create(cluster.TopicPartition{Topic: "t", Partition: p}, testID, smallConfig()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, d := range m.Dirs() {
		if d.Logs != 50 {
			t.Errorf("%d logs in %s", d.Logs, d.Path)
		}
	}
	must(t, m.Close())
}
