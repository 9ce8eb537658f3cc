package storage

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Errors of this package, for errors.Is. Those that a client can cause or see wrap the protocol error to
// answer with: errors.As(err, **kerr.Error) yields its code. So do the errors of broker/record, which
// appends return unchanged.
var (
	// ErrStorage says that the disk failed (I/O error, no space). The log takes no further appends until
	// it is opened anew; the caller marks the directory offline with Manager.MarkOffline.
	ErrStorage = fmt.Errorf("storage: %w", kerr.KafkaStorageError)
	// ErrOffsetOutOfRange says that an offset is below the log start or above the log end.
	ErrOffsetOutOfRange = fmt.Errorf("log: %w", kerr.OffsetOutOfRange)
	// ErrOutOfOrderSequence says that an idempotent producer's batch does not follow its last one.
	ErrOutOfOrderSequence = fmt.Errorf("producer state: %w", kerr.OutOfOrderSequenceNumber)
	// ErrInvalidProducerEpoch says that a newer epoch of the producer was seen.
	ErrInvalidProducerEpoch = fmt.Errorf("producer state: %w", kerr.InvalidProducerEpoch)
	// ErrMessageTooLarge says that a batch is over max.message.bytes.
	ErrMessageTooLarge = fmt.Errorf("log: %w", kerr.MessageTooLarge)
	// ErrBatchTooLarge says that one append is over segment.bytes.
	ErrBatchTooLarge = fmt.Errorf("log: %w", kerr.RecordListTooLarge)
	// ErrInvalidTimestamp says that a timestamp is outside message.timestamp.before/after.max.ms.
	ErrInvalidTimestamp = fmt.Errorf("log: %w", kerr.InvalidTimestamp)
	// ErrUnexpectedOffset says that a follower was given batches that do not come after its log end.
	ErrUnexpectedOffset = errors.New("log: batches are not ahead of the log end offset")
	// ErrClosed says that the log or the manager was closed or deleted.
	ErrClosed = fmt.Errorf("log is closed: %w", kerr.NotLeaderForPartition)
	// ErrOffline says that the log directory of the partition is offline.
	ErrOffline = fmt.Errorf("log directory is offline: %w", kerr.KafkaStorageError)
	// ErrTopicID says that the partition exists on disk with another topic id.
	ErrTopicID = fmt.Errorf("log: %w", kerr.InconsistentTopicID)
	// ErrLocked says that another broker uses the log directory.
	ErrLocked = errors.New("log directory is in use by another broker")
	// ErrForeign says that a log directory belongs to another broker id or cluster id.
	ErrForeign = errors.New("log directory belongs to another broker")
	// ErrMalformed says that a file of the engine's own cannot be read as what it should be.
	ErrMalformed = errors.New("malformed file")
)
