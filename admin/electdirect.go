package admin

import (
	"context"
	"time"

	"kctl/admin/plan"
)

// electsDirectly reports whether the leader is set by the controller itself: when the replica list stays as it
// is and the controller is one of ours.
func (c *Client) electsDirectly(ctx context.Context, lc *LeaderChoice) (bool, error) {
	now := lc.Partition
	now.Leader = lc.Goal.Leader
	if plan.NextLeaderStep(&now, lc.Goal) != plan.LeaderReached {
		return false, nil // the order is to be changed as well
	}
	return c.ControllerCanSetLeaderAndISR(ctx)
}

// electDirectly has the controller set the leader, on the condition that the partition is still in the epoch
// of the plan, and waits until the broker answers as leader.
func (c *Client) electDirectly(ctx context.Context, lc *LeaderChoice) error {
	ch := NewLeaderAndISRChange(lc.Partition.Topic, lc.Partition.Partition)
	ch.Leader = lc.Goal.Leader
	if lc.Partition.LeaderEpoch >= 0 {
		ch.IfEpoch = lc.Partition.LeaderEpoch
	}
	r, err := c.SetLeaderAndISR(ctx, ch)
	name := partName(lc.Partition.TP())
	if err != nil {
		return wrap(err, "make broker %d the leader of %s", lc.Goal.Leader, name)
	}
	got := []ElectionResult{{Done: true, Election: plan.Election{
		Topic: ch.Topic, Partition: ch.Partition, From: lc.Partition.Leader, To: r.Leader, Action: plan.Move,
	}}}
	wait := c.cfg.Timeout
	if d, ok := ctx.Deadline(); ok {
		wait = time.Until(d)
	}
	c.confirm(ctx, got, wait, false)
	if text := got[0].Unconfirmed(wait); text != "" {
		return &Error{Kind: Unreachable, Msg: name + ": " + text, Hint: "kctl transitions " + name + " shows what it waits for"}
	}
	return nil
}
