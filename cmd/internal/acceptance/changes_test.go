package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kctl/admin/rows"
	"kctl/broker/brokertest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/journal"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// otherSteps are commands that change something by other steps than the rest, and why.
var otherSteps = map[string]string{
	"produce":            "records are data: nothing is asked, nothing is journaled, and there is no answer but the exit code",
	"transactions abort": "the brokers of these tests have no transactions: cmd/internal/cli/groups_peers_test.go TestPeerTransactions",
}

// changeCase is a command that changes something.
type changeCase struct {
	name    string
	args    func() string // after prepare
	prepare func()
	probe   string // a command whose answer belongs to the state, beside ZooKeeper and kctl's own files
	free    bool   // it asks nobody: it creates only, or a flag of its own is the consent
	alone   bool   // no broker answers: ZooKeeper is written
	writes  string // the command in the journal, when it is another
}

// changes runs every one of them on one cluster.
type changes struct {
	lab
	c    *brokertest.Cluster
	zk   zkutil.Client
	home string
}

// TestEveryChange: all commands that change a cluster keep the same promises. A dry run, and a question that is declined or cannot
// be asked, change nothing and write nothing into the journal; with json a dry run and a change answer with one document and say
// nothing else; a declined question is exit 1, one that cannot be asked 2; what was done is in the journal with its way back.
func TestEveryChange(t *testing.T) {
	c := brokertest.Start(t, 3, "auto.leader.rebalance.enable=false", "log.dirs=%d/a,%d/b")
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: c.ZooKeeper()})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	s := &changes{c: c, zk: zk, home: t.TempDir()}
	s.lab = lab{t, map[string]string{"HOME": s.home, "KCTL_TIMEOUT": patience, "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER": c.ZooKeeper()}}
	if err := writeNode(t, c, znode.DevClusterPath, znode.EncodeDevCluster()); err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, cmd := range changing() {
		open[strings.TrimPrefix(cmd.CommandPath(), "kctl ")] = true
	}
	for _, ch := range slices.Concat(s.topicCases(), s.partitionCases(), s.groupCases(), s.nodeCases(), s.accessCases(), s.brokenCases()) {
		if !t.Run(ch.name, func(t *testing.T) { s.keepsPromises(t, ch) }) {
			return // the next ones build on it
		}
		delete(open, ch.name)
	}
	for name := range open {
		if otherSteps[name] == "" {
			t.Errorf("kctl %s: say in this test how it changes something", name)
		}
	}
}

func (s *changes) keepsPromises(t *testing.T, ch changeCase) {
	s.t = t
	if ch.prepare != nil {
		ch.prepare()
	}
	words := append(strings.Fields(ch.name), args(ch.args())...)
	env := maps.Clone(s.env)
	if ch.alone {
		env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:1"
		words = append(words, "--break-glass")
	}
	run := func(ctx context.Context, in io.Reader, more ...string) (int, string, string) {
		streams, out, errb := iostreams.Test("")
		if in != nil {
			streams.In, streams.InTTY, streams.ErrTTY = in, true, true
		}
		code := cli.Run(ctx, slices.Concat(words, more), streams, func(name string) string { return env[name] })
		return code, out.String(), errb.String()
	}
	before, entries := s.settled(ch.probe), s.journal()
	unchanged := func(after string) {
		t.Helper()
		if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.state(ch.probe), "\n")); diff != "" {
			t.Errorf("%s has changed something:\n%s", after, diff)
		}
		if n := len(s.journal()); n != len(entries) {
			t.Errorf("after %s the journal has %d entries more", after, n-len(entries))
		}
	}

	code, out, errs := run(t.Context(), nil, "--dry-run", "-o", "json")
	if err := answers(out, errs); code != 0 || err != nil {
		t.Errorf("dry run: exit %d, %v\n%s%s", code, err, out, errs)
	}
	unchanged("a dry run")
	if !ch.free {
		if code, _, errs := run(t.Context(), strings.NewReader("n\n")); code != 1 || !strings.Contains(errs, "[y/N]") || !strings.Contains(errs, "nothing was changed") {
			t.Errorf("declined: exit %d\n%s", code, errs)
		}
		unchanged("a declined question")
		if code, _, errs := run(t.Context(), nil); code != 2 || !strings.Contains(errs, "needs --yes") {
			t.Errorf("without a terminal: exit %d\n%s", code, errs)
		}
		unchanged("a question that cannot be asked")
		s.interrupted(ch, run)
		entries = s.journal()
	}

	code, out, errs = run(t.Context(), nil, "--yes", "-o", "json")
	if err := answers(out, errs); code != 0 || err != nil {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	now := s.journal()
	if len(now) <= len(entries) {
		t.Fatal("the journal knows nothing of it")
	}
	for _, e := range now[len(entries):] {
		if e.Command != ch.journaled() || e.Result != journal.Done || e.Undo == "" || e.Cluster == "" {
			t.Errorf("the journal has %+v", e)
		}
	}
}

// journaled is the command that the journal names.
func (ch *changeCase) journaled() string {
	if ch.writes != "" {
		return ch.writes
	}
	return ch.name
}

// interrupted: who consents and interrupts the command before it has done anything finds the attempt in the journal, with why it
// failed, and the cluster as it was. (kctl's own files may hold what the change would have replaced.)
func (s *changes) interrupted(ch changeCase, run func(context.Context, io.Reader, ...string) (int, string, string)) {
	s.t.Helper()
	before, entries := s.cluster(ch.probe), len(s.journal())
	ctx, interrupt := context.WithCancel(s.t.Context())
	defer interrupt()
	code, _, errs := run(ctx, consent(interrupt))
	if code != 1 && code != 3 {
		s.t.Errorf("interrupted: exit %d\n%s", code, errs)
	}
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(s.cluster(ch.probe), "\n")); diff != "" {
		s.t.Errorf("interrupted, and something has changed:\n%s", diff)
	}
	now := s.journal()[entries:]
	if len(now) == 0 {
		s.t.Errorf("interrupted, and the journal knows nothing of it\n%s", errs)
		return
	}
	if e := now[len(now)-1]; e.Command != ch.journaled() || e.Result == journal.Done || e.Result == "" {
		s.t.Errorf("interrupted, and the journal has %+v", e)
	}
}

// consent is a terminal on which somebody says yes and interrupts.
type consent context.CancelFunc

func (c consent) Read(p []byte) (int, error) {
	c()
	return copy(p, "y\n"), io.EOF
}

// answers holds the output of a command with -o json to its form: one document on stdout, nothing but objects on stderr.
func answers(out, errs string) error {
	var head struct{ APIVersion, Kind string }
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&head); err != nil {
		return fmt.Errorf("stdout is no document: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("stdout has more than one document")
	}
	if head.APIVersion != rows.APIVersion || head.Kind == "" {
		return fmt.Errorf("the document is a %q of %q", head.Kind, head.APIVersion)
	}
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			return fmt.Errorf("stderr has %q", line)
		}
	}
	return nil
}

// args splits a command line; words in single quotes stay together.
func args(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

func (s *changes) journal() []journal.Entry {
	entries, bad, err := journal.Read(filepath.Join(s.home, ".local", "state", "kctl", "history.jsonl"))
	if err != nil || len(bad) > 0 {
		s.t.Fatal(err, bad)
	}
	return entries
}

// settled is the state as soon as it stands still: what the case before left under way has ended.
func (s *changes) settled(probe string) (state string) {
	s.await("the cluster to stand still", func() bool {
		last := state
		state = s.state(probe)
		return state == last
	})
	return state
}

// stateNode is the znode of a partition's leaderAndISR. Of it only the leader counts: an ISR shrinks by itself on a busy machine.
var stateNode = regexp.MustCompile(`/partitions/[0-9]+/state$`)

// state is what must not change: the cluster, and the files of kctl. The journal, which is made empty before a question, and locks
// do not count.
func (s *changes) state(probe string) string {
	var b strings.Builder
	err := filepath.WalkDir(s.home, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(file, "history.jsonl") && !strings.HasSuffix(file, ".lock") {
			data, rerr := os.ReadFile(file)
			fmt.Fprintf(&b, "%s %d bytes\n", file, len(data))
			return rerr
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.cluster(probe) + b.String()
}

// cluster is every znode with its version and data, and the answer of the probe.
func (s *changes) cluster(probe string) string {
	var b strings.Builder
	var walk func(p string)
	walk = func(p string) {
		rs := s.zk.Do(s.t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: p}, zkop.Request{Kind: zkop.Children, Path: p})
		if rs[0].Err != nil || rs[1].Err != nil || p == "/isr_change_notification" {
			return // it has just gone: the parent's list is the newer one next time
		}
		if stateNode.MatchString(p) {
			var node struct{ Leader int }
			_ = json.Unmarshal(rs[0].Data, &node)
			fmt.Fprintf(&b, "%s leader %d\n", p, node.Leader)
		} else {
			fmt.Fprintf(&b, "%s %d %q\n", p, rs[0].Stat.Version, rs[0].Data)
		}
		slices.Sort(rs[1].Children)
		for _, name := range rs[1].Children {
			walk(path.Join(p, name))
		}
	}
	walk("/")
	if probe != "" {
		_, out, _ := s.kctl(strings.Fields(probe)...)
		b.WriteString(out)
	}
	return b.String()
}

// must runs kctl for what a case needs.
func (s *changes) must(line string) string {
	s.t.Helper()
	code, out, errs := s.kctl(args(line)...)
	if code != 0 {
		s.t.Fatalf("kctl %s: exit %d\n%s%s", line, code, out, errs)
	}
	return out
}

// file writes what a command reads and returns its path.
func (s *changes) file(name, content string) string {
	p := filepath.Join(s.home, name)
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return p
}

func fixed(line string) func() string { return func() string { return line } }

func (s *changes) topicCases() []changeCase {
	return []changeCase{
		{name: "topics create", args: fixed("fresh --replica-assignment 1:2:3,2:3:1"), free: true},
		{name: "topics alter", args: fixed("fresh --partitions 3")},
		{name: "configs set", args: fixed("topic/fresh retention.ms=1000")},
		{name: "configs delete", args: fixed("topic/fresh retention.ms")},
		{name: "topics delete", args: fixed("gone"), prepare: func() { s.must("topics create gone --replica-assignment 1") }},
	}
}

func (s *changes) partitionCases() []changeCase {
	var saved, plan, now string
	return []changeCase{
		{name: "log-dirs move", probe: "log-dirs describe --broker 1 --topic fresh --replicas -o name", args: func() string {
			var doc struct{ Items []struct{ Dir string } }
			if err := json.Unmarshal([]byte(s.must("log-dirs describe --broker 1 --topic fresh --replicas -o json")), &doc); err != nil || len(doc.Items) == 0 {
				s.t.Fatal(doc, err)
			}
			to := s.c.Dir(1) + "/a"
			if doc.Items[0].Dir == to {
				to = s.c.Dir(1) + "/b"
			}
			return "fresh --broker 1 --wait 1m --to " + to
		}},
		{name: "elect leader", args: fixed("fresh:0 2")},
		{name: "elect preferred", args: fixed("fresh:0")},
		{name: "leader-and-isr set", args: fixed("fresh:0 --leader 3 --wait 1m"), prepare: func() { saved = s.file("saved.json", s.must("leader-and-isr get fresh:0 -o json")) }},
		{name: "leader-and-isr restore", args: func() string { return saved + " --wait 1m" }},
		{name: "reassign execute", args: func() string { return plan }, prepare: func() {
			plan = s.file("plan.json", `{"version":1,"partitions":[{"topic":"fresh","partition":1,"replicas":[3,2]}]}`)
		}},
		{name: "reassign rollback", args: func() string { return plan }},
		{name: "reassign verify", args: func() string { return now + " --remove-throttles" }, prepare: func() {
			now = s.file("now.json", `{"version":1,"partitions":[{"topic":"fresh","partition":1,"replicas":[2,3,1]}]}`)
			s.must("configs set topic/fresh leader.replication.throttled.replicas=1:2,1:3 --yes")
		}},
	}
}

func (s *changes) groupCases() []changeCase {
	return []changeCase{
		{name: "groups reset-offsets", args: fixed("g --topic fresh --to-earliest"), probe: "groups list -o json", free: true, prepare: func() {
			s.kctl("groups", "describe", "g") // who looks for a coordinator has the topic of the offsets made, as in Kafka
		}},
		{name: "groups delete-offsets", args: fixed("g --topic fresh:0"), probe: "groups describe g --offsets -o json"},
		{name: "groups delete", args: fixed("g"), probe: "groups describe g --offsets -o json"},
	}
}

// nodeCases change znodes, and take changes back.
func (s *changes) nodeCases() []changeCase {
	return []changeCase{
		{name: "leftovers clean", args: fixed("topic-config --older-than 1ms"), prepare: func() {
			s.must(`zk create /config/topics/orphan '{"version":1,"config":{"retention.ms":"1"}}' --break-glass --yes`)
		}},
		{name: "leftovers restore", args: func() string {
			files, err := filepath.Glob(filepath.Join(s.home, ".local", "state", "kctl", "leftovers-*.json"))
			if err != nil || len(files) == 0 {
				s.t.Fatal(files, err)
			}
			return files[len(files)-1] // one is of the attempt that was interrupted
		}},
		{name: "lab run", args: fixed("orphan-topic-config")},
		{name: "lab undo", args: fixed("")},
		{name: "zk create", args: fixed("/app one")},
		{name: "zk set", args: fixed("/app two")},
		{name: "zk delete", args: fixed("/app")},
		{name: "history undo", args: func() string { return fmt.Sprint(len(s.journal())) }, prepare: func() { s.must("zk create /again --yes") }, writes: "zk delete"},
		{name: "controller move", args: fixed("--wait 1m")},
	}
}

// accessCases are on a cluster of which no broker answers, since these brokers have nothing of it.
func (s *changes) accessCases() []changeCase {
	password := "ann --password-file " + s.file("password", "p")
	return []changeCase{
		{name: "users set", args: fixed(password), alone: true},
		{name: "users delete", args: fixed("ann"), alone: true},
		{name: "quotas set", args: fixed("--user ann producer_byte_rate=1024"), alone: true},
		{name: "quotas delete", args: fixed("--user ann"), alone: true},
		{name: "acls create", args: fixed("--allow-principal User:ann --operation Read --topic t"), alone: true},
		{name: "acls delete", args: fixed("--principal User:ann --topic t"), alone: true},
	}
}

// brokenCases need a broker that is dead.
func (s *changes) brokenCases() []changeCase {
	return []changeCase{
		{name: "elect unclean", args: fixed("lost"), prepare: func() {
			s.must("topics create lost --replica-assignment 1:2")
			s.must("topics create stay --replica-assignment 2:3")
			s.c.Stop(2)
			s.env["KCTL_BOOTSTRAP_SERVER"] = strings.Join(s.c.Addrs(), ",")
			s.await("broker 1 to be alone in sync", func() bool {
				_, out, _ := s.kctl("partitions", "list", "lost", "-o", "json")
				var doc struct{ Items []struct{ ISR []int32 } }
				return json.Unmarshal([]byte(out), &doc) == nil && len(doc.Items) == 1 && slices.Equal(doc.Items[0].ISR, []int32{1})
			})
			s.c.Kill(1)
			s.c.Restart(2)
			s.env["KCTL_BOOTSTRAP_SERVER"] = strings.Join(s.c.Addrs(), ",")
			s.await("broker 2 to be a candidate", func() bool {
				code, out, _ := s.kctl("elect", "unclean", "lost", "--dry-run")
				return code == 0 && bytes.Contains([]byte(out), []byte("lost"))
			})
		}},
		{name: "reassign cancel", args: fixed("stay:0"), probe: "reassign status -o name", prepare: func() {
			s.must(`zk create /admin/reassign_partitions '{"version":1,"partitions":[{"topic":"stay","partition":0,"replicas":[2,1]}]}' --break-glass --yes`)
			s.await("the reassignment to be under way", func() bool {
				code, out, _ := s.kctl("reassign", "status")
				return code == 0 && strings.Contains(out, "stay")
			})
		}},
	}
}
