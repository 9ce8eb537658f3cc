// Package transitions shows leadership decisions that have not been carried out.
package transitions

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type options struct {
	f        *factory.Factory
	opts     admin.TransitionOptions
	watch    bool
	interval time.Duration
}

// New returns the verb.
func New(f *factory.Factory) *cobra.Command {
	o := &options{f: f}
	cmd := &cobra.Command{
		Use:   "transitions [TOPIC[:P,..]...]",
		Short: "Show leadership changes under way; exit 10 when one is stuck",
		Long: `Compare the leadership decision of every partition with what the brokers named in it answer: does the leader act
in the decided epoch, have the followers followed? A decision that is not carried out after --older-than is stuck:
the row says who it waits for, why, and the one command that frees it.

With -z decisions and their age are read from the state znodes, and alerts of the controller are shown. Without -z
the newest epoch in any broker's metadata is taken; an unfinished one is then watched for --older-than.`,
		Example: `  kctl transitions -z zk1:2181/kafka
  kctl transitions --older-than 30s -o json`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.opts.Targets, err = verb.Targets(args); err != nil {
				return err
			}
			if o.opts.OlderThan <= 0 || o.interval <= 0 {
				return exit.Usagef("--older-than and --interval must be above zero")
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().DurationVar(&o.opts.OlderThan, "older-than", admin.DefaultOlderThan, "age from which an unfinished decision is stuck")
	cmd.Flags().BoolVar(&o.opts.All, "all", false, "show finished decisions too")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "show again and again until interrupted")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks")
	return cmd
}

func run(ctx context.Context, o *options) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	once := func() error {
		ts, problems, err := c.Transitions(ctx, o.opts)
		if err = cmp.Or(err, ctx.Err()); err != nil { // cut off: see verb.Watch
			return err
		}
		return o.print(ts, problems)
	}
	if !o.watch {
		return once()
	}
	return verb.Watch(ctx, o.interval, func() (bool, error) { return false, once() })
}

func (o *options) print(ts []model.Transition, problems []model.Problem) error {
	out := make([]rows.Transition, len(ts))
	stuck := false
	for i := range ts {
		out[i] = rows.OfTransition(&ts[i])
		out[i].Fix = o.f.Runnable(out[i].Fix)
		stuck = stuck || ts[i].State == model.TransitionStuck
	}
	err := verb.List(o.f, rows.TransitionKind, out, problems)
	if stuck && exit.CodeOf(err) != exit.Failed {
		return exit.Silent(exit.Problems)
	}
	return err
}
