package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kctl/broker/vfs"
)

// TestContract runs the same suite on the real file system and on the one in memory.
func TestContract(t *testing.T) {
	t.Run("os", func(t *testing.T) {
		contract(t, func(t *testing.T) (vfs.FS, string) { return vfs.OS{}, t.TempDir() })
	})
	t.Run("mem", func(t *testing.T) {
		contract(t, func(t *testing.T) (vfs.FS, string) {
			m := vfs.NewMem(nil)
			must(t, m.MkdirAll("/data"))
			return m, "/data"
		})
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, fs vfs.FS, name, data string) {
	t.Helper()
	f, err := fs.Create(name)
	must(t, err)
	_, err = f.WriteAt([]byte(data), 0)
	must(t, err)
	must(t, f.Close())
}

func get(t testing.TB, fs vfs.FS, name string) string {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	defer f.Close()
	n, err := f.Size()
	must(t, err)
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, 0); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return string(buf)
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func contract(t *testing.T, setup func(*testing.T) (vfs.FS, string)) {
	cases := map[string]func(t *testing.T, fs vfs.FS, dir string){
		"files": contractFiles, "folders": contractFolders, "rename": contractRename,
		"remove": contractRemove, "lock": contractLock, "concurrent": contractConcurrent,
	}
	for name, fn := range cases {
		t.Run(name, func(t *testing.T) {
			fs, dir := setup(t)
			fn(t, fs, dir)
		})
	}
}

func contractFiles(t *testing.T, fs vfs.FS, dir string) {
	name := filepath.Join(dir, "f")
	_, err := fs.Open(name)
	wantErr(t, err, vfs.ErrNotExist)
	_, err = fs.OpenReadWrite(name)
	wantErr(t, err, vfs.ErrNotExist)
	_, err = fs.Create(filepath.Join(dir, "no", "f"))
	wantErr(t, err, vfs.ErrNotExist)

	put(t, fs, name, "hello")
	rw, err := fs.OpenReadWrite(name)
	must(t, err)
	_, err = rw.WriteAt([]byte("XY"), 8) // leaves a hole
	must(t, err)
	if got := get(t, fs, name); got != "hello\x00\x00\x00XY" {
		t.Fatalf("contents %q", got)
	}
	buf := make([]byte, 20)
	n, err := rw.ReadAt(buf, 7)
	if n != 3 || !errors.Is(err, io.EOF) {
		t.Fatalf("read over the end: %d, %v", n, err)
	}
	if n, err = rw.ReadAt(buf, 100); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("read behind the end: %d, %v", n, err)
	}
	must(t, rw.Truncate(3))
	must(t, rw.Truncate(5))
	if got := get(t, fs, name); got != "hel\x00\x00" {
		t.Fatalf("after truncate %q", got)
	}
	must(t, rw.Preallocate(1<<20))
	if n, err := rw.Size(); n != 5 || err != nil {
		t.Fatalf("size %d, %v after preallocate", n, err)
	}
	must(t, rw.Sync())
	must(t, rw.Close())
	if rw.Close() == nil {
		t.Fatal("second close is no error")
	}
	ro, err := fs.Open(name)
	must(t, err)
	if _, err := ro.WriteAt([]byte("x"), 0); err == nil {
		t.Fatal("wrote through a file opened for reading")
	}
	must(t, ro.Close())
	put(t, fs, name, "n") // Create cuts
	if got := get(t, fs, name); got != "n" {
		t.Fatalf("after create %q", got)
	}
	st, err := fs.Stat(name)
	must(t, err)
	if st.Size != 1 || st.IsDir || st.ModTime == 0 {
		t.Fatalf("stat %+v", st)
	}
	u, err := fs.Usage(dir)
	must(t, err)
	if u.Free <= 0 || u.Total < u.Free {
		t.Fatalf("usage %+v", u)
	}
}

func contractFolders(t *testing.T, fs vfs.FS, dir string) {
	sub := filepath.Join(dir, "a", "b")
	wantErr(t, fs.Mkdir(sub), vfs.ErrNotExist)
	must(t, fs.MkdirAll(sub))
	must(t, fs.MkdirAll(sub))
	wantErr(t, fs.Mkdir(sub), vfs.ErrExist)
	put(t, fs, filepath.Join(sub, "z"), "")
	put(t, fs, filepath.Join(sub, "c"), "")
	must(t, fs.Mkdir(filepath.Join(sub, "m")))
	got, err := fs.List(sub)
	must(t, err)
	want := []vfs.Entry{{Name: "c"}, {Name: "m", IsDir: true}, {Name: "z"}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Fatalf("list %v", got)
	}
	_, err = fs.List(filepath.Join(dir, "none"))
	wantErr(t, err, vfs.ErrNotExist)
	if _, err := fs.Open(filepath.Join(sub, "none")); !errors.Is(err, vfs.ErrNotExist) {
		t.Fatalf("open: %v", err)
	}
	st, err := fs.Stat(sub)
	must(t, err)
	if !st.IsDir {
		t.Fatal("folder is no folder")
	}
	must(t, fs.SyncDir(sub))
	if err := fs.SyncAll(dir); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
	if fs.SyncDir(filepath.Join(dir, "none")) == nil {
		t.Fatal("synced a missing folder")
	}
}

func contractRename(t *testing.T, fs vfs.FS, dir string) {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	wantErr(t, fs.Rename(a, b), vfs.ErrNotExist)
	put(t, fs, a, "A")
	put(t, fs, b, "B")
	open, err := fs.Open(b)
	must(t, err)
	must(t, fs.Rename(a, b))
	if got := get(t, fs, b); got != "A" {
		t.Fatalf("after rename %q", got)
	}
	_, err = fs.Stat(a)
	wantErr(t, err, vfs.ErrNotExist)
	buf := make([]byte, 1)
	if _, err := open.ReadAt(buf, 0); err != nil || string(buf) != "B" {
		t.Fatalf("replaced open file reads %q, %v", buf, err)
	}
	must(t, open.Close())
	must(t, fs.Mkdir(filepath.Join(dir, "d1")))
	put(t, fs, filepath.Join(dir, "d1", "x"), "X")
	must(t, fs.Rename(filepath.Join(dir, "d1"), filepath.Join(dir, "d2")))
	if got := get(t, fs, filepath.Join(dir, "d2", "x")); got != "X" {
		t.Fatalf("moved folder holds %q", got)
	}
}

func contractRemove(t *testing.T, fs vfs.FS, dir string) {
	f := filepath.Join(dir, "f")
	wantErr(t, fs.Remove(f), vfs.ErrNotExist)
	must(t, fs.RemoveAll(f))
	put(t, fs, f, "data")
	open, err := fs.OpenReadWrite(f)
	must(t, err)
	must(t, fs.Remove(f))
	buf := make([]byte, 4)
	if _, err := open.ReadAt(buf, 0); err != nil || string(buf) != "data" {
		t.Fatalf("removed open file reads %q, %v", buf, err)
	}
	_, err = open.WriteAt([]byte("more"), 4)
	must(t, err)
	must(t, open.Close())
	must(t, fs.MkdirAll(filepath.Join(dir, "d", "e")))
	put(t, fs, filepath.Join(dir, "d", "e", "f"), "x")
	if fs.Remove(filepath.Join(dir, "d")) == nil {
		t.Fatal("removed a folder that is not empty")
	}
	must(t, fs.RemoveAll(filepath.Join(dir, "d")))
	got, err := fs.List(dir)
	must(t, err)
	if len(got) != 0 {
		t.Fatalf("left: %v", got)
	}
}

func contractLock(t *testing.T, fs vfs.FS, dir string) {
	name := filepath.Join(dir, ".lock")
	l, err := fs.Lock(name)
	must(t, err)
	_, err = fs.Lock(name)
	wantErr(t, err, vfs.ErrLocked)
	must(t, l.Close())
	l, err = fs.Lock(name)
	must(t, err)
	must(t, l.Close())
}

func contractConcurrent(t *testing.T, fs vfs.FS, dir string) {
	f, err := fs.Create(filepath.Join(dir, "f"))
	must(t, err)
	defer f.Close()
	const n, size = 8, 4096
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			block := bytes.Repeat([]byte{byte('a' + i)}, size)
			if _, err := f.WriteAt(block, int64(i*size)); err != nil {
				t.Error(err)
			}
			buf := make([]byte, size)
			if _, err := f.ReadAt(buf, int64(i*size)); err != nil || !bytes.Equal(buf, block) {
				t.Errorf("block %d: %v", i, err)
			}
		}()
	}
	wg.Wait()
}

func TestOSFile(t *testing.T) {
	f, err := vfs.OS{}.Create(filepath.Join(t.TempDir(), "f"))
	must(t, err)
	defer f.Close()
	raw, ok := f.(vfs.Raw)
	if !ok {
		t.Fatal("no raw file")
	}
	var _ *os.File = raw.OSFile()
}
