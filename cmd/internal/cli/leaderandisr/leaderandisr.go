// Package leaderandisr holds the verbs on the state nodes of partitions.
package leaderandisr

import (
	"context"

	"github.com/spf13/cobra"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("leader-and-isr", "The leaderAndISR of partitions as ZooKeeper holds it", newGet(f), newSet(f), newWatch(f), newRestore(f))
}

func newGet(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "get TOPIC[:P,..]...",
		Short: "Show leader, epochs, ISR and znode version of partitions",
		Long: `Show the decision of the controller as the state znode holds it: leader, leader epoch, ISR, epoch of the deciding
controller, znode version and time of the last write. Without -z the brokers' metadata is shown, which has neither
version nor controller epoch nor time.

JSON is a single object when exactly one partition is named (orders:0), else a list.`,
		Example: `  kctl leader-and-isr get orders -z zk1:2181/kafka
  kctl leader-and-isr get orders:0 -z zk1:2181/kafka -o json | jq .zkVersion`,
		Args: verb.Args(1, -1, "at least one TOPIC[:P,..]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := verb.Targets(args)
			if err != nil {
				return err
			}
			return runGet(cmd.Context(), f, targets)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
}

func runGet(ctx context.Context, f *factory.Factory, targets []plan.Target) error {
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	nodes, problems, err := c.LeaderAndISR(ctx, targets)
	if err != nil {
		return err
	}
	now := f.Now()
	var out []rows.LeaderAndISR
	for i := range nodes {
		if nodes[i].Err == "" || nodes[i].Source == model.SourceProtocol {
			out = append(out, rows.OfStateNode(&nodes[i], now))
		}
	}
	if !c.HasZooKeeper() {
		f.Say("kctl: read from the brokers' metadata; znode version, controller epoch and age need -z")
	}
	p, err := f.Printer()
	if err != nil {
		return err
	}
	if len(targets) == 1 && len(targets[0].Partitions) == 1 && len(out) == 1 && p.Format.Machine() {
		return verb.One(f, rows.LeaderAndISRKind, out[0], problems)
	}
	return verb.List(f, rows.LeaderAndISRKind, out, problems)
}
