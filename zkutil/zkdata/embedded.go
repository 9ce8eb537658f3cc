package zkdata

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"

	"kctl/zkutil/zkop"
)

const (
	ownSnapMagic   = "KZKSNP1\n"
	ownImageMagic  = "KZTREE1\n"
	ownLogMagic    = "KZKLOG1\n"
	ownFrameMagic  = 0x4b5a4246
	ownSnapTrailer = 12
	ownLogHeader   = 16
	ownFrameHeader = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fields reads the embedded server's records; bad sticks after the first error.
type fields struct {
	b   []byte
	bad bool
}

func (d *fields) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *fields) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *fields) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *fields) long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *fields) string() string { return string(d.take(d.uvarint())) }

func (d *fields) data() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return append([]byte{}, d.take(n-1)...)
}

// count is the number of elements of at least least bytes each.
func (d *fields) count(least uint64) uint64 {
	n := d.uvarint()
	if n > uint64(len(d.b))/least {
		d.bad = true
		return 0
	}
	return n
}

func (d *fields) acl() []zkop.ACL {
	n := d.uvarint()
	if n == 0 {
		return zkop.WorldAll()
	}
	if n-1 > uint64(len(d.b))/3 {
		d.bad = true
		return nil
	}
	var out []zkop.ACL
	for range n - 1 {
		out = append(out, zkop.ACL{Perms: int32(uint32(d.uvarint())), Scheme: d.string(), ID: d.string()})
	}
	return out
}

// ownSnapshot reads a snapshot of the embedded server.
func ownSnapshot(b []byte) (*tree, error) {
	body := len(b) - 4
	if len(b) < len(ownSnapMagic)+ownSnapTrailer || string(b[:len(ownSnapMagic)]) != ownSnapMagic {
		return nil, damaged("it does not begin as a snapshot")
	}
	if sum := crc32.Checksum(b[:body], castagnoli); sum != binary.BigEndian.Uint32(b[body:]) {
		return nil, damaged("the checksum is 0x%08x, the bytes have 0x%08x", binary.BigEndian.Uint32(b[body:]), sum)
	}
	image := b[len(ownSnapMagic) : len(b)-ownSnapTrailer]
	if !strings.HasPrefix(string(image[:min(len(image), len(ownImageMagic))]), ownImageMagic) {
		return nil, damaged("the image of its tree is of another version")
	}
	d := &fields{b: image[len(ownImageMagic):]}
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}, zxid: int64(d.uvarint())}
	d.long() // last session
	for range d.count(9) {
		d.long()
		d.uvarint()
	}
	for range d.count(19) {
		if err := ownNode(d, t); err != nil {
			return nil, err
		}
	}
	if d.bad || len(d.b) != 0 || t.nodes["/"] == nil {
		return nil, damaged("the image of its tree is not whole")
	}
	return t, nil
}

func ownNode(d *fields, t *tree) error {
	p := d.string()
	n := &node{data: d.data(), acl: d.acl()}
	for _, v := range []*int64{&n.stat.Czxid, &n.stat.Mzxid, &n.stat.Pzxid, &n.stat.Ctime, &n.stat.Mtime} {
		*v = int64(d.uvarint())
	}
	for _, v := range []*int32{&n.stat.Version, &n.cversion, &n.stat.Aversion} {
		*v = int32(uint32(d.uvarint()))
	}
	n.stat.EphemeralOwner = d.long()
	if d.bad || p == "" || p[0] != '/' || p != "/" && t.parent(p) == nil {
		return damaged("node %q of its tree cannot be", p)
	}
	t.add(p, n)
	t.timeMs = max(t.timeMs, n.stat.Ctime, n.stat.Mtime)
	return nil
}

// ownLog reads the frames of the embedded server's log.
type ownLog struct {
	b       []byte
	pos     int
	payload []byte // rest of the current frame
}

func newOwnLog(b []byte) (*ownLog, error) {
	if len(b) < ownLogHeader || string(b[:len(ownLogMagic)]) != ownLogMagic {
		return nil, damaged("it does not begin as a log")
	}
	return &ownLog{b: b, pos: ownLogHeader}, nil
}

// next returns the bytes of the next transaction; io.EOF at the end.
func (l *ownLog) next() ([]byte, error) {
	for len(l.payload) == 0 {
		if l.pos == len(l.b) {
			return nil, io.EOF
		}
		b := l.b[l.pos:]
		if len(b) < ownFrameHeader || binary.BigEndian.Uint32(b) != ownFrameMagic {
			return nil, damaged("position %d: no commit begins here", l.pos)
		}
		n := uint64(binary.BigEndian.Uint32(b[4:]))
		if n > uint64(len(b)-ownFrameHeader) {
			return nil, damaged("position %d: a commit of %d bytes, the file ends after %d", l.pos, n, len(b)-ownFrameHeader)
		}
		payload := b[ownFrameHeader : ownFrameHeader+n]
		if sum := crc32.Update(crc32.Checksum(b[4:16], castagnoli), castagnoli, payload); sum != binary.BigEndian.Uint32(b[16:]) {
			return nil, damaged("position %d: the checksum is 0x%08x, the bytes have 0x%08x", l.pos, binary.BigEndian.Uint32(b[16:]), sum)
		}
		l.payload = payload
		l.pos += ownFrameHeader + int(n)
	}
	if len(l.payload) < 4 || uint64(binary.BigEndian.Uint32(l.payload)) > uint64(len(l.payload)-4) {
		return nil, damaged("the commit that ends at position %d holds a transaction that is cut", l.pos)
	}
	n := binary.BigEndian.Uint32(l.payload)
	txn := l.payload[4 : 4+n]
	l.payload = l.payload[4+n:]
	return txn, nil
}

// ownZxid reads the zxid of a transaction without the rest.
func ownZxid(b []byte) int64 {
	d := fields{b: b}
	d.byte()
	return int64(d.uvarint())
}

// applyOwn applies one transaction of the embedded server.
func (t *tree) applyOwn(b []byte) error {
	d := &fields{b: b}
	d.byte() // kind: sessions do not matter here, a close has its deletions with it
	zxid, at := int64(d.uvarint()), int64(d.uvarint())
	d.long()
	d.uvarint()
	var changes []change
	for range d.count(3) {
		c := change{kind: zkop.Kind(d.byte()), path: d.string(), data: d.data(), acl: d.acl(), version: -1}
		if c.kind == zkop.Create {
			c.owner = d.long()
		}
		if d.bad || c.path == "" || c.path[0] != '/' {
			break
		}
		changes = append(changes, c)
	}
	if d.bad || len(d.b) != 0 {
		return damaged("transaction 0x%x is not whole", zxid)
	}
	for i := range changes {
		t.apply(changes[i], zxid, at)
	}
	t.zxid, t.timeMs = max(t.zxid, zxid), max(t.timeMs, at)
	return nil
}
