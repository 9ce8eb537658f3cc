package scripts

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the observed effects into testdata/*.txt")

// Run runs every testdata/*.txt as a test named after it. play carries out a script and returns it with the effects that
// were seen in place of those that were wanted; a difference fails the test. With -rewrite the file is written instead:
// review what changed.
func Run(t *testing.T, play func(t *testing.T, text string) string) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { run(t, file, play) })
	}
}

func run(t *testing.T, file string, play func(t *testing.T, text string) string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := play(t, string(want))
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(want) {
		t.Errorf("%s: effects differ (run with -rewrite and review)\n%s", file, firstDifference(string(want), got))
	}
}

// context is how many lines before a difference are shown.
const context = 6

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	line := func(lines []string, i int) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(end of file)"
	}
	for i := range max(len(w), len(g)) {
		if a, b := line(w, i), line(g, i); a != b {
			return fmt.Sprintf("%s\nline %d\nwant %s\ngot  %s", strings.Join(g[max(0, i-context):min(i, len(g))], "\n"), i+1, a, b)
		}
	}
	return ""
}
