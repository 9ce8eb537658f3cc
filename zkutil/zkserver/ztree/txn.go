package ztree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kctl/zkutil/zkop"
)

// TxnKind says what a Txn does to sessions besides its changes.
type TxnKind uint8

// The kinds of transactions. A close deletes the session's ephemerals by its changes.
const (
	TxnWrite TxnKind = iota + 1
	TxnMulti
	TxnOpenSession
	TxnCloseSession
)

// Txn is one prepared change of the tree, free of conditions: applying it cannot fail, and it holds all that
// the result depends on (zxid, time, session). A log stores Txns with AppendTxn and replays them.
type Txn struct {
	Kind      TxnKind
	Zxid      int64
	AtMs      int64 // milliseconds since the Unix epoch
	Session   int64
	TimeoutMs int64 // TxnOpenSession
	Changes   []Change
	one       [1]Change // backs Changes of single writes
}

// Change is one operation within a Txn. Kind is Create, Set, Delete, SetACL or Check (which changes nothing;
// it keeps the results of a multi in step with its requests). Path is the final path, ACL the effective list.
type Change struct {
	Kind  zkop.Kind
	Path  string
	Data  []byte
	ACL   []zkop.ACL
	Owner int64 // Create: the session, or ZooKeeper's marks of container and TTL nodes
}

// ErrCorrupt says that bytes are not a transaction or a snapshot of this package.
var ErrCorrupt = errors.New("ztree: corrupt bytes")

const maxACLs = 1 << 16

// AppendTxn appends the record of t. Numbers are unsigned varints unless noted.
//
//	kind 1 byte | zxid | atMs | session (8 bytes) | timeoutMs | count | count * change
//	change: kind 1 byte | path string | data string, length+1, 0 is null | ACL | owner (8 bytes; Create only)
//	ACL:    0 is the open ACL, else count+1 entries of perms | scheme string | id string
//	string: length | bytes
func AppendTxn(b []byte, t *Txn) []byte {
	b = append(b, byte(t.Kind))
	b = binary.AppendUvarint(b, uint64(t.Zxid))
	b = binary.AppendUvarint(b, uint64(t.AtMs))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Session))
	b = binary.AppendUvarint(b, uint64(t.TimeoutMs))
	b = binary.AppendUvarint(b, uint64(len(t.Changes)))
	for i := range t.Changes {
		c := &t.Changes[i]
		b = append(b, byte(c.Kind))
		b = appendString(b, c.Path)
		b = appendData(b, c.Data)
		b = appendACL(b, c.ACL)
		if c.Kind == zkop.Create {
			b = binary.BigEndian.AppendUint64(b, uint64(c.Owner))
		}
	}
	return b
}

// DecodeTxn reads a record written by AppendTxn, which must fill b. The Txn keeps b's bytes. It accepts only
// records that Apply can apply to some tree; wrong bytes give ErrCorrupt, never a panic.
func DecodeTxn(b []byte) (*Txn, error) {
	d := decoder{b: b}
	t := &Txn{Kind: TxnKind(d.byte())}
	t.Zxid = int64(d.uvarint())
	t.AtMs = int64(d.uvarint())
	t.Session = d.int64()
	t.TimeoutMs = int64(d.uvarint())
	n := d.count(3)
	if t.Kind < TxnWrite || t.Kind > TxnCloseSession || t.Zxid <= 0 || t.AtMs < 0 || t.TimeoutMs < 0 {
		return nil, fmt.Errorf("%w: transaction header", ErrCorrupt)
	}
	if n == 1 {
		t.Changes = t.one[:]
	} else if n > 0 {
		t.Changes = make([]Change, n)
	}
	for i := range t.Changes {
		c := &t.Changes[i]
		c.Kind = zkop.Kind(d.byte())
		c.Path = d.string()
		c.Data = d.data()
		c.ACL = d.acl()
		if c.Kind == zkop.Create {
			c.Owner = d.int64()
		}
		if d.bad || !validChange(c) {
			return nil, fmt.Errorf("%w: change %d of transaction 0x%x", ErrCorrupt, i, t.Zxid)
		}
	}
	if d.bad || len(d.b) != 0 {
		return nil, fmt.Errorf("%w: transaction 0x%x has a wrong length", ErrCorrupt, t.Zxid)
	}
	return t, nil
}

func validChange(c *Change) bool {
	switch c.Kind {
	case zkop.Create, zkop.Delete:
		return validPath(c.Path) && c.Path != "/"
	case zkop.Set, zkop.SetACL, zkop.Check:
		return validPath(c.Path)
	default:
		return false
	}
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendData(b, data []byte) []byte {
	if data == nil {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(data))+1)
	return append(b, data...)
}

func appendACL(b []byte, acl []zkop.ACL) []byte {
	if acl == nil || isOpen(acl) {
		return append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(acl))+1)
	for i := range acl {
		b = binary.AppendUvarint(b, uint64(uint32(acl[i].Perms)))
		b = appendString(b, acl[i].Scheme)
		b = appendString(b, acl[i].ID)
	}
	return b
}

// decoder reads the formats of this package; bad sticks after the first error.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int64() int64 {
	if len(d.b) < 8 {
		d.bad = true
		d.b = nil
		return 0
	}
	v := binary.BigEndian.Uint64(d.b)
	d.b = d.b[8:]
	return int64(v)
}

// count reads the number of elements of at least min bytes each, so that it bounds the allocation.
func (d *decoder) count(least int) int {
	n := d.uvarint()
	if n > uint64(len(d.b)/least) {
		d.bad = true
		return 0
	}
	return int(n)
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad = true
		d.b = nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes(d.uvarint())) }

func (d *decoder) data() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return d.bytes(n - 1)
}

func (d *decoder) acl() []zkop.ACL {
	n := d.uvarint()
	if n == 0 {
		return openACL
	}
	n--
	if n > maxACLs || n > uint64(len(d.b)/3) {
		d.bad = true
		return nil
	}
	out := make([]zkop.ACL, n)
	for i := range out {
		out[i] = zkop.ACL{Perms: int32(uint32(d.uvarint())), Scheme: d.string(), ID: d.string()}
	}
	return out
}
