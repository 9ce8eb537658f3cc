package quiet_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestInitOrder builds a program that links Bubble Tea and this package and lets the runtime tell the order of
// their inits: ours must come first, or kctl asks the terminal for its colours at every start.
func TestInitOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	bin := t.TempDir() + "/kctl"
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "kctl/cmd/kctl")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), bin, "version")
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	ours, theirs := strings.Index(string(out), "init kctl/tui/quiet "), strings.Index(string(out), "init github.com/charmbracelet/bubbletea ")
	if ours < 0 || theirs < 0 || ours > theirs {
		t.Errorf("quiet at %d, Bubble Tea at %d in:\n%s", ours, theirs, out)
	}
}
