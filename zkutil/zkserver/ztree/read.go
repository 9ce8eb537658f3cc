package ztree

import (
	"strings"

	"kctl/zkutil/zkop"
)

// Read answers a request that changes nothing (see IsWrite). With Watch set it leaves a one-shot watch of the
// session as ZooKeeper does: Get and Children only where the node exists, Exists always. Children come sorted
// by name; the response owns that slice. Data must not be modified.
func (t *Tree) Read(session int64, auth []Identity, req *zkop.Request) zkop.Response {
	r := t.ReadShared(session, auth, req)
	if len(r.Children) > 0 {
		r.Children = append([]string(nil), r.Children...)
	}
	return r
}

// ReadShared is Read whose Children are the tree's own slice: valid until the next change of the tree.
func (t *Tree) ReadShared(session int64, auth []Identity, req *zkop.Request) zkop.Response {
	switch req.Kind {
	case zkop.Sync:
		return zkop.Response{Path: req.Path}
	case zkop.Exists:
		return t.exists(session, auth, req)
	case zkop.Multi:
		resp := zkop.Response{Results: make([]zkop.Response, len(req.Ops))}
		for i := range req.Ops {
			if req.Ops[i].Kind == zkop.Multi {
				return zkop.Response{Err: zkop.ErrBadArguments}
			}
			resp.Results[i] = t.Read(session, auth, &req.Ops[i])
		}
		return resp
	case zkop.Get, zkop.Children, zkop.Check, zkop.GetACL:
	default:
		return zkop.Response{Err: zkop.ErrBadArguments}
	}
	n := t.nodes[req.Path]
	if n == nil {
		return zkop.Response{Err: zkop.ErrNoNode}
	}
	perm := zkop.PermRead
	if req.Kind == zkop.GetACL {
		perm |= zkop.PermAdmin
	}
	if !allowed(n.acl, perm, auth) {
		return zkop.Response{Err: zkop.ErrNoAuth}
	}
	resp := zkop.Response{Stat: n.stat()}
	switch req.Kind {
	case zkop.Get:
		resp.Data = n.data
		if req.Watch {
			t.watches.add(req.Path, session, watchData)
		}
	case zkop.Children:
		resp.Children = n.children
		if req.Watch {
			t.watches.add(req.Path, session, watchChild)
		}
	case zkop.Check:
		if req.Version != zkop.AnyVersion && req.Version != n.version {
			return zkop.Response{Err: zkop.ErrBadVersion}
		}
	case zkop.GetACL:
		resp.ACL = n.acl
		if !allowed(n.acl, zkop.PermAdmin, auth) {
			resp.ACL = maskACL(n.acl)
		}
	}
	return resp
}

func (t *Tree) exists(session int64, auth []Identity, req *zkop.Request) zkop.Response {
	if strings.IndexByte(req.Path, 0) >= 0 {
		return zkop.Response{Err: zkop.ErrBadArguments}
	}
	n := t.nodes[req.Path]
	if n != nil && !allowed(n.acl, zkop.PermRead, auth) {
		return zkop.Response{Err: zkop.ErrNoAuth}
	}
	if req.Watch {
		t.watches.add(req.Path, session, watchData)
	}
	if n == nil {
		return zkop.Response{Err: zkop.ErrNoNode}
	}
	return zkop.Response{Stat: n.stat()}
}

// Descendants counts the nodes below path.
func (t *Tree) Descendants(path string, auth []Identity) (int, error) {
	n := t.nodes[path]
	if n == nil {
		return 0, zkop.ErrNoNode
	}
	if !allowed(n.acl, zkop.PermRead, auth) {
		return 0, zkop.ErrNoAuth
	}
	if path == "/" {
		return len(t.nodes) - 1, nil
	}
	count := -1
	t.Walk(path, func(string, []byte, zkop.Stat) bool { count++; return true })
	return count, nil
}
