package zkserver

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/zkutil/zkserver/ztree"
)

const (
	metaName     = "zkserver.meta"
	lockName     = ".lock"
	metaMagic    = "KZKDIR1\n"
	secretSize   = 32
	snapMagic    = "KZKSNP1\n"
	logPrefix    = "log."
	snapPrefix   = "snapshot."
	snapTrailer  = 12 // image length u64 | crc32c of all before
	hexDigits    = 16
	tempSuffix   = ".tmp"
	zooKeeperDir = "version-2"
)

func logName(prevZxid int64) string { return fmt.Sprintf("%s%016x", logPrefix, prevZxid) }
func snapName(zxid int64) string    { return fmt.Sprintf("%s%016x", snapPrefix, zxid) }

// dataDir is an opened, locked data directory.
type dataDir struct {
	path   string
	fsync  bool // as Config.Fsync; snapshots are synced in any case, since purging relies on them
	lock   *os.File
	secret []byte // signs session passwords
}

// openDataDir creates or checks the directory and takes its lock.
func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := checkOwn(path); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(path, lockName))
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, err)
	}
	d := &dataDir{path: path, lock: lock}
	if d.secret, err = readMeta(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return d, nil
}

func (d *dataDir) close() error { return d.lock.Close() }

// checkOwn refuses a directory with files but without our meta file, before anything is written to it.
func checkOwn(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	foreign := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == metaName:
			return nil
		case name == zooKeeperDir:
			return fmt.Errorf("%w: %s holds %s, the data of an Apache ZooKeeper server", ErrForeignDir, path, zooKeeperDir)
		case name == lockName, name == metaName+tempSuffix, name == "lost+found":
		default:
			foreign = name
		}
	}
	if foreign != "" {
		return fmt.Errorf("%w: %s holds %s but no %s", ErrForeignDir, path, foreign, metaName)
	}
	return nil
}

// readMeta reads the directory's secret, or writes the meta file of a new directory:
//
//	"KZKDIR1\n" | secret (32 bytes) | crc32c of all before
func readMeta(dir string) ([]byte, error) {
	path := filepath.Join(dir, metaName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret := make([]byte, secretSize)
		if _, err := rand.Read(secret); err != nil {
			return nil, fmt.Errorf("make a secret: %w", err)
		}
		b = append([]byte(metaMagic), secret...)
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		err := writeDurably(path, func(w io.Writer) error { _, err := w.Write(b); return err })
		return secret, err
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(b) < len(metaMagic) || string(b[:len(metaMagic)]) != metaMagic {
		return nil, fmt.Errorf("%w: %s was not written by this server", ErrForeignDir, path)
	}
	if n := len(metaMagic) + secretSize; len(b) != n+4 || crc32.Checksum(b[:n], castagnoli) != binary.BigEndian.Uint32(b[n:]) {
		return nil, fmt.Errorf("%w: %s has a wrong checksum", ErrCorrupt, path)
	}
	return b[len(metaMagic) : len(metaMagic)+secretSize], nil
}

// zxids lists the numbers of the files with that prefix, ascending.
func (d *dataDir) zxids(prefix string) ([]int64, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	var out []int64
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || len(digits) != hexDigits {
			continue
		}
		if v, err := strconv.ParseInt(digits, 16, 64); err == nil {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out, nil
}

// recovered is the state found in a data directory.
type recovered struct {
	tree     *ztree.Tree
	snapshot int64 // zxid of the snapshot it started from; 0: none
	replayed int
}

// recover restores the newest readable snapshot and replays the logs after it.
func (d *dataDir) recover(at time.Time, o ztree.Options, log *slog.Logger) (recovered, error) {
	d.removeTemps()
	snaps, err := d.zxids(snapPrefix)
	if err != nil {
		return recovered{}, err
	}
	var r recovered
	var broken error
	for i := len(snaps) - 1; i >= 0 && r.tree == nil; i-- {
		t, err := readSnapshot(filepath.Join(d.path, snapName(snaps[i])), at, o)
		if err == nil {
			r.tree, r.snapshot = t, snaps[i]
			continue
		}
		// An older snapshot with all logs since gives the same state; the logs say when they do not reach.
		log.Warn("zkserver snapshot is unreadable, trying an older one", "snapshot", snapName(snaps[i]), "error", err)
		broken = errors.Join(broken, err)
	}
	if r.tree == nil {
		r.tree = ztree.New(o)
	}
	logs, err := d.zxids(logPrefix)
	if err != nil {
		return recovered{}, err
	}
	for i, prev := range logs {
		last := i == len(logs)-1
		if !last && logs[i+1] <= r.tree.Zxid() {
			continue
		}
		n, cut, err := d.replayLog(r.tree, filepath.Join(d.path, logName(prev)), last)
		if err != nil {
			return recovered{}, errors.Join(err, broken)
		}
		if cut > 0 {
			log.Warn("zkserver cut off the unfinished end of the log", "log", logName(prev), "bytes", cut)
		}
		r.replayed += n
	}
	if broken != nil && len(snaps) > 0 && r.tree.Zxid() < snaps[len(snaps)-1] {
		return recovered{}, fmt.Errorf("%w: the logs do not reach the newest snapshot: %w", ErrCorrupt, broken)
	}
	return r, nil
}

func (d *dataDir) removeTemps() {
	temps, _ := filepath.Glob(filepath.Join(d.path, snapPrefix+"*"+tempSuffix))
	for _, name := range temps {
		_ = os.Remove(name) // left by a crash while writing; the next snapshot overwrites it anyway
	}
}

// writeSnapshot writes an image under its zxid:
//
//	"KZKSNP1\n" | image | image length u64 | crc32c of all before
func (d *dataDir) writeSnapshot(im *ztree.Image) error {
	return writeDurably(filepath.Join(d.path, snapName(im.Zxid())), func(f io.Writer) error {
		sum := crc32.New(castagnoli)
		buffered := bufio.NewWriterSize(f, 256<<10)
		w := io.MultiWriter(buffered, sum)
		if _, err := io.WriteString(w, snapMagic); err != nil {
			return err
		}
		n, err := im.WriteTo(w)
		if err != nil {
			return err
		}
		if _, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(n))); err != nil {
			return err
		}
		if _, err := buffered.Write(binary.BigEndian.AppendUint32(nil, sum.Sum32())); err != nil {
			return err
		}
		return buffered.Flush()
	})
}

func readSnapshot(path string, at time.Time, o ztree.Options) (*ztree.Tree, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	body := len(b) - 4
	if len(b) < len(snapMagic)+snapTrailer || string(b[:len(snapMagic)]) != snapMagic ||
		crc32.Checksum(b[:body], castagnoli) != binary.BigEndian.Uint32(b[body:]) {
		return nil, fmt.Errorf("%w: snapshot %s has a wrong checksum", ErrCorrupt, path)
	}
	image := b[len(snapMagic) : len(b)-snapTrailer]
	if n := binary.BigEndian.Uint64(b[len(b)-snapTrailer:]); n != uint64(len(image)) {
		return nil, fmt.Errorf("%w: snapshot %s has a wrong length", ErrCorrupt, path)
	}
	t, err := ztree.Restore(image, at, o)
	if err != nil {
		return nil, fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, path, err)
	}
	return t, nil
}

// purge removes all but the newest keep snapshots, and the logs that none of those needs.
func (d *dataDir) purge(keep int) error {
	snaps, err := d.zxids(snapPrefix)
	if err != nil || len(snaps) == 0 {
		return err
	}
	if n := len(snaps) - keep; n > 0 {
		for _, z := range snaps[:n] {
			if err := os.Remove(filepath.Join(d.path, snapName(z))); err != nil {
				return fmt.Errorf("purge: %w", err)
			}
		}
		snaps = snaps[n:]
	}
	logs, err := d.zxids(logPrefix)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(logs) && logs[i+1] <= snaps[0]; i++ {
		if err := os.Remove(filepath.Join(d.path, logName(logs[i]))); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	}
	return nil
}
