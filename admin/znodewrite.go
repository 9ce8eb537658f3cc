package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// ZnodeAction is what a ZnodeWrite does.
type ZnodeAction string

// The actions.
const (
	SetZnode    ZnodeAction = "set"
	CreateZnode ZnodeAction = "create"
	DeleteZnode ZnodeAction = "delete"
)

// AnyZnodeVersion makes a plan take the version that it reads.
const AnyZnodeVersion int32 = -1

// ZnodeWrite is a planned change of one znode. It is always conditional: on the version that was read or asked for,
// and below /brokers/topics on the epoch of the controller that was active when it was planned.
type ZnodeWrite struct {
	Action    ZnodeAction
	Path      string
	Data      []byte // nil: null data
	Version   int32  // expected; unused by create
	Before    *Znode // nil: it does not exist
	Fenced    bool
	ClusterID string
	epoch     cluster.ZKVersion // version of /controller_epoch, the fence
}

// PlanZnodeWrite reads what a change of a znode would replace. It refuses what could not be carried out: a node that is
// there already or not at all, another version than ifVersion, children below a deleted node.
func (c *Client) PlanZnodeWrite(ctx context.Context, action ZnodeAction, path string, data []byte, ifVersion int32) (*ZnodeWrite, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	rs, err := c.zkDo(ctx, []zkop.Request{
		{Kind: zkop.Get, Path: path}, {Kind: zkop.Children, Path: path},
		{Kind: zkop.Get, Path: znode.ControllerEpochPath}, {Kind: zkop.Get, Path: znode.ClusterIDPath},
	})
	if err != nil {
		return nil, err
	}
	w := &ZnodeWrite{Action: action, Path: path, Data: data, Version: ifVersion}
	if rs[2].Err == nil && strings.HasPrefix(path, znode.BrokerTopicsPath+"/") {
		w.Fenced, w.epoch = true, cluster.ZKVersion(rs[2].Stat.Version)
	}
	if rs[3].Err == nil {
		w.ClusterID, _ = znode.DecodeClusterID(rs[3].Data)
	}
	if rs[0].Err == nil {
		w.Before = &Znode{Path: path, Data: rs[0].Data, Stat: rs[0].Stat, Children: rs[1].Children}
	} else if !errors.Is(rs[0].Err, zkop.ErrNoNode) {
		return nil, wrap(rs[0].Err, "read znode %s", path)
	}
	return w, c.checkZnodeWrite(ctx, w)
}

func (c *Client) checkZnodeWrite(ctx context.Context, w *ZnodeWrite) error {
	switch {
	case w.Action == CreateZnode && w.Before != nil:
		return &Error{Kind: Failed, Msg: fmt.Sprintf("znode %s exists already, with version %d", w.Path, w.Before.Stat.Version), Hint: "kctl zk set changes it"}
	case w.Action == CreateZnode:
		return nil
	case w.Before == nil:
		return c.noZnode(ctx, w.Path)
	case w.Version != AnyZnodeVersion && w.Version != w.Before.Stat.Version:
		return &Error{Kind: Failed, Msg: fmt.Sprintf("znode %s has version %d, not %d; nothing was changed", w.Path, w.Before.Stat.Version, w.Version)}
	case w.Action == DeleteZnode && len(w.Before.Children) > 0:
		return &Error{Kind: Failed, Msg: fmt.Sprintf("znode %s has %d children; nothing was changed", w.Path, len(w.Before.Children)), Hint: "delete them first, one by one"}
	}
	w.Version = w.Before.Stat.Version
	return nil
}

// request is the one conditional operation, or the multi that fences it.
func (w *ZnodeWrite) request() zkop.Request {
	r := zkop.Request{Path: w.Path, Data: w.Data, Version: w.Version}
	switch w.Action {
	case SetZnode:
		r.Kind = zkop.Set
	case CreateZnode:
		r.Kind = zkop.Create
	case DeleteZnode:
		r.Kind = zkop.Delete
	}
	if w.Fenced {
		return znode.Fenced(w.epoch, r)
	}
	return r
}

// WriteZnode carries out a plan and returns the node as it is afterwards, nil after a delete. A lost answer is settled
// by reading back.
func (c *Client) WriteZnode(ctx context.Context, w *ZnodeWrite) (*Znode, error) {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return nil, err
	}
	wctx, cancel := c.within(ctx)
	defer cancel()
	r := zk.Do(wctx, zkutil.AnySession, w.request())[0]
	if err := w.refusal(r); err != nil {
		return nil, err
	}
	after, err := c.Znode(context.WithoutCancel(ctx), w.Path)
	if KindOf(err) == NotFound {
		after, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if errors.Is(r.Err, zkop.ErrOutcomeUnknown) && !w.carriedOut(after) {
		return nil, &Error{Kind: Unreachable, Msg: fmt.Sprintf("%s znode %s: the answer was lost, and the node is not as written", w.Action, w.Path), Err: r.Err}
	}
	return after, nil
}

// refusal is the error of an answer that says that nothing was changed.
func (w *ZnodeWrite) refusal(r zkop.Response) error {
	if r.Err == nil || errors.Is(r.Err, zkop.ErrOutcomeUnknown) {
		return nil
	}
	if w.Fenced && len(r.Results) > 0 && errors.Is(r.Results[0].Err, zkop.ErrBadVersion) {
		return &Error{Kind: Failed, Msg: fmt.Sprintf("%s znode %s", w.Action, w.Path), Err: ErrControllerChanged}
	}
	for _, err := range []error{zkop.ErrBadVersion, zkop.ErrNodeExists, zkop.ErrNotEmpty} {
		if errors.Is(r.Err, err) {
			return &Error{Kind: Failed, Msg: fmt.Sprintf("znode %s was changed by somebody else meanwhile; nothing was changed", w.Path), Err: r.Err, Hint: "look at it again: kctl zk get " + w.Path + " --stat"}
		}
	}
	e := wrap(r.Err, "%s znode %s", w.Action, w.Path)
	if w.Action == CreateZnode && errors.Is(r.Err, zkop.ErrNoNode) {
		return &Error{Kind: NotFound, Msg: e.Error(), Hint: "create its parent first"}
	}
	return e
}

func (w *ZnodeWrite) carriedOut(after *Znode) bool {
	switch {
	case w.Action == DeleteZnode:
		return after == nil
	case after == nil || !bytes.Equal(after.Data, w.Data):
		return false
	case w.Action == SetZnode:
		return after.Stat.Version == w.Version+1
	}
	return after.Stat.Version == 0
}
