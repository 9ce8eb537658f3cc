package cluster

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

func newDiff(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "diff [TOPIC[:P,..]...]",
		Short: "Show where ZooKeeper, the controller and each broker disagree; exit 10 when they do",
		Long: `Ask every broker for its metadata, read ZooKeeper's znodes, and show each field about which they do not agree: cluster id,
controller and live brokers, topic ids, and of every partition whether it exists, leader, leader epoch, ISR (as a set) and replicas
(in order). What the controller's own metadata says stands in a column of its own.

A difference is shown only when it is still there at a second look, so that a change on its way to all is none. Without -z
the brokers are compared with each other.`,
		Example: `  kctl cluster diff -z zk1:2181/kafka
  kctl cluster diff orders:0 -o json`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDiff(cmd.Context(), f, args)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
}

func runDiff(ctx context.Context, f *factory.Factory, args []string) error {
	targets, err := verb.Targets(args)
	if err != nil {
		return err
	}
	c, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	diffs, problems, err := c.ClusterDiff(ctx, targets)
	if err != nil {
		return err
	}
	out := make([]rows.Difference, len(diffs))
	for i, d := range diffs {
		out[i] = rows.OfDifference(d)
	}
	err = verb.List(f, rows.DifferenceKind, slices.Clip(out), problems)
	if len(out) > 0 && (err == nil || exit.CodeOf(err) == exit.Partial) {
		return exit.Silent(exit.Problems)
	}
	return err
}
