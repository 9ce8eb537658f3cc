package storage

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

func fileText(t testing.TB, fs vfs.FS, name string) string {
	t.Helper()
	data, err := readAll(fs, name)
	must(t, err)
	return string(data)
}

func names(t testing.TB, fs vfs.FS, dir string) string {
	t.Helper()
	entries, err := fs.List(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func TestCreateIsFewCallsAndIdempotent(t *testing.T) {
	fs := vfs.NewMem(nil)
	m := openMem(t, fs, &clock{}, nil)
	var ops []string
	fs.SetHook(func(op vfs.Op, name string) { ops = append(ops, string(op)+" "+path.Base(name)) })
	l, err := m.Create(testTP, testID, smallConfig())
	must(t, err)
	if got := strings.Join(ops, ", "); got != "mkdir t-0, create partition.metadata, write partition.metadata" {
		t.Fatalf("creating a log: %s", got)
	}
	fs.SetHook(nil)
	again, err := m.Create(testTP, testID, DefaultConfig())
	must(t, err)
	if again != l || l.Config().SegmentBytes != 1<<30 {
		t.Fatal("second Create")
	}
	_, err = m.Create(testTP, cluster.TopicID{9}, smallConfig())
	wantErr(t, err, ErrTopicID)
	for _, bad := range []cluster.TopicPartition{{Topic: "../x"}, {Topic: ""}, {Topic: "a/b"}, {Topic: ".."}, {Topic: "t", Partition: -1}} {
		if _, err := m.Create(bad, testID, smallConfig()); err == nil {
			t.Fatalf("created %v", bad)
		}
	}
	if got := fileText(t, fs, "/data/t-0/"+filePartition); got != "version: 0\ntopic_id: "+testID.String() {
		t.Fatalf("%q", got)
	}
	plain, err := m.Create(cluster.TopicPartition{Topic: "old"}, cluster.TopicID{}, smallConfig())
	must(t, err)
	must(t, plain.SetTopicID(testID))
	if fileText(t, fs, "/data/old-0/"+filePartition) == "" || plain.TopicID() != testID {
		t.Fatal("topic id not written")
	}
}

func TestSeveralDirectories(t *testing.T) {
	fs := vfs.NewMem(nil)
	dirs := []string{"/a", "/b"}
	open := func() *Manager {
		m, err := OpenManager(fs, dirs, testOptions(&clock{}, nil))
		must(t, err)
		return m
	}
	m := open()
	for i := range 6 {
		_, err := m.Create(cluster.TopicPartition{Topic: "t", Partition: int32(i)}, testID, smallConfig())
		must(t, err)
	}
	for _, d := range m.Dirs() {
		if d.Logs != 3 || !d.Online() || d.Free <= 0 {
			t.Fatalf("%+v", d)
		}
	}
	hw := map[cluster.TopicPartition]int64{}
	for i, l := range m.Logs() {
		mustAppend(t, l, batch(t, 2, 1), 0)
		hw[l.TopicPartition()] = int64(i % 3)
	}
	must(t, m.CheckpointHighWatermarks(hw))
	must(t, m.CheckpointHighWatermarks(map[cluster.TopicPartition]int64{{Topic: "t", Partition: 0}: 2}))
	if v, ok := m.HighWatermark(cluster.TopicPartition{Topic: "t", Partition: 2}); !ok || v != 2 {
		t.Fatal("a line of the checkpoint was lost", v)
	}
	must(t, m.Close())
	m = open()
	if l, _ := m.Log(cluster.TopicPartition{Topic: "t", Partition: 1}); l.HighWatermark() != 1 || l.Dir() == m.Logs()[0].Dir() {
		t.Fatalf("high watermark %d in %s", l.HighWatermark(), l.Dir())
	}
	// One directory dies: its logs are gone, the others work, and it gets no clean mark.
	fs.Inject(vfs.Rule{Pattern: "/b/*", Err: errors.New("i/o error")})
	wantErr(t, m.Close(), ErrStorage)
	m = open()
	if d := m.Dirs(); d[0].Online() == d[1].Online() || len(m.Logs()) != 3 {
		t.Fatalf("%+v", m.Dirs())
	}
	_ = m.Close()
	fs.Inject(vfs.Rule{Pattern: "/a/*", Err: errors.New("i/o error")})
	_, err := OpenManager(fs, dirs, testOptions(&clock{}, nil))
	if err == nil {
		t.Fatal("opened without any directory")
	}
	fs.ClearFaults()
	m = open()
	if len(m.Logs()) != 6 {
		t.Fatal("logs lost")
	}
	must(t, m.Close())
}

func TestForeignDirectories(t *testing.T) {
	fs := vfs.NewMem(nil)
	m := openMem(t, fs, &clock{}, nil)
	_, err := OpenManager(fs, []string{"/data"}, testOptions(&clock{}, nil))
	wantErr(t, err, ErrLocked)
	must(t, m.Close())
	before := names(t, fs, "/data") + fileText(t, fs, "/data/"+fileMeta)
	var ops int
	fs.SetHook(func(vfs.Op, string) { ops++ })
	for name, change := range map[string]func(*ManagerOptions){
		"broker.id is 1 there, 2 here":                    func(o *ManagerOptions) { o.BrokerID = 2 },
		"cluster.id is cluster there, other cluster here": func(o *ManagerOptions) { o.ClusterID = "other cluster" },
	} {
		o := testOptions(&clock{}, nil)
		change(&o)
		_, err := OpenManager(fs, []string{"/data", "/new"}, o)
		wantErr(t, err, ErrForeign)
		if !strings.Contains(err.Error(), name) {
			t.Fatalf("error %q does not say %q", err, name)
		}
	}
	if got := names(t, fs, "/data") + fileText(t, fs, "/data/"+fileMeta); got != before || ops != 0 {
		t.Fatalf("something was changed: %d operations", ops)
	}
	fs.SetHook(nil)
	o := testOptions(&clock{}, nil)
	o.ClusterID = "" // not known yet: not checked
	m, err = OpenManager(fs, []string{"/data"}, o)
	must(t, err)
	must(t, m.Close())
	must(t, writePlain(fs, "/data/"+fileMeta, []byte("version=1\nnode.id=1\n")))
	_, err = OpenManager(fs, []string{"/data"}, testOptions(&clock{}, nil))
	wantErr(t, err, ErrMalformed)
}

func TestDeleteRenamesAndRemovesLater(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	cfg := smallConfig()
	cfg.FileDeleteDelayMs = 1000
	l.SetConfig(cfg)
	mustAppend(t, l, batch(t, 2, 1), 0)
	must(t, m.Delete(testTP))
	must(t, m.Delete(testTP))
	if _, ok := m.Log(testTP); ok {
		t.Fatal("still there")
	}
	want := "t-0.30313233343536373839616263646566-delete"
	if got := names(t, fs, "/data"); !strings.Contains(got, want) || strings.Contains(got, "t-0 ") {
		t.Fatal(got)
	}
	_, err := l.AppendAsLeader(batch(t, 1, 1), 0, AppendOptions{})
	wantErr(t, err, ErrClosed)
	wantErr(t, l.Flush(), ErrClosed)
	l, err = m.Create(testTP, testID, smallConfig())
	must(t, err)
	if l.LogEndOffset() != 0 {
		t.Fatal("old data in a new log")
	}
	must(t, m.Housekeep(c.now()))
	if !strings.Contains(names(t, fs, "/data"), want) {
		t.Fatal("removed too early")
	}
	// A restart finishes the removal, too.
	m2, err := OpenManager(fs.CrashClone(0, 0), []string{"/data"}, testOptions(c, nil))
	must(t, err)
	must(t, m2.Housekeep(c.now()))
	if got := names(t, m2.fs, "/data"); strings.Contains(got, dirDeleted) {
		t.Fatal(got)
	}
	c.ms += 1000
	must(t, m.Housekeep(c.now()))
	if got := names(t, fs, "/data"); strings.Contains(got, dirDeleted) {
		t.Fatal(got)
	}
	long := cluster.TopicPartition{Topic: strings.Repeat("x", 249)}
	if n := len(deleteFolderName(long, [16]byte{})); n != 255 {
		t.Fatalf("folder name of %d bytes", n)
	}
}

func TestFewOpenFiles(t *testing.T) {
	fs := vfs.NewMem(nil)
	o := testOptions(&clock{}, nil)
	o.OpenFiles = 5
	m, err := OpenManager(fs, []string{"/data"}, o)
	must(t, err)
	var logs []*Log
	for i := range 50 {
		l, err := m.Create(cluster.TopicPartition{Topic: "t", Partition: int32(i)}, testID, smallConfig())
		must(t, err)
		logs = append(logs, l)
	}
	for range 10 {
		for _, l := range logs {
			mustAppend(t, l, batch(t, 2, 1), 0)
		}
	}
	if n := len(m.fds.ring); n > 5 {
		t.Fatalf("%d files open", n)
	}
	for _, l := range logs {
		checkLog(t, l)
	}
	must(t, m.Close())
	must(t, m.Close())
}

// TestTooManyOpenFiles: when the system refuses to open more, idle files are closed and it goes on.
func TestTooManyOpenFiles(t *testing.T) {
	fs := vfs.NewMem(nil)
	m := openMem(t, fs, &clock{}, nil)
	var logs []*Log
	for i := range 8 {
		l, err := m.Create(cluster.TopicPartition{Topic: "t", Partition: int32(i)}, testID, smallConfig())
		must(t, err)
		mustAppend(t, l, batch(t, 2, 1), 0)
		logs = append(logs, l)
	}
	logs[0].active().file.drop()
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpOpen}, Pattern: "*.log", Err: syscall.EMFILE, Times: 2})
	mustAppend(t, logs[0], batch(t, 2, 1), 0)
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpOpen}, Pattern: "*.log", Err: syscall.EMFILE})
	logs[1].active().file.drop()
	_, err := logs[1].AppendAsLeader(batch(t, 2, 1), 0, AppendOptions{})
	wantErr(t, err, ErrStorage)
}

func TestCheckpointsAreNotRewritten(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	mustAppend(t, l, batch(t, 2, 1), 0)
	must(t, l.Flush())
	must(t, m.Housekeep(c.now()))
	hw := map[cluster.TopicPartition]int64{testTP: 2}
	must(t, m.CheckpointHighWatermarks(hw))
	must(t, m.CheckpointRecoveryPoints())
	must(t, m.CheckpointLogStartOffsets())
	ops := 0
	fs.SetHook(func(vfs.Op, string) { ops++ })
	must(t, m.Housekeep(c.now()))
	must(t, m.CheckpointHighWatermarks(hw))
	must(t, m.CheckpointRecoveryPoints())
	must(t, m.CheckpointLogStartOffsets())
	if ops != 0 {
		t.Fatalf("%d writes although nothing changed", ops)
	}
}

func TestStrangersInTheDirectory(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	mustAppend(t, l, batch(t, 2, 1), 0)
	must(t, m.Close())
	for _, name := range []string{"lost+found", "no-number-x", "t-007", "-1", "x-future", "t-0.abc-future", "t-3.abc-stray"} {
		must(t, fs.Mkdir("/data/"+name))
	}
	must(t, writePlain(fs, "/data/some file", nil))
	must(t, writePlain(fs, "/data/x.tmp", nil))
	must(t, writePlain(fs, "/data/"+fileHW, []byte("garbage")))
	var logs bytes.Buffer
	m = openMem(t, fs, c, &logs)
	if len(m.Logs()) != 1 {
		t.Fatal(m.Logs())
	}
	if !strings.Contains(logs.String(), fileHW) {
		t.Fatalf("no word of the unreadable checkpoint: %s", logs.String())
	}
	if got := names(t, fs, "/data"); !strings.Contains(got, "x-future") || strings.Contains(got, ".tmp") {
		t.Fatal(got)
	}
}

func TestParallelOpen(t *testing.T) {
	fs := vfs.NewMem(nil)
	m := openMem(t, fs, &clock{}, nil)
	for i := range 200 {
		l, err := m.Create(cluster.TopicPartition{Topic: fmt.Sprint("t", i%7), Partition: int32(i)}, testID, smallConfig())
		must(t, err)
		for range i % 5 {
			mustAppend(t, l, batch(t, 2, 1), 0)
		}
	}
	o := testOptions(&clock{}, nil)
	o.RecoveryThreads = 4
	for _, fs := range []*vfs.Mem{fs.CrashClone(vfs.KeepUnsynced, 0), fs} {
		_ = m.Close()
		m, err := OpenManager(fs, []string{"/data"}, o)
		must(t, err)
		if len(m.Logs()) != 200 {
			t.Fatal(len(m.Logs()))
		}
		for _, l := range m.Logs() {
			if want := int64(l.tp.Partition%5) * 2; l.LogEndOffset() != want {
				t.Fatalf("%s ends at %d, want %d", l.tp, l.LogEndOffset(), want)
			}
		}
		must(t, m.Close())
	}
}

// TestSameHistorySameOperations: a simulation must be able to replay, so nothing may depend on map order.
func TestSameHistorySameOperations(t *testing.T) {
	history := func() []string {
		c := &clock{ms: 1_000_000}
		fs := vfs.NewMem(func() int64 { return c.ms })
		var ops []string
		fs.SetHook(func(op vfs.Op, name string) { ops = append(ops, string(op)+" "+name) })
		m := openMem(t, fs, c, nil)
		for i := range 12 {
			cfg := smallConfig()
			cfg.FlushMs, cfg.RetentionBytes = 10, 1500
			l, err := m.Create(cluster.TopicPartition{Topic: "t", Partition: int32(i)}, testID, cfg)
			must(t, err)
			for k := range 20 {
				mustAppend(t, l, batch(t, 2, int64(k), withProducer(int64(k%5), 0, int32(k/5*2))), clusterEpoch(k))
			}
			l.SetHighWatermark(l.LogEndOffset())
			c.ms += 7
			must(t, m.Housekeep(c.now()))
		}
		must(t, m.CheckpointHighWatermarks(nil))
		must(t, m.Close())
		m = openMem(t, fs, c, nil)
		must(t, m.Delete(m.Logs()[3].tp))
		m.MarkOffline("/data", errors.New("gone"))
		return ops
	}
	first := history()
	for range 3 {
		again := history()
		if strings.Join(first, "\n") != strings.Join(again, "\n") {
			t.Fatal("the same calls did not do the same")
		}
	}
	if len(first) < 200 {
		t.Fatalf("%d operations", len(first))
	}
}

// TestShortenedLogIsTold: a log whose records were removed while the broker was down ends below its checkpointed high
// watermark; opening lowers the checkpoint, but says so.
func TestShortenedLogIsTold(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	mustAppend(t, l, batch(t, 5, c.ms), 1)
	must(t, l.Flush())
	l.SetHighWatermark(5)
	must(t, m.CheckpointHighWatermarks(map[cluster.TopicPartition]int64{l.tp: 5}))
	must(t, m.Close())
	must(t, fs.Remove("/data/t-0/"+offsetName(0)+extLog))
	m2, err := OpenManager(fs, []string{"/data"}, testOptions(c, nil))
	must(t, err)
	if hw, ok := m2.Shortened(l.tp); !ok || hw != 5 {
		t.Fatalf("high watermark %d, %v", hw, ok)
	}
	if hw, _ := m2.HighWatermark(l.tp); hw != 0 {
		t.Fatalf("the checkpoint says %d of an empty log", hw)
	}
	must(t, m2.Close())
	m3, err := OpenManager(fs, []string{"/data"}, testOptions(c, nil))
	must(t, err)
	if _, ok := m3.Shortened(l.tp); ok {
		t.Fatal("told again, after it was opened without it")
	}
	must(t, m3.Close())
}
