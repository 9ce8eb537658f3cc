package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"

	"kctl/broker/obs"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// logDir is one directory of log.dirs.
type logDir struct {
	path string
	lock io.Closer

	failure atomic.Pointer[error] // set once the directory is offline
	broken  atomic.Bool           // a write failed: no clean-shutdown mark
	logs    atomic.Int32

	recoveryDirty, startDirty atomic.Bool

	// Generations of folder entries made in the directory, and up to which of them it was synced.
	made, synced atomic.Int64
	syncMu       sync.Mutex // one sync at a time, and one for all that wait; guards synced's growth, innermost

	// mu guards the checkpoints as last read or written and the files themselves.
	mu       sync.Mutex
	hw       offsets
	recovery offsets
	starts   offsets
	written  map[string][]byte // file name -> contents, to leave out writes that change nothing
}

func newLogDir(path string) *logDir { return &logDir{path: path, written: map[string][]byte{}} }

// offline returns why the directory is out of service, nil when it is not.
func (d *logDir) offline() error {
	if p := d.failure.Load(); p != nil {
		return *p
	}
	return nil
}

func (d *logDir) setOffline(reason error) bool {
	if reason == nil {
		reason = ErrStorage
	}
	d.broken.Store(true)
	return d.failure.CompareAndSwap(nil, &reason)
}

// syncEntry makes the folder entry of a log durable; gen is the log's generation. Those who ask at the same time
// share a sync.
func (d *logDir) syncEntry(m *Manager, gen int64) error {
	if d.synced.Load() >= gen {
		return nil
	}
	d.syncMu.Lock()
	defer d.syncMu.Unlock()
	if d.synced.Load() >= gen {
		return nil
	}
	made := d.made.Load()
	if err := m.fs.SyncDir(d.path); err != nil {
		return err
	}
	d.synced.Store(made)
	return nil
}

// readOffsets reads one checkpoint; an unreadable one counts as empty, with a warning, and means more work at
// start, never lost data.
func (d *logDir) readOffsets(m *Manager, name string) (offsets, error) {
	path := filepath.Join(d.path, name)
	data, err := readAll(m.fs, path)
	if errors.Is(err, vfs.ErrNotExist) {
		return offsets{}, nil
	}
	if err != nil && !errors.Is(err, ErrMalformed) {
		return nil, err
	}
	var o offsets
	if err == nil {
		o, err = parseOffsets(data)
	}
	if err != nil {
		m.log.Warn("checkpoint is unreadable and taken as empty", obs.KeyPath, path, obs.Err(err))
		return offsets{}, nil
	}
	return o, nil
}

// writeOffsets replaces a checkpoint durably unless it holds the same already. Callers hold mu.
func (d *logDir) writeOffsets(m *Manager, name string, o offsets) error {
	data := o.format()
	if bytes.Equal(d.written[name], data) {
		return nil
	}
	if err := writeAtomic(m.fs, filepath.Join(d.path, name), data, true); err != nil {
		d.broken.Store(true)
		return fmt.Errorf("checkpoint: %w: %w", err, ErrStorage)
	}
	d.written[name] = data
	return nil
}

// update overlays the live logs' values on what is known of logs that are not open yet, forgets logs that are
// gone, and writes the file.
func (d *logDir) update(m *Manager, name string, known *offsets, value func(*Log) (int64, bool)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	logs := m.logsIn(d) // under mu: what is written last speaks of the logs there are
	var next offsets
	if m.loaded.Load() {
		next = make(offsets, len(logs))
	} else {
		next = maps.Clone(*known)
		if next == nil {
			next = offsets{}
		}
	}
	for _, l := range logs {
		if v, ok := value(l); ok {
			next[l.tp] = v
		} else {
			delete(next, l.tp)
		}
	}
	if err := d.writeOffsets(m, name, next); err != nil {
		return err
	}
	*known = next
	return nil
}

func (d *logDir) checkpointRecovery(m *Manager) error {
	d.recoveryDirty.Store(false)
	err := d.update(m, fileRecovery, &d.recovery, func(l *Log) (int64, bool) { return l.recovery.Load(), true })
	if err != nil {
		d.recoveryDirty.Store(true)
	}
	return err
}

// checkpointStarts writes log starts that the first segment's name does not tell.
func (d *logDir) checkpointStarts(m *Manager) error {
	d.startDirty.Store(false)
	err := d.update(m, fileLogStart, &d.starts, func(l *Log) (int64, bool) {
		start := l.start.Load()
		return start, start > (*l.segs.Load())[0].base
	})
	if err != nil {
		d.startDirty.Store(true)
	}
	return err
}

func (d *logDir) checkpointHW(m *Manager, hw map[cluster.TopicPartition]int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	logs := m.logsIn(d)
	next := make(offsets, len(logs))
	for _, l := range logs {
		if v, ok := hw[l.tp]; ok {
			next[l.tp] = max(0, v)
		} else if v, ok := d.hw[l.tp]; ok {
			next[l.tp] = v
		}
	}
	if err := d.writeOffsets(m, fileHW, next); err != nil {
		return err
	}
	d.hw = next
	return nil
}

// forget takes out of the checkpoints, durably, what they say of a log of the partition that was here before. It must not
// count for the next one: recovery would believe that records are durable which are not, and start and high watermark would
// be those of other records. The checkpoints are written anew soon after a deletion anyway, so this seldom writes, and then
// for all that were deleted. The partition has no log in the directory; callers have its turn.
func (d *logDir) forget(m *Manager, tp cluster.TopicPartition) error {
	d.mu.Lock()
	_, recovery := d.recovery[tp]
	_, start := d.starts[tp]
	_, hw := d.hw[tp]
	d.mu.Unlock()
	if recovery {
		if err := d.checkpointRecovery(m); err != nil {
			return err
		}
	}
	if start {
		if err := d.checkpointStarts(m); err != nil {
			return err
		}
	}
	if hw {
		return d.checkpointHW(m, nil)
	}
	return nil
}

// lowerHighWatermarks rewrites the checkpoint when it says more than logs hold, because recovery or a truncation
// shortened them: otherwise, once they have grown again, records that nobody committed would count as committed.
func (d *logDir) lowerHighWatermarks(m *Manager, logs []*Log) error {
	lower := map[cluster.TopicPartition]int64{}
	for _, l := range logs {
		if v, ok := d.highWatermark(l.tp); ok && v > l.hw.Load() {
			lower[l.tp] = l.hw.Load()
		}
	}
	if len(lower) == 0 {
		return nil
	}
	return d.checkpointHW(m, lower)
}

// noteShortened keeps which logs were opened with an end below their checkpointed high watermark, before the checkpoint
// is lowered to what they hold.
func (d *logDir) noteShortened(m *Manager, logs []*Log) {
	for _, l := range logs {
		if v, ok := d.highWatermark(l.tp); ok && v > l.LogEndOffset() {
			m.shortened[l.tp] = v
		}
	}
}

// Shortened returns the checkpointed high watermark of a log that was opened with an end below it: records that were
// committed are not there any more.
func (m *Manager) Shortened(tp cluster.TopicPartition) (highWatermark int64, ok bool) {
	highWatermark, ok = m.shortened[tp]
	return highWatermark, ok
}

func (d *logDir) highWatermark(tp cluster.TopicPartition) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v, ok := d.hw[tp]
	return v, ok
}
