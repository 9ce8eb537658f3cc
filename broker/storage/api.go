package storage

import (
	"io"
	"time"

	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

func defaultOpenFiles() int { return 64 }

// Manager owns the log directories and every Log in them.
type Manager struct{}

// OpenManager locks the directories (.lock), checks or writes meta.properties, and opens every log, after an
// unclean stop by recovery. A directory that fails is reported by Dirs as offline; it is an error only when
// none is left, when one is locked by another broker, or when one belongs to another broker or cluster
// (ErrLocked, ErrForeign: nothing is modified then).
func OpenManager(fs vfs.FS, dirs []string, opts ManagerOptions) (*Manager, error) {
	return nil, ErrClosed
}

// Log returns the partition's log if this broker has one in an online directory.
func (m *Manager) Log(tp cluster.TopicPartition) (*Log, bool) { return nil, false }

// Create returns the partition's log, making it when there is none: in the online directory with the fewest
// logs, with partition.metadata when topicID is set. It is idempotent; an existing log takes cfg and, if it
// has none, the topic id; another id gives ErrTopicID. Creation is not synced to disk.
func (m *Manager) Create(tp cluster.TopicPartition, topicID cluster.TopicID, cfg Config) (*Log, error) {
	return nil, ErrClosed
}

// Delete closes the log and renames its folder to <tp>.<uuid>-delete; Housekeep removes it after
// FileDeleteDelayMs. A partition without a log is no error.
func (m *Manager) Delete(tp cluster.TopicPartition) error { return ErrClosed }

// HighWatermark returns the checkpointed high watermark as of start or of the last checkpoint.
func (m *Manager) HighWatermark(tp cluster.TopicPartition) (int64, bool) { return 0, false }

// CheckpointHighWatermarks writes replication-offset-checkpoint of each online directory: the given values,
// and for logs not given the values known before. Files whose contents would not change are not written.
func (m *Manager) CheckpointHighWatermarks(hw map[cluster.TopicPartition]int64) error { return ErrClosed }

// CheckpointRecoveryPoints writes recovery-point-offset-checkpoint of each online directory.
func (m *Manager) CheckpointRecoveryPoints() error { return ErrClosed }

// CheckpointLogStartOffsets writes log-start-offset-checkpoint of each online directory.
func (m *Manager) CheckpointLogStartOffsets() error { return ErrClosed }

// Housekeep does the periodic work: retention, flush.ms, syncing rolled segments, expiry of producer ids,
// delayed removals, and recovery-point and log-start checkpoints that changed. One caller at a time; the
// caller owns the goroutine and chooses the interval (seconds). Errors of single logs are joined.
func (m *Manager) Housekeep(now time.Time) error { return ErrClosed }

// Dirs describes the log directories in the order given to OpenManager.
func (m *Manager) Dirs() []DirInfo { return nil }

// Logs returns all logs in online directories, sorted by partition.
func (m *Manager) Logs() []*Log { return nil }

// MarkOffline takes a log directory out of service after a failure: its logs fail with ErrOffline and it
// gets no clean-shutdown mark. It returns the partitions that were in it. Idempotent.
func (m *Manager) MarkOffline(dir string, reason error) []cluster.TopicPartition { return nil }

// Close flushes every log, writes checkpoints and snapshots and, in directories without any failure, the
// clean-shutdown mark; then it releases the locks. The manager is unusable afterwards.
func (m *Manager) Close() error { return nil }

// Log is one partition's replica on disk. Safe for concurrent use.
type Log struct{}

// TopicPartition names the log.
func (l *Log) TopicPartition() cluster.TopicPartition { return cluster.TopicPartition{} }

// AppendAsLeader validates one or more v2 batches as received, gives them offsets from the log end on and
// the leader epoch, and writes them with one write call. data may be modified in place (base offset, leader
// epoch, with LogAppendTime also the timestamp) and stays owned by the caller. Either all batches are
// appended or none. Errors: those of broker/record, ErrOutOfOrderSequence, ErrInvalidProducerEpoch,
// ErrMessageTooLarge, ErrBatchTooLarge, ErrInvalidTimestamp, ErrStorage, ErrClosed, ErrOffline.
func (l *Log) AppendAsLeader(data []byte, epoch cluster.LeaderEpoch, opts AppendOptions) (AppendResult, error) {
	return AppendResult{}, ErrClosed
}

// AppendAsFollower writes batches with the offsets and epochs that the leader gave them. They must start at
// or after the log end and rise; a cut-off last batch is ignored. CRCs are checked.
func (l *Log) AppendAsFollower(data []byte) (AppendResult, error) { return AppendResult{}, ErrClosed }

// Read returns the batches from the one that holds offset on: whole batches, at most maxBytes, none that
// starts at or after maxOffset (the high watermark or log end offset). With minOneBatch the first batch is
// returned even when it is larger. At the log end or bound the slice is empty. ErrOffsetOutOfRange below the
// log start or above the log end. The caller must call Release on the slice once.
func (l *Log) Read(offset int64, maxBytes int, maxOffset int64, minOneBatch bool) (Slice, error) {
	return Slice{}, ErrClosed
}

// Slice is a range of a segment's bytes: whole batches, ready for the wire. The zero Slice is empty. It keeps
// its file open until Release, whatever happens to the log.
type Slice struct{}

// Size is the number of bytes.
func (s Slice) Size() int { return 0 }

// WriteTo writes the bytes to w through a pooled buffer. io.ErrUnexpectedEOF when the log was truncated
// meanwhile: part of the bytes may have been written then, so a connection must be closed.
func (s Slice) WriteTo(w io.Writer) (int64, error) { return 0, nil }

// ReadInto fills p with the first bytes of the slice and returns how many there were.
func (s Slice) ReadInto(p []byte) (int, error) { return 0, nil }

// Release lets go of the file. The slice must not be used afterwards.
func (s Slice) Release() {}

// LogStartOffset is the first offset that may be read. Lock-free.
func (l *Log) LogStartOffset() int64 { return 0 }

// LogEndOffset is the offset of the next record. Lock-free.
func (l *Log) LogEndOffset() int64 { return 0 }

// HighWatermark is what SetHighWatermark last gave, after opening the checkpointed one within the log's bounds.
func (l *Log) HighWatermark() int64 { return 0 }

// SetHighWatermark tells the high watermark, clamped to the log's bounds. It bounds retention and AdvanceLogStart.
func (l *Log) SetHighWatermark(offset int64) {}

// LastStableOffset is the high watermark bounded by the first open transaction.
func (l *Log) LastStableOffset() int64 { return 0 }

// TruncateTo removes all records from offset on; nothing when offset is at or above the log end.
func (l *Log) TruncateTo(offset int64) error { return ErrClosed }

// TruncateFullyAndStartAt empties the log and lets it start and end at offset.
func (l *Log) TruncateFullyAndStartAt(offset int64) error { return ErrClosed }

// AdvanceLogStart moves the log start up to offset (DeleteRecords, or a follower told by its leader); lower
// values do nothing; above the high watermark ErrOffsetOutOfRange. Whole segments below go by Housekeep.
func (l *Log) AdvanceLogStart(offset int64) error { return ErrClosed }

// LatestEpoch is the last entry of the leader-epoch cache.
func (l *Log) LatestEpoch() (cluster.LeaderEpoch, bool) { return cluster.NoLeaderEpoch, false }

// AssignEpochStart notes that epoch began at offset, as a new leader does before its first append.
func (l *Log) AssignEpochStart(epoch cluster.LeaderEpoch, offset int64) error { return ErrClosed }

// EndOffsetForEpoch answers OffsetForLeaderEpoch: the largest known epoch at or below the asked one and the
// offset at which it ended; (NoLeaderEpoch, -1) when the asked epoch is above all known or the log knows none.
func (l *Log) EndOffsetForEpoch(epoch cluster.LeaderEpoch) (cluster.LeaderEpoch, int64) {
	return cluster.NoLeaderEpoch, -1
}

// EpochForOffset is the leader epoch that the record at offset was or will be appended in.
func (l *Log) EpochForOffset(offset int64) (cluster.LeaderEpoch, bool) { return cluster.NoLeaderEpoch, false }

// OffsetForTimestamp finds the first record below maxOffset whose timestamp is at or after ts (ms).
func (l *Log) OffsetForTimestamp(ts int64, maxOffset int64) (TimestampOffset, bool, error) {
	return TimestampOffset{}, false, ErrClosed
}

// MaxTimestampOffset finds the record with the largest timestamp (KIP-734).
func (l *Log) MaxTimestampOffset() (TimestampOffset, bool, error) {
	return TimestampOffset{}, false, ErrClosed
}

// Size is the number of bytes of all segments' records.
func (l *Log) Size() int64 { return 0 }

// TopicID is the id in partition.metadata, zero when there is none.
func (l *Log) TopicID() cluster.TopicID { return cluster.TopicID{} }

// SetTopicID writes partition.metadata of a log that has none; ErrTopicID when it has another id.
func (l *Log) SetTopicID(id cluster.TopicID) error { return ErrClosed }

// Config returns the present configuration; SetConfig changes it from the next operation on.
func (l *Log) Config() Config { return Config{} }

// SetConfig changes the configuration from the next operation on.
func (l *Log) SetConfig(cfg Config) {}

// Flush makes everything appended before the call durable and moves the recovery point.
func (l *Log) Flush() error { return ErrClosed }

// RecoveryPoint is the offset below which everything is durable.
func (l *Log) RecoveryPoint() int64 { return 0 }

// Dir is the log directory (not the partition's folder) that holds the log.
func (l *Log) Dir() string { return "" }

// ActiveProducers describes the idempotent producers that the log remembers.
func (l *Log) ActiveProducers() []ProducerState { return nil }
