// Package lab rehearses failures on a cluster of kbroker dev.
package lab

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("lab", "Rehearse failures on a cluster of kbroker dev", newList(f), newRun(f), newUndo(f))
}

func names() []string {
	var out []string
	for _, s := range plan.LabScenarios() {
		out = append(out, s.Name)
	}
	return out
}

func scenario(name string) (plan.LabScenario, error) {
	for _, s := range plan.LabScenarios() {
		if s.Name == name {
			return s, nil
		}
	}
	e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("scenario %q does not exist", name), Hint: "kctl lab list"}
	if near, ok := plan.Nearest(name, names()); ok {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return plan.LabScenario{}, e
}

func newList(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the failures that can be rehearsed and those under way",
		Example: `  kbroker dev &
  kctl lab list -z 127.0.0.1:2181`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), f) },
	}
}

func runList(ctx context.Context, f *factory.Factory) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	running := map[string]bool{}
	if c.HasZooKeeper() {
		records, err := c.LabRehearsals(ctx)
		if err != nil {
			return err
		}
		for _, r := range records {
			running[r.Scenario] = true
		}
	} else {
		f.Say("without -z nobody knows which are under way")
	}
	var out []rows.Scenario
	for _, s := range plan.LabScenarios() {
		out = append(out, rows.OfScenario(s, running[s.Name]))
	}
	return verb.List(f, rows.ScenarioKind, out, nil)
}

type options struct {
	f      *factory.Factory
	change factory.ChangeFlags
}

const guard = `Only a cluster of kbroker dev is touched: it carries a mark that nothing else writes (the znode /kbroker_dev_cluster), and all its
brokers listen on loopback addresses. Every other cluster is refused.`

func newRun(f *factory.Factory) *cobra.Command {
	o := &options{f: f}
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Make a failure; kctl doctor then finds it, kctl lab undo takes it back",
		Long:  "Make a failure for real, on a topic of its own where it needs one.\n\n" + guard,
		Example: `  kctl lab run stuck-transition -z 127.0.0.1:2181 --yes
  kctl doctor stuck-transition
  kctl lab undo stuck-transition --yes`,
		Args: verb.Args(1, 1, "a scenario"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := scenario(args[0])
			if err != nil {
				return err
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runScenario(cmd.Context(), o, s)
		},
		ValidArgsFunction: verb.Fixed(names()...),
	}
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

// devCluster returns the client of a cluster on which failures may be rehearsed.
func devCluster(ctx context.Context, f *factory.Factory) (*admin.Client, error) {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil, err
	}
	return c, c.CheckDevCluster(ctx)
}

func runScenario(ctx context.Context, o *options, s plan.LabScenario) error {
	c, err := devCluster(ctx, o.f)
	if err != nil {
		return err
	}
	o.f.Say("will rehearse %s: %s", s.Name, s.Summary)
	if o.change.DryRun {
		o.f.Say("dry run: nothing was changed")
		return verb.One(o.f, rows.ScenarioKind, rows.OfScenario(s, false), nil)
	}
	err = o.f.Commit(o.change, "go on?", func() ([]factory.Change, error) {
		id, _ := c.VerifyCluster(ctx) // the journal does without where nobody tells it
		ch := factory.Change{Cluster: id, Command: "lab run", Object: s.Name, After: s.Summary, Result: journal.Done}
		if err := c.RunLab(ctx, s); err != nil {
			ch.Result = err.Error()
			return []factory.Change{ch}, err
		}
		return []factory.Change{ch.WithUndo("lab", "undo", s.Name)}, nil
	})
	if err != nil {
		return err
	}
	o.f.Say("look: %s", o.f.Runnable("kctl doctor "+s.Finding))
	o.f.Say("try: %s", s.Lesson)
	o.f.Say("end it: %s", o.f.Runnable("kctl lab undo "+s.Name+" --yes"))
	return verb.One(o.f, rows.ScenarioKind, rows.OfScenario(s, true), nil)
}

func newUndo(f *factory.Factory) *cobra.Command {
	o := &options{f: f}
	cmd := &cobra.Command{
		Use:   "undo [SCENARIO...]",
		Short: "Take rehearsals back, all of them without arguments",
		Long: `Take rehearsals back: what still is as lab run wrote it gets its old value, topics made for them are deleted. What was mended
meanwhile stays mended.

` + guard,
		Example: `  kctl lab undo --yes`,
		Args:    verb.Args(0, -1, "scenarios"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if _, err := scenario(a); err != nil {
					return err
				}
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runUndo(cmd.Context(), o, args)
		},
		ValidArgsFunction: verb.Fixed(names()...),
	}
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func runUndo(ctx context.Context, o *options, args []string) error {
	c, err := devCluster(ctx, o.f)
	if err != nil {
		return err
	}
	records, err := c.LabRehearsals(ctx)
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r plan.LabRecord) bool { return len(args) > 0 && !slices.Contains(args, r.Scenario) })
	planned := make([]rows.Scenario, len(records))
	for i, r := range records {
		planned[i] = rows.Scenario{Name: r.Scenario, Running: true}
		if s, err := scenario(r.Scenario); err == nil { // else another kctl made it
			planned[i] = rows.OfScenario(s, true)
		}
	}
	return verb.Change[rows.Scenario]{
		Flags: o.change, Kind: rows.ScenarioKind, Plan: planned, Needed: len(records), What: fmt.Sprintf("take back %d rehearsal(s)", len(records)), Question: "go on?",
		Do: func() (out verb.Outcome[rows.Scenario], err error) {
			id, _ := c.VerifyCluster(ctx)
			for i, r := range records {
				ch := factory.Change{Cluster: id, Command: "lab undo", Object: r.Scenario, Result: journal.Done}
				if err := c.UndoLab(ctx, r); err != nil {
					ch.Result = err.Error()
					out.Errs = append(out.Errs, err)
				} else {
					ch = ch.WithUndo("lab", "run", r.Scenario)
					planned[i].Running = false
				}
				out.Entries = append(out.Entries, ch)
			}
			out.Rows = planned
			return out, nil
		},
	}.Run(o.f)
}
