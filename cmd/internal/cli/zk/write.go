package zk

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// dataMax is ZooKeeper's limit of a request (jute.maxbuffer), in bytes.
const dataMax = 1 << 20

// ChangeRow is a change of a znode that was planned or made.
type ChangeRow struct {
	Path     string  `json:"path"`
	Action   string  `json:"action" doc:"set, create or delete"`
	Done     bool    `json:"done" doc:"false: it was planned only"`
	Version  int32   `json:"version" doc:"version that the change demands, -1 for create"`
	Now      int32   `json:"now" doc:"version after the change, -1: none"`
	Fenced   bool    `json:"fenced" doc:"made in one multi with the check of the controller epoch"`
	Encoding string  `json:"encoding" doc:"of before and after: utf-8 or base64"`
	Before   *string `json:"before" doc:"null: no node, or null data"`
	After    *string `json:"after"`
}

// ChangeKind describes ChangeRow.
var ChangeKind = rows.Kind[ChangeRow]{
	Name: "ZnodeChange", Title: "changes", ID: func(r ChangeRow) string { return r.Path },
	Columns: []rows.Column[ChangeRow]{
		{Name: "PATH", Cell: func(r ChangeRow) string { return r.Path }},
		{Name: "ACTION", Cell: func(r ChangeRow) string { return r.Action }},
		{Name: "DONE", Cell: func(r ChangeRow) string { return map[bool]string{true: "yes", false: "no"}[r.Done] }},
		{Name: "VERSION", Right: true, Cell: func(r ChangeRow) string { return strconv.Itoa(int(r.Now)) }},
		{Name: "FENCED", Cell: func(r ChangeRow) string { return map[bool]string{true: "yes", false: "no"}[r.Fenced] }},
		{Name: "BEFORE", Cell: func(r ChangeRow) string { return orNull(r.Before) }},
		{Name: "AFTER", Cell: func(r ChangeRow) string { return orNull(r.After) }},
	},
}

func orNull(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

type writeOptions struct {
	f          *factory.Factory
	action     admin.ZnodeAction
	file       string
	base64     string
	null       bool
	ifVersion  int32
	breakGlass bool
	change     factory.ChangeFlags
}

const rules = `
The write is conditional on the version that was read (or --if-version), and below /brokers/topics on the controller's
epoch as well, in one multi. Znodes that brokers and controllers own are refused without --break-glass: for nearly all
of them there is a command that does it with the checks and notifications that belong to it. Bytes are stored as given.`

func newSet(f *factory.Factory) *cobra.Command {
	o := &writeOptions{f: f, action: admin.SetZnode}
	cmd := o.command("set PATH [DATA]", "Replace the data of a znode", "Replace the data of a znode with DATA, --file or --base64."+rules,
		`  kctl zk set /app/mode maintenance -z zk1:2181
  kctl zk set /app/blob --file blob.bin --if-version 7 -z zk1:2181
  kctl zk get /app/mode -z zk1:2181 | kctl zk set /app/copy --file - -z zk1:2181 --dry-run`, 2)
	o.dataFlags(cmd)
	o.versionFlag(cmd)
	return cmd
}

func newCreate(f *factory.Factory) *cobra.Command {
	o := &writeOptions{f: f, action: admin.CreateZnode}
	cmd := o.command("create PATH [DATA]", "Create a persistent znode", "Create a persistent znode with DATA, --file or --base64, or with null data. Its parent must exist."+rules,
		`  kctl zk create /app -z zk1:2181
  kctl zk create /admin/preferred_replica_election '{"version":1,"partitions":[{"topic":"orders","partition":0}]}' -z zk1:2181/kafka`, 2)
	o.dataFlags(cmd)
	return cmd
}

func newDelete(f *factory.Factory) *cobra.Command {
	o := &writeOptions{f: f, action: admin.DeleteZnode}
	cmd := o.command("delete PATH", "Delete a znode that has no children", "Delete a znode that has no children."+rules,
		`  kctl zk delete /app/mode -z zk1:2181
  kctl zk delete /app/mode --if-version 3 --yes -z zk1:2181`, 1)
	o.versionFlag(cmd)
	return cmd
}

func (o *writeOptions) command(use, short, long, example string, most int) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example, Args: verb.Args(1, most, "one path and at most one data"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := admin.ZnodePath(args[0])
			if err != nil {
				return err
			}
			if err := o.check(cmd, p); err != nil {
				return err
			}
			data, err := o.data(cmd, args[1:])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), p, data)
		},
		ValidArgsFunction: complete(o.f),
	}
	cmd.Flags().BoolVar(&o.breakGlass, "break-glass", false, "write a znode that brokers or controllers own")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	o.ifVersion = admin.AnyZnodeVersion
	return cmd
}

func (o *writeOptions) dataFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.file, "file", "", "read the data from a file, - for standard input")
	cmd.Flags().StringVar(&o.base64, "base64", "", "the data in base64")
	cmd.Flags().BoolVar(&o.null, "null", false, "null data")
}

func (o *writeOptions) versionFlag(cmd *cobra.Command) {
	cmd.Flags().Int32Var(&o.ifVersion, "if-version", admin.AnyZnodeVersion, "only if the znode has this version")
}

// check refuses what needs no cluster to be refused.
func (o *writeOptions) check(cmd *cobra.Command, p string) error {
	if f := cmd.Flags().Lookup("if-version"); f != nil && f.Changed && o.ifVersion < 0 {
		return exit.Usagef("--if-version %d is below zero", o.ifVersion)
	}
	if why := plan.ZnodeDanger(p); why != "" && !o.breakGlass {
		return &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("znode %s is not written by hand: %s", p, why), Hint: "--break-glass writes it all the same"}
	}
	return o.f.Writable()
}

// data reads the bytes to store from the one place that was given.
func (o *writeOptions) data(cmd *cobra.Command, args []string) ([]byte, error) {
	if o.action == admin.DeleteZnode {
		return nil, nil
	}
	fl := cmd.Flags()
	ways := len(args)
	for _, name := range []string{"file", "base64", "null"} {
		if fl.Changed(name) {
			ways++
		}
	}
	switch {
	case ways > 1:
		return nil, exit.Usagef("give the data in one way: DATA, --file, --base64 or --null")
	case ways == 0 && o.action == admin.SetZnode:
		return nil, exit.Usagef("%s needs DATA, --file, --base64 or --null", cmd.CommandPath())
	case len(args) == 1:
		return []byte(args[0]), nil
	case fl.Changed("base64"):
		b, err := base64.StdEncoding.DecodeString(o.base64)
		if err != nil {
			return nil, exit.Usagef("--base64: %v", err)
		}
		return b, nil
	case fl.Changed("file"):
		return o.readFile()
	}
	return nil, nil
}

func (o *writeOptions) readFile() ([]byte, error) {
	in := o.f.IO.In
	if o.file != "-" {
		file, err := os.Open(o.file)
		if err != nil {
			return nil, exit.Usagef("--file: %v", err)
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, dataMax+1))
	if err != nil {
		return nil, exit.Usagef("--file: %v", err)
	}
	if len(b) > dataMax {
		return nil, exit.Usagef("--file: more than %d bytes, which ZooKeeper refuses", dataMax)
	}
	return b, nil
}

func (o *writeOptions) run(ctx context.Context, p string, data []byte) error {
	c, err := client(ctx, o.f)
	if err != nil {
		return err
	}
	w, err := c.PlanZnodeWrite(ctx, o.action, p, data, o.ifVersion)
	if err != nil {
		return err
	}
	row := changeRow(w)
	what := fmt.Sprintf("%s %s", o.action, p)
	return verb.Change[ChangeRow]{
		Flags: o.change, Kind: ChangeKind, Plan: []ChangeRow{row}, Needed: 1, Single: true, What: what, Question: what + "?",
		Do: func() (out verb.Outcome[ChangeRow], err error) {
			after, err := c.WriteZnode(ctx, w)
			if err != nil {
				out.Entries = []factory.Change{entry(w, row, err.Error())}
				return out, err
			}
			row.Done, row.Now = true, -1
			if after != nil {
				row.Now = after.Stat.Version
			}
			out.Rows, out.Entries = []ChangeRow{row}, []factory.Change{o.undo(w, row, entry(w, row, journal.Done))}
			return out, nil
		},
	}.Run(o.f)
}

// CreateRow is the planned creation of a znode.
func CreateRow(path string, data []byte) ChangeRow {
	return changeRow(&admin.ZnodeWrite{Path: path, Action: admin.CreateZnode, Version: -1, Data: data})
}

func changeRow(w *admin.ZnodeWrite) ChangeRow {
	r := ChangeRow{Path: w.Path, Action: string(w.Action), Version: w.Version, Now: -1, Fenced: w.Fenced, Encoding: "utf-8"}
	var before []byte
	if w.Before != nil {
		before, r.Now = w.Before.Data, w.Before.Stat.Version
	}
	valid := utf8.Valid(before) && utf8.Valid(w.Data)
	if !valid {
		r.Encoding = "base64"
	}
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		if !valid {
			s = base64.StdEncoding.EncodeToString(b)
		}
		return &s
	}
	r.Before, r.After = text(before), text(w.Data)
	return r
}

// secret reports whether a znode holds credentials, which the journal must not have.
func secret(p string) bool {
	return strings.Contains(p+"/", "/config/users/") || strings.Contains(p+"/", "/delegation_token/")
}

func entry(w *admin.ZnodeWrite, r ChangeRow, result string) factory.Change {
	if secret(r.Path) {
		return factory.Change{Cluster: w.ClusterID, Command: "zk " + r.Action, Object: r.Path, Before: "(not kept)", After: "(not kept)", Result: result}
	}
	return factory.Change{Cluster: w.ClusterID, Command: "zk " + r.Action, Object: r.Path, Before: orNull(r.Before), After: orNull(r.After), Result: result}
}

// undo adds the command that takes a change back. It demands the version that the change left, so that nothing that
// came later is lost.
func (o *writeOptions) undo(w *admin.ZnodeWrite, r ChangeRow, e factory.Change) factory.Change {
	if secret(w.Path) && w.Action != admin.CreateZnode {
		e.Undo = "the znode held credentials, which are not kept here"
		return e
	}
	args := []string{"zk", "set", w.Path}
	switch w.Action {
	case admin.CreateZnode:
		args[1] = "delete"
	case admin.DeleteZnode:
		if w.Before.Stat.EphemeralOwner != 0 {
			e.Undo = "it belonged to a session: its owner makes it again"
			return e
		}
		args[1] = "create"
	}
	if w.Action != admin.CreateZnode {
		if b := w.Before.Data; b == nil {
			args = append(args, "--null")
		} else {
			args = append(args, "--base64", base64.StdEncoding.EncodeToString(b))
		}
	}
	if w.Action != admin.DeleteZnode {
		args = append(args, "--if-version", strconv.Itoa(int(r.Now)))
	}
	if o.breakGlass {
		args = append(args, "--break-glass")
	}
	return e.WithUndo(args...)
}
