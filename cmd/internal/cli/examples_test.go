package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/iostreams"
)

// words splits a line as a shell does: blanks, both kinds of quotes, comments; operators are words of their own.
func words(line string) (out []string) {
	word, quoted, begun := "", rune(0), false
	end := func() {
		if begun {
			out = append(out, word)
		}
		word, begun = "", false
	}
	for _, r := range line {
		switch {
		case quoted != 0 && r == quoted:
			quoted = 0
		case quoted != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quoted, begun = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '#' && !begun:
			return out
		case strings.ContainsRune("|;&><", r):
			end()
			out = append(out, string(r))
		default:
			word, begun = word+string(r), true
		}
	}
	end()
	return out
}

// commandLines finds the kctl commands of an example, each without "kctl".
func commandLines(line string) (out [][]string) {
	var one []string
	flush := func() {
		for i, w := range one {
			if w == "kctl" {
				out = append(out, one[i+1:])
				break
			}
			if !strings.Contains(w, "=") { // neither kctl nor a variable before it
				break
			}
		}
		one = nil
	}
	skip := false
	for _, w := range words(line) {
		switch {
		case w == ">" || w == "<":
			skip = true
		case w == "|" || w == ";" || w == "&":
			flush()
		case skip:
			skip = false
		default:
			one = append(one, w)
		}
	}
	flush()
	return out
}

// TestExamplesParse: every example in the help names a command of the tree, flags that it has with values that they
// take, and as many arguments as it wants.
func TestExamplesParse(t *testing.T) {
	newRoot := func() *cobra.Command {
		streams, _, _ := iostreams.Test("")
		return cli.NewRoot(factory.New(streams, func(string) string { return "" }))
	}
	examples := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		own := 0
		for _, line := range strings.Split(c.Example, "\n") {
			for _, args := range commandLines(line) {
				examples++
				target, rest, err := newRoot().Find(args)
				if err == nil {
					err = target.ParseFlags(rest)
				}
				if err == nil {
					err = target.ValidateArgs(target.Flags().Args())
				}
				switch {
				case err != nil:
					t.Errorf("%s: %s: %v", c.CommandPath(), strings.TrimSpace(line), err)
				case target.HasSubCommands() && target.Name() != "history":
					t.Errorf("%s: %s: names a group of commands", c.CommandPath(), strings.TrimSpace(line))
				}
				if target.CommandPath() == c.CommandPath() {
					own++
				}
			}
		}
		if c.Example != "" && own == 0 && !c.HasSubCommands() {
			t.Errorf("%s: no example shows the command itself", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	if examples < 150 {
		t.Errorf("only %d examples were found", examples)
	}
}
