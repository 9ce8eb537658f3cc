package elect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/journal"
	"kctl/cmd/internal/cli/verb"
)

// lookAgain is the pause before partitions that could not be elected are planned again.
const lookAgain = 500 * time.Millisecond

// changeOf is the change that elects what is planned. What is impossible now is refused, but with a wait: then it is waited
// for, and counts as needed.
func (o *options) changeOf(ctx context.Context, c *admin.Client, planned []plan.Election, s *model.Snapshot, via admin.ElectVia) verb.Change[rows.Election] {
	open := plan.Imbalanced(planned)
	var refused []model.Problem
	if !o.waitGiven {
		for _, e := range impossible(planned) {
			refused = append(refused, model.Problem{Object: name(&e), Message: e.Reason})
		}
	}
	change := verb.Change[rows.Election]{
		Flags: o.change, Kind: rows.ElectionKind, Plan: planRows(o.shown(planned)), Needed: len(open) - len(refused), Fine: len(planned) - len(open),
		Refused: refused,
		Do: func() (verb.Outcome[rows.Election], error) {
			results, err := o.run(ctx, c, planned, via)
			out, problems := o.report(planned, results)
			return verb.Outcome[rows.Election]{Rows: out, Problems: problems, Entries: o.entries(s, results)}, err
		},
	}
	if change.Needed == 0 {
		change.Plan, _ = o.report(planned, nil)
	}
	return change
}

// shown leaves out what needs nothing where that was asked for, or where everything was meant.
func (o *options) shown(planned []plan.Election) []plan.Election {
	if o.all || o.imbalanced {
		return plan.Imbalanced(planned)
	}
	return planned
}

func planRows(es []plan.Election) []rows.Election {
	out := make([]rows.Election, len(es))
	for i := range es {
		out[i] = rows.OfElection(&es[i])
	}
	return out
}

// run carries out a plan. When a wait was asked for, what is impossible now is planned again until it can be
// done, or the time is over.
func (o *options) run(ctx context.Context, c *admin.Client, planned []plan.Election, via admin.ElectVia) ([]admin.ElectionResult, error) {
	deadline := time.Now().Add(o.elect.Wait)
	o.elect.Done = o.progress(len(plan.Moves(planned)))
	results, err := c.Elect(ctx, plan.Moves(planned), via, o.elect)
	if err != nil {
		return failed(plan.Moves(planned), err), err
	}
	if !o.waitGiven {
		return results, nil
	}
	waiting := impossible(planned)
	for said := false; len(waiting) > 0; {
		if left := time.Until(deadline); left <= 0 || ctx.Err() != nil {
			break
		}
		if !said {
			o.f.Say("waiting for %d partition(s), such as %s: %s", len(waiting), name(&waiting[0]), waiting[0].Reason)
			said = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(lookAgain, time.Until(deadline))):
		}
		var more []admin.ElectionResult
		if more, waiting, err = o.tryAgain(ctx, c, waiting, deadline); err != nil {
			return results, nil // what was done is reported; the waiting ones are failures in the report
		}
		results = append(results, more...)
	}
	return results, nil
}

// failed are the results of a request that failed as a whole: the journal has what was asked for, and why nobody knows more.
func failed(moves []plan.Election, err error) []admin.ElectionResult {
	out := make([]admin.ElectionResult, len(moves))
	for i := range moves {
		out[i] = admin.ElectionResult{Election: moves[i], Err: err.Error()}
	}
	return out
}

// tryAgain plans the waiting partitions anew and elects those that can be elected now.
func (o *options) tryAgain(ctx context.Context, c *admin.Client, waiting []plan.Election, deadline time.Time) ([]admin.ElectionResult, []plan.Election, error) {
	again, _, via, err := c.PlanElections(ctx, plan.TargetsOf(waiting), o.elect)
	if err != nil {
		if admin.KindOf(err) == admin.NotFound || errors.Is(err, context.Canceled) {
			return nil, waiting, err
		}
		return nil, waiting, nil // the brokers may be restarting: that is what is waited for
	}
	var results []admin.ElectionResult
	for i := range again {
		if again[i].Action == plan.NotNeeded {
			results = append(results, admin.ElectionResult{Election: again[i], Done: true, Already: true, Confirmed: true})
		}
	}
	if moves := plan.Moves(again); len(moves) > 0 {
		opts := o.elect
		opts.Wait = max(time.Until(deadline), time.Second)
		got, err := c.Elect(ctx, moves, via, opts)
		if err != nil {
			return results, waiting, nil
		}
		results = append(results, got...)
	}
	return results, impossible(again), nil
}

func impossible(planned []plan.Election) []plan.Election {
	var out []plan.Election
	for _, e := range planned {
		if e.Action == plan.Impossible {
			out = append(out, e)
		}
	}
	return out
}

// progress says after each batch but the last how far it is.
func (o *options) progress(total int) func(confirmed, asked int) {
	return func(confirmed, asked int) {
		if asked < total {
			o.f.Say("%d of %d asked for, %d confirmed", asked, total, confirmed)
		}
	}
}

// report is what became of every partition, and what is wrong with some.
func (o *options) report(planned []plan.Election, results []admin.ElectionResult) (out []rows.Election, problems []model.Problem) {
	said := make(map[string]*admin.ElectionResult, len(results))
	for i := range results {
		said[name(&results[i].Election)] = &results[i]
	}
	for i := range planned {
		e := &planned[i]
		row := resultRow(e, said[name(e)], o.elect.Wait)
		if row.Error != "" {
			problems = append(problems, model.Problem{Object: name(e), Message: row.Error})
		}
		if e.Action != plan.NotNeeded || !o.all && !o.imbalanced {
			out = append(out, row)
		}
	}
	return out, problems
}

func resultRow(e *plan.Election, r *admin.ElectionResult, waited time.Duration) rows.Election {
	row := rows.OfElection(e)
	switch {
	case r != nil:
		row = rows.OfElection(&r.Election) // it may have waited: the plan in force is the later one
		row.From = int32(e.From)
		row.Done, row.Confirmed, row.Error = r.Done, r.Confirmed, r.Err
		if row.Error == "" {
			row.Error = r.Unconfirmed(waited)
		}
		row.Result = rows.ElectionDone
		if r.Already {
			row.Result = rows.ElectionAlready
		}
	case e.Action == plan.NotNeeded:
		row.Result = rows.ElectionAlready
	case e.Action == plan.Move:
		row.Error = "it was not asked for"
	}
	if row.Error != "" {
		row.Result = rows.ElectionFailed
	}
	return row
}

// noLeaderBefore is the way back of an election before which no other broker led.
const noLeaderBefore = "none: no other broker led before"

// entries are those of the journal: one for each leader that moved or should have.
func (o *options) entries(s *model.Snapshot, results []admin.ElectionResult) []factory.Change {
	var out []factory.Change
	for i := range results {
		r := &results[i]
		if r.Already {
			continue
		}
		ch := factory.Change{
			Cluster: s.ClusterID, Command: o.command, Object: name(&r.Election), Result: journal.Done,
			Before: fmt.Sprintf("leader %d", r.From), After: fmt.Sprintf("leader %d", r.To),
		}
		switch {
		case r.Err != "":
			ch.Result = r.Err
		case o.elect.Unclean:
			ch.Undo = "nothing can: what the elected replica lacked is gone"
		case r.From >= 0:
			ch = ch.WithUndo("elect", "leader", ch.Object, fmt.Sprint(r.From), "--expect-leader", fmt.Sprint(r.To))
		default:
			ch.Undo = noLeaderBefore
		}
		out = append(out, ch)
	}
	return out
}
