package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

// Leftovers reads the cluster and finds what is left behind and older than the given age.
func (c *Client) Leftovers(ctx context.Context, older time.Duration, now time.Time) ([]check.Leftover, []model.Problem, error) {
	f, problems, err := c.Facts(ctx, FactsOptions{
		Needs: []check.Source{check.FromZooKeeper, check.FromConfigs, check.FromLogDirs}, Now: now, leftovers: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return check.Leftovers(f, older), problems, nil
}

// LeftoverResult is what became of one leftover.
type LeftoverResult struct {
	check.Leftover
	Removed bool
	Err     error
}

// CleanLeftovers takes leftovers away: a znode only at the version that was read, so that whatever was written meanwhile
// stays; a throttle by the brokers' own request. Those with Keep are left alone. The results are in the order of items.
func (c *Client) CleanLeftovers(ctx context.Context, items []check.Leftover) []LeftoverResult {
	ctx, cancel := c.within(ctx)
	defer cancel()
	out := make([]LeftoverResult, len(items))
	var changes []plan.ConfigChange
	for i, it := range items {
		out[i] = LeftoverResult{Leftover: it}
		switch {
		case it.Node != nil:
			out[i].Removed, out[i].Err = c.deleteNode(ctx, it.Node)
		case it.Throttle != nil:
			changes = append(changes, plan.ConfigChange{
				Resource: throttled(it.Throttle), ConfigOp: plan.ConfigOp{Kind: plan.DeleteConfig, Key: it.Throttle.Name}, Before: &it.Throttle.Value,
			})
		}
	}
	if len(changes) == 0 {
		return out
	}
	results, err := c.AlterConfigs(ctx, changes, false)
	for i := range out {
		if t := out[i].Throttle; t != nil {
			j := slices.IndexFunc(results, func(r ConfigResult) bool { return r.Resource == throttled(t) })
			switch {
			case err != nil:
				out[i].Err = err
			case j >= 0:
				out[i].Err = results[j].Err
			}
			out[i].Removed = out[i].Err == nil
		}
	}
	return out
}

func throttled(t *check.Throttle) model.ConfigResource {
	if t.Topic != "" {
		return model.ConfigResource{Type: model.TopicResource, Name: t.Topic}
	}
	return model.ConfigResource{Type: model.BrokerResource, Name: strconv.Itoa(int(t.Broker))}
}

// deleteNode deletes a znode at the version read. A reply that was lost is looked up.
func (c *Client) deleteNode(ctx context.Context, n *check.Node) (bool, error) {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return false, err
	}
	err = zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Delete, Path: n.Path, Version: n.Version})[0].Err
	if errors.Is(err, zkop.ErrOutcomeUnknown) {
		r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Exists, Path: n.Path})[0]
		if errors.Is(r.Err, zkop.ErrNoNode) {
			return true, nil
		}
	}
	switch {
	case errors.Is(err, zkop.ErrNoNode):
		return false, &Error{Kind: Failed, Msg: n.Path + " is gone already"}
	case errors.Is(err, zkop.ErrBadVersion):
		return false, &Error{Kind: Failed, Msg: n.Path + " was written meanwhile: it is in use", Hint: "kctl leftovers list"}
	}
	return err == nil, wrap(err, "delete %s", n.Path)
}

// RestoreNode creates a persistent znode with the data it had. It must not exist.
func (c *Client) RestoreNode(ctx context.Context, path string, data []byte) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return err
	}
	r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: path, Data: data, Mode: zkop.Persistent})[0]
	if errors.Is(r.Err, zkop.ErrNodeExists) {
		return &Error{Kind: Failed, Msg: fmt.Sprintf("%s exists: it is left as it is", path)}
	}
	return wrap(r.Err, "create %s", path)
}
