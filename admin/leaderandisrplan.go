package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// LeaderAndISRRoute is the way by which a change reaches the brokers.
type LeaderAndISRRoute string

// The routes. The controller of this project takes the change itself. Apache Kafka's in ZooKeeper mode is told by a
// write of the state znode, a notification, and a reassignment to the same replicas, which makes it send the
// decision (RouteZNode). RouteBreakGlass is the write and the notification on our own brokers, past the controller's
// checks; the controller reads it and carries it out.
const (
	RouteController LeaderAndISRRoute = "controller"
	RouteZNode      LeaderAndISRRoute = "znode"
	RouteBreakGlass LeaderAndISRRoute = "break-glass"
)

// controlKey is LeaderAndIsr: brokers in ZooKeeper mode announce it, those in KRaft mode do not.
const controlKey = int16(kmsg.LeaderAndISR)

// LeaderAndISRRouteOf finds the route on this cluster, or says why there is none.
func (c *Client) LeaderAndISRRouteOf(ctx context.Context, breakGlass bool) (LeaderAndISRRoute, error) {
	wctx, cancel := c.within(ctx)
	defer cancel()
	zk, err := c.supports(wctx, controlKey)
	if err != nil {
		return "", err
	}
	if !zk {
		return "", &Error{
			Kind: BadInput, Msg: "this is a KRaft cluster: its controllers alone decide leader and ISR, and no request sets them",
			Hint: "kctl elect preferred|unclean|leader moves leaders; kctl reassign moves replicas; the leader keeps the ISR by itself",
		}
	}
	can, err := c.ControllerCanSetLeaderAndISR(ctx)
	switch {
	case err != nil && !breakGlass:
		return "", err
	case can && !breakGlass:
		return RouteController, nil
	case c.HasZooKeeper() && can:
		return RouteBreakGlass, nil
	case c.HasZooKeeper():
		return RouteZNode, nil
	case can:
		return "", badInput("--break-glass writes the state znode: it needs -z HOST:PORT/chroot")
	}
	return "", &Error{
		Kind: BadInput, Msg: "Apache Kafka's controller takes no such request: the state znode has to be written, which needs ZooKeeper",
		Hint: "give its address with -z HOST:PORT/chroot; kctl elect leader moves a leader without it",
	}
}

// LeaderAndISRStep is one planned change with what it was planned from.
type LeaderAndISRStep struct {
	Facts plan.LeaderAndISRFacts
	Wish  plan.LeaderAndISRWish
	Plan  plan.LeaderAndISRPlan
	Notes []string // what of a backup cannot be had
	Err   error    // why it is not granted
	raw   bool     // the facts are those of ZooKeeper
}

// Name is TOPIC:P.
func (s *LeaderAndISRStep) Name() string {
	return fmt.Sprintf("%s:%d", s.Facts.State.Topic, s.Facts.State.Partition)
}

// LeaderAndISRFacts reads what a change of the targets is planned from: the state nodes (Metadata without
// ZooKeeper), who is live, min.insync.replicas, and which topics are being deleted.
func (c *Client) LeaderAndISRFacts(ctx context.Context, targets []plan.Target) ([]plan.LeaderAndISRFacts, *model.Snapshot, error) {
	nodes, problems, err := c.LeaderAndISR(ctx, targets)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range problems {
		if len(targets) == 1 && len(nodes) == 0 {
			return nil, nil, &Error{Kind: Failed, Msg: p.Object + ": " + p.Message}
		}
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(targets), MinISR: true, Reassignments: true})
	if err != nil {
		return nil, nil, err
	}
	live := check.Live(s)
	parts := map[cluster.TopicPartition]*model.Partition{}
	deleting := map[string]bool{}
	for i := range s.Topics {
		deleting[s.Topics[i].Name] = s.Topics[i].Deleting
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			parts[p.TP()] = p
		}
	}
	out := make([]plan.LeaderAndISRFacts, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		out[i] = plan.LeaderAndISRFacts{
			State: *n, Live: live, Deleting: deleting[n.Topic], ControllerEpoch: cluster.ControllerEpoch(s.Controller.Epoch),
		}
		if p := parts[cluster.TopicPartition{Topic: n.Topic, Partition: n.Partition}]; p != nil {
			out[i].MinISR, out[i].Reassigning = p.MinISR, len(p.Adding)+len(p.Removing) > 0
		}
	}
	return out, s, nil
}

// PlanLeaderAndISR grants the wish on the facts, or says why not in Err.
func PlanLeaderAndISR(f plan.LeaderAndISRFacts, w plan.LeaderAndISRWish, route LeaderAndISRRoute) LeaderAndISRStep {
	st := LeaderAndISRStep{Facts: f, Wish: w, raw: f.State.Source == model.SourceZooKeeper}
	st.Err = schema(&f.State)
	if route == RouteZNode && f.Reassigning {
		st.Err = &Error{
			Kind: Failed, Msg: st.Name() + " is being reassigned: having the controller send a decision would end that",
			Hint: "wait for it (kctl reassign status) or cancel it",
		}
	}
	if st.Err == nil {
		st.Plan, st.Err = plan.LeaderAndISR(f, w)
	}
	if r, ok := errors.AsType[*plan.LeaderAndISRRefusal](st.Err); ok {
		st.Err = &Error{Kind: BadInput, Msg: r.Msg, Hint: r.Hint}
		if r.Conflict {
			st.Err = &Error{Kind: Failed, Msg: r.Msg, Hint: r.Hint}
		}
	}
	return st
}

// schema refuses a state node of a version that we could only write back as version 1.
func schema(n *model.StateNode) error {
	var doc struct {
		Version int `json:"version"`
	}
	if n.Raw == nil {
		return nil
	}
	if err := json.Unmarshal(n.Raw, &doc); err != nil || doc.Version != 1 {
		return &Error{Kind: Failed, Msg: fmt.Sprintf("%s:%d: the state znode has version %d of its format, and only 1 is known", n.Topic, n.Partition, doc.Version), Hint: "nothing was changed; use a newer kctl"}
	}
	return nil
}

// change is the step as a request to the controller, conditional on what it was planned from.
func (s *LeaderAndISRStep) change() LeaderAndISRChange {
	ch := NewLeaderAndISRChange(s.Facts.State.Topic, s.Facts.State.Partition)
	ch.Leader, ch.ISR, ch.Unclean = s.Plan.Next.Leader, s.Plan.Next.ISR, s.Plan.Unclean
	ch.IfEpoch, ch.IfVersion = s.Facts.State.LeaderEpoch, s.Wish.IfVersion
	if s.raw {
		ch.IfVersion = s.Facts.State.ZKVersion
	}
	return ch
}

// LeaderAndISRFollowed waits until every live replica says itself that it acts in the decision in force; wait 0 asks once.
// It is for steps that change nothing.
func (c *Client) LeaderAndISRFollowed(ctx context.Context, steps []LeaderAndISRStep, wait time.Duration) []LeaderAndISRApplied {
	out := make([]LeaderAndISRApplied, len(steps))
	for i := range steps {
		s := &steps[i].Facts.State
		out[i].LeaderAndISRResult = LeaderAndISRResult{Topic: s.Topic, Partition: s.Partition, LeaderAndISR: s.LeaderAndISR, ZKVersion: s.ZKVersion}
	}
	c.awaitReplicas(ctx, steps, out, max(wait, c.brokerTimeout()))
	return out
}

// ApplyLeaderAndISR carries out steps by the given route, and with wait above zero then waits until every live replica says
// itself that it acts in the decided epoch. One result for each step, in order. A step that changes nothing has Apache
// Kafka's controller send the decision in force again, and is nothing on the other routes.
func (c *Client) ApplyLeaderAndISR(ctx context.Context, steps []LeaderAndISRStep, route LeaderAndISRRoute, wait time.Duration) ([]LeaderAndISRApplied, error) {
	out := make([]LeaderAndISRApplied, len(steps))
	if route == RouteController {
		changes := make([]LeaderAndISRChange, len(steps))
		for i := range steps {
			changes[i] = steps[i].change()
		}
		rs, err := c.SetLeadersAndISRs(ctx, changes)
		if err != nil {
			return nil, err
		}
		for i := range rs {
			out[i].LeaderAndISRResult = rs[i]
		}
	} else {
		for i := range steps {
			s := &steps[i].Facts.State
			out[i].LeaderAndISRResult = LeaderAndISRResult{Topic: s.Topic, Partition: s.Partition, LeaderAndISR: s.LeaderAndISR, ZKVersion: s.ZKVersion}
			if steps[i].Plan.Change {
				out[i].LeaderAndISRResult = c.writeLeaderAndISR(ctx, &steps[i])
			}
		}
		if route == RouteZNode {
			c.kick(ctx, steps, out)
		}
	}
	if wait > 0 {
		c.awaitReplicas(ctx, steps, out, wait)
	}
	return out, nil
}

// LeaderAndISRApplied is the result of one step. WaitingFor lists the live replicas that had not taken it up when the wait
// ended; Confirmed means that there was none.
type LeaderAndISRApplied struct {
	LeaderAndISRResult
	WaitingFor []cluster.BrokerID
}

// awaitReplicas asks every live replica whether it acts in the decided epoch or a later one, again and again.
func (c *Client) awaitReplicas(ctx context.Context, steps []LeaderAndISRStep, results []LeaderAndISRApplied, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for i := range results {
		if results[i].Err != nil {
			continue
		}
		for _, b := range steps[i].Facts.State.Replicas {
			if steps[i].Facts.Live[b] {
				results[i].WaitingFor = append(results[i].WaitingFor, b)
			}
		}
	}
	for {
		c.askReplicas(ctx, results)
		left := 0
		for i := range results {
			results[i].Confirmed = results[i].Err == nil && len(results[i].WaitingFor) == 0
			left += len(results[i].WaitingFor)
		}
		if left == 0 {
			return
		}
		if !pause(ctx) {
			return
		}
	}
}

// askReplicas strikes those that act in the decided epoch off WaitingFor. The leader must answer as leader.
func (c *Client) askReplicas(ctx context.Context, results []LeaderAndISRApplied) {
	type question struct {
		i      int
		leader bool
	}
	by := map[cluster.BrokerID][]question{}
	for i := range results {
		for _, b := range results[i].WaitingFor {
			by[b] = append(by[b], question{i, b == results[i].Leader})
		}
	}
	ids := sortedBrokers(by)
	took := make([][]int, len(ids)) // one slot per broker: no two goroutines share one
	c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		for _, leader := range []bool{true, false} {
			var parts []*model.Partition
			var idx []int
			for _, q := range by[id] {
				if q.leader == leader {
					r := &results[q.i]
					parts = append(parts, &model.Partition{Topic: r.Topic, Partition: r.Partition, LeaderEpoch: r.LeaderEpoch})
					idx = append(idx, q.i)
				}
			}
			if len(parts) == 0 {
				continue
			}
			as := asDebugger
			if leader {
				as = asConsumer
			}
			got, err := c.listOffsets(ctx, id, as, parts, func(p *model.Partition) cluster.LeaderEpoch { return p.LeaderEpoch })
			if err != nil {
				return err
			}
			for k, i := range idx {
				if a, _ := answerOf(got, parts[k].TP()); a == model.AnswerOK || a == model.AnswerAhead {
					took[slices.Index(ids, id)] = append(took[slices.Index(ids, id)], i)
				}
			}
		}
		return nil
	})
	for slot, id := range ids {
		for _, i := range took[slot] {
			results[i].WaitingFor = slices.DeleteFunc(results[i].WaitingFor, func(b cluster.BrokerID) bool { return b == id })
		}
	}
}

func sortedBrokers[V any](by map[cluster.BrokerID]V) []cluster.BrokerID {
	ids := make([]cluster.BrokerID, 0, len(by))
	for id := range by {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
