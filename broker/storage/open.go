package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kctl/broker/obs"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// OpenManager locks the directories (.lock), checks or writes meta.properties, and opens every log, after an
// unclean stop by recovery. A directory that fails is reported by Dirs as offline; it is an error only when
// none is left, when one is locked by another broker, or when one belongs to another broker or cluster
// (ErrLocked, ErrForeign: nothing is modified then).
func OpenManager(fs vfs.FS, dirs []string, opts ManagerOptions) (*Manager, error) {
	if len(dirs) == 0 {
		return nil, fmt.Errorf("no log directories: %w", ErrStorage)
	}
	opts = opts.withDefaults()
	m := &Manager{fs: fs, opts: opts, log: opts.Logger, logs: map[cluster.TopicPartition]*Log{},
		shortened: map[cluster.TopicPartition]int64{}}
	m.fds = &fdCache{fs: fs, limit: opts.OpenFiles}
	for _, path := range dirs {
		m.dirs = append(m.dirs, newLogDir(filepath.Clean(path)))
	}
	if err := m.claimDirs(); err != nil {
		return nil, errors.Join(err, m.unlock())
	}
	m.settleDuplicates()
	for _, d := range m.dirs {
		if d.offline() != nil {
			continue
		}
		err := m.openDir(d)
		if err == nil {
			d.noteShortened(m, m.logsIn(d))
			err = d.lowerHighWatermarks(m, m.logsIn(d))
		}
		if err != nil {
			m.takeOffline(d, err)
		}
	}
	m.openFutures()
	m.loaded.Store(true)
	if m.online() == 0 {
		err := fmt.Errorf("no usable log directory: %w", m.dirs[0].offline())
		return nil, errors.Join(err, m.unlock())
	}
	return m, nil
}

// claimDirs checks whose the directories are before anything is changed, then locks them.
func (m *Manager) claimDirs() error {
	missing := make([]bool, len(m.dirs))
	for i, d := range m.dirs {
		have, err := m.checkMeta(d)
		if errors.Is(err, ErrForeign) || errors.Is(err, ErrMalformed) {
			return err
		}
		if err != nil {
			m.takeOffline(d, err)
		}
		missing[i] = !have
	}
	for i, d := range m.dirs {
		if d.offline() != nil {
			continue
		}
		if err := m.fs.MkdirAll(d.path); err != nil {
			m.takeOffline(d, err)
			continue
		}
		lock, err := m.fs.Lock(filepath.Join(d.path, fileLock))
		if errors.Is(err, vfs.ErrLocked) {
			return fmt.Errorf("%s: %w", d.path, ErrLocked)
		}
		if err != nil {
			m.takeOffline(d, err)
			continue
		}
		d.lock = lock
		if missing[i] {
			meta := metaProperties{BrokerID: int64(m.opts.BrokerID), ClusterID: m.opts.ClusterID}
			if err := writeAtomic(m.fs, filepath.Join(d.path, fileMeta), formatMeta(meta), true); err != nil {
				m.takeOffline(d, err)
			}
		}
	}
	return nil
}

// checkMeta reports whether the directory has a meta.properties, and ErrForeign when it names another owner.
func (m *Manager) checkMeta(d *logDir) (have bool, err error) {
	path := filepath.Join(d.path, fileMeta)
	data, err := readAll(m.fs, path)
	if errors.Is(err, vfs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	meta, err := parseMeta(data)
	if err != nil {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	if meta.BrokerID >= 0 && meta.BrokerID != int64(m.opts.BrokerID) {
		return true, fmt.Errorf("%s: broker.id is %d there, %d here: %w", path, meta.BrokerID, m.opts.BrokerID, ErrForeign)
	}
	if meta.ClusterID != "" && m.opts.ClusterID != "" && meta.ClusterID != m.opts.ClusterID {
		return true, fmt.Errorf("%s: cluster.id is %s there, %s here: %w", path, meta.ClusterID, m.opts.ClusterID, ErrForeign)
	}
	return true, nil
}

// takeClean reads and removes the clean-shutdown mark, durably: a mark that came back after a power cut would
// hide an unclean stop.
func (m *Manager) takeClean(d *logDir) (bool, error) {
	path := filepath.Join(d.path, fileClean)
	data, err := readAll(m.fs, path)
	if errors.Is(err, vfs.ErrNotExist) {
		return false, m.fs.SyncDir(d.path)
	}
	if err != nil {
		return false, err
	}
	_, bad := parseCleanMark(data)
	if bad != nil {
		m.log.Warn("clean-shutdown mark ignored", obs.KeyPath, path, obs.Err(bad))
	}
	if err := m.fs.Remove(path); err != nil {
		return false, err
	}
	return bad == nil, m.fs.SyncDir(d.path)
}

// openDir opens all logs of one directory.
func (m *Manager) openDir(d *logDir) error {
	clean, err := m.takeClean(d)
	if err != nil {
		return err
	}
	if d.hw, err = d.readOffsets(m, fileHW); err != nil {
		return err
	}
	if d.recovery, err = d.readOffsets(m, fileRecovery); err != nil {
		return err
	}
	if d.starts, err = d.readOffsets(m, fileLogStart); err != nil {
		return err
	}
	entries, err := m.fs.List(d.path)
	if err != nil {
		return err
	}
	var found []*Log
	var cfg *Config
	for _, e := range entries {
		l, err := m.foundEntry(d, e, &cfg)
		if err != nil {
			return err
		}
		if l != nil {
			found = append(found, l)
		}
	}
	if !clean && len(found) > 0 {
		m.log.Info("log directory was not shut down cleanly, checking logs", obs.KeyLogDir, d.path, obs.KeyCount, len(found))
	}
	recovery, starts, hw := d.recovery, d.starts, d.hw // replaced, never changed
	return m.parallel(found, func(l *Log) error {
		return l.load(clean, recovery[l.tp], starts[l.tp], hw[l.tp])
	}, func(l *Log) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.setLog(l.tp, l)
		d.logs.Add(1)
	})
}

// foundEntry sorts one name of a log directory: a log to open, a deleted one to remove, or something to leave.
func (m *Manager) foundEntry(d *logDir, e vfs.Entry, shared **Config) (*Log, error) {
	switch {
	case !e.IsDir:
		if strings.HasSuffix(e.Name, extTmp) {
			return nil, m.fs.Remove(filepath.Join(d.path, e.Name))
		}
		return nil, nil
	case deletedFolder.MatchString(e.Name):
		gone := pendingRemoval{path: filepath.Join(d.path, e.Name), dir: d}
		if strings.Contains(e.Name, "."+swapMark) {
			m.swapped = append(m.swapped, gone)
		} else {
			m.pending = append(m.pending, gone)
		}
		return nil, nil
	case strings.HasSuffix(e.Name, dirFuture):
		if l := m.foundFuture(d, e.Name); l != nil {
			m.found = append(m.found, l)
		}
		return nil, nil
	case strings.HasSuffix(e.Name, dirStray):
		m.log.Warn("folder left alone", obs.KeyPath, filepath.Join(d.path, e.Name))
		return nil, nil
	}
	tp, ok := parseFolder(e.Name)
	if !ok {
		return nil, nil
	}
	cfg := m.opts.Config(tp.Topic)
	if *shared == nil || **shared != cfg {
		*shared = &cfg
	}
	return newLog(m, d, tp, *shared), nil
}

// parallel calls work for every log on up to RecoveryThreads goroutines and done for those that succeeded. It
// returns after all have ended, with the first error.
func (m *Manager) parallel(logs []*Log, work func(*Log) error, done func(*Log)) error {
	n := min(m.opts.RecoveryThreads, len(logs))
	if n <= 1 {
		for _, l := range logs {
			if err := work(l); err != nil {
				return err
			}
			done(l)
		}
		return nil
	}
	queue := make(chan *Log, len(logs))
	for _, l := range logs {
		queue <- l
	}
	close(queue)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for l := range queue {
				if err := work(l); err != nil {
					errs[i] = errors.Join(errs[i], err)
					continue
				}
				done(l)
			}
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (m *Manager) unlock() error {
	var errs []error
	for _, d := range m.dirs {
		if d.lock != nil {
			errs = append(errs, d.lock.Close())
			d.lock = nil
		}
	}
	return errors.Join(errs...)
}

// takeOffline puts a directory out of service and forgets its logs.
func (m *Manager) takeOffline(d *logDir, reason error) []cluster.TopicPartition {
	if !d.setOffline(reason) {
		return nil
	}
	m.log.Error("log directory is offline", obs.KeyLogDir, d.path, obs.Err(reason))
	var gone []cluster.TopicPartition
	m.mu.Lock()
	for tp, l := range m.logs {
		if l.dir == d {
			gone = append(gone, tp)
			m.setLog(tp, nil)
		}
	}
	for tp, l := range m.futures {
		if l.dir == d {
			m.setFuture(tp, nil)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(gone, cluster.TopicPartition.Compare)
	return gone
}
