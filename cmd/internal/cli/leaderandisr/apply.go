package leaderandisr

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kctl/admin"
	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/verb"
	"kctl/zkutil/cluster"
)

// The actions of rows.LeaderAndISRChange.
const (
	actionChanged     = "changed"
	actionInForce     = "in-force"
	actionWouldChange = "would-change"
	actionSentAgain   = "sent-again"
	actionRefused     = "refused"
)

// apply shows the planned steps, asks, carries them out, waits, and prints what became of each.
func (o *applyOptions) apply(ctx context.Context, c *admin.Client, steps []admin.LeaderAndISRStep, route admin.LeaderAndISRRoute, s *model.Snapshot) error {
	out := make([]rows.LeaderAndISRChange, len(steps))
	var todo []int
	for i := range steps {
		out[i] = planned(&steps[i], route)
		if steps[i].Err == nil && steps[i].Plan.Change {
			todo = append(todo, i)
		}
		o.show(&steps[i])
	}
	if o.change.DryRun {
		o.f.Say("dry run: %d of %d partitions would change", len(todo), len(steps))
		return o.print(out)
	}
	if err := o.inForce(ctx, c, steps, out, route, &todo); err != nil {
		return err
	}
	if len(todo) == 0 {
		return o.print(out)
	}
	doing := make([]admin.LeaderAndISRStep, len(todo))
	for k, i := range todo {
		doing[k] = steps[i]
	}
	err := o.f.Commit(o.change, fmt.Sprintf("decide %d partition(s) anew?", len(todo)), func() ([]factory.Change, error) {
		if err := writeBackup(o.backup, s, doing, o.f.Now()); err != nil {
			return nil, err
		}
		done, err := c.ApplyLeaderAndISR(ctx, doing, route, o.wait)
		if err != nil {
			return o.changes(s, doing, nil, err), err
		}
		for k, i := range todo {
			result(&out[i], &steps[i], &done[k], o.wait)
		}
		return o.changes(s, doing, done, nil), nil
	})
	if err != nil {
		return err
	}
	return o.print(out)
}

// inForce looks whether the brokers follow the decisions that need no change. On Apache Kafka those that are not
// followed are sent again.
func (o *applyOptions) inForce(ctx context.Context, c *admin.Client, steps []admin.LeaderAndISRStep, out []rows.LeaderAndISRChange, route admin.LeaderAndISRRoute, todo *[]int) error {
	var idx []int
	var same []admin.LeaderAndISRStep
	for i := range steps {
		if steps[i].Err == nil && !steps[i].Plan.Change {
			idx, same = append(idx, i), append(same, steps[i])
		}
	}
	if len(same) == 0 || o.wait == 0 {
		return nil
	}
	wait := o.wait
	if route == admin.RouteZNode {
		wait = min(wait, 2*time.Second) // what is not followed by then is stuck: it is sent again
	}
	for k, r := range c.LeaderAndISRFollowed(ctx, same, wait) {
		i := idx[k]
		out[i].Confirmed, out[i].WaitingFor = r.Confirmed, rows.IDs(r.WaitingFor)
		switch {
		case r.Confirmed:
			o.f.Say("%s: in force already, and followed", steps[i].Name())
		case route == admin.RouteZNode:
			o.f.Say("%s: in force already, but not followed by %s: the controller will be made to send it again", steps[i].Name(), rows.IntList(rows.IDs(r.WaitingFor)))
			*todo = append(*todo, i)
		default:
			out[i].Error = fmt.Sprintf("in force already, but not followed by %s", rows.IntList(rows.IDs(r.WaitingFor)))
		}
	}
	slices.Sort(*todo)
	return nil
}

// planned is the row of a step before it is carried out.
func planned(st *admin.LeaderAndISRStep, route admin.LeaderAndISRRoute) rows.LeaderAndISRChange {
	now := &st.Facts.State
	r := rows.LeaderAndISRChange{
		Topic: now.Topic, Partition: now.Partition, Action: actionInForce, Via: string(route),
		OldLeader: int32(now.Leader), OldEpoch: int32(now.LeaderEpoch), OldISR: rows.IDs(now.ISR), OldZKVersion: rows.Version(now.ZKVersion),
		Leader: int32(now.Leader), LeaderEpoch: int32(now.LeaderEpoch), ISR: rows.IDs(now.ISR), ZKVersion: rows.Version(now.ZKVersion),
		WaitingFor: []int32{}, Warnings: append(append([]string{}, st.Notes...), st.Plan.Warnings...), UnknownFields: append([]string{}, now.UnknownFields...),
	}
	switch {
	case st.Err != nil:
		r.Action, r.Error = actionRefused, st.Err.Error()
	case st.Plan.Change:
		n := &st.Plan.Next
		r.Action, r.Leader, r.LeaderEpoch, r.ISR = actionWouldChange, int32(n.Leader), int32(n.LeaderEpoch), rows.IDs(n.ISR)
		if now.ZKVersion >= 0 {
			r.ZKVersion = rows.Version(now.ZKVersion + 1)
		}
	}
	return r
}

// show prints the difference that a step makes.
func (o *applyOptions) show(st *admin.LeaderAndISRStep) {
	now := &st.Facts.State
	switch n := &st.Plan.Next; {
	case st.Err != nil:
		o.f.Say("%s: %v", st.Name(), st.Err)
	case st.Plan.Change:
		o.f.Say("%s:", st.Name())
		line := func(what, from, to string) {
			mark := "  "
			if from != to {
				mark, to = "* ", from+" -> "+to
			}
			o.f.Say("  %s%-13s %s", mark, what, to)
		}
		line("leader", idText(now.Leader), idText(n.Leader))
		line("isr", rows.IntList(rows.IDs(now.ISR)), rows.IntList(rows.IDs(n.ISR)))
		line("leader epoch", fmt.Sprint(now.LeaderEpoch), fmt.Sprint(n.LeaderEpoch))
		line("replicas", rows.IntList(rows.IDs(now.Replicas)), rows.IntList(rows.IDs(now.Replicas)))
		if now.ZKVersion >= 0 {
			line("znode version", fmt.Sprint(now.ZKVersion), fmt.Sprint(now.ZKVersion+1))
		}
	}
	for _, w := range append(append([]string{}, st.Notes...), st.Plan.Warnings...) {
		o.f.Say("  ! %s", w)
	}
}

func idText(b cluster.BrokerID) string { return rows.IDText(int32(b)) }

// result fills the row of a step that was carried out.
func result(r *rows.LeaderAndISRChange, st *admin.LeaderAndISRStep, done *admin.LeaderAndISRApplied, wait time.Duration) {
	r.Leader, r.LeaderEpoch, r.ISR, r.ZKVersion = int32(done.Leader), int32(done.LeaderEpoch), rows.IDs(done.ISR), rows.Version(done.ZKVersion)
	r.Confirmed, r.WaitingFor = done.Confirmed, rows.IDs(done.WaitingFor)
	switch {
	case done.Err != nil:
		r.Action, r.Error = actionRefused, done.Err.Error()
		if done.Changed {
			r.Action = actionChanged
		}
		return
	case !st.Plan.Change:
		r.Action = actionSentAgain
	case done.Changed:
		r.Action = actionChanged
	default:
		r.Action = actionInForce
	}
	if wait > 0 && !done.Confirmed {
		r.Error = fmt.Sprintf("decided, but not followed by %s within %s", rows.IntList(r.WaitingFor), wait)
	}
}

// print prints the rows; with every row refused it is a failure with the reason of the first.
func (o *applyOptions) print(out []rows.LeaderAndISRChange) error {
	var problems []model.Problem
	refused := 0
	for _, r := range out {
		if r.Error != "" {
			problems = append(problems, model.Problem{Object: fmt.Sprintf("%s:%d", r.Topic, r.Partition), Message: r.Error})
		}
		if r.Action == actionRefused {
			refused++
		}
	}
	err := verb.List(o.f, rows.LeaderAndISRChangeKind, out, problems)
	if refused > 0 && refused == len(out) {
		return verb.NothingDone("nothing was changed: ", problems, "")
	}
	return err
}

// changes are the journal's entries: the znode's bytes before, where they were read, are a backup by themselves.
func (o *applyOptions) changes(s *model.Snapshot, steps []admin.LeaderAndISRStep, done []admin.LeaderAndISRApplied, err error) []factory.Change {
	out := make([]factory.Change, len(steps))
	for i := range steps {
		now, next := &steps[i].Facts.State, steps[i].Plan.Next
		ch := factory.Change{Cluster: s.ClusterID, Command: o.command, Object: steps[i].Name(), Before: text(now.LeaderAndISR), After: text(next), Result: "done"}
		if now.Raw != nil {
			ch.Before = string(now.Raw)
		}
		if done != nil {
			ch.After = text(done[i].LeaderAndISR)
			err = done[i].Err
		}
		if err != nil {
			ch.Result = err.Error()
		}
		switch {
		case now.Leader >= 0 && now.Leader != next.Leader && slices.Contains(next.ISR, now.Leader):
			ch = ch.WithUndo("elect", "leader", steps[i].Name(), fmt.Sprint(int32(now.Leader)), "--expect-leader", fmt.Sprint(int32(next.Leader)))
		case len(next.ISR) < len(now.ISR):
			ch.Undo = "none needed: the leader lets the replicas in again when they have caught up"
		}
		out[i] = ch
	}
	return out
}

func text(l cluster.LeaderAndISR) string {
	return fmt.Sprintf("leader %s, isr %s, epoch %d", idText(l.Leader), rows.IntList(rows.IDs(l.ISR)), l.LeaderEpoch)
}
