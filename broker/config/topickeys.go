package config

import "math"

const (
	maxInt  = math.MaxInt32
	maxLong = math.MaxInt64
)

// topicKeys are the configurations of a topic in Kafka 3.9, with the broker key that gives the default.
var topicKeys = []Key{
	topic(listKey("cleanup.policy", "delete", ClusterWide, "What happens to old segments: delete them by age or size, compact them by key, or both. Compacted topics keep every record for now.", "compact", "delete"), "log.cleanup.policy"),
	topic(intKey("compression.gzip.level", "-1", -1, 9, ClusterWide, "Level of gzip when compression.type is gzip; -1 is the library's default."), "compression.gzip.level"),
	topic(intKey("compression.lz4.level", "9", 1, 17, ClusterWide, "Level of lz4 when compression.type is lz4."), "compression.lz4.level"),
	topic(stringKey("compression.type", "producer", ClusterWide, "Final compression of the topic; producer keeps what the producer chose.", "uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), "compression.type"),
	topic(intKey("compression.zstd.level", "3", -131072, 22, ClusterWide, "Level of zstd when compression.type is zstd."), "compression.zstd.level"),
	topic(longKey("delete.retention.ms", "86400000", 0, maxLong, ClusterWide, "How long tombstones of a compacted topic are kept, in milliseconds."), "log.cleaner.delete.retention.ms"),
	topic(longKey("file.delete.delay.ms", "60000", 0, maxLong, ClusterWide, "How long a deleted file stays on disk, in milliseconds."), "log.segment.delete.delay.ms"),
	topic(longKey("flush.messages", "9223372036854775807", 1, maxLong, ClusterWide, "Force an fsync after this many records."), "log.flush.interval.messages"),
	topic(longKey("flush.ms", "9223372036854775807", 0, maxLong, ClusterWide, "Force an fsync after this many milliseconds."), "log.flush.interval.ms"),
	topic(listKey("follower.replication.throttled.replicas", "", ClusterWide, "Replicas whose follower side is throttled: partition:broker pairs, or *."), ""),
	topic(intKey("index.interval.bytes", "4096", 0, maxInt, ClusterWide, "Bytes of log between two entries of the offset index."), "log.index.interval.bytes"),
	topic(listKey("leader.replication.throttled.replicas", "", ClusterWide, "Replicas whose leader side is throttled: partition:broker pairs, or *."), ""),
	topic(longKey("local.retention.bytes", "-2", -2, maxLong, ClusterWide, "Bytes kept locally with tiered storage; -2 follows retention.bytes."), "log.local.retention.bytes"),
	topic(longKey("local.retention.ms", "-2", -2, maxLong, ClusterWide, "Milliseconds kept locally with tiered storage; -2 follows retention.ms."), "log.local.retention.ms"),
	topic(longKey("max.compaction.lag.ms", "9223372036854775807", 1, maxLong, ClusterWide, "Longest time that a record may stay uncompacted, in milliseconds."), "log.cleaner.max.compaction.lag.ms"),
	topic(intKey("max.message.bytes", "1048588", 0, maxInt, ClusterWide, "Largest record batch accepted, in bytes, after compression."), "message.max.bytes"),
	topic(boolKey("message.downconversion.enable", "true", ClusterWide, "Whether old fetch versions may be answered by converting; only format v2 is stored and served."), "log.message.downconversion.enable"),
	topic(stringKey("message.format.version", "3.0-IV1", ClusterWide, "Deprecated and without effect since 3.0."), "log.message.format.version"),
	topic(longKey("message.timestamp.after.max.ms", "9223372036854775807", 0, maxLong, ClusterWide, "How far a record's timestamp may lie after the broker's clock, in milliseconds."), "log.message.timestamp.after.max.ms"),
	topic(longKey("message.timestamp.before.max.ms", "9223372036854775807", 0, maxLong, ClusterWide, "How far a record's timestamp may lie before the broker's clock, in milliseconds."), "log.message.timestamp.before.max.ms"),
	topic(longKey("message.timestamp.difference.max.ms", "9223372036854775807", 0, maxLong, ClusterWide, "Deprecated: bounds the distance on both sides."), "log.message.timestamp.difference.max.ms"),
	topic(stringKey("message.timestamp.type", "CreateTime", ClusterWide, "Whether a record's timestamp is the producer's or the broker's.", "CreateTime", "LogAppendTime"), "log.message.timestamp.type"),
	topic(doubleKey("min.cleanable.dirty.ratio", "0.5", 0, 1, ClusterWide, "Share of uncompacted bytes from which a log is compacted."), "log.cleaner.min.cleanable.ratio"),
	topic(longKey("min.compaction.lag.ms", "0", 0, maxLong, ClusterWide, "Shortest time that a record stays uncompacted, in milliseconds."), "log.cleaner.min.compaction.lag.ms"),
	topic(intKey("min.insync.replicas", "1", 1, maxInt, ClusterWide, "Smallest in-sync set with which acks=all is accepted."), "min.insync.replicas"),
	topic(boolKey("preallocate", "false", ClusterWide, "Whether a new segment's file is allocated in full."), "log.preallocate"),
	topic(boolKey("remote.storage.enable", "false", ClusterWide, "Tiered storage; only false is possible."), ""),
	topic(longKey("retention.bytes", "-1", -1, maxLong, ClusterWide, "Bytes of a partition kept by the delete policy; -1 is unlimited."), "log.retention.bytes"),
	topic(longKey("retention.ms", "604800000", -1, maxLong, ClusterWide, "Milliseconds that records are kept by the delete policy; -1 is unlimited."), "log.retention.ms"),
	topic(intKey("segment.bytes", "1073741824", 14, maxInt, ClusterWide, "Size at which a segment is closed, in bytes."), "log.segment.bytes"),
	topic(intKey("segment.index.bytes", "10485760", 4, maxInt, ClusterWide, "Size of an index file, in bytes."), "log.index.size.max.bytes"),
	topic(longKey("segment.jitter.ms", "0", 0, maxLong, ClusterWide, "Random part taken off segment.ms, so that not all logs roll at once."), "log.roll.jitter.ms"),
	topic(longKey("segment.ms", "604800000", 1, maxLong, ClusterWide, "Age at which a segment is closed, in milliseconds."), "log.roll.ms"),
	topic(boolKey("unclean.leader.election.enable", "false", ClusterWide, "Whether a replica outside the in-sync set may lead as the last resort, losing records."), "unclean.leader.election.enable"),
}

func topic(k Key, broker string) Key {
	k.Broker = broker
	return k
}

// TopicKeys returns the table of topic configurations, sorted by name. It must not be changed.
func TopicKeys() []Key { return topicKeys }

// TopicKey finds a topic configuration.
func TopicKey(name string) (Key, bool) {
	if k, ok := topicIndex[name]; ok {
		return *k, true
	}
	return Key{}, false
}
