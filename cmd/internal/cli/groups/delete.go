package groups

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/output"
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
	if err := o.printPlan(there, problems); err != nil || o.change.DryRun {
		return err
	}
	if err := o.f.Confirm(o.change, fmt.Sprintf("delete %d group(s) with all committed offsets?", len(there))); err != nil {
		return err
	}
	ids := make([]string, len(there))
	for i := range there {
		ids[i] = there[i].ID
	}
	offsets, _ := c.CommittedOffsets(ctx, ids) // a share group has none; what is deleted must not depend on reading them
	undo := make([][]string, len(ids))
	for i, id := range ids {
		if undo[i], err = keep(o.f, id, offsets[id]); err != nil {
			return &exit.Error{Code: exit.Failed, Msg: "nothing was changed: " + err.Error()}
		}
	}
	errs := c.DeleteGroups(ctx, ids)
	for i, id := range ids {
		ch := factory.Change{
			Cluster: c.ClusterID(), Command: "groups delete", Object: id, Before: fmt.Sprintf("%s, %d committed offsets", there[i].State, len(offsets[id])),
			After: "deleted", Result: journal.Done,
		}
		if err := errs[id]; err != nil {
			ch.Result = err.Error()
			problems = append(problems, model.Problem{Object: "group " + id, Message: err.Error()})
		} else {
			o.f.Say("deleted group %s", id)
		}
		o.f.Record(undoable(ch, undo[i]))
	}
	if len(errs) > 0 && len(errs) == len(ids) {
		return errs[ids[0]]
	}
	return verb.Partial(o.f, problems)
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

// printPlan says what will be lost: on stderr, or as the answer of a dry run.
func (o *deleteOptions) printPlan(gs []model.Group, problems []model.Problem) error {
	out := make([]rows.Group, len(gs))
	for i := range gs {
		out[i] = rows.OfGroup(&gs[i], true)
	}
	if o.change.DryRun {
		o.f.Say("dry run: these groups would be deleted")
		return verb.List(o.f, rows.GroupKind, out, problems)
	}
	if o.f.Machine() {
		return nil
	}
	o.f.Say("will delete, with all committed offsets:")
	p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	return output.List(p, rows.GroupKind, out, nil)
}
