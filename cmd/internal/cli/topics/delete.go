package topics

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type deleteOptions struct {
	f        *factory.Factory
	names    []string
	ifExists bool
	internal bool
	change   factory.ChangeFlags
}

func newDelete(f *factory.Factory) *cobra.Command {
	o := &deleteOptions{f: f}
	cmd := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics with all their records and wait until every broker forgot them",
		Example: `  kctl topics delete orders
  kctl topics delete orders invoices --yes
  kctl topics delete orders --dry-run`,
		Args: verb.Args(1, -1, "at least one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if err := plan.TopicName(a); err != nil {
					return admin.NewBadInput(err)
				}
			}
			o.names = args
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runDelete(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVar(&o.ifExists, "if-exists", false, "exit 0 when a topic is not there")
	cmd.Flags().BoolVar(&o.internal, "allow-internal", false, "delete internal topics too")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func runDelete(ctx context.Context, o *deleteOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: o.names, Source: model.SourceProtocol})
	if err != nil {
		if o.ifExists && len(o.names) == 1 && admin.KindOf(err) == admin.NotFound {
			o.f.Say("topic %s does not exist", o.names[0])
			return nil
		}
		return err
	}
	for i := range s.Topics {
		if s.Topics[i].Internal && !o.internal {
			return exit.Usagef("topic %s is internal: without it the cluster does not work; --allow-internal overrides", s.Topics[i].Name)
		}
	}
	if err := o.printPlan(s); err != nil || o.change.DryRun {
		return err
	}
	var results map[string]error
	err = o.f.Commit(o.change, fmt.Sprintf("delete %d topic(s) with all records?", len(s.Topics)), func() ([]factory.Change, error) {
		if results, err = c.DeleteTopics(ctx, o.names); err != nil {
			return nil, err
		}
		return entries(s, results), nil
	})
	if err != nil {
		return err
	}
	return o.report(s, results)
}

// printPlan says what will be lost: on stderr, or as the answer of a dry run.
func (o *deleteOptions) printPlan(s *model.Snapshot) error {
	if o.change.DryRun {
		o.f.Say("dry run: these topics would be deleted")
		return verb.List(o.f, rows.TopicKind, rows.Topics(s), nil)
	}
	if o.f.Machine() {
		return nil
	}
	o.f.Say("will delete, with all records:")
	p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	return output.List(p, rows.TopicKind, rows.Topics(s), nil)
}

// entries are those of the journal. The topic can be made again; its records cannot.
func entries(s *model.Snapshot, results map[string]error) []factory.Change {
	out := make([]factory.Change, len(s.Topics))
	for i := range s.Topics {
		t := &s.Topics[i]
		out[i] = factory.Change{
			Cluster: s.ClusterID, Command: "topics delete", Object: t.Name, Result: "done",
			Before: fmt.Sprintf("%d partitions, replication factor %d", len(t.Partitions), t.ReplicationFactor()),
		}.WithUndo("topics", "create", t.Name, "--replica-assignment", assignmentText(t))
		out[i].Undo += " (the records are gone)"
		if err := results[t.Name]; err != nil {
			out[i].Result = err.Error()
		}
	}
	return out
}

func (o *deleteOptions) report(s *model.Snapshot, results map[string]error) error {
	var failed []string
	var first error
	for i := range s.Topics {
		name := s.Topics[i].Name
		err := results[name]
		if err == nil {
			o.f.Say("deleted topic %s", name)
			continue
		}
		failed = append(failed, err.Error())
		if first == nil {
			first = err
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) == len(s.Topics):
		return errors.Join(first)
	}
	return &exit.Error{Code: exit.Partial, Msg: "partly done: " + strings.Join(failed, "; ")}
}

func assignmentText(t *model.Topic) string {
	var parts []string
	for i := range t.Partitions {
		var ids []string
		for _, r := range t.Partitions[i].Replicas {
			ids = append(ids, fmt.Sprint(int32(r)))
		}
		parts = append(parts, strings.Join(ids, ":"))
	}
	return strings.Join(parts, ",")
}
