package reassign

import (
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan/reassign"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type generateOptions struct {
	f                    *factory.Factory
	balance, racks, lead bool
	drain, to            []string
	topic, exclude       string
	goal                 reassign.Goal
	include, leave       *regexp.Regexp
	out, via             string
	ignoreRacks          bool
	factor               int
}

func newGenerate(f *factory.Factory) *cobra.Command {
	o := &generateOptions{f: f}
	cmd := &cobra.Command{
		Use:   "generate (--balance | --drain IDS | --to IDS | --replication-factor N | --racks | --leaders)",
		Short: "Plan a reassignment with as few moves as possible",
		Long: `Make a plan and print it in Kafka's JSON, ready for reassign execute and for kafka-reassign-partitions.sh. A summary
goes to stderr: what each broker gets and gives in replicas, preferred leaders and bytes.

Goals can be combined. A plan uses live brokers only, keeps the replicas of a partition on different racks as far as
that is possible (unless --ignore-racks), moves nothing needlessly and is the same each time; where the goal is met it
is empty. Replicas on dead brokers are moved to live ones, but with --leaders alone. Partitions that are being
reassigned already are counted with their target and left alone.

With -o json or yaml the moves are printed as a kctl list; --out then keeps the plan itself.`,
		Example: `  kctl reassign generate --balance > plan.json
  kctl reassign generate --drain 3,4 --out plan.json
  kctl reassign generate --to 1,2,3,4 --topic 'orders.*' --exclude orders-tmp
  kctl reassign generate --replication-factor 3 --topic __consumer_offsets`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parse(); err != nil {
				return err
			}
			return runGenerate(cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.balance, "balance", false, "the same number of replicas and preferred leaders on each broker, and racks apart")
	fs.StringSliceVar(&o.drain, "drain", nil, "brokers to empty")
	fs.StringSliceVar(&o.to, "to", nil, "the brokers to use, and to balance over; all others are emptied")
	fs.IntVar(&o.factor, "replication-factor", 0, "wanted number of replicas")
	fs.BoolVar(&o.racks, "racks", false, "put replicas that share a rack apart")
	fs.BoolVar(&o.lead, "leaders", false, "reorder replica lists so that each broker is the preferred leader equally often; moves no data")
	fs.StringVar(&o.topic, "topic", "", "only topics that match this regular expression")
	fs.StringVar(&o.exclude, "exclude", "", "leave out topics that match this regular expression")
	fs.BoolVar(&o.ignoreRacks, "ignore-racks", false, "do not look at racks")
	fs.StringVar(&o.out, "out", "", "write the plan to this file and print the moves")
	fs.StringVar(&o.via, "via", admin.ViaAuto, viaUsage)
	return cmd
}

func (o *generateOptions) parse() (err error) {
	if !o.balance && len(o.drain) == 0 && len(o.to) == 0 && o.factor == 0 && !o.racks && !o.lead {
		return exit.Usagef("say what to reach: --balance, --drain, --to, --replication-factor, --racks or --leaders")
	}
	if o.factor < 0 {
		return exit.Usagef("--replication-factor %d is below zero", o.factor)
	}
	if o.ignoreRacks && o.racks {
		return exit.Usagef("--racks and --ignore-racks contradict each other")
	}
	balance := o.balance || len(o.to) > 0
	o.goal = reassign.Goal{
		ReplicationFactor: o.factor, Balance: balance, Racks: balance || o.racks, Leaders: balance || o.lead, IgnoreRacks: o.ignoreRacks,
		LeadersOnly: o.lead && !balance && !o.racks && len(o.drain) == 0 && o.factor == 0,
	}
	if o.goal.Drain, err = parseIDs("drain", o.drain); err != nil {
		return err
	}
	if o.goal.To, err = parseIDs("to", o.to); err != nil {
		return err
	}
	if o.include, err = verb.TopicFilter(o.topic); err != nil {
		return err
	}
	if o.leave, err = verb.TopicFilter(o.exclude); err != nil {
		return err
	}
	return checkVia(o.via)
}

func (o *generateOptions) selected(topic string) bool {
	return (o.include == nil || o.include.MatchString(topic)) && (o.leave == nil || !o.leave.MatchString(topic))
}

func runGenerate(ctx context.Context, o *generateOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	via, _, err := c.ReassignVia(ctx, o.via)
	if err != nil {
		return err
	}
	view, s, _, problems, err := c.ReassignSnapshot(ctx, via, nil)
	if err != nil {
		return err
	}
	brokers, parts, busy, some := o.input(view, s)
	if !some && o.topic != "" {
		return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("no topic matches --topic %q", o.topic)}
	}
	p, err := reassign.Make(brokers, parts, o.goal)
	if err != nil {
		return &exit.Error{Code: exit.Failed, Msg: err.Error(), Hint: "kctl brokers list shows who is live"}
	}
	o.summary(p, problems, busy)
	return o.print(p)
}

// input turns the cluster into what a plan is made from. busy counts the partitions under way that stay, some tells
// whether any topic is selected.
func (o *generateOptions) input(view *reassign.View, s *model.Snapshot) (brokers []reassign.Broker, parts []reassign.Partition, busy int, some bool) {
	for i := range s.Brokers {
		b := &s.Brokers[i]
		brokers = append(brokers, reassign.Broker{ID: b.ID, Rack: b.Rack, Live: b.Live})
	}
	for i := range s.Topics {
		t := &s.Topics[i]
		selected := o.selected(t.Name) && !t.Deleting
		some = some || selected
		for j := range t.Partitions {
			seen, ok := view.Parts[t.Partitions[j].TP()]
			if !ok {
				continue
			}
			tp := t.Partitions[j].TP()
			if selected && seen.Reassigning() {
				busy++
			}
			parts = append(parts, reassign.Partition{
				Topic: tp.Topic, Partition: tp.Partition, Replicas: seen.Target(), Size: view.Sizes[tp], Fixed: !selected || seen.Reassigning(),
			})
		}
	}
	return brokers, parts, busy, some
}

func (o *generateOptions) summary(p *reassign.Plan, problems []model.Problem, busy int) {
	if o.f.Machine() {
		return
	}
	for _, w := range p.Warnings {
		o.f.Say("warning: %s", w)
	}
	for _, pr := range problems {
		o.f.Say("warning: sizes on %s are not known: %s", pr.Object, pr.Message)
	}
	if busy > 0 {
		o.f.Say("%d partition(s) are being reassigned already and stay as they are", busy)
	}
	if len(p.Moves) == 0 {
		o.f.Say("nothing to move: the goal is met")
		return
	}
	moved := 0
	loads := make([]rows.ReassignmentLoad, len(p.Loads))
	for i, l := range p.Loads {
		use := "yes"
		if !l.Live {
			use = "down"
		} else if !l.Allowed {
			use = "no"
		}
		moved += l.In
		loads[i] = rows.ReassignmentLoad{
			Broker: int32(l.Broker), Use: use, ReplicasBefore: l.ReplicasBefore, ReplicasAfter: l.ReplicasAfter,
			LeadersBefore: l.LeadersBefore, LeadersAfter: l.LeadersAfter, In: l.In, Out: l.Out, BytesIn: l.BytesIn, BytesOut: l.BytesOut,
		}
	}
	pr := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	_ = output.List(pr, rows.ReassignmentLoadKind, loads, nil) // talk: the plan is what counts
	o.f.Say("%d partition(s) change, %d replica(s) are copied, %s", len(p.Moves), moved, reassign.Size(p.Bytes))
}

func (o *generateOptions) print(p *reassign.Plan) error {
	plan := append(reassign.Encode(p.Entries()), '\n')
	if o.out != "" {
		if err := os.WriteFile(o.out, plan, 0o644); err != nil {
			return err
		}
		o.f.Say("wrote %s; kctl reassign execute %s carries it out", o.out, o.out)
	}
	pr, err := o.f.Printer()
	if err != nil {
		return err
	}
	if o.out == "" && (pr.Format == output.Table || pr.Format == output.Wide) {
		_, err := o.f.IO.Out.Write(plan)
		return err
	}
	moves := make([]rows.ReassignmentMove, len(p.Moves))
	for i := range p.Moves {
		m := &p.Moves[i]
		moves[i] = rows.ReassignmentMove{
			Topic: m.Topic, Partition: m.Partition, From: cluster.IDsToInt32(m.From), To: cluster.IDsToInt32(m.To),
			Adding: notNil(m.Added()), Removing: notNil(m.Removed()), Bytes: m.Bytes,
		}
	}
	return output.List(pr, rows.ReassignmentMoveKind, moves, nil)
}

func notNil(ids []cluster.BrokerID) []int32 {
	if len(ids) == 0 {
		return []int32{}
	}
	return cluster.IDsToInt32(ids)
}
