package elect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

const leaderCommand = "elect leader"

type leaderOptions struct {
	f      *factory.Factory
	tp     cluster.TopicPartition
	broker cluster.BrokerID
	order  []cluster.BrokerID
	expect int32
	wait   time.Duration
	ended  []factory.Change // what the journal lacks of an election that was interrupted
	change factory.ChangeFlags
}

func newLeader(f *factory.Factory) *cobra.Command {
	o := &leaderOptions{f: f}
	var order []int32
	cmd := &cobra.Command{
		Use:   "leader TOPIC:P BROKER",
		Short: "Give one partition to a chosen leader, leaving its replica list as it is",
		Long: `Elect a chosen broker as the leader of one partition. Only a live member of the ISR can be chosen, so no record
is lost, and the assignment is in the end what it was.

Our controller sets the leader itself. Apache Kafka has no request for that: the replica list is put into another
order with the broker first (the set stays the same, no data moves), the first replica is elected, and the order
is put back. Each step is verified before the next. When it is interrupted the order is put back; after a kill -9
the same command takes it up again, since the order is in the journal (kctl history) before the first step.
--order names the order in the end, where neither the cluster nor this journal knows it any more.

Where the cluster gives leadership back to preferred leaders by itself (auto.leader.rebalance.enable), the choice
lasts until then; the command says so.`,
		Example: `  kctl elect leader orders:0 2
  kctl elect leader orders:0 2 --yes --wait 1m
  kctl elect leader orders:0 2 --order 1,2,3 --yes   # also puts the replica list into that order`,
		Args: verb.Args(2, 2, "a partition (TOPIC:P) and a broker id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, id := range order {
				o.order = append(o.order, cluster.BrokerID(id))
			}
			if err := o.parse(args); err != nil {
				return err
			}
			return runLeader(cmd.Context(), o)
		},
		ValidArgsFunction: completeLeader(f),
	}
	fs := cmd.Flags()
	fs.Int32SliceVar(&order, "order", nil, "the replica list in the end (default: as it is now)")
	fs.Int32Var(&o.expect, "expect-leader", -2, "do nothing unless this broker leads now (-1: none)")
	fs.DurationVar(&o.wait, "wait", defaultWait, "time for all steps")
	factory.AddChangeFlags(fs, &o.change)
	return cmd
}

func completeLeader(f *factory.Factory) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	topics, brokers := verb.CompleteTopics(f), verb.CompleteBrokers(f)
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return topics(cmd, args, word)
		}
		return brokers(cmd, args[1:], word)
	}
}

func (o *leaderOptions) parse(args []string) error {
	t, err := plan.ParseTarget(args[0])
	if err != nil {
		return admin.NewBadInput(err)
	}
	if len(t.Partitions) != 1 {
		return exit.Usagef("%q does not name one partition: the form is TOPIC:P", args[0])
	}
	id, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil || id < 0 {
		return exit.Usagef("broker %q is not a number from 0 up", args[1])
	}
	o.tp, o.broker = cluster.TopicPartition{Topic: t.Topic, Partition: t.Partitions[0]}, cluster.BrokerID(id)
	if o.wait <= 0 {
		return exit.Usagef("--wait %s is not above zero: each step is verified", o.wait)
	}
	return o.f.Writable()
}

func runLeader(ctx context.Context, o *leaderOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	lc, err := o.plan(ctx, c)
	if err != nil {
		return err
	}
	from := lc.Partition.Leader
	if o.expect != -2 && int32(from) != o.expect && len(lc.Steps) > 0 {
		return &exit.Error{
			Code: exit.Failed, Msg: fmt.Sprintf("%s is led by %s, not by broker %d: nothing was changed", o.object(), rows.IDText(int32(from)), o.expect),
			Hint: "leave --expect-leader out to elect broker " + fmt.Sprint(o.broker) + " all the same",
		}
	}
	row := rows.Election{
		Topic: o.tp.Topic, Partition: o.tp.Partition, From: int32(from), To: int32(o.broker), Action: string(plan.Move),
	}
	if len(lc.Steps) == 0 {
		row.Action, row.Result = string(plan.NotNeeded), rows.ElectionAlready
		o.f.Say("broker %d leads already", o.broker)
		if !o.change.DryRun {
			o.f.Record(o.ended...)
		}
		return verb.One(o.f, rows.ElectionKind, row, nil)
	}
	return verb.Change[rows.Election]{
		Flags: o.change, Kind: rows.ElectionKind, Plan: []rows.Election{row}, Needed: 1, Single: true,
		Question: fmt.Sprintf("make broker %d the leader of %s?", o.broker, o.object()),
		ShowPlan: func() error { o.printPlan(lc); return nil },
		Do: func() (out verb.Outcome[rows.Election], err error) {
			o.f.Record(o.ended...)
			out.Entries, err = o.do(ctx, c, lc)
			row.Done, row.Confirmed, row.Result = true, true, rows.ElectionDone
			out.Rows = []rows.Election{row}
			return out, err
		},
	}.Run(o.f)
}

func (o *leaderOptions) object() string { return fmt.Sprintf("%s:%d", o.tp.Topic, o.tp.Partition) }

// plan makes the plan. An election of the same partition that this journal holds as begun and not as ended
// tells the order in the end.
func (o *leaderOptions) plan(ctx context.Context, c *admin.Client) (*admin.LeaderChoice, error) {
	lc, err := c.PlanLeader(ctx, o.tp, o.broker, o.order)
	if err != nil || o.order != nil {
		return lc, err
	}
	order := o.owed(lc.ClusterID)
	switch {
	case order == nil:
		return lc, nil
	case slices.Equal(order, lc.Partition.Replicas):
		o.ended = []factory.Change{o.settled(lc)}
		return lc, nil
	}
	resumed, err := c.PlanLeader(ctx, o.tp, o.broker, order)
	if err != nil {
		return lc, nil // the replicas are others by now: the old order means nothing any more
	}
	o.f.Say("taking up an election that was interrupted: the replica list goes back to %s", idText(order))
	return resumed, nil
}

// settled ends an entry that was left begun although the order is back: later changes of the assignment are not to be taken
// for ours.
func (o *leaderOptions) settled(lc *admin.LeaderChoice) factory.Change {
	order := "replicas " + idText(lc.Partition.Replicas)
	return factory.Change{
		Cluster: lc.ClusterID, Command: leaderCommand, Object: o.object(), Before: order, After: order,
		Result: "an interrupted election has ended: the replica list is in its order",
	}
}

// begun is the Result of an entry that is written before the first step.
const begun = "begun"

// owed reads the order that an election of this partition has not put back, nil when none is owed.
func (o *leaderOptions) owed(clusterID string) []cluster.BrokerID {
	entries, err := o.f.History()
	if err != nil {
		return nil
	}
	for i := range slices.Backward(entries) {
		e := &entries[i]
		if e.Command != leaderCommand || e.Object != o.object() || e.Cluster != clusterID {
			continue
		}
		if e.Result != begun {
			return nil
		}
		list, _, ok := strings.Cut(strings.TrimPrefix(e.Before, "replicas "), " leader ")
		if !ok {
			return nil
		}
		return parseIDs(list)
	}
	return nil
}

func parseIDs(list string) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return nil
		}
		out = append(out, cluster.BrokerID(n))
	}
	return out
}

func idText(ids []cluster.BrokerID) string { return rows.IntList(cluster.IDsToInt32(ids)) }

func (o *leaderOptions) printPlan(lc *admin.LeaderChoice) {
	p := &lc.Partition
	o.f.Say("%s: leader %s, replicas %s, in sync %s", o.object(), rows.IDText(int32(p.Leader)), idText(p.Replicas), idText(p.ISR))
	for i, step := range lc.Steps {
		o.f.Say("  %d. %s", i+1, stepText(lc, step))
	}
	if r := lc.Rebalance; r != nil {
		when := fmt.Sprintf("more than %d%% of the partitions that broker %d should lead are", r.Percentage, lc.Goal.Order[0])
		if r.Percentage == 0 { // KRaft from 4.0 on knows no percentage
			when = fmt.Sprintf("a partition that broker %d should lead is", lc.Goal.Order[0])
		}
		o.f.Say("warning: auto.leader.rebalance.enable is on: when %s led by others, leadership goes back to it within %s", when, r.Every)
	}
	if o.change.DryRun {
		o.f.Say("dry run: nothing was changed")
	}
}

func stepText(lc *admin.LeaderChoice, step plan.LeaderStep) string {
	switch step {
	case plan.LeaderReorder:
		return fmt.Sprintf("order the replicas %s (no data moves)", idText(plan.FirstInOrder(lc.Goal)))
	case plan.LeaderRestore:
		return fmt.Sprintf("order the replicas %s", idText(lc.Goal.Order))
	}
	if lc.Direct {
		return fmt.Sprintf("have the controller set broker %d as the leader; the replica list is not touched", lc.Goal.Leader)
	}
	return fmt.Sprintf("elect broker %d", lc.Goal.Leader)
}

// do carries out the plan between two entries of the journal: one before the first step, with the order that is owed until
// the second one, which it returns, is there.
func (o *leaderOptions) do(ctx context.Context, c *admin.Client, lc *admin.LeaderChoice) ([]factory.Change, error) {
	entry := factory.Change{
		Cluster: lc.ClusterID, Command: leaderCommand, Object: o.object(), Result: journal.Done,
		Before: fmt.Sprintf("replicas %s leader %d", idText(lc.Goal.Order), lc.Partition.Leader),
		After:  fmt.Sprintf("replicas %s leader %d", idText(lc.Goal.Order), lc.Goal.Leader),
	}
	again := journal.Entry{}.WithUndo("elect", "leader", o.object(), fmt.Sprint(lc.Goal.Leader), "--order", idText(lc.Goal.Order)).Undo
	if !lc.Direct {
		first := entry
		first.Result, first.Undo = begun, "ended by: "+again
		o.f.Record(first)
	}
	err := c.ElectLeader(ctx, lc, o.wait, func(step plan.LeaderStep) { o.f.Say("%s", stepText(lc, step)) })
	var left *admin.OrderLeft
	switch from := lc.Partition.Leader; {
	case errors.As(err, &left):
		// No second entry: the order stays owed.
		return nil, &exit.Error{Code: exit.CodeOf(err), Msg: err.Error(), Hint: "when the cluster answers again: " + again}
	case err != nil:
		entry.Result = err.Error()
	case from >= 0 && from != lc.Goal.Leader:
		entry = entry.WithUndo("elect", "leader", o.object(), fmt.Sprint(from), "--expect-leader", fmt.Sprint(lc.Goal.Leader))
	default:
		entry.Undo = noLeaderBefore
	}
	return []factory.Change{entry}, err
}
