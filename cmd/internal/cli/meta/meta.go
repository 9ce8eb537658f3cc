// Package meta holds the verbs on kctl itself: version, docs, schema, history.
package meta

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/contexts"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/records"
	"kctl/cmd/internal/cli/verb"
	"kctl/cmd/internal/cli/zk"
	"kctl/cmd/internal/version"
)

// NewVersion returns the verb.
func NewVersion(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  kctl version -o json", Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := f.Printer()
			if err != nil {
				return err
			}
			v := version.Get()
			if p.Format.Machine() {
				return output.Object(p, "Version", v)
			}
			line := "kctl " + v.Version
			if v.Commit != "" {
				line += " (" + v.Commit[:min(12, len(v.Commit))] + ", " + v.Date + ")"
			}
			_, err = fmt.Fprintf(f.IO.Out, "%s %s %s/%s\n", line, v.Go, runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// NewDocs returns the verb that writes the reference from the command tree.
func NewDocs(f *factory.Factory, root *cobra.Command) *cobra.Command {
	generate := func(use, short string, gen func(dir string) error) *cobra.Command {
		return &cobra.Command{
			Use: use + " DIR", Short: short, Example: "  kctl docs " + use + " ./out", Args: verb.Args(1, 1, "one folder"),
			RunE: func(_ *cobra.Command, args []string) error {
				if err := os.MkdirAll(args[0], 0o755); err != nil {
					return err
				}
				root.DisableAutoGenTag = true
				if err := gen(args[0]); err != nil {
					return err
				}
				f.Say("wrote %s", args[0])
				return nil
			},
		}
	}
	return verb.NewGroup("docs", "Write the reference of all commands",
		generate("man", "Write man pages", func(dir string) error {
			return doc.GenManTree(root, &doc.GenManHeader{Title: "KCTL", Section: "1", Source: "kctl", Manual: "kctl"}, dir)
		}),
		generate("markdown", "Write Markdown pages", func(dir string) error { return doc.GenMarkdownTree(root, dir) }),
	)
}

// EachKind calls add for every kind of document that kctl prints as JSON: its name, an empty row, and whether there is
// a list of it. A kind that is added twice is as the later call says.
func EachKind(add func(name string, row any, list bool)) {
	add("Cluster", rows.ClusterDetail{}, false)
	add("Controller", rows.Controller{}, false)
	add("Health", rows.Health{}, false)
	add("Doctor", rows.Doctor{}, false)
	add("Leftover", rows.Leftover{}, true)
	add("Scenario", rows.Scenario{}, true)
	add("Check", rows.CheckInfo{}, true)
	add("Difference", rows.Difference{}, true)
	add("Broker", rows.Broker{}, true)
	add("Topic", rows.Topic{}, true)
	add("TopicDetail", rows.TopicDetail{}, true)
	add("Partition", rows.Partition{}, true)
	add("LeaderAndISR", rows.LeaderAndISR{}, true)
	add("LeaderAndISRChange", rows.LeaderAndISRChange{}, true)
	add("LeaderAndISREvent", rows.LeaderAndISREvent{}, false)
	add("ZnodeEvent", rows.ZnodeEvent{}, false)
	add("ReplicaLag", rows.ReplicaRate{}, true) // the pace is there with --watch only
	add("Transition", rows.Transition{}, true)
	add("Group", rows.Group{}, true)
	add("GroupDetail", rows.GroupDetail{}, true)
	add("GroupMember", rows.GroupMember{}, true)
	add("GroupLag", rows.GroupLag{}, true)
	add("GroupLagTotal", rows.GroupLagTotal{}, true)
	add("OffsetReset", rows.OffsetReset{}, true)
	add("Transaction", rows.Transaction{}, true)
	add("OpenTransaction", rows.OpenTransaction{}, true)
	add("Election", rows.Election{}, true)
	add("ReassignmentMove", rows.ReassignmentMove{}, true)
	add("ReassignmentStep", rows.ReassignmentStep{}, true)
	add("Reassignment", rows.Reassignment{}, true)
	add("Candidate", rows.Candidate{}, true)
	addLogDirs(add)
	add("Znode", rows.Znode{}, true)
	add("ZnodeChange", zk.ChangeRow{}, false)
	add("TopicChange", rows.TopicChange{}, true)
	add("ACLChange", rows.ACLChange{}, true)
	add("ACL", rows.ACL{}, true)
	add("UserChange", rows.UserChange{}, true)
	add("User", rows.User{}, true)
	add("QuotaChange", rows.QuotaChange{}, true)
	add("Quota", rows.Quota{}, true)
	add("ConfigChange", rows.ConfigChange{}, true)
	add("ConfigEntry", rows.ConfigEntry{}, true)
	add("Context", contexts.Row{}, true)
	add("Change", HistoryRow{}, true)
	add("Version", version.Info{}, false)
	add("Record", records.Document{}, false)
	addDump(add)
	add("Error", exit.Document{}, false)
	add("Warning", factory.Warning{}, false)
	add("Broker", rows.BrokerDetail{}, false) // a single one has its listeners
}

// schemas are those of all documents, by kind.
func schemas() map[string]map[string]any {
	out := map[string]map[string]any{}
	EachKind(func(name string, row any, list bool) {
		if standsAlone(row) {
			out[name] = rows.SchemaOf(name, row, false)
		}
		if list {
			out[name+"List"] = rows.SchemaOf(name+"List", row, true)
		}
	})
	return out
}

// standsAlone reports whether a row is printed as a document of its own. One with a kind in another sense, as leftovers
// have, is printed in lists only: the kind of the document would be there twice.
func standsAlone(row any) bool {
	_, kind := reflect.TypeOf(row).FieldByName("Kind")
	_, version := reflect.TypeOf(row).FieldByName("APIVersion")
	return version || !kind
}

// NewSchema returns the verb.
func NewSchema(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON schema of a kind, or list the kinds",
		Example: `  kctl schema
  kctl schema PartitionList`,
		Args: verb.Args(0, 1, "one kind"),
		RunE: func(_ *cobra.Command, args []string) error { return runSchema(f, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return kinds(), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func kinds() []string {
	var names []string
	for name := range schemas() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func runSchema(f *factory.Factory, args []string) error {
	if len(args) == 0 {
		for _, k := range kinds() {
			fmt.Fprintln(f.IO.Out, k)
		}
		return nil
	}
	s, ok := schemas()[args[0]]
	if !ok {
		e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("kind %q does not exist", args[0]), Hint: "kctl schema lists the kinds"}
		if near, ok := plan.Nearest(args[0], kinds()); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e
	}
	enc := json.NewEncoder(f.IO.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// ListSettings prints what -X understands.
func ListSettings(f *factory.Factory) error {
	cells := [][]string{}
	for _, p := range admin.PropertyNames() {
		cells = append(cells, []string{p[0], p[1]})
	}
	p := &output.Printer{Out: f.IO.Out, Format: output.Table, TTY: f.IO.OutTTY}
	return p.Cells([]string{"SETTING", "MEANING"}, []bool{false, false}, cells)
}
