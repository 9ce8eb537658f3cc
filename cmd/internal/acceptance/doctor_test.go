package acceptance

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kctl/admin/plan"
	"kctl/broker/brokertest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

func doctorCluster(t *testing.T) *brokertest.Cluster {
	return brokertest.Start(t, 3, "auto.leader.rebalance.enable=false")
}

// TestDoctorScripts runs the scripts of testdoctor, one after the other on one cluster. Beside the commands of TestScripts:
//
//	zknode PATH [DATA]   make a znode, or give it new data
//	mark-dev             mark the cluster as kbroker dev does
func TestDoctorScripts(t *testing.T) {
	c := doctorCluster(t)
	cmds := commands(t, c)
	maps.Copy(cmds, map[string]command{
		"zknode": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(writeNode(t, c, args[0], []byte(strings.Join(args[1:], " "))))
		},
		"mark-dev": func(ts *testscript.TestScript, _ bool, _ []string) {
			ts.Check(writeNode(t, c, znode.DevClusterPath, znode.EncodeDevCluster()))
		},
	})
	testscript.Run(t, testscript.Params{
		Dir: "testdoctor", RequireExplicitExec: true, Cmds: cmds,
		Setup: func(e *testscript.Env) error {
			for name, value := range map[string]string{
				"HOME": e.WorkDir, "KCTL_TIMEOUT": patience, "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER": c.ZooKeeper(), "ZK": c.ZooKeeper(),
			} {
				e.Setenv(name, value)
			}
			return nil
		},
	})
}

func writeNode(t *testing.T, c *brokertest.Cluster, path string, data []byte) error {
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		return err
	}
	defer zk.Close()
	r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: path, Data: data, Mode: zkop.Persistent})[0]
	if r.Err != nil {
		r = zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Set, Path: path, Data: data, Version: zkop.AnyVersion})[0]
	}
	return r.Err
}

// lab runs kctl against one cluster.
type lab struct {
	t   *testing.T
	env map[string]string
}

func (l lab) kctl(args ...string) (code int, out, errs string) {
	streams, outb, errb := iostreams.Test("")
	code = cli.Run(l.t.Context(), args, streams, func(name string) string { return l.env[name] })
	return code, outb.String(), errb.String()
}

// finds reports whether doctor has the finding, by running that check alone.
func (l lab) finds(id string) bool {
	code, out, errs := l.kctl("doctor", id, "--older-than", "1s", "--sample", "200ms", "-o", "json")
	var doc struct {
		Findings []struct{ ID, Object, Evidence, Fix string }
		Skipped  []struct{ Check, Reason string }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Skipped) > 0 {
		l.t.Fatalf("doctor %s: exit %d\n%s%s%v", id, code, out, errs, err)
	}
	for _, f := range doc.Findings {
		if f.ID != id || f.Object == "" || f.Evidence == "" || !strings.HasPrefix(f.Fix, "kctl ") {
			l.t.Errorf("finding %+v is incomplete", f)
		}
	}
	return len(doc.Findings) > 0
}

func (l lab) await(what string, ok func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); pause(l.t) {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// TestLabScenarios: every failure of the lab is found by the check it is for, on a real cluster, and is gone after its undo.
func TestLabScenarios(t *testing.T) {
	c := doctorCluster(t)
	l := lab{t, map[string]string{"HOME": t.TempDir(), "KCTL_TIMEOUT": patience, "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER": c.ZooKeeper()}}
	all := plan.LabScenarios()
	if len(all) < 8 {
		t.Fatalf("%d scenarios", len(all))
	}
	if code, _, errs := l.kctl("lab", "run", all[0].Name, "--yes"); code != 2 || !strings.Contains(errs, "does not carry the mark") {
		t.Fatalf("a cluster that is none of kbroker dev: exit %d, %s", code, errs)
	}
	if err := writeNode(t, c, znode.DevClusterPath, znode.EncodeDevCluster()); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		t.Run(s.Name, func(t *testing.T) {
			l := lab{t, l.env}
			if l.finds(s.Finding) {
				t.Fatalf("%s is found before it was made", s.Finding)
			}
			if code, out, errs := l.kctl("lab", "run", s.Name, "--yes"); code != 0 {
				t.Fatalf("run: exit %d\n%s%s", code, out, errs)
			}
			l.await(s.Finding, func() bool { return l.finds(s.Finding) })
			if code, out, errs := l.kctl("lab", "undo", s.Name, "--yes"); code != 0 {
				t.Fatalf("undo: exit %d\n%s%s", code, out, errs)
			}
			l.await(s.Finding+" to go", func() bool { return !l.finds(s.Finding) })
		})
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(all) {
		t.Error("two scenarios have the same name")
	}
}
