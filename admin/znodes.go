package admin

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"kctl/admin/plan"
	"kctl/zkutil/zkop"
)

// Znode is one node of the tree as stored: nothing is decoded or changed.
type Znode struct {
	Path     string
	Data     []byte // nil: the node has null data
	Stat     zkop.Stat
	Children []string // names, sorted; only where asked for
}

// Ctime and Mtime are the node's creation and last change.
func (z *Znode) Ctime() time.Time { return time.UnixMilli(z.Stat.Ctime) }

// Mtime is the time of the last change.
func (z *Znode) Mtime() time.Time { return time.UnixMilli(z.Stat.Mtime) }

// ZnodePath checks a path as the user typed it: absolute, without empty elements, "." or "..".
func ZnodePath(p string) (string, error) {
	if p == "" || p[0] != '/' {
		return "", badInput("znode path %q does not start with /", p)
	}
	if p == "/" {
		return p, nil
	}
	clean := strings.TrimSuffix(p, "/")
	if clean == "/" || path.Clean(clean) != clean {
		return "", badInput("znode path %q has an empty element, \".\" or \"..\"", p)
	}
	return clean, nil
}

// Znode reads one node with its children's names.
func (c *Client) Znode(ctx context.Context, p string) (*Znode, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	rs, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: p}, {Kind: zkop.Children, Path: p}})
	if err != nil {
		return nil, err
	}
	if errors.Is(rs[0].Err, zkop.ErrNoNode) {
		return nil, c.noZnode(ctx, p)
	}
	if err := cmpErr(rs[0].Err, rs[1].Err); err != nil {
		return nil, wrap(err, "read znode %s", p)
	}
	z := &Znode{Path: p, Data: rs[0].Data, Stat: rs[0].Stat, Children: rs[1].Children}
	slices.Sort(z.Children)
	return z, nil
}

func cmpErr(errs ...error) error {
	for _, e := range errs {
		if e != nil && !errors.Is(e, zkop.ErrNoNode) {
			return e
		}
	}
	return nil
}

// noZnode names the longest part of a path that exists, and the nearest child below it.
func (c *Client) noZnode(ctx context.Context, p string) error {
	e := &Error{Kind: NotFound, Msg: fmt.Sprintf("znode %s does not exist", p)}
	for parent := path.Dir(p); ; parent = path.Dir(parent) {
		children, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Children, Path: parent}})
		if err != nil {
			return e
		}
		if children[0].Err == nil {
			want := strings.TrimPrefix(strings.TrimPrefix(p, parent), "/")
			want, _, _ = strings.Cut(want, "/")
			e.Hint = parent + " exists"
			if near, ok := plan.Nearest(want, children[0].Children); ok {
				e.Hint = fmt.Sprintf("did you mean %s?", path.Join(parent, near))
			}
			return e
		}
		if parent == "/" {
			return e
		}
	}
}

// ZnodeChildren reads the children of a node with their data and stat, sorted by name.
func (c *Client) ZnodeChildren(ctx context.Context, p string) ([]Znode, error) {
	z, err := c.Znode(ctx, p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	reqs := make([]zkop.Request, len(z.Children))
	for i, ch := range z.Children {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: path.Join(p, ch)}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var out []Znode
	for i, r := range rs {
		if !errors.Is(r.Err, zkop.ErrNoNode) { // gone meanwhile
			out = append(out, Znode{Path: reqs[i].Path, Data: r.Data, Stat: r.Stat})
		}
	}
	return out, nil
}

// WalkZnodes visits a node and everything below it, parents first, children sorted, down to depth levels
// below the start (negative: all). Whole levels are read at once.
func (c *Client) WalkZnodes(ctx context.Context, start string, depth int, visit func(z *Znode, level int) error) error {
	if _, err := c.Znode(ctx, start); err != nil {
		return err
	}
	nodes := map[string]*Znode{}
	level := []string{start}
	for d := 0; len(level) > 0; d++ {
		reqs := make([]zkop.Request, 0, 2*len(level))
		for _, p := range level {
			reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: p}, zkop.Request{Kind: zkop.Children, Path: p})
		}
		rs, err := c.zkDo(ctx, reqs)
		if err != nil {
			return err
		}
		var next []string
		for i, p := range level {
			get, kids := rs[2*i], rs[2*i+1]
			if errors.Is(get.Err, zkop.ErrNoNode) {
				continue
			}
			z := &Znode{Path: p, Data: get.Data, Stat: get.Stat, Children: kids.Children}
			slices.Sort(z.Children)
			nodes[p] = z
			if depth >= 0 && d >= depth {
				continue
			}
			for _, ch := range z.Children {
				next = append(next, path.Join(p, ch))
			}
		}
		level = next
	}
	return visitTree(nodes, start, 0, visit)
}

func visitTree(nodes map[string]*Znode, p string, level int, visit func(*Znode, int) error) error {
	z := nodes[p]
	if z == nil {
		return nil
	}
	if err := visit(z, level); err != nil {
		return err
	}
	for _, ch := range z.Children {
		if err := visitTree(nodes, path.Join(p, ch), level+1, visit); err != nil {
			return err
		}
	}
	return nil
}
