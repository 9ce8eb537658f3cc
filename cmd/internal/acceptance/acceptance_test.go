package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"kctl/broker/brokertest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// TestScripts runs every script. Commands beside testscript's own:
//
//	kctl [rc=N] [in=FILE] [wait=DUR] [has=REGEXP]... [for=DUR] ARGS...
//	                                           run kctl in process; demand exit code N (0) and a stdout that matches;
//	                                           with wait, again and again until it does; with for, interrupt it then
//	fields PATH NAME...                        the JSON object at PATH of the last stdout has these fields, in order
//	value PATH VALUE                           the JSON value at PATH of the last stdout
//	crash|shutdown|restart ID                 a broker crashes, ends in order, comes back
//	await-count N kctl ARGS...                 run kctl again and again until it prints N lines
//	move-state TOPIC PARTITION LEADER          write a decision that no broker is told of
//
// A script that stops early passes: testscript's own "stop" must not be used for brokers.
//
// Whatever a script demands, every JSON document that kctl prints holds to the schema of its kind.
//
// $DIR1 to $DIR3 are the brokers' folders; a cluster.properties beside the scripts sets more of the brokers, with %d
// for that folder. $BROKERS, $ZK and $CONTROLLER name the cluster; kctl is given the first two by its environment.
func TestScripts(t *testing.T) {
	dirs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		t.Run(d.Name(), func(t *testing.T) {
			c := brokertest.Start(t, 3, append(properties(t, d.Name()), "auto.leader.rebalance.enable=false")...)
			testscript.Run(t, testscript.Params{
				Dir: filepath.Join("testdata", d.Name()), RequireExplicitExec: true,
				Setup: func(e *testscript.Env) error {
					for name, value := range map[string]string{
						"HOME": e.WorkDir, "KCTL_TIMEOUT": patience, "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER": c.ZooKeeper(),
						"BROKERS": strings.Join(c.Addrs(), ","), "BROKER": c.Addrs()[0], "ZK": c.ZooKeeper(), "CONTROLLER": fmt.Sprint(c.Controller()),
						"DIR1": c.Dir(1), "DIR2": c.Dir(2), "DIR3": c.Dir(3),
						"LONGEST": strings.Repeat("a", 249), "TOOLONG": strings.Repeat("a", 250),
					} {
						e.Setenv(name, value)
					}
					return nil
				},
				Cmds: commands(t, c),
			})
		})
	}
}

// properties are the brokers' settings in cluster.properties beside the scripts of a folder, if there is one.
func properties(t *testing.T, folder string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", folder, "cluster.properties"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

type command = func(ts *testscript.TestScript, neg bool, args []string)

func commands(t *testing.T, c *brokertest.Cluster) map[string]command {
	onBroker := func(fn func(cluster.BrokerID)) command {
		return func(ts *testscript.TestScript, _ bool, args []string) {
			id, err := strconv.Atoi(args[0])
			ts.Check(err)
			fn(cluster.BrokerID(id))
			ts.Setenv("KCTL_BOOTSTRAP_SERVER", strings.Join(c.Addrs(), ","))
		}
	}
	return map[string]command{
		"kctl":  func(ts *testscript.TestScript, _ bool, args []string) { runKctl(t, ts, args) },
		"crash": onBroker(c.Kill), "shutdown": onBroker(c.Stop), "restart": onBroker(c.Restart),
		"await-count": func(ts *testscript.TestScript, _ bool, args []string) { awaitCount(t, ts, args) },
		"fields":      checkFields,
		"value":       checkValue,
		"move-state":  func(ts *testscript.TestScript, _ bool, args []string) { moveState(t, c, ts, args) },
	}
}

// patience is the --timeout of kctl in scripts: a busy machine has the time it needs. Where the time itself is shown, the script sets
// another one.
const patience = "1m"

// environment is what a script may set for kctl.
var environment = []string{
	"HOME", "KCTL_BOOTSTRAP_SERVER", "KCTL_ZOOKEEPER", "KCTL_TIMEOUT", "KCTL_OUTPUT", "KCTL_CONTEXT", "XDG_CONFIG_HOME", "XDG_STATE_HOME",
}

func runKctl(t *testing.T, ts *testscript.TestScript, args []string) {
	code, in, wait, limit := 0, "", time.Duration(0), time.Duration(0)
	var has []*regexp.Regexp
	for len(args) > 0 {
		var err error
		if v, ok := strings.CutPrefix(args[0], "rc="); ok {
			code, err = strconv.Atoi(v)
		} else if v, ok := strings.CutPrefix(args[0], "in="); ok {
			in = ts.ReadFile(v)
		} else if v, ok := strings.CutPrefix(args[0], "wait="); ok {
			wait, err = time.ParseDuration(v)
		} else if v, ok := strings.CutPrefix(args[0], "has="); ok {
			var re *regexp.Regexp
			re, err = regexp.Compile("(?m)" + v)
			has = append(has, re)
		} else if v, ok := strings.CutPrefix(args[0], "for="); ok {
			limit, err = time.ParseDuration(v)
		} else {
			break
		}
		ts.Check(err)
		args = args[1:]
	}
	env := map[string]string{}
	for _, name := range environment {
		env[name] = ts.Getenv(name)
	}
	deadline := time.Now().Add(wait)
	for {
		streams, out, errb := iostreams.Test(in)
		ctx, interrupt := context.WithCancel(t.Context())
		if limit > 0 {
			time.AfterFunc(limit, interrupt)
		}
		got := cli.Run(ctx, args, streams, func(name string) string { return env[name] })
		interrupt()
		lacks := slices.IndexFunc(has, func(re *regexp.Regexp) bool { return !re.Match(out.Bytes()) })
		if (got != code || lacks >= 0) && time.Now().Before(deadline) {
			pause(t)
			continue
		}
		fmt.Fprint(ts.Stdout(), out)
		fmt.Fprint(ts.Stderr(), errb)
		ts.Check(seen.document(t, out.Bytes()))
		ts.Check(seen.document(t, errb.Bytes()))
		ts.Check(seen.read(env["HOME"]))
		if got != code {
			ts.Fatalf("kctl %s: exit %d, want %d", strings.Join(args, " "), got, code)
		}
		if lacks >= 0 {
			ts.Fatalf("kctl %s: no match for %s", strings.Join(args, " "), has[lacks])
		}
		return
	}
}

// awaitCount runs kctl until it prints so many lines.
func awaitCount(t *testing.T, ts *testscript.TestScript, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := -1
	for deadline := time.Now().Add(3 * time.Minute); got != want; pause(t) {
		if time.Now().After(deadline) {
			ts.Fatalf("%d lines after three minutes, want %d", got, want)
		}
		streams, out, _ := iostreams.Test("")
		cli.Run(t.Context(), args[2:], streams, ts.Getenv)
		got = strings.Count(out.String(), "\n")
	}
}

// pause waits before an observed condition is looked at again.
func pause(t *testing.T) {
	select {
	case <-t.Context().Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// at walks a JSON document: names and numbers joined by dots; "." is the document.
func at(ts *testscript.TestScript, path string) json.RawMessage {
	doc := json.RawMessage(ts.ReadFile("stdout"))
	if path == "." {
		return doc
	}
	for _, step := range strings.Split(path, ".") {
		if n, err := strconv.Atoi(step); err == nil {
			var list []json.RawMessage
			ts.Check(json.Unmarshal(doc, &list))
			if n >= len(list) {
				ts.Fatalf("%s: the list has %d entries", path, len(list))
			}
			doc = list[n]
			continue
		}
		var object map[string]json.RawMessage
		ts.Check(json.Unmarshal(doc, &object))
		if object[step] == nil {
			ts.Fatalf("%s: there is no %q in %s", path, step, doc)
		}
		doc = object[step]
	}
	return doc
}

func checkFields(ts *testscript.TestScript, _ bool, args []string) {
	dec := json.NewDecoder(bytes.NewReader(at(ts, args[0])))
	var got []string
	if _, err := dec.Token(); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	for dec.More() {
		name, err := dec.Token()
		ts.Check(err)
		got = append(got, fmt.Sprint(name))
		var skip json.RawMessage
		ts.Check(dec.Decode(&skip))
	}
	if !slices.Equal(got, args[1:]) {
		ts.Fatalf("%s has the fields\n%s, want\n%s", args[0], strings.Join(got, " "), strings.Join(args[1:], " "))
	}
}

func checkValue(ts *testscript.TestScript, neg bool, args []string) {
	var compact bytes.Buffer
	ts.Check(json.Compact(&compact, at(ts, args[0])))
	got := strings.Trim(compact.String(), `"`)
	if (got == args[1]) == neg {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// moveState writes a new leader and epoch into a state node, at the version read, and tells nobody: what a
// controller leaves behind whose requests were all lost.
func moveState(t *testing.T, c *brokertest.Cluster, ts *testscript.TestScript, args []string) {
	part, err := strconv.Atoi(args[1])
	ts.Check(err)
	leader, err := strconv.Atoi(args[2])
	ts.Check(err)
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	ts.Check(err)
	defer zk.Close()
	tp := cluster.TopicPartition{Topic: args[0], Partition: int32(part)}
	r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: znode.StatePath(tp)})[0]
	ts.Check(r.Err)
	state, err := znode.DecodeState(tp, r.Data)
	ts.Check(err)
	state.Leader, state.LeaderEpoch = cluster.BrokerID(leader), state.LeaderEpoch+1
	ts.Check(zk.Do(t.Context(), zkutil.AnySession, zkop.Request{
		Kind: zkop.Set, Path: znode.StatePath(tp), Data: state.Encode(), Version: r.Stat.Version,
	})[0].Err)
}
