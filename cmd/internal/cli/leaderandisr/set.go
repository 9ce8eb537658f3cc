package leaderandisr

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/plan"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

// applyOptions are those of set and restore alike.
type applyOptions struct {
	f          *factory.Factory
	command    string
	unclean    bool
	breakGlass bool
	wait       time.Duration
	backup     string
	change     factory.ChangeFlags
}

func (o *applyOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.unclean, "unclean", false, "accept a leader from outside the ISR: records may be lost")
	cmd.Flags().BoolVar(&o.breakGlass, "break-glass", false, "write the state znode past our own controller's checks; needs -z")
	cmd.Flags().DurationVar(&o.wait, "wait", 30*time.Second, "time to wait until every live replica acts in the new epoch (0: do not)")
	cmd.Flags().StringVar(&o.backup, "backup", "", "write what there is now to this new file, for restore")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
}

// check refuses bad flags before anything is contacted.
func (o *applyOptions) check() error {
	if o.wait < 0 {
		return exit.Usagef("--wait %s is below zero", o.wait)
	}
	if err := newFile(o.backup); err != nil {
		return err
	}
	return o.f.Writable()
}

type setOptions struct {
	applyOptions
	target    plan.Target
	leader    int32
	isr       string
	ifVersion int32
	wish      plan.LeaderAndISRWish
}

func newSet(f *factory.Factory) *cobra.Command {
	o := &setOptions{applyOptions: applyOptions{f: f, command: "leader-and-isr set"}}
	cmd := &cobra.Command{
		Use:   "set TOPIC:P [--leader ID] [--isr ID,..]",
		Short: "Decide leader and ISR of a partition",
		Long: `Have the controller make a new decision for one partition: another leader, a smaller ISR, or both. The difference is
printed first. It is made only if the partition still is as it was when the difference was printed (znode version
with -z, leader epoch without), with the next leader epoch, and the command then asks every live replica until it acts in
that epoch (--wait 0 does not).

What is never done: an empty ISR, an ISR without the leader, a replica that is not assigned, a leader that is not live, an
ISR that grows (that a replica has caught up is for its leader to find out). A leader from outside the ISR needs --unclean,
loses what it has not fetched, and is then alone in the ISR.

Ways: kbroker clusters take it as a request to the controller. Apache Kafka in ZooKeeper mode needs -z: the state znode is
written in one multi with the check of /controller_epoch, the controller is notified, and a reassignment to the same
replicas has it tell the brokers. KRaft clusters cannot do it. --break-glass writes the znode on kbroker clusters too.`,
		Example: `  kctl leader-and-isr set orders:0 --leader 2
  kctl leader-and-isr set orders:0 --isr 1,2 --if-version 7 -z zk1:2181/kafka --backup orders-0.json
  kctl leader-and-isr set orders:0 --leader 3 --unclean --yes`,
		Args: verb.Args(1, 1, "one TOPIC:P"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(cmd, args[0]); err != nil {
				return err
			}
			return runSet(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().Int32Var(&o.leader, "leader", -1, "the new leader (default: as it is)")
	cmd.Flags().StringVar(&o.isr, "isr", "", "the new ISR, part of the present one (default: as it is, without dead members)")
	cmd.Flags().Int32Var(&o.ifVersion, "if-version", -1, "only if the state znode has this version")
	o.addFlags(cmd)
	return cmd
}

func (o *setOptions) parse(cmd *cobra.Command, arg string) error {
	targets, err := verb.Targets([]string{arg})
	if err != nil {
		return err
	}
	if o.target = targets[0]; len(o.target.Partitions) != 1 {
		return exit.Usagef("%s: name exactly one partition, as in %s:0", arg, o.target.Topic)
	}
	leader, isr, version := cmd.Flags().Changed("leader"), cmd.Flags().Changed("isr"), cmd.Flags().Changed("if-version")
	if !leader && !isr {
		return exit.Usagef("say what to set: --leader ID, --isr ID,.. or both")
	}
	o.wish = plan.LeaderAndISRWish{Leader: cluster.KeepLeader, IfVersion: cluster.AnyVersion, Unclean: o.unclean}
	if leader {
		if o.leader < 0 {
			return exit.Usagef("--leader %d is not a broker id", o.leader)
		}
		o.wish.Leader = cluster.BrokerID(o.leader)
	}
	if isr {
		if o.wish.ISR, err = parseIDs(o.isr); err != nil {
			return err
		}
	}
	if version {
		if o.ifVersion < 0 {
			return exit.Usagef("--if-version %d is not a znode version", o.ifVersion)
		}
		o.wish.IfVersion = cluster.ZKVersion(o.ifVersion)
	}
	return o.check()
}

// parseIDs reads a list of broker ids; an empty one is refused where a list is meant.
func parseIDs(s string) ([]cluster.BrokerID, error) {
	var out []cluster.BrokerID
	for _, part := range strings.Split(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil || n < 0 {
			return nil, exit.Usagef("--isr %q: %q is not a broker id (the form is 1,2,3; an ISR holds at least the leader)", s, part)
		}
		out = append(out, cluster.BrokerID(n))
	}
	return out, nil
}

func runSet(ctx context.Context, o *setOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	route, err := c.LeaderAndISRRouteOf(ctx, o.breakGlass)
	if err != nil {
		return err
	}
	facts, s, err := c.LeaderAndISRFacts(ctx, []plan.Target{o.target})
	if err != nil {
		return err
	}
	if len(facts) == 0 {
		return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("%s:%d could not be read", o.target.Topic, o.target.Partitions[0])}
	}
	step := admin.PlanLeaderAndISR(facts[0], o.wish, route)
	if step.Err != nil {
		return step.Err
	}
	return o.apply(ctx, c, []admin.LeaderAndISRStep{step}, route, s)
}
