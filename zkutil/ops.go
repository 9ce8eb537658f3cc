package zkutil

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kctl/zkutil/zkop"
)

// Ops offers one call per operation over a Client, within one session or in whatever session is current.
// The zero value is not usable. It is a small value: copy it freely.
//
// Reads are repeated when the connection breaks, until ctx ends. Writes are not: ErrOutcomeUnknown comes
// back and ReadBack or SetIfVersion says what happened.
type Ops struct {
	client  Client
	session uint64
}

// Any runs operations in whatever session is current: for reads, and for writes that no ephemeral node guards.
func Any(c Client) Ops { return Ops{c, AnySession} }

// Within runs operations only while the session of that epoch is current; after it they fail with
// zkop.ErrSessionExpired, unsent.
func Within(c Client, session uint64) Ops { return Ops{c, session} }

// Do is Client.Do within the session of o.
func (o Ops) Do(ctx context.Context, reqs ...zkop.Request) []zkop.Response {
	return o.client.Do(ctx, o.session, reqs...)
}

func (o Ops) one(ctx context.Context, req zkop.Request) zkop.Response {
	return o.client.Do(ctx, o.session, req)[0]
}

// read repeats req while the connection breaks under it.
func (o Ops) read(ctx context.Context, req zkop.Request) zkop.Response {
	for {
		resp := o.one(ctx, req)
		if !errors.Is(resp.Err, zkop.ErrOutcomeUnknown) || ctx.Err() != nil {
			return resp
		}
	}
}

// Get reads a node.
func (o Ops) Get(ctx context.Context, path string) ([]byte, zkop.Stat, error) {
	r := o.read(ctx, zkop.Request{Kind: zkop.Get, Path: path})
	return r.Data, r.Stat, wrap("get", path, r.Err)
}

// GetWatch reads a node and leaves a watch on its data; none when the node does not exist.
func (o Ops) GetWatch(ctx context.Context, path string) ([]byte, zkop.Stat, error) {
	r := o.read(ctx, zkop.Request{Kind: zkop.Get, Path: path, Watch: true})
	return r.Data, r.Stat, wrap("get", path, r.Err)
}

// Exists returns the node's Stat and whether it exists.
func (o Ops) Exists(ctx context.Context, path string) (zkop.Stat, bool, error) {
	return o.exists(ctx, path, false)
}

// ExistsWatch also leaves a watch for the node's creation, change or deletion.
func (o Ops) ExistsWatch(ctx context.Context, path string) (zkop.Stat, bool, error) {
	return o.exists(ctx, path, true)
}

func (o Ops) exists(ctx context.Context, path string, watch bool) (zkop.Stat, bool, error) {
	r := o.read(ctx, zkop.Request{Kind: zkop.Exists, Path: path, Watch: watch})
	if errors.Is(r.Err, zkop.ErrNoNode) {
		return zkop.Stat{}, false, nil
	}
	return r.Stat, r.Err == nil, wrap("exists", path, r.Err)
}

// Children returns the names of a node's children, sorted, and the Stat of the node itself.
func (o Ops) Children(ctx context.Context, path string) ([]string, zkop.Stat, error) {
	return o.children(ctx, path, false)
}

// ChildrenWatch also leaves a watch on the list of children.
func (o Ops) ChildrenWatch(ctx context.Context, path string) ([]string, zkop.Stat, error) {
	return o.children(ctx, path, true)
}

func (o Ops) children(ctx context.Context, path string, watch bool) ([]string, zkop.Stat, error) {
	r := o.read(ctx, zkop.Request{Kind: zkop.Children, Path: path, Watch: watch})
	slices.Sort(r.Children)
	return r.Children, r.Stat, wrap("children", path, r.Err)
}

// GetACL returns a node's access list and its Stat. Who may not change it sees no digests in it: "user:x" instead.
func (o Ops) GetACL(ctx context.Context, path string) ([]zkop.ACL, zkop.Stat, error) {
	r := o.read(ctx, zkop.Request{Kind: zkop.GetACL, Path: path})
	return r.ACL, r.Stat, wrap("get the ACL of", path, r.Err)
}

// Sync makes reads that follow see everything committed before it.
func (o Ops) Sync(ctx context.Context, path string) error {
	return wrap("sync", path, o.read(ctx, zkop.Request{Kind: zkop.Sync, Path: path}).Err)
}

// Create makes a node that anyone may read and change; nil data makes null data. It returns the path, with
// the sequence number of a sequential node.
func (o Ops) Create(ctx context.Context, path string, data []byte, mode zkop.Mode) (string, error) {
	return o.CreateACL(ctx, path, data, mode, nil)
}

// CreateACL makes a node with an ACL; nil means open to anyone.
func (o Ops) CreateACL(ctx context.Context, path string, data []byte, mode zkop.Mode, acl []zkop.ACL) (string, error) {
	r := o.one(ctx, zkop.Request{Kind: zkop.Create, Path: path, Data: data, Mode: mode, ACL: acl})
	return r.Path, wrap("create", path, r.Err)
}

// Set writes a node's data if its version is the given one (zkop.AnyVersion: always).
func (o Ops) Set(ctx context.Context, path string, data []byte, version int32) (zkop.Stat, error) {
	r := o.one(ctx, zkop.Request{Kind: zkop.Set, Path: path, Data: data, Version: version})
	return r.Stat, wrap("set", path, r.Err)
}

// Delete removes a node if its version is the given one (zkop.AnyVersion: always).
func (o Ops) Delete(ctx context.Context, path string, version int32) error {
	return wrap("delete", path, o.one(ctx, zkop.Request{Kind: zkop.Delete, Path: path, Version: version}).Err)
}

// Multi runs ops atomically. err is that of the op that failed; the responses say which one it was.
func (o Ops) Multi(ctx context.Context, ops ...zkop.Request) ([]zkop.Response, error) {
	r := o.one(ctx, zkop.Request{Kind: zkop.Multi, Ops: ops})
	if r.Err == nil {
		return r.Results, nil
	}
	for i, res := range r.Results {
		if res.Err != nil && !errors.Is(res.Err, zkop.ErrRolledBack) && i < len(ops) {
			return r.Results, wrap("multi", ops[i].Path, res.Err)
		}
	}
	return r.Results, wrap("multi", "", r.Err)
}

// EnsurePath creates the persistent nodes of path that do not exist, with null data, parents first.
func (o Ops) EnsurePath(ctx context.Context, path string) error {
	_, ok, err := o.Exists(ctx, path)
	if ok || err != nil {
		return err
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		p := "/" + strings.Join(parts[:i+1], "/")
		if err := o.ensureNode(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// EnsurePaths creates the given persistent nodes in order, with null data, in one pipelined round. Parents
// must stand before their children.
func (o Ops) EnsurePaths(ctx context.Context, paths []string) error {
	reqs := make([]zkop.Request, len(paths))
	for i, p := range paths {
		reqs[i] = zkop.Request{Kind: zkop.Create, Path: p}
	}
	for i, r := range o.Do(ctx, reqs...) {
		switch {
		case r.Err == nil, errors.Is(r.Err, zkop.ErrNodeExists):
		case errors.Is(r.Err, zkop.ErrOutcomeUnknown):
			if err := o.ensureNode(ctx, paths[i]); err != nil {
				return err
			}
		default:
			return wrap("create", paths[i], r.Err)
		}
	}
	return nil
}

// ensureNode repeats a create that means the same however often it is done.
func (o Ops) ensureNode(ctx context.Context, path string) error {
	for {
		_, err := o.Create(ctx, path, nil, zkop.Persistent)
		if err == nil || errors.Is(err, zkop.ErrNodeExists) {
			return nil
		}
		if !errors.Is(err, zkop.ErrOutcomeUnknown) || ctx.Err() != nil {
			return err
		}
	}
}

// Outcome is what ReadBack found out about a conditional write whose answer was lost.
type Outcome uint8

// The outcomes. Overtaken: the node was changed by someone else, or is gone; whether our write came in
// between cannot be told, and no longer matters since its version is taken.
const (
	Applied Outcome = iota + 1
	NotApplied
	Overtaken
)

// ReadBack settles a Set of want at version expected that ended in zkop.ErrOutcomeUnknown or, after such an
// end, in zkop.ErrBadVersion (KAFKA-1382). It reads the node behind everything that was sent before.
// Applied: the content is want at a later version; Stat has the version to adopt. NotApplied: the version is still
// expected, the write may be sent again. Overtaken: decide anew from data and Stat.
func (o Ops) ReadBack(ctx context.Context, path string, want []byte, expected int32) (Outcome, []byte, zkop.Stat, error) {
	if err := o.Sync(ctx, path); err != nil {
		return 0, nil, zkop.Stat{}, err
	}
	data, stat, err := o.Get(ctx, path)
	switch {
	case errors.Is(err, zkop.ErrNoNode):
		return Overtaken, nil, zkop.Stat{}, nil
	case err != nil:
		return 0, nil, zkop.Stat{}, err
	case stat.Version == expected:
		return NotApplied, data, stat, nil
	case stat.Version > expected && bytes.Equal(data, want):
		return Applied, data, stat, nil
	}
	return Overtaken, data, stat, nil
}

// SetIfVersion is a conditional Set that settles a lost answer by itself: it reads back, adopts the version
// when the write had been applied, and sends it again only when it certainly had not. The error is
// zkop.ErrBadVersion when someone else changed the node, and zkop.ErrOutcomeUnknown only when ctx ended first.
func (o Ops) SetIfVersion(ctx context.Context, path string, data []byte, version int32) (zkop.Stat, error) {
	for {
		stat, err := o.Set(ctx, path, data, version)
		if !errors.Is(err, zkop.ErrOutcomeUnknown) || ctx.Err() != nil {
			return stat, err
		}
		outcome, _, stat, rerr := o.ReadBack(ctx, path, data, version)
		switch {
		case rerr != nil && ctx.Err() != nil:
			return zkop.Stat{}, err
		case rerr != nil:
			return zkop.Stat{}, rerr
		case outcome == Applied:
			return stat, nil
		case outcome == Overtaken:
			return stat, wrap("set", path, zkop.ErrBadVersion)
		}
	}
}

// DeleteRecursive removes a node and everything below it, children first. A node that is already gone is
// no error.
func (o Ops) DeleteRecursive(ctx context.Context, path string) error {
	children, _, err := o.Children(ctx, path)
	if errors.Is(err, zkop.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range children {
		if err := o.DeleteRecursive(ctx, strings.TrimSuffix(path, "/")+"/"+c); err != nil {
			return err
		}
	}
	if err := o.Delete(ctx, path, zkop.AnyVersion); err != nil && !errors.Is(err, zkop.ErrNoNode) {
		return err
	}
	return nil
}

func wrap(what, path string, err error) error {
	if err == nil {
		return nil
	}
	if path == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s %s: %w", what, path, err)
}
