package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// Manager owns the log directories and every Log in them. Safe for concurrent use; Housekeep has one caller at
// a time.
//
// Lock order: changes, a Log's locks, a directory's mu, mu, which is held over no I/O.
type Manager struct {
	fs   vfs.FS
	opts ManagerOptions
	log  *slog.Logger
	fds  *fdCache
	dirs []*logDir

	loaded atomic.Bool // all directories were read

	changes   changes
	bigUnpack sync.Mutex // one large batch is unpacked at a time; guards nothing else, innermost

	mu      sync.RWMutex
	logs    map[cluster.TopicPartition]*Log
	order   []*Log // the values of logs sorted, nil when it must be made anew
	pending []pendingRemoval
	closed  bool
	shared  *Config // the last configuration given, shared by logs that have the same

	futures   map[cluster.TopicPartition]*Log    // see future.go
	preferred map[cluster.TopicPartition]*logDir // where logs will be made
	found     []*Log                             // future logs, while opening only
	swapped   []pendingRemoval                   // what future logs took the place of, while opening only

	shortened map[cluster.TopicPartition]int64 // what Shortened answers; not changed after opening

	awakeMu sync.Mutex // innermost
	awake   []*Log     // to which something happened since the last Housekeep

	lastExpire, lastSweep int64 // Housekeep's, ms
}

// pendingRemoval is a file or folder that was marked deleted and goes later.
type pendingRemoval struct {
	path string
	dir  *logDir
	due  int64 // ms
}

// Log returns the partition's log if this broker has one in an online directory.
func (m *Manager) Log(tp cluster.TopicPartition) (*Log, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	l, ok := m.logs[tp]
	return l, ok
}

// Logs returns all logs in online directories, sorted by partition.
func (m *Manager) Logs() []*Log { return slices.Clone(m.all()) }

// all returns the logs in order, from a list that is made anew only after logs came or went. It must not be
// changed.
func (m *Manager) all() []*Log {
	m.mu.RLock()
	order := m.order
	m.mu.RUnlock()
	if order != nil {
		return order
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.order == nil {
		m.order = make([]*Log, 0, len(m.logs))
		for _, l := range m.logs {
			m.order = append(m.order, l)
		}
		slices.SortFunc(m.order, func(a, b *Log) int { return a.tp.Compare(b.tp) })
	}
	return m.order
}

// setLog notes a log that came, or with nil that it went. Callers hold mu.
func (m *Manager) setLog(tp cluster.TopicPartition, l *Log) {
	m.order = nil
	if l == nil {
		delete(m.logs, tp)
		return
	}
	m.logs[tp] = l
}

func (m *Manager) logsIn(d *logDir) []*Log {
	out := make([]*Log, 0, d.logs.Load())
	for _, l := range m.all() {
		if l.dir == d {
			out = append(out, l)
		}
	}
	return out
}

// Create returns the partition's log, making it when there is none: in the directory that Prefer named, else in
// the online one with the fewest logs, with partition.metadata when topicID is set. It is idempotent; an existing log takes cfg and, if it
// has none, the topic id; another id gives ErrTopicID. A new log is durable after its first Flush.
func (m *Manager) Create(tp cluster.TopicPartition, topicID cluster.TopicID, cfg Config) (*Log, error) {
	if !validTopic(tp.Topic) || tp.Partition < 0 {
		return nil, fmt.Errorf("create log of topic %q partition %d: invalid name", tp.Topic, tp.Partition)
	}
	defer m.changes.begin(tp)()
	if l, ok := m.Log(tp); ok {
		if err := l.SetTopicID(topicID); err != nil {
			return nil, err
		}
		l.cfg.Store(m.share(cfg))
		l.wake()
		return l, nil
	}
	d, err := m.place(tp)
	if err != nil {
		return nil, err
	}
	l, err := m.createIn(d, tp, topicID, cfg)
	if err != nil {
		d.logs.Add(-1)
	}
	return l, err
}

func (m *Manager) createIn(d *logDir, tp cluster.TopicPartition, topicID cluster.TopicID, cfg Config) (*Log, error) {
	if err := m.eachDir(func(d *logDir) error { return d.forget(m, tp) }); err != nil {
		return nil, fmt.Errorf("create log %s in %s: %w", tp, d.path, err)
	}
	l := newLog(m, d, tp, m.share(cfg))
	if err := l.create(topicID); err != nil {
		d.broken.Store(true)
		return nil, fmt.Errorf("create log %s in %s: %w: %w", tp, d.path, err, ErrStorage)
	}
	l.dirSynced = d.made.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.setLog(tp, l)
	return l, nil
}

// share returns a pointer to cfg that logs with equal configurations have in common.
func (m *Manager) share(cfg Config) *Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shared == nil || *m.shared != cfg {
		m.shared = &cfg
	}
	return m.shared
}

// place returns the directory for a new log, which counts there from now on, so that logs made at the same time are spread.
func (m *Manager) place(tp cluster.TopicPartition) (*logDir, error) {
	best := m.takePreferred(tp)
	if best != nil {
		best.logs.Add(1)
		return best, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.dirs {
		if d.offline() == nil && (best == nil || d.logs.Load() < best.logs.Load()) {
			best = d
		}
	}
	if best == nil {
		return nil, ErrOffline
	}
	best.logs.Add(1)
	return best, nil
}

// create makes folder and partition.metadata with as few calls as possible; the first append makes the first
// segment's file.
func (l *Log) create(topicID cluster.TopicID) error {
	fs, folder := l.m.fs, *l.folder.Load()
	if err := fs.Mkdir(folder); err != nil {
		return err
	}
	seg := newSegment(l, 0, l.m.opts.Now().UnixMilli())
	seg.missing = true
	var err error
	if !topicID.IsZero() {
		err = writePlain(fs, filepath.Join(folder, filePartition), formatPartitionMetadata(topicID))
	}
	if err != nil {
		return errors.Join(err, fs.RemoveAll(folder))
	}
	l.topicID.Store(&topicID)
	l.newFiles.Store(true)
	l.newMeta.Store(!topicID.IsZero())
	l.setSegments([]*segment{seg})
	l.publish(0, seg, 0)
	return nil
}

func writePlain(fs vfs.FS, name string, data []byte) error {
	f, err := fs.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

// Delete closes the log and renames its folder to <tp>.<uuid>-delete; Housekeep removes it after
// FileDeleteDelayMs. A partition without a log is no error. Readers that hold slices go on reading.
func (m *Manager) Delete(tp cluster.TopicPartition) error {
	l, entry, err := m.markDeleted(tp)
	if l == nil || err != nil {
		return err
	}
	// The rename is synced so that a deleted log cannot come back; checkpoints forget it with their next write.
	if err := l.dir.syncEntry(m, entry); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.fail(fmt.Errorf("delete log: %w", err))
	}
	l.dir.recoveryDirty.Store(true)
	l.dir.startDirty.Store(true)
	return nil
}

// markDeleted takes the log out of the table and renames its folder. entry is the generation of the new name,
// for syncEntry. l is nil when there is no such log.
func (m *Manager) markDeleted(tp cluster.TopicPartition) (l *Log, entry int64, err error) {
	defer m.changes.begin(tp)()
	if err := m.deleteFuture(tp); err != nil {
		return nil, 0, err
	}
	l, ok := m.Log(tp)
	if !ok {
		return nil, 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	var random [16]byte
	m.opts.Random(random[:])
	old := *l.folder.Load()
	path := filepath.Join(l.dir.path, deleteFolderName(tp, random))
	m.mu.Lock()
	m.setLog(tp, nil)
	m.mu.Unlock()
	l.dir.logs.Add(-1)
	if err := m.fs.Rename(old, path); err != nil {
		return l, 0, l.fail(fmt.Errorf("delete log: %w", err))
	}
	l.folder.Store(&path)
	for _, s := range *l.segs.Load() {
		s.close()
	}
	m.removeLater(l.dir, path, m.opts.Now().UnixMilli()+l.cfg.Load().FileDeleteDelayMs)
	return l, l.dir.made.Add(1), nil
}

func (m *Manager) removeLater(d *logDir, path string, due int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = append(m.pending, pendingRemoval{path: path, dir: d, due: due})
}

// HighWatermark returns the checkpointed high watermark as of start or of the last checkpoint.
func (m *Manager) HighWatermark(tp cluster.TopicPartition) (int64, bool) {
	if l, ok := m.Log(tp); ok { // another directory may still name a log that has moved away
		if v, ok := l.dir.highWatermark(tp); ok {
			return v, true
		}
	}
	for _, d := range m.dirs {
		if v, ok := d.highWatermark(tp); ok && d.offline() == nil {
			return v, true
		}
	}
	return 0, false
}

// CheckpointHighWatermarks writes replication-offset-checkpoint of each online directory: the given values,
// and for logs not given the values known before. Files whose contents would not change are not written.
func (m *Manager) CheckpointHighWatermarks(hw map[cluster.TopicPartition]int64) error {
	return m.eachDir(func(d *logDir) error { return d.checkpointHW(m, hw) })
}

// CheckpointRecoveryPoints writes recovery-point-offset-checkpoint of each online directory.
func (m *Manager) CheckpointRecoveryPoints() error {
	return m.eachDir(func(d *logDir) error { return d.checkpointRecovery(m) })
}

// CheckpointLogStartOffsets writes log-start-offset-checkpoint of each online directory.
func (m *Manager) CheckpointLogStartOffsets() error {
	return m.eachDir(func(d *logDir) error { return d.checkpointStarts(m) })
}

func (m *Manager) eachDir(fn func(*logDir) error) error {
	var errs []error
	for _, d := range m.dirs {
		if d.offline() == nil {
			errs = append(errs, fn(d))
		}
	}
	return errors.Join(errs...)
}

// Dirs describes the log directories in the order given to OpenManager.
func (m *Manager) Dirs() []DirInfo {
	out := make([]DirInfo, len(m.dirs))
	for i, d := range m.dirs {
		out[i] = DirInfo{Path: d.path, Err: d.offline(), Logs: int(d.logs.Load()), Total: -1, Free: -1}
		if d.offline() == nil {
			if u, err := m.fs.Usage(d.path); err == nil {
				out[i].Total, out[i].Free = u.Total, u.Free
			}
		}
	}
	return out
}

func (m *Manager) online() int {
	n := 0
	for _, d := range m.dirs {
		if d.offline() == nil {
			n++
		}
	}
	return n
}

// MarkOffline takes a log directory out of service after a failure: its logs fail with ErrOffline and it
// gets no clean-shutdown mark. It returns the partitions that were in it, once. Idempotent.
func (m *Manager) MarkOffline(dir string, reason error) []cluster.TopicPartition {
	for _, d := range m.dirs {
		if d.path == filepath.Clean(dir) {
			return m.takeOffline(d, reason)
		}
	}
	return nil
}

// Close flushes every log, writes checkpoints and snapshots and, in directories without any failure, the
// clean-shutdown mark; then it releases the locks. The manager is unusable afterwards. High watermarks are
// written by CheckpointHighWatermarks, which the caller does before. A second Close does nothing.
func (m *Manager) Close() error {
	m.changes.closing.Lock()
	defer m.changes.closing.Unlock()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	m.mu.Unlock()
	var errs []error
	for _, d := range m.dirs {
		if d.offline() == nil {
			errs = append(errs, m.closeDir(d))
		}
	}
	m.fds.closeAll()
	errs = append(errs, m.unlock())
	return errors.Join(errs...)
}

// manyLogs is from how many changed logs on one sync of the volume is cheaper than one per file.
const manyLogs = 32

func (m *Manager) closeDir(d *logDir) error {
	var changed []*Log
	logs := m.logsIn(d)
	for _, l := range logs {
		if l.changed() {
			changed = append(changed, l)
		}
	}
	bulk := len(changed) >= manyLogs
	err := m.parallel(changed, func(l *Log) error { return l.settle(!bulk) }, func(*Log) {})
	if err == nil && bulk {
		err = m.fs.SyncAll(d.path)
		if errors.Is(err, errors.ErrUnsupported) {
			err = m.parallel(changed, func(l *Log) error { return l.settle(true) }, func(*Log) {})
		}
		if err == nil {
			for _, l := range changed {
				l.settled()
			}
		}
	}
	for _, l := range logs {
		l.shut()
	}
	for _, l := range m.Futures() {
		if l.dir == d {
			l.shut() // a copy: the next start checks it whatever state it is in
		}
	}
	err = errors.Join(err, d.checkpointRecovery(m), d.checkpointStarts(m))
	if err != nil || d.broken.Load() {
		return err // no mark: the next start must look at everything
	}
	return writeAtomic(m.fs, filepath.Join(d.path, fileClean), formatCleanMark(m.opts.BrokerEpoch()), true)
}

// changed reports whether closing has anything to write.
func (l *Log) changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.closed {
		return false
	}
	_, dirty := l.epochs.snapshot()
	end := l.tail.Load().end
	return dirty || l.recovery.Load() < end || l.newFiles.Load() || l.needsSnapshot(end) || l.active().unsyncedCut.Load() ||
		l.active().size.Load() > 0 && l.active().unsyncedIndex.Load()
}

// needsSnapshot reports whether the producer state is not what a start without a new snapshot would find.
func (l *Log) needsSnapshot(end int64) bool {
	n := len(l.snaps)
	if n > 0 {
		return l.snaps[n-1] < end
	}
	return len(l.producers.byID) > 0
}

// settle writes all that a start after a clean shutdown relies on; with sync also durably.
func (l *Log) settle(sync bool) error {
	l.mu.Lock()
	if err := l.usable(); err != nil {
		l.mu.Unlock()
		return err
	}
	end := l.tail.Load().end
	err := l.active().seal(sync)
	if err == nil && l.needsSnapshot(end) {
		err = l.takeSnapshot(end)
	}
	if err == nil && sync && len(l.snaps) > 0 && l.snaps[len(l.snaps)-1] == end {
		err = l.syncFile(segmentPath(*l.folder.Load(), end, extSnapshot))
	}
	if err != nil {
		err = l.fail(fmt.Errorf("close: %w", err))
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if !sync {
		return l.writeEpochs(false)
	}
	if err := l.writeEpochs(true); err != nil {
		return err
	}
	if err := l.Flush(); err != nil {
		return err
	}
	return l.syncFolder()
}

func (l *Log) syncFile(name string) error {
	f, err := l.m.fs.OpenReadWrite(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// settled notes that a sync of the whole volume covered the log.
func (l *Log) settled() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recovery.Store(l.tail.Load().end)
	l.newFiles.Store(false)
	l.newMeta.Store(false)
	for _, s := range *l.segs.Load() {
		s.unsyncedIndex.Store(false)
		s.unsyncedCut.Store(false)
	}
}

// shut refuses further changes.
func (l *Log) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
