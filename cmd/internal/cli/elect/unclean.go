package elect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
)

func newUnclean(f *factory.Factory) *cobra.Command {
	o := &options{f: f, command: "elect unclean"}
	return o.newCommand("unclean (TOPIC[:P,..]... | --all | --file FILE)",
		"Give partitions without a leader to a replica that may lack records",
		`Have the controller elect a leader for partitions that have none, also from outside the ISR. COMMITTED RECORDS
THAT THE ELECTED REPLICA LACKS ARE LOST, also when the broker that has them comes back: it cuts its log.

What can be lost is printed first: for every replica whether its broker is registered, whether it was in sync,
where its log ends and in which leader epoch. Partitions that a broker leads are left alone, whatever else is
named. The controller takes the first live replica that is in sync, else the first live one of the list.

--dry-run prints the candidates only.`,
		`  kctl elect unclean --all --dry-run
  kctl elect unclean orders:3
  kctl elect unclean --file lost.json --yes`, runUnclean)
}

func runUnclean(ctx context.Context, o *options) error {
	c, err := o.f.Admin(ctx)
	if err != nil {
		return err
	}
	o.elect.Unclean, o.elect.Via = true, admin.ElectViaProtocol
	planned, s, via, err := c.PlanElections(ctx, o.targets, o.elect)
	if err != nil {
		return err
	}
	open, moves := plan.Imbalanced(planned), plan.Moves(planned)
	candidates := c.UncleanCandidates(ctx, s, open)
	change := o.changeOf(ctx, c, planned, s, via)
	change.Question = fmt.Sprintf("elect %d leader(s), %d outside the ISR: records that they lack are LOST. Go on?", len(open), unclean(moves))
	change.ShowPlan = func() error { return o.printLoss(candidates, moves) }
	if o.change.DryRun {
		o.f.Say("dry run: %d of %d partitions have no leader, %d can be elected, %d of them uncleanly", len(open), len(planned), len(moves), unclean(moves))
		change.ShowPlan = func() error { return nil }
		change.Answer = func(p *output.Printer, _ []rows.Election, errs []rows.ErrorRow) error {
			return output.List(p, rows.CandidateKind, candidateRows(candidates), errs)
		}
	}
	return change.Run(o.f)
}

func unclean(moves []plan.Election) int {
	n := 0
	for _, m := range moves {
		if m.Unclean {
			n++
		}
	}
	return n
}

func candidateRows(cs []model.Candidate) []rows.Candidate {
	out := make([]rows.Candidate, len(cs))
	for i := range cs {
		out[i] = rows.OfCandidate(&cs[i])
	}
	return out
}

// printLoss says what an election would cost, before anybody is asked.
func (o *options) printLoss(cs []model.Candidate, moves []plan.Election) error {
	if o.f.Machine() {
		return nil
	}
	o.f.Say("%d partition(s) have no leader; %d would be led by a replica outside the ISR:", len(moves), unclean(moves))
	p := &output.Printer{Out: o.f.IO.Err, Format: output.Table, TTY: o.f.IO.ErrTTY}
	if err := output.List(p, rows.CandidateKind, candidateRows(cs), nil); err != nil {
		return err
	}
	for i := range cs {
		if cs[i].Chosen {
			o.f.Say("%s:%d (last leader epoch %d): broker %d leads; lost: %s", cs[i].Topic, cs[i].Partition, cs[i].LeaderEpoch, cs[i].Broker, cs[i].Loss)
		}
	}
	return nil
}
