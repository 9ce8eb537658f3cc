//go:build proc

package proctest

import (
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	rounds  = flag.Int("rounds", 20, "kills of a broker per test")
	records = flag.Int("records", 3000, "records per round")
	seed    = flag.Uint64("seed", 0, "seed of the kills; 0: from the clock")
	bin     = flag.String("bin", "", "folder of the binaries; empty: build them")
)

// program returns the path of one of our programs, built unless -bin says where it is.
func program(t *testing.T, name string) string {
	t.Helper()
	if *bin != "" {
		return filepath.Join(*bin, name)
	}
	out := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-o", out, "kctl/cmd/"+name)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, text)
	}
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
