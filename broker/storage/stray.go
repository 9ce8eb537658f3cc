package storage

import (
	"fmt"
	"path/filepath"
	"strings"

	"kctl/zkutil/cluster"
)

// Stray puts a log aside that no longer belongs here: its folder is renamed to <tp>.<uuid>-stray, as Apache
// Kafka does, and kept until an operator removes it; it is not opened again. A partition without a log is no
// error.
func (m *Manager) Stray(tp cluster.TopicPartition) error {
	defer m.changes.begin(tp)()
	if err := m.deleteFuture(tp); err != nil {
		return err
	}
	l, ok := m.Log(tp)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m.mu.Lock()
	m.setLog(tp, nil)
	m.mu.Unlock()
	l.dir.logs.Add(-1)
	if err := l.aside(); err != nil {
		return l.fail(fmt.Errorf("put log aside: %w", err))
	}
	l.dir.recoveryDirty.Store(true)
	l.dir.startDirty.Store(true)
	return nil
}

// aside closes the log and renames its folder, durably. Callers hold mu.
func (l *Log) aside() error {
	l.closed = true
	var random [16]byte
	l.m.opts.Random(random[:])
	old := *l.folder.Load()
	path := filepath.Join(l.dir.path, strings.TrimSuffix(deleteFolderName(l.tp, random), dirDeleted)+dirStray)
	if err := l.m.fs.Rename(old, path); err != nil {
		return err
	}
	l.folder.Store(&path)
	for _, s := range *l.segs.Load() {
		s.close()
	}
	return l.m.fs.SyncDir(l.dir.path)
}
