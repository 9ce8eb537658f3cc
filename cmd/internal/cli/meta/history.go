package meta

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// HistoryRow is an entry of the journal with its number.
type HistoryRow struct {
	Number int `json:"number" doc:"what history show and undo take"`
	factory.Change
}

// changeKind describes entries of the journal.
var changeKind = rows.Kind[HistoryRow]{
	Name: "Change", Title: "changes in the journal",
	ID: func(c HistoryRow) string { return strconv.Itoa(c.Number) },
	Columns: []rows.Column[HistoryRow]{
		{Name: "NUMBER", Right: true, Cell: func(c HistoryRow) string { return strconv.Itoa(c.Number) }},
		{Name: "TIME", Cell: func(c HistoryRow) string { return seconds(c.Time) }},
		{Name: "COMMAND", Cell: func(c HistoryRow) string { return c.Command }},
		{Name: "OBJECT", Cell: func(c HistoryRow) string { return c.Object }},
		{Name: "BEFORE", Cell: func(c HistoryRow) string { return orDash(c.Before) }},
		{Name: "AFTER", Cell: func(c HistoryRow) string { return orDash(c.After) }},
		{Name: "RESULT", Cell: func(c HistoryRow) string { return orDash(c.Result) }},
		{Name: "CLUSTER", Wide: true, Cell: func(c HistoryRow) string { return orDash(c.Cluster) }},
		{Name: "UNDO", Wide: true, Cell: func(c HistoryRow) string { return orDash(c.Undo) }},
	},
}

// seconds leaves out the parts of a second.
func seconds(t string) string {
	if at, err := time.Parse(time.RFC3339, t); err == nil {
		return at.Format(time.RFC3339)
	}
	return t
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func history(f *factory.Factory) ([]HistoryRow, error) {
	changes, err := f.History()
	out := make([]HistoryRow, len(changes))
	for i := range changes {
		out[i] = HistoryRow{i + 1, changes[i]}
	}
	return out, err
}

// NewHistory returns the verb with those on single entries.
func NewHistory(f *factory.Factory) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "Show the changes made with kctl on this machine, newest last",
		Example: `  kctl history
  kctl history --limit 5 -o wide
  kctl history undo 12`,
		Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if limit < 0 {
				return exit.Usagef("--limit %d is below 0", limit)
			}
			changes, err := history(f)
			if err != nil {
				return err
			}
			if limit > 0 && len(changes) > limit {
				changes = changes[len(changes)-limit:]
			}
			return verb.List(f, changeKind, changes, nil)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "only the last so many (0: all)")
	cmd.AddCommand(newHistoryShow(f), newHistoryUndo(f))
	return cmd
}

// pick finds the entry of a number; all entries are returned too.
func pick(f *factory.Factory, arg string) (HistoryRow, []HistoryRow, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 {
		return HistoryRow{}, nil, exit.Usagef("%q is not the number of a change: kctl history shows them", arg)
	}
	all, err := history(f)
	if err != nil {
		return HistoryRow{}, nil, err
	}
	if n > len(all) {
		return HistoryRow{}, nil, exit.Usagef("there is no change %d: the journal has %d", n, len(all))
	}
	return all[n-1], all, nil
}

func completeNumbers(f *factory.Factory) verb.Completer {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all, _, err := journal.Read(f.JournalPath()) // lines that are no entries are not told while somebody types
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i, c := range slices.Backward(all) {
			out = append(out, fmt.Sprintf("%d\t%s %s", i+1, c.Command, c.Object))
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func newHistoryShow(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "show N", Short: "Show one change with what takes it back", Example: "  kctl history show 12 -o yaml",
		Args: verb.Args(1, 1, "one number"), ValidArgsFunction: completeNumbers(f),
		RunE: func(_ *cobra.Command, args []string) error {
			c, _, err := pick(f, args[0])
			if err != nil {
				return err
			}
			kind := changeKind
			kind.Columns = slices.Clone(kind.Columns)
			for i := range kind.Columns {
				kind.Columns[i].Wide = false // one entry is shown in full
			}
			return verb.One(f, kind, c, nil)
		},
	}
}

func newHistoryUndo(f *factory.Factory) *cobra.Command {
	var change factory.ChangeFlags
	cmd := &cobra.Command{
		Use:   "undo N",
		Short: "Take a change back: runs the command that undoes it, which prints its plan and asks",
		Long: `Take a change back. The journal holds the command that undoes it (kctl history show N); that command is run like any
other: it prints its plan and asks. It is refused when the state has changed since, when the cluster is another one, or
when the change was taken back already.`,
		Example: `  kctl history undo 12
  kctl history undo 12 --dry-run`,
		Args: verb.Args(1, 1, "one number"), ValidArgsFunction: completeNumbers(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, all, err := pick(f, args[0])
			if err != nil {
				return err
			}
			return undo(cmd.Context(), f, cmd.Root(), c, all, change)
		},
	}
	factory.AddChangeFlags(cmd.Flags(), &change)
	return cmd
}

// undoable refuses entries that cannot be taken back.
func undoable(c HistoryRow, all []HistoryRow) error {
	if c.Result != journal.Done {
		return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("change %d was not made: %s", c.Number, orDash(c.Result))}
	}
	for _, o := range all[c.Number:] {
		if o.Undoes == c.Key() && o.Result == journal.Done {
			return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("change %d was taken back already, by change %d", c.Number, o.Number), Hint: fmt.Sprintf("kctl history undo %d makes it again", o.Number)}
		}
	}
	if len(c.UndoArgs) == 0 {
		e := &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("change %d (%s %s) cannot be taken back by a command", c.Number, c.Command, c.Object)}
		if c.Undo != "" {
			e.Msg += ": " + c.Undo
		}
		return e
	}
	return nil
}

func undo(ctx context.Context, f *factory.Factory, root *cobra.Command, c HistoryRow, all []HistoryRow, change factory.ChangeFlags) error {
	if err := undoable(c, all); err != nil {
		return err
	}
	target, _, err := root.Find(c.UndoArgs)
	if err != nil || target == root {
		return exit.Usagef("change %d: this kctl has no command %q", c.Number, strings.Join(c.UndoArgs, " "))
	}
	if err := sameCluster(ctx, f, c); err != nil {
		return err
	}
	f.Say("taking back change %d (%s %s of %s)", c.Number, c.Command, c.Object, c.Time)
	f.Undoing = c.Key()
	args := slices.Clone(c.UndoArgs)
	for flag, on := range map[string]bool{"yes": change.Yes, "dry-run": change.DryRun} {
		switch {
		case on && target.Flags().Lookup(flag) != nil:
			args = append(args, "--"+flag)
		case on && flag == "dry-run":
			f.Say("dry run: would run %s", c.Undo)
			return nil
		}
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// sameCluster refuses to take back on one cluster what was done on another.
func sameCluster(ctx context.Context, f *factory.Factory, c HistoryRow) error {
	if c.Cluster == "" {
		return nil
	}
	client, err := f.Admin(ctx)
	if err != nil {
		return err
	}
	id, err := client.VerifyCluster(ctx)
	if err != nil {
		return err
	}
	if id != "" && id != c.Cluster {
		return &exit.Error{
			Code: exit.Failed, Msg: fmt.Sprintf("change %d was made on cluster %s, this is cluster %s; nothing was changed", c.Number, c.Cluster, id),
			Hint: "name that cluster with --context or -b",
		}
	}
	return nil
}
