package acceptance

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// elsewhere are commands that no script runs, and where they are tested.
var elsewhere = map[string]string{
	"tui":           "it needs a terminal: tui/tui_test.go, tui/page/overview",
	"docs man":      "cmd/internal/cli/docs_test.go TestReferenceIsWhole",
	"docs markdown": "cmd/internal/cli/docs_test.go TestReferenceIsWhole",
}

// elsewhereJournaled are commands that change something and write no entry of their own in these tests, and why.
var elsewhereJournaled = map[string]string{
	"history undo":       "the command that it runs writes the entry",
	"produce":            "records are data, not state: they cannot be taken back, and a journal of them would be a second log",
	"transactions abort": "cmd/internal/cli/groups_peers_test.go TestPeerTransactions: the brokers of these tests have no transactions",
}

// root is kctl's command tree.
func root() *cobra.Command {
	streams, _, _ := iostreams.Test("")
	return cli.NewRoot(factory.New(streams, func(string) string { return "" }))
}

// leaves are the commands that do something, in the order of the help.
func leaves() []*cobra.Command {
	var out []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" || !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		if !c.HasSubCommands() || c.Name() == "history" {
			out = append(out, c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root())
	return out
}

// changing are the commands that change a cluster: those with --dry-run.
func changing() []*cobra.Command {
	return slices.DeleteFunc(leaves(), func(c *cobra.Command) bool { return c.Flags().Lookup("dry-run") == nil })
}

// wholeRun reports whether no test of the package was left out.
func wholeRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}

// TestEveryVerbHasAScript: each command is run by a script, with what it does, not only with an error.
func TestEveryVerbHasAScript(t *testing.T) {
	run := map[string]bool{}
	for _, pattern := range []string{"testdata/*/*.txtar", "testdoctor/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			for _, c := range scriptCommands(t, file) {
				run[c] = true
			}
		}
	}
	for _, c := range leaves() {
		name := strings.TrimPrefix(c.CommandPath(), "kctl ")
		switch where := elsewhere[name]; {
		case run[name] && where != "":
			t.Errorf("kctl %s is run by a script: it needs no exception", name)
		case !run[name] && where == "":
			t.Errorf("no script runs kctl %s", name)
		}
	}
}

// scriptCommands are the commands of the kctl lines of a script that do not expect a usage error.
func scriptCommands(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script, _, _ := bytes.Cut(data, []byte("\n-- "))
	var out []string
	for sc := bufio.NewScanner(bytes.NewReader(script)); sc.Scan(); {
		words := strings.Fields(sc.Text())
		if len(words) == 0 || words[0] != "kctl" {
			continue
		}
		words = words[1:]
		usage := false
		for len(words) > 0 {
			key, _, ok := strings.Cut(words[0], "=")
			if !ok || key != "rc" && key != "in" && key != "wait" && key != "has" && key != "for" {
				break
			}
			usage = usage || words[0] == "rc=2"
			words = words[1:]
		}
		if cmd, _, err := root().Find(words); err == nil && !usage {
			out = append(out, strings.TrimPrefix(cmd.CommandPath(), "kctl "))
		}
	}
	return out
}

// changingArguments are arguments with which each command that changes something would do so. Files that they name are
// written to dir.
func changingArguments(t *testing.T, dir string) map[string]string {
	t.Helper()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	reassignment := file("plan.json", `{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]}]}`)
	saved := file("saved.json", `{"apiVersion":"kctl/v1","kind":"LeaderAndISR","topic":"a","partition":0,"leader":1,"leaderEpoch":1,"isr":[1],"controllerEpoch":1,"zkVersion":1,"replicas":[1],"mtime":null,"ageMs":null,"unknownFields":[],"source":"zookeeper"}`)
	return map[string]string{
		"acls create": "--allow-principal User:a --operation Read --topic t", "acls delete": "--principal User:a --topic t",
		"configs set": "topic/a retention.ms=1", "configs delete": "topic/a retention.ms", "controller move": "",
		"elect leader": "a:0 1", "elect preferred": "--all", "elect unclean": "--all",
		"groups delete": "g", "groups delete-offsets": "g --all-topics", "groups reset-offsets": "g --all-topics --to-latest",
		"lab run": "stuck-transition", "lab undo": "",
		"leader-and-isr restore": saved, "leader-and-isr set": "a:0 --leader 1",
		"leftovers clean": "", "leftovers restore": file("leftover.json", `{}`), "log-dirs move": "a:0 --broker 1 --to /d",
		"produce": "a", "quotas set": "--user a producer_byte_rate=1", "quotas delete": "--user a producer_byte_rate",
		"reassign cancel": "--all", "reassign execute": reassignment, "reassign rollback": reassignment,
		"reassign verify": reassignment + " --remove-throttles",
		"topics alter":    "a --partitions 3", "topics create": "a", "topics delete": "a",
		"transactions abort": "--topic a:0 --start-offset 0",
		"users set":          "a --password-file " + file("password", "p"), "users delete": "a",
		"zk create": "/app x", "zk delete": "/app", "zk set": "/app x",
	}
}

// TestChangesAreGuarded: what changes a cluster has --yes and --dry-run, is refused in a read-only context, whatever is
// given, and before anybody is contacted (exit 2, not 5: nobody listens at the address).
func TestChangesAreGuarded(t *testing.T) {
	home := t.TempDir()
	arguments := changingArguments(t, home)
	env := map[string]string{"HOME": home}
	kctl := func(args ...string) (int, string) {
		streams, out, errb := iostreams.Test("")
		code := cli.Run(t.Context(), args, streams, func(name string) string { return env[name] })
		if out.Len() > 0 {
			t.Errorf("kctl %q printed %s", args, out)
		}
		return code, errb.String()
	}
	if code, errs := kctl("context", "add", "look", "-b", "127.0.0.1:1", "-z", "127.0.0.1:1", "--read-only", "--use"); code != 0 {
		t.Fatal(errs)
	}
	for _, c := range changing() {
		name := strings.TrimPrefix(c.CommandPath(), "kctl ")
		if c.Flags().Lookup("yes") == nil {
			t.Errorf("kctl %s has no --yes", name)
		}
		if name == "history undo" {
			continue // it runs one of the others
		}
		args, ok := arguments[name]
		if !ok {
			t.Errorf("kctl %s: say in this test with which arguments it changes something", name)
			continue
		}
		code, errs := kctl(append(append(strings.Fields(name), strings.Fields(args)...), "--yes")...)
		if code != 2 || !strings.Contains(errs, "read-only") {
			t.Errorf("kctl %s in a read-only context: exit %d, %s", name, code, errs)
		}
		delete(arguments, name)
	}
	for name := range arguments {
		t.Errorf("kctl %s changes nothing by its flags: it has no --dry-run", name)
	}
}

// TestUnknownFlagsAndArguments: a flag that a command does not have is a usage error of exit 2 in every one of them, with
// nothing on stdout and nobody contacted (exit 5), and so are arguments where none are taken.
func TestUnknownFlagsAndArguments(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "KCTL_BOOTSTRAP_SERVER": "127.0.0.1:1", "KCTL_ZOOKEEPER": "127.0.0.1:1"}
	for _, c := range leaves() {
		name := strings.TrimPrefix(c.CommandPath(), "kctl ")
		lines := [][]string{append(strings.Fields(name), "--no-such-flag")}
		if !strings.Contains(c.Use, " ") {
			lines = append(lines, append(strings.Fields(name), "no-such-argument"))
		}
		for _, args := range lines {
			streams, out, errb := iostreams.Test("")
			code := cli.Run(t.Context(), args, streams, func(name string) string { return env[name] })
			if code != 2 || out.Len() > 0 || !strings.Contains(errb.String(), "no-such-") {
				t.Errorf("kctl %q: exit %d\n%s%s", args, code, out, errb)
			}
		}
	}
}

// TestNamedTestsExist: every test that docs/testing.md names is one of this module, so that its tables cannot go stale.
func TestNamedTestsExist(t *testing.T) {
	const module = "../../.."
	page, err := os.ReadFile(filepath.Join(module, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir(module, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(data, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllSubmatch(page, -1)
	if len(named) < 20 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !tests[string(m[1])] {
			t.Errorf("docs/testing.md names %s, which is no test", m[1])
		}
	}
}
