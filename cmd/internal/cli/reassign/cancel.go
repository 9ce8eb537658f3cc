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
	"kctl/cmd/internal/cli/journal"
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

const cancelCommand = "reassign cancel"

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
	runs := o.runs(st)
	what := fmt.Sprintf("cancel %d reassignment(s)", len(parts))
	for _, run := range runs {
		what += fmt.Sprintf(", end the run of %s (%d throttle setting(s))", run.File, len(run.Marks))
	}
	return verb.Change[rows.ReassignmentStep]{
		Flags: o.change, Kind: rows.ReassignmentStepKind, Plan: steps, Needed: len(parts) + len(runs), Fine: len(steps) - len(parts),
		What: what, Question: what + "?",
		Do: func() (out verb.Outcome[rows.ReassignmentStep], err error) {
			if len(parts) > 0 {
				results, err := c.CancelReassign(ctx, parts, o.wait)
				if out.Entries = o.changes(st, steps, parts, results, err); err != nil {
					return out, err
				}
				out.Problems = o.outcome(steps, results)
			}
			out.Rows = steps
			for _, run := range runs {
				entry, problem := o.endRun(ctx, c, st, run)
				out.Entries = append(out.Entries, entry...)
				out.Problems = append(out.Problems, problem...)
			}
			return out, nil
		},
	}.Run(o.f)
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

// changes are the entries of the journal: one for each reassignment that the controller was asked to cancel. Without results the
// request failed as a whole; with results and an error it was taken, but what is under way has not stopped in time.
func (o *cancelOptions) changes(st *store, steps []rows.ReassignmentStep, asked []cluster.TopicPartition, results map[cluster.TopicPartition]error, failed error) []factory.Change {
	var out []factory.Change
	for i := range steps {
		s := &steps[i]
		tp := cluster.TopicPartition{Topic: s.Topic, Partition: s.Partition}
		err := results[tp]
		if results == nil {
			err = failed
		}
		if !slices.Contains(asked, tp) || errors.Is(err, admin.ErrNothingToCancel) {
			continue
		}
		ch := factory.Change{
			Cluster: st.cluster, Command: cancelCommand, Object: reassign.Name(tp), Result: journal.Done,
			Before: "being reassigned to " + rows.IntList(s.From), After: "replicas " + rows.IntList(s.To),
			Undo: fmt.Sprintf("kctl reassign execute with a plan that gives %s the replicas %s", reassign.Name(tp), rows.IntList(s.From)),
		}
		if err != nil {
			ch.Result = err.Error()
		}
		out = append(out, ch)
	}
	return out
}

// runs are those that end with what is cancelled.
func (o *cancelOptions) runs(st *store) []*reassign.Run {
	if o.file == "" && !o.all {
		return nil
	}
	return slices.DeleteFunc(st.unfinished(""), func(run *reassign.Run) bool { return o.file != "" && run.Plan != identity(o.entries) })
}

// endRun removes the throttles of a cancelled run and notes how it ended.
func (o *cancelOptions) endRun(ctx context.Context, c *admin.Client, st *store, run *reassign.Run) (entries []factory.Change, problems []model.Problem) {
	unlock, err := st.lock(run.Plan)
	if err != nil {
		o.f.Say("another kctl executes %s: it will find the cancellation and remove its throttles", run.File)
		return nil, nil
	}
	defer unlock()
	entries, left, err := removeThrottles(ctx, c, st, run, cancelCommand)
	if err == nil {
		run.Outcome = reassign.Cancelled
		err = st.save(run)
	}
	if err == nil && len(left) > 0 {
		err = leftThrottles(left)
	}
	if err != nil {
		problems = []model.Problem{{Object: "the run of " + run.File, Message: err.Error()}}
	}
	return entries, problems
}
