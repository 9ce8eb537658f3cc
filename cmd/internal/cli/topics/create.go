package topics

import (
	"context"
	"fmt"

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

type createOptions struct {
	f           *factory.Factory
	topic       plan.NewTopic
	assignment  string
	configs     []string
	ifNotExists bool
	change      factory.ChangeFlags
}

func newCreate(f *factory.Factory) *cobra.Command {
	o := &createOptions{f: f}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a topic and wait until every broker knows it",
		Long: `Create a topic. Without --partitions and --replication-factor the brokers' defaults apply. --replica-assignment
has Kafka's form: replicas joined by colons, partitions by commas; the first replica is the preferred leader.
Names whose dots and underscores make equal metric names (a.b and a_b) are refused.`,
		Example: `  kctl topics create orders --partitions 6 --replication-factor 3
  kctl topics create orders --replica-assignment 1:2:3,2:3:1 --config min.insync.replicas=2
  kctl topics create orders --partitions 6 --dry-run`,
		Args: verb.Args(1, 1, "one topic name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.topic.Name = args[0]
			if err := o.validate(cmd.Flags().Changed("partitions") || cmd.Flags().Changed("replication-factor")); err != nil {
				return err
			}
			return runCreate(cmd.Context(), o)
		},
		ValidArgsFunction: verb.Fixed(),
	}
	fl := cmd.Flags()
	fl.Int32Var(&o.topic.Partitions, "partitions", -1, "number of partitions")
	fl.Int16Var(&o.topic.ReplicationFactor, "replication-factor", -1, "replicas of each partition")
	fl.StringVar(&o.assignment, "replica-assignment", "", "replicas of each partition, as 1:2:3,2:3:1")
	fl.StringArrayVar(&o.configs, "config", nil, "configuration key=value, repeatable")
	fl.BoolVar(&o.ifNotExists, "if-not-exists", false, "exit 0 when the topic is there already")
	factory.AddChangeFlags(fl, &o.change)
	return cmd
}

// validate checks everything that needs no cluster.
func (o *createOptions) validate(counts bool) (err error) {
	if o.assignment != "" {
		if counts {
			return exit.Usagef("--replica-assignment excludes --partitions and --replication-factor")
		}
		if o.topic.Assignment, err = plan.ParseAssignment(o.assignment); err != nil {
			return admin.NewBadInput(err)
		}
	}
	if o.topic.Configs, err = plan.ParseConfigs(o.configs); err != nil {
		return admin.NewBadInput(err)
	}
	if err := o.topic.Validate(); err != nil {
		return admin.NewBadInput(err)
	}
	return o.f.Writable()
}

func runCreate(ctx context.Context, o *createOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	if !o.change.DryRun {
		o.f.CheckJournal()
	}
	topic, visible, err := c.CreateTopic(ctx, o.topic, o.change.DryRun)
	if err != nil {
		if o.ifNotExists && admin.TopicExists(err) {
			o.f.Say("topic %s exists already", o.topic.Name)
			return o.existing(ctx, c)
		}
		return err
	}
	if o.change.DryRun {
		o.f.Say("dry run: topic %s would be created", o.topic.Name)
		return o.answer(o.planned())
	}
	o.f.Record(created(c.ClusterID(), o.topic.Name, &topic))
	o.f.Say("created topic %s", o.topic.Name)
	err = o.answer(rows.OfTopic(&topic))
	if err == nil && !visible {
		return &exit.Error{Code: exit.Partial, Msg: "topic " + o.topic.Name + " is created, but not every partition has a leader on every broker yet", Hint: "kctl topics describe " + o.topic.Name}
	}
	return err
}

// answer prints the topic to programs; people were told.
func (o *createOptions) answer(t rows.Topic) error {
	p, err := o.f.Printer()
	if err != nil || p.Format == output.Table || p.Format == output.Wide {
		return err
	}
	return verb.One(o.f, rows.TopicKind, t, nil)
}

// planned is the topic as far as it was said what it is to be: -1 is what the brokers choose.
func (o *createOptions) planned() rows.Topic {
	t := rows.Topic{Name: o.topic.Name, Partitions: int(o.topic.Partitions), ReplicationFactor: int(o.topic.ReplicationFactor), Source: string(model.SourceProtocol)}
	if a := o.topic.Assignment; len(a) > 0 {
		t.Partitions, t.ReplicationFactor = len(a), len(a[0])
	}
	return t
}

// existing answers with the topic that is there already.
func (o *createOptions) existing(ctx context.Context, c *admin.Client) error {
	if !o.f.Machine() {
		return nil
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: []string{o.topic.Name}, Source: model.SourceProtocol})
	if err != nil {
		return err
	}
	return o.answer(rows.OfTopic(&s.Topics[0]))
}

// created is the journal's entry. It is taken back only while the topic is the same one, as it was made and without
// records: what somebody has written since is not lost by an undo.
func created(clusterID, name string, t *model.Topic) factory.Change {
	undo := []string{"topics", "delete", name, "--expect", "records=0"}
	if !t.ID.IsZero() {
		undo = append(undo, "--expect", "id="+t.ID.String())
	}
	e := factory.Change{Cluster: clusterID, Command: "topics create", Object: name, After: "exists", Result: journal.Done}
	if n := len(t.Partitions); n > 0 { // else it is not visible everywhere yet
		e.After = fmt.Sprintf("%d partitions, replication factor %d", n, t.ReplicationFactor())
		undo = append(undo, "--expect", fmt.Sprintf("partitions=%d", n))
	}
	return e.WithUndo(undo...)
}
