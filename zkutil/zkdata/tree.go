package zkdata

import (
	"slices"
	"strings"

	"kctl/zkutil/zkop"
)

// node is one znode. cversion counts creations of children, as both servers store it.
type node struct {
	data     []byte
	acl      []zkop.ACL
	stat     zkop.Stat // DataLength, NumChildren and Cversion are filled in when it is read
	cversion int32
	children map[string]struct{}
}

// tree is a tree of znodes while it is built and read.
type tree struct {
	nodes      map[string]*node
	ephemerals map[int64]map[string]struct{} // by session
	zxid       int64                         // last change
	timeMs     int64                         // of the last change; 0: unknown
	partial    bool                          // what the changes build upon is not all there
}

// newTree is what both servers begin with.
func newTree() *tree {
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}}
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		t.add(p, &node{data: []byte{}, acl: zkop.WorldAll()})
	}
	config := t.nodes["/zookeeper/config"]
	config.acl[0].Perms, config.stat.Aversion = zkop.PermRead, -1
	return t
}

// change is one operation on a node, as a log has it. version of a create is the parent's new cversion, -1 when
// unknown; of a set and an ACL change it is the new one, -1 for one more.
type change struct {
	kind    zkop.Kind
	path    string
	data    []byte
	acl     []zkop.ACL
	owner   int64
	version int32
}

func split(p string) (parent, name string) {
	i := strings.LastIndexByte(p, '/')
	if i <= 0 {
		return "/", p[i+1:]
	}
	return p[:i], p[i+1:]
}

// apply makes a change. What does not fit is passed over: a fuzzy snapshot may be ahead of its log.
func (t *tree) apply(c change, zxid, timeMs int64) {
	n := t.nodes[c.path]
	switch c.kind {
	case zkop.Create:
		if n == nil {
			t.create(c, zxid, timeMs, c.owner)
			return
		}
		if parent := t.parent(c.path); parent != nil {
			parent.created(c.version, zxid)
		}
	case zkop.Delete:
		t.remove(c.path, zxid)
	case zkop.Set:
		if n == nil && t.partial {
			n = t.implied(c.path)
		}
		if n == nil {
			return
		}
		n.data, n.stat.Mzxid, n.stat.Mtime = c.data, zxid, timeMs
		n.stat.Version = next(n.stat.Version, c.version)
	case zkop.SetACL:
		if n == nil {
			return
		}
		n.acl, n.stat.Aversion = c.acl, next(n.stat.Aversion, c.version)
	}
}

func next(now, given int32) int32 {
	if given >= 0 {
		return given
	}
	return now + 1
}

func (t *tree) parent(p string) *node {
	if p == "/" {
		return nil
	}
	dir, _ := split(p)
	return t.nodes[dir]
}

// created moves the parent's cversion and pzxid; a version that the parent has passed already changes nothing.
func (n *node) created(version int32, zxid int64) {
	if version < 0 {
		version = n.cversion + 1
	}
	if version > n.cversion {
		n.cversion, n.stat.Pzxid = version, zxid
	}
}

// implied makes a node of which only is known that it was there, with all above it. Its stat is zero.
func (t *tree) implied(p string) *node {
	if n := t.nodes[p]; n != nil {
		return n
	}
	dir, _ := split(p)
	t.implied(dir)
	n := &node{data: []byte{}, acl: zkop.WorldAll()}
	t.add(p, n)
	return n
}

func (t *tree) create(c change, zxid, timeMs, owner int64) {
	parent := t.parent(c.path)
	if dir, _ := split(c.path); parent == nil && t.partial && c.path != "/" {
		parent = t.implied(dir)
	}
	if parent == nil {
		return
	}
	n := &node{data: c.data, acl: c.acl}
	n.stat = zkop.Stat{Czxid: zxid, Mzxid: zxid, Pzxid: zxid, Ctime: timeMs, Mtime: timeMs, EphemeralOwner: owner}
	t.add(c.path, n)
	parent.created(c.version, zxid)
}

// add puts a node below its parent, which exists.
func (t *tree) add(p string, n *node) {
	t.nodes[p] = n
	if p == "/" {
		return
	}
	dir, name := split(p)
	parent := t.nodes[dir]
	if parent.children == nil {
		parent.children = map[string]struct{}{}
	}
	parent.children[name] = struct{}{}
	if o := n.stat.EphemeralOwner; isSession(o) {
		if t.ephemerals[o] == nil {
			t.ephemerals[o] = map[string]struct{}{}
		}
		t.ephemerals[o][p] = struct{}{}
	}
}

// isSession tells the owner of an ephemeral node from the marks of container nodes (the least number) and of nodes
// with a time to live (0xff in the highest byte).
func isSession(owner int64) bool {
	return owner != 0 && uint64(owner) != 1<<63 && uint64(owner)>>56 != 0xff
}

func (t *tree) remove(p string, zxid int64) {
	n, parent := t.nodes[p], t.parent(p)
	if n == nil || parent == nil {
		return
	}
	delete(t.nodes, p)
	_, name := split(p)
	delete(parent.children, name)
	parent.stat.Pzxid = max(parent.stat.Pzxid, zxid)
	if o := n.stat.EphemeralOwner; isSession(o) {
		delete(t.ephemerals[o], p)
	}
}

// closeSession removes the ephemeral nodes of a session.
func (t *tree) closeSession(session, zxid int64) {
	for p := range t.ephemerals[session] {
		t.remove(p, zxid)
	}
	delete(t.ephemerals, session)
}

// statOf is the stat as a client sees it: cversion counts creations and deletions.
func (n *node) statOf() zkop.Stat {
	s := n.stat
	s.DataLength, s.NumChildren = int32(len(n.data)), int32(len(n.children))
	s.Cversion = n.cversion*2 - s.NumChildren
	if !isSession(s.EphemeralOwner) {
		s.EphemeralOwner = 0 // containers and nodes with a time to live do not show
	}
	return s
}

func (n *node) names() []string {
	out := make([]string, 0, len(n.children))
	for c := range n.children {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}
