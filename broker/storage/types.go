package storage

import (
	"time"

	"kctl/zkutil/cluster"
)

// Origin says on whose behalf a leader appends.
type Origin int8

// The origins.
const (
	// OriginClient is a produce request: batches start at offset 0 and their sequences are checked.
	OriginClient Origin = iota
	// OriginCoordinator is the group or transaction coordinator of this broker.
	OriginCoordinator
)

// AppendOptions go with AppendAsLeader.
type AppendOptions struct {
	// Now is the time of the append; zero means the manager's clock.
	Now    time.Time
	Origin Origin
}

// AppendResult describes what an append did.
type AppendResult struct {
	// BaseOffset and LastOffset are those of the first and last record appended; of the earlier append
	// when Duplicate.
	BaseOffset, LastOffset int64
	// LogAppendTime is the stamp in ms of a LogAppendTime topic, else -1.
	LogAppendTime int64
	// LogStartOffset is the log start at that moment.
	LogStartOffset int64
	// MaxTimestamp is the largest timestamp in ms, -1 when none.
	MaxTimestamp int64
	// Bytes and Batches count what was written; zero when Duplicate.
	Bytes, Batches int
	// Records counts offsets written (LastOffset-BaseOffset+1 summed over batches).
	Records int64
	// Duplicate says that nothing was written since an idempotent producer's batch was there already.
	Duplicate bool
}

// TimestampOffset is a place found by time.
type TimestampOffset struct {
	Timestamp int64 // ms
	Offset    int64
	Epoch     cluster.LeaderEpoch // of the leader that appended the batch
}

// DirInfo describes one log directory.
type DirInfo struct {
	Path string
	// Err is why the directory is offline, nil when it is online.
	Err  error
	Logs int
	// Total and Free are bytes of the volume; -1 when unknown.
	Total, Free int64
}

// Online reports whether the directory is usable.
func (d DirInfo) Online() bool { return d.Err == nil }

// ProducerState is what DescribeProducers shows of one idempotent producer.
type ProducerState struct {
	ProducerID       int64
	ProducerEpoch    int16
	LastSequence     int32
	LastTimestamp    int64
	CoordinatorEpoch int32
	TxnStartOffset   int64 // -1 when no transaction is open
}
