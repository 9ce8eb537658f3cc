package zkdata

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/zkutil/zkserver/jute"
)

// Report says what a directory held and what of it was used.
type Report struct {
	Server   string // Apache ZooKeeper, or the embedded server
	Snapshot string // file that the tree was started from, empty: none
	Logs     []string
	Applied  int       // transactions behind the snapshot
	Zxid     int64     // last change
	At       time.Time // of the last change; zero: unknown
	Nodes    int
	Problems []string // what was damaged or is missing, in words
}

// Errors of Open.
var (
	// ErrNoData: the folder holds neither snapshots nor logs of a ZooKeeper server.
	ErrNoData = errors.New("no ZooKeeper data")
	// ErrUnreadable: there are snapshots or logs, but no tree can be made of them.
	ErrUnreadable = errors.New("ZooKeeper data that cannot be read")
)

// dataFile is a snapshot or a log with the zxid of its name, -1 without one.
type dataFile struct {
	path string
	zxid int64
	own  bool
}

// Open reads the newest state that a data directory holds. dirs is one folder, or several joined by commas where logs
// lie apart (dataLogDir); a folder may be dataDir or the version-2 inside it. A single snapshot is read alone, and so is a
// single log: what it changes is known then, and nodes that it only builds upon are shown empty, with a problem.
// chroot ("" or "/path") is taken off all paths; zkutil.ErrNoChroot when it is not there.
func Open(dirs, chroot string) (*Client, *Report, error) {
	snaps, logs, err := list(dirs)
	if err != nil {
		return nil, nil, err
	}
	if len(snaps)+len(logs) == 0 {
		if info, err := os.Stat(dirs); err == nil && !info.IsDir() {
			return nil, nil, fmt.Errorf("%w: %s is neither a snapshot nor a log of a ZooKeeper server", ErrNoData, dirs)
		}
		return nil, nil, fmt.Errorf("%w: %s holds no snapshot.* or log.* file", ErrNoData, dirs)
	}
	r := &Report{Server: "Apache ZooKeeper"}
	if slices.ContainsFunc(slices.Concat(snaps, logs), func(f dataFile) bool { return f.own }) {
		r.Server = "embedded"
	}
	t, err := r.start(snaps, logs)
	if err != nil {
		return nil, r, err
	}
	from := t.zxid
	for i := range logs {
		if i+1 < len(logs) && logs[i+1].zxid <= from {
			continue // all that it holds is in the snapshot
		}
		r.replay(t, logs[i])
	}
	r.Zxid, r.Nodes = t.zxid, len(t.nodes)
	if t.timeMs > 0 {
		r.At = time.UnixMilli(t.timeMs)
	}
	c, err := newClient(t, chroot)
	return c, r, err
}

// start makes the tree of the newest snapshot that can be read; without one, an empty tree if the logs go back to the
// beginning.
func (r *Report) start(snaps, logs []dataFile) (*tree, error) {
	for i := len(snaps) - 1; i >= 0; i-- {
		t, err := readSnapshot(snaps[i])
		if err == nil {
			r.Snapshot = snaps[i].path
			return t, nil
		}
		if !errors.Is(err, errDamaged) {
			return nil, err
		}
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %v", snaps[i].path, err))
	}
	if len(logs) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnreadable, strings.Join(r.Problems, "; "))
	}
	if len(snaps) > 0 {
		r.Problems = append(r.Problems, "no snapshot can be read: the tree is what the logs alone tell")
	}
	return newTree(), nil
}

func readSnapshot(f dataFile) (*tree, error) {
	b, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	if b, err = inflate(f.path, b); err != nil {
		return nil, err
	}
	if f.own {
		return ownSnapshot(b)
	}
	return apacheSnapshot(b, f.zxid)
}

// replay applies a log up to its end or its first damage.
func (r *Report) replay(t *tree, f dataFile) {
	b, err := os.ReadFile(f.path)
	before := t.zxid
	applied := 0
	if err == nil && f.own {
		applied, err = r.replayOwn(t, f.path, b)
	} else if err == nil {
		applied, err = r.replayApache(t, f.path, b)
	}
	r.Applied += applied
	if applied > 0 {
		r.Logs = append(r.Logs, f.path)
	}
	if err != nil {
		r.Problems = append(r.Problems, fmt.Sprintf("%s: %v: what it held behind zxid 0x%x is missing", f.path, err, max(t.zxid, before)))
	}
}

func (r *Report) replayApache(t *tree, name string, b []byte) (applied int, err error) {
	if len(strings.TrimLeft(string(b[:min(len(b), apacheHeader)]), "\x00")) == 0 {
		return 0, nil // created, and nothing written yet
	}
	l, err := newLogReader(b)
	if err != nil {
		return 0, err
	}
	from := t.zxid
	for {
		txn, err := l.next()
		if err == io.EOF {
			return applied, nil
		}
		if err != nil {
			return applied, err
		}
		d := jute.NewDecoder(txn)
		h := readHeader(&d)
		if d.Err() != nil {
			return applied, damaged("position %d: a transaction of %d bytes", l.pos, len(txn))
		}
		if h.zxid <= from {
			continue
		}
		if applied == 0 && gap(from, h.zxid) {
			t.partial = t.partial || from == 0
			r.Problems = append(r.Problems, fmt.Sprintf("%s begins with zxid 0x%x: the changes between 0x%x and it are missing", name, h.zxid, from))
		}
		if err := t.applyTxn(&h, &d); err != nil {
			return applied, err
		}
		applied++
	}
}

// gap reports whether changes are missing between two; a new epoch (the high half) begins with its first change.
func gap(from, to int64) bool {
	if from>>32 != to>>32 {
		from = to >> 32 << 32
	}
	return to > from+1
}

func (r *Report) replayOwn(t *tree, name string, b []byte) (applied int, err error) {
	l, err := newOwnLog(b)
	if err != nil {
		return 0, err
	}
	for {
		txn, err := l.next()
		if err == io.EOF {
			return applied, nil
		}
		if err != nil {
			return applied, err
		}
		zxid := ownZxid(txn)
		if zxid <= t.zxid {
			continue
		}
		if applied == 0 && gap(t.zxid, zxid) {
			t.partial = t.partial || t.zxid == 0
			r.Problems = append(r.Problems, fmt.Sprintf("%s begins with zxid 0x%x: the changes between 0x%x and it are missing", name, zxid, t.zxid))
		}
		if err := t.applyOwn(txn); err != nil {
			return applied, err
		}
		applied++
	}
}

// list finds the snapshots and logs, each by ascending zxid.
func list(dirs string) (snaps, logs []dataFile, err error) {
	for dir := range strings.SplitSeq(dirs, ",") {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, nil, err
		}
		if !info.IsDir() {
			s, l, err := sortFile(dir, snaps, logs)
			if err == nil && len(s)+len(l) == len(snaps)+len(logs) {
				s, l, err = sniff(dir, snaps, logs)
			}
			if err != nil {
				return nil, nil, err
			}
			snaps, logs = s, l
			continue
		}
		if inside := filepath.Join(dir, "version-2"); isDir(inside) {
			dir = inside
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			if snaps, logs, err = sortFile(filepath.Join(dir, e.Name()), snaps, logs); err != nil {
				return nil, nil, err
			}
		}
	}
	byZxid := func(a, b dataFile) int { return cmp.Compare(a.zxid, b.zxid) }
	slices.SortStableFunc(snaps, byZxid)
	slices.SortStableFunc(logs, byZxid)
	return snaps, logs, nil
}

func isDir(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// sortFile puts a file to the snapshots or the logs, if it is one by its name and its first bytes.
func sortFile(path string, snaps, logs []dataFile) ([]dataFile, []dataFile, error) {
	name := filepath.Base(path)
	digits, isSnap := strings.CutPrefix(name, "snapshot.")
	if !isSnap {
		var ok bool
		if digits, ok = strings.CutPrefix(name, "log."); !ok {
			return snaps, logs, nil
		}
	}
	digits, ext, _ := strings.Cut(digits, ".")
	zxid, err := strconv.ParseUint(digits, 16, 63)
	if err != nil || ext != "" && (!isSnap || ext != "gz" && ext != "snappy") {
		return snaps, logs, nil
	}
	f := dataFile{path: path, zxid: int64(zxid)}
	head, err := readHead(path)
	if err != nil {
		return nil, nil, err
	}
	f.own = head == ownSnapMagic || head == ownLogMagic
	if isSnap {
		return append(snaps, f), logs, nil
	}
	return snaps, append(logs, f), nil
}

// sniff puts a file that was named alone to the snapshots or the logs by its first bytes: it may have been renamed when it
// was put aside. The zxid of an Apache snapshot stands in its name only; without it, it is that of the last change in it.
func sniff(path string, snaps, logs []dataFile) ([]dataFile, []dataFile, error) {
	head, err := readHead(path)
	if err != nil {
		return nil, nil, err
	}
	f := dataFile{path: path, zxid: -1, own: head == ownSnapMagic || head == ownLogMagic}
	magic := head[:min(len(head), len(apacheSnapMagic))]
	switch {
	case head == ownSnapMagic, magic == apacheSnapMagic, strings.HasPrefix(head, gzipMagic), strings.HasPrefix(head, snappyMagic):
		return append(snaps, f), logs, nil
	case head == ownLogMagic, magic == apacheLogMagic:
		return snaps, append(logs, f), nil
	}
	return snaps, logs, nil
}

func readHead(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // purged meanwhile
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	var b [8]byte
	n, err := io.ReadFull(f, b[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	return string(b[:n]), nil
}
