package ztree

import (
	"fmt"

	"kctl/zkutil/zkop"
)

// Apply makes a prepared transaction visible and returns its response and the watches it fired. Transactions
// must be applied in the order in which they were prepared. The fired watches are valid until the next call.
func (t *Tree) Apply(txn *Txn) (zkop.Response, []FiredWatch) {
	t.fired = t.fired[:0]
	t.settle(txn.Zxid)
	t.zxid = txn.Zxid
	t.nextZxid = max(t.nextZxid, txn.Zxid)
	switch txn.Kind {
	case TxnOpenSession:
		t.lastSID = max(t.lastSID, txn.Session)
		s := &session{timeoutMs: txn.TimeoutMs, ephemerals: nil}
		s.deadlineMs = t.deadline(txn.AtMs, txn.TimeoutMs)
		t.sessions[txn.Session] = s
		return zkop.Response{}, nil
	case TxnCloseSession:
		t.DropWatches(txn.Session)
		for i := range txn.Changes {
			t.applyOne(txn, &txn.Changes[i])
		}
		delete(t.sessions, txn.Session)
		delete(t.closing, txn.Session)
		return zkop.Response{}, t.fired
	case TxnMulti:
		results := make([]zkop.Response, len(txn.Changes))
		for i := range txn.Changes {
			results[i] = t.applyOne(txn, &txn.Changes[i])
		}
		return zkop.Response{Results: results}, t.fired
	default:
		return t.applyOne(txn, &txn.Changes[0]), t.fired
	}
}

func (t *Tree) applyOne(txn *Txn, c *Change) zkop.Response {
	switch c.Kind {
	case zkop.Create:
		return t.applyCreate(txn, c)
	case zkop.Delete:
		t.applyDelete(txn, c)
		return zkop.Response{}
	case zkop.Set:
		n := t.nodes[c.Path]
		t.bytes += int64(len(c.Data) - len(n.data))
		n.data = c.Data
		n.version = nextVersion(n.version)
		n.mzxid, n.mtime = txn.Zxid, txn.AtMs
		t.fire(c.Path, zkop.NodeDataChanged, n.acl)
		return zkop.Response{Stat: n.stat()}
	case zkop.SetACL:
		n := t.nodes[c.Path]
		n.acl = c.ACL
		n.aversion = nextVersion(n.aversion)
		return zkop.Response{Stat: n.stat()}
	default: // Check
		return zkop.Response{}
	}
}

func (t *Tree) applyCreate(txn *Txn, c *Change) zkop.Response {
	parentPath, name := split(c.Path)
	parent := t.nodes[parentPath]
	n := &node{
		data: c.Data, acl: c.ACL, owner: c.Owner,
		czxid: txn.Zxid, mzxid: txn.Zxid, pzxid: txn.Zxid, ctime: txn.AtMs, mtime: txn.AtMs,
	}
	t.nodes[c.Path] = n
	t.bytes += int64(len(c.Path) + len(c.Data))
	parent.addChild(name)
	parent.cversion++
	parent.pzxid = txn.Zxid
	switch {
	case isEphemeral(c.Owner):
		if s := t.sessions[c.Owner]; s != nil {
			if s.ephemerals == nil {
				s.ephemerals = make(map[string]struct{})
			}
			s.ephemerals[c.Path] = struct{}{}
		}
	case c.Owner != ownerNone:
		t.special[c.Path] = struct{}{}
	}
	t.fire(c.Path, zkop.NodeCreated, n.acl)
	t.fire(parentPath, zkop.NodeChildrenChanged, parent.acl)
	return zkop.Response{Path: c.Path, Stat: n.stat()}
}

func (t *Tree) applyDelete(txn *Txn, c *Change) {
	n := t.nodes[c.Path]
	parentPath, name := split(c.Path)
	parent := t.nodes[parentPath]
	delete(t.nodes, c.Path)
	t.bytes -= int64(len(c.Path) + len(n.data))
	parent.removeChild(name)
	parent.pzxid = txn.Zxid
	switch {
	case isEphemeral(n.owner):
		if s := t.sessions[n.owner]; s != nil {
			delete(s.ephemerals, c.Path)
		}
	case n.owner != ownerNone:
		delete(t.special, c.Path)
	}
	t.fire(c.Path, zkop.NodeDeleted, n.acl)
	t.fire(parentPath, zkop.NodeChildrenChanged, parent.acl)
}

// Replay applies a transaction from a log after checking that it fits the tree: the log may belong to another
// snapshot. The tree is unchanged when it does not fit.
func (t *Tree) Replay(txn *Txn) error {
	if txn.Zxid <= t.zxid {
		return fmt.Errorf("%w: transaction 0x%x after 0x%x", ErrCorrupt, txn.Zxid, t.zxid)
	}
	if err := t.fits(txn); err != nil {
		return fmt.Errorf("%w: transaction 0x%x: %w", ErrCorrupt, txn.Zxid, err)
	}
	t.Apply(txn)
	return nil
}

func (t *Tree) fits(txn *Txn) error {
	switch txn.Kind {
	case TxnOpenSession:
		if t.sessions[txn.Session] != nil || txn.Session <= 0 {
			return fmt.Errorf("session 0x%x cannot be opened", txn.Session)
		}
	case TxnCloseSession:
		if t.sessions[txn.Session] == nil {
			return fmt.Errorf("session 0x%x to close does not exist", txn.Session)
		}
	case TxnWrite:
		if len(txn.Changes) != 1 {
			return fmt.Errorf("%d changes in a single write", len(txn.Changes))
		}
	}
	mark := len(t.queue)
	defer t.rollback(mark)
	for i := range txn.Changes {
		if err := t.fitsChange(txn, &txn.Changes[i]); err != nil {
			return fmt.Errorf("change of %q: %w", txn.Changes[i].Path, err)
		}
	}
	return nil
}

// fitsChange pushes records as the prepare of the change did, so that later changes see it.
func (t *Tree) fitsChange(txn *Txn, c *Change) error {
	n, exists := t.current(c.Path)
	if c.Kind != zkop.Create && !exists {
		return zkop.ErrNoNode
	}
	switch c.Kind {
	case zkop.Create:
		parentPath, _ := split(c.Path)
		parent, ok := t.current(parentPath)
		if !ok {
			return zkop.ErrNoNode
		}
		if exists {
			return zkop.ErrNodeExists
		}
		if isEphemeral(c.Owner) && t.sessions[c.Owner] == nil {
			return zkop.ErrSessionExpired
		}
		parent.children++
		t.push(parent, txn.Zxid)
		t.push(record{path: c.Path, owner: c.Owner}, txn.Zxid)
	case zkop.Delete:
		if n.children > 0 || special(c.Path) {
			return zkop.ErrNotEmpty
		}
		parentPath, _ := split(c.Path)
		parent, _ := t.current(parentPath)
		t.pushDelete(parent, c.Path, txn.Zxid)
	}
	return nil
}
