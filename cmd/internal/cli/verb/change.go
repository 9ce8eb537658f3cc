package verb

import (
	"fmt"
	"strings"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
)

// Change is a change as a verb plans it: one row for each object, and how it is made. Run takes it through the steps
// that all changes have in common.
type Change[T any] struct {
	Flags    factory.ChangeFlags
	Kind     rows.Kind[T]
	Plan     []T    // everything that was asked for, also what needs no change
	Needed   int    // how many rows of Plan need a change
	What     string // such as "change configuration"
	Question string // asked on a terminal
	Harmless bool   // creates only, so that nobody is asked

	// Check has the cluster judge the plan without writing; nil when it cannot. It runs before anybody is asked.
	Check func() error
	// Do makes the change and returns the rows as they are now.
	Do func() (Outcome[T], error)
}

// Outcome is what became of a change: rows to print, journal entries, and the error of each object that failed.
type Outcome[T any] struct {
	Rows    []T
	Entries []factory.Change
	Errs    []error
}

// Run checks the plan, prints it (on stdout in a dry run, else on stderr), asks, makes the change, writes the journal
// and prints the outcome. The exit code is that of the first error when everything failed, 3 when some did.
func (c Change[T]) Run(f *factory.Factory) error {
	if c.Needed == 0 {
		f.Say("nothing to change: everything is as wanted")
		return c.list(f, c.Plan)
	}
	if c.Check != nil {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if c.Flags.DryRun {
		f.Say("dry run: would %s", c.What)
		return c.list(f, c.Plan)
	}
	if !f.Machine() {
		f.Say("will %s:", c.What)
		p := &output.Printer{Out: f.IO.Err, Format: output.Table, TTY: f.IO.ErrTTY}
		if err := output.List(p, c.Kind, c.Plan, nil); err != nil {
			return err
		}
	}
	flags := c.Flags
	flags.Yes = flags.Yes || c.Harmless
	var out Outcome[T]
	err := f.Commit(flags, c.Question, func() ([]factory.Change, error) {
		var err error
		out, err = c.Do()
		return out.Entries, err
	})
	if err != nil {
		return err
	}
	if err := c.list(f, out.Rows); err != nil {
		return err
	}
	return c.verdict(out)
}

func (c Change[T]) list(f *factory.Factory, items []T) error {
	p, err := f.Printer()
	if err != nil {
		return err
	}
	return output.List(p, c.Kind, items, nil)
}

func (c Change[T]) verdict(out Outcome[T]) error {
	switch {
	case len(out.Errs) == 0:
		return nil
	case len(out.Errs) >= c.Needed:
		return out.Errs[0]
	}
	var parts []string
	for _, e := range out.Errs {
		parts = append(parts, e.Error())
	}
	return &exit.Error{Code: exit.Partial, Msg: fmt.Sprintf("partly done, %d of %d failed: %s", len(out.Errs), c.Needed, strings.Join(parts, "; ")), Hint: exit.HintOf(out.Errs[0])}
}
