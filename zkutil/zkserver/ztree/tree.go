package ztree

import (
	"sort"
	"strings"
	"time"

	"kctl/zkutil/zkop"
)

// Options configure a Tree. The zero value suits a simulation.
type Options struct {
	// Tick rounds session deadlines up to its next multiple, as ZooKeeper's tickTime does: a session then
	// expires between its timeout and its timeout plus Tick after it was last heard. 0: exactly at the timeout.
	Tick time.Duration
	// Epoch is the epoch in the high 32 bits of the first zxid.
	Epoch int32
}

// FiredWatch is one watch event and the session that must be told.
type FiredWatch struct {
	Session int64
	Event   zkop.Event
	Zxid    int64 // of the change

	acl []zkop.ACL // of the node at Event.Path
}

// Readable tells whether an event may be shown to a connection with those identities: ZooKeeper keeps events
// of nodes from those who may not read them (CVE-2024-23944). The watch is spent all the same.
func (f *FiredWatch) Readable(auth []Identity) bool { return allowed(f.acl, zkop.PermRead, auth) }

// Owner values of nodes that are not ephemeral but special; ZooKeeper keeps them in Stat.EphemeralOwner.
const (
	ownerNone      int64 = 0
	ownerContainer int64 = -1 << 63
	ownerTTLMask   int64 = -1 << 56 // 0xff in the top byte
	ttlMax         int64 = 1<<40 - 1
)

// node is one znode. stat fields are as ZooKeeper persists them: cversion counts created children only.
type node struct {
	data     []byte // nil is null data; never modified in place
	acl      []zkop.ACL
	children []string // names, sorted
	czxid    int64
	mzxid    int64
	pzxid    int64
	ctime    int64
	mtime    int64
	version  int32
	cversion int32
	aversion int32
	owner    int64
}

// stat translates to what clients see: every change of the children counts in cversion.
func (n *node) stat() zkop.Stat {
	kids := int32(len(n.children))
	owner := n.owner
	if !isEphemeral(owner) { // containers and TTL nodes do not show
		owner = 0
	}
	return zkop.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: n.cversion*2 - kids, Aversion: n.aversion,
		EphemeralOwner: owner, DataLength: int32(len(n.data)), NumChildren: kids, Pzxid: n.pzxid,
	}
}

// Tree is the whole state of a server.
type Tree struct {
	tick     time.Duration
	nodes    map[string]*node
	bytes    int64 // sum of path and data lengths
	sessions map[int64]*session
	special  map[string]struct{} // container and TTL nodes
	lastSID  int64
	zxid     int64 // of the last applied change

	direct   bool               // Do: the change is applied at once, so pending records are not needed
	pending  map[string]*record // newest prepared, not yet applied state per path
	queue    []*record          // the same records in order
	free     []*record
	closing  map[int64]struct{} // sessions with a prepared close
	nextZxid int64              // the last zxid given to a prepared change

	watches watchTable
	fired   []FiredWatch
}

var openACL = zkop.WorldAll()

// New returns a tree that holds the nodes every ZooKeeper has: /, /zookeeper, its quota and config.
func New(o Options) *Tree {
	t := &Tree{
		tick:    o.Tick,
		nodes:   make(map[string]*node),
		pending: make(map[string]*record), sessions: make(map[int64]*session), special: make(map[string]struct{}),
		closing: make(map[int64]struct{}),
		watches: newWatchTable(),
	}
	t.zxid = int64(o.Epoch) << 32
	t.nextZxid = t.zxid
	t.nodes["/"] = &node{data: []byte{}, acl: openACL, children: []string{"zookeeper"}}
	t.nodes["/zookeeper"] = &node{data: []byte{}, acl: openACL, children: []string{"config", "quota"}}
	t.nodes["/zookeeper/quota"] = &node{data: []byte{}, acl: openACL}
	t.nodes["/zookeeper/config"] = &node{data: []byte{}, acl: []zkop.ACL{{Perms: zkop.PermRead, Scheme: "world", ID: "anyone"}}, aversion: -1}
	for path, n := range t.nodes {
		t.bytes += int64(len(path) + len(n.data))
	}
	return t
}

// Zxid is the id of the last applied change.
func (t *Tree) Zxid() int64 { return t.zxid }

// StartEpoch makes the next change begin a new epoch, so that zxids (and with them the czxid that Kafka uses
// as broker epoch) rise over a restart even when the last log records of the previous run were lost.
// Nothing may be prepared and not applied.
func (t *Tree) StartEpoch() {
	t.nextZxid = (t.zxid>>32 + 1) << 32
}

// NodeCount is the number of znodes, / included.
func (t *Tree) NodeCount() int { return len(t.nodes) }

// DataSize is the sum of all path and data lengths in bytes.
func (t *Tree) DataSize() int64 { return t.bytes }

// Do checks and applies one request of a session at once. It answers ErrSessionExpired when the session does
// not exist, otherwise counts as a sign of life of the session. auth are the identities that the session's
// connection has proved; nil is nobody, which suffices for open nodes. A Multi that holds only reads answers
// each on its own, as ZooKeeper's multiRead. The fired watches are valid until the next call. The request's
// slices are kept: do not modify them afterwards, nor the Data of the response.
func (t *Tree) Do(at time.Time, session int64, auth []Identity, req zkop.Request) (zkop.Response, []FiredWatch) {
	if !t.Touch(at, session) {
		return zkop.Response{Err: zkop.ErrSessionExpired}, nil
	}
	if !IsWrite(&req) {
		return t.Read(session, auth, &req), nil
	}
	t.direct = req.Kind != zkop.Multi && len(t.queue) == 0
	txn, resp := t.Prepare(at, session, auth, &req)
	t.direct = false
	if txn == nil {
		return resp, nil
	}
	return t.Apply(txn)
}

// IsWrite tells whether a request changes the tree, so that it needs Prepare and Apply rather than Read.
func IsWrite(req *zkop.Request) bool {
	switch req.Kind {
	case zkop.Create, zkop.Set, zkop.Delete, zkop.SetACL:
		return true
	case zkop.Multi:
		for i := range req.Ops {
			if k := req.Ops[i].Kind; k == zkop.Check || IsWrite(&req.Ops[i]) {
				return true
			}
		}
		return len(req.Ops) == 0
	default:
		return false
	}
}

// Walk calls fn for root and everything below it, parents first and children in name order, until fn returns
// false. data must not be modified. It does nothing when root does not exist.
func (t *Tree) Walk(root string, fn func(path string, data []byte, stat zkop.Stat) bool) {
	if n := t.nodes[root]; n != nil {
		t.walk(root, n, fn)
	}
}

func (t *Tree) walk(path string, n *node, fn func(string, []byte, zkop.Stat) bool) bool {
	if !fn(path, n.data, n.stat()) {
		return false
	}
	for _, name := range n.children {
		child := join(path, name)
		if !t.walk(child, t.nodes[child], fn) {
			return false
		}
	}
	return true
}

// addChild and removeChild keep the names sorted; appending the greatest (sequence nodes) is cheap.
func (n *node) addChild(name string) {
	i := len(n.children)
	if i > 0 && n.children[i-1] >= name {
		i = sort.SearchStrings(n.children, name)
		if n.children[i] == name {
			return
		}
	}
	n.children = append(n.children, "")
	copy(n.children[i+1:], n.children[i:])
	n.children[i] = name
}

func (n *node) removeChild(name string) {
	i := sort.SearchStrings(n.children, name)
	if i == len(n.children) || n.children[i] != name {
		return
	}
	if i == 0 { // removing the oldest sequence nodes one by one must not move the rest each time
		n.children[0] = ""
		n.children = n.children[1:]
	} else {
		copy(n.children[i:], n.children[i+1:])
		n.children[len(n.children)-1] = ""
		n.children = n.children[:len(n.children)-1]
	}
	if len(n.children) == 0 {
		n.children = nil
	}
}

func join(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// split cuts a valid path other than "/" into its parent and its last name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}
