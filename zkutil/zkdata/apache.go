package zkdata

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"strings"

	"github.com/klauspost/compress/s2"

	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/jute"
)

const (
	apacheSnapMagic  = "ZKSN"
	apacheLogMagic   = "ZKLG"
	gzipMagic        = "\x1f\x8b"
	snappyMagic      = "\x82SNAPPY\x00"
	apacheHeader     = 16 // magic, version i32, dbid i64
	snapshotMax      = 2 << 30
	acceptedVersion  = 2
	logEntryOverhead = 12 // checksum, length
	ttlMark          = 0xff << 56
)

// The types of transactions in a log.
const (
	txnCreate       = 1
	txnDelete       = 2
	txnSetData      = 5
	txnSetACL       = 7
	txnCheck        = 13
	txnMulti        = 14
	txnCreate2      = 15
	txnReconfig     = 16
	txnContainer    = 19
	txnDelContainer = 20
	txnTTL          = 21
	txnError        = -1
	txnOpenSession  = -10
	txnCloseSession = -11
)

var errDamaged = errors.New("damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errDamaged}, args...)...)
}

// inflate undoes the compression that the name of a snapshot, or its first bytes, tell.
func inflate(name string, b []byte) ([]byte, error) {
	switch {
	case strings.HasSuffix(name, ".gz"), bytes.HasPrefix(b, []byte(gzipMagic)):
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, damaged("gzip: %v", err)
		}
		return readBounded(r)
	case strings.HasSuffix(name, ".snappy"), bytes.HasPrefix(b, []byte(snappyMagic)):
		return unsnappy(b)
	}
	return b, nil
}

func readBounded(r io.Reader) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, snapshotMax+1))
	if err != nil {
		return nil, damaged("%v", err)
	}
	if len(out) > snapshotMax {
		return nil, damaged("more than %d bytes", snapshotMax)
	}
	return out, nil
}

// unsnappy reads the framing of snappy-java: 8 bytes of magic, two versions, blocks with an i32 length.
func unsnappy(b []byte) ([]byte, error) {
	const head = 16
	if len(b) < head || string(b[:8]) != snappyMagic {
		return nil, damaged("not a snappy file")
	}
	var out []byte
	for b = b[head:]; len(b) > 0; {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return nil, damaged("snappy: a block is cut")
		}
		n := binary.BigEndian.Uint32(b)
		block := b[4 : 4+n]
		b = b[4+n:]
		size, err := s2.DecodedLen(block)
		if err != nil || size > 64*len(block) || size > snapshotMax-len(out) { // a copy of 64 bytes takes two or more
			return nil, damaged("snappy: a block of %d bytes", size)
		}
		part, err := s2.Decode(nil, block)
		if err != nil {
			return nil, damaged("snappy: %v", err)
		}
		out = append(out, part...)
	}
	return out, nil
}

// apacheSnapshot reads a whole snapshot, whose zxid is that of its name; -1: that of its last change.
func apacheSnapshot(b []byte, zxid int64) (*tree, error) {
	if len(b) < apacheHeader || string(b[:4]) != apacheSnapMagic {
		return nil, damaged("it does not begin as a snapshot")
	}
	if v := binary.BigEndian.Uint32(b[4:]); v != acceptedVersion {
		return nil, damaged("version %d is not known", v)
	}
	d := jute.NewDecoder(b[apacheHeader:])
	for range d.Count(12) { // sessions: id and timeout
		d.Long()
		d.Int()
	}
	acls := snapshotACLs(&d)
	t := &tree{nodes: map[string]*node{}, ephemerals: map[int64]map[string]struct{}{}, zxid: zxid}
	if err := snapshotNodes(&d, t, acls); err != nil {
		return nil, err
	}
	rest := d.Rest()
	sum := adler32.Checksum(b[:len(b)-len(rest)])
	if stored := d.Long(); d.Err() != nil || stored != int64(sum) {
		return nil, damaged("the checksum is 0x%x, the bytes have 0x%x", stored, sum)
	}
	return t, nil
}

func snapshotACLs(d *jute.Decoder) map[int64][]zkop.ACL {
	out := map[int64][]zkop.ACL{}
	for range d.Count(12) {
		id := d.Long()
		out[id] = readACL(d)
	}
	return out
}

func readACL(d *jute.Decoder) []zkop.ACL {
	var out []zkop.ACL
	for range d.Count(12) {
		out = append(out, zkop.ACL{Perms: d.Int(), Scheme: d.String(), ID: d.String()})
	}
	return out
}

func snapshotNodes(d *jute.Decoder, t *tree, acls map[int64][]zkop.ACL) error {
	newest := int64(0)
	for {
		p := d.String()
		if d.Err() != nil {
			return damaged("it ends after %d nodes", len(t.nodes))
		}
		if p == "/" {
			break
		}
		n := &node{data: bytes.Clone(d.Buffer())}
		n.acl = acls[d.Long()]
		n.stat = zkop.Stat{Czxid: d.Long(), Mzxid: d.Long(), Ctime: d.Long(), Mtime: d.Long(), Version: d.Int()}
		n.cversion = d.Int()
		n.stat.Aversion, n.stat.EphemeralOwner, n.stat.Pzxid = d.Int(), d.Long(), d.Long()
		if d.Err() != nil {
			return damaged("it ends after %d nodes", len(t.nodes))
		}
		if p == "" { // the root, as it is stored
			p = "/"
		}
		if p != "/" && t.parent(p) == nil || p[0] != '/' {
			return damaged("node %q has no parent", p)
		}
		t.add(p, n)
		t.timeMs = max(t.timeMs, n.stat.Ctime, n.stat.Mtime)
		newest = max(newest, n.stat.Czxid, n.stat.Mzxid, n.stat.Pzxid)
	}
	if t.zxid < 0 { // the file was renamed
		t.zxid = newest
	}
	if t.nodes["/"] == nil {
		return damaged("it has no root")
	}
	return nil
}

// logReader reads the transactions of an Apache ZooKeeper log.
type logReader struct {
	b   []byte
	pos int
}

func newLogReader(b []byte) (*logReader, error) {
	if len(b) < apacheHeader || string(b[:4]) != apacheLogMagic {
		return nil, damaged("it does not begin as a transaction log")
	}
	return &logReader{b: b, pos: apacheHeader}, nil
}

// next returns the bytes of the next transaction; io.EOF at the end, which is the end of the file or zeros.
func (l *logReader) next() ([]byte, error) {
	b := l.b[l.pos:]
	if len(bytes.TrimLeft(b[:min(len(b), logEntryOverhead)], "\x00")) == 0 {
		if len(bytes.TrimLeft(b, "\x00")) == 0 {
			return nil, io.EOF
		}
		return nil, damaged("position %d: zeros with something behind", l.pos)
	}
	if len(b) < logEntryOverhead {
		return nil, damaged("position %d: the file ends %d bytes into an entry", l.pos, len(b))
	}
	sum, n := int64(binary.BigEndian.Uint64(b)), int64(int32(binary.BigEndian.Uint32(b[8:])))
	if n <= 0 || n+logEntryOverhead+1 > int64(len(b)) {
		return nil, damaged("position %d: an entry of %d bytes, the file ends after %d", l.pos, n, len(b)-logEntryOverhead)
	}
	txn := b[logEntryOverhead : logEntryOverhead+n]
	if got := int64(adler32.Checksum(txn)); got != sum {
		return nil, damaged("position %d: the checksum is 0x%x, the bytes have 0x%x", l.pos, sum, got)
	}
	if b[logEntryOverhead+n] != 'B' {
		return nil, damaged("position %d: the entry has no end mark", l.pos)
	}
	l.pos += int(logEntryOverhead + n + 1)
	return txn, nil
}

// txnHeader is in front of every transaction.
type txnHeader struct {
	session int64
	zxid    int64
	timeMs  int64
	kind    int32
}

func readHeader(d *jute.Decoder) txnHeader {
	h := txnHeader{session: d.Long()}
	d.Int() // cxid
	h.zxid, h.timeMs, h.kind = d.Long(), d.Long(), d.Int()
	return h
}

// applyTxn applies one transaction of a log.
func (t *tree) applyTxn(h *txnHeader, d *jute.Decoder) error {
	changes, err := readTxn(h, h.kind, d)
	if err != nil {
		return err
	}
	for i := range changes {
		t.apply(changes[i], h.zxid, h.timeMs)
	}
	if h.kind == txnCloseSession {
		t.closeSession(h.session, h.zxid)
	}
	t.zxid, t.timeMs = max(t.zxid, h.zxid), max(t.timeMs, h.timeMs)
	return nil
}

func readTxn(h *txnHeader, kind int32, d *jute.Decoder) ([]change, error) {
	var c change
	switch kind {
	case txnCreate, txnCreate2:
		c = change{kind: zkop.Create, path: d.String(), data: bytes.Clone(d.Buffer()), acl: readACL(d)}
		if d.Bool() {
			c.owner = h.session
		}
		c.version = parentVersion(d)
	case txnContainer:
		c = change{kind: zkop.Create, path: d.String(), data: bytes.Clone(d.Buffer()), acl: readACL(d), owner: -1 << 63}
		c.version = parentVersion(d)
	case txnTTL:
		c = change{kind: zkop.Create, path: d.String(), data: bytes.Clone(d.Buffer()), acl: readACL(d)}
		c.version = d.Int()
		c.owner = int64(uint64(ttlMark) | uint64(d.Long()))
	case txnDelete, txnDelContainer:
		c = change{kind: zkop.Delete, path: d.String()}
	case txnSetData, txnReconfig:
		c = change{kind: zkop.Set, path: d.String(), data: bytes.Clone(d.Buffer()), version: d.Int()}
	case txnSetACL:
		c = change{kind: zkop.SetACL, path: d.String(), acl: readACL(d), version: d.Int()}
	case txnMulti:
		return readMulti(h, d)
	case txnCheck, txnError, txnOpenSession, txnCloseSession:
		return nil, nil
	default:
		return nil, damaged("transaction 0x%x has type %d, which is not known", h.zxid, kind)
	}
	if d.Err() != nil || c.path == "" || c.path[0] != '/' {
		return nil, damaged("transaction 0x%x of type %d is cut", h.zxid, kind)
	}
	return []change{c}, nil
}

// parentVersion is the parent's new cversion; logs of old servers do not have it.
func parentVersion(d *jute.Decoder) int32 {
	if d.Err() == nil && len(d.Rest()) < 4 {
		return -1
	}
	return d.Int()
}

func readMulti(h *txnHeader, d *jute.Decoder) ([]change, error) {
	var out []change
	for range d.Count(8) {
		kind, body := d.Int(), d.Buffer()
		if d.Err() != nil {
			break
		}
		if kind == txnMulti {
			return nil, damaged("transaction 0x%x: a multi inside a multi", h.zxid)
		}
		if kind == txnError { // the whole multi failed
			return nil, nil
		}
		in := jute.NewDecoder(body)
		changes, err := readTxn(h, kind, &in)
		if err != nil {
			return nil, err
		}
		out = append(out, changes...)
	}
	if d.Err() != nil {
		return nil, damaged("transaction 0x%x is cut", h.zxid)
	}
	return out, nil
}
