package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/admin/check"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// TestDocumented: the page on the surface names every finding and every exit code.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/kctl.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range check.IDs() {
		if !strings.Contains(string(page), "| `"+id[0]+"` |") || !strings.Contains(string(page), id[1]) {
			t.Errorf("finding %s (%s) is not documented", id[0], id[1])
		}
	}
	for _, e := range exit.Table() {
		if !strings.Contains(string(page), fmt.Sprintf("| %d | ", e.Code)) {
			t.Errorf("exit code %d is not documented", e.Code)
		}
	}
}

// TestReferenceIsWhole: the man pages and the Markdown reference have a page for every command that help lists.
func TestReferenceIsWhole(t *testing.T) {
	k := newKctl(t)
	man, markdown := t.TempDir(), t.TempDir()
	k.run("docs", "man", man).want(exit.OK, "", "wrote")
	k.run("docs", "markdown", markdown).want(exit.OK, "", "wrote")
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		pages++
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		if _, err := os.Stat(filepath.Join(man, name)); err != nil {
			t.Error(err)
		}
		page, err := os.ReadFile(filepath.Join(markdown, strings.ReplaceAll(c.CommandPath(), " ", "_")+".md"))
		if err != nil || !strings.Contains(string(page), c.Short) {
			t.Errorf("%s: %v", c.CommandPath(), err)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	streams, _, _ := iostreams.Test("")
	walk(cli.NewRoot(factory.New(streams, func(string) string { return "" })))
	if pages < 60 {
		t.Errorf("only %d commands", pages)
	}
}
