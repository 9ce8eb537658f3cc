package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type healthOptions struct {
	f            *factory.Factory
	watch        bool
	untilHealthy bool
	interval     time.Duration
	wait         time.Duration
	olderThan    time.Duration
}

func newHealth(f *factory.Factory, run func(context.Context, *healthOptions) error) *cobra.Command {
	o := &healthOptions{f: f}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check the cluster; exit 0 healthy, 10 with findings, 5 unreachable",
		Long: `Check the cluster and list every finding with its evidence and the one command or action that mends it.
Findings of severity info do not make a cluster unhealthy. Nothing is cut off: only where there are many, a plain
table leaves out those of severity info and says how many; -o wide, json and yaml list them all.

` + findingList(),
		Example: `  kctl cluster health
  kctl cluster health --until-healthy --wait 2m      # in a rolling restart
  kctl cluster health -o json | jq '.findings[].id'`,
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.interval <= 0 {
				return exit.Usagef("--interval %s is not above zero", o.interval)
			}
			if o.wait > 0 && !o.untilHealthy && !o.watch {
				return exit.Usagef("--wait %s without --until-healthy waits for nothing", o.wait)
			}
			if run != nil {
				return run(cmd.Context(), o)
			}
			return runHealth(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.watch, "watch", false, "check again and again until interrupted")
	cmd.Flags().BoolVar(&o.untilHealthy, "until-healthy", false, "check again until the cluster is healthy")
	cmd.Flags().DurationVar(&o.interval, "interval", 2*time.Second, "time between checks")
	cmd.Flags().DurationVar(&o.wait, "wait", 0, "give up --until-healthy after this time (0: never)")
	cmd.Flags().DurationVar(&o.olderThan, "older-than", admin.DefaultOlderThan, "age from which an unfinished transition is stuck")
	return cmd
}

func findingList() string {
	s := "Findings:\n"
	for _, id := range check.IDs() {
		s += fmt.Sprintf("  %-20s %s\n", id[0], id[1])
	}
	return s
}

func runHealth(ctx context.Context, o *healthOptions) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	once := func() error {
		findings, s, err := c.Health(ctx, o.olderThan)
		if err = cmp.Or(err, ctx.Err()); err != nil { // cut off: see verb.Watch
			return err
		}
		return o.print(rows.OfFindings(findings, s.Problems))
	}
	if !o.watch && !o.untilHealthy {
		return once()
	}
	if o.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.wait)
		defer cancel()
	}
	healthy := false
	err = verb.Watch(ctx, o.interval, func() (bool, error) {
		err := once()
		if err != nil && ctx.Err() == nil && err.Error() != "" && o.f.IO.ErrTTY {
			o.f.Say("kctl: %v", err)
		}
		healthy = err == nil
		return o.untilHealthy && healthy, err
	})
	if o.untilHealthy && !healthy && err == nil {
		return &exit.Error{Code: exit.Failed, Msg: "interrupted before the cluster was seen healthy"}
	}
	return err
}

// print shows one answer and returns what it means for the exit code: findings before missing parts.
func (o *healthOptions) print(h rows.Health) error {
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	for i := range h.Findings {
		h.Findings[i].Fix = o.f.Runnable(h.Findings[i].Fix)
	}
	switch {
	case p.Format.Machine():
		err = output.Object(p, "Health", h)
	case p.Format == output.Name || len(h.Findings) > 0:
		err = o.printTable(p, h)
	case len(h.Errors) == 0:
		_, err = fmt.Fprintln(o.f.IO.Out, "healthy")
	default:
		_, err = fmt.Fprintln(o.f.IO.Out, "no findings, but not everything could be asked")
	}
	if err != nil {
		return err
	}
	if !h.Healthy {
		return exit.Silent(exit.Problems)
	}
	return verb.PartialRows(h.Errors)
}

// infoMax is the number of info findings up to which a plain table shows them.
const infoMax = 20

func (o *healthOptions) printTable(p *output.Printer, h rows.Health) error {
	shown := h.Findings
	if p.Format == output.Table {
		shown = slices.DeleteFunc(slices.Clone(shown), func(f rows.Finding) bool { return f.Severity == "info" })
		if hidden := len(h.Findings) - len(shown); hidden <= infoMax {
			shown = h.Findings
		} else {
			o.f.Say("and %d findings of severity info: -o wide shows them", hidden)
		}
	}
	if len(shown) == 0 && p.Format == output.Table && len(h.Errors) == 0 {
		_, err := fmt.Fprintln(o.f.IO.Out, "healthy")
		return err
	}
	return output.List(p, rows.FindingKind, shown, nil)
}
