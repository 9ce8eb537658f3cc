package zkserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver/ztree"
)

// FuzzDataDir starts from files with right checksums and wrong contents: each start recovers a tree that a second
// start recovers too, or says that the directory is corrupt.
func FuzzDataDir(f *testing.F) {
	dir := f.TempDir()
	payload, image := writtenFiles(f)
	f.Add(image, int64(0), payload, []byte{})
	f.Add(image, int64(1), payload, []byte{0x4b, 0x5a, 0x42, 0x46})
	f.Add([]byte{}, int64(0), payload, []byte{})
	f.Add([]byte{}, int64(0), []byte{0xff, 0xff, 0xff, 0xff}, []byte("torn"))
	f.Fuzz(func(t *testing.T, image []byte, prev int64, payload, tail []byte) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		d, err := openDataDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		if len(image) > 0 {
			snap := append([]byte(snapMagic), image...)
			snap = binary.BigEndian.AppendUint64(snap, uint64(len(image)))
			putFile(t, d, snapName(0), binary.BigEndian.AppendUint32(snap, crc32.Checksum(snap, castagnoli)))
		}
		log := binary.BigEndian.AppendUint64([]byte(logMagic), 0)
		putFile(t, d, logName(0), append(append(log, frameOf(prev, payload)...), tail...))
		first, err := d.recover(time.UnixMilli(1), ztree.Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v is not ErrCorrupt", err)
			}
			return
		}
		second, err := d.recover(time.UnixMilli(1), ztree.Options{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("recovered once, then: %v", err)
		}
		if err := ztree.Equal(first.tree, second.tree); err != nil {
			t.Fatal(err)
		}
	})
}

func putFile(t *testing.T, d *dataDir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.path, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func frameOf(prev int64, payload []byte) []byte {
	b := make([]byte, frameHeaderSize, frameHeaderSize+len(payload))
	binary.BigEndian.PutUint32(b, frameMagic)
	binary.BigEndian.PutUint32(b[4:], uint32(len(payload)))
	binary.BigEndian.PutUint64(b[8:], uint64(prev))
	binary.BigEndian.PutUint32(b[16:], frameCRC(b, payload))
	return append(b, payload...)
}

// writtenFiles returns the payload of a commit and the image of the tree before it.
func writtenFiles(f *testing.F) (payload, image []byte) {
	at := time.UnixMilli(1)
	tree := ztree.New(ztree.Options{})
	var before bytes.Buffer
	if _, err := tree.Freeze().WriteTo(&before); err != nil {
		f.Fatal(err)
	}
	w := &wal{}
	w.begin()
	open := tree.PrepareOpenSession(at, time.Second)
	w.add(open)
	tree.Apply(open)
	for _, path := range []string{"/a", "/a/b"} {
		txn, _ := tree.Prepare(at, open.Session, nil, &zkop.Request{Kind: zkop.Create, Path: path, Data: []byte("x")})
		w.add(txn)
		tree.Apply(txn)
	}
	return w.buf[frameHeaderSize:], before.Bytes()
}
