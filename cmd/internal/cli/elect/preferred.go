package elect

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

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

type preferredOptions struct {
	f       *factory.Factory
	targets []plan.Target
	all     bool
	file    string
	wait    time.Duration
	change  factory.ChangeFlags
}

func newPreferred(f *factory.Factory) *cobra.Command {
	o := &preferredOptions{f: f}
	cmd := &cobra.Command{
		Use:   "preferred (TOPIC[:P,..]... | --all | --file FILE)",
		Short: "Give leadership back to the first replica of each partition",
		Long: `Have the controller elect the preferred leader, the first of the replica list, where another broker leads. The
plan is printed first. Partitions whose preferred replica is dead or out of sync are reported and left alone.
--file reads Kafka's JSON: {"partitions":[{"topic":"orders","partition":0}]}.

The command waits until each new leader answers as leader (--wait 0 does not).`,
		Example: `  kctl elect preferred orders
  kctl elect preferred orders:0,3 --yes
  kctl elect preferred --all --dry-run`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args); err != nil {
				return err
			}
			return runPreferred(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "all partitions of all topics")
	cmd.Flags().StringVar(&o.file, "file", "", "partitions in Kafka's JSON")
	cmd.Flags().DurationVar(&o.wait, "wait", 30*time.Second, "time to wait for the new leaders to answer (0: do not)")
	factory.AddChangeFlags(cmd.Flags(), &o.change)
	return cmd
}

func (o *preferredOptions) parse(args []string) (err error) {
	ways := len(args)
	if ways > 1 {
		ways = 1
	}
	if o.all {
		ways++
	}
	if o.file != "" {
		ways++
	}
	if ways != 1 {
		return exit.Usagef("name partitions in exactly one way: TOPIC[:P,..]..., --all or --file FILE")
	}
	if o.file != "" {
		o.targets, err = readElectionFile(o.file)
	} else {
		o.targets, err = verb.Targets(args)
	}
	if err != nil {
		return err
	}
	if o.wait < 0 {
		return exit.Usagef("--wait %s is below zero", o.wait)
	}
	return o.f.Writable()
}

// readElectionFile reads the form of kafka-leader-election.sh.
func readElectionFile(path string) ([]plan.Target, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.Usagef("--file: %v", err)
	}
	var doc struct {
		Partitions []struct {
			Topic     *string `json:"topic"`
			Partition *int32  `json:"partition"`
		} `json:"partitions"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, exit.Usagef("--file %s: %v", path, err)
	}
	var args []string
	for i, p := range doc.Partitions {
		if p.Topic == nil || p.Partition == nil {
			return nil, exit.Usagef("--file %s: entry %d needs topic and partition", path, i)
		}
		args = append(args, fmt.Sprintf("%s:%d", *p.Topic, *p.Partition))
	}
	if len(args) == 0 {
		return nil, exit.Usagef("--file %s: it has no partitions", path)
	}
	return verb.Targets(args)
}

func runPreferred(ctx context.Context, o *preferredOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	planned, s, err := c.PlanPreferred(ctx, o.targets)
	if err != nil {
		return err
	}
	moves := plan.Moves(planned)
	shown := planned
	if o.all {
		shown = without(planned, plan.NotNeeded)
	}
	if o.change.DryRun {
		o.f.Say("dry run: %d of %d leaders would move", len(moves), len(planned))
		return verb.List(o.f, rows.ElectionKind, planRows(shown), nil)
	}
	results := []admin.ElectionResult{}
	if len(moves) > 0 {
		if err := o.printPlan(moves); err != nil {
			return err
		}
		if err := o.f.Confirm(o.change, fmt.Sprintf("move %d leader(s)?", len(moves))); err != nil {
			return err
		}
		if results, err = c.ElectPreferred(ctx, moves, o.wait); err != nil {
			return err
		}
		o.f.Record(changes(s, results)...)
	}
	return o.report(shown, results)
}

func without(planned []plan.Election, a plan.ElectionAction) []plan.Election {
	var out []plan.Election
	for _, e := range planned {
		if e.Action != a {
			out = append(out, e)
		}
	}
	return out
}

func (o *preferredOptions) printPlan(moves []plan.Election) error {
	if o.f.Machine() {
		return nil
	}
	o.f.Say("will move leaders:")
	p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	return output.List(p, rows.ElectionKind, planRows(moves), nil)
}

func planRow(e plan.Election) rows.Election {
	r := rows.Election{Topic: e.Topic, Partition: e.Partition, From: int32(e.From), To: int32(e.To), Action: string(e.Action)}
	if e.Action == plan.Impossible {
		r.Error = e.Reason
	}
	return r
}

func planRows(es []plan.Election) []rows.Election {
	out := make([]rows.Election, len(es))
	for i, e := range es {
		out[i] = planRow(e)
	}
	return out
}

// report prints what became of every partition and sets the exit code.
func (o *preferredOptions) report(planned []plan.Election, results []admin.ElectionResult) error {
	type key struct {
		topic string
		part  int32
	}
	said := map[key]admin.ElectionResult{}
	for _, r := range results {
		said[key{r.Topic, r.Partition}] = r
	}
	out := make([]rows.Election, len(planned))
	var problems []model.Problem
	for i, e := range planned {
		out[i] = planRow(e)
		if r, ok := said[key{e.Topic, e.Partition}]; ok {
			out[i].Done, out[i].Confirmed, out[i].Error = r.Done, r.Confirmed, r.Err
			if r.Done && !r.Confirmed && o.wait > 0 {
				out[i].Error = fmt.Sprintf("elected, but broker %d does not answer as leader yet", e.To)
			}
		}
		if out[i].Error != "" {
			problems = append(problems, model.Problem{Object: fmt.Sprintf("%s:%d", e.Topic, e.Partition), Message: out[i].Error})
		}
	}
	err := verb.List(o.f, rows.ElectionKind, out, problems)
	if len(problems) > 0 && len(problems) == len(out) {
		return &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("no leader moved: %s: %s", problems[0].Object, problems[0].Message)}
	}
	return err
}

func changes(s *model.Snapshot, results []admin.ElectionResult) []factory.Change {
	out := make([]factory.Change, len(results))
	for i, r := range results {
		out[i] = factory.Change{
			Cluster: s.ClusterID, Command: "elect preferred", Object: fmt.Sprintf("%s:%d", r.Topic, r.Partition),
			Before: fmt.Sprintf("leader %d", r.From), After: fmt.Sprintf("leader %d", r.To), Result: "done",
			Undo: fmt.Sprintf("a leader election to broker %d", r.From),
		}
		if r.Err != "" {
			out[i].Result = r.Err
		}
	}
	return out
}
