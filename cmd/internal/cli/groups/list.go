package groups

import (
	"context"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
)

type listOptions struct {
	f      *factory.Factory
	filter admin.GroupFilter
}

func newList(f *factory.Factory) *cobra.Command {
	o := &listOptions{f: f}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the groups of all coordinators",
		Long: `List groups of every type: classic, consumer (KIP-848), share and streams. Every broker is asked for those that it
coordinates; one that does not answer is said, and the exit code is 3.`,
		Example: `  kctl groups list
  kctl groups list --state empty,dead
  kctl groups list --type consumer -o name`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), o) },
	}
	cmd.Flags().StringSliceVar(&o.filter.States, "state", nil, "only groups in these states, such as stable,empty")
	cmd.Flags().StringSliceVar(&o.filter.Types, "type", nil, "only groups of these types: classic, consumer, share, streams")
	for flag, words := range map[string][]string{
		"state": {"stable", "empty", "dead", "preparingrebalance", "completingrebalance", "assigning", "reconciling"},
		"type":  {"classic", "consumer", "share", "streams"},
	} {
		// The only error is a flag that does not exist.
		_ = cmd.RegisterFlagCompletionFunc(flag, verb.Fixed(words...))
	}
	return cmd
}

func runList(ctx context.Context, o *listOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	gs, problems, err := c.Groups(ctx, o.filter)
	if err != nil {
		return err
	}
	described := o.f.WantsAll() && len(gs) > 0
	if described {
		if gs, err = describeListed(ctx, c, gs); err != nil {
			return err
		}
	}
	out := make([]rows.Group, len(gs))
	for i := range gs {
		out[i] = rows.OfGroup(&gs[i], described)
	}
	return verb.List(o.f, rows.GroupKind, out, problems)
}

// describeListed adds members and epochs, one request to each coordinator; a group that went away since is left out.
func describeListed(ctx context.Context, c *admin.Client, gs []model.Group) ([]model.Group, error) {
	ids := make([]string, len(gs))
	for i := range gs {
		ids[i] = gs[i].ID
	}
	described, err := c.DescribeGroups(ctx, ids)
	if err != nil {
		return nil, err
	}
	out := gs[:0]
	for i := range described {
		if described[i].State != model.GroupDead {
			out = append(out, described[i])
		}
	}
	return out, nil
}
