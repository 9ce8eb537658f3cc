package zkdata

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/jute"
)

var be = binary.BigEndian

func header(magic string) []byte {
	b := append([]byte(magic), 0, 0, 0, 2)
	return be.AppendUint64(b, 0)
}

// appendNode appends a node as a snapshot has it.
func appendNode(b []byte, path string, data []byte, czxid, mzxid int64, version, cversion int32, owner int64) []byte {
	b = jute.AppendBuffer(jute.AppendString(b, path), data)
	b = jute.AppendLong(b, 1) // ACL
	for _, v := range []int64{czxid, mzxid, 1000 + czxid, 1000 + mzxid} {
		b = jute.AppendLong(b, v)
	}
	for _, v := range []int32{version, cversion, 0} {
		b = jute.AppendInt(b, v)
	}
	return jute.AppendLong(jute.AppendLong(b, owner), czxid)
}

func sealed(nodes []byte) []byte {
	b := header(apacheSnapMagic)
	b = jute.AppendInt(b, 1) // sessions
	b = jute.AppendInt(jute.AppendLong(b, 77), 18000)
	b = jute.AppendInt(b, 1) // ACLs
	b = jute.AppendLong(b, 1)
	b = appendOpenACL(b)
	b = append(b, nodes...)
	b = jute.AppendString(b, "/")
	b = jute.AppendLong(b, int64(adler32.Checksum(b)))
	return jute.AppendString(b, "/")
}

func appendOpenACL(b []byte) []byte {
	b = jute.AppendInt(b, 1)
	b = jute.AppendInt(b, zkop.PermAll)
	return jute.AppendString(jute.AppendString(b, "world"), "anyone")
}

// a snapshot at zxid 5 with /a = "x" (made by session 77) and /b without data
func snapshot5() []byte {
	b := appendNode(nil, "", nil, 0, 0, 0, 2, 0)
	b = appendNode(b, "/a", []byte("x"), 3, 4, 1, 0, 77)
	return sealed(appendNode(b, "/b", nil, 5, 5, 0, 0, 0))
}

func txn(session, zxid int64, kind int32, body []byte) []byte {
	b := jute.AppendInt(jute.AppendLong(nil, session), 1)
	b = jute.AppendInt(jute.AppendLong(jute.AppendLong(b, zxid), 2000+zxid), kind)
	return append(b, body...)
}

func logOf(txns ...[]byte) []byte {
	b := header(apacheLogMagic)
	for _, t := range txns {
		b = jute.AppendLong(b, int64(adler32.Checksum(t)))
		b = jute.AppendBuffer(b, t)
		b = append(b, 'B')
	}
	return b
}

func createBody(path, data string, ephemeral bool, parentVersion int32) []byte {
	b := jute.AppendBuffer(jute.AppendString(nil, path), []byte(data))
	return jute.AppendInt(jute.AppendBool(appendOpenACL(b), ephemeral), parentVersion)
}

func setBody(path, data string, version int32) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendString(nil, path), []byte(data)), version)
}

func multiBody(kinds []int32, bodies [][]byte) []byte {
	b := jute.AppendInt(nil, int32(len(kinds)))
	for i := range kinds {
		b = jute.AppendBuffer(jute.AppendInt(b, kinds[i]), bodies[i])
	}
	return b
}

// log6 goes on from snapshot5.
func log6() []byte {
	ttl := jute.AppendInt(appendOpenACL(jute.AppendBuffer(jute.AppendString(nil, "/ttl"), nil)), 5)
	return logOf(
		txn(1, 4, txnSetData, setBody("/b", "old", 1)), // in the snapshot already: passed over
		txn(1, 6, txnCreate2, createBody("/b/c", "1", false, 1)),
		txn(1, 7, txnMulti, multiBody([]int32{txnCheck, txnSetData, txnCreate}, [][]byte{setBody("/b", "", 3)[:0], setBody("/b/c", "2", 1), createBody("/d", "", true, 3)})),
		txn(1, 8, txnMulti, multiBody([]int32{txnError, txnSetData}, [][]byte{{0, 0, 0, 1}, setBody("/b/c", "lost", 9)})),
		txn(1, 9, txnError, []byte{0, 0, 0, 1}),
		txn(77, 10, txnCloseSession, nil),
		txn(1, 11, txnTTL, jute.AppendLong(ttl, 60000)),
		txn(1, 12, txnDelete, jute.AppendString(nil, "/b/c")),
		txn(1, 13, txnSetACL, jute.AppendInt(appendOpenACL(jute.AppendString(nil, "/b")), 1)),
	)
}

func write(t testing.TB, dir, name string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// dumpOf writes the tree as lines.
func dumpOf(c *Client) string {
	var out []string
	for p, n := range c.tree.nodes {
		s := n.statOf()
		out = append(out, fmt.Sprintf("%s=%s v%d c%d a%d owner%d kids%d", p, n.data, s.Version, s.Cversion, s.Aversion, s.EphemeralOwner, s.NumChildren))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

const want13 = `/= v0 c7 a0 owner0 kids3
/b= v0 c2 a1 owner0 kids0
/d= v0 c0 a0 owner1 kids0
/ttl= v0 c0 a0 owner0 kids0`

func TestApache(t *testing.T) {
	gz := func(b []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(b)
		_ = w.Close()
		return out.Bytes()
	}
	snappy := func(b []byte) []byte {
		out := []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
		for part := range slices.Chunk(b, 50) {
			block := s2.EncodeSnappy(nil, part)
			out = append(be.AppendUint32(out, uint32(len(block))), block...)
		}
		return out
	}
	for name, snap := range map[string][]byte{"snapshot.5": snapshot5(), "snapshot.5.gz": gz(snapshot5()), "snapshot.5.snappy": snappy(snapshot5())} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "version-2"), name, snap)
		write(t, filepath.Join(dir, "version-2"), "log.4", append(log6(), make([]byte, 5000)...))
		write(t, filepath.Join(dir, "version-2"), "acceptedEpoch", []byte("1"))
		c, r, err := Open(dir, "")
		if err != nil || len(r.Problems) != 0 || r.Applied != 8 || r.Zxid != 13 || r.At.UnixMilli() != 2013 {
			t.Fatalf("%s: %+v %v", name, r, err)
		}
		if got := dumpOf(c); got != want13 {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want13)
		}
	}
}

func TestApacheDamage(t *testing.T) {
	good, log := snapshot5(), log6()
	broken := slices.Clone(good)
	broken[60] ^= 1
	for _, tc := range []struct {
		name    string
		files   map[string][]byte
		zxid    int64
		problem string
	}{
		{"log cut", map[string][]byte{"snapshot.5": good, "log.4": log[:len(log)-3]}, 12, "what it held behind zxid 0xc is missing"},
		{"newest snapshot broken", map[string][]byte{"snapshot.5": good, "snapshot.9": broken, "log.4": log}, 13, "snapshot.9: damaged"},
		{"gap", map[string][]byte{"snapshot.5": good, "log.8": logOf(txn(1, 8, txnDelete, jute.AppendString(nil, "/b")))}, 8, "are missing"},
		{"unknown type", map[string][]byte{"snapshot.5": good, "log.6": logOf(txn(1, 6, 99, nil))}, 5, "type 99"},
		{"empty log", map[string][]byte{"snapshot.5": good, "log.6": make([]byte, 100)}, 5, ""},
		{"logs alone", map[string][]byte{"log.1": logOf(txn(1, 1, txnCreate, createBody("/a", "x", false, 1)))}, 1, ""},
	} {
		dir := t.TempDir()
		for name, b := range tc.files {
			write(t, dir, name, b)
		}
		_, r, err := Open(dir, "")
		if err != nil || r.Zxid != tc.zxid || !strings.Contains(strings.Join(r.Problems, ";"), tc.problem) || (tc.problem == "") != (len(r.Problems) == 0) {
			t.Errorf("%s: %+v %v", tc.name, r, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Open(dir, ""); !errors.Is(err, ErrNoData) {
		t.Error(err)
	}
	if _, _, err := Open(filepath.Join(dir, "nope"), ""); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	write(t, dir, "snapshot.5", []byte("ZKSN"))
	if _, _, err := Open(dir, ""); !errors.Is(err, ErrUnreadable) {
		t.Error(err)
	}
	write(t, dir, "snapshot.5", snapshot5())
	if _, _, err := Open(dir, "/nope"); !errors.Is(err, zkutil.ErrNoChroot) {
		t.Error(err)
	}
	if _, r, err := Open(filepath.Join(dir, "snapshot.5"), ""); err != nil || r.Zxid != 5 {
		t.Errorf("one file: %+v %v", r, err)
	}
}

// TestOneFile: a file that was named alone is known by its first bytes. A log alone shows what it changed, with the nodes
// that it builds upon.
func TestOneFile(t *testing.T) {
	dir := t.TempDir()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(snapshot5()) // into memory
	_ = z.Close()
	write(t, dir, "snap.bak", snapshot5())
	write(t, dir, "snap.zip", zipped.Bytes())
	write(t, dir, "old", logOf(txn(1, 9, txnCreate, createBody("/a/b/c", "x", false, 1)), txn(1, 10, txnSetData, setBody("/d", "y", 3))))
	write(t, dir, "notes", []byte("nothing of the kind"))
	for _, name := range []string{"snap.bak", "snap.zip"} {
		if c, r, err := Open(filepath.Join(dir, name), ""); err != nil || r.Zxid != 5 || string(c.tree.nodes["/a"].data) != "x" {
			t.Errorf("%s: %+v %v", name, r, err)
		}
	}
	c, r, err := Open(filepath.Join(dir, "old"), "")
	if err != nil || r.Zxid != 10 || len(r.Problems) != 1 || string(c.tree.nodes["/a/b/c"].data) != "x" || string(c.tree.nodes["/d"].data) != "y" || c.tree.nodes["/d"].stat.Version != 3 {
		t.Errorf("log alone: %+v %v", r, err)
	}
	if _, _, err := Open(filepath.Join(dir, "notes"), ""); !errors.Is(err, ErrNoData) {
		t.Error(err)
	}
}

func TestClient(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "snapshot.5", snapshot5())
	c, _, err := Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	rs := c.Do(t.Context(), zkutil.AnySession,
		zkop.Request{Kind: zkop.Get, Path: "/a"}, zkop.Request{Kind: zkop.Children, Path: "/"}, zkop.Request{Kind: zkop.Get, Path: "/b"},
		zkop.Request{Kind: zkop.Exists, Path: "/nope"}, zkop.Request{Kind: zkop.Set, Path: "/a"}, zkop.Request{Kind: zkop.Get, Path: "a"})
	if string(rs[0].Data) != "x" || rs[0].Stat.Version != 1 || rs[0].Stat.EphemeralOwner != 77 || strings.Join(rs[1].Children, ",") != "a,b" || rs[2].Data != nil {
		t.Errorf("%+v", rs)
	}
	if !errors.Is(rs[3].Err, zkop.ErrNoNode) || !errors.Is(rs[4].Err, ErrReadOnly) || !errors.Is(rs[5].Err, zkop.ErrBadArguments) {
		t.Errorf("%+v", rs[3:])
	}
	c, _, err = Open(dir, "/b")
	if err != nil || c.Do(t.Context(), 0, zkop.Request{Kind: zkop.Get, Path: "/"})[0].Stat.Czxid != 5 {
		t.Errorf("chroot: %v", err)
	}
}

// FuzzApache: no snapshot and no log makes Open panic; what a damaged log gives is a tree.
func FuzzApache(f *testing.F) {
	f.Add(snapshot5(), log6())
	f.Add(snapshot5()[:90], log6()[:70])
	f.Fuzz(func(t *testing.T, snap, log []byte) {
		tr, err := apacheSnapshot(snap, 5)
		if err != nil {
			tr = newTree()
		}
		if _, err := new(Report).replayApache(tr, "log", log); err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		for p := range tr.nodes {
			if p != "/" && tr.parent(p) == nil {
				t.Fatalf("%q has no parent", p)
			}
		}
		if _, err := unsnappy(snap); err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
	})
}

// FuzzEmbedded: the same for the embedded server's files.
func FuzzEmbedded(f *testing.F) {
	f.Add([]byte(ownSnapMagic+ownImageMagic), []byte(ownLogMagic+"00000000"))
	f.Fuzz(func(t *testing.T, snap, log []byte) {
		tr, err := ownSnapshot(snap)
		if err != nil {
			tr = newTree()
		}
		if _, err := new(Report).replayOwn(tr, "log", log); err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		_ = tr.applyOwn(log)
	})
}
