package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kctl/cmd/internal/cli/journal"
)

// TestAppendAndRead: entries come back in order, a foreign line is named and passed over, only the owner can read the file.
func TestAppendAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "history.jsonl")
	if got, _, err := journal.Read(path); got != nil || err != nil {
		t.Fatalf("a missing journal: %v %v", got, err)
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("x", 3600))
	first := journal.Entry{Command: "configs set", Object: "topic/a b"}.WithUndo("configs", "set", "topic/a b", "k=it's")
	if err := journal.Append(path, at, first, journal.Entry{Command: "two"}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("garbage\n"); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if err := journal.Append(path, at, journal.Entry{Command: "three"}); err != nil {
		t.Fatal(err)
	}
	got, bad, err := journal.Read(path)
	if err != nil || len(bad) != 1 || bad[0].Line != 3 || len(got) != 3 || got[2].Command != "three" {
		t.Fatalf("%+v %+v %v", got, bad, err)
	}
	if want := `kctl configs set 'topic/a b' 'k=it'\''s' --yes`; got[0].Undo != want {
		t.Errorf("got %s, want %s", got[0].Undo, want)
	}
	if want := "2030-01-02T02:04:05.000Z configs set topic/a b"; got[0].Key() != want {
		t.Errorf("got %s, want %s", got[0].Key(), want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
