package reassign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/plan/reassign"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type cancelOptions struct {
	f       *factory.Factory
	entries []reassign.Entry // of a plan file
	targets []plan.Target
	file    string
	all     bool
	wait    time.Duration
	change  factory.ChangeFlags
}

func newCancel(f *factory.Factory) *cobra.Command {
	o := &cancelOptions{f: f}
	cmd := &cobra.Command{
		Use:   "cancel (FILE | TOPIC[:P,..]... | --all)",
		Short: "Stop reassignments that are under way; the partitions stay where they were",
		Long: `Have the controller cancel what is under way of a plan, of topics or partitions, or all of it. Each partition keeps the
replicas from before; their order may become that of the target, which kctl reassign rollback restores. Partitions that
are done already stay done.

With a plan file or --all the throttles that kctl's runs have set are removed too, and the runs count as cancelled.
Needs Kafka 2.4 or later.`,
		Example: `  kctl reassign cancel plan.json
  kctl reassign cancel orders:0,3 --yes
  kctl reassign cancel --all`,
		Args: verb.Args(0, -1, "a plan file or topics"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return runCancel(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "everything that is under way")
	cmd.Flags().DurationVar(&o.wait, "wait", 30*time.Second, "time to wait until it has stopped (0: do not)")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func (o *cancelOptions) parse(args []string) (err error) {
	switch {
	case o.all == (len(args) > 0):
		return exit.Usagef("say what to cancel in exactly one way: FILE, TOPIC[:P,..]... or --all")
	case o.wait < 0:
		return exit.Usagef("--wait %s is below zero", o.wait)
	case len(args) == 1 && isFile(args[0]):
		o.file = args[0]
		o.entries, err = readPlan(o.file)
	default:
		o.targets, err = verb.Targets(args)
	}
	if err != nil {
		return err
	}
	return o.f.Writable()
}

// isFile tells a plan file from a topic: it exists, or looks like a path.
func isFile(arg string) bool {
	if _, err := os.Stat(arg); err == nil {
		return true
	}
	_, err := plan.ParseTarget(arg)
	return err != nil
}

// concerns reports whether a partition is to be cancelled.
func (o *cancelOptions) concerns(tp cluster.TopicPartition) bool {
	if o.entries != nil {
		return slices.ContainsFunc(o.entries, func(e reassign.Entry) bool { return e.TP() == tp })
	}
	return plan.Match(o.targets, tp.Topic, tp.Partition)
}

func runCancel(ctx context.Context, o *cancelOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	if _, _, err := c.ReassignVia(ctx, admin.ViaAPI); err != nil {
		return err
	}
	view, s, err := c.ReassignView(ctx, admin.ViaAPI, nil)
	if err != nil {
		return err
	}
	if err := known(view, o.targets); err != nil {
		return err
	}
	steps, parts := o.plan(view)
	st := openStore(o.f, s.ClusterID)
	if o.change.DryRun {
		o.f.Say("dry run: %d reassignment(s) would be cancelled", len(parts))
		return verb.List(o.f, rows.ReassignmentStepKind, steps, nil)
	}
	results := map[cluster.TopicPartition]error{}
	if len(parts) > 0 {
		if err := o.printPlan(steps); err != nil {
			return err
		}
		if err := o.f.Confirm(o.change, fmt.Sprintf("cancel %d reassignment(s)?", len(parts))); err != nil {
			return err
		}
		if results, err = c.CancelReassign(ctx, parts, o.wait); err != nil {
			return err
		}
		o.record(st, steps, results)
	}
	problems := o.outcome(steps, results)
	if o.file != "" || o.all {
		more, err := o.endRuns(ctx, c, st)
		if err != nil {
			return err
		}
		problems = append(problems, more...)
	}
	return verb.List(o.f, rows.ReassignmentStepKind, steps, problems)
}

// known refuses topics and partitions that do not exist.
func known(view *reassign.View, targets []plan.Target) error {
	topics := map[string]bool{}
	for tp := range view.Parts {
		topics[tp.Topic] = true
	}
	for _, t := range targets {
		if !topics[t.Topic] {
			return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("topic %s does not exist", t.Topic)}
		}
		for _, p := range t.Partitions {
			if _, ok := view.Parts[cluster.TopicPartition{Topic: t.Topic, Partition: p}]; !ok {
				return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("topic %s has no partition %d", t.Topic, p)}
			}
		}
	}
	return nil
}

// plan lists what is concerned: the rows, and those partitions of them that are under way.
func (o *cancelOptions) plan(view *reassign.View) ([]rows.ReassignmentStep, []cluster.TopicPartition) {
	var tps []cluster.TopicPartition
	for tp, seen := range view.Parts {
		if o.concerns(tp) && (seen.Reassigning() || !o.all) {
			tps = append(tps, tp)
		}
	}
	slices.SortFunc(tps, cluster.TopicPartition.Compare)
	var steps []rows.ReassignmentStep
	var parts []cluster.TopicPartition
	for _, tp := range tps {
		seen := view.Parts[tp]
		r := rows.ReassignmentStep{
			Topic: tp.Topic, Partition: tp.Partition, From: notNil(seen.Target()), To: notNil(seen.Original()), LogDirs: []string{}, State: "not-needed",
		}
		if seen.Reassigning() {
			r.State = string(reassign.Running)
			parts = append(parts, tp)
		}
		steps = append(steps, r)
	}
	return steps, parts
}

func (o *cancelOptions) printPlan(steps []rows.ReassignmentStep) error {
	if o.f.Machine() {
		return nil
	}
	o.f.Say("will cancel:")
	open := slices.DeleteFunc(slices.Clone(steps), func(s rows.ReassignmentStep) bool { return s.State == "not-needed" })
	p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	return output.List(p, rows.ReassignmentStepKind, open, nil)
}

// outcome writes results into the rows and returns what failed.
func (o *cancelOptions) outcome(steps []rows.ReassignmentStep, results map[cluster.TopicPartition]error) []model.Problem {
	var problems []model.Problem
	for i := range steps {
		s := &steps[i]
		tp := cluster.TopicPartition{Topic: s.Topic, Partition: s.Partition}
		err, asked := results[tp]
		switch {
		case !asked:
		case errors.Is(err, admin.ErrNothingToCancel):
			s.State = "not-needed"
		case err != nil:
			s.State, s.Error = "failed", err.Error()
			problems = append(problems, model.Problem{Object: reassign.Name(tp), Message: err.Error()})
		default:
			s.State = "cancelled"
		}
	}
	return problems
}

func (o *cancelOptions) record(st *store, steps []rows.ReassignmentStep, results map[cluster.TopicPartition]error) {
	var changes []factory.Change
	for i := range steps {
		s := &steps[i]
		tp := cluster.TopicPartition{Topic: s.Topic, Partition: s.Partition}
		err, asked := results[tp]
		if !asked || errors.Is(err, admin.ErrNothingToCancel) {
			continue
		}
		ch := factory.Change{
			Cluster: st.cluster, Command: "reassign cancel", Object: reassign.Name(tp), Result: "done",
			Before: "being reassigned to " + rows.IntList(s.From), After: "replicas " + rows.IntList(s.To),
			Undo: fmt.Sprintf("kctl reassign execute with a plan that gives %s the replicas %s", reassign.Name(tp), rows.IntList(s.From)),
		}
		if err != nil {
			ch.Result = err.Error()
		}
		changes = append(changes, ch)
	}
	o.f.Record(changes...)
}

// endRuns removes the throttles of the cancelled runs and notes how they ended.
func (o *cancelOptions) endRuns(ctx context.Context, c *admin.Client, st *store) ([]model.Problem, error) {
	var problems []model.Problem
	for _, run := range st.unfinished("") {
		if o.file != "" && run.Plan != identity(o.entries) {
			continue
		}
		unlock, err := st.lock(run.Plan)
		if err != nil {
			o.f.Say("another kctl executes %s: it will find the cancellation and remove its throttles", run.File)
			continue
		}
		more, err := c.RemoveThrottles(ctx, run, st.unfinished(run.Plan))
		problems = append(problems, more...)
		if err == nil {
			run.Outcome = reassign.Cancelled
			err = st.save(run)
		}
		unlock()
		if err != nil {
			return nil, err
		}
	}
	return problems, nil
}
