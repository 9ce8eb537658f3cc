package verb

import (
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
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
	Needed   int    // how many objects need a change
	Fine     int    // how many need none and count as done; the others of Plan do not count
	What     string // such as "change configuration"
	Question string // asked on a terminal
	Harmless bool   // creates only, so that nobody is asked

	// Refused are objects of the plan that cannot be changed now, each with why. They are printed with the plan and with the
	// outcome, and count as failed; the others are changed all the same.
	Refused []model.Problem

	// Check has the cluster judge the plan without writing; nil when it cannot. It runs before anybody is asked.
	Check func() error
	// Do makes the change and returns the rows as they are now.
	Do func() (Outcome[T], error)
}

// Outcome is what became of a change: rows to print, journal entries, and what failed: as errors, which carry their exit
// codes, or as problems by object, which the document lists too; those that were refused may be among them again.
type Outcome[T any] struct {
	Rows     []T
	Entries  []factory.Change
	Errs     []error
	Problems []model.Problem
}

// Run checks the plan, prints it (on stdout in a dry run, else on stderr), asks, makes the change, writes the journal
// and prints the outcome. The exit code is that of the first error when everything failed, 3 when some did; also of a dry run.
//
// Changes that keep steps of their own: those whose plan is not a list of what is changed (elect leader: an order of steps
// and two journal entries; elect unclean: the candidates and what each lacks; zk: one znode), those that go on from a state
// file (reassign execute, rollback, cancel), and groups reset-offsets, where the plan is the answer unless --execute is given.
func (c Change[T]) Run(f *factory.Factory) error {
	if c.Needed == 0 {
		if len(c.Refused) == 0 {
			f.Say("nothing to change: everything is as wanted")
		}
		return c.finish(f, Outcome[T]{Rows: c.Plan}, notTried)
	}
	if c.Check != nil {
		if err := c.Check(); err != nil {
			return err
		}
	}
	if c.Flags.DryRun {
		f.Say("dry run: would %s", c.What)
		return c.finish(f, Outcome[T]{Rows: c.Plan}, notTried)
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
	return c.finish(f, out, tried)
}

// What is said of objects that failed.
const (
	tried    = "partly done, %d of %d failed: %s"
	notTried = "%d of %d cannot be changed: %s"
)

// finish prints the rows with what is missing and makes the verdict.
func (c Change[T]) finish(f *factory.Factory, out Outcome[T], some string) error {
	p, err := f.Printer()
	if err != nil {
		return err
	}
	problems := slices.Clone(c.Refused)
	known := map[model.Problem]bool{}
	for _, p := range problems {
		known[p] = true
	}
	for _, p := range out.Problems {
		if !known[p] {
			problems = append(problems, p)
		}
	}
	if err := output.List(p, c.Kind, out.Rows, rows.Errors(problems)); err != nil {
		return err
	}
	if len(out.Rows) == 0 && (p.Format == output.Table || p.Format == output.Wide) {
		f.Say("no %s", c.Kind.Title)
	}
	total := c.Needed + c.Fine + len(c.Refused)
	var parts []string
	for _, p := range problems {
		parts = append(parts, p.Object+": "+p.Message)
	}
	for _, e := range out.Errs {
		parts = append(parts, e.Error())
	}
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) < total:
		e := &exit.Error{Code: exit.Partial, Msg: fmt.Sprintf(some, len(parts), total, strings.Join(parts, "; "))}
		if len(out.Errs) > 0 {
			e.Hint = exit.HintOf(out.Errs[0])
		}
		return e
	case len(out.Errs) > 0:
		return out.Errs[0]
	}
	return NothingDone("nothing was changed: ", problems, "")
}
