package cli_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// noAccessExamples are the examples that this test does not run, and why.
var noAccessExamples = map[string]string{
	"users set alice":  "it asks for the password on a terminal",
	"users set broker": "it writes into ZooKeeper before the first start of a broker: admin/stored_test.go",
}

// TestAccessExamples runs the examples of the nouns that kctl's own brokers do not serve, on a broker that answers for them; what
// changes something is a dry run. Each ends with 0 or 10. The others are run by cmd/internal/shelltest.
func TestAccessExamples(t *testing.T) {
	b := startGuarded(t)
	b.only()
	t.Chdir(t.TempDir())
	k := newKctl(t)
	k.env["KCTL_BOOTSTRAP_SERVER"] = b.addr
	k.run("acls", "list", "--export").want(exit.OK, "User:a", "")
	rule := k.out.String()
	for name, text := range map[string]string{"alice": "secret\n", "acls.yaml": rule, "old.yaml": rule} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			for _, args := range commandLines(strings.TrimSpace(line)) {
				if noAccessExamples[strings.Join(args, " ")] != "" || noAccessExamples[strings.Join(args[:3], " ")] != "" && slices.Contains(args, "-z") {
					continue
				}
				n++
				for i := range args {
					args[i] = strings.ReplaceAll(args[i], "/run/secrets/", "")
				}
				if c.Flags().Lookup("dry-run") != nil && !slices.Contains(args, "--dry-run") {
					args = append(args, "--dry-run")
				}
				k := newKctl(t)
				k.env["KCTL_BOOTSTRAP_SERVER"], k.env["KAFKA_PW"] = b.addr, "secret"
				k.run(args...)
				if k.code != int(exit.OK) && k.code != int(exit.Problems) || k.code == int(exit.OK) && strings.Contains(k.err.String(), "kctl: ") {
					t.Errorf("%s: exit %d\n%s%s", strings.TrimSpace(line), k.code, k.out, k.err)
				}
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	streams, _, _ := iostreams.Test("")
	for _, c := range cli.NewRoot(factory.New(streams, func(string) string { return "" })).Commands() {
		if slices.Contains([]string{"users", "quotas", "acls", "transactions"}, c.Name()) {
			walk(c)
		}
	}
	if n < 25 {
		t.Errorf("only %d examples were run", n)
	}
}
