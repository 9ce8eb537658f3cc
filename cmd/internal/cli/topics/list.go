package topics

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type listOptions struct {
	f        *factory.Factory
	filter   string
	external bool
}

func newList(f *factory.Factory) *cobra.Command {
	o := &listOptions{f: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List topics",
		Example: `  kctl topics list
  kctl topics list --topic 'orders.*' -o name
  kctl topics list --exclude-internal -o json`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.filter, "topic", "", "only topics whose whole name matches this regular expression")
	cmd.Flags().BoolVar(&o.external, "exclude-internal", false, "leave out internal topics")
	return cmd
}

func runList(ctx context.Context, o *listOptions) error {
	re, err := verb.TopicFilter(o.filter)
	if err != nil {
		return err
	}
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{})
	if err != nil {
		return err
	}
	s.Topics = slices.DeleteFunc(s.Topics, func(t model.Topic) bool {
		return re != nil && !re.MatchString(t.Name) || o.external && t.Internal
	})
	return verb.List(o.f, rows.TopicKind, rows.Topics(s), s.Problems)
}
