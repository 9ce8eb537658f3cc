package topics

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type describeOptions struct {
	f          *factory.Factory
	names      []string
	allConfigs bool
}

func newDescribe(f *factory.Factory) *cobra.Command {
	o := &describeOptions{f: f}
	cmd := &cobra.Command{
		Use:   "describe TOPIC...",
		Short: "Show topics with their partitions and configuration",
		Long: `Show topics with their partitions and configuration. Replica lists are in assignment order: the first is the
preferred leader. With one topic, JSON is a single object; with several it is a list.`,
		Example: `  kctl topics describe orders
  kctl topics describe orders --all-configs -o yaml`,
		Args: verb.Args(1, -1, "at least one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if err := plan.TopicName(a); err != nil {
					return admin.NewBadInput(err)
				}
			}
			o.names = args
			return runDescribe(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVar(&o.allConfigs, "all-configs", false, "show default values too")
	return cmd
}

func runDescribe(ctx context.Context, o *describeOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: o.names, MinISR: true, Reassignments: true})
	if err != nil {
		return err
	}
	problems := s.Problems
	details := make([]rows.TopicDetail, len(s.Topics))
	for i := range s.Topics {
		configs, err := c.TopicConfigs(ctx, s.Topics[i].Name)
		if err != nil {
			problems = append(problems, model.Problem{Object: "configuration of " + s.Topics[i].Name, Message: err.Error()})
		}
		details[i] = rows.OfTopicDetail(&s.Topics[i], o.configRows(configs))
	}
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	switch {
	case p.Format.Machine() && len(details) == 1:
		return verb.One(o.f, rows.TopicDetailKind, details[0], problems)
	case p.Format.Machine() || p.Format == output.Name:
		return verb.List(o.f, rows.TopicDetailKind, details, problems)
	}
	for i, d := range details {
		if i > 0 {
			fmt.Fprintln(o.f.IO.Out)
		}
		if err := output.One(p, rows.TopicDetailKind, d); err != nil {
			return err
		}
		fmt.Fprintln(o.f.IO.Out)
		if err := output.List(p, rows.PartitionKind, d.Partitions, nil); err != nil {
			return err
		}
	}
	return verb.Partial(o.f, problems)
}

func (o *describeOptions) configRows(cs []admin.TopicConfig) []rows.TopicConfig {
	var out []rows.TopicConfig
	for _, c := range cs {
		if o.allConfigs || c.Source == "dynamic-topic" {
			out = append(out, rows.TopicConfig{Name: c.Name, Value: c.Value, Source: c.Source})
		}
	}
	return out
}
