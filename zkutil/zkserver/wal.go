package zkserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"kctl/zkutil/zkserver/ztree"
)

// The log file: a header, then one frame per group commit. See DESIGN.md.
const (
	logMagic        = "KZKLOG1\n"
	logHeaderSize   = 16 // magic | prevZxid
	frameMagic      = 0x4b5a4246
	frameHeaderSize = 20 // magic u32 | payload length u32 | prevZxid u64 | crc32c u32
	logRollBytes    = 64 << 20
	framePayloadMax = 1<<31 - 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func frameCRC(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[4:16], castagnoli), castagnoli, payload)
}

// wal appends group commits to the newest log file. It belongs to the committer goroutine.
type wal struct {
	dir   string
	fsync bool
	f     *os.File // nil until the first commit after a roll
	size  int64
	buf   []byte
	prev  int64 // zxid of the last committed transaction
}

// begin starts a frame; add and commit follow.
func (w *wal) begin() { w.buf = append(w.buf[:0], make([]byte, frameHeaderSize)...) }

func (w *wal) add(t *ztree.Txn) {
	start := len(w.buf)
	w.buf = append(w.buf, 0, 0, 0, 0)
	w.buf = ztree.AppendTxn(w.buf, t)
	binary.BigEndian.PutUint32(w.buf[start:], uint32(len(w.buf)-start-4))
}

// commit writes the frame, whose last transaction is last, and returns when it is durable. After an error the
// log must not be used any more.
func (w *wal) commit(last int64) error {
	if w.f == nil {
		if err := w.create(); err != nil {
			return err
		}
	}
	h, payload := w.buf[:frameHeaderSize], w.buf[frameHeaderSize:]
	binary.BigEndian.PutUint32(h, frameMagic)
	binary.BigEndian.PutUint32(h[4:], uint32(len(payload)))
	binary.BigEndian.PutUint64(h[8:], uint64(w.prev))
	binary.BigEndian.PutUint32(h[16:], frameCRC(h, payload))
	if _, err := w.f.Write(w.buf); err != nil {
		return fmt.Errorf("append to the log: %w", err)
	}
	if w.fsync {
		if err := datasync(w.f); err != nil {
			return fmt.Errorf("sync the log: %w", err)
		}
	}
	w.size += int64(len(w.buf))
	w.prev = last
	if cap(w.buf) > 4<<20 {
		w.buf = nil
	}
	return nil
}

func (w *wal) create() error {
	name := filepath.Join(w.dir, logName(w.prev))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("create a log file: %w", err)
	}
	h := binary.BigEndian.AppendUint64([]byte(logMagic), uint64(w.prev))
	_, err = f.Write(h)
	if err == nil && w.fsync {
		err = errors.Join(f.Sync(), syncDir(w.dir))
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("create log file %s: %w", name, err)
	}
	w.f, w.size = f, logHeaderSize
	return nil
}

// roll makes the next commit start a new file.
func (w *wal) roll() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	if err != nil {
		return fmt.Errorf("close the log: %w", err)
	}
	return nil
}

// close syncs even without Fsync: a clean stop loses nothing.
func (w *wal) close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Sync()
	return errors.Join(err, w.roll())
}

// replayLog applies the transactions of one log file that the tree does not have yet. Only the last file may
// end in the torn frame of a commit that was never answered; replayLog cuts it off.
func (d *dataDir) replayLog(t *ztree.Tree, path string, last bool) (txns int, cut int64, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, fmt.Errorf("read log %s: %w", path, err)
	}
	if len(b) < logHeaderSize || string(b[:8]) != logMagic {
		if last && tornHeader(b) {
			return 0, int64(len(b)), d.remove(path)
		}
		return 0, 0, fmt.Errorf("%w: %s has no log header", ErrCorrupt, path)
	}
	prev := int64(binary.BigEndian.Uint64(b[8:]))
	if logName(prev) != filepath.Base(path) {
		return 0, 0, fmt.Errorf("%w: %s has the header of %s", ErrCorrupt, path, logName(prev))
	}
	if prev > t.Zxid() {
		return 0, 0, fmt.Errorf("%w: %s follows transaction 0x%x, but the state ends at 0x%x: a log file is missing", ErrCorrupt, path, prev, t.Zxid())
	}
	off := logHeaderSize
	for off < len(b) {
		payload, ok := parseFrame(b[off:])
		if !ok {
			break
		}
		n, err := replayFrame(t, b[off:], payload)
		if err != nil {
			return txns, 0, fmt.Errorf("%s at byte %d: %w", path, off, err)
		}
		txns += n
		off += frameHeaderSize + len(payload)
	}
	if off == len(b) {
		if last && off == logHeaderSize { // created, but its first commit never came; the next start creates it anew
			return 0, 0, d.remove(path)
		}
		return txns, 0, nil
	}
	if !last || frameAfter(b[off+1:]) {
		return txns, 0, fmt.Errorf("%w: %s is damaged at byte %d of %d, and acknowledged transactions follow", ErrCorrupt, path, off, len(b))
	}
	if off == logHeaderSize {
		return 0, int64(len(b) - off), d.remove(path)
	}
	return txns, int64(len(b) - off), d.truncate(path, int64(off))
}

// tornHeader tells a file whose creation was cut short: a prefix of the header, or zeros in its place.
func tornHeader(b []byte) bool {
	if len(b) < logHeaderSize && (len(b) >= 8 && string(b[:8]) == logMagic || bytes.HasPrefix([]byte(logMagic), b)) {
		return true
	}
	return len(bytes.Trim(b, "\x00")) == 0
}

// parseFrame returns the payload of the frame that b starts with; false when it is not whole.
func parseFrame(b []byte) ([]byte, bool) {
	if len(b) < frameHeaderSize || binary.BigEndian.Uint32(b) != frameMagic {
		return nil, false
	}
	n := binary.BigEndian.Uint32(b[4:])
	if n > framePayloadMax || int(n) > len(b)-frameHeaderSize {
		return nil, false
	}
	payload := b[frameHeaderSize : frameHeaderSize+int(n)]
	if frameCRC(b, payload) != binary.BigEndian.Uint32(b[16:]) {
		return nil, false
	}
	return payload, true
}

// frameAfter tells whether a whole frame starts anywhere in b. A commit is only written when the one before it
// is durable, so one behind a damaged frame proves that the damaged one had been acknowledged.
func frameAfter(b []byte) bool {
	magic := binary.BigEndian.AppendUint32(nil, frameMagic)
	for {
		i := bytes.Index(b, magic)
		if i < 0 {
			return false
		}
		if _, ok := parseFrame(b[i:]); ok {
			return true
		}
		b = b[i+1:]
	}
}

func replayFrame(t *ztree.Tree, frame, payload []byte) (int, error) {
	prev := int64(binary.BigEndian.Uint64(frame[8:]))
	skipped, applied := 0, 0
	for len(payload) > 0 {
		if len(payload) < 4 {
			return 0, fmt.Errorf("%w: transaction length", ErrCorrupt)
		}
		n := binary.BigEndian.Uint32(payload)
		if uint64(n) > uint64(len(payload)-4) {
			return 0, fmt.Errorf("%w: transaction length", ErrCorrupt)
		}
		txn, err := ztree.DecodeTxn(bytes.Clone(payload[4 : 4+n]))
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		payload = payload[4+n:]
		if txn.Zxid <= t.Zxid() { // the snapshot has it
			skipped++
			continue
		}
		if applied == 0 && (skipped > 0 || prev != t.Zxid()) {
			return 0, fmt.Errorf("%w: commit after 0x%x where 0x%x was expected", ErrCorrupt, prev, t.Zxid())
		}
		if err := t.Replay(txn); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		applied++
	}
	return applied, nil
}

func (d *dataDir) truncate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cut the torn end off: %w", err)
	}
	err = f.Truncate(size)
	if d.fsync && err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		return fmt.Errorf("cut the torn end off %s: %w", path, err)
	}
	return nil
}

func (d *dataDir) remove(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove an empty log: %w", err)
	}
	if !d.fsync {
		return nil
	}
	return syncDir(d.path)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = errors.Join(d.Sync(), d.Close())
	if err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// writeDurably creates path with what fill writes, all or nothing.
func writeDurably(path string, fill func(w io.Writer) error) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create %s: %w", tmp, err)
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}
