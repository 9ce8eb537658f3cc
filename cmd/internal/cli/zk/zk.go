// Package zk shows the ZooKeeper tree as it is stored.
package zk

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("zk", "The ZooKeeper tree as stored; needs -z", newLs(f), newGet(f), newTree(f), newStat(f), newWatch(f),
		newSet(f), newCreate(f), newDelete(f))
}

// pathArg is the optional PATH argument, / by default.
func pathArg(args []string) (string, error) {
	if len(args) == 0 {
		return "/", nil
	}
	return admin.ZnodePath(args[0])
}

// client demands ZooKeeper before anything is contacted.
func client(ctx context.Context, f *factory.Factory) (*admin.Client, error) {
	c, err := f.Admin(ctx)
	if err != nil {
		return nil, err
	}
	if !c.HasZooKeeper() {
		return nil, &exit.Error{Code: exit.Usage, Msg: "this needs ZooKeeper", Hint: "give its address with -z HOST:PORT/chroot or KCTL_ZOOKEEPER"}
	}
	return c, nil
}

func newLs(f *factory.Factory) *cobra.Command {
	var long bool
	cmd := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List the children of a znode",
		Example: `  kctl zk ls /brokers/topics -z zk1:2181/kafka
  kctl zk ls /brokers/ids -l -z zk1:2181/kafka`,
		Args: verb.Args(0, 1, "one path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(args)
			if err != nil {
				return err
			}
			return runLs(cmd.Context(), f, p, long)
		},
		ValidArgsFunction: complete(f),
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "with version, size and time of each child")
	return cmd
}

func runLs(ctx context.Context, f *factory.Factory, p string, long bool) error {
	c, err := client(ctx, f)
	if err != nil {
		return err
	}
	pr, err := f.Printer()
	if err != nil {
		return err
	}
	if pr.Format == output.Table && !long {
		z, err := c.Znode(ctx, p)
		if err != nil {
			return err
		}
		for _, ch := range z.Children {
			fmt.Fprintln(f.IO.Out, output.Clean(ch))
		}
		return nil
	}
	children, err := c.ZnodeChildren(ctx, p)
	if err != nil {
		return err
	}
	out := make([]rows.Znode, len(children))
	for i := range children {
		out[i] = row(&children[i])
	}
	return verb.List(f, rows.ZnodeKind, out, nil)
}

func row(z *admin.Znode) rows.Znode {
	r := rows.Znode{
		Path: z.Path, Version: z.Stat.Version, Cversion: z.Stat.Cversion, Aversion: z.Stat.Aversion,
		Czxid: z.Stat.Czxid, Mzxid: z.Stat.Mzxid, Pzxid: z.Stat.Pzxid, Ctime: *rows.TimeText(z.Ctime()), Mtime: *rows.TimeText(z.Mtime()),
		DataLength: z.Stat.DataLength, NumChildren: z.Stat.NumChildren,
	}
	if z.Stat.EphemeralOwner != 0 {
		r.EphemeralOwner = fmt.Sprintf("0x%x", z.Stat.EphemeralOwner)
	}
	switch {
	case z.Data == nil:
		r.Encoding = "null"
	case utf8.Valid(z.Data):
		r.Encoding, r.Data = "utf-8", string(z.Data)
	default:
		r.Encoding, r.Data = "base64", base64.StdEncoding.EncodeToString(z.Data)
	}
	return r
}

func newGet(f *factory.Factory) *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:   "get PATH",
		Short: "Print the data of a znode, byte for byte",
		Long: `Print the data of a znode as it is stored; a line end is added on a terminal only. JSON output has the stat as
well, and base64 where the data is not text.`,
		Example: `  kctl zk get /controller -z zk1:2181/kafka
  kctl zk get /brokers/topics/orders/partitions/0/state --stat -z zk1:2181/kafka`,
		Args: verb.Args(1, 1, "one path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(args)
			if err != nil {
				return err
			}
			return runGet(cmd.Context(), f, p, stat)
		},
		ValidArgsFunction: complete(f),
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "print the stat to stderr too")
	return cmd
}

func runGet(ctx context.Context, f *factory.Factory, p string, stat bool) error {
	c, err := client(ctx, f)
	if err != nil {
		return err
	}
	z, err := c.Znode(ctx, p)
	if err != nil {
		return err
	}
	pr, err := f.Printer()
	if err != nil {
		return err
	}
	if pr.Format.Machine() || pr.Format == output.Name {
		return verb.One(f, rows.ZnodeKind, row(z), nil)
	}
	if _, err := f.IO.Out.Write(z.Data); err != nil {
		return err
	}
	if f.IO.OutTTY {
		fmt.Fprintln(f.IO.Out)
	}
	if stat {
		talk := &output.Printer{Out: f.IO.Err, Format: output.Wide}
		return output.One(talk, rows.ZnodeKind, row(z))
	}
	return nil
}

func newStat(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "stat PATH",
		Short:   "Show version, times and owner of a znode",
		Example: "  kctl zk stat /controller -z zk1:2181/kafka",
		Args:    verb.Args(1, 1, "one path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(args)
			if err != nil {
				return err
			}
			return runStat(cmd.Context(), f, p)
		},
		ValidArgsFunction: complete(f),
	}
}

func runStat(ctx context.Context, f *factory.Factory, p string) error {
	c, err := client(ctx, f)
	if err != nil {
		return err
	}
	z, err := c.Znode(ctx, p)
	if err != nil {
		return err
	}
	pr, err := f.Printer()
	if err != nil {
		return err
	}
	if pr.Format == output.Table {
		pr.Format = output.Wide
	}
	return output.One(pr, rows.ZnodeKind, row(z))
}

func newTree(f *factory.Factory) *cobra.Command {
	var depth int
	var data bool
	cmd := &cobra.Command{
		Use:   "tree [PATH]",
		Short: "Print a znode and everything below it",
		Example: `  kctl zk tree /brokers -z zk1:2181/kafka
  kctl zk tree --depth 2 --data -z zk1:2181/kafka`,
		Args: verb.Args(0, 1, "one path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := pathArg(args)
			if err != nil {
				return err
			}
			return runTree(cmd.Context(), f, p, depth, data)
		},
		ValidArgsFunction: complete(f),
	}
	cmd.Flags().IntVar(&depth, "depth", -1, "levels below the start (-1: all)")
	cmd.Flags().BoolVar(&data, "data", false, "print the data behind each name")
	return cmd
}

func runTree(ctx context.Context, f *factory.Factory, start string, depth int, data bool) error {
	c, err := client(ctx, f)
	if err != nil {
		return err
	}
	pr, err := f.Printer()
	if err != nil {
		return err
	}
	var list []rows.Znode
	err = c.WalkZnodes(ctx, start, depth, func(z *admin.Znode, level int) error {
		if pr.Format != output.Table && pr.Format != output.Wide {
			list = append(list, row(z))
			return nil
		}
		name := z.Path
		if level > 0 {
			name = strings.Repeat("  ", level) + output.Clean(path.Base(z.Path))
		}
		if data && z.Data != nil {
			name += " = " + printable(z.Data)
		}
		_, err := fmt.Fprintln(f.IO.Out, name)
		return err
	})
	if err != nil || pr.Format == output.Table || pr.Format == output.Wide {
		return err
	}
	return output.List(pr, rows.ZnodeKind, list, nil)
}

func printable(b []byte) string {
	if utf8.Valid(b) && !strings.ContainsAny(string(b), "\n\r\x1b") {
		return string(b)
	}
	return fmt.Sprintf("%q", b)
}

// complete offers the children of the path typed so far.
func complete(f *factory.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		c, err := client(cmd.Context(), f)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		dir := "/"
		if i := strings.LastIndexByte(typed, '/'); i > 0 {
			dir = typed[:i]
		}
		z, err := c.Znode(cmd.Context(), dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out := make([]string, len(z.Children))
		for i, ch := range z.Children {
			out[i] = path.Join(dir, ch)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
