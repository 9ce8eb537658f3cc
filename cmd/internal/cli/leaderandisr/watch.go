package leaderandisr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type watchOptions struct {
	f        *factory.Factory
	targets  []plan.Target
	interval time.Duration
	count    int
	limit    time.Duration
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
			if o.interval <= 0 || o.count < 0 || o.limit < 0 {
				return exit.Usagef("--interval must be above zero, --count and --for not below")
			}
			return runWatch(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().DurationVar(&o.interval, "interval", time.Second, "without -z: how often the brokers are asked")
	cmd.Flags().IntVar(&o.count, "count", 0, "end after this many changes (0: never)")
	cmd.Flags().DurationVar(&o.limit, "for", 0, "end after this time (0: never)")
	return cmd
}

// errEnough ends a watch whose count is reached.
var errEnough = errors.New("enough changes")

func runWatch(ctx context.Context, o *watchOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	seen := 0
	err = c.WatchLeaderAndISR(ctx, admin.ISRWatchOptions{
		Targets: o.targets, Every: o.interval,
		Armed: func(n int) { o.f.Say("kctl: watching %d partitions", n) },
		Changed: func(ch check.ISRChange) error {
			if err := printEvent(p, rows.OfISRChange(ch, o.f.Now())); err != nil {
				return err
			}
			if seen++; seen == o.count {
				return errEnough
			}
			return nil
		},
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// printEvent writes one change: a line of text, a JSON object in one line, or a YAML document.
func printEvent(p *output.Printer, e rows.LeaderAndISREvent) error {
	var err error
	switch p.Format {
	case output.JSON:
		var data []byte
		data, err = json.Marshal(struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			rows.LeaderAndISREvent
		}{"kctl/v1", rows.LeaderAndISREventKind.Name, e})
		if err == nil {
			_, err = fmt.Fprintf(p.Out, "%s\n", data)
		}
	case output.YAML:
		if _, err = fmt.Fprintln(p.Out, "---"); err == nil {
			err = output.One(p, rows.LeaderAndISREventKind, e)
		}
	case output.Name:
		_, err = fmt.Fprintln(p.Out, rows.LeaderAndISREventKind.ID(e))
	default:
		_, err = fmt.Fprintln(p.Out, e.Line())
	}
	return err
}
