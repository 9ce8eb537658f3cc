// Package groups holds the verbs on groups of consumers: what they are, where they are, and how their committed
// offsets are changed. Files of kafka-consumer-groups.sh are read and written to the byte.
package groups

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("groups", "Consumer groups and their committed offsets",
		newList(f), newDescribe(f), newDelete(f), newReset(f), newDeleteOffsets(f))
}

// completionTime bounds what a shell waits for.
const completionTime = 2 * time.Second

// Complete offers the ids of groups.
func Complete(f *factory.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		c, err := f.Admin(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		gs, _, err := c.Groups(ctx, admin.GroupFilter{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for i := range gs {
			if !slices.Contains(args, gs[i].ID) {
				ids = append(ids, gs[i].ID)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// names checks ids and leaves out repeated ones. A group may have any name but the empty one.
func names(args []string) ([]string, error) {
	var out []string
	for _, a := range args {
		if a == "" {
			return nil, exit.Usagef("a group id is empty")
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out, nil
}

// missing splits off the groups that do not exist or could not be read. When none is left it is an error.
func missing(gs []model.Group) (there []model.Group, problems []model.Problem, err error) {
	for i := range gs {
		switch {
		case gs[i].Err != "":
			problems = append(problems, model.Problem{Object: "group " + gs[i].ID, Message: gs[i].Err})
		case gs[i].State == model.GroupDead:
			problems = append(problems, model.Problem{Object: "group " + gs[i].ID, Message: "it does not exist"})
		default:
			there = append(there, gs[i])
		}
	}
	if len(there) == 0 && len(problems) > 0 {
		return nil, problems, verb.NothingDone("", problems, "kctl groups list shows the groups")
	}
	return there, problems, nil
}

// busy refuses groups whose members may be at work, and says who they are.
func busy(gs []model.Group) error {
	for i := range gs {
		g := &gs[i]
		if !g.Active() {
			continue
		}
		msg := fmt.Sprintf("nothing was changed: group %s is %s with %d member(s)", g.ID, g.State, len(g.Members))
		for j, m := range g.Members {
			if j == 5 {
				msg += fmt.Sprintf(" and %d more", len(g.Members)-j)
				break
			}
			sep := ", "
			if j == 0 {
				sep = ": "
			}
			msg += fmt.Sprintf("%s%s on %s", sep, m.ClientID, m.Host)
		}
		return &exit.Error{Code: exit.Failed, Msg: msg, Hint: "stop its consumers first; kctl groups describe " + journal.Quote(g.ID) + " --members shows them all"}
	}
	return nil
}

// keep writes the offsets that a group has into a file beside the journal, in the form of --from-file, and returns the
// arguments of the command that brings them back. A group without offsets needs no file.
func keep(f *factory.Factory, group string, offsets []model.CommittedOffset) (undo []string, err error) {
	if len(offsets) == 0 {
		return nil, nil
	}
	file, err := keepFile(f, offsets)
	if err != nil {
		return nil, err
	}
	return []string{"groups", "reset-offsets", group, "--from-file", file}, nil
}

// keepBoth keeps what a group's offsets become as well: the way back is open only while they are that.
func keepBoth(f *factory.Factory, group string, old, next []model.CommittedOffset) (undo []string, err error) {
	if undo, err = keep(f, group, old); undo == nil {
		return nil, err
	}
	file, err := keepFile(f, next)
	if err != nil {
		return nil, err
	}
	return append(undo, "--expect", file), nil
}

func keepFile(f *factory.Factory, offsets []model.CommittedOffset) (name string, err error) {
	rows := make([]plan.OffsetRow, len(offsets))
	for i, o := range offsets {
		rows[i] = plan.OffsetRow{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset}
	}
	dir := filepath.Join(filepath.Dir(f.JournalPath()), "offsets")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(dir, f.Now().UTC().Format("20060102T150405Z")+"-*.csv")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(plan.FormatOffsets(rows, false))
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", fmt.Errorf("keep the offsets: %w", err)
	}
	return file.Name(), nil
}

// undoable adds the way back to an entry that has one.
func undoable(ch factory.Change, undo []string) factory.Change {
	if len(undo) == 0 || ch.Result != journal.Done {
		return ch
	}
	return ch.WithUndo(undo...)
}
