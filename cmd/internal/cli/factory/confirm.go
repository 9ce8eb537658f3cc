package factory

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"kctl/cmd/internal/cli/exit"
)

// Change flags of every verb that writes.
type ChangeFlags struct {
	Yes    bool
	DryRun bool
}

// AddChangeFlags declares --yes and --dry-run.
func AddChangeFlags(fs *pflag.FlagSet, c *ChangeFlags) {
	fs.BoolVarP(&c.Yes, "yes", "y", false, "do not ask")
	fs.BoolVar(&c.DryRun, "dry-run", false, "do everything up to the write")
}

// Confirm asks for consent to a plan that was printed. Without a terminal consent is --yes. A journal that cannot be
// written is said first, so that who is asked knows.
func (f *Factory) Confirm(c ChangeFlags, question string) error {
	f.CheckJournal()
	if c.Yes {
		return nil
	}
	if !f.IO.InTTY || !f.IO.ErrTTY {
		return &exit.Error{Code: exit.Usage, Msg: "nothing was changed: without a terminal to ask on, this needs --yes", Hint: "--dry-run shows the plan only"}
	}
	fmt.Fprintf(f.IO.Err, "%s [y/N] ", question)
	line, err := bufio.NewReader(f.IO.In).ReadString('\n')
	if err != nil || !strings.EqualFold(strings.TrimSpace(line), "y") && !strings.EqualFold(strings.TrimSpace(line), "yes") {
		return &exit.Error{Code: exit.Failed, Msg: "nothing was changed"}
	}
	return nil
}

// Say writes a line of talk to stderr, unless a program reads along.
func (f *Factory) Say(format string, args ...any) {
	if !f.Machine() {
		fmt.Fprintf(f.IO.Err, format+"\n", args...)
	}
}
