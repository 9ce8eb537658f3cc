package shelltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kctl/broker/brokertest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// watchFor is how long an example that never ends by itself goes on.
const watchFor = 500 * time.Millisecond

// asExample runs the program as an example: what has --dry-run gets it, and what never ends is interrupted.
func asExample() int {
	args := os.Args[1:]
	ctx := context.Background()
	cmd, rest, err := cli.NewRoot(factory.New(iostreams.System(), os.Getenv)).Find(args)
	// Records are produced for real: a dry run reads none of them, and what writes them into the pipe would fail.
	if err == nil && cmd.Flags().Lookup("dry-run") != nil && cmd.Name() != "produce" && !slices.Contains(args, "--dry-run") {
		args = append(args, "--dry-run")
	}
	if err == nil && endless(cmd, rest) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		time.AfterFunc(watchFor, cancel)
	}
	return cli.Run(ctx, args, iostreams.System(), os.Getenv)
}

// endless reports whether a command goes on until it is interrupted.
func endless(cmd *cobra.Command, args []string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(args, w) })
	}
	switch cmd.Name() {
	case "watch":
		return true
	case "consume":
		return !has("-n", "--max-messages", "-e", "--until-end", "--to", "--idle-timeout")
	}
	return has("--watch")
}

// noExamples are the examples that are not run here, and why. Longer lines begin with one of these.
var noExamples = map[string]string{
	"kctl tui":                          "it needs a terminal: tui/tui_test.go",
	"kctl configs set broker-logger/1 ": "loggers are Apache Kafka's: cmd/internal/cli/peers_configs_test.go",
	"kctl reassign execute --resume":    "it needs a run that died: acceptance, TestReassignDiesAtEachStep",
}

// left returns the key of noExamples for a line, empty when it is run.
func left(line string) string {
	for begin := range noExamples {
		if strings.HasPrefix(line, begin) {
			return begin
		}
	}
	return ""
}

// onlyKafka are the nouns that the brokers of this test do not serve: TestAccessExamples of cmd/internal/cli runs theirs on a broker
// that answers for them.
var onlyKafka = []string{"users", "quotas", "acls", "transactions"}

// The cluster on which an example makes sense.
const (
	asLaidOut = iota // with topics, records, groups, files, contexts and a journal
	empty            // before the topics of the examples are there
	noRecords        // with the topics, before there are records
)

// stages are the examples that do not hold on the cluster as it is laid out.
func stageOf(line string) int {
	switch {
	case strings.Contains(line, "kctl topics create"), strings.Contains(line, "kctl zk create"):
		return empty
	case strings.Contains(line, "--expect records=0"):
		return noRecords
	}
	return asLaidOut
}

type example struct {
	command string // of which it is an example, or the page it stands on
	line    string
}

// examples are those of the help of every command, of the README and of the page on kctl's surface.
func examples(t *testing.T) []example {
	var out []example
	streams, _, _ := iostreams.Test("")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, example{strings.TrimPrefix(c.CommandPath(), "kctl "), line})
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cli.NewRoot(factory.New(streams, func(string) string { return "" })))
	runnable := regexp.MustCompile(`(?m)^(?:    )?((?:seq [\d ]+ \| )?(?:bin/)?kctl .*)$`)
	for _, page := range []string{"README.md", "docs/kctl.md"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range runnable.FindAllSubmatch(data, -1) {
			if line := strings.ReplaceAll(string(m[1]), "bin/kctl", "kctl"); strings.HasPrefix(string(m[0]), "    ") || strings.HasPrefix(string(m[1]), "bin/") || strings.HasPrefix(string(m[1]), "seq") {
				out = append(out, example{page, line})
			}
		}
	}
	return out
}

// bench is a cluster with everything that the examples name.
type bench struct {
	t    *testing.T
	c    *brokertest.Cluster
	bash string
	env  []string
	home string // as it is laid out; every example gets a copy
	work string // the current folder, likewise
	to   *strings.Replacer

	version string // of the state of orders:0, which moves by itself when a replica falls behind
}

func newBench(t *testing.T) *bench {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("this test needs bash")
	}
	c := brokertest.Start(t, 5, "log.dirs=%d/a,%d/b", "auto.leader.rebalance.enable=false")
	dir := t.TempDir()
	b := &bench{t: t, c: c, bash: bash, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	bin := filepath.Join(dir, "bin")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{b.home, b.work, bin} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.file(filepath.Join(bin, "kctl"), fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", self))
	if _, err := exec.LookPath("jq"); err != nil {
		b.file(filepath.Join(bin, "jq"), "#!/bin/sh\nexec cat >/dev/null\n") // what kctl prints is run all the same
	}
	b.env = []string{
		"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "KCTL_BOOTSTRAP_SERVER=" + strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER=" + c.ZooKeeper(), "GORACE=" + os.Getenv("GORACE"),
	}
	b.to = strings.NewReplacer(
		"zk1:2181/kafka", c.ZooKeeper(), "zk1:2181", c.ZooKeeper(), "127.0.0.1:2181", c.ZooKeeper(), " …", " "+c.ZooKeeper(), "broker1:9092", c.Addrs()[0],
		"/var/lib/kafka", "./kafka", "/data/b", c.Dir(2)+"/b", "/etc/kafka/", "./",
	)
	return b
}

func (b *bench) file(path, text string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// shell runs a line, as an example or for real, and returns its exit code and what it wrote.
func (b *bench) shell(t *testing.T, home, work, as, line string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.bash, "--norc", "-o", "pipefail", "-c", b.to.Replace(line))
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, &stdout, &stderr
	cmd.Env = append(slices.Clone(b.env), "HOME="+home, asKctl+"="+as)
	cmd.WaitDelay = time.Second // what bash started may hold the pipes
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("%s: it does not end", line)
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	if ok {
		code = exit.ExitCode()
	}
	return code, stdout.String(), stderr.String()
}

// do lays something out.
func (b *bench) do(lines ...string) {
	b.t.Helper()
	for _, line := range lines {
		if code, out, errs := b.shell(b.t, b.home, b.work, "kctl", line); code != 0 && code != 10 {
			b.t.Fatalf("%s: exit %d\n%s%s", line, code, out, errs)
		}
	}
}

// run runs an example in copies of the folders.
func (b *bench) run(t *testing.T, e example) {
	t.Helper()
	dir := t.TempDir()
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	for to, from := range map[string]string{home: b.home, work: b.work} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	line := strings.Replace(e.line, "orders:0 --isr 1,2 --if-version 7", "orders:0 --isr 1,2 --if-version "+b.version, 1)
	code, out, errs := b.shell(t, home, work, "example", line)
	said := strings.HasPrefix(errs, "kctl: ") && !strings.HasPrefix(errs, "kctl: watching") || strings.Contains(errs, "\nkctl: ") || strings.Contains(errs, `"kind":"Error"`)
	if code != 0 && code != 10 || said && code != 10 { // with 10 what was found is said
		t.Errorf("%s: %s\nexit %d\n%s%s", e.command, e.line, code, out, errs)
	}
	if strings.Contains(e.line, "| jq") && out == "null\n" {
		t.Errorf("%s: %s: there is no such field", e.command, e.line)
	}
}

func (b *bench) topics() {
	b.do("kctl topics create orders --replica-assignment 1:2:3,2:3:1,3:1:2,1:2:4,2:3:5,3:1:4 --config cleanup.policy=delete --config retention.ms=86400000")
	for _, name := range []string{"invoices", "payments", "orders-copy", "old-orders"} {
		b.do("kctl topics create " + name + " --partitions 4 --replication-factor 3")
	}
}

// layOut makes the records, groups, files, contexts and changes that the examples speak of.
func (b *bench) layOut() {
	b.do("seq -f %g:paid 1 200 > orders.txt", "kctl produce orders --key-separator : < orders.txt", "kctl produce old-orders < orders.txt",
		"for g in audit nightly; do kctl consume orders --group $g --from-beginning -n 200; done", "kctl consume old-orders --group audit --from-beginning -n 200",
		"kctl groups reset-offsets audit --all-topics --to-current --export backup.csv",
		"kctl reassign generate --drain 3 --topic payments > plan.json", "kctl reassign execute plan.json --yes",
		"kctl leader-and-isr get orders -o json > orders.json",
		`echo '{"partitions":[{"topic":"orders","partition":0}]}' > lost.json`,
		"printf 'bootstrap.servers=%s\\nclient.id=ops\\n' broker1:9092 > client.properties",
		"for c in prod old; do kctl context add $c -b broker1:9092; done",
		"kctl zk create /app x --yes",
		"for i in 1 2 3 4 5 6 7 8 9 10; do kctl zk create /app/c$i x --yes; done", // change 12 is among them
		"kctl zk create /app/mode normal --yes", "kctl zk create /app/copy x --yes", "kctl zk create /app/blob x --yes", "echo 123 > blob.bin",
		"for i in 1 2 3; do kctl zk set /app/mode $i --yes; done", "for i in 1 2 3 4 5 6 7; do kctl zk set /app/blob $i --yes; done",
		"mkdir kafka; cp -r "+b.kafka()+"/* .; cp -r "+b.kafka()+"/* kafka", // files of log directories as Apache Kafka wrote them
		`printf '0\n1\norders 0 10\n' > kafka/replication-offset-checkpoint`,
	)
	for _, dir := range []string{".", "kafka"} {
		b.do("cd " + dir + "; cp -r orders-1 orders-0; cd orders-0; cp 00000000000000000010.snapshot 00000000000000004711.snapshot; " +
			"touch 00000000000000000000.index 00000000000000000000.timeindex 00000000000000004711.txnindex")
	}
	writeNode(b.t, b.c, znode.DevClusterPath, znode.EncodeDevCluster())
	writeNode(b.t, b.c, "/config/topics/gone", []byte(`{"version":1,"config":{}}`))
	b.do("kctl leftovers clean --older-than 1ms --yes", "cd ~/.local/state/kctl; cp leftovers-*.json leftovers-20251129T210000-1.json")
	_, version, _ := b.shell(b.t, b.home, b.work, "kctl", "kctl leader-and-isr get orders:0 -o json | sed -n 's/.*\"zkVersion\": *\\([0-9]*\\).*/\\1/p'")
	b.version = strings.TrimSpace(version)
}

// kafka is the folder of files that Apache Kafka wrote.
func (b *bench) kafka() string {
	path, err := filepath.Abs("../cli/dump/testdata/kafka")
	if err != nil {
		b.t.Fatal(err)
	}
	return path
}

func writeNode(t *testing.T, c *brokertest.Cluster, path string, data []byte) {
	t.Helper()
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	if r := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: path, Data: data, Mode: zkop.Persistent})[0]; r.Err != nil {
		t.Fatal(r.Err)
	}
}

// TestExamples runs the examples of the help, of the README and of docs/kctl.md in a shell, as they stand there but for the
// addresses and folders, on a cluster that holds what they name. What changes something is a dry run. Each ends with 0 or 10 and
// says no error.
func TestExamples(t *testing.T) {
	all := examples(t)
	if len(all) < 200 {
		t.Fatalf("only %d examples were found", len(all))
	}
	b := newBench(t)
	skipped := map[string]bool{}
	stage := func(n int, name string) {
		t.Run(name, func(t *testing.T) {
			for _, e := range all {
				noun, _, _ := strings.Cut(e.command, " ")
				switch why := left(e.line); {
				case why != "":
					skipped[why] = true
				case stageOf(e.line) == n && !slices.Contains(onlyKafka, noun):
					t.Run(e.command, func(t *testing.T) {
						t.Parallel()
						b.run(t, e)
					})
				}
			}
		})
	}
	stage(empty, "empty")
	b.topics()
	stage(noRecords, "no records")
	b.layOut()
	stage(asLaidOut, "laid out")
	for begin := range noExamples {
		if !skipped[begin] {
			t.Errorf("%s is no example any more", begin)
		}
	}
}
