package groups

import (
	"context"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type describeOptions struct {
	f                       *factory.Factory
	groups                  []string
	members, offsets, state bool
	time                    bool
}

func newDescribe(f *factory.Factory) *cobra.Command {
	o := &describeOptions{f: f}
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show the state of groups, their members and their offsets",
		Long: `Show the state, the members and the committed offsets of groups, whatever their type. --members, --offsets and
--state show one of the three alone. With -o wide assignments, epochs and instance ids are columns too.
A share group commits no offsets.`,
		Example: `  kctl groups describe audit
  kctl groups describe audit --members -o wide
  kctl groups describe audit -o json | jq '.items[0].memberList[].host'`,
		Args: verb.Args(1, -1, "at least one group"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.groups, err = names(args); err != nil {
				return err
			}
			n := 0
			for _, b := range []bool{o.members, o.offsets, o.state} {
				if b {
					n++
				}
			}
			if n > 1 {
				return exit.Usagef("choose one of --members, --offsets and --state")
			}
			return runDescribe(cmd.Context(), o)
		},
		ValidArgsFunction: Complete(f),
	}
	cmd.Flags().BoolVar(&o.members, "members", false, "the members alone")
	cmd.Flags().BoolVar(&o.offsets, "offsets", false, "the committed offsets alone")
	cmd.Flags().BoolVar(&o.state, "state", false, "the state alone")
	cmd.Flags().BoolVar(&o.time, "time", false, "look up how old the first unread records are")
	return cmd
}

func runDescribe(ctx context.Context, o *describeOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	var groups []model.Group
	var positions []model.GroupPosition
	if o.members || o.state {
		groups, err = c.DescribeGroups(ctx, o.groups)
	} else {
		groups, positions, _, err = c.GroupLag(ctx, admin.GroupLagOptions{Groups: o.groups, Time: o.time})
	}
	if err != nil {
		return err
	}
	there, problems, err := missing(groups)
	if err != nil {
		return err
	}
	var gs []rows.Group
	ms, ls := []rows.GroupMember{}, []rows.GroupLag{}
	for i := range there {
		gs = append(gs, rows.OfGroup(&there[i], true))
		ms = append(ms, rows.GroupMembers(&there[i])...)
	}
	for i := range positions {
		ls = append(ls, rows.OfGroupPosition(&positions[i]))
	}
	switch {
	case o.members:
		return verb.List(o.f, rows.GroupMemberKind, ms, problems)
	case o.offsets:
		return verb.List(o.f, rows.GroupLagKind, ls, problems)
	case o.state:
		return verb.List(o.f, rows.GroupKind, gs, problems)
	case o.f.Machine():
		return verb.List(o.f, rows.GroupDetailKind, details(gs, ms, ls), problems)
	}
	return o.print(gs, ms, ls, problems)
}

// details joins the rows of each group.
func details(gs []rows.Group, ms []rows.GroupMember, ls []rows.GroupLag) []rows.GroupDetail {
	out := make([]rows.GroupDetail, len(gs))
	at := map[string]*rows.GroupDetail{}
	for i := range gs {
		out[i] = rows.GroupDetail{Group: gs[i], MemberList: []rows.GroupMember{}, PartitionList: []rows.GroupLag{}}
		at[gs[i].Group] = &out[i]
	}
	for i := range ms {
		d := at[ms[i].Group]
		d.MemberList = append(d.MemberList, ms[i])
	}
	for i := range ls {
		if d := at[ls[i].Group]; d != nil {
			d.PartitionList = append(d.PartitionList, ls[i])
			d.Lag += max(0, ls[i].LagRecords)
		}
	}
	return out
}

// print writes three tables, each with a line between.
func (o *describeOptions) print(gs []rows.Group, ms []rows.GroupMember, ls []rows.GroupLag, problems []model.Problem) error {
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	if err := output.List(p, rows.GroupKind, gs, nil); err != nil || p.Format == output.Name {
		return err
	}
	if len(ms) > 0 {
		if _, err := p.Out.Write([]byte("\n")); err != nil {
			return err
		}
		if err := output.List(p, rows.GroupMemberKind, ms, nil); err != nil {
			return err
		}
	}
	if len(ls) > 0 {
		if _, err := p.Out.Write([]byte("\n")); err != nil {
			return err
		}
		if err := output.List(p, rows.GroupLagKind, ls, nil); err != nil {
			return err
		}
	}
	return verb.Partial(o.f, problems)
}
