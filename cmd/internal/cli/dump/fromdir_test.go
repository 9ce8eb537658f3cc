package dump_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
)

// TestFromDir runs verbs on the data directory of an embedded ZooKeeper server that has stopped. Commands beside those
// of TestScripts:
//
//	mkzk DIR FILE     make the data directory from lines "PATH DATA"; folders above are made too, and registrations and the controller are ephemeral
func TestFromDir(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "fromdir"), RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"kctl": func(ts *testscript.TestScript, _ bool, args []string) { runKctl(t, ts, args) },
			"mkzk": func(ts *testscript.TestScript, _ bool, args []string) {
				makeTree(t, ts, ts.MkAbs(args[0]), ts.ReadFile(args[1]))
			},
			"cutfile": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(number(ts, args[1]))))
			},
			// copyfirst COPY DIR PATTERN: a copy of the first file of a folder that matches
			"copyfirst": func(ts *testscript.TestScript, _ bool, args []string) {
				names, err := filepath.Glob(filepath.Join(ts.MkAbs(args[1]), args[2]))
				ts.Check(err)
				if len(names) == 0 {
					ts.Fatalf("nothing matches %s", args[2])
				}
				b, err := os.ReadFile(names[0])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o600))
			},
		},
	})
}

// makeTree stops the server before the session that the ephemeral nodes belong to.
func makeTree(t *testing.T, ts *testscript.TestScript, dir, lines string) {
	s, err := zkserver.Start(t.Context(), zkserver.Config{DataDir: dir, SnapshotEvery: 10})
	ts.Check(err)
	c, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: s.Addr()})
	ts.Check(err)
	made := map[string]bool{}
	for line := range strings.Lines(lines) {
		path, data, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path == "" {
			continue
		}
		for i := 1; i <= len(path); i++ {
			if i < len(path) && path[i] != '/' || made[path[:i]] {
				continue
			}
			made[path[:i]] = true
			r := zkop.Request{Kind: zkop.Create, Path: path[:i]}
			if i == len(path) {
				r.Data = []byte(data)
				if path == "/controller" || strings.HasPrefix(path, "/brokers/ids/") {
					r.Mode = zkop.Ephemeral
				}
			}
			ts.Check(c.Do(t.Context(), zkutil.AnySession, r)[0].Err)
		}
	}
	ts.Check(s.Close())
	_ = c.Close() // the server is gone: the session stays in its files
}
