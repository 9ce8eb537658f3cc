package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// TestFixesAreCommands: the fix of every finding is a command of kctl with flags and arguments that it takes; what stands behind # is
// for people. The findings are those that the checks make of recorded facts.
func TestFixesAreCommands(t *testing.T) {
	data, err := os.ReadFile("../../../admin/check/testdata/findings.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) < 40 {
		t.Fatalf("%d findings", len(lines))
	}
	for _, line := range lines {
		cells := strings.Split(line, " | ")
		fix, _, _ := strings.Cut(cells[len(cells)-1], "   #")
		fix = strings.TrimSpace(fix)
		streams, _, _ := iostreams.Test("")
		root := cli.NewRoot(factory.New(streams, func(string) string { return "" }))
		if err := parses(root, strings.Fields(strings.ReplaceAll(fix, "'", ""))[1:]); err != nil {
			t.Errorf("%s: %s: %v", cells[0], fix, err)
		}
	}
}

func parses(root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
