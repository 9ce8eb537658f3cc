package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"kctl/broker/obs"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// Log is one partition's replica on disk. Safe for concurrent use.
//
// Lock order: flushMu, mu, rebuildMu, index.mu, fileRef.mu, fdCache.mu; leaves that are taken anywhere and hold
// nothing: epochs.mu, bounds.mu, segment.largestMu, logDir.mu. mu is held over the one write call of an append, over rolls and
// truncations, never over fsync of records.
type Log struct {
	m      *Manager
	dir    *logDir
	tp     cluster.TopicPartition
	folder *atomic.Pointer[string] // path of the partition's folder

	cfg     atomic.Pointer[Config]
	topicID atomic.Pointer[cluster.TopicID]

	// What readers use, without a lock. tail is published after the data it speaks of was written.
	segs     atomic.Pointer[[]*segment] // ascending by base offset, never empty
	tail     atomic.Pointer[tail]
	start    atomic.Int64
	hw       atomic.Int64
	recovery atomic.Int64
	awake    atomic.Bool // something happened that Housekeep has to look at

	mu        sync.Mutex
	producers producers // guarded by mu
	failed    error     // sticky; guarded by mu
	closed    bool      // guarded by mu
	lastFlush int64     // ms; guarded by mu
	cuts      int       // truncations so far; guarded by mu
	snaps     []int64   // offsets of the .snapshot files, ascending; guarded by mu

	flushMu   sync.Mutex  // one flush at a time
	newFiles  atomic.Bool // folder entries that were not synced yet
	newMeta   atomic.Bool // partition.metadata was written and not synced
	dirSynced int64       // logDir generation in which the folder was made, 0 when it was found
	rebuildMu sync.Mutex  // one index rebuild at a time

	epochs epochCache
	bounds boundCache
}

// tail is the end of the log as one consistent value.
type tail struct {
	end  int64 // log end offset
	seg  *segment
	size int64 // bytes of seg that belong to offsets below end
}

func newLog(m *Manager, dir *logDir, tp cluster.TopicPartition, cfg *Config) *Log {
	l := &Log{m: m, dir: dir, tp: tp, folder: new(atomic.Pointer[string])}
	path := filepath.Join(dir.path, tp.String())
	l.folder.Store(&path)
	l.cfg.Store(cfg)
	l.topicID.Store(&cluster.TopicID{})
	return l
}

// TopicPartition names the log.
func (l *Log) TopicPartition() cluster.TopicPartition { return l.tp }

// LogStartOffset is the first offset that may be read. Lock-free.
func (l *Log) LogStartOffset() int64 { return l.start.Load() }

// LogEndOffset is the offset of the next record. Lock-free.
func (l *Log) LogEndOffset() int64 { return l.tail.Load().end }

// HighWatermark is what SetHighWatermark last gave; after opening it is the checkpointed one, clamped to the
// log's bounds. Lock-free.
func (l *Log) HighWatermark() int64 { return l.hw.Load() }

// SetHighWatermark tells the high watermark, clamped to the log's bounds. It bounds retention and
// AdvanceLogStart. Lock-free.
func (l *Log) SetHighWatermark(offset int64) {
	l.hw.Store(max(l.start.Load(), min(offset, l.tail.Load().end)))
	l.wake()
}

// LastStableOffset is the high watermark, bounded by the first transaction that is open or whose marker is
// not yet below the high watermark.
func (l *Log) LastStableOffset() int64 {
	hw := l.hw.Load()
	if l.producers.open.Load() == 0 {
		return hw
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, ok := l.producers.firstUnstable(hw); ok {
		return min(hw, first)
	}
	return hw
}

// LatestEpoch is the last entry of the leader-epoch cache.
func (l *Log) LatestEpoch() (cluster.LeaderEpoch, bool) {
	e, ok := l.epochs.latest()
	return e.Epoch, ok
}

// AssignEpochStart notes that epoch began at offset, as a new leader does before its first append.
func (l *Log) AssignEpochStart(epoch cluster.LeaderEpoch, offset int64) error {
	if epoch < 0 || offset < 0 {
		return fmt.Errorf("epoch %d at offset %d: %w", epoch, offset, ErrOffsetOutOfRange)
	}
	l.epochs.assign(epoch, offset)
	return nil
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch at or below the asked one and the
// offset at which it ended. (NoLeaderEpoch, -1) when the asked epoch is above all known ones or none is known.
func (l *Log) EndOffsetForEpoch(epoch cluster.LeaderEpoch) (cluster.LeaderEpoch, int64) {
	return l.epochs.endOffset(epoch, l.LogEndOffset())
}

// EpochForOffset is the leader epoch in which the record at offset was appended.
func (l *Log) EpochForOffset(offset int64) (cluster.LeaderEpoch, bool) {
	return l.epochs.forOffset(offset)
}

// EpochStart is the offset at which the latest epoch began; ok is false when no epoch is known.
func (l *Log) EpochStart() (offset int64, ok bool) {
	e, ok := l.epochs.latest()
	return e.Start, ok
}

// Size is the number of bytes of all segments' records. Lock-free.
func (l *Log) Size() int64 {
	var n int64
	for _, s := range *l.segs.Load() {
		n += s.size.Load()
	}
	return n
}

// TopicID is the id in partition.metadata, zero when there is none.
func (l *Log) TopicID() cluster.TopicID { return *l.topicID.Load() }

// SetTopicID writes partition.metadata of a log that has none; ErrTopicID when it has another id.
func (l *Log) SetTopicID(id cluster.TopicID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	return l.setTopicID(id)
}

func (l *Log) setTopicID(id cluster.TopicID) error {
	have := l.TopicID()
	if id.IsZero() || have == id {
		return nil
	}
	if !have.IsZero() {
		return fmt.Errorf("%s has topic id %s on disk, not %s: %w", l.tp, have, id, ErrTopicID)
	}
	name := filepath.Join(*l.folder.Load(), filePartition)
	if err := writeAtomic(l.m.fs, name, formatPartitionMetadata(id), false); err != nil {
		return l.fail(err)
	}
	l.newFiles.Store(true)
	l.newMeta.Store(true)
	l.topicID.Store(&id)
	return nil
}

// Config returns the present configuration.
func (l *Log) Config() Config { return *l.cfg.Load() }

// SetConfig changes the configuration from the next operation on.
func (l *Log) SetConfig(cfg Config) {
	l.cfg.Store(&cfg)
	l.wake()
}

// RecoveryPoint is the offset below which everything is durable. Lock-free.
func (l *Log) RecoveryPoint() int64 { return l.recovery.Load() }

// Dir is the log directory (not the partition's folder) that holds the log.
func (l *Log) Dir() string { return l.dir.path }

// Segments is the number of segments. Lock-free.
func (l *Log) Segments() int { return len(*l.segs.Load()) }

// ActiveProducers describes the idempotent producers that the log remembers, sorted by id.
func (l *Log) ActiveProducers() []ProducerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]ProducerState, 0, len(l.producers.byID))
	for _, p := range l.producers.sorted() {
		out = append(out, ProducerState{
			ProducerID: p.id, ProducerEpoch: p.epoch, LastSequence: p.lastSeq(), LastTimestamp: p.lastTimestamp,
			CoordinatorEpoch: p.coordinatorEpoch, TxnStartOffset: p.txnFirst,
		})
	}
	return out
}

// active is the segment that is appended to. Callers hold mu, or take what a moment shows.
func (l *Log) active() *segment {
	segs := *l.segs.Load()
	return segs[len(segs)-1]
}

// usable reports why the log takes no changes. Callers hold mu.
func (l *Log) usable() error {
	switch {
	case l.closed:
		return fmt.Errorf("%s: %w", l.tp, ErrClosed)
	case l.failed != nil:
		return fmt.Errorf("%s failed before: %w", l.tp, l.failed)
	case l.dir.offline() != nil:
		return fmt.Errorf("%s: %w", l.tp, ErrOffline)
	}
	return nil
}

// fail makes the log refuse further changes after a disk error and denies the directory its clean-shutdown
// mark. Callers hold mu. It returns the error to give to the caller.
func (l *Log) fail(err error) error {
	if errors.Is(err, ErrStorage) {
		return err
	}
	err = fmt.Errorf("%s: %w: %w", l.tp, err, ErrStorage)
	if l.failed == nil {
		l.failed = err
		l.dir.broken.Store(true)
		l.m.log.Error("log failed", obs.KeyTopicPartition, l.tp.String(), obs.KeyLogDir, l.dir.path, obs.Err(err))
	}
	return err
}

// Failed is the disk error after which the log takes no changes, nil when it is in order.
func (l *Log) Failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// publish makes a new end visible to readers.
func (l *Log) publish(end int64, seg *segment, size int64) {
	l.tail.Store(&tail{end: end, seg: seg, size: size})
	l.wake()
}

// setSegments replaces the segment list.
func (l *Log) setSegments(segs []*segment) { l.segs.Store(&segs) }

// isNotExist tells a file that was deleted under a reader from a disk that fails.
func isNotExist(err error) bool { return errors.Is(err, vfs.ErrNotExist) }
