// Package lag holds the verbs that show how far behind somebody is.
package lag

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("lag", "How far followers are behind", newReplicas(f))
}

type replicasOptions struct {
	f        *factory.Factory
	targets  []plan.Target
	watch    bool
	interval time.Duration
	minLag   int64
}

func newReplicas(f *factory.Factory) *cobra.Command {
	o := &replicasOptions{f: f}
	cmd := &cobra.Command{
		Use:   "replicas [TOPIC[:P,..]...]",
		Short: "Show high watermark and log end offset of every replica, as it says itself",
		Long: `Ask every replica for its own log end offset (LEO), high watermark (HW) and leader epoch, on all brokers at once.
LAG is the leader's log end minus the replica's; LAG-TIME the age of the first record that it lacks. A broker that
does not answer is a row with its error, and the exit code is 3.`,
		Example: `  kctl lag replicas orders
  kctl lag replicas --min-lag 1
  kctl lag replicas orders:0 -o json | jq '.items[] | select(.role=="follower") | .logEndOffset'`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.targets, err = verb.Targets(args); err != nil {
				return err
			}
			if o.interval <= 0 {
				return exit.Usagef("--interval %s is not above zero", o.interval)
			}
			return runReplicas(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVar(&o.watch, "watch", false, "show again and again until interrupted")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks")
	cmd.Flags().Int64Var(&o.minLag, "min-lag", 0, "only replicas at least so many records behind, or with an error")
	return cmd
}

func runReplicas(ctx context.Context, o *replicasOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	once := func() error {
		positions, problems, err := c.ReplicaLag(ctx, o.targets)
		if err != nil {
			return err
		}
		out := []rows.ReplicaLag{}
		for i := range positions {
			if positions[i].LagRecords >= o.minLag || positions[i].Err != "" || o.minLag == 0 {
				out = append(out, rows.OfReplica(&positions[i]))
			}
		}
		return verb.List(o.f, rows.ReplicaLagKind, out, problems)
	}
	if !o.watch {
		return once()
	}
	return verb.Watch(ctx, o.interval, func() (bool, error) { return false, once() })
}
