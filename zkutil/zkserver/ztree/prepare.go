package ztree

import (
	"strconv"
	"time"

	"kctl/zkutil/zkop"
)

// record is a node as the prepared but not yet applied changes leave it: what later writes are checked
// against. ZooKeeper calls it ChangeRecord.
type record struct {
	path     string
	zxid     int64 // of the change that left it so
	gone     bool
	version  int32
	aversion int32
	cversion int32
	children int32
	owner    int64
	acl      []zkop.ACL
	prev     *record // older and newer pending states of the same path
	next     *record
}

// current returns the state of path after everything that is applied and prepared; false if there is no node.
func (t *Tree) current(path string) (record, bool) {
	if len(t.pending) > 0 {
		if r := t.pending[path]; r != nil {
			return *r, !r.gone
		}
	}
	n := t.nodes[path]
	if n == nil {
		return record{}, false
	}
	return record{
		path: path, version: n.version, aversion: n.aversion, cversion: n.cversion,
		children: int32(len(n.children)), owner: n.owner, acl: n.acl,
	}, true
}

func (t *Tree) push(r record, zxid int64) {
	if t.direct {
		return
	}
	var p *record
	if k := len(t.free); k > 0 {
		p, t.free = t.free[k-1], t.free[:k-1]
	} else {
		p = new(record)
	}
	*p = r
	p.zxid = zxid
	p.prev, p.next = t.pending[r.path], nil
	if p.prev != nil {
		p.prev.next = p
	}
	t.pending[r.path] = p
	t.queue = append(t.queue, p)
}

// rollback takes back the records pushed since the queue had that length.
func (t *Tree) rollback(mark int) {
	for i := len(t.queue) - 1; i >= mark; i-- {
		r := t.queue[i]
		if r.prev != nil {
			r.prev.next = nil
			t.pending[r.path] = r.prev
		} else {
			delete(t.pending, r.path)
		}
		t.release(r)
		t.queue[i] = nil
	}
	t.queue = t.queue[:mark]
}

func (t *Tree) release(r *record) {
	*r = record{}
	if len(t.free) < 1024 {
		t.free = append(t.free, r)
	}
}

// settle drops the records that are applied up to zxid.
func (t *Tree) settle(zxid int64) {
	i := 0
	for ; i < len(t.queue) && t.queue[i].zxid <= zxid; i++ {
		r := t.queue[i]
		if r.next != nil {
			r.next.prev = nil
		} else {
			delete(t.pending, r.path)
		}
		t.release(r)
		t.queue[i] = nil
	}
	if i == len(t.queue) {
		t.queue = t.queue[:0]
	} else if i > 0 {
		t.queue = append(t.queue[:0], t.queue[i:]...)
	}
}

// Prepare validates a write (see IsWrite) of a live session against the tree and everything prepared before
// it. It returns the transaction to log and then Apply, in the order of preparation; or nil and the response
// that says why not, in which case nothing has changed. The transaction keeps the request's slices.
func (t *Tree) Prepare(at time.Time, session int64, auth []Identity, req *zkop.Request) (*Txn, zkop.Response) {
	if s := t.sessions[session]; s == nil {
		return nil, zkop.Response{Err: zkop.ErrSessionExpired}
	}
	if _, closing := t.closing[session]; closing {
		return nil, zkop.Response{Err: zkop.ErrSessionExpired}
	}
	txn := &Txn{Kind: TxnWrite, Zxid: t.nextZxid + 1, AtMs: at.UnixMilli(), Session: session}
	if req.Kind == zkop.Multi {
		if resp := t.prepareMulti(txn, auth, req); resp.Err != nil {
			return nil, resp
		}
	} else {
		txn.Changes = txn.one[:]
		if err := t.prepareOne(txn, &txn.one[0], auth, req); err != nil {
			return nil, zkop.Response{Err: err}
		}
	}
	t.nextZxid = txn.Zxid
	return txn, zkop.Response{}
}

func (t *Tree) prepareMulti(txn *Txn, auth []Identity, req *zkop.Request) zkop.Response {
	txn.Kind = TxnMulti
	txn.Changes = make([]Change, len(req.Ops))
	mark := len(t.queue)
	for i := range req.Ops {
		err := t.prepareOne(txn, &txn.Changes[i], auth, &req.Ops[i])
		if err == nil {
			continue
		}
		t.rollback(mark)
		results := make([]zkop.Response, len(req.Ops))
		for j := range results {
			results[j].Err = zkop.ErrRolledBack
		}
		results[i].Err = err
		return zkop.Response{Err: err, Results: results}
	}
	return zkop.Response{}
}

func (t *Tree) prepareOne(txn *Txn, c *Change, auth []Identity, req *zkop.Request) error {
	c.Kind, c.Path = req.Kind, req.Path
	switch req.Kind {
	case zkop.Create:
		return t.prepareCreate(txn, c, auth, req)
	case zkop.Delete:
		return t.prepareDelete(txn, auth, req)
	case zkop.Set:
		c.Data = req.Data
		return t.prepareSet(txn, auth, req)
	case zkop.SetACL:
		return t.prepareSetACL(txn, c, auth, req)
	case zkop.Check:
		_, err := t.target(req, zkop.PermRead, auth)
		return err
	default:
		return zkop.ErrBadArguments
	}
}

func (t *Tree) prepareCreate(txn *Txn, c *Change, auth []Identity, req *zkop.Request) error {
	sequential, owner, ok := ownerOf(req, txn.Session)
	if !ok {
		return zkop.ErrBadArguments
	}
	parentPath, ok := parentOf(req.Path)
	if !ok {
		return zkop.ErrBadArguments
	}
	acl, ok := fixACL(req.ACL, auth)
	if !ok {
		return zkop.ErrInvalidACL
	}
	parent, ok := t.current(parentPath)
	if !ok {
		return zkop.ErrNoNode
	}
	if !allowed(parent.acl, zkop.PermCreate, auth) {
		return zkop.ErrNoAuth
	}
	if sequential {
		c.Path = sequencePath(req.Path, parent.cversion)
	}
	if !validPath(c.Path) {
		return zkop.ErrBadArguments
	}
	if _, exists := t.current(c.Path); exists {
		return zkop.ErrNodeExists
	}
	if isEphemeral(parent.owner) {
		return zkop.ErrNoChildrenForEphemeral
	}
	c.Data, c.ACL, c.Owner = req.Data, acl, owner
	parent.cversion++
	parent.children++
	t.push(parent, txn.Zxid)
	t.push(record{path: c.Path, owner: owner, acl: acl}, txn.Zxid)
	return nil
}

// ownerOf translates the create mode to the node's owner field. False: unknown mode or a TTL out of range.
func ownerOf(req *zkop.Request, session int64) (sequential bool, owner int64, ok bool) {
	switch req.Mode {
	case zkop.Persistent:
		return false, ownerNone, true
	case zkop.PersistentSequential:
		return true, ownerNone, true
	case zkop.Ephemeral:
		return false, session, true
	case zkop.EphemeralSequential:
		return true, session, true
	case zkop.Container:
		return false, ownerContainer, true
	case zkop.PersistentTTL, zkop.PersistentSequentialTTL:
		if req.TTL <= 0 || req.TTL > ttlMax {
			return false, 0, false
		}
		return req.Mode == zkop.PersistentSequentialTTL, ownerTTLMask | req.TTL, true
	default:
		return false, 0, false
	}
}

// isEphemeral tells a session's node from a persistent, container or TTL one.
func isEphemeral(owner int64) bool {
	return owner != ownerNone && owner != ownerContainer && owner&ownerTTLMask != ownerTTLMask
}

// sequencePath appends the ten-digit counter; a negative one has its sign first, as Java prints it.
func sequencePath(path string, n int32) string {
	var digits [12]byte
	d := strconv.AppendInt(digits[:0], int64(n), 10)
	sign := ""
	if n < 0 {
		sign, d = "-", d[1:]
	}
	return path + sign + "0000000000"[:max(0, 10-len(sign)-len(d))] + string(d)
}

func (t *Tree) prepareDelete(txn *Txn, auth []Identity, req *zkop.Request) error {
	parentPath, ok := parentOf(req.Path)
	if !ok || special(req.Path) {
		return zkop.ErrBadArguments
	}
	parent, ok := t.current(parentPath)
	if !ok {
		return zkop.ErrNoNode
	}
	if !allowed(parent.acl, zkop.PermDelete, auth) {
		return zkop.ErrNoAuth
	}
	n, ok := t.current(req.Path)
	if !ok {
		return zkop.ErrNoNode
	}
	if req.Version != zkop.AnyVersion && req.Version != n.version {
		return zkop.ErrBadVersion
	}
	if n.children > 0 {
		return zkop.ErrNotEmpty
	}
	t.pushDelete(parent, req.Path, txn.Zxid)
	return nil
}

func (t *Tree) pushDelete(parent record, path string, zxid int64) {
	parent.children--
	t.push(parent, zxid)
	t.push(record{path: path, gone: true}, zxid)
}

// target checks what Set and Check have in common and returns the node.
func (t *Tree) target(req *zkop.Request, perm int32, auth []Identity) (record, error) {
	if !validPath(req.Path) {
		return record{}, zkop.ErrBadArguments
	}
	n, ok := t.current(req.Path)
	if !ok {
		return record{}, zkop.ErrNoNode
	}
	if !allowed(n.acl, perm, auth) {
		return record{}, zkop.ErrNoAuth
	}
	if req.Version != zkop.AnyVersion && req.Version != n.version {
		return record{}, zkop.ErrBadVersion
	}
	return n, nil
}

func (t *Tree) prepareSet(txn *Txn, auth []Identity, req *zkop.Request) error {
	n, err := t.target(req, zkop.PermWrite, auth)
	if err != nil {
		return err
	}
	n.version = nextVersion(n.version)
	t.push(n, txn.Zxid)
	return nil
}

func (t *Tree) prepareSetACL(txn *Txn, c *Change, auth []Identity, req *zkop.Request) error {
	if !validPath(req.Path) {
		return zkop.ErrBadArguments
	}
	acl, ok := fixACL(req.ACL, auth)
	if !ok {
		return zkop.ErrInvalidACL
	}
	n, ok := t.current(req.Path)
	if !ok {
		return zkop.ErrNoNode
	}
	if !allowed(n.acl, zkop.PermAdmin, auth) {
		return zkop.ErrNoAuth
	}
	if req.Version != zkop.AnyVersion && req.Version != n.aversion {
		return zkop.ErrBadVersion
	}
	n.aversion = nextVersion(n.aversion)
	n.acl, c.ACL = acl, acl
	t.push(n, txn.Zxid)
	return nil
}

// nextVersion skips -1, which would match any version.
func nextVersion(v int32) int32 {
	if v == -2 {
		return 0
	}
	return v + 1
}

// PrepareOpenSession makes the transaction that opens a session; its id is the Session of the Txn.
func (t *Tree) PrepareOpenSession(at time.Time, timeout time.Duration) *Txn {
	id := t.newSessionID(at.UnixMilli())
	t.lastSID = id
	t.nextZxid = t.nextZxid + 1
	return &Txn{Kind: TxnOpenSession, Zxid: t.nextZxid, AtMs: at.UnixMilli(), Session: id, TimeoutMs: millis(timeout)}
}

// PrepareCloseSession makes the transaction that ends a session and deletes its ephemerals, those that are only
// prepared included; from now on Prepare and Touch refuse the session. nil: no such session, or it is already
// being closed.
func (t *Tree) PrepareCloseSession(at time.Time, id int64) *Txn {
	s := t.sessions[id]
	if s == nil {
		return nil
	}
	if _, closing := t.closing[id]; closing {
		return nil
	}
	paths := t.Ephemerals(id)
	for _, r := range t.queue {
		if !r.gone && r.owner == id && t.pending[r.path] == r {
			if _, applied := s.ephemerals[r.path]; !applied {
				paths = append(paths, r.path)
			}
		}
	}
	zxid := t.nextZxid + 1
	txn := &Txn{Kind: TxnCloseSession, Zxid: zxid, AtMs: at.UnixMilli(), Session: id}
	for _, path := range paths {
		n, ok := t.current(path)
		if !ok || n.owner != id {
			continue
		}
		parentPath, _ := split(path)
		parent, _ := t.current(parentPath)
		t.pushDelete(parent, path, zxid)
		txn.Changes = append(txn.Changes, Change{Kind: zkop.Delete, Path: path})
	}
	t.closing[id] = struct{}{}
	t.nextZxid = zxid
	return txn
}

// Leftovers returns up to limit container nodes whose last child went and TTL nodes whose time is over, in no
// particular order: candidates for PrepareDeleteLeftover.
func (t *Tree) Leftovers(at time.Time, limit int) []string {
	var out []string
	for path := range t.special {
		if len(out) >= limit {
			break
		}
		if leftover(t.nodes[path], at.UnixMilli()) {
			out = append(out, path)
		}
	}
	return out
}

func leftover(n *node, nowMs int64) bool {
	if n == nil || len(n.children) > 0 {
		return false
	}
	switch {
	case n.owner == ownerContainer:
		return n.cversion > 0
	case n.owner != ownerNone && n.owner&ownerTTLMask == ownerTTLMask:
		return nowMs-n.mtime > n.owner&ttlMax
	default:
		return false
	}
}

// PrepareDeleteLeftover makes the transaction that deletes one candidate of Leftovers; nil when it is no longer
// one.
func (t *Tree) PrepareDeleteLeftover(at time.Time, path string) *Txn {
	if _, ok := t.special[path]; !ok || t.pending[path] != nil || !leftover(t.nodes[path], at.UnixMilli()) {
		return nil
	}
	parentPath, _ := split(path)
	parent, _ := t.current(parentPath)
	zxid := t.nextZxid + 1
	t.pushDelete(parent, path, zxid)
	t.nextZxid = zxid
	txn := &Txn{Kind: TxnWrite, Zxid: zxid, AtMs: at.UnixMilli()}
	txn.one[0] = Change{Kind: zkop.Delete, Path: path}
	txn.Changes = txn.one[:]
	return txn
}
