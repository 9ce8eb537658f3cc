package leftovers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
	"kctl/cmd/internal/cli/zk"
)

type cleanOptions struct {
	f      *factory.Factory
	kinds  []string
	older  time.Duration
	change factory.ChangeFlags
}

func newClean(f *factory.Factory) *cobra.Command {
	o := &cleanOptions{f: f}
	cmd := &cobra.Command{
		Use:   "clean [KIND...]",
		Short: "Take away what is left behind, after showing it",
		Long: `Show what is left behind, ask, and take it away. A znode is deleted only at the version that was shown: what was written
meanwhile stays. Throttles are removed by the brokers' own request. Data of deleted znodes goes to a backup file beside the journal,
and the journal names the command that brings each back.

` + kindsText,
		Example: `  kctl leftovers clean --dry-run
  kctl leftovers clean throttle --yes`,
		Args: func(_ *cobra.Command, args []string) error { return knownKinds(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kinds = args
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runClean(cmd.Context(), o)
		},
		ValidArgsFunction: verb.Fixed(check.LeftoverKinds()...),
	}
	addOlder(cmd, &o.older)
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func runClean(ctx context.Context, o *cleanOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	items, problems, err := c.Leftovers(ctx, o.older, o.f.Now())
	if err != nil {
		return err
	}
	items = ofKinds(items, o.kinds)
	var todo []check.Leftover
	shown := make([]rows.Leftover, len(items))
	for i, l := range items {
		shown[i] = rows.OfLeftover(l)
		if l.Keep == "" {
			todo = append(todo, l)
		}
	}
	if o.change.DryRun || len(todo) == 0 {
		o.f.Say("%d of %d leftovers would be removed", len(todo), len(items))
		return verb.List(o.f, rows.LeftoverKind, shown, problems)
	}
	if err := o.printPlan(shown); err != nil {
		return err
	}
	var results []admin.LeftoverResult
	err = o.f.Commit(o.change, fmt.Sprintf("remove %d leftover(s)?", len(todo)), func() ([]factory.Change, error) {
		backup, err := o.backup(todo)
		if err != nil {
			return nil, err
		}
		results = c.CleanLeftovers(ctx, todo)
		return changes(results, backup, c.ClusterID()), nil
	})
	if err != nil {
		return err
	}
	return o.report(results)
}

func (o *cleanOptions) printPlan(shown []rows.Leftover) error {
	if o.f.Machine() {
		return nil
	}
	o.f.Say("will remove:")
	p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	return output.List(p, rows.LeftoverKind, shown, nil)
}

// saved is a znode in a backup file. Data is null for a node without data.
type saved struct {
	Path string `json:"path"`
	Data []byte `json:"data"`
}

// backup writes the znodes that will be deleted to a new file and returns its path; empty when there are none.
func (o *cleanOptions) backup(items []check.Leftover) (string, error) {
	var nodes []saved
	for _, l := range items {
		if l.Node != nil {
			nodes = append(nodes, saved{l.Node.Path, l.Node.Data})
		}
	}
	if len(nodes) == 0 {
		return "", nil
	}
	data, err := json.MarshalIndent(nodes, "", "  ")
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(o.f.JournalPath())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", exit.Usagef("nothing was changed: make the backup: %v", err)
	}
	file, err := os.CreateTemp(dir, "leftovers-"+o.f.Now().UTC().Format("20060102T150405")+"-*.json")
	if err != nil {
		return "", exit.Usagef("nothing was changed: make the backup: %v", err)
	}
	if _, err := file.Write(append(data, '\n')); err != nil {
		_ = file.Close() // the write's error is the one to tell
		return "", exit.Usagef("nothing was changed: make the backup: %v", err)
	}
	return file.Name(), file.Close()
}

func changes(results []admin.LeftoverResult, backup, clusterID string) []factory.Change {
	var out []factory.Change
	for _, r := range results {
		ch := factory.Change{Cluster: clusterID, Command: "leftovers clean", Object: r.Object, Before: r.Evidence, After: "removed", Result: journal.Done}
		if r.Err != nil {
			ch.Result, ch.After = r.Err.Error(), ""
		}
		switch {
		case r.Err != nil:
		case r.Node != nil:
			ch = ch.WithUndo("leftovers", "restore", backup, r.Node.Path)
		case r.Throttle.Topic != "":
			ch = ch.WithUndo("configs", "set", "topic/"+r.Throttle.Topic, r.Throttle.Name+"="+r.Throttle.Value)
		default:
			ch = ch.WithUndo("configs", "set", fmt.Sprintf("broker/%d", r.Throttle.Broker), r.Throttle.Name+"="+r.Throttle.Value)
		}
		out = append(out, ch)
	}
	return out
}

func (o *cleanOptions) report(results []admin.LeftoverResult) error {
	out := make([]rows.Leftover, len(results))
	var problems []model.Problem
	for i, r := range results {
		out[i] = rows.OfLeftover(r.Leftover)
		out[i].Removed = r.Removed
		if r.Err != nil {
			out[i].Error = r.Err.Error()
			problems = append(problems, model.Problem{Object: r.Object, Message: r.Err.Error()})
		}
	}
	err := verb.List(o.f, rows.LeftoverKind, out, problems)
	if len(problems) == len(out) {
		return verb.NothingDone("nothing was removed: ", problems, "")
	}
	return err
}

type restoreOptions struct {
	f      *factory.Factory
	change factory.ChangeFlags
}

func newRestore(f *factory.Factory) *cobra.Command {
	o := &restoreOptions{f: f}
	cmd := &cobra.Command{
		Use:   "restore FILE [PATH...]",
		Short: "Bring back znodes from a backup that clean made",
		Long: `Create again the znodes (all, or those named) that leftovers clean deleted, with the data they had. One that exists is left as
it is and reported.`,
		Example: `  kctl leftovers restore ~/.local/state/kctl/leftovers-20251129T210000-1.json --yes`,
		Args:    verb.Args(1, -1, "a backup file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runRestore(cmd.Context(), o, args[0], args[1:])
		},
	}
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

// readBackup reads the nodes with the given paths, all when there are none.
func readBackup(path string, want []string) ([]saved, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("read the backup: %v", err)
	}
	var nodes []saved
	if err := json.Unmarshal(data, &nodes); err != nil {
		return nil, exit.Usagef("backup %s: %v", path, err)
	}
	if len(want) == 0 {
		return nodes, nil
	}
	by := map[string]saved{}
	for _, n := range nodes {
		by[n.Path] = n
	}
	var out []saved
	for _, p := range want {
		n, ok := by[p]
		if !ok {
			return nil, exit.Usagef("backup %s has no znode %s", path, p)
		}
		out = append(out, n)
	}
	return out, nil
}

func runRestore(ctx context.Context, o *restoreOptions, file string, want []string) error {
	nodes, err := readBackup(file, want)
	if err != nil {
		return err
	}
	planned := make([]zk.ChangeRow, len(nodes))
	for i, n := range nodes {
		if _, err := admin.ZnodePath(n.Path); err != nil {
			return err
		}
		planned[i] = zk.CreateRow(n.Path, n.Data)
	}
	return verb.Change[zk.ChangeRow]{
		Flags: o.change, Kind: zk.ChangeKind, Plan: planned, Needed: len(nodes),
		Question: fmt.Sprintf("create %d znode(s)?", len(nodes)),
		ShowPlan: func() error {
			for _, n := range nodes {
				o.f.Say("will create %s (%d bytes)", n.Path, len(n.Data))
			}
			return nil
		},
		Do: func() (verb.Outcome[zk.ChangeRow], error) { return o.create(ctx, nodes, planned) },
	}.Run(o.f)
}

// create makes the znodes again. The rows are those of the plan, with what was done.
func (o *restoreOptions) create(ctx context.Context, nodes []saved, planned []zk.ChangeRow) (out verb.Outcome[zk.ChangeRow], err error) {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return out, err
	}
	id, _ := c.VerifyCluster(ctx) // the journal does without where nobody tells it
	for i, n := range nodes {
		ch := factory.Change{Cluster: id, Command: "leftovers restore", Object: n.Path, After: "created", Result: journal.Done, Undo: "kctl leftovers clean --yes"}
		if err := c.RestoreNode(ctx, n.Path, n.Data); err != nil {
			ch.Result = err.Error()
			out.Errs = append(out.Errs, err)
		} else {
			planned[i].Done, planned[i].Now = true, 0
		}
		out.Entries = append(out.Entries, ch)
	}
	out.Rows = planned
	return out, nil
}
