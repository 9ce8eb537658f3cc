package lag

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/groups"
	"kctl/cmd/internal/cli/verb"
)

type groupsOptions struct {
	f        *factory.Factory
	opts     admin.GroupLagOptions
	topics   []string
	targets  []plan.Target
	by       string
	sort     string
	minLag   int64
	maxLag   int64
	maxTime  time.Duration
	watch    bool
	interval time.Duration
}

func newGroups(f *factory.Factory) *cobra.Command {
	o := &groupsOptions{f: f}
	cmd := &cobra.Command{
		Use:   "groups [GROUP...]",
		Short: "Show how far groups are behind, in records and in time",
		Long: `Show for each partition that a group committed an offset of or is reading: who reads it, the committed offset, what a
consumer can reach, and the lag. --time looks up how old the first unread record is (one batch is read per lagging
partition). --by topic or --by group shows sums. Without groups every group is shown.

With --max-lag or --max-time it is a check: exit 10 when a partition is further behind.`,
		Example: `  kctl lag groups audit
  kctl lag groups --by group --sort lag
  kctl lag groups audit --topic orders --time --watch
  kctl lag groups audit --max-lag 10000 --max-time 5m && echo on time`,
		Args: verb.Args(0, -1, "groups"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parse(args, cmd.Flags().Changed("max-lag")); err != nil {
				return err
			}
			return runGroups(cmd.Context(), o)
		},
		ValidArgsFunction: groups.Complete(f),
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&o.topics, "topic", nil, "only this topic, or some of its partitions (TOPIC:0,1); repeatable")
	fl.BoolVar(&o.opts.Time, "time", false, "look up the lag in time")
	fl.StringVar(&o.by, "by", "partition", "a row for each partition, topic (of a group) or group")
	fl.StringVar(&o.sort, "sort", "group", "group, lag or time (longest first)")
	fl.Int64Var(&o.minLag, "min-lag", 0, "only partitions at least so many records behind, or with an error")
	fl.Int64Var(&o.maxLag, "max-lag", -1, "exit 10 when a partition is more records behind")
	fl.DurationVar(&o.maxTime, "max-time", 0, "exit 10 when a partition is further behind in time (implies --time)")
	fl.BoolVar(&o.watch, "watch", false, "show again and again until interrupted")
	fl.DurationVar(&o.interval, "interval", 2*time.Second, "time between two looks")
	for flag, words := range map[string][]string{"by": {"partition", "topic", "group"}, "sort": {"group", "lag", "time"}} {
		_ = cmd.RegisterFlagCompletionFunc(flag, verb.Fixed(words...)) // the only error is a flag that does not exist
	}
	_ = cmd.RegisterFlagCompletionFunc("topic", verb.CompleteTopics(f))
	return cmd
}

func (o *groupsOptions) parse(args []string, maxLag bool) (err error) {
	for _, a := range args {
		if a == "" {
			return exit.Usagef("a group id is empty")
		}
		if !slices.Contains(o.opts.Groups, a) {
			o.opts.Groups = append(o.opts.Groups, a)
		}
	}
	if o.targets, err = verb.Targets(o.topics); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"partition", "topic", "group"}, o.by):
		return exit.Usagef("--by %q is not one of partition, topic, group", o.by)
	case !slices.Contains([]string{"group", "lag", "time"}, o.sort):
		return exit.Usagef("--sort %q is not one of group, lag, time", o.sort)
	case maxLag && o.maxLag < 0:
		return exit.Usagef("--max-lag %d is below 0", o.maxLag)
	case o.maxTime < 0:
		return exit.Usagef("--max-time %s is below zero", o.maxTime)
	}
	o.opts.Time = o.opts.Time || o.maxTime > 0 || o.sort == "time"
	return checkWatch(o.interval, o.minLag)
}

func runGroups(ctx context.Context, o *groupsOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	once := func() error { return o.once(ctx, c) }
	if !o.watch {
		return once()
	}
	return verb.Watch(ctx, o.interval, func() (bool, error) { return false, once() })
}

func (o *groupsOptions) once(ctx context.Context, c *admin.Client) error {
	gs, positions, problems, err := c.GroupLag(ctx, o.opts)
	if err = cmp.Or(err, ctx.Err()); err != nil { // cut off: see verb.Watch
		return err
	}
	bad := 0
	for i := range gs {
		msg := gs[i].Err
		switch {
		case msg != "":
		case gs[i].State == model.GroupDead && o.opts.Groups != nil:
			msg = "it does not exist"
		case gs[i].Type == model.GroupShare:
			msg = "it is a share group: it commits no offsets"
		default:
			continue
		}
		bad++
		problems = append(problems, model.Problem{Object: "group " + gs[i].ID, Message: msg})
	}
	if o.opts.Groups != nil && bad == len(gs) {
		return verb.NothingDone("", problems, "kctl groups list shows the groups")
	}
	out := []rows.GroupLag{}
	for i := range positions {
		p := &positions[i]
		if !plan.Match(o.targets, p.Topic, p.Partition) {
			continue
		}
		if p.Err != "" {
			problems = append(problems, model.Problem{Object: fmt.Sprintf("%s:%d of group %s", p.Topic, p.Partition, p.Group), Message: p.Err})
		}
		if p.Err != "" || o.minLag == 0 || p.Lag >= o.minLag {
			out = append(out, rows.OfGroupPosition(p))
		}
	}
	if err := o.print(out, problems); err != nil {
		return err
	}
	return o.verdict(out)
}

// print shows the rows or their sums; below the rows the total is said.
func (o *groupsOptions) print(out []rows.GroupLag, problems []model.Problem) error {
	if o.by != "partition" {
		totals := rows.GroupLagTotals(out, o.by == "topic")
		slices.SortStableFunc(totals, func(a, b rows.GroupLagTotal) int {
			switch o.sort {
			case "lag":
				return cmp.Compare(b.LagRecords, a.LagRecords)
			case "time":
				return cmp.Compare(msOf(b.LagMs), msOf(a.LagMs))
			}
			return 0
		})
		return verb.List(o.f, rows.GroupLagTotalKind, totals, problems)
	}
	for _, t := range rows.GroupLagTotals(out, false) {
		o.f.Say("group %s: lag %d in %d partition(s), the largest %d %s", t.Group, t.LagRecords, t.Partitions, t.LagMax, t.LagMaxOf)
	}
	slices.SortStableFunc(out, func(a, b rows.GroupLag) int {
		switch o.sort {
		case "lag":
			return cmp.Compare(b.LagRecords, a.LagRecords)
		case "time":
			return cmp.Compare(msOf(b.LagMs), msOf(a.LagMs))
		}
		return 0
	})
	return verb.List(o.f, rows.GroupLagKind, out, problems)
}

// verdict is exit 10 when a partition is further behind than allowed.
func (o *groupsOptions) verdict(out []rows.GroupLag) error {
	n, worst := 0, ""
	for _, r := range out {
		far := o.maxLag >= 0 && r.LagRecords > o.maxLag
		late := o.maxTime > 0 && r.LagMs != nil && *r.LagMs > o.maxTime.Milliseconds()
		if far || late {
			if n++; n == 1 {
				worst = fmt.Sprintf("%s:%d of group %s is %d records behind", r.Topic, r.Partition, r.Group, r.LagRecords)
			}
		}
	}
	if n == 0 {
		return nil
	}
	return &exit.Error{Code: exit.Problems, Msg: fmt.Sprintf("%d partition(s) are too far behind: %s", n, worst)}
}
