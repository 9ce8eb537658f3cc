package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type describeOptions struct{ f *factory.Factory }

func newDescribe(f *factory.Factory, run func(context.Context, *describeOptions) error) *cobra.Command {
	o := &describeOptions{f: f}
	return &cobra.Command{
		Use:   "describe",
		Short: "Show the cluster's id, controller, brokers and partition counts",
		Example: `  kctl cluster describe
  kctl cluster describe -z zk1:2181/kafka -o json`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if run != nil {
				return run(cmd.Context(), o)
			}
			return runDescribe(cmd.Context(), o)
		},
	}
}

func runDescribe(ctx context.Context, o *describeOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Controller: true})
	if err != nil {
		return err
	}
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	if p.Format.Machine() {
		return verb.One(o.f, rows.ClusterDetailKind, rows.OfClusterDetail(s), s.Problems)
	}
	if err := output.One(p, rows.ClusterKind, rows.OfCluster(s)); err != nil {
		return err
	}
	if p.Format != output.Name {
		if _, err := o.f.IO.Out.Write([]byte("\n")); err != nil {
			return err
		}
		return verb.List(o.f, rows.BrokerKind, rows.Brokers(s), s.Problems)
	}
	return verb.Partial(o.f, s.Problems)
}
