package vfs

import (
	"errors"
	"testing"
)

func TestBreakable(t *testing.T) {
	b := &Breakable{FS: NewMem(func() int64 { return 1 })}
	for _, d := range []string{"/a", "/ab"} {
		if err := b.MkdirAll(d); err != nil {
			t.Fatal(err)
		}
	}
	f, err := b.Create("/a/f")
	if err != nil {
		t.Fatal(err)
	}
	b.Break("/a/", nil)
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, ErrInput) {
		t.Errorf("open file: %v", err)
	}
	for what, err := range map[string]error{"rename in": b.Rename("/ab/x", "/a/x"), "sync": b.SyncDir("/a"), "mkdir": b.Mkdir("/a/d"), "remove": b.RemoveAll("/a/f")} {
		if !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := b.Mkdir("/ab/d"); err != nil {
		t.Errorf("the neighbour: %v", err)
	}
	b.Mend("/a")
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
}
