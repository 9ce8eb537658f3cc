package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kctl/admin/model"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// ErrControllerChanged says that another controller was elected between the reading and the write: nothing
// was written.
var ErrControllerChanged = errors.New("another controller has been elected meanwhile; nothing was changed")

// ControllerNode is the active controller as ZooKeeper holds it, with the versions that fence a write.
type ControllerNode struct {
	model.Controller
	version, epochVersion int32
}

// ReadController reads the controller from ZooKeeper. It is an error when there is none.
func (c *Client) ReadController(ctx context.Context) (*ControllerNode, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	rs, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.ControllerPath}, {Kind: zkop.Get, Path: znode.ControllerEpochPath}})
	if err != nil {
		return nil, err
	}
	if rs[0].Err == nil && errors.Is(rs[1].Err, zkop.ErrNoNode) {
		return nil, &Error{Kind: Failed, Msg: "the znode " + znode.ControllerEpochPath + " does not exist, without which none is elected", Hint: "kctl doctor controller-epoch-missing names what to write"}
	}
	for _, r := range rs {
		if r.Err != nil {
			return nil, &Error{Kind: Failed, Msg: "no broker is the controller", Hint: "start a broker: it stands for election by itself"}
		}
	}
	ctl, err := znode.DecodeController(rs[0].Data)
	if err != nil {
		return nil, err
	}
	epoch, err := znode.DecodeControllerEpoch(rs[1].Data)
	if err != nil {
		return nil, err
	}
	return &ControllerNode{
		Controller: model.Controller{ID: ctl.BrokerID, Epoch: int32(epoch), Since: time.UnixMilli(rs[0].Stat.Ctime), Source: model.SourceZooKeeper},
		version:    rs[0].Stat.Version, epochVersion: rs[1].Stat.Version,
	}, nil
}

// MoveController has a new controller elected: it removes /controller in one multi with a check of the epoch
// it was read at, and waits until a controller of a later epoch is there. The same broker may win again; it
// then reads everything anew, like any new controller. The old one is fenced by the epoch.
func (c *Client) MoveController(ctx context.Context, from *ControllerNode, wait time.Duration) (*ControllerNode, error) {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return nil, err
	}
	wctx, cancel := c.within(ctx)
	defer cancel()
	r := zk.Do(wctx, zkutil.AnySession, znode.Fenced(cluster.ZKVersion(from.epochVersion),
		zkop.Request{Kind: zkop.Delete, Path: znode.ControllerPath, Version: from.version}))[0]
	switch {
	case errors.Is(r.Err, zkop.ErrBadVersion), errors.Is(r.Err, zkop.ErrNoNode), errors.Is(r.Err, zkop.ErrRolledBack):
		return nil, &Error{Kind: Failed, Msg: "remove " + znode.ControllerPath, Err: ErrControllerChanged}
	case errors.Is(r.Err, zkop.ErrOutcomeUnknown):
		// Whether it was removed shows in the epoch: waiting for a later one is right in both cases.
	case r.Err != nil:
		return nil, wrap(r.Err, "remove %s", znode.ControllerPath)
	}
	return c.awaitController(ctx, from.Epoch, max(wait, time.Second))
}

func (c *Client) awaitController(ctx context.Context, after int32, wait time.Duration) (*ControllerNode, error) {
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		if n, err := c.ReadController(within); err == nil && n.Epoch > after {
			return n, nil
		}
		if !pause(within) {
			if ctx.Err() != nil {
				return nil, wrap(ctx.Err(), "wait for a controller of an epoch after %d", after)
			}
			return nil, &Error{
				Kind: Unreachable, Msg: fmt.Sprintf("no controller of an epoch after %d within %s", after, wait),
				Hint: "kctl brokers list shows which brokers could stand for election",
			}
		}
	}
}
