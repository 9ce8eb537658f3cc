// Package doctor runs every check over one reading of the cluster and names the command that mends each finding.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
	"kctl/cmd/internal/cli/verb"
)

type options struct {
	f         *factory.Factory
	checks    []string
	list      bool
	explain   string
	severity  string
	sample    time.Duration
	olderThan time.Duration
}

// New returns the verb.
func New(f *factory.Factory) *cobra.Command {
	o := &options{f: f}
	cmd := &cobra.Command{
		Use:   "doctor [CHECK...]",
		Short: "Run every check: finding, evidence, and the one command that mends it",
		Long: `Read everything once, brokers and ZooKeeper side by side, and run every check over it (or those that are named). Each
finding has a stable id, what was seen, and the one command that mends it; what stands behind # in a fix is work that
no command can do from here. Nothing is changed.

A check whose sources are missing (no -z, a broker that does not answer) is listed as skipped, with the reason; the
others run. Replicas that are behind are looked at twice, --sample apart.

Exit 0 when no finding is worse than info, 10 otherwise, 3 when nothing was found but something could not be read.`,
		Example: `  kctl doctor
  kctl doctor offline-partition isr-stuck throttle-left -z zk1:2181/kafka
  kctl doctor --severity warning -o json | jq -r '.findings[].fix'
  kctl doctor --explain isr-stuck`,
		Args: func(_ *cobra.Command, args []string) error { return known(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			o.checks = args
			if err := o.validate(); err != nil {
				return err
			}
			switch {
			case o.list:
				return listChecks(o)
			case o.explain != "":
				return explain(o)
			}
			return run(cmd.Context(), o)
		},
		ValidArgsFunction: completeChecks,
	}
	cmd.Flags().BoolVar(&o.list, "list", false, "list the checks and what each needs; contact nobody")
	cmd.Flags().StringVar(&o.explain, "explain", "", "say what a finding means, how it comes about and how to mend it; contact nobody")
	cmd.Flags().StringVar(&o.severity, "severity", "info", "show findings of this severity and worse: critical|warning|info")
	cmd.Flags().DurationVar(&o.sample, "sample", admin.DefaultSample, "time between two looks at replicas that are behind")
	cmd.Flags().DurationVar(&o.olderThan, "older-than", admin.DefaultOlderThan, "age from which an unfinished transition is stuck")
	// The only error is a flag that does not exist, which every run would show.
	_ = cmd.RegisterFlagCompletionFunc("severity", verb.Fixed("critical", "warning", "info"))
	_ = cmd.RegisterFlagCompletionFunc("explain", completeChecks)
	return cmd
}

func ids() []string {
	var out []string
	for _, c := range check.Checks() {
		out = append(out, c.ID)
	}
	return out
}

// known refuses check ids that do not exist and names the nearest.
func known(args []string) error {
	all := ids()
	for _, a := range args {
		if slices.Contains(all, a) {
			continue
		}
		e := &exit.Error{Code: exit.Usage, Msg: fmt.Sprintf("check %q does not exist", a), Hint: "kctl doctor --list"}
		if near, ok := plan.Nearest(a, all); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e
	}
	return nil
}

func (o *options) validate() error {
	if !slices.Contains([]string{"critical", "warning", "info"}, o.severity) {
		return exit.Usagef("--severity %q is not critical, warning or info", o.severity)
	}
	if o.sample <= 0 || o.olderThan <= 0 {
		return exit.Usagef("--sample and --older-than must be above zero")
	}
	if o.explain != "" {
		return known([]string{o.explain})
	}
	return nil
}

func completeChecks(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, c := range check.Checks() {
		if !slices.Contains(args, c.ID) {
			out = append(out, c.ID+"\t"+c.Summary)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func listChecks(o *options) error {
	var out []rows.CheckInfo
	for _, c := range check.Checks() {
		if (len(o.checks) == 0 || slices.Contains(o.checks, c.ID)) && check.AtLeast(c.Severity, model.Severity(o.severity)) {
			out = append(out, rows.OfCheck(c))
		}
	}
	return verb.List(o.f, rows.CheckKind, out, nil)
}

func explain(o *options) error {
	all := check.Checks()
	c := all[slices.IndexFunc(all, func(c check.Check) bool { return c.ID == o.explain })]
	if o.f.Machine() {
		return verb.One(o.f, rows.CheckKind, rows.OfCheck(c), nil)
	}
	_, err := fmt.Fprint(o.f.IO.Out, check.Page(c))
	return err
}

// needs are the sources of the checks that were asked for; nil for all of them.
func needs(checks []string) []check.Source {
	if len(checks) == 0 {
		return nil
	}
	var out []check.Source
	for _, c := range check.Checks() {
		if slices.Contains(checks, c.ID) {
			out = append(append(out, c.Needs...), check.Also(c.ID)...)
		}
	}
	return out
}

func run(ctx context.Context, o *options) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	facts, problems, err := c.Facts(ctx, admin.FactsOptions{
		Needs: needs(o.checks), OlderThan: o.olderThan, Sample: o.sample, Now: o.f.Now(),
	})
	if err != nil {
		return err
	}
	return o.print(rows.OfDiagnosis(check.Diagnose(facts, o.checks), problems, model.Severity(o.severity)))
}

// print shows the answer and returns what it means for the exit code: findings before missing parts.
func (o *options) print(d rows.Doctor) error {
	p, err := o.f.Printer()
	if err != nil {
		return err
	}
	for i := range d.Findings {
		d.Findings[i].Fix = o.f.Runnable(d.Findings[i].Fix)
	}
	if p.Format.Machine() {
		err = output.Object(p, "Doctor", d)
	} else {
		err = o.printText(p, d)
	}
	if err != nil {
		return err
	}
	if !d.Healthy {
		return exit.Silent(exit.Problems)
	}
	if len(d.Errors) > 0 {
		return &exit.Error{Code: exit.Partial, Msg: "partly answered: " + d.Errors[0].Object + ": " + d.Errors[0].Message}
	}
	return nil
}

func (o *options) printText(p *output.Printer, d rows.Doctor) error {
	if len(d.Findings) > 0 {
		if err := output.List(p, rows.FindingKind, d.Findings, nil); err != nil {
			return err
		}
	}
	for _, e := range d.Errors {
		o.f.Say("not read: %s: %s", e.Object, e.Message)
	}
	by := map[string][]string{}
	var reasons []string
	for _, s := range d.Skipped {
		if by[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		by[s.Reason] = append(by[s.Reason], s.Check)
	}
	for _, r := range reasons {
		o.f.Say("%d checks skipped: %s: %s", len(by[r]), r, strings.Join(by[r], ", "))
	}
	o.f.Say("%d checks, %d findings", d.Ran, len(d.Findings))
	return nil
}
