package topics

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type describeOptions struct {
	f          *factory.Factory
	names      []string
	filter     string
	allConfigs bool
}

func newDescribe(f *factory.Factory) *cobra.Command {
	o := &describeOptions{f: f}
	cmd := &cobra.Command{
		Use:   "describe (TOPIC... | --topic RE)",
		Short: "Show topics with their partitions and configuration",
		Long: `Show topics with their partitions and configuration. Replica lists are in assignment order: the first is the
preferred leader. With one topic, JSON is a single object; with several it is a list.`,
		Example: `  kctl topics describe orders
  kctl topics describe orders --all-configs -o yaml
  kctl topics describe --topic 'orders.*'`,
		Args: verb.Args(0, -1, "topic names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if err := plan.TopicName(a); err != nil {
					return admin.NewBadInput(err)
				}
			}
			if (len(args) > 0) == (o.filter != "") {
				return exit.Usagef("%s needs at least one topic name, or --topic RE", cmd.CommandPath())
			}
			o.names = args
			return runDescribe(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().StringVar(&o.filter, "topic", "", "all topics whose whole name matches this regular expression")
	cmd.Flags().BoolVar(&o.allConfigs, "all-configs", false, "show default values too")
	return cmd
}

func runDescribe(ctx context.Context, o *describeOptions) error {
	re, err := verb.TopicFilter(o.filter)
	if err != nil {
		return err
	}
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: o.names, MinISR: true, Reassignments: true})
	if err != nil {
		return err
	}
	s.Topics = slices.DeleteFunc(s.Topics, func(t model.Topic) bool { return re != nil && !re.MatchString(t.Name) })
	details, problems := o.details(ctx, c, s)
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

// details adds the configurations, which are read for all topics at once.
func (o *describeOptions) details(ctx context.Context, c *admin.Client, s *model.Snapshot) ([]rows.TopicDetail, []model.Problem) {
	problems := s.Problems
	resources := make([]model.ConfigResource, len(s.Topics))
	for i := range s.Topics {
		resources[i] = model.ConfigResource{Type: model.TopicResource, Name: s.Topics[i].Name}
	}
	configs, err := c.Configs(ctx, resources, nil)
	if err != nil {
		problems = append(problems, model.Problem{Object: "configurations", Message: err.Error()})
		configs = make([]model.ResourceConfigs, len(resources))
	}
	out := make([]rows.TopicDetail, len(s.Topics))
	for i := range s.Topics {
		if configs[i].Err != nil {
			problems = append(problems, model.Problem{Object: "configuration of " + s.Topics[i].Name, Message: configs[i].Err.Error()})
		}
		out[i] = rows.OfTopicDetail(&s.Topics[i], o.configRows(configs[i].Entries))
	}
	return out, problems
}

func (o *describeOptions) configRows(cs []model.ConfigEntry) []rows.TopicConfig {
	var out []rows.TopicConfig
	for i := range cs {
		if o.allConfigs || cs[i].Source == "dynamic-topic" {
			row := rows.TopicConfig{Name: cs[i].Name, Source: cs[i].Source}
			if cs[i].Value != nil {
				row.Value = *cs[i].Value
			}
			out = append(out, row)
		}
	}
	return out
}
