package journal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/cli/journal"
)

// The variables by which the test binary becomes one of several processes that append.
const (
	writerPath = "JOURNAL_TEST_PATH"
	writerName = "JOURNAL_TEST_NAME"
)

const (
	writers  = 6
	perEach  = 60
	perBatch = 3
)

func TestMain(m *testing.M) {
	path := os.Getenv(writerPath)
	if path == "" {
		os.Exit(m.Run())
	}
	for i := range perEach {
		batch := make([]journal.Entry, perBatch)
		for j := range batch {
			// Long entries: a write that is not one piece would be torn.
			batch[j] = journal.Entry{Command: os.Getenv(writerName), Object: fmt.Sprintf("%d.%d", i, j), Before: strings.Repeat("x", 9000)}
		}
		if err := journal.Append(path, time.Now(), batch...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// TestManyProcesses: what several processes append at the same time is all there, whole, in the order of each process,
// and the entries of one call stay together. The unfinished line that was there first swallows none of them.
func TestManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte(`{"time":"2030-01-01T00:00:00Z","comm`), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	procs := make([]*exec.Cmd, writers)
	for i := range procs {
		procs[i] = exec.CommandContext(t.Context(), self)
		procs[i].Env = append(os.Environ(), writerPath+"="+path, fmt.Sprintf("%s=writer%d", writerName, i))
		procs[i].Stderr = os.Stderr
		if err := procs[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range procs {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	got, bad, err := journal.Read(path)
	if err != nil || len(bad) != 1 || bad[0].Line != 1 {
		t.Fatalf("%v %v", bad, err)
	}
	if len(got) != writers*perEach*perBatch {
		t.Fatalf("%d entries, want %d", len(got), writers*perEach*perBatch)
	}
	next := map[string]int{}
	for i, e := range got {
		n := next[e.Command]
		if want := fmt.Sprintf("%d.%d", n/perBatch, n%perBatch); e.Object != want || len(e.Before) != 9000 {
			t.Fatalf("entry %d of %s is %s, want %s", i, e.Command, e.Object, want)
		}
		if i%perBatch > 0 && got[i-1].Command != e.Command {
			t.Fatalf("entry %d: a call of %s was parted by %s", i, got[i-1].Command, e.Command)
		}
		next[e.Command]++
	}
}

// TestBadLines: each kind of line that is no entry is named with its number, and the entries around it are read.
func TestBadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	good := `{"time":"2030-01-01T00:00:00Z","command":"topics create","object":"a"}`
	lines := []string{good, "null", "{}", `{"time":5}`, "", good, strings.Repeat("y", 5<<20), good, "[1]", `{"torn`}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	got, bad, err := journal.Read(path)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	var at []int
	for _, b := range bad {
		at = append(at, b.Line)
	}
	if fmt.Sprint(at) != "[2 3 4 7 9 10]" {
		t.Errorf("bad lines %v", bad)
	}
}

// TestWritable: a folder that is a file, and a journal that is a folder, are told before anything is appended.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kctl", "history.jsonl")
	if err := journal.Writable(path); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("%v %v", info, err)
	}
	if err := journal.Writable(filepath.Join(path, "x")); err == nil {
		t.Error("a file is no folder")
	}
	if err := journal.Writable(dir); err == nil {
		t.Error("a folder is no journal")
	}
}
