package storage

import (
	"crypto/rand"
	"log/slog"
	"math"
	"strings"
	"time"

	"kctl/zkutil/cluster"
)

// Values of Config.MessageTimestampType and Config.CompressionType.
const (
	CreateTime          = "CreateTime"
	LogAppendTime       = "LogAppendTime"
	CompressionProducer = "producer"
)

// Config is one topic's log configuration, under Kafka's names. The zero value is not usable: start from
// DefaultConfig. It is a plain value and safe to copy.
type Config struct {
	SegmentBytes       int32 // segment.bytes: a segment's largest size
	SegmentMs          int64 // segment.ms: time span after which a segment is rolled
	SegmentJitterMs    int64 // segment.jitter.ms
	SegmentIndexBytes  int32 // segment.index.bytes: an index's largest size
	IndexIntervalBytes int32 // index.interval.bytes between two index entries

	RetentionMs       int64 // retention.ms, -1 unlimited
	RetentionBytes    int64 // retention.bytes, -1 unlimited
	FileDeleteDelayMs int64 // file.delete.delay.ms between rename and removal

	MaxMessageBytes int32 // max.message.bytes: largest batch
	FlushMessages   int64 // flush.messages: fsync after so many records
	FlushMs         int64 // flush.ms: fsync after so much time

	MessageTimestampType        string // CreateTime or LogAppendTime
	MessageTimestampBeforeMaxMs int64  // message.timestamp.before.max.ms
	MessageTimestampAfterMaxMs  int64  // message.timestamp.after.max.ms
	CompressionType             string // producer, uncompressed, gzip, snappy, lz4, zstd
	CleanupPolicy               string // delete, compact or both, comma-separated

	MinInSyncReplicas     int32
	UncleanLeaderElection bool

	// Compaction, kept for the cleaner.
	MinCleanableDirtyRatio float64
	MinCompactionLagMs     int64
	MaxCompactionLagMs     int64
	DeleteRetentionMs      int64
}

// DefaultConfig returns Apache Kafka 3.9's defaults.
func DefaultConfig() Config {
	return Config{
		SegmentBytes: 1 << 30, SegmentMs: 7 * 24 * 3600 * 1000, SegmentIndexBytes: 10 << 20,
		IndexIntervalBytes: 4096, RetentionMs: 7 * 24 * 3600 * 1000, RetentionBytes: -1,
		FileDeleteDelayMs: 60_000, MaxMessageBytes: 1<<20 + 12, FlushMessages: math.MaxInt64,
		FlushMs: math.MaxInt64, MessageTimestampType: CreateTime,
		MessageTimestampBeforeMaxMs: math.MaxInt64, MessageTimestampAfterMaxMs: math.MaxInt64,
		CompressionType: CompressionProducer, CleanupPolicy: "delete", MinInSyncReplicas: 1,
		MinCleanableDirtyRatio: 0.5, MaxCompactionLagMs: math.MaxInt64, DeleteRetentionMs: 24 * 3600 * 1000,
	}
}

// Compacts and Deletes report whether cleanup.policy names compact or delete.
func (c Config) Compacts() bool { return hasPolicy(c.CleanupPolicy, "compact") }

// Deletes reports whether old segments may be removed by time and size.
func (c Config) Deletes() bool { return hasPolicy(c.CleanupPolicy, "delete") }

func hasPolicy(list, want string) bool {
	for _, p := range strings.Split(list, ",") {
		if strings.TrimSpace(p) == want {
			return true
		}
	}
	return false
}

// ManagerOptions configure a Manager. Zero values take the stated defaults.
type ManagerOptions struct {
	// BrokerID and ClusterID must agree with each directory's meta.properties; they are written into new
	// directories. An empty ClusterID is not checked and not written.
	BrokerID  cluster.BrokerID
	ClusterID string
	// BrokerEpoch gives the epoch to put into the clean-shutdown mark; nil: -1.
	BrokerEpoch func() cluster.BrokerEpoch

	// Config gives the configuration with which a log found on disk is opened; nil: DefaultConfig.
	Config func(topic string) Config

	// RecoveryThreads is how many logs are opened at the same time per call; 1 runs without goroutines.
	// Default 1, as num.recovery.threads.per.data.dir.
	RecoveryThreads int
	// OpenFiles bounds the idle files that are kept open. Default: half the process's limit, 64 to 16384.
	OpenFiles int
	// ProducerIDExpiration is how long an idle idempotent producer is remembered
	// (producer.id.expiration.ms). Default 24 h.
	ProducerIDExpiration time.Duration
	// RetentionCheckInterval is how often Housekeep looks at logs to which nothing happened, whose records may
	// have grown too old (log.retention.check.interval.ms). Default 5 minutes.
	RetentionCheckInterval time.Duration

	// Now is the clock; default time.Now. Random fills with random bytes; default crypto/rand.
	Now    func() time.Time
	Random func([]byte)
	// Logger gets warnings about what was found and repaired; default: discard.
	Logger *slog.Logger
}

func (o ManagerOptions) withDefaults() ManagerOptions {
	if o.BrokerEpoch == nil {
		o.BrokerEpoch = func() cluster.BrokerEpoch { return cluster.NoBrokerEpoch }
	}
	if o.Config == nil {
		o.Config = func(string) Config { return DefaultConfig() }
	}
	if o.RecoveryThreads < 1 {
		o.RecoveryThreads = 1
	}
	if o.OpenFiles < 1 {
		o.OpenFiles = defaultOpenFiles()
	}
	if o.RetentionCheckInterval <= 0 {
		o.RetentionCheckInterval = 5 * time.Minute
	}
	if o.ProducerIDExpiration <= 0 {
		o.ProducerIDExpiration = 24 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = func(p []byte) { _, _ = rand.Read(p) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
