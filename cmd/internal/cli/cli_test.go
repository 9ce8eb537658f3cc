package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

var update = flag.Bool("update", false, "write the golden files anew")

// kctl runs the program in process, in an empty home, without a terminal.
type kctl struct {
	t    *testing.T
	env  map[string]string
	in   string
	out  *bytes.Buffer
	err  *bytes.Buffer
	code int
}

func newKctl(t *testing.T) *kctl {
	t.Helper()
	return &kctl{t: t, env: map[string]string{"HOME": t.TempDir()}}
}

// run runs once; also in a clean-up, when the context of the test has ended.
func (k *kctl) run(args ...string) *kctl {
	k.t.Helper()
	streams, out, errb := iostreams.Test(k.in)
	k.out, k.err = out, errb
	k.code = cli.Run(context.WithoutCancel(k.t.Context()), args, streams, func(name string) string { return k.env[name] })
	return k
}

// want checks exit code and parts of stdout and stderr; an empty part means that the stream is empty.
func (k *kctl) want(code exit.Code, out, err string) {
	k.t.Helper()
	if k.code != int(code) {
		k.t.Errorf("exit %d, want %d\nstdout: %s\nstderr: %s", k.code, code, k.out, k.err)
	}
	for _, s := range []struct{ name, got, want string }{{"stdout", k.out.String(), out}, {"stderr", k.err.String(), err}} {
		if s.want == "" && s.got != "" || !strings.Contains(s.got, s.want) {
			k.t.Errorf("%s: got %q, want %q", s.name, s.got, s.want)
		}
	}
}

// TestExitCodes: every kind of error has its code, in the one table.
func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want exit.Code
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{&admin.Error{Kind: admin.Failed}, 1},
		{&admin.Error{Kind: admin.NotFound}, 1},
		{exit.Usagef("x"), 2},
		{&admin.Error{Kind: admin.BadInput}, 2},
		{&exit.Error{Code: exit.Partial}, 3},
		{&admin.Error{Kind: admin.Unauthorized}, 4},
		{&admin.Error{Kind: admin.Unreachable}, 5},
		{context.DeadlineExceeded, 5},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, 5},
		{fmt.Errorf("outer: %w", &admin.Error{Kind: admin.Unreachable}), 5},
		{context.Canceled, 1},
		{exit.Silent(exit.Problems), 10},
	} {
		if got := exit.CodeOf(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
	var codes []string
	for _, e := range exit.Table() {
		codes = append(codes, fmt.Sprint(int(e.Code)))
	}
	if strings.Join(codes, " ") != "0 1 2 3 4 5 10" {
		t.Errorf("table holds %v", codes)
	}
}

// TestUsageErrors: each is exit 2, says what is wrong on stderr, prints nothing on stdout and contacts nobody
// (a contact would be exit 5: nothing listens at the default address of these tests).
func TestUsageErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.properties")
	if err := os.WriteFile(bad, []byte("bootstrap.server=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	election := filepath.Join(dir, "e.json")
	if err := os.WriteFile(election, []byte(`{"partitions":[{"topic":"a"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, err string }{
		{"bogus", `unknown command "bogus"`},
		{"topics lsit", `did you mean "kctl topics list"?`},
		{"topics list --foo", "unknown flag: --foo"},
		{"topics list --outptu json", "did you mean --output? kctl topics list --help"},
		{"partitions list --underreplicated", "did you mean --under-replicated?"},
		{"topics list x", "takes no arguments"},
		{"topics list --topic (", "not a regular expression"},
		{"topics list -o xml", `output "xml" is not one of`},
		{"topics list --timeout never", "--timeout"},
		{"topics list --timeout -1s", "above zero"},
		{"topics list -b a,,b", "bootstrap server 2"},
		{"topics list -b zk:2181/kafka", "belongs to --zookeeper"},
		{"topics list -z h1:1/kc,h2:2/kc", "h1:1,h2:2/kc"},
		{"topics list -X nope=1", `unknown setting "nope"`},
		{"topics list -X bootstrap.server=1", `did you mean "bootstrap.servers"?`},
		{"topics list -X nope", "not key=value"},
		{"topics list -X security.protocol=SSSL", "security.protocol"},
		{"topics list --command-config /does/not/exist", "no such file"},
		{"topics list --command-config " + bad, `unknown setting "bootstrap.server"`},
		{"topics list --context nope", `context "nope" does not exist`},
		{"topics create", "needs one topic name"},
		{"topics create a*b", "not legal"},
		{"topics create ..", "not legal"},
		{"topics create " + strings.Repeat("x", 250), "too long"},
		{"topics create a --partitions 0", "--partitions 0"},
		{"topics create a --partitions x", "--partitions"},
		{"topics create a --replication-factor 0", "--replication-factor 0"},
		{"topics create a --replica-assignment 1:1", "names broker 1 twice"},
		{"topics create a --replica-assignment 1 --partitions 2", "excludes"},
		{"topics create a --config x", "not key=value"},
		{"topics delete", "at least one topic"},
		{"topics describe a:b", "not legal"},
		{"partitions list a:x", "not a number"},
		{"partitions list --source etcd", "protocol or zookeeper"},
		{"leader-and-isr get", "at least one"},
		{"leader-and-isr get a:-1", "not a number"},
		{"brokers describe x", "not a number"},
		{"brokers describe 1 2", "takes one broker id"},
		{"elect preferred", "exactly one way"},
		{"elect preferred a --all", "exactly one way"},
		{"elect preferred --file /does/not/exist", "--file"},
		{"elect preferred --file " + election, "needs topic and partition"},
		{"elect preferred a --wait -1s", "--wait"},
		{"lag replicas --interval 0s", "--interval"},
		{"transitions --older-than 0s", "--older-than"},
		{"cluster health --interval 0s", "--interval"},
		{"zk ls", "-z HOST:PORT"},
		{"zk get a -z h:1", "does not start with /"},
		{"zk get", "needs one path"},
		{"produce", "needs one topic name"},
		{"produce a --acks 2", "--acks"},
		{"produce a --compression rar", "not one of none, gzip"},
		{"consume a -f %x", "%x is not known"},
		{`consume a -f \q`, `\q is not known`},
		{"consume a --offset -2", "--offset -2"},
		{"consume a --offset 1 --from-beginning", "excludes"},
		{"consume a --group g --partition 1", "excludes"},
		{"consume a --max-messages -1", "--max-messages"},
		{"schema Nope", `kind "Nope"`},
		{"schema TopicLst", `did you mean "TopicList"?`},
		{"tui", "needs a terminal"},
		{"context add x", "needs --bootstrap-server or --zookeeper"},
		{"context use x", `context "x" does not exist`},
		{"history --limit -1", "--limit"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			k := newKctl(t)
			k.env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:1"
			if strings.Contains(tt.args, "context add") {
				delete(k.env, "KCTL_BOOTSTRAP_SERVER")
			}
			k.run(strings.Fields(tt.args)...).want(exit.Usage, "", tt.err)
		})
	}
}

// TestUnreachable: exit 5 with the cause, as text and as one JSON object on stderr.
func TestUnreachable(t *testing.T) {
	k := newKctl(t)
	for _, args := range [][]string{
		{"cluster", "health"}, {"topics", "list"}, {"partitions", "list"}, {"lag", "replicas"}, {"transitions"},
		{"brokers", "list"}, {"elect", "preferred", "--all"}, {"topics", "create", "a", "--partitions", "1"},
		{"leader-and-isr", "get", "a"}, {"consume", "a"}, {"produce", "a"},
	} {
		k.run(append(args, "-b", "127.0.0.1:1")...).want(exit.Unreachable, "", "127.0.0.1:1: connection refused")
		k.run(append(args, "-b", "127.0.0.1:1", "-o", "json")...).want(exit.Unreachable, "", "connection refused")
		var doc map[string]any
		if err := json.Unmarshal(k.err.Bytes(), &doc); err != nil || doc["kind"] != "Error" || doc["code"] != 5.0 || doc["hint"] == "" {
			t.Errorf("%v: stderr is not one error object: %v %s", args, err, k.err)
		}
	}
}

// TestUnreachableZooKeeper: with ZooKeeper alone its silence is told once, though brokers were looked for in it too.
func TestUnreachableZooKeeper(t *testing.T) {
	k := newKctl(t)
	for _, args := range [][]string{
		{"cluster", "health"}, {"cluster", "diff"}, {"doctor"}, {"leftovers", "list"}, {"topics", "list"}, {"transitions"}, {"brokers", "list"},
		{"users", "list"}, {"zk", "ls", "/"}, {"leader-and-isr", "get", "a"}, {"reassign", "status"},
	} {
		k.run(append(args, "-z", "127.0.0.1:1")...).want(exit.Unreachable, "", "ZooKeeper is not reachable")
		if n := strings.Count(k.err.String(), "ZooKeeper is not reachable"); n != 1 {
			t.Errorf("%v: told %d times: %s", args, n, k.err)
		}
	}
}

// TestPrecedence: flag over environment over context over default.
func TestPrecedence(t *testing.T) {
	k := newKctl(t)
	k.run("context", "add", "c", "-b", "127.0.0.1:3", "--use").want(exit.OK, "", "context c")
	k.run("topics", "list").want(exit.Unreachable, "", "127.0.0.1:3")
	k.env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:2"
	k.run("topics", "list").want(exit.Unreachable, "", "127.0.0.1:2")
	k.run("topics", "list", "-b", "127.0.0.1:1").want(exit.Unreachable, "", "127.0.0.1:1")
	k.run("topics", "list", "--brokers", "127.0.0.1:1").want(exit.Unreachable, "", "127.0.0.1:1")
	k.run("topics", "list", "--bootstrap-servers", "127.0.0.1:1").want(exit.Unreachable, "", "127.0.0.1:1")
	k.run("topics", "list", "-X", "bootstrap.servers=127.0.0.1:4").want(exit.Unreachable, "", "127.0.0.1:4")
	k.run("topics", "list", "-X", "bootstrap.servers=127.0.0.1:4", "-b", "127.0.0.1:1").want(exit.Unreachable, "", "127.0.0.1:1")
	delete(k.env, "KCTL_BOOTSTRAP_SERVER")
	k.run("topics", "list", "-X", "bootstrap.servers=127.0.0.1:4").want(exit.Unreachable, "", "127.0.0.1:4")
	k.env["KCTL_OUTPUT"] = "xml"
	k.run("topics", "list").want(exit.Usage, "", `"xml"`)
	k.run("topics", "list", "-o", "json").want(exit.Unreachable, "", `"code":5`)
}

func TestContexts(t *testing.T) {
	k := newKctl(t)
	k.run("context", "list").want(exit.OK, "CURRENT", "no contexts")
	k.run("context", "show").want(exit.Failed, "", "no context is current")
	k.run("context", "add", "Prod", "-b", "a:1,b:2", "-z", "z:1/kafka", "-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=PLAIN",
		"-X", "sasl.username=u", "-X", "sasl.password=topsecret").want(exit.OK, "", "Prod")
	k.run("context", "add", "audit", "-b", "127.0.0.1:1", "--read-only").want(exit.OK, "", "audit")
	k.run("context", "show", "-o", "json").want(exit.OK, `"name": "Prod"`, "")
	if strings.Contains(k.out.String(), "topsecret") || !strings.Contains(k.out.String(), "sasl.password=***") {
		t.Errorf("the secret is shown: %s", k.out)
	}
	k.run("context", "list", "-o", "name").want(exit.OK, "Prod\naudit\n", "")
	k.run("context", "use", "audt").want(exit.Usage, "", `did you mean "audit"?`)
	k.run("context", "use", "audit").want(exit.OK, "", "audit")
	k.run("topics", "create", "a", "--partitions", "1").want(exit.Usage, "", "read-only")
	k.run("topics", "delete", "a", "--yes").want(exit.Usage, "", "read-only")
	k.run("elect", "preferred", "a").want(exit.Usage, "", "read-only")
	k.run("produce", "a").want(exit.Usage, "", "read-only")
	k.run("context", "delete", "Prod").want(exit.OK, "", "removed")
	k.run("context", "show", "Prod").want(exit.Usage, "", "does not exist")

	path := filepath.Join(k.env["HOME"], ".config", "kctl", "config.yaml")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("configuration file: %v %v", info, err)
	}
	if err := os.WriteFile(path, []byte("contexts:\n- name: x\n  bootstrap: a:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("topics", "list").want(exit.Usage, "", "bootstrap")
}

func TestCommandConfig(t *testing.T) {
	k := newKctl(t)
	file := filepath.Join(t.TempDir(), "client.properties")
	if err := os.WriteFile(file, []byte("bootstrap.servers=127.0.0.1:6\nclient.id=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("topics", "list", "--command-config", file).want(exit.Unreachable, "", "127.0.0.1:6")
	k.env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:8"
	k.run("topics", "list", "--command-config", file).want(exit.Unreachable, "", "127.0.0.1:6")
	k.env["KCTL_COMMAND_CONFIG"] = file
	k.run("topics", "list").want(exit.Unreachable, "", "127.0.0.1:8")
	delete(k.env, "KCTL_BOOTSTRAP_SERVER")
	k.run("topics", "list").want(exit.Unreachable, "", "127.0.0.1:6")
	k.run("topics", "list", "-b", "127.0.0.1:7").want(exit.Unreachable, "", "127.0.0.1:7")
}

func TestVersionSchemaAndDocs(t *testing.T) {
	k := newKctl(t)
	k.run("version").want(exit.OK, "kctl ", "")
	k.run("version", "-o", "json").want(exit.OK, `"apiVersion": "kctl/v1"`, "")
	k.run("schema").want(exit.OK, "LeaderAndISR\nLeaderAndISRChange\nLeaderAndISRChangeList\n", "")
	k.run("schema", "PartitionList").want(exit.OK, `"preferredLeader"`, "")
	k.run("-X", "list").want(exit.OK, "sasl.jaas.config", "")
	k.run("topics", "list", "-X", "help").want(exit.OK, "sasl.jaas.config", "")
	k.run("history", "-o", "json").want(exit.OK, `"kind": "ChangeList"`, "")
	k.run("completion", "bash").want(exit.OK, "bash completion", "")
	dir := t.TempDir()
	k.run("docs", "man", filepath.Join(dir, "man")).want(exit.OK, "", "wrote")
	k.run("docs", "markdown", filepath.Join(dir, "md")).want(exit.OK, "", "wrote")
	for _, f := range []string{"man/kctl-lag-replicas.1", "md/kctl_leader-and-isr_get.md"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}

// TestHelpTree holds the whole help in one golden file and demands of every verb what house rules demand.
func TestHelpTree(t *testing.T) {
	streams, _, _ := iostreams.Test("")
	root := cli.NewRoot(factory.New(streams, func(string) string { return "" }))
	var b bytes.Buffer
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		fmt.Fprintf(&b, "\n===== %s\n", c.CommandPath())
		c.SetOut(&b)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		if c.Short == "" || !c.HasSubCommands() && c.Example == "" {
			t.Errorf("%s has no short text or no example", c.CommandPath())
		}
		if c.Run != nil {
			t.Errorf("%s uses Run, not RunE", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	golden(t, "help.txt", b.Bytes())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test ./cmd/internal/cli -update and look at the change\n%s", name, firstDifference(got, want))
	}
}

func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			old := "(end)"
			if i < len(w) {
				old = w[i]
			}
			return fmt.Sprintf("line %d:\n got %q\nwant %q", i+1, g[i], old)
		}
	}
	return "the golden file is longer"
}
