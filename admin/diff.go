package admin

import (
	"context"
	"slices"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
)

// diffSettle is the time between the two looks of ClusterDiff: news of the controller reach all brokers within it.
const diffSettle = time.Second

// ClusterDiff compares what ZooKeeper, the controller and every broker say about the cluster and the targets (all
// partitions when empty). A difference is returned only when a second look, a moment later, finds it again with the same
// values somewhere apart.
func (c *Client) ClusterDiff(ctx context.Context, targets []plan.Target) ([]check.Difference, []model.Problem, error) {
	if err := c.notOffline(); err != nil { // one side of the comparison is missing, which is no agreement
		return nil, nil, err
	}
	first, problems, err := c.diffOnce(ctx, targets)
	if err != nil || len(first) == 0 {
		return nil, problems, err
	}
	wait := time.NewTimer(diffSettle)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return nil, nil, wrap(ctx.Err(), "compare the brokers")
	case <-wait.C:
	}
	second, problems, err := c.diffOnce(ctx, targets)
	if err != nil {
		return nil, nil, err
	}
	again := map[string]bool{}
	for i := range first {
		again[first[i].Key()] = true
	}
	return slices.DeleteFunc(second, func(d check.Difference) bool { return !again[d.Key()] }), problems, nil
}

func (c *Client) diffOnce(ctx context.Context, targets []plan.Target) ([]check.Difference, []model.Problem, error) {
	needs := []check.Source{check.FromBrokers, check.FromZooKeeper}
	f, problems, err := c.Facts(ctx, FactsOptions{Needs: needs})
	if err != nil {
		return nil, nil, err
	}
	if err := missingTargets(f.Snapshot, targets); err != nil {
		return nil, nil, err
	}
	diffs := slices.DeleteFunc(check.Diff(f), func(d check.Difference) bool {
		return len(targets) > 0 && (d.Topic == "" || !plan.Match(targets, d.Topic, max(d.Partition, 0)))
	})
	return diffs, problems, nil
}

// missingTargets refuses topics and partitions that nobody knows.
func missingTargets(s *model.Snapshot, targets []plan.Target) error {
	for _, t := range targets {
		if !slices.ContainsFunc(s.Topics, func(m model.Topic) bool { return m.Name == t.Topic }) {
			names := make([]string, len(s.Topics))
			for i := range s.Topics {
				names[i] = s.Topics[i].Name
			}
			e := &Error{Kind: NotFound, Msg: "topic " + t.Topic + " does not exist"}
			if near, ok := plan.Nearest(t.Topic, names); ok {
				e.Hint = "did you mean \"" + near + "\"?"
			}
			return e
		}
	}
	return missingPartitions(s, targets)
}
