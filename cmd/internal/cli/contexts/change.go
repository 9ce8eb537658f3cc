package contexts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// summary tells a context without its settings, which may be secrets.
func summary(c *factory.Context) string {
	parts := []string{}
	for _, p := range [][2]string{{"bootstrapServer", c.BootstrapServer}, {"zookeeper", c.ZooKeeper}, {"commandConfig", c.CommandConfig}, {"clusterId", c.ClusterID}} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	if c.ReadOnly {
		parts = append(parts, "readOnly=true")
	}
	return strings.Join(parts, " ")
}

// replaced adds to an entry what was there before, and the command that brings it back while the context is as expected, unless
// that would show a secret.
func replaced(e factory.Change, old *factory.Context, expect string) factory.Change {
	e.Before = summary(old)
	args := []string{"context", "add", old.Name, "--expect", expect}
	for _, p := range [][2]string{
		{"--bootstrap-server", old.BootstrapServer}, {"--zookeeper", old.ZooKeeper}, {"--command-config", old.CommandConfig}, {"--cluster-id", old.ClusterID},
	} {
		if p[1] != "" {
			args = append(args, p[0], p[1])
		}
	}
	if old.ReadOnly {
		args = append(args, "--read-only")
	}
	for _, p := range old.Properties {
		if k, _, _ := strings.Cut(p, "="); admin.SecretKey(k) {
			e.UndoArgs, e.Undo = nil, "by hand: the context held the secret "+k
			return e
		}
		args = append(args, "-X", p)
	}
	return e.WithUndo(args...)
}

func newSet(f *factory.Factory) *cobra.Command {
	var readOnly bool
	var clusterID string
	var unset []string
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change parts of a context: -b, -z, --command-config, -X, --read-only, --cluster-id",
		Long: `Change the parts of a context that flags name; an empty -b or -z takes the address away. -X sets single client settings,
--unset takes them out.

A context remembers the id of the cluster that it led to first; another one is refused from then on. --cluster-id ID
accepts the cluster with that id, --cluster-id none forgets it, so that the next use remembers it anew.`,
		Example: `  kctl context set prod -b broker3:9092,broker4:9092
  kctl context set prod --read-only
  kctl context set prod --read-only=false -X client.id=ops
  kctl context set prod --cluster-id none`,
		Args: verb.Args(1, 1, "one context name"), ValidArgsFunction: completeNames(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(f, args[0], "context set", func(c *factory.Context) error {
				fl := cmd.Flags()
				for flag, to := range map[string]*string{factory.FlagBootstrap: &c.BootstrapServer, factory.FlagZooKeeper: &c.ZooKeeper, factory.FlagCommandConfig: &c.CommandConfig} {
					if fl.Changed(flag) {
						*to, _ = fl.GetString(flag)
					}
				}
				if fl.Changed("read-only") {
					c.ReadOnly = readOnly
				}
				if fl.Changed("cluster-id") {
					if c.ClusterID = clusterID; clusterID == "none" {
						c.ClusterID = ""
					}
				}
				given, err := fl.GetStringArray(factory.FlagProperty)
				if err != nil {
					return err
				}
				if !fl.Changed("cluster-id") && !fl.Changed("read-only") && len(given)+len(unset) == 0 &&
					!fl.Changed(factory.FlagBootstrap) && !fl.Changed(factory.FlagZooKeeper) && !fl.Changed(factory.FlagCommandConfig) {
					return exit.Usagef("nothing to change: -b, -z, --command-config, -X, --unset, --read-only or --cluster-id")
				}
				c.Properties = merge(c.Properties, given, unset)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "refuse changes in this context")
	cmd.Flags().StringVar(&clusterID, "cluster-id", "", "the only cluster it may lead to; none forgets the remembered one")
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "client setting to take out, repeatable")
	return cmd
}

// merge sets and takes out single settings; the order of the others stays.
func merge(have, set, unset []string) []string {
	key := func(p string) string { k, _, _ := strings.Cut(p, "="); return strings.TrimSpace(k) }
	out := slices.DeleteFunc(slices.Clone(have), func(p string) bool { return slices.Contains(unset, key(p)) })
	for _, s := range set {
		if i := slices.IndexFunc(out, func(p string) bool { return key(p) == key(s) }); i >= 0 {
			out[i] = s
		} else {
			out = append(out, s)
		}
	}
	return out
}

// change edits one context, checks it, writes the file and the journal.
func change(f *factory.Factory, name, command string, edit func(*factory.Context) error) error {
	file, err := f.ReadFile()
	if err != nil {
		return err
	}
	c, err := file.Find(name)
	if err != nil {
		return err
	}
	old := *c
	if err := edit(c); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if err := f.WriteFile(file); err != nil {
		return err
	}
	e := replaced(factory.Change{Command: command, Object: name, Result: journal.Done}, &old, markOf(*c))
	e.After = summary(c)
	f.Record(e)
	f.Say("context %s is changed", name)
	return nil
}

func newRename(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "rename OLD NEW", Short: "Give a context another name", Example: "  kctl context rename prod prod-eu",
		Args: verb.Args(2, 2, "two context names"), ValidArgsFunction: completeNames(f),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := factory.CheckContextName(args[1]); err != nil {
				return err
			}
			file, err := f.ReadFile()
			if err != nil {
				return err
			}
			c, err := file.Find(args[0])
			if err != nil {
				return err
			}
			if _, err := file.Find(args[1]); err == nil {
				return exit.Usagef("context %q exists already", args[1])
			}
			if c.Name = args[1]; file.Current == args[0] {
				file.Current = args[1]
			}
			if err := f.WriteFile(file); err != nil {
				return err
			}
			f.Record(factory.Change{Command: "context rename", Object: args[1], Before: args[0], After: args[1], Result: journal.Done}.
				WithUndo("context", "rename", args[1], args[0]))
			f.Say("context %s is %s now", args[0], args[1])
			return nil
		},
	}
}

func newImport(f *factory.Factory) *cobra.Command {
	var readOnly, use bool
	cmd := &cobra.Command{
		Use:   "import NAME FILE",
		Short: "Add a context from a Java client's .properties file, or replace it",
		Long: `Add a context from a Java client's .properties file: bootstrap.servers and zookeeper.connect become its addresses
(-b and -z come before them), everything else stays in the file, which the context names. So secrets are not copied.`,
		Example: `  kctl context import prod /etc/kafka/client.properties --use
  kctl context import prod client.properties -b broker1:9093 --read-only`,
		Args: verb.Args(2, 2, "a context name and a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[1])
			if err != nil {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return exit.Usagef("%v", err)
			}
			defer file.Close()
			props, err := admin.ParseProperties(file)
			if err == nil {
				err = props.Check()
			}
			if err != nil {
				return &exit.Error{Code: exit.Usage, Msg: args[1] + ": " + err.Error(), Hint: exit.HintOf(err)}
			}
			c := factory.Context{Name: args[0], CommandConfig: path, ReadOnly: readOnly, BootstrapServer: props["bootstrap.servers"], ZooKeeper: props["zookeeper.connect"]}
			for flag, to := range map[string]*string{factory.FlagBootstrap: &c.BootstrapServer, factory.FlagZooKeeper: &c.ZooKeeper} {
				if cmd.Flags().Changed(flag) {
					*to, _ = cmd.Flags().GetString(flag)
				}
			}
			return add(f, c, "", use)
		},
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "refuse changes in this context")
	cmd.Flags().BoolVar(&use, "use", false, "make it the current one")
	return cmd
}
