package lag

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type replicasOptions struct {
	f         *factory.Factory
	targets   []plan.Target
	watch     bool
	interval  time.Duration
	minLag    int64
	outOfSync bool
	sort      string
}

func newReplicas(f *factory.Factory) *cobra.Command {
	o := &replicasOptions{f: f}
	cmd := &cobra.Command{
		Use:   "replicas [TOPIC[:P,..]...]",
		Short: "Show high watermark and log end offset of every replica, as it says itself",
		Long: `Ask every replica for its own log end offset (LEO), high watermark (HW) and leader epoch, on all brokers at once.
LAG is the leader's log end minus the replica's; LAG-TIME the age of the first record that it lacks. A broker that
does not answer is a row with its error, and the exit code is 3.

With --watch, RATE is the records that a replica's log grew by in a second, and CATCH-UP the time in which its lag ends
at the pace of the last two looks.`,
		Example: `  kctl lag replicas orders
  kctl lag replicas --min-lag 1 --sort lag
  kctl lag replicas --out-of-sync --watch
  kctl lag replicas orders:0 -o json | jq '.items[] | select(.role=="follower") | .logEndOffset'`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.targets, err = verb.Targets(args); err != nil {
				return err
			}
			if err := checkWatch(o.interval, o.minLag); err != nil {
				return err
			}
			if orders[o.sort] == nil {
				return exit.Usagef("--sort %q is not one of topic, broker, lag, time", o.sort)
			}
			return runReplicas(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.watch, "watch", false, "show again and again until interrupted")
	fl.DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks")
	fl.Int64Var(&o.minLag, "min-lag", 0, "only replicas at least so many records behind, or with an error")
	fl.BoolVar(&o.outOfSync, "out-of-sync", false, "only replicas that are not in the ISR, or with an error")
	fl.StringVar(&o.sort, "sort", "topic", "topic (leader first), broker, lag or time (longest first)")
	_ = cmd.RegisterFlagCompletionFunc("sort", verb.Fixed("topic", "broker", "lag", "time")) // the only error is a flag that does not exist
	return cmd
}

func checkWatch(interval time.Duration, minLag int64) error {
	if interval <= 0 {
		return exit.Usagef("--interval %s is not above zero", interval)
	}
	if minLag < 0 {
		return exit.Usagef("--min-lag %d is below 0", minLag)
	}
	return nil
}

// orders compare rows that come by topic, partition, leader first.
var orders = map[string]func(a, b rows.ReplicaLag) int{
	"topic":  func(rows.ReplicaLag, rows.ReplicaLag) int { return 0 },
	"broker": func(a, b rows.ReplicaLag) int { return cmp.Compare(a.Broker, b.Broker) },
	"lag":    func(a, b rows.ReplicaLag) int { return cmp.Compare(b.LagRecords, a.LagRecords) },
	"time":   func(a, b rows.ReplicaLag) int { return cmp.Compare(msOf(b.LagMs), msOf(a.LagMs)) },
}

func msOf(ms *int64) int64 {
	if ms == nil {
		return -1
	}
	return *ms
}

func (o *replicasOptions) keeps(p *model.ReplicaPosition) bool {
	return p.Err != "" || (o.minLag == 0 || p.LagRecords >= o.minLag) && (!o.outOfSync || !p.InSync)
}

func runReplicas(ctx context.Context, o *replicasOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	var before []rows.ReplicaLag
	var beforeAt time.Time
	once := func() error {
		positions, problems, err := c.ReplicaLag(ctx, o.targets)
		if err = cmp.Or(err, ctx.Err()); err != nil { // cut off: see verb.Watch
			return err
		}
		at := o.f.Now()
		out := []rows.ReplicaLag{}
		for i := range positions {
			if o.keeps(&positions[i]) {
				out = append(out, rows.OfReplica(&positions[i]))
			}
		}
		slices.SortStableFunc(out, orders[o.sort])
		if !o.watch {
			return verb.List(o.f, rows.ReplicaLagKind, out, problems)
		}
		rated := rows.ReplicaRates(before, out, at.Sub(beforeAt))
		before, beforeAt = out, at
		return verb.List(o.f, rows.ReplicaRateKind, rated, problems)
	}
	if !o.watch {
		return once()
	}
	return verb.Watch(ctx, o.interval, func() (bool, error) { return false, once() })
}
