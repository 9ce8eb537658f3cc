package groups

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

type deleteOptions struct {
	f        *factory.Factory
	groups   []string
	ifExists bool
	change   factory.ChangeFlags
}

func newDelete(f *factory.Factory) *cobra.Command {
	o := &deleteOptions{f: f}
	cmd := &cobra.Command{
		Use:   "delete GROUP...",
		Short: "Delete groups with all their committed offsets",
		Long: `Delete groups that have no members. Their offsets are kept in a file beside the journal (kctl history), from which
the command named there brings them back.`,
		Example: `  kctl groups delete audit
  kctl groups delete audit nightly --yes
  kctl groups delete audit --dry-run`,
		Args: verb.Args(1, -1, "at least one group"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.groups, err = names(args); err != nil {
				return err
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runDelete(cmd.Context(), o)
		},
		ValidArgsFunction: Complete(f),
	}
	cmd.Flags().BoolVar(&o.ifExists, "if-exists", false, "exit 0 when a group is not there")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func runDelete(ctx context.Context, o *deleteOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	groups, err := c.DescribeGroups(ctx, o.groups)
	if err != nil {
		return err
	}
	there, problems, err := missing(groups)
	if o.ifExists && allGone(groups) {
		o.f.Say("none of the groups exists")
		if o.f.Machine() {
			return verb.List(o.f, rows.GroupKind, nil, nil)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if o.ifExists {
		problems = unreadable(groups)
	}
	if err := busy(there); err != nil {
		return err
	}
	planned := make([]rows.Group, len(there))
	for i := range there {
		planned[i] = rows.OfGroup(&there[i], true)
	}
	return verb.Change[rows.Group]{
		Flags: o.change, Kind: rows.GroupKind, Plan: planned, Needed: len(there), Refused: problems,
		What:     "delete, with all committed offsets",
		Question: fmt.Sprintf("delete %d group(s) with all committed offsets?", len(there)),
		Do:       func() (verb.Outcome[rows.Group], error) { return o.delete(ctx, c, there, planned) },
	}.Run(o.f)
}

// delete keeps the offsets of the groups and deletes them. The rows are those of the plan: deleted ones are dead.
func (o *deleteOptions) delete(ctx context.Context, c *admin.Client, gs []model.Group, out []rows.Group) (done verb.Outcome[rows.Group], err error) {
	ids := make([]string, len(gs))
	for i := range gs {
		ids[i] = gs[i].ID
	}
	offsets, _ := c.CommittedOffsets(ctx, ids) // a share group has none; what is deleted must not depend on reading them
	undo := make([][]string, len(ids))
	for i, id := range ids {
		if undo[i], err = keep(o.f, id, offsets[id]); err != nil {
			return done, &exit.Error{Code: exit.Failed, Msg: "nothing was changed: " + err.Error()}
		}
	}
	errs := c.DeleteGroups(ctx, ids)
	done.Rows = out
	for i, id := range ids {
		ch := factory.Change{
			Cluster: c.ClusterID(), Command: "groups delete", Object: id, Before: fmt.Sprintf("%s, %d committed offsets", gs[i].State, len(offsets[id])),
			After: "deleted", Result: journal.Done,
		}
		if err := errs[id]; err != nil {
			ch.Result, out[i].Error = err.Error(), err.Error()
			done.Errs = append(done.Errs, err)
		} else {
			out[i].State = model.GroupDead
			o.f.Say("deleted group %s", id)
		}
		done.Entries = append(done.Entries, undoable(ch, undo[i]))
	}
	return done, nil
}

func allGone(gs []model.Group) bool {
	for i := range gs {
		if gs[i].Err != "" || gs[i].State != model.GroupDead {
			return false
		}
	}
	return true
}

func unreadable(gs []model.Group) []model.Problem {
	var out []model.Problem
	for i := range gs {
		if gs[i].Err != "" {
			out = append(out, model.Problem{Object: "group " + gs[i].ID, Message: gs[i].Err})
		}
	}
	return out
}
