package zkdata

import (
	"context"
	"errors"
	"fmt"
	"path"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
)

// ErrReadOnly is the answer to every write: the data directory of a server is not changed.
var ErrReadOnly = errors.New("zookeeper: a data directory is only read")

// Client serves the tree of a data directory. It is never suspended and sees no events.
type Client struct {
	tree   *tree
	chroot string
}

var _ zkutil.Client = (*Client)(nil)

func newClient(t *tree, chroot string) (*Client, error) {
	if chroot != "" && t.nodes[chroot] == nil {
		return nil, fmt.Errorf("%w: %s", zkutil.ErrNoChroot, chroot)
	}
	return &Client{tree: t, chroot: chroot}, nil
}

// Do answers reads; writes get ErrReadOnly.
func (c *Client) Do(ctx context.Context, _ uint64, reqs ...zkop.Request) []zkop.Response {
	out := make([]zkop.Response, len(reqs))
	for i := range reqs {
		if err := ctx.Err(); err != nil {
			out[i].Err = err
			continue
		}
		out[i] = c.do(&reqs[i])
	}
	return out
}

func (c *Client) do(r *zkop.Request) zkop.Response {
	switch r.Kind {
	case zkop.Get, zkop.Exists, zkop.Children, zkop.GetACL:
	case zkop.Sync:
		return zkop.Response{Path: r.Path}
	default:
		return zkop.Response{Err: ErrReadOnly}
	}
	if r.Path == "" || r.Path[0] != '/' {
		return zkop.Response{Err: zkop.ErrBadArguments}
	}
	n := c.tree.nodes[path.Join("/", c.chroot, r.Path)]
	if n == nil {
		return zkop.Response{Err: zkop.ErrNoNode}
	}
	out := zkop.Response{Path: r.Path, Stat: n.statOf()}
	switch r.Kind {
	case zkop.Get:
		out.Data = n.data
	case zkop.Children:
		out.Children = n.names()
	case zkop.GetACL:
		out.ACL = n.acl
	}
	return out
}

// Session returns a session that is always connected.
func (c *Client) Session() zkutil.Session {
	return zkutil.Session{Epoch: 1, State: zkutil.Connected}
}

// Subscribe returns a feed that stays silent.
func (c *Client) Subscribe() (<-chan zkutil.Notice, func()) {
	feed := make(chan zkutil.Notice)
	return feed, func() {}
}

// Close does nothing.
func (c *Client) Close() error { return nil }
