package reassign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/plan/reassign"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

type statusOptions struct {
	f        *factory.Factory
	targets  []plan.Target
	via      string
	watch    bool
	interval time.Duration
	meters   map[replica]*reassign.Meter
	problems []model.Problem // why the rows come from ZooKeeper
}

type replica struct {
	tp cluster.TopicPartition
	id cluster.BrokerID
}

func newStatus(f *factory.Factory) *cobra.Command {
	o := &statusOptions{f: f, meters: map[replica]*reassign.Meter{}}
	cmd := &cobra.Command{
		Use:   "status [TOPIC[:P,..]...]",
		Short: "Show the reassignments that are under way, whoever asked for them",
		Long: `Show one row for each replica that is being added: from where to where, how many bytes are left by the sizes of the
logs, and with --watch at what rate and for how long. A partition that only loses or reorders replicas is a row
without a broker.`,
		Example: `  kctl reassign status
  kctl reassign status orders --watch`,
		Args: verb.Args(0, -1, "topics"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.targets, err = verb.Targets(args); err != nil {
				return err
			}
			if o.interval <= 0 {
				return exit.Usagef("--interval %s is not above zero", o.interval)
			}
			if err := checkVia(o.via); err != nil {
				return err
			}
			return runStatus(cmd.Context(), o)
		},
		ValidArgsFunction: verb.CompleteTopics(f),
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "print again and again, until nothing is under way")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks with --watch")
	cmd.Flags().StringVar(&o.via, "via", admin.ViaAuto, viaUsage)
	return cmd
}

func runStatus(ctx context.Context, o *statusOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	via, silent, err := c.ReassignVia(ctx, o.via)
	if o.watch && errors.Is(ctx.Err(), context.Canceled) {
		return nil // interrupted, which ends a watch
	}
	if err != nil {
		return err
	}
	switch {
	case silent != nil && o.watch:
		o.f.Say("as ZooKeeper has it: %s", silent)
	case silent != nil:
		o.problems = []model.Problem{{Object: "brokers", Message: silent.Error()}}
	}
	if !o.watch {
		_, err := o.once(ctx, c, via)
		return err
	}
	return verb.Watch(ctx, o.interval, func() (bool, error) {
		n, err := o.once(ctx, c, via)
		return n == 0 && err == nil, err
	})
}

// once prints what is under way now and returns the number of rows.
func (o *statusOptions) once(ctx context.Context, c *admin.Client, via string) (int, error) {
	view, _, err := c.ReassignView(ctx, via, nil)
	if err == nil {
		err = known(view, o.targets)
	}
	if err != nil {
		return 0, err
	}
	var parts []cluster.TopicPartition
	var ids []cluster.BrokerID
	for tp, seen := range view.Parts {
		if !seen.Reassigning() || !plan.Match(o.targets, tp.Topic, tp.Partition) {
			continue
		}
		parts = append(parts, tp)
		for _, id := range slices.Concat(seen.Replicas, seen.Target()) {
			if _, live := slices.BinarySearch(view.Live, id); live && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(parts, cluster.TopicPartition.Compare)
	var copies admin.Copies
	silent := map[string]string{}
	if len(parts) > 0 {
		got, problems := c.Copies(ctx, ids, parts)
		copies = got
		for _, p := range problems {
			silent[p.Object] = p.Message
		}
	}
	if err := ctx.Err(); err != nil { // cut off: see verb.Watch
		return 0, err
	}
	var out []rows.Reassignment
	for _, tp := range parts {
		seen := view.Parts[tp]
		out = append(out, o.rowsOf(tp, &seen, copies, silent, view.Live)...)
	}
	return len(out), verb.List(o.f, rows.ReassignmentKind, out, o.problems)
}

// rowsOf makes the rows of one partition.
func (o *statusOptions) rowsOf(tp cluster.TopicPartition, seen *reassign.Seen, copies admin.Copies, silent map[string]string, live []cluster.BrokerID) []rows.Reassignment {
	added := seen.Adding
	if seen.Queued != nil {
		added = nil
		for _, id := range seen.Queued {
			if !slices.Contains(seen.Original(), id) {
				added = append(added, id)
			}
		}
	}
	row := rows.Reassignment{
		Topic: tp.Topic, Partition: tp.Partition, Broker: -1, From: cluster.IDsToInt32(seen.Original()), To: cluster.IDsToInt32(seen.Target()),
		BytesTotal: -1, BytesDone: -1, BytesLeft: -1, Rate: -1, ETASeconds: -1,
	}
	if len(added) == 0 {
		return []rows.Reassignment{row}
	}
	var out []rows.Reassignment
	for _, id := range added {
		r := row
		r.Broker, r.InSync = int32(id), slices.Contains(seen.ISR, id)
		_, up := slices.BinarySearch(live, id)
		switch problem := silent[fmt.Sprintf("broker %d", id)]; {
		case !up:
			r.Error = fmt.Sprintf("broker %d is not live: the reassignment waits for it", id)
		case problem != "":
			r.Error = problem
		case copies[tp] != nil:
			c := reassign.CopiedOf(seen, copies.Sizes(tp), id)
			r.BytesTotal, r.BytesDone, r.BytesLeft = c.Total, c.Done, c.Left()
			o.measure(&r, replica{tp, id}, c)
		}
		out = append(out, r)
	}
	return out
}

func (o *statusOptions) measure(r *rows.Reassignment, key replica, c reassign.Copied) {
	m := o.meters[key]
	if m == nil {
		m = &reassign.Meter{}
		o.meters[key] = m
		m.Add(o.f.Now(), c.Done)
		return
	}
	m.Add(o.f.Now(), c.Done)
	r.Rate = int64(m.Rate())
	if eta, ok := m.ETA(c.Left()); ok {
		r.ETASeconds = int64(eta.Seconds())
	}
}
