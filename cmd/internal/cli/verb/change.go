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
	Single   bool   // there is one object, which is printed as such and not as a list

	// Refused are objects of the plan that cannot be changed now, each with why. They are printed with the plan and with the
	// outcome, and count as failed; the others are changed all the same.
	Refused []model.Problem

	// ShowPlan says on stderr what will be done, where the rows of Plan do not tell it; nil prints those. It is called in a dry
	// run too, whose answer comes behind it.
	ShowPlan func() error
	// Answer prints rows, or the plan of a dry run, on stdout in another form than that of Kind; nil prints them as such.
	Answer func(p *output.Printer, items []T, errs []rows.ErrorRow) error

	// Check has the cluster judge the plan without writing; nil when it cannot. It runs before anybody is asked.
	Check func() error
	// Do makes the change and returns the rows as they are now. The entries of the outcome go into the journal also when there
	// is an error, as of a change that was cut short.
	Do func() (Outcome[T], error)
}

// Outcome is what became of a change: rows to print, journal entries, and what failed: as errors, which carry their exit
// codes, or as problems by object, which the document lists too; those that were refused may be among them again.
type Outcome[T any] struct {
	Rows     []T
	Entries  []factory.Change
	Errs     []error
	Problems []model.Problem
	Ended    error // what ended the change before its end: the rows are printed all the same, then this is the verdict
}

// Run checks the plan, prints it (on stdout in a dry run, else on stderr), asks, makes the change, writes the journal
// and prints the outcome. The exit code is that of the first error when everything failed, 3 when some did; also of a dry run.
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
	if err := c.showPlan(f); err != nil {
		return err
	}
	if c.Flags.DryRun {
		return c.finish(f, Outcome[T]{Rows: c.Plan}, notTried)
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

// showPlan says what will be done. The rows of a dry run are its answer.
func (c Change[T]) showPlan(f *factory.Factory) error {
	switch {
	case c.ShowPlan != nil:
		return c.ShowPlan()
	case c.Flags.DryRun:
		f.Say("dry run: would %s", c.What)
		return nil
	case f.Machine():
		return nil
	}
	f.Say("will %s:", c.What)
	p := &output.Printer{Out: f.IO.Err, Format: output.Table, TTY: f.IO.ErrTTY}
	return c.print(p, c.Plan, nil)
}

func (c Change[T]) print(p *output.Printer, items []T, errs []rows.ErrorRow) error {
	if c.Single {
		return output.One(p, c.Kind, items[0])
	}
	return output.List(p, c.Kind, items, errs)
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
	for _, p := range out.Problems {
		if !slices.Contains(c.Refused, p) {
			problems = append(problems, p)
		}
	}
	print := c.print
	if c.Answer != nil {
		print = c.Answer
	}
	if err := print(p, out.Rows, rows.Errors(problems)); err != nil {
		return err
	}
	if len(out.Rows) == 0 && (p.Format == output.Table || p.Format == output.Wide) {
		f.Say("no %s", c.Kind.Title)
	}
	if out.Ended != nil {
		return out.Ended
	}
	return c.verdict(problems, out.Errs, some)
}

// verdict is nil when nothing failed.
func (c Change[T]) verdict(problems []model.Problem, errs []error, some string) error {
	total := c.Needed + c.Fine + len(c.Refused)
	var parts []string
	for _, p := range problems {
		parts = append(parts, p.Object+": "+p.Message)
	}
	for _, e := range errs {
		parts = append(parts, e.Error())
	}
	switch {
	case len(parts) == 0:
		return nil
	case len(parts) < total:
		e := &exit.Error{Code: exit.Partial, Msg: fmt.Sprintf(some, len(parts), total, strings.Join(parts, "; "))}
		if len(errs) > 0 {
			e.Hint = exit.HintOf(errs[0])
		}
		return e
	case len(errs) > 0:
		return errs[0]
	}
	return NothingDone("nothing was changed: ", problems, "")
}
