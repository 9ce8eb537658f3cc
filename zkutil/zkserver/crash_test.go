package zkserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/ztree"
)

// run is a scripted history of a data directory: batches of transactions as the committer logs them, with the
// state after each.
type run struct {
	dir    string
	states []*ztree.Tree // after 0, 1, 2, … batches
	ends   []int64       // size of the log after as many batches
}

// makeRun commits batches of one to four writes to a fresh directory.
func makeRun(t *testing.T, batches int) run {
	t.Helper()
	r := run{dir: filepath.Join(t.TempDir(), "run")}
	d, err := openDataDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	tree := ztree.New(ztree.Options{})
	tree.StartEpoch()
	w := &wal{dir: r.dir, fsync: true, prev: tree.Zxid()}
	at := time.UnixMilli(1000)
	id := tree.OpenSession(at, time.Minute)
	r.states = append(r.states, ztree.New(ztree.Options{}))
	r.ends = append(r.ends, logHeaderSize)
	tree = ztree.New(ztree.Options{})
	tree.StartEpoch()
	for i := range batches {
		var txns []*ztree.Txn
		w.begin()
		add := func(txn *ztree.Txn) {
			txns = append(txns, txn)
			w.add(txn)
		}
		if i == 0 {
			add(tree.PrepareOpenSession(at, time.Minute))
			id = txns[0].Session
		} else {
			for j := range i%4 + 1 {
				req := zkop.Request{Kind: zkop.Create, Path: fmt.Sprintf("/%d-%d", i, j), Data: []byte(strings.Repeat("d", i*3))}
				switch j {
				case 1:
					req.Mode = zkop.Ephemeral
				case 2:
					req = zkop.Request{Kind: zkop.Multi, Ops: []zkop.Request{
						{Kind: zkop.Delete, Path: fmt.Sprintf("/%d-0", i)}, {Kind: zkop.Create, Path: fmt.Sprintf("/%d-m", i)},
					}}
				}
				txn, resp := tree.Prepare(at, id, nil, &req)
				if txn == nil {
					t.Fatal(resp.Err)
				}
				add(txn)
			}
		}
		if err := w.commit(txns[len(txns)-1].Zxid); err != nil {
			t.Fatal(err)
		}
		for _, txn := range txns {
			tree.Apply(txn)
		}
		r.states = append(r.states, copyOf(t, tree))
		r.ends = append(r.ends, w.size)
	}
	if err := errors.Join(w.close(), d.close()); err != nil {
		t.Fatal(err)
	}
	return r
}

// log is the path of the only log file.
func (r run) log(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(r.dir, logPrefix+"*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	return names[0]
}

// reopen recovers a directory that holds the run's meta file and one log with those bytes.
func reopen(t *testing.T, r run, name string, b []byte) (*ztree.Tree, error) {
	t.Helper()
	dir := r.dir + "-again" // kept from call to call: making directories is what takes the time
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	meta, err := os.ReadFile(filepath.Join(r.dir, metaName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, metaName), meta, 0o600), os.WriteFile(filepath.Join(dir, name), b, 0o600)); err != nil {
		t.Fatal(err)
	}
	tree, err := recoverOnce(t, dir)
	if err != nil {
		return nil, err
	}
	again, err := recoverOnce(t, dir) // what recovery left behind is whole
	if err != nil || ztree.Equal(tree, again) != nil {
		t.Fatalf("second recovery: %v", errors.Join(err, ztree.Equal(tree, again)))
	}
	return tree, nil
}

func recoverOnce(t *testing.T, dir string) (*ztree.Tree, error) {
	t.Helper()
	d, err := openDataDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.close()
	got, err := d.recover(time.UnixMilli(1), ztree.Options{}, slog.New(slog.DiscardHandler))
	return got.tree, err
}

// stateOf finds which of the run's states a tree is in: the number of batches; -1: none.
func (r run) stateOf(tree *ztree.Tree) int {
	for i, want := range r.states {
		if want.Zxid() == tree.Zxid() && ztree.Equal(want, tree) == nil {
			return i
		}
	}
	return -1
}

func copyOf(t *testing.T, tree *ztree.Tree) *ztree.Tree {
	t.Helper()
	var b bytes.Buffer
	if _, err := tree.Freeze().WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	c, err := ztree.Restore(b.Bytes(), time.UnixMilli(1), ztree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTruncatedAnywhere: a log cut at any byte comes back with exactly the batches that were complete.
func TestTruncatedAnywhere(t *testing.T) {
	r := makeRun(t, 6)
	b, err := os.ReadFile(r.log(t))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(b) + 1 {
		for _, tail := range []string{"", "\x00\x00\x00\x00\x00\x00\x00", "KZBF garbage of an unfinished write"} {
			if tail != "" && (cut == len(b) || cut%7 != 0) { // each recovery that cuts a log syncs it
				continue
			}
			cutLog := append(slices.Clone(b[:cut]), tail...)
			whole := 0 // the tail may happen to continue the log
			for whole < len(cutLog) && whole < len(b) && cutLog[whole] == b[whole] {
				whole++
			}
			want := 0
			for i, end := range r.ends {
				if int64(whole) >= end {
					want = i
				}
			}
			tree, err := reopen(t, r, filepath.Base(r.log(t)), cutLog)
			if err != nil {
				if tail != "" && cut < logHeaderSize && errors.Is(err, ErrCorrupt) {
					continue // garbage for a header is no torn header
				}
				t.Fatalf("cut at %d with tail %q: %v", cut, tail, err)
			}
			if got := r.stateOf(tree); got != want {
				t.Fatalf("cut at %d of %d with tail %q: state after %d batches, want %d", cut, len(b), tail, got, want)
			}
		}
	}
}

// TestFlippedAnywhere: a flipped byte in an acknowledged batch is refused; in the last one, which looks like an
// unfinished write, that batch alone is gone. Never is a batch applied in part or altered.
func TestFlippedAnywhere(t *testing.T) {
	r := makeRun(t, 6)
	b, err := os.ReadFile(r.log(t))
	if err != nil {
		t.Fatal(err)
	}
	last := r.ends[len(r.ends)-2]
	for i := range b {
		for _, flip := range []byte{0x01 << (i % 8), 0xff} {
			if flip == 0xff && i%5 != 0 {
				continue
			}
			damaged := slices.Clone(b)
			damaged[i] ^= flip
			tree, err := reopen(t, r, filepath.Base(r.log(t)), damaged)
			switch {
			case int64(i) < last:
				if !errors.Is(err, ErrCorrupt) {
					t.Fatalf("flip 0x%x at %d: %v", flip, i, err)
				}
			case err != nil:
				t.Fatalf("flip 0x%x at %d of the last batch: %v", flip, i, err)
			default:
				if got := r.stateOf(tree); got != len(r.states)-2 {
					t.Fatalf("flip 0x%x at %d: state after %d batches", flip, i, got)
				}
			}
		}
	}
}

// TestSnapshotsAndPurge: with small limits a history goes over many snapshots and log files; every reopening
// gives the same tree, also from an older snapshot when the newest is damaged.
func TestSnapshotsAndPurge(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{DataDir: dir, SnapshotEvery: 20, KeepSnapshots: 2}
	written := 0
	for range 3 {
		s := startServer(t, cfg)
		c := startRaw(t, s.Addr(), long)
		if written == 0 {
			c.call(opCreate, bodyCreate("/d", nil, 0), 0)
		}
		for range 150 {
			c.call(opCreate2, bodyCreate("/d/n-", []byte("x"), 2), 0)
			written++
		}
		r := c.call(opAllChildren, bodyPath("/d", false)[:6], 0)
		if n := r.d.Int(); int(n) != written {
			t.Fatalf("%d nodes, want %d", n, written)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := openDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	snaps, _ := d.zxids(snapPrefix)
	logs, _ := d.zxids(logPrefix)
	if len(snaps) != 2 || len(logs) > 20 || logs[0] > snaps[0] {
		t.Fatalf("snapshots %x, logs %x", snaps, logs)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	want, err := recoverOnce(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	newest := filepath.Join(dir, snapName(snaps[1]))
	b, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func() error{
		func() error { b[len(b)/2] ^= 1; return os.WriteFile(newest, b, 0o600) },
		func() error { return os.Truncate(newest, int64(len(b)/2)) },
		func() error { return os.Truncate(newest, 0) },
		func() error { return os.Remove(newest) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		got, err := recoverOnce(t, dir)
		if err != nil || ztree.Equal(want, got) != nil {
			t.Fatal(errors.Join(err, ztree.Equal(want, got)))
		}
	}
	if err := os.Remove(filepath.Join(dir, logName(logs[len(logs)-2]))); err != nil {
		t.Fatal(err)
	}
	if _, err := recoverOnce(t, dir); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a missing log file: %v", err)
	}
}

func TestDirErrors(t *testing.T) {
	start := func(dir string) error {
		s, err := Start(t.Context(), Config{DataDir: dir})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "photo.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := start(dir); !errors.Is(err, ErrForeignDir) || !strings.Contains(err.Error(), "photo.jpg") {
		t.Error(err)
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, zooKeeperDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := start(dir); !errors.Is(err, ErrForeignDir) || !strings.Contains(err.Error(), "Apache ZooKeeper") {
		t.Error(err)
	}
	dir = filepath.Join(t.TempDir(), "new", "deep")
	if err := errors.Join(start(dir), start(dir)); err != nil {
		t.Error(err)
	}
	meta := filepath.Join(dir, metaName)
	b, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		b    []byte
		want error
	}{{append(slices.Clone(b[:20]), 0), ErrCorrupt}, {[]byte("x"), ErrForeignDir}, {nil, ErrForeignDir}} {
		if err := os.WriteFile(meta, tc.b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := start(dir); !errors.Is(err, tc.want) {
			t.Errorf("%x: %v", tc.b, err)
		}
	}
	dir = t.TempDir()
	s := startServer(t, Config{DataDir: dir})
	if err := start(dir); !errors.Is(err, ErrLocked) {
		t.Error(err)
	}
	if _, err := Start(t.Context(), Config{Addr: s.Addr()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
	if err := start(filepath.Join(dir, metaName)); err == nil {
		t.Error("a file is taken for a directory")
	}
}

// TestLogFailureStops: when the log cannot be written the server stops with the reason, and what it had
// answered is there after a restart.
func TestLogFailureStops(t *testing.T) {
	dir := t.TempDir()
	s, err := Start(t.Context(), Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c := startRaw(t, s.Addr(), long)
	c.call(opCreate, bodyCreate("/kept", nil, 0), 0)
	if err := s.wal.f.Close(); err != nil {
		t.Fatal(err)
	}
	c.send(opCreate, bodyCreate("/lost", nil, 0))
	c.mustClose()
	<-s.Done()
	if s.Err() == nil || !strings.Contains(s.Err().Error(), "append to the log") || s.Close() == nil {
		t.Fatal(s.Err())
	}
	s = startServer(t, Config{DataDir: dir})
	c = startRaw(t, s.Addr(), long)
	c.call(opExists, bodyPath("/kept", false), 0)
	c.call(opExists, bodyPath("/lost", false), codeNoNode)
}

const childDirEnv = "ZKSERVER_TEST_CHILD_DIR"

// TestMain turns this test binary into a server for the kill test.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDirEnv); dir != "" {
		s, err := Start(context.Background(), Config{DataDir: dir, Fsync: true, SnapshotEvery: 300})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(s.Addr())
		<-s.Done()
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// TestKilled: a server process killed with SIGKILL in the middle of writes from many sessions has, after each
// restart, every acknowledged write, and of each multi all or nothing.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	acked := map[string]bool{}
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childDirEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		addr, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal("the server did not start: ", err)
		}
		addr = strings.TrimSpace(addr)
		checkAcked(t, addr, acked)
		var mu sync.Mutex
		var wg sync.WaitGroup
		enough := make(chan struct{})
		var once sync.Once
		count := 0
		for w := range 8 {
			c, _, err := zk.Connect([]string{addr}, long, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer c.Close()
				for i := 0; ; i++ {
					name := fmt.Sprintf("/r%d-w%d-%d", round, w, i)
					_, err := c.Multi(&zk.CreateRequest{Path: name, Acl: open}, &zk.CreateRequest{Path: name + "/half", Acl: open})
					if err != nil {
						return
					}
					mu.Lock()
					acked[name] = true
					count++
					if count == 400 {
						once.Do(func() { close(enough) })
					}
					mu.Unlock()
					select {
					case <-t.Context().Done():
						return
					default:
					}
				}
			})
		}
		select {
		case <-enough:
		case <-time.After(patience):
			t.Error("too slow")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		wg.Wait()
	}
	t.Logf("%d acknowledged writes over 5 kills", len(acked))
}

func checkAcked(t *testing.T, addr string, acked map[string]bool) {
	t.Helper()
	c := connect(t, addr, long)
	defer c.Close()
	names, _, err := c.Children("/")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, n := range names {
		if n == "zookeeper" {
			continue
		}
		have["/"+n] = true
		if kids, _, err := c.Children("/" + n); err != nil || len(kids) != 1 {
			t.Fatalf("%s is half applied: %v %v", n, kids, err)
		}
	}
	for n := range acked {
		if !have[n] {
			t.Errorf("acknowledged %s is lost", n)
		}
	}
}

// TestFrameMissing: a log without one of its commits in the middle is refused, although each frame is whole.
func TestFrameMissing(t *testing.T) {
	r := makeRun(t, 6)
	b, err := os.ReadFile(r.log(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(r.ends); i++ {
		without := append(slices.Clone(b[:r.ends[i-1]]), b[r.ends[i]:]...)
		tree, err := reopen(t, r, filepath.Base(r.log(t)), without)
		if i == len(r.ends)-1 {
			if err != nil || r.stateOf(tree) != i-1 {
				t.Fatalf("without the last commit: %v", err)
			}
		} else if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("without commit %d: %v", i, err)
		}
	}
}
