package vfs_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"kctl/broker/vfs"
)

func newMem(t testing.TB) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem(nil)
	must(t, m.Mkdir("/d"))
	must(t, m.SyncDir("/"))
	return m
}

func TestCrashKeepsSyncedData(t *testing.T) {
	m := newMem(t)
	f, err := m.Create("/d/f")
	must(t, err)
	_, err = f.WriteAt([]byte("synced"), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, m.SyncDir("/d"))
	_, err = f.WriteAt([]byte("-lost"), 6)
	must(t, err)
	put(t, m, "/d/g", "new")

	drop := m.CrashClone(vfs.DropUnsynced, 1)
	if got := get(t, drop, "/d/f"); got != "synced" {
		t.Fatalf("drop: %q", got)
	}
	_, err = drop.Stat("/d/g")
	wantErr(t, err, vfs.ErrNotExist)
	keep := m.CrashClone(vfs.KeepUnsynced, 1)
	if get(t, keep, "/d/f") != "synced-lost" || get(t, keep, "/d/g") != "new" {
		t.Fatal("keep lost something")
	}
	// The clone shares nothing.
	put(t, keep, "/d/f", "x")
	if got := get(t, m, "/d/f"); got != "synced-lost" {
		t.Fatalf("original changed: %q", got)
	}
}

func TestCrashMixesSectorsAndLengths(t *testing.T) {
	m := newMem(t)
	f, err := m.Create("/d/f")
	must(t, err)
	old := bytes.Repeat([]byte{'o'}, 4096)
	_, err = f.WriteAt(old, 0)
	must(t, err)
	must(t, f.Sync())
	must(t, m.SyncDir("/d"))
	_, err = f.WriteAt(bytes.Repeat([]byte{'n'}, 4096), 2048)
	must(t, err)
	lengths, mixed := map[int]bool{}, false
	for seed := range uint64(200) {
		got := get(t, m.CrashClone(vfs.MixUnsynced, seed), "/d/f")
		if len(got) < 4096 || len(got) > 6144 {
			t.Fatalf("seed %d: length %d", seed, len(got))
		}
		if strings.Trim(got[:2048], "o") != "" {
			t.Fatalf("seed %d: bytes changed that were not written", seed)
		}
		if strings.Trim(got[2048:], "on\x00") != "" {
			t.Fatalf("seed %d: bytes from nowhere", seed)
		}
		tail := got[2048:4096]
		mixed = mixed || strings.Contains(tail, "on") && strings.Contains(tail, "no")
		lengths[len(got)] = true
		if again := get(t, m.CrashClone(vfs.MixUnsynced, seed), "/d/f"); again != got {
			t.Fatalf("seed %d is not reproducible", seed)
		}
	}
	if len(lengths) < 20 || !mixed {
		t.Fatalf("%d lengths, mixed %v: too tame", len(lengths), mixed)
	}
}

func TestCrashTruncateNeedsSync(t *testing.T) {
	m := newMem(t)
	put(t, m, "/d/f", "0123456789")
	f, err := m.OpenReadWrite("/d/f")
	must(t, err)
	must(t, f.Sync())
	must(t, m.SyncDir("/d"))
	must(t, f.Truncate(4))
	if got := get(t, m.CrashClone(vfs.DropUnsynced, 0), "/d/f"); got != "0123456789" {
		t.Fatalf("unsynced truncate survived: %q", got)
	}
	must(t, f.Sync())
	if got := get(t, m.CrashClone(vfs.DropUnsynced, 0), "/d/f"); got != "0123" {
		t.Fatalf("synced truncate lost: %q", got)
	}
}

func TestCrashFolderChangesAreAPrefix(t *testing.T) {
	m := newMem(t)
	for _, name := range []string{"a", "b", "c"} {
		f, err := m.Create("/d/" + name)
		must(t, err)
		must(t, f.Sync())
		must(t, f.Close())
	}
	must(t, m.Rename("/d/c", "/d/e"))
	seen := map[string]bool{}
	for seed := range uint64(100) {
		entries, err := m.CrashClone(vfs.MixUnsynced, seed).List("/d")
		must(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		seen[strings.Join(names, "")] = true
	}
	for got := range seen {
		if !strings.Contains("|abc|ab|a||abe|", "|"+got+"|") {
			t.Fatalf("impossible folder %q", got)
		}
	}
	if len(seen) != 5 {
		t.Fatalf("saw only %v", seen)
	}
	must(t, m.SyncDir("/d"))
	entries, err := m.CrashClone(vfs.DropUnsynced, 0).List("/d")
	must(t, err)
	if len(entries) != 3 || entries[2].Name != "e" {
		t.Fatalf("after sync: %v", entries)
	}
}

func TestFaultRules(t *testing.T) {
	m := newMem(t)
	boom := errors.New("boom")
	m.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpWrite}, Pattern: "*.log", Err: boom, Skip: 1, Times: 1, ShortWrite: 2})
	f, err := m.Create("/d/x.log")
	must(t, err)
	_, err = f.WriteAt([]byte("one"), 0)
	must(t, err)
	n, err := f.WriteAt([]byte("two"), 3)
	wantErr(t, err, boom)
	if n != 2 || get(t, m, "/d/x.log") != "onetw" {
		t.Fatalf("short write %d, %q", n, get(t, m, "/d/x.log"))
	}
	_, err = f.WriteAt([]byte("two"), 3)
	must(t, err)
	m.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpSync, vfs.OpSyncDir}, Err: boom})
	wantErr(t, f.Sync(), boom)
	wantErr(t, m.SyncDir("/d"), boom)
	m.ClearFaults()
	must(t, f.Sync())
}

func TestCapacity(t *testing.T) {
	m := newMem(t)
	m.SetCapacity(10)
	put(t, m, "/d/a", "1234567")
	f, err := m.Create("/d/b")
	must(t, err)
	n, err := f.WriteAt([]byte("89abcdef"), 0)
	wantErr(t, err, vfs.ErrNoSpace)
	if n != 3 {
		t.Fatalf("wrote %d", n)
	}
	_, err = f.WriteAt([]byte("xyz"), 0) // no growth
	must(t, err)
	must(t, m.Remove("/d/a"))
	_, err = f.WriteAt([]byte("4567890"), 3)
	must(t, err)
	u, err := m.Usage("/d")
	must(t, err)
	if u.Free != 0 || u.Total != 10 {
		t.Fatalf("usage %+v", u)
	}
}

func TestHookSeesEveryChange(t *testing.T) {
	m := newMem(t)
	var ops []string
	m.SetHook(func(op vfs.Op, name string) {
		ops = append(ops, string(op))
		m.CrashClone(vfs.MixUnsynced, 1) // no lock is held
	})
	f, err := m.Create("/d/f")
	must(t, err)
	_, _ = f.WriteAt([]byte("x"), 0)
	_ = f.Truncate(0)
	_ = f.Sync()
	_ = m.SyncDir("/d")
	_ = m.Rename("/d/f", "/d/g")
	_ = m.Remove("/d/g")
	if got := strings.Join(ops, " "); got != "create write truncate sync syncdir rename remove" {
		t.Fatalf("ops: %s", got)
	}
}
