package reassign

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan/reassign"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type verifyOptions struct {
	f      *factory.Factory
	via    string
	remove bool
	change factory.ChangeFlags
}

func newVerify(f *factory.Factory) *cobra.Command {
	o := &verifyOptions{f: f}
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Tell for each partition of a plan whether it is as wanted; changes nothing",
		Long: `Compare a plan with the cluster: replicas, their order, and their directories where the plan names them. Exit code 0:
all is as wanted; 10: something is not, or not yet.

Unlike Kafka's tool it removes no throttle. --remove-throttles does, when all is as wanted: the settings that the run of
this plan has made, or, when kctl did not execute it, the entries of the plan's partitions and, when nothing at all is
being reassigned, the rates of the live brokers. They are shown before.`,
		Example: `  kctl reassign verify plan.json
  kctl reassign verify plan.json --remove-throttles --yes`,
		Args: verb.Args(1, 1, "a plan file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			entries, err := readPlan(args[0])
			if err != nil {
				return err
			}
			if err := checkVia(o.via); err != nil {
				return err
			}
			if o.remove {
				if err := o.f.Writable(); err != nil {
					return err
				}
			}
			return runVerify(cmd.Context(), o, args[0], entries)
		},
	}
	cmd.Flags().BoolVar(&o.remove, "remove-throttles", false, "remove the throttles of the plan when all is as wanted")
	cmd.Flags().StringVar(&o.via, "via", admin.ViaAuto, viaUsage)
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func runVerify(ctx context.Context, o *verifyOptions, file string, entries []reassign.Entry) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	via, _, err := c.ReassignVia(ctx, o.via)
	if err != nil {
		return err
	}
	view, s, err := c.ReassignView(ctx, via, topicsOf(entries))
	if err != nil {
		return err
	}
	copies, problems := verifyDirs(ctx, c, view, entries)
	out := make([]rows.ReassignmentStep, len(entries))
	open := 0
	for i := range entries {
		out[i] = verifyRow(&entries[i], view, copies)
		if out[i].State != string(reassign.Done) {
			open++
		}
	}
	if err := verb.List(o.f, rows.ReassignmentStepKind, out, problems); err != nil {
		return err
	}
	if open > 0 {
		return &exit.Error{Code: exit.Problems, Msg: fmt.Sprintf("%d of %d partition(s) are not as wanted", open, len(entries)), Hint: "kctl reassign status shows what is under way"}
	}
	o.f.Say("all %d partition(s) are as wanted", len(entries))
	if !o.remove {
		return nil
	}
	return o.removeThrottles(ctx, c, openStore(o.f, s.ClusterID), entries)
}

// verifyDirs reads directories when the plan names any.
func verifyDirs(ctx context.Context, c *admin.Client, view *reassign.View, entries []reassign.Entry) (admin.Copies, []model.Problem) {
	var parts []cluster.TopicPartition
	for i := range entries {
		if len(logDirs(entries[i].LogDirs)) > 0 {
			parts = append(parts, entries[i].TP())
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return c.Copies(ctx, view.Live, parts)
}

func verifyRow(e *reassign.Entry, view *reassign.View, copies admin.Copies) rows.ReassignmentStep {
	seen, ok := view.Parts[e.TP()]
	r := rows.ReassignmentStep{
		Topic: e.Topic, Partition: e.Partition, From: notNil(seen.Replicas), To: cluster.IDsToInt32(e.Replicas), LogDirs: logDirs(e.LogDirs),
		State: string(reassign.Judge(e, seen, ok)),
	}
	switch reassign.State(r.State) {
	case reassign.Done:
		for _, id := range e.Replicas {
			have, known := copies[e.TP()][id]
			if want := e.Dir(id); want != reassign.AnyDir && known && (have.Dir != want || have.Future != "") {
				r.State, r.Error = "misplaced", fmt.Sprintf("broker %d has it in %s", id, have.Dir)
				if have.Future != "" {
					r.Error += " and moves it to " + have.Future
				}
			}
		}
	case reassign.Other:
		r.Error = "being reassigned to something else"
	case reassign.Missing:
		r.Error = "the partition does not exist"
	}
	return r
}

func (o *verifyOptions) removeThrottles(ctx context.Context, c *admin.Client, st *store, entries []reassign.Entry) error {
	run, err := st.load(identity(entries))
	if err != nil {
		return err
	}
	known := run != nil && len(run.Marks) > 0
	if !known {
		if run, err = c.FindThrottles(ctx, entries); err != nil {
			return err
		}
	}
	if len(run.Marks) == 0 {
		o.f.Say("no throttle to remove")
		return nil
	}
	for _, m := range run.Marks {
		object := "topic " + m.Topic
		if m.Topic == "" {
			object = fmt.Sprintf("broker %d", m.Broker)
		}
		o.f.Say("will remove from %s: %s %s", object, m.Key, m.Value+strings.Join(m.Added, ","))
	}
	if o.change.DryRun {
		return nil
	}
	n := len(run.Marks)
	var problems []model.Problem
	err = o.f.Commit(o.change, "remove these throttles?", func() (entries []factory.Change, err error) {
		entries, problems, err = removeThrottles(ctx, c, st, run, "reassign verify")
		if err == nil && known {
			err = st.save(run)
		}
		return entries, err
	})
	if err != nil {
		return err
	}
	o.f.Say("removed %d throttle setting(s)", n-len(run.Marks))
	switch {
	case len(problems) == 0:
		return nil
	case len(run.Marks) < n:
		return &exit.Error{Code: exit.Partial, Msg: fmt.Sprintf("partly done, %d of %d failed: %v", len(run.Marks), n, leftThrottles(problems))}
	}
	return verb.NothingDone("nothing was changed: ", problems, "")
}
