package reassign

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kctl/admin/plan/reassign"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

func newRollback(f *factory.Factory) *cobra.Command {
	o := &executeOptions{f: f, command: "reassign rollback", override: true, allowOffline: true}
	cmd := &cobra.Command{
		Use:   "rollback FILE",
		Short: "Put the partitions of an executed plan back where they were",
		Long: `Put the partitions of a plan back to the replicas, order and directories from before kctl reassign execute FILE, whether
that is done, under way or was interrupted. What is under way is replaced by the way back; the throttles of the run are
removed first. The way back is a run like any other: it can be throttled, batched, interrupted and resumed.`,
		Example: `  kctl reassign rollback plan.json
  kctl reassign rollback plan.json --throttle 50M --yes`,
		Args: verb.Args(1, 1, "the plan file that was executed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(); err != nil {
				return err
			}
			entries, err := readPlan(args[0])
			if err != nil {
				return err
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runRollback(cmd.Context(), o, args[0], entries)
		},
	}
	o.add(cmd)
	return cmd
}

func runRollback(ctx context.Context, o *executeOptions, file string, entries []reassign.Entry) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	via, _, err := c.ReassignVia(ctx, o.via)
	if err != nil {
		return err
	}
	_, s, err := c.ReassignView(ctx, via, topicsOf(entries))
	if err != nil {
		return err
	}
	st := openStore(o.f, s.ClusterID)
	run, err := st.load(identity(entries))
	if err != nil {
		return err
	}
	if run == nil {
		return &exit.Error{
			Code: exit.Usage, Msg: file + " was not executed by kctl on this machine, so what was there before is not known",
			Hint: "kctl reassign execute carries out a rollback file",
		}
	}
	o.entries, o.file = run.RollbackEntries(), run.Rollback
	unlock, err := st.lock(run.Plan)
	if err != nil {
		return err
	}
	defer unlock()
	o.first = func() error {
		problems, err := c.RemoveThrottles(ctx, run, st.unfinished(run.Plan))
		for _, p := range problems {
			o.f.Say("warning: the throttle of %s stays: %s", p.Object, p.Message)
		}
		run.Outcome = reassign.RolledBack
		return errors.Join(err, st.save(run))
	}
	return runExecute(ctx, o)
}
