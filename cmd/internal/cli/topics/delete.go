package topics

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type deleteOptions struct {
	f        *factory.Factory
	names    []string
	ifExists bool
	internal bool
	expect   []string
	expected plan.TopicExpectation
	change   factory.ChangeFlags
}

func newDelete(f *factory.Factory) *cobra.Command {
	o := &deleteOptions{f: f}
	cmd := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics with all their records and wait until every broker forgot them",
		Long: `Delete topics with all their records and wait until every broker forgot them. The plan is printed and asked about
first. The journal keeps the assignment and the configuration, so that history undo can make the topic again, empty.

--expect refuses, with exit code 1, unless the one topic named is what one thinks it is: id=ID is its topic id,
partitions=N their number, records=N how many were ever written to it.`,
		Example: `  kctl topics delete orders
  kctl topics delete orders invoices --yes
  kctl topics delete orders --dry-run
  kctl topics delete orders --expect records=0 --yes`,
		Args: verb.Args(1, -1, "at least one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if err := plan.TopicName(a); err != nil {
					return admin.NewBadInput(err)
				}
			}
			o.names = args
			var err error
			if o.expected, err = plan.ParseTopicExpectation(o.expect); err != nil {
				return admin.NewBadInput(err)
			}
			if len(o.expect) > 0 && len(args) > 1 {
				return exit.Usagef("--expect is about one topic, but %d are named", len(args))
			}
			if err := o.f.Writable(); err != nil {
				return err
			}
			return runDelete(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVar(&o.ifExists, "if-exists", false, "exit 0 when a topic is not there")
	cmd.Flags().BoolVar(&o.internal, "allow-internal", false, "delete internal topics too")
	cmd.Flags().StringArrayVar(&o.expect, "expect", nil, "id=ID, partitions=N or records=N that must hold, else nothing is deleted; repeatable")
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
			if o.f.Machine() {
				return verb.List(o.f, rows.TopicKind, nil, nil)
			}
			return nil
		}
		return err
	}
	for i := range s.Topics {
		if s.Topics[i].Internal && !o.internal {
			return exit.Usagef("topic %s is internal: without it the cluster does not work; --allow-internal overrides", s.Topics[i].Name)
		}
	}
	if err := o.check(ctx, c, &s.Topics[0]); err != nil {
		return err
	}
	configs, err := overrides(ctx, c, s)
	if err != nil {
		return err
	}
	planned := rows.Topics(s)
	return verb.Change[rows.Topic]{
		Flags: o.change, Kind: rows.TopicKind, Plan: planned, Needed: len(planned), What: "delete, with all records",
		Question: fmt.Sprintf("delete %d topic(s) with all records?", len(planned)),
		Do:       func() (verb.Outcome[rows.Topic], error) { return o.delete(ctx, c, s, configs) },
		Answer:   o.answer,
	}.Run(o.f)
}

// delete deletes the topics. The rows are those that are gone.
func (o *deleteOptions) delete(ctx context.Context, c *admin.Client, s *model.Snapshot, configs map[string][]string) (out verb.Outcome[rows.Topic], err error) {
	results, err := c.DeleteTopics(ctx, o.names)
	if err != nil {
		results = map[string]error{}
		for _, name := range o.names {
			results[name] = err
		}
	}
	out.Entries = entries(s, configs, results)
	for i := range s.Topics {
		name := s.Topics[i].Name
		if err := results[name]; err != nil {
			out.Errs = append(out.Errs, err)
			continue
		}
		out.Rows = append(out.Rows, rows.OfTopic(&s.Topics[i]))
		o.f.Say("deleted topic %s", name)
	}
	return out, err
}

// answer prints the topics that are gone to programs. People were told, and saw them in the plan.
func (o *deleteOptions) answer(p *output.Printer, items []rows.Topic, errs []rows.ErrorRow) error {
	if !o.change.DryRun && (p.Format == output.Table || p.Format == output.Wide) {
		return nil
	}
	return output.List(p, rows.TopicKind, items, errs)
}

// check refuses a topic that is not what --expect says.
func (o *deleteOptions) check(ctx context.Context, c *admin.Client, t *model.Topic) error {
	records := int64(-1)
	if o.expected.Records != nil {
		positions, _, err := c.ReplicaLag(ctx, []plan.Target{{Topic: t.Name}})
		if err != nil {
			return err
		}
		records = plan.RecordsWritten(t, positions)
	}
	if err := o.expected.Check(t, records); err != nil {
		return &exit.Error{Code: exit.Failed, Msg: err.Error() + "; nothing was changed", Hint: "leave --expect out to delete it all the same: kctl topics delete " + t.Name}
	}
	return nil
}

// overrides reads what each topic sets itself, as the flags that set it again.
func overrides(ctx context.Context, c *admin.Client, s *model.Snapshot) (map[string][]string, error) {
	resources := make([]model.ConfigResource, len(s.Topics))
	for i := range s.Topics {
		resources[i] = model.ConfigResource{Type: model.TopicResource, Name: s.Topics[i].Name}
	}
	read, err := c.Configs(ctx, resources, nil)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for i := range read {
		r := &read[i]
		if r.Err != nil { // not to be allowed to read it is no reason not to delete it
			out[r.Resource.Name] = nil
			continue
		}
		flags := []string{}
		for j := range r.Entries {
			if v, own := r.Entries[j].Override(r.Resource); own && v != nil {
				flags = append(flags, "--config", r.Entries[j].Name+"="+*v)
			}
		}
		out[r.Resource.Name] = flags
	}
	return out, nil
}

// entries are those of the journal. The topic can be made again with its configuration; its records cannot.
func entries(s *model.Snapshot, configs map[string][]string, results map[string]error) []factory.Change {
	out := make([]factory.Change, len(s.Topics))
	for i := range s.Topics {
		t := &s.Topics[i]
		undo := append([]string{"topics", "create", t.Name, "--replica-assignment", assignmentText(t)}, configs[t.Name]...)
		out[i] = factory.Change{
			Cluster: s.ClusterID, Command: "topics delete", Object: t.Name, Result: journal.Done,
			Before: fmt.Sprintf("%d partitions, replication factor %d", len(t.Partitions), t.ReplicationFactor()),
		}.WithUndo(undo...)
		out[i].Undo += "   # the records are gone"
		if configs[t.Name] == nil {
			out[i].Undo += ", its configuration could not be read"
		}
		if err := results[t.Name]; err != nil {
			out[i].Result = err.Error()
		}
	}
	return out
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
