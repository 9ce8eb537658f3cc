package topics

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/configs"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type alterOptions struct {
	f          *factory.Factory
	name       string
	partitions int32
	assignment [][]cluster.BrokerID
	ops        []plan.ConfigOp
	change     factory.ChangeFlags

	topic   *model.Topic
	added   [][]cluster.BrokerID
	configs []plan.ConfigChange
}

func newAlter(f *factory.Factory) *cobra.Command {
	o := &alterOptions{f: f}
	var assignment string
	var sets, deletes []string
	cmd := &cobra.Command{
		Use:   "alter NAME",
		Short: "Add partitions to a topic, change its configuration",
		Long: `Add partitions to a topic, up to a total of --partitions, and change configuration values. The replicas of the new
partitions are planned and shown first: on live brokers, spread over brokers and racks; --replica-assignment names them
(for the new partitions only, in Kafka's form). Partitions cannot be removed again, and a key's records go to another
partition from then on.`,
		Example: `  kctl topics alter orders --partitions 12
  kctl topics alter orders --partitions 8 --replica-assignment 1:2:3,2:3:1 --dry-run
  kctl topics alter orders --config retention.ms=86400000 --delete-config cleanup.policy`,
		Args: verb.Args(1, 1, "one topic name"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			o.name = args[0]
			if err := plan.TopicName(o.name); err != nil {
				return admin.NewBadInput(err)
			}
			if assignment != "" {
				if o.assignment, err = plan.ParseAssignment(assignment); err != nil {
					return admin.NewBadInput(err)
				}
			}
			if o.ops, err = plan.ParseConfigOps(sets, nil, nil, deletes); err != nil {
				return admin.NewBadInput(err)
			}
			counted := cmd.Flags().Changed("partitions")
			switch {
			case counted && (o.partitions < 1 || o.partitions > plan.PartitionsMax):
				return exit.Usagef("--partitions %d is not between 1 and %d", o.partitions, plan.PartitionsMax)
			case !counted && o.assignment == nil && len(o.ops) == 0:
				return exit.Usagef("nothing to change: --partitions, --replica-assignment, --config or --delete-config")
			}
			if err := f.Writable(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	fl := cmd.Flags()
	fl.Int32Var(&o.partitions, "partitions", 0, "number of partitions afterwards")
	fl.StringVar(&assignment, "replica-assignment", "", "replicas of each new partition, as 1:2:3,2:3:1")
	fl.StringArrayVar(&sets, "config", nil, "configuration key=value, repeatable")
	fl.StringArrayVar(&deletes, "delete-config", nil, "configuration key to delete, repeatable")
	factory.AddChangeFlags(fl, &o.change)
	return cmd
}

func (o *alterOptions) run(ctx context.Context) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	s, err := c.Snapshot(ctx, admin.SnapshotOptions{Topics: []string{o.name}, Source: model.SourceProtocol})
	if err != nil {
		return err
	}
	o.topic = &s.Topics[0]
	if o.partitions > 0 || o.assignment != nil {
		if err := o.planPartitions(s.Brokers); err != nil {
			return err
		}
	}
	if len(o.ops) > 0 {
		if err := o.planConfigs(ctx, c); err != nil {
			return err
		}
	}
	rs, needed := o.rows()
	return verb.Change[rows.TopicChange]{
		Flags: o.change, Kind: rows.TopicChangeKind, Plan: rs, Needed: needed, What: "alter topic " + o.name,
		Question: fmt.Sprintf("alter topic %s?", o.name),
		Check:    func() error { return o.check(ctx, c) },
		Do:       func() (verb.Outcome[rows.TopicChange], error) { return o.write(ctx, c, rs) },
	}.Run(o.f)
}

func (o *alterOptions) planPartitions(brokers []model.Broker) (err error) {
	have := int32(len(o.topic.Partitions))
	want := max(o.partitions, have)
	if o.partitions > 0 && o.partitions < have {
		return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("topic %s has %d partitions: partitions cannot be removed", o.name, have), Hint: "a new topic with fewer partitions is the only way"}
	}
	if o.assignment != nil {
		if o.partitions > 0 && int(want-have) != len(o.assignment) {
			return exit.Usagef("--replica-assignment has %d partitions, but %d new ones are asked for", len(o.assignment), want-have)
		}
		o.added = o.assignment
		err = plan.CheckNewAssignment(o.topic, brokers, o.added)
	} else {
		o.added, err = plan.NewPartitions(o.topic, brokers, want)
	}
	if err != nil {
		return &exit.Error{Code: exit.Failed, Msg: err.Error()}
	}
	if len(o.added) > 0 {
		o.f.Say("warning: from then on records with a key go to other partitions than those before with the same key; partitions cannot be removed again")
	}
	return nil
}

func (o *alterOptions) planConfigs(ctx context.Context, c *admin.Client) error {
	current, err := c.Configs(ctx, []model.ConfigResource{{Type: model.TopicResource, Name: o.name}}, nil)
	if err == nil {
		err = current[0].Err
	}
	if err != nil {
		return err
	}
	o.configs, err = configs.Plan(&current[0], o.ops)
	return err
}

func (o *alterOptions) rows() (out []rows.TopicChange, needed int) {
	have := len(o.topic.Partitions)
	for i, replicas := range o.added {
		text := check.IDList(replicas)
		out = append(out, rows.TopicChange{Topic: o.name, What: fmt.Sprintf("partition %d", have+i), Action: "add", After: &text})
		needed++
	}
	for i := range o.configs {
		ch := rows.OfConfigChange(&o.configs[i])
		out = append(out, rows.TopicChange{Topic: o.name, What: ch.Name, Action: ch.Action, Before: ch.Before, After: ch.After})
		if !o.configs[i].None {
			needed++
		}
	}
	return out, needed
}

// check has the cluster judge everything before anything is written.
func (o *alterOptions) check(ctx context.Context, c *admin.Client) error {
	if len(o.added) > 0 {
		if _, err := c.CreatePartitions(ctx, o.name, len(o.topic.Partitions), o.added, true); err != nil {
			return err
		}
	}
	todo := configs.Needed(o.configs)
	if len(todo) == 0 {
		return nil
	}
	results, err := c.AlterConfigs(ctx, todo, true)
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
	}
	return err
}

func (o *alterOptions) write(ctx context.Context, c *admin.Client, rs []rows.TopicChange) (out verb.Outcome[rows.TopicChange], err error) {
	have := len(o.topic.Partitions)
	if todo := configs.Needed(o.configs); len(todo) > 0 {
		failed, err := configs.Write(ctx, c, todo)
		if err != nil {
			return out, err
		}
		cause := failed[todo[0].Resource]
		out.Entries = append(out.Entries, configs.Entry(c.ClusterID(), "topics alter", todo, cause))
		mark(rs[len(o.added):], cause)
		if cause != nil {
			out.Errs = append(out.Errs, cause)
		}
	}
	if len(o.added) > 0 {
		visible, err := c.CreatePartitions(ctx, o.name, have, o.added, false)
		e := factory.Change{
			Cluster: c.ClusterID(), Command: "topics alter", Object: o.name, Before: fmt.Sprintf("%d partitions", have),
			After: fmt.Sprintf("%d partitions", have+len(o.added)), Result: journal.Done, Undo: "nothing: partitions cannot be removed",
		}
		if err != nil {
			e.Result = err.Error()
		}
		out.Entries = append(out.Entries, e)
		mark(rs[:len(o.added)], err)
		switch {
		case err != nil:
			out.Errs = append(out.Errs, err)
		case !visible:
			out.Errs = append(out.Errs, admin.NoLeaderYet(o.name))
		}
	}
	out.Rows = rs
	if len(out.Errs) == len(out.Entries) && len(out.Errs) > 0 { // nothing was done at all
		var parts []string
		for _, e := range out.Errs {
			parts = append(parts, e.Error())
		}
		if len(parts) > 1 {
			return out, &exit.Error{Code: exit.Failed, Msg: strings.Join(parts, "; ")}
		}
		return out, out.Errs[0]
	}
	return out, nil
}

func mark(rs []rows.TopicChange, err error) {
	for i := range rs {
		if rs[i].Done = err == nil; err != nil {
			rs[i].Error = err.Error()
		}
	}
}
