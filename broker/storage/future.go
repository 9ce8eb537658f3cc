package storage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/broker/obs"
	"kctl/zkutil/cluster"
)

// A replica moves to another directory of the broker in three steps (KIP-113): a future log is made there, named
// <tp>.<uuid>-future as Apache Kafka names it; the owner copies the current log into it; Promote swaps them.
//
// What is on disk tells after a crash how far a move had come. A future log beside a current one is a copy under
// way. Promote renames the current log to <tp>.swap<uuid>-delete, durably, with the uuid of the future log, and only
// then the future log: so a future log without a current one, but with such a folder, is a swap that was not finished,
// and opening finishes it. Without that folder it is a copy whose replica was deleted while its directory could not be
// seen, or is on a disk that was taken away: it is put aside. Both hold only while all directories can be seen, so an
// unreadable one leaves future logs, and the folders of swaps, as they are.

// Errors of moves between directories, for errors.Is.
var (
	// ErrNoDir says that the broker has no such log directory.
	ErrNoDir = errors.New("no such log directory")
	// ErrNoFuture says that the partition has no future log.
	ErrNoFuture = errors.New("no move to another log directory is under way")
)

var futureFolder = regexp.MustCompile(`^(\S+)\.[^.\s]+` + dirFuture + `$`)

// parseFuture reads a partition off the name of a future log's folder.
func parseFuture(name string) (cluster.TopicPartition, bool) {
	m := futureFolder.FindStringSubmatch(name)
	if m == nil {
		return cluster.TopicPartition{}, false
	}
	return parseFolder(m[1])
}

func (m *Manager) dirAt(path string) (*logDir, error) {
	for _, d := range m.dirs {
		if d.path == filepath.Clean(path) {
			if d.offline() != nil {
				return nil, fmt.Errorf("%s: %w", d.path, ErrOffline)
			}
			return d, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", path, ErrNoDir)
}

// Prefer lets Create make the partition's log in dir, once, when the broker has none. ErrNoDir, ErrOffline.
func (m *Manager) Prefer(tp cluster.TopicPartition, dir string) error {
	d, err := m.dirAt(dir)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.logs[tp]; ok {
		return nil
	}
	if m.preferred == nil {
		m.preferred = map[cluster.TopicPartition]*logDir{}
	}
	m.preferred[tp] = d
	return nil
}

// takePreferred returns the directory that Prefer named, if it is online, and forgets it.
func (m *Manager) takePreferred(tp cluster.TopicPartition) *logDir {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.preferred[tp]
	delete(m.preferred, tp)
	if d == nil || d.offline() != nil {
		return nil
	}
	return d
}

// Future returns the log that is being filled in another directory than the partition's log.
func (m *Manager) Future(tp cluster.TopicPartition) (*Log, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l, ok := m.futures[tp]
	return l, ok
}

// Futures returns all future logs, in no order.
func (m *Manager) Futures() []*Log {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := make([]*Log, 0, len(m.futures))
	for _, l := range m.futures {
		out = append(out, l)
	}
	return out
}

// CreateFuture makes an empty future log of the partition in dir, which starts where the current log starts. One
// that is there already is returned. Errors: ErrNoDir, ErrOffline, ErrClosed when there is no current log, and
// ErrStorage.
func (m *Manager) CreateFuture(tp cluster.TopicPartition, dir string) (*Log, error) {
	d, err := m.dirAt(dir)
	if err != nil {
		return nil, err
	}
	defer m.changes.begin(tp)()
	current, ok := m.Log(tp)
	if !ok {
		return nil, fmt.Errorf("%s: %w", tp, ErrClosed)
	}
	if l, ok := m.Future(tp); ok && l.dir == d {
		return l, nil
	}
	if err := d.forget(m, tp); err != nil {
		return nil, fmt.Errorf("create future log %s in %s: %w", tp, d.path, err)
	}
	var random [16]byte
	m.opts.Random(random[:])
	l := newLog(m, d, tp, current.cfg.Load())
	name := fmt.Sprintf("%s.%s%s", tp, hex.EncodeToString(random[:]), dirFuture)
	if len(name) > 255 {
		return nil, fmt.Errorf("topic %s: its name is too long for a move: %w", tp.Topic, kerr.InvalidTopicException)
	}
	path := filepath.Join(d.path, name)
	l.folder.Store(&path)
	if err := l.create(current.TopicID()); err != nil {
		d.broken.Store(true)
		return nil, fmt.Errorf("create future log %s in %s: %w: %w", tp, d.path, err, ErrStorage)
	}
	l.dirSynced = d.made.Add(1)
	if start := current.LogStartOffset(); start > 0 {
		if err := l.TruncateFullyAndStartAt(start); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.setFuture(tp, l)
	return l, nil
}

// setFuture is called under mu.
func (m *Manager) setFuture(tp cluster.TopicPartition, l *Log) {
	if l == nil {
		delete(m.futures, tp)
		return
	}
	if m.futures == nil {
		m.futures = map[cluster.TopicPartition]*Log{}
	}
	m.futures[tp] = l
}

// DeleteFuture ends a move: the future log is marked deleted, durably. None is no error.
func (m *Manager) DeleteFuture(tp cluster.TopicPartition) error {
	defer m.changes.begin(tp)()
	return m.deleteFuture(tp)
}

// deleteFuture is called in the partition's turn, before a current log is taken away.
func (m *Manager) deleteFuture(tp cluster.TopicPartition) error {
	l, ok := m.Future(tp)
	if !ok {
		return nil
	}
	m.mu.Lock()
	m.setFuture(tp, nil)
	m.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var random [16]byte
	m.opts.Random(random[:])
	if err := l.discard(deleteFolderName(tp, random)); err != nil {
		return l.fail(fmt.Errorf("delete future log: %w", err))
	}
	l.removeLater()
	if err := m.fs.SyncDir(l.dir.path); err != nil {
		return l.fail(fmt.Errorf("delete future log: %w", err))
	}
	return nil
}

// discard closes the log and renames its folder. Callers hold mu.
func (l *Log) discard(name string) error {
	l.closed = true
	old := *l.folder.Load()
	path := filepath.Join(l.dir.path, name)
	if err := l.m.fs.Rename(old, path); err != nil {
		return err
	}
	l.folder.Store(&path)
	for _, s := range *l.segs.Load() {
		s.close()
	}
	return nil
}

// removeLater has the folder of a discarded log removed.
func (l *Log) removeLater() {
	l.m.removeLater(l.dir, *l.folder.Load(), l.m.opts.Now().UnixMilli()+l.cfg.Load().FileDeleteDelayMs)
}

// swapMark begins the unique part of the name of a folder that was swapped for a future log.
const swapMark = "swap"

// swapName is the name that the current log gets when the log, a future one, takes its place. It tells the log's uuid.
func (l *Log) swapName() string {
	folder := strings.TrimSuffix(filepath.Base(*l.folder.Load()), dirFuture)
	return deletedName(l.tp, swapMark+folder[strings.LastIndexByte(folder, '.')+1:])
}

// Promote makes the future log the partition's log and marks the one before deleted. The caller has copied all of
// it, and lets nobody append to either meanwhile. The future log is flushed first, so that what was durable before
// the swap is durable after it. Readers that hold slices of the old log go on reading. Errors: ErrNoFuture,
// ErrUnexpectedOffset when the logs do not end alike, ErrStorage, ErrClosed.
func (m *Manager) Promote(tp cluster.TopicPartition) (*Log, error) {
	current, ok := m.Log(tp)
	next, moving := m.Future(tp)
	if !ok || !moving {
		return nil, fmt.Errorf("%s: %w", tp, ErrNoFuture)
	}
	if err := next.take(current); err != nil { // most of the disk's work, not yet in the partition's turn
		return nil, err
	}
	defer m.changes.begin(tp)()
	if l, ok := m.Future(tp); !ok || l != next {
		return nil, fmt.Errorf("%s: %w", tp, ErrNoFuture)
	}
	if err := next.dir.forget(m, tp); err != nil { // a copy that an earlier version began
		return nil, next.broke(err)
	}
	if err := m.swap(current, next); err != nil {
		return nil, err
	}
	// The high watermark goes along at once. Until the old directory's checkpoints are written anew they hold an
	// entry that nobody asks for, since the log is elsewhere.
	if err := next.dir.checkpointHW(m, map[cluster.TopicPartition]int64{tp: next.HighWatermark()}); err != nil {
		return nil, next.broke(err)
	}
	for _, d := range []*logDir{current.dir, next.dir} {
		d.recoveryDirty.Store(true)
		d.startDirty.Store(true)
	}
	return next, nil
}

// take brings a future log that holds all records in line with the current one and makes it durable.
func (l *Log) take(current *Log) error {
	if l.LogEndOffset() != current.LogEndOffset() {
		return fmt.Errorf("%s: the future log ends at %d, the current one at %d: %w", l.tp, l.LogEndOffset(), current.LogEndOffset(), ErrUnexpectedOffset)
	}
	l.cfg.Store(current.cfg.Load())
	if epoch, ok := current.LatestEpoch(); ok {
		if have, ok := l.LatestEpoch(); !ok || have < epoch { // an epoch without records
			start, _ := current.EpochStart()
			if err := l.AssignEpochStart(epoch, start); err != nil {
				return err
			}
		}
	}
	l.SetHighWatermark(current.HighWatermark())
	if start := current.LogStartOffset(); start > l.LogStartOffset() {
		if err := l.AdvanceLogStart(start); err != nil {
			return err
		}
	}
	if err := l.SetTopicID(current.TopicID()); err != nil {
		return err
	}
	if err := l.writeEpochs(true); err != nil {
		return l.broke(err)
	}
	if err := l.Flush(); err != nil {
		return err
	}
	return l.broke(l.syncFolder())
}

// broke is fail for callers that do not hold mu; nil stays nil.
func (l *Log) broke(err error) error {
	if err == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail(fmt.Errorf("complete a move: %w", err))
}

// swap renames current for deletion and next into its place, each durable before the next step.
func (m *Manager) swap(current, next *Log) error {
	current.mu.Lock()
	defer current.mu.Unlock()
	if err := current.usable(); err != nil {
		return err
	}
	if err := current.discard(next.swapName()); err != nil {
		return current.fail(fmt.Errorf("swap logs: %w", err))
	}
	// From here on the future log is the partition's, also after a crash.
	m.mu.Lock()
	m.setFuture(current.tp, nil)
	m.setLog(current.tp, next)
	m.mu.Unlock()
	current.dir.logs.Add(-1)
	next.dir.logs.Add(1)
	if err := m.fs.SyncDir(current.dir.path); err != nil {
		// Which of them the next start finds nobody knows: neither may take records until then.
		m.mu.Lock()
		m.setLog(current.tp, nil)
		m.mu.Unlock()
		next.dir.logs.Add(-1)
		next.shut()
		return current.fail(fmt.Errorf("swap logs: %w", err))
	}
	next.mu.Lock()
	defer next.mu.Unlock()
	if err := next.place(); err != nil {
		return next.fail(fmt.Errorf("swap logs: %w", err))
	}
	current.removeLater() // not before: it tells the next start to finish the swap
	return nil
}

// place renames the folder of a future log to that of a current one, durably. Callers hold mu.
func (l *Log) place() error {
	path := filepath.Join(l.dir.path, l.tp.String())
	if err := l.m.fs.Rename(*l.folder.Load(), path); err != nil {
		return err
	}
	l.folder.Store(&path)
	return l.m.fs.SyncDir(l.dir.path)
}

// foundFuture sorts a future log that was found when opening: the first of a partition is kept, more are removed.
func (m *Manager) foundFuture(d *logDir, name string) *Log {
	tp, ok := parseFuture(name)
	if !ok {
		m.log.Warn("folder left alone", obs.KeyPath, filepath.Join(d.path, name))
		return nil
	}
	cfg := m.opts.Config(tp.Topic)
	l := newLog(m, d, tp, &cfg)
	path := filepath.Join(d.path, name)
	l.folder.Store(&path)
	return l
}

// openFutures loads future logs; they are always checked, since no checkpoint speaks of them. One that cannot be
// read is deleted: it is a copy. Without a current log it is not, and its directory goes offline.
func (m *Manager) openFutures() {
	all := m.online() == len(m.dirs)
	for _, l := range m.found {
		if l.dir.offline() == nil {
			m.openFuture(l, all)
		}
	}
	m.found = nil
	if m.online() == len(m.dirs) {
		m.pending = append(m.pending, m.swapped...)
	}
	m.swapped = nil
}

func (m *Manager) openFuture(l *Log, all bool) {
	_, has := m.logs[l.tp]
	_, second := m.futures[l.tp]
	start := int64(0)
	if !has { // the swap took it from the other directory, whose checkpoint still has it
		for _, d := range m.dirs {
			start = max(start, d.starts[l.tp])
		}
	}
	err := l.load(false, 0, start, 0)
	switch {
	case err != nil && !has:
		m.takeOffline(l.dir, err)
		return
	case err != nil || second:
		m.log.Warn("future log is removed", obs.KeyPath, *l.folder.Load(), obs.Err(err))
		m.removeLater(l.dir, *l.folder.Load(), 0)
		return
	case has || !all:
		m.setFuture(l.tp, l)
		return
	}
	if !m.isSwapped(l) {
		m.log.Warn("copy of a replica that is not here any more is put aside", obs.KeyPath, *l.folder.Load())
		err = l.aside()
	} else {
		m.log.Info("a swap of logs that was interrupted is finished", obs.KeyTopicPartition, l.tp.String(), obs.KeyLogDir, l.dir.path)
		err = l.place()
	}
	switch {
	case err != nil:
		m.takeOffline(l.dir, err)
	case *l.folder.Load() == filepath.Join(l.dir.path, l.tp.String()):
		m.setLog(l.tp, l)
		l.dir.logs.Add(1)
	}
}

// isSwapped reports whether the current log made room for the future one.
func (m *Manager) isSwapped(future *Log) bool {
	return slices.ContainsFunc(m.swapped, func(r pendingRemoval) bool { return filepath.Base(r.path) == future.swapName() })
}

// SameDir reports whether two paths name one log directory.
func SameDir(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) }
