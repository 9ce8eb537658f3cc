package dump_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
)

// TestScripts runs kctl without any cluster, on files that Apache Kafka 3.9.1 and ZooKeeper 3.8.4 wrote. Commands:
//
//	kctl [rc=N] ARGS...        run kctl in process; demand exit code N (0)
//	cutfile FILE BYTES         keep the first BYTES of a file
//	flipfile FILE POSITION     invert one byte of a file
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "scripts"), RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return os.CopyFS(e.WorkDir, os.DirFS("testdata"))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"kctl": func(ts *testscript.TestScript, _ bool, args []string) { runKctl(t, ts, args) },
			"cutfile": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(number(ts, args[1]))))
			},
			"flipfile": func(ts *testscript.TestScript, _ bool, args []string) {
				b, err := os.ReadFile(ts.MkAbs(args[0]))
				ts.Check(err)
				b[number(ts, args[1])] ^= 0xff
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
			},
		},
	})
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

func runKctl(t *testing.T, ts *testscript.TestScript, args []string) {
	code := 0
	if v, ok := strings.CutPrefix(args[0], "rc="); ok {
		code, args = number(ts, v), args[1:]
	}
	for i, a := range args { // kctl runs in this process, whose folder is another
		if strings.HasPrefix(a, "./") {
			args[i] = ts.MkAbs(a)
		}
	}
	streams, out, errb := iostreams.Test("")
	got := cli.Run(t.Context(), args, streams, ts.Getenv)
	dir := ts.Getenv("WORK") + string(filepath.Separator)
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(out.String(), dir, ""))
	fmt.Fprint(ts.Stderr(), strings.ReplaceAll(errb.String(), dir, ""))
	if got != code {
		ts.Fatalf("kctl %s: exit %d, want %d", strings.Join(args, " "), got, code)
	}
}
