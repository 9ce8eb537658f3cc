package leaderandisr

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type watchOptions struct {
	f        *factory.Factory
	targets  []plan.Target
	interval time.Duration
	watch    verb.Follow
}

func newWatch(f *factory.Factory) *cobra.Command {
	o := &watchOptions{f: f}
	cmd := &cobra.Command{
		Use:   "watch [TOPIC[:P,..]...]",
		Short: "Show changes of leader, ISR and replicas as they happen, and why",
		Long: `Print one line for each change: what changed from what to what, and why as far as it can be seen: created, election,
unclean-election, no-leader, shrink, growth, reassignment, resent (a new epoch without another leader or ISR), deleted. With
-o json one object a line. Without names every topic is watched, also those that are made later.

With -z the state znodes are watched. Without, the brokers' metadata is read every --interval: changes between two readings
are then seen as one. A lost connection ends nothing. Ends with Ctrl-C, after --count changes or after --for.`,
		Example: `  kctl leader-and-isr watch -z zk1:2181/kafka
  kctl leader-and-isr watch orders payments:0 -o json | jq -r 'select(.event=="no-leader")|.topic'`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.targets, err = verb.Targets(args); err != nil {
				return err
			}
			if o.interval <= 0 {
				return exit.Usagef("--interval must be above zero")
			}
			if err := o.watch.Check(); err != nil {
				return err
			}
			return runWatch(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().DurationVar(&o.interval, "interval", time.Second, "without -z: how often the brokers are asked")
	o.watch.AddFlags(cmd.Flags())
	return cmd
}

func runWatch(ctx context.Context, o *watchOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	opts := admin.ISRWatchOptions{
		Targets: o.targets, Every: o.interval,
		Armed: func(n int) { o.f.Say("kctl: watching %d partitions", n); o.watch.Armed() },
		Changed: func(ch check.ISRChange) error {
			e := rows.OfISRChange(ch, o.f.Now())
			if err := verb.Event(p, rows.LeaderAndISREventKind, e, e.Line()); err != nil {
				return err
			}
			return o.watch.Seen()
		},
	}
	ctx, stop := o.f.IO.UntilReaderGone(ctx)
	defer stop()
	return o.watch.Run(ctx, func(ctx context.Context) error { return c.WatchLeaderAndISR(ctx, opts) })
}
