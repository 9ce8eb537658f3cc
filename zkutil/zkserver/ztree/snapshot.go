package ztree

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"time"
)

const imageMagic = "KZTREE1\n"

// Image is a consistent copy of a tree's durable state: nodes and sessions, not watches. It shares the data
// of the nodes, which never changes in place, so that taking one is quick and writing it needs no lock.
type Image struct {
	zxid     int64
	lastSID  int64
	sessions []frozenSession
	nodes    []frozenNode
}

type frozenSession struct{ id, timeoutMs int64 }

type frozenNode struct {
	path string
	node
}

// Freeze takes an image of what is applied; prepared changes are not in it.
func (t *Tree) Freeze() *Image {
	im := &Image{zxid: t.zxid, lastSID: t.lastSID, nodes: make([]frozenNode, 0, len(t.nodes))}
	for id, s := range t.sessions {
		im.sessions = append(im.sessions, frozenSession{id, s.timeoutMs})
	}
	sort.Slice(im.sessions, func(i, j int) bool { return im.sessions[i].id < im.sessions[j].id })
	t.freeze(im, "/", t.nodes["/"])
	return im
}

func (t *Tree) freeze(im *Image, path string, n *node) {
	im.nodes = append(im.nodes, frozenNode{path, *n})
	im.nodes[len(im.nodes)-1].children = nil
	for _, name := range n.children {
		child := join(path, name)
		t.freeze(im, child, t.nodes[child])
	}
}

// Zxid is the last change in the image.
func (im *Image) Zxid() int64 { return im.zxid }

// Nodes is the number of nodes in the image.
func (im *Image) Nodes() int { return len(im.nodes) }

// WriteTo writes the image. Numbers are unsigned varints unless noted, strings, data and ACL as in AppendTxn.
//
//	"KZTREE1\n" | zxid | lastSessionID (8 bytes) | count | count * session | count | count * node
//	session: id (8 bytes) | timeoutMs
//	node:    path | data | ACL | czxid | mzxid | pzxid | ctime | mtime | version | cversion | aversion | owner (8 bytes)
//
// Nodes come parents first and children in name order; the versions are the bits of an int32.
func (im *Image) WriteTo(w io.Writer) (int64, error) {
	const chunk = 64 << 10
	var written int64
	b := make([]byte, 0, chunk+4096)
	flush := func(least int) error {
		if len(b) < least {
			return nil
		}
		n, err := w.Write(b)
		written += int64(n)
		b = b[:0]
		return err
	}
	b = append(b, imageMagic...)
	b = binary.AppendUvarint(b, uint64(im.zxid))
	b = binary.BigEndian.AppendUint64(b, uint64(im.lastSID))
	b = binary.AppendUvarint(b, uint64(len(im.sessions)))
	for _, s := range im.sessions {
		b = binary.BigEndian.AppendUint64(b, uint64(s.id))
		b = binary.AppendUvarint(b, uint64(s.timeoutMs))
	}
	b = binary.AppendUvarint(b, uint64(len(im.nodes)))
	for i := range im.nodes {
		b = appendNode(b, &im.nodes[i])
		if err := flush(chunk); err != nil {
			return written, err
		}
	}
	return written, flush(1)
}

func appendNode(b []byte, n *frozenNode) []byte {
	b = appendString(b, n.path)
	b = appendData(b, n.data)
	b = appendACL(b, n.acl)
	for _, v := range [...]int64{n.czxid, n.mzxid, n.pzxid, n.ctime, n.mtime} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	for _, v := range [...]int32{n.version, n.cversion, n.aversion} {
		b = binary.AppendUvarint(b, uint64(uint32(v)))
	}
	return binary.BigEndian.AppendUint64(b, uint64(n.owner))
}

// Restore builds a tree from the bytes of an image. Session timers start at the given time. b is not kept.
// Wrong bytes give ErrCorrupt, never a panic, and allocate no more than a small multiple of len(b).
func Restore(b []byte, at time.Time, o Options) (*Tree, error) {
	if len(b) < len(imageMagic) || string(b[:len(imageMagic)]) != imageMagic {
		return nil, fmt.Errorf("%w: not an image of a tree", ErrCorrupt)
	}
	d := decoder{b: b[len(imageMagic):]}
	t := New(o)
	t.nodes = make(map[string]*node)
	t.bytes = 0
	t.zxid = int64(d.uvarint())
	t.nextZxid = t.zxid
	t.lastSID = d.int64()
	for i := d.count(9); i > 0; i-- {
		id, timeout := d.int64(), int64(d.uvarint())
		if timeout < 0 {
			d.bad = true
		}
		t.sessions[id] = &session{timeoutMs: timeout}
	}
	t.RestartTimers(at)
	for i, n := 0, d.count(19); i < n; i++ {
		if !t.restoreNode(&d, i == 0) {
			return nil, fmt.Errorf("%w: node %d of %d of an image", ErrCorrupt, i, n)
		}
	}
	if d.bad || len(d.b) != 0 || t.zxid < 0 || t.nodes["/"] == nil {
		return nil, fmt.Errorf("%w: image of a tree is damaged", ErrCorrupt)
	}
	for _, path := range []string{"/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		if t.nodes[path] == nil {
			return nil, fmt.Errorf("%w: image of a tree without %s", ErrCorrupt, path)
		}
	}
	return t, nil
}

func (t *Tree) restoreNode(d *decoder, root bool) bool {
	path := d.string()
	n := &node{}
	if data := d.data(); data != nil {
		n.data = append(make([]byte, 0, len(data)), data...)
	}
	n.acl = d.acl()
	for _, p := range [...]*int64{&n.czxid, &n.mzxid, &n.pzxid, &n.ctime, &n.mtime} {
		*p = int64(d.uvarint())
	}
	for _, p := range [...]*int32{&n.version, &n.cversion, &n.aversion} {
		*p = int32(uint32(d.uvarint()))
	}
	n.owner = d.int64()
	if d.bad || !validPath(path) || root != (path == "/") || t.nodes[path] != nil {
		return false
	}
	if !root {
		parentPath, name := split(path)
		parent := t.nodes[parentPath]
		if parent == nil || isEphemeral(parent.owner) {
			return false
		}
		parent.addChild(name)
	}
	t.nodes[path] = n
	t.bytes += int64(len(path) + len(n.data))
	switch {
	case isEphemeral(n.owner):
		s := t.sessions[n.owner]
		if s == nil {
			return false
		}
		if s.ephemerals == nil {
			s.ephemerals = make(map[string]struct{})
		}
		s.ephemerals[path] = struct{}{}
	case n.owner != ownerNone:
		t.special[path] = struct{}{}
	}
	return true
}

var _ io.WriterTo = (*Image)(nil)

// Equal tells whether two trees hold the same nodes and sessions with the same stats; watches, timers and
// prepared changes are not compared. For tests and consistency checks.
func Equal(a, b *Tree) error {
	x, y := a.Freeze(), b.Freeze()
	if x.zxid != y.zxid {
		return fmt.Errorf("zxid 0x%x and 0x%x", x.zxid, y.zxid)
	}
	if len(x.sessions) != len(y.sessions) {
		return fmt.Errorf("%d and %d sessions", len(x.sessions), len(y.sessions))
	}
	for i := range x.sessions {
		if x.sessions[i] != y.sessions[i] {
			return fmt.Errorf("session 0x%x and 0x%x", x.sessions[i].id, y.sessions[i].id)
		}
	}
	for i := 0; i < len(x.nodes) && i < len(y.nodes); i++ {
		if p, q := appendNode(nil, &x.nodes[i]), appendNode(nil, &y.nodes[i]); string(p) != string(q) {
			return fmt.Errorf("node %s and %s differ", x.nodes[i].path, y.nodes[i].path)
		}
	}
	if len(x.nodes) != len(y.nodes) {
		return fmt.Errorf("%d and %d nodes", len(x.nodes), len(y.nodes))
	}
	return nil
}
