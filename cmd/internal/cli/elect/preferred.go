package elect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/factory"
)

func newPreferred(f *factory.Factory) *cobra.Command {
	o := &options{f: f, command: "elect preferred"}
	cmd := o.newCommand("preferred (TOPIC[:P,..]... | --all | --file FILE)",
		"Give leadership back to the first replica of each partition",
		`Have the controller elect the preferred leader, the first of the replica list, where another broker leads. The
plan is printed first. Only partitions that another broker leads are asked for, in batches. Partitions whose
preferred replica is dead or out of sync are reported and left alone; with --wait given they are waited for.
--file reads Kafka's JSON: {"partitions":[{"topic":"orders","partition":0}]}.

The command waits until each new leader answers as leader (--wait 0 does not).

The controller is asked by the protocol. Where no broker can be asked, or it is older than Kafka 2.2, and -z is
given, it is asked through the znode /admin/preferred_replica_election; --via chooses.`,
		`  kctl elect preferred orders
  kctl elect preferred orders:0,3 --yes
  kctl elect preferred --all --imbalanced-only --batch-size 200 --yes
  kctl elect preferred orders:0 --wait 5m --yes      # also waits until the replica is in sync
  kctl elect preferred --all --dry-run`, runPreferred)
	cmd.Flags().StringVar(&o.via, "via", "", "how the controller is asked: auto|protocol|zookeeper (default auto)")
	return cmd
}

func runPreferred(ctx context.Context, o *options) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	planned, s, via, err := c.PlanElections(ctx, o.targets, o.elect)
	if err != nil {
		return err
	}
	if via == admin.ElectViaZooKeeper && o.elect.Via != via {
		o.f.Say("the controller is asked through ZooKeeper (/admin/preferred_replica_election): no broker can be asked")
	}
	change := o.changeOf(ctx, c, planned, s, via)
	change.What = fmt.Sprintf("move leaders: %d of %d partitions without their preferred leader", len(plan.Moves(planned)), len(plan.Imbalanced(planned)))
	change.Question = fmt.Sprintf("move %d leader(s)?", change.Needed)
	return change.Run(o.f)
}
