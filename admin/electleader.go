package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// LeaderChoice is a planned election of a chosen leader.
type LeaderChoice struct {
	Partition model.Partition // as it was when the plan was made
	Goal      plan.LeaderGoal
	Steps     []plan.LeaderStep // none: the goal is reached
	Direct    bool              // the controller sets the leader itself: one step, the replica list is not touched
	ClusterID string
	Rebalance *RebalanceRisk // nil when the cluster leaves the leader where it is
}

// RebalanceRisk says that the controller gives leadership back to preferred leaders by itself.
type RebalanceRisk struct {
	Every      time.Duration // leader.imbalance.check.interval.seconds
	Percentage int           // leader.imbalance.per.broker.percentage
}

// PlanLeader plans the election of a broker for one partition. order is the replica list in the end, nil for
// the one that is there now. What is not safe is an error of kind BadInput: nothing was written.
func (c *Client) PlanLeader(ctx context.Context, tp cluster.TopicPartition, leader cluster.BrokerID, order []cluster.BrokerID) (*LeaderChoice, error) {
	p, s, err := c.onePartition(ctx, tp)
	if err != nil {
		return nil, err
	}
	g := plan.LeaderGoal{Leader: leader, Order: order}
	if order == nil {
		g.Order = slices.Clone(p.Replicas)
	}
	if err := plan.CheckLeader(p, check.Live(s), g); err != nil {
		return nil, NewBadInput(err)
	}
	lc := &LeaderChoice{Partition: *p, Goal: g, Steps: plan.LeaderSteps(p, g), ClusterID: s.ClusterID}
	if len(lc.Steps) == 0 {
		return lc, nil
	}
	if lc.Direct, err = c.electsDirectly(ctx, lc); err != nil {
		return nil, err
	}
	if lc.Direct {
		lc.Steps = []plan.LeaderStep{plan.LeaderElect}
	} else if err := c.canReorder(ctx, lc.Steps); err != nil {
		return nil, err
	}
	if g.Order[0] != leader {
		lc.Rebalance = c.rebalanceRisk(ctx, s)
	}
	return lc, nil
}

// onePartition reads a partition with what is being reassigned.
func (c *Client) onePartition(ctx context.Context, tp cluster.TopicPartition) (*model.Partition, *model.Snapshot, error) {
	targets := []plan.Target{{Topic: tp.Topic, Partitions: []int32{tp.Partition}}}
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: []string{tp.Topic}, Source: model.SourceProtocol, Reassignments: true, Newest: true})
	if err != nil {
		return nil, nil, err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, err
	}
	for i := range s.Topics[0].Partitions {
		if p := &s.Topics[0].Partitions[i]; p.Partition == tp.Partition {
			return p, s, nil
		}
	}
	return nil, nil, &Error{Kind: NotFound, Msg: fmt.Sprintf("topic %s: %s", tp.Topic, s.Topics[0].Err)}
}

func (c *Client) canReorder(ctx context.Context, steps []plan.LeaderStep) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	for _, need := range []struct {
		key   kmsg.Key
		name  string
		since string
		steps []plan.LeaderStep
	}{
		{kmsg.ElectLeaders, "ElectLeaders", "2.2", []plan.LeaderStep{plan.LeaderElect}},
		{kmsg.AlterPartitionAssignments, "AlterPartitionReassignments", "2.4", []plan.LeaderStep{plan.LeaderReorder, plan.LeaderRestore}},
	} {
		if !slices.ContainsFunc(steps, func(s plan.LeaderStep) bool { return slices.Contains(need.steps, s) }) {
			continue
		}
		highest, err := c.apiVersion(ctx, need.key)
		if err != nil {
			return err
		}
		if highest < 0 {
			return tooOld(need.name, need.since, "")
		}
	}
	return nil
}

// rebalanceRisk reads whether the controller moves leaders back by itself; nil also when that cannot be read.
func (c *Client) rebalanceRisk(ctx context.Context, s *model.Snapshot) *RebalanceRisk {
	ctx, cancel := c.within(ctx)
	defer cancel()
	id := s.Controller.ID
	if id < 0 {
		return nil
	}
	names := []string{"auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds", "leader.imbalance.per.broker.percentage"}
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id)), names
	req.Resources = append(req.Resources, r)
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil
	}
	got := map[string]string{}
	for _, res := range resp.(*kmsg.DescribeConfigsResponse).Resources {
		for _, cfg := range res.Configs {
			if cfg.Value != nil {
				got[cfg.Name] = *cfg.Value
			}
		}
	}
	if got[names[0]] != "true" {
		return nil
	}
	secs, _ := strconv.Atoi(got[names[1]])
	pct, _ := strconv.Atoi(got[names[2]])
	return &RebalanceRisk{Every: time.Duration(secs) * time.Second, Percentage: pct}
}

// ElectLeader carries out a plan, each step only when the partition shows the one before, and waits until the
// broker answers as leader and the replica list has its order. said is called before each step; it may be nil.
// When a step fails or ctx ends after the replica list was changed, the list is put back: the error says
// whether that worked.
func (c *Client) ElectLeader(ctx context.Context, lc *LeaderChoice, wait time.Duration, said func(plan.LeaderStep)) error {
	if said == nil {
		said = func(plan.LeaderStep) {}
	}
	ctx, cancel := context.WithTimeout(ctx, max(wait, c.cfg.Timeout))
	defer cancel()
	if lc.Direct {
		said(plan.LeaderElect)
		return c.electDirectly(ctx, lc)
	}
	if err := c.leaderSteps(ctx, lc, said); err != nil {
		return c.takeBackOrder(ctx, lc, err)
	}
	return nil
}

func (c *Client) leaderSteps(ctx context.Context, lc *LeaderChoice, said func(plan.LeaderStep)) error {
	tp := lc.Partition.TP()
	expect := lc.Partition.Replicas
	var last plan.LeaderStep
	for range 2*len(lc.Steps) + 1 {
		now, _, err := c.onePartition(ctx, tp)
		if err != nil {
			return inStep(ctx, tp, last, err)
		}
		step := plan.NextLeaderStep(now, lc.Goal)
		if step == plan.LeaderReached {
			return nil
		}
		if !slices.Equal(now.Replicas, expect) {
			return &Error{Kind: Failed, Msg: fmt.Sprintf("somebody else changed the replicas of %s to %s meanwhile", partName(tp), check.IDList(now.Replicas))}
		}
		said(step)
		last = step
		switch step {
		case plan.LeaderReorder:
			expect = plan.FirstInOrder(lc.Goal)
			err = c.setOrder(ctx, tp, expect)
		case plan.LeaderRestore:
			expect = lc.Goal.Order
			err = c.setOrder(ctx, tp, expect)
		case plan.LeaderElect:
			err = c.electFirst(ctx, tp, now.Leader, lc.Goal.Leader)
		}
		if err != nil {
			return inStep(ctx, tp, step, err)
		}
	}
	return &Error{Kind: Failed, Msg: fmt.Sprintf("the leader of %s does not stay: somebody else moves it", partName(tp))}
}

// inStep says of an error that came with the end of the time in which step it came.
func inStep(ctx context.Context, tp cluster.TopicPartition, step plan.LeaderStep, err error) error {
	if step == "" || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return &Error{Kind: Unreachable, Msg: fmt.Sprintf("%s: the time ended in the step %q", partName(tp), step), Err: err, Hint: "--wait gives it more time"}
}

// electFirst elects the first replica and waits until it answers as leader and the metadata say so.
func (c *Client) electFirst(ctx context.Context, tp cluster.TopicPartition, from, to cluster.BrokerID) error {
	move := plan.Election{Topic: tp.Topic, Partition: tp.Partition, From: from, To: to, Action: plan.Move}
	got, err := c.electBatch(ctx, []plan.Election{move}, false)
	if err != nil {
		return err
	}
	if got[0].Err != "" {
		return &Error{Kind: Failed, Msg: fmt.Sprintf("elect broker %d for %s: %s", to, partName(tp), got[0].Err)}
	}
	if d, ok := ctx.Deadline(); ok {
		c.confirm(ctx, got, time.Until(d), false)
	}
	if text := got[0].Unconfirmed(time.Second); text != "" {
		return &Error{Kind: Unreachable, Msg: partName(tp) + ": " + text}
	}
	return c.awaitPartition(ctx, tp, func(p *model.Partition) bool { return p.Leader == to })
}

// setOrder changes the order of a replica list. The set stays the same, so no data moves: the controller
// writes the new list at once (KIP-455; in ZooKeeper mode with a new leader epoch and the same leader).
func (c *Client) setOrder(ctx context.Context, tp cluster.TopicPartition, order []cluster.BrokerID) error {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = c.serverTimeout()
	t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	p.Partition, p.Replicas = tp.Partition, cluster.IDsToInt32(order)
	t.Topic, t.Partitions = tp.Topic, append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	actx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.askController(actx, req, func(r kmsg.Response) bool {
		return r.(*kmsg.AlterPartitionAssignmentsResponse).ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return err
	}
	r := resp.(*kmsg.AlterPartitionAssignmentsResponse)
	if err := brokerErr(kmsg.AlterPartitionAssignments, r.ErrorCode, r.ErrorMessage); err != nil {
		return wrap(err, "order the replicas of %s", partName(tp))
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if err := brokerErr(kmsg.AlterPartitionAssignments, p.ErrorCode, p.ErrorMessage); err != nil {
				return wrap(err, "order the replicas of %s", partName(tp))
			}
		}
	}
	return c.awaitPartition(ctx, tp, func(p *model.Partition) bool {
		return slices.Equal(p.Replicas, order) && len(p.Adding)+len(p.Removing) == 0
	})
}

// awaitPartition looks until a partition is as it should be.
func (c *Client) awaitPartition(ctx context.Context, tp cluster.TopicPartition, ok func(*model.Partition) bool) error {
	for {
		p, _, err := c.onePartition(ctx, tp)
		if err == nil && ok(p) {
			return nil
		}
		if !pause(ctx) {
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return &Error{Kind: Unreachable, Msg: fmt.Sprintf("%s: the brokers do not show the change in time", partName(tp))}
		}
	}
}

// takeBackOrder puts the replica list back after a failure, unless it is in order, or somebody else's.
func (c *Client) takeBackOrder(ctx context.Context, lc *LeaderChoice, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
	defer cancel()
	tp := lc.Partition.TP()
	e := &Error{Kind: KindOf(cause), Hint: HintOf(cause), Err: cause}
	if errors.Is(cause, context.Canceled) {
		e.Err = errors.New("interrupted")
	}
	if slices.Equal(lc.Partition.Replicas, lc.Goal.Order) && !slices.Contains(lc.Steps, plan.LeaderReorder) {
		e.Msg = "the replica list was not changed"
		return e
	}
	now, _, err := c.onePartition(ctx, tp)
	ours := err == nil && slices.Equal(now.Replicas, plan.FirstInOrder(lc.Goal))
	switch {
	case err == nil && slices.Equal(now.Replicas, lc.Goal.Order):
		e.Msg = "the replica list is in its order"
		return e
	case ours && c.putBack(ctx, tp, lc.Goal.Order):
		e.Msg = "the replica list was put back into its order"
		return e
	}
	return &OrderLeft{Choice: lc, Err: e.Err, Kind: e.Kind}
}

// putBack sets the order, and looks once more when no answer came: a slow controller may have done it.
func (c *Client) putBack(ctx context.Context, tp cluster.TopicPartition, order []cluster.BrokerID) bool {
	if err := c.setOrder(ctx, tp, order); err == nil {
		return true
	}
	ctx, cancel := c.within(context.WithoutCancel(ctx))
	defer cancel()
	now, _, err := c.onePartition(ctx, tp)
	return err == nil && slices.Equal(now.Replicas, order)
}

// OrderLeft says that a replica list may be left in an order that was meant to be temporary.
type OrderLeft struct {
	Choice *LeaderChoice
	Kind   Kind
	Err    error
}

// Error names the partition and the order that is owed.
func (e *OrderLeft) Error() string {
	return fmt.Sprintf("%v; the replica list of %s may be left as %s, and could not be put back to %s", e.Err,
		partName(e.Choice.Partition.TP()), check.IDList(plan.FirstInOrder(e.Choice.Goal)), check.IDList(e.Choice.Goal.Order))
}

// Unwrap returns why the election did not end.
func (e *OrderLeft) Unwrap() error { return e.Err }

// partName writes a partition as kctl's arguments have it.
func partName(tp cluster.TopicPartition) string { return fmt.Sprintf("%s:%d", tp.Topic, tp.Partition) }
