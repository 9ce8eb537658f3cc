// Package contexts holds the verbs on named clusters of the configuration file.
package contexts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// New returns the noun with its verbs.
func New(f *factory.Factory) *cobra.Command {
	return verb.NewGroup("context", "Named clusters in the configuration file",
		newList(f), newUse(f), newAdd(f), newSet(f), newRename(f), newImport(f), newShow(f), newDelete(f))
}

// Row is one context as it is printed. Secrets are left out.
type Row struct {
	Name            string   `json:"name"`
	Current         bool     `json:"current"`
	BootstrapServer string   `json:"bootstrapServer"`
	ZooKeeper       string   `json:"zookeeper"`
	CommandConfig   string   `json:"commandConfig"`
	Properties      []string `json:"properties" doc:"values of secrets are ***"`
	ReadOnly        bool     `json:"readOnly"`
	ClusterID       string   `json:"clusterId" doc:"the cluster it remembers; empty before its first use"`
}

// Kind describes Row.
var Kind = rows.Kind[Row]{
	Name: "Context", Title: "contexts",
	ID: func(r Row) string { return r.Name },
	Columns: []rows.Column[Row]{
		{Name: "CURRENT", Cell: func(r Row) string { return mark(r.Current) }},
		{Name: "NAME", Cell: func(r Row) string { return r.Name }},
		{Name: "BOOTSTRAP-SERVER", Cell: func(r Row) string { return dash(r.BootstrapServer) }},
		{Name: "ZOOKEEPER", Cell: func(r Row) string { return dash(r.ZooKeeper) }},
		{Name: "READ-ONLY", Cell: func(r Row) string { return fmt.Sprint(r.ReadOnly) }},
		{Name: "CLUSTER-ID", Cell: func(r Row) string { return dash(r.ClusterID) }},
		{Name: "COMMAND-CONFIG", Wide: true, Cell: func(r Row) string { return dash(r.CommandConfig) }},
		{Name: "PROPERTIES", Wide: true, Cell: func(r Row) string { return dash(strings.Join(r.Properties, ",")) }},
	},
}

func mark(b bool) string {
	if b {
		return "*"
	}
	return ""
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func rowOf(c *factory.Context, current string) Row {
	r := Row{
		Name: c.Name, Current: c.Name == current, BootstrapServer: c.BootstrapServer, ZooKeeper: c.ZooKeeper,
		CommandConfig: c.CommandConfig, ReadOnly: c.ReadOnly, Properties: []string{}, ClusterID: c.ClusterID,
	}
	for _, p := range c.Properties {
		if k, _, _ := strings.Cut(p, "="); admin.SecretKey(k) {
			p = k + "=" + rows.Hidden
		}
		r.Properties = append(r.Properties, p)
	}
	return r
}

func newList(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List contexts", Example: "  kctl context list", Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			file, err := f.ReadFile()
			if err != nil {
				return err
			}
			var out []Row
			for i := range file.Contexts {
				out = append(out, rowOf(&file.Contexts[i], file.Current))
			}
			return verb.List(f, Kind, out, nil)
		},
	}
}

func completeNames(f *factory.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		file, err := f.ReadFile()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return file.SortedNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

func newUse(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Example: "  kctl context use prod",
		Args: verb.Args(1, 1, "one context name"), ValidArgsFunction: completeNames(f),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := f.ReadFile()
			if err != nil {
				return err
			}
			if _, err := file.Find(args[0]); err != nil {
				return err
			}
			file.Current = args[0]
			if err := f.WriteFile(file); err != nil {
				return err
			}
			f.Say("context %s is the current one", args[0])
			return nil
		},
	}
}

func newAdd(f *factory.Factory) *cobra.Command {
	var c factory.Context
	var expect string
	var use bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a context from -b, -z, --command-config and -X, or replace it",
		Example: `  kctl context add prod -b broker1:9092,broker2:9092 -z zk1:2181/kafka --use
  kctl context add audit -b broker1:9092 --read-only`,
		Args: verb.Args(1, 1, "one context name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Name = args[0]
			c.BootstrapServer, _ = cmd.Flags().GetString(factory.FlagBootstrap)
			c.ZooKeeper, _ = cmd.Flags().GetString(factory.FlagZooKeeper)
			c.CommandConfig, _ = cmd.Flags().GetString(factory.FlagCommandConfig)
			c.Properties, _ = cmd.Flags().GetStringArray(factory.FlagProperty)
			return add(f, c, expect, use)
		},
	}
	cmd.Flags().BoolVar(&c.ReadOnly, "read-only", false, "refuse changes in this context")
	cmd.Flags().StringVar(&c.ClusterID, "cluster-id", "", "the only cluster it may lead to (default: the one of its first use)")
	cmd.Flags().StringVar(&expect, "expect", "", expectUsage)
	cmd.Flags().BoolVar(&use, "use", false, "make it the current one")
	return cmd
}

func add(f *factory.Factory, c factory.Context, expect string, use bool) error {
	if err := factory.CheckContextName(c.Name); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	file, err := f.ReadFile()
	if err != nil {
		return err
	}
	if err := checkExpected(file, c.Name, expect); err != nil {
		return err
	}
	i := slices.IndexFunc(file.Contexts, func(o factory.Context) bool { return o.Name == c.Name })
	e := factory.Change{Command: "context add", Object: c.Name, After: summary(&c), Result: journal.Done}.WithUndo("context", "delete", c.Name, "--expect", markOf(c))
	if i >= 0 {
		e = replaced(e, &file.Contexts[i], markOf(c))
		file.Contexts[i] = c
	} else {
		file.Contexts = append(file.Contexts, c)
	}
	if use || len(file.Contexts) == 1 {
		file.Current = c.Name
	}
	if err := f.WriteFile(file); err != nil {
		return err
	}
	f.Record(e)
	f.Say("context %s is in %s", c.Name, f.ConfigPath())
	return nil
}

func newShow(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show one context, the current one by default", Example: "  kctl context show prod -o yaml",
		Args: verb.Args(0, 1, "one context name"), ValidArgsFunction: completeNames(f),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := f.ReadFile()
			if err != nil {
				return err
			}
			name := file.Current
			if len(args) == 1 {
				name = args[0]
			}
			if name == "" {
				return &exit.Error{Code: exit.Failed, Msg: "no context is current", Hint: "kctl context add NAME -b HOST:PORT --use"}
			}
			c, err := file.Find(name)
			if err != nil {
				return err
			}
			return verb.One(f, Kind, rowOf(c, file.Current), nil)
		},
	}
}

func newDelete(f *factory.Factory) *cobra.Command {
	var expect string
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Remove a context from the configuration", Example: "  kctl context delete old",
		Args: verb.Args(1, 1, "one context name"), ValidArgsFunction: completeNames(f),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := f.ReadFile()
			if err != nil {
				return err
			}
			old, err := file.Find(args[0])
			if err != nil {
				return err
			}
			if err := checkExpected(file, args[0], expect); err != nil {
				return err
			}
			e := replaced(factory.Change{Command: "context delete", Object: args[0], Result: journal.Done}, old, absent)
			file.Contexts = slices.DeleteFunc(file.Contexts, func(c factory.Context) bool { return c.Name == args[0] })
			if file.Current == args[0] {
				file.Current = ""
			}
			if err := f.WriteFile(file); err != nil {
				return err
			}
			f.Record(e)
			f.Say("context %s is removed", args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&expect, "expect", "", expectUsage)
	return cmd
}
