package leaderandisr

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type restoreOptions struct {
	applyOptions
	clusterID string
	items     []saved
}

func newRestore(f *factory.Factory) *cobra.Command {
	o := &restoreOptions{applyOptions: applyOptions{f: f, command: "leader-and-isr restore"}}
	cmd := &cobra.Command{
		Use:   "restore FILE [TOPIC[:P,..]...]",
		Short: "Bring leaders and ISRs back to a backup, as new decisions",
		Long: `Read a backup that set --backup wrote, or that get printed with -o json, and decide its partitions (or those named)
anew: the leader of the backup, and of its ISR the replicas that are live and in sync now. Epochs go up, never back. The others
join the ISR by themselves as soon as they have caught up. The checks and the ways are those of set. A backup of another cluster, or of
a topic that was deleted and made anew, is refused.`,
		Example: `  kctl leader-and-isr get orders -o json > orders.json
  kctl leader-and-isr restore orders.json
  kctl leader-and-isr restore orders.json orders:0,1 --dry-run`,
		Args: verb.Args(1, -1, "a backup FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return runRestore(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *restoreOptions) parse(args []string) error {
	data, err := os.ReadFile(args[0])
	if err != nil {
		return exit.Usagef("read the backup: %v", err)
	}
	var items []saved
	if o.clusterID, items, err = parseBackup(data); err != nil {
		return exit.Usagef("%s: %v", args[0], err)
	}
	targets, err := verb.Targets(args[1:])
	if err != nil {
		return err
	}
	for _, it := range items {
		if plan.Match(targets, it.tp.Topic, it.tp.Partition) {
			o.items = append(o.items, it)
		}
	}
	if len(o.items) == 0 {
		return exit.Usagef("%s holds none of the partitions named", args[0])
	}
	return o.check()
}

func runRestore(ctx context.Context, o *restoreOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	route, err := c.LeaderAndISRRouteOf(ctx, o.breakGlass)
	if err != nil {
		return err
	}
	names := make([]string, len(o.items))
	for i, it := range o.items {
		names[i] = fmt.Sprintf("%s:%d", it.tp.Topic, it.tp.Partition)
	}
	targets, err := verb.Targets(names)
	if err != nil {
		return err
	}
	facts, s, err := c.LeaderAndISRFacts(ctx, targets)
	if err != nil {
		return err
	}
	if o.clusterID != "" && s.ClusterID != "" && o.clusterID != s.ClusterID {
		return &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("the backup is of cluster %s, and this is %s", o.clusterID, s.ClusterID)}
	}
	ids := topicIDs(s)
	at := map[cluster.TopicPartition]*plan.LeaderAndISRFacts{}
	for i := range facts {
		at[cluster.TopicPartition{Topic: facts[i].State.Topic, Partition: facts[i].State.Partition}] = &facts[i]
	}
	steps := make([]admin.LeaderAndISRStep, 0, len(o.items))
	for _, it := range o.items {
		steps = append(steps, restoreStep(it, at[it.tp], ids[it.tp.Topic], o.unclean, route))
	}
	return o.apply(ctx, c, steps, route, s)
}

// restoreStep plans one partition of a backup.
func restoreStep(it saved, f *plan.LeaderAndISRFacts, topicID string, unclean bool, route admin.LeaderAndISRRoute) admin.LeaderAndISRStep {
	refuse := func(msg string) admin.LeaderAndISRStep {
		st := admin.LeaderAndISRStep{Err: &admin.Error{Kind: admin.Failed, Msg: msg}}
		if f != nil {
			st.Facts = *f
		}
		st.Facts.State.Topic, st.Facts.State.Partition = it.tp.Topic, it.tp.Partition
		return st
	}
	switch {
	case f == nil:
		return refuse("the partition could not be read")
	case it.topicID != "" && topicID != "" && it.topicID != topicID:
		return refuse(fmt.Sprintf("the backup is of an earlier topic of this name: its id is %s, and this is %s", it.topicID, topicID))
	}
	wish, missing := plan.RestoreLeaderAndISR(*f, it.state, unclean)
	st := admin.PlanLeaderAndISR(*f, wish, route)
	if f.State.LeaderEpoch < it.state.LeaderEpoch {
		missing = append(missing, fmt.Sprintf("the leader epoch is %d, below that of the backup, %d: it has been set back", f.State.LeaderEpoch, it.state.LeaderEpoch))
	}
	st.Notes = missing
	return st
}
