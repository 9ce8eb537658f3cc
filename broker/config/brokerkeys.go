package config

import (
	"slices"
	"strings"
)

// brokerKeys are the keys of server.properties that this broker acts upon, plus those that it accepts because
// their Kafka meaning holds by construction. Defaults are those of Kafka 3.9.
var brokerKeys = slices.Concat(identityKeys, networkKeys, logKeys, replicationKeys, coordinationKeys, ownKeys)

var identityKeys = []Key{
	intKey("broker.id", "-1", -1, maxInt, ReadOnly, "Id of this broker; unique in the cluster."),
	boolKey("broker.id.generation.enable", "true", ReadOnly, "Whether broker.id=-1 takes the next id of /brokers/seqid."),
	intKey("reserved.broker.max.id", "1000", 0, maxInt, ReadOnly, "Generated ids lie above this."),
	nullable(stringKey("broker.rack", "", ReadOnly, "Rack of this broker, for rack-aware assignment.")),
	nullable(stringKey("zookeeper.connect", "", ReadOnly, "host:port,host:port/chroot of the ZooKeeper ensemble.")),
	intKey("zookeeper.session.timeout.ms", "18000", 1, maxInt, ReadOnly, "ZooKeeper session timeout, in milliseconds: the floor of failover time for a paused broker."),
	nullable(intKey("zookeeper.connection.timeout.ms", "", 1, maxInt, ReadOnly, "How long to wait for the first ZooKeeper connection; the session timeout when unset.")),
	intKey("zookeeper.max.in.flight.requests", "10", 1, maxInt, ReadOnly, "Accepted; requests are pipelined without a fixed width."),
	boolKey("zookeeper.set.acl", "false", ReadOnly, "Only false is possible."),
	stringKey("inter.broker.protocol.version", "3.9-IV0", ReadOnly, "Accepted; brokers speak the protocol of 3.9."),
}

var networkKeys = []Key{
	listKey("listeners", "PLAINTEXT://:9092", PerBroker, "NAME://host:port list on which this broker listens; an empty host is every interface."),
	nullable(listKey("advertised.listeners", "", PerBroker, "NAME://host:port list that clients and brokers are told; listeners when unset.")),
	listKey("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL", PerBroker, "NAME:PROTOCOL list."),
	nullable(stringKey("inter.broker.listener.name", "", ReadOnly, "Listener that brokers use among themselves.")),
	nullable(stringKey("control.plane.listener.name", "", ReadOnly, "Listener of the controller's requests; the inter-broker listener when unset.")),
	stringKey("security.inter.broker.protocol", "PLAINTEXT", ReadOnly, "Protocol among brokers when inter.broker.listener.name is unset.", "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
	intKey("socket.request.max.bytes", "104857600", 1, maxInt, ReadOnly, "Largest request, in bytes."),
	intKey("socket.send.buffer.bytes", "-1", -1, maxInt, ReadOnly, "SO_SNDBUF; -1 leaves it to the system, which lets it grow with what a consumer takes."),
	intKey("socket.receive.buffer.bytes", "102400", -1, maxInt, ReadOnly, "SO_RCVBUF; -1, or the default, leaves it to the system."),
	intKey("socket.listen.backlog.size", "50", 1, maxInt, ReadOnly, "Accepted; the system's limit is used."),
	intKey("max.connections", "2147483647", 0, maxInt, ClusterWide, "Most connections at once."),
	intKey("max.connections.per.ip", "2147483647", 0, maxInt, ClusterWide, "Most connections at once from one address."),
	longKey("connections.max.idle.ms", "600000", 1, maxLong, ReadOnly, "A connection without requests for this long is closed."),
	intKey("num.network.threads", "3", 1, maxInt, ClusterWide, "Accepted; each connection has its own goroutine."),
	intKey("num.io.threads", "8", 1, maxInt, ClusterWide, "Accepted; each connection has its own goroutine."),
	intKey("background.threads", "10", 1, maxInt, ClusterWide, "Accepted; background work has its own goroutines."),
	intKey("queued.max.requests", "500", 1, maxInt, ReadOnly, "Accepted; a connection has a bounded queue of its own."),
	longKey("queued.max.request.bytes", "-1", -1, maxLong, ReadOnly, "Most memory of requests being read or served together, in bytes; a connection that needs more is closed. -1: 1 GiB."),
	intKey("request.timeout.ms", "30000", 1, maxInt, ReadOnly, "Time-out of requests among brokers, in milliseconds."),
	intKey("max.request.partition.size.limit", "2000", 1, maxInt, ReadOnly, "Most partitions in one answer of DescribeTopicPartitions."),
}

var logKeys = []Key{
	stringKey("log.dir", "/tmp/kafka-logs", ReadOnly, "Data directory when log.dirs is unset."),
	nullable(listKey("log.dirs", "", ReadOnly, "Data directories.")),
	intKey("log.segment.bytes", "1073741824", 14, maxInt, ClusterWide, "Default of segment.bytes."),
	nullable(longKey("log.roll.ms", "", 1, maxLong, ClusterWide, "Default of segment.ms; log.roll.hours when unset.")),
	intKey("log.roll.hours", "168", 1, maxInt, ReadOnly, "Default of segment.ms, in hours."),
	nullable(longKey("log.roll.jitter.ms", "", 0, maxLong, ClusterWide, "Default of segment.jitter.ms; log.roll.jitter.hours when unset.")),
	intKey("log.roll.jitter.hours", "0", 0, maxInt, ReadOnly, "Default of segment.jitter.ms, in hours."),
	nullable(longKey("log.retention.ms", "", -1, maxLong, ClusterWide, "Default of retention.ms; log.retention.minutes when unset.")),
	nullable(intKey("log.retention.minutes", "", -1, maxInt, ReadOnly, "Default of retention.ms, in minutes; log.retention.hours when unset.")),
	intKey("log.retention.hours", "168", -1, maxInt, ReadOnly, "Default of retention.ms, in hours."),
	longKey("log.retention.bytes", "-1", -1, maxLong, ClusterWide, "Default of retention.bytes."),
	longKey("log.retention.check.interval.ms", "300000", 1, maxLong, ReadOnly, "How often logs to which nothing was appended are looked at for records that are too old, in milliseconds; the others are looked at every two seconds."),
	listKey("log.cleanup.policy", "delete", ClusterWide, "Default of cleanup.policy.", "compact", "delete"),
	intKey("log.index.size.max.bytes", "10485760", 4, maxInt, ClusterWide, "Default of segment.index.bytes."),
	intKey("log.index.interval.bytes", "4096", 0, maxInt, ClusterWide, "Default of index.interval.bytes."),
	longKey("log.flush.interval.messages", "9223372036854775807", 1, maxLong, ClusterWide, "Default of flush.messages."),
	nullable(longKey("log.flush.interval.ms", "", 0, maxLong, ClusterWide, "Default of flush.ms; log.flush.scheduler.interval.ms when unset.")),
	longKey("log.flush.scheduler.interval.ms", "9223372036854775807", 0, maxLong, ReadOnly, "Default of flush.ms when log.flush.interval.ms is unset; logs are looked at every two seconds."),
	intKey("log.flush.offset.checkpoint.interval.ms", "60000", 0, maxInt, ReadOnly, "Accepted; recovery points are written when they change."),
	intKey("log.flush.start.offset.checkpoint.interval.ms", "60000", 0, maxInt, ReadOnly, "Accepted; log start offsets are written when they change."),
	longKey("log.segment.delete.delay.ms", "60000", 0, maxLong, ClusterWide, "Default of file.delete.delay.ms."),
	boolKey("log.preallocate", "false", ClusterWide, "Default of preallocate."),
	stringKey("log.message.format.version", "3.0-IV1", ReadOnly, "Deprecated and without effect since 3.0."),
	stringKey("log.message.timestamp.type", "CreateTime", ClusterWide, "Default of message.timestamp.type.", "CreateTime", "LogAppendTime"),
	longKey("log.message.timestamp.difference.max.ms", "9223372036854775807", 0, maxLong, ClusterWide, "Deprecated default of message.timestamp.difference.max.ms."),
	longKey("log.message.timestamp.before.max.ms", "9223372036854775807", 0, maxLong, ClusterWide, "Default of message.timestamp.before.max.ms."),
	longKey("log.message.timestamp.after.max.ms", "9223372036854775807", 0, maxLong, ClusterWide, "Default of message.timestamp.after.max.ms."),
	boolKey("log.message.downconversion.enable", "true", ClusterWide, "Default of message.downconversion.enable."),
	intKey("message.max.bytes", "1048588", 0, maxInt, ClusterWide, "Default of max.message.bytes."),
	stringKey("compression.type", "producer", ClusterWide, "Default of compression.type.", "uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
	intKey("compression.gzip.level", "-1", -1, 9, ClusterWide, "Default of compression.gzip.level."),
	intKey("compression.lz4.level", "9", 1, 17, ClusterWide, "Default of compression.lz4.level."),
	intKey("compression.zstd.level", "3", -131072, 22, ClusterWide, "Default of compression.zstd.level."),
	boolKey("log.cleaner.enable", "true", ReadOnly, "Accepted; compacted topics keep every record for now."),
	intKey("log.cleaner.threads", "1", 0, maxInt, ClusterWide, "Accepted; compacted topics keep every record for now."),
	longKey("log.cleaner.backoff.ms", "15000", 0, maxLong, ClusterWide, "Accepted; compacted topics keep every record for now."),
	longKey("log.cleaner.delete.retention.ms", "86400000", 0, maxLong, ClusterWide, "Default of delete.retention.ms."),
	longKey("log.cleaner.min.compaction.lag.ms", "0", 0, maxLong, ClusterWide, "Default of min.compaction.lag.ms."),
	longKey("log.cleaner.max.compaction.lag.ms", "9223372036854775807", 1, maxLong, ClusterWide, "Default of max.compaction.lag.ms."),
	doubleKey("log.cleaner.min.cleanable.ratio", "0.5", 0, 1, ClusterWide, "Default of min.cleanable.dirty.ratio."),
	longKey("log.cleaner.dedupe.buffer.size", "134217728", 1, maxLong, ClusterWide, "Accepted; compacted topics keep every record for now."),
	longKey("log.local.retention.bytes", "-2", -2, maxLong, ReadOnly, "Default of local.retention.bytes."),
	longKey("log.local.retention.ms", "-2", -2, maxLong, ReadOnly, "Default of local.retention.ms."),
	intKey("num.recovery.threads.per.data.dir", "1", 1, maxInt, ClusterWide, "Logs recovered at once per data directory."),
	intKey("producer.id.expiration.ms", "86400000", 1, maxInt, ClusterWide, "How long an idle producer's sequence numbers are remembered, in milliseconds."),
}

var replicationKeys = []Key{
	intKey("num.partitions", "1", 1, maxInt, ReadOnly, "Partitions of a topic created without a number."),
	intKey("default.replication.factor", "1", 1, 32767, ReadOnly, "Replicas of a topic created without a number."),
	intKey("min.insync.replicas", "1", 1, maxInt, ClusterWide, "Default of min.insync.replicas."),
	boolKey("unclean.leader.election.enable", "false", ClusterWide, "Default of unclean.leader.election.enable."),
	boolKey("auto.create.topics.enable", "true", ReadOnly, "Whether Metadata and FindCoordinator create a topic that does not exist."),
	boolKey("delete.topic.enable", "true", ReadOnly, "Whether topics can be deleted."),
	longKey("replica.lag.time.max.ms", "30000", 1, maxLong, ReadOnly, "A follower that did not catch up for this long leaves the in-sync set, in milliseconds."),
	intKey("num.replica.fetchers", "1", 1, maxInt, ClusterWide, "Fewest fetch streams to each leader; more are opened when they help."),
	intKey("replica.fetch.max.bytes", "1048576", 0, maxInt, ReadOnly, "Bytes that a follower asks for per partition."),
	intKey("replica.fetch.response.max.bytes", "10485760", 0, maxInt, ReadOnly, "Bytes that a follower asks for per request."),
	intKey("replica.fetch.wait.max.ms", "500", 0, maxInt, ReadOnly, "How long a leader may hold a follower's fetch, in milliseconds; three times as long when there was no news for a while."),
	intKey("replica.fetch.min.bytes", "1", 0, maxInt, ReadOnly, "Bytes for which a leader holds a follower's fetch."),
	intKey("replica.fetch.backoff.ms", "1000", 0, maxInt, ReadOnly, "Pause of a fetch stream after an error, in milliseconds."),
	intKey("replica.socket.timeout.ms", "30000", 1, maxInt, ReadOnly, "Time-out of a follower's requests, in milliseconds."),
	intKey("replica.socket.receive.buffer.bytes", "65536", -1, maxInt, ReadOnly, "Accepted; left to the system."),
	longKey("replica.high.watermark.checkpoint.interval.ms", "5000", 1, maxLong, ReadOnly, "How often high watermarks are written, in milliseconds."),
	longKey("leader.replication.throttled.rate", "9223372036854775807", 0, maxLong, ClusterWide, "Bytes per second that followers out of sync get of the replicas in leader.replication.throttled.replicas."),
	longKey("follower.replication.throttled.rate", "9223372036854775807", 0, maxLong, ClusterWide, "Bytes per second that followers out of sync ask for of the replicas in follower.replication.throttled.replicas."),
	longKey("replica.alter.log.dirs.io.max.bytes.per.second", "9223372036854775807", 0, maxLong, ClusterWide, "Bytes per second that are copied when replicas move between log directories."),
	nullable(stringKey("replica.selector.class", "", ReadOnly, "Only the default (consumers read from the leader) is possible.")),
	intKey("fetch.max.bytes", "57671680", 1024, maxInt, ReadOnly, "Most bytes in one answer to a fetch."),
	intKey("max.incremental.fetch.session.cache.slots", "1000", 0, maxInt, ReadOnly, "Fetch sessions kept at once."),
	intKey("fetch.purgatory.purge.interval.requests", "1000", 0, maxInt, ReadOnly, "Accepted; waiting fetches are removed at once."),
	intKey("producer.purgatory.purge.interval.requests", "1000", 0, maxInt, ReadOnly, "Accepted; waiting produces are removed at once."),
	intKey("delete.records.purgatory.purge.interval.requests", "1", 0, maxInt, ReadOnly, "Accepted."),
}

var coordinationKeys = []Key{
	intKey("controller.socket.timeout.ms", "30000", 1, maxInt, ReadOnly, "Time-out of the controller's requests, in milliseconds."),
	boolKey("controlled.shutdown.enable", "true", ReadOnly, "Whether leadership is handed over before the broker stops."),
	intKey("controlled.shutdown.max.retries", "3", 1, maxInt, ReadOnly, "Attempts of a controlled shutdown."),
	longKey("controlled.shutdown.retry.backoff.ms", "5000", 1, maxLong, ReadOnly, "Pause between two attempts, in milliseconds."),
	boolKey("auto.leader.rebalance.enable", "true", ReadOnly, "Whether the controller moves leaders back to preferred replicas."),
	intKey("leader.imbalance.per.broker.percentage", "10", 0, maxInt, ReadOnly, "Share of non-preferred leaders from which a broker is rebalanced, in percent."),
	longKey("leader.imbalance.check.interval.seconds", "300", 1, maxLong, ReadOnly, "How often the share is looked at, in seconds."),
	intKey("offsets.topic.num.partitions", "50", 1, maxInt, ReadOnly, "Partitions of __consumer_offsets."),
	intKey("offsets.topic.replication.factor", "3", 1, 32767, ReadOnly, "Replicas of __consumer_offsets; fewer when fewer brokers are alive at its creation is refused."),
	intKey("offsets.topic.segment.bytes", "104857600", 1, maxInt, ReadOnly, "segment.bytes of __consumer_offsets."),
	intKey("offsets.topic.compression.codec", "0", 0, 4, ReadOnly, "Accepted; offset batches are not compressed."),
	intKey("offsets.load.buffer.size", "5242880", 1, maxInt, ReadOnly, "Bytes read at once when a group partition is loaded."),
	intKey("offsets.retention.minutes", "10080", 1, maxInt, ReadOnly, "How long offsets of an empty group are kept, in minutes."),
	longKey("offsets.retention.check.interval.ms", "600000", 1, maxLong, ReadOnly, "How often old offsets are looked for, in milliseconds."),
	intKey("offsets.commit.timeout.ms", "5000", 1, maxInt, ReadOnly, "How long a commit waits for its replicas, in milliseconds."),
	intKey("offsets.commit.required.acks", "-1", -1, -1, ReadOnly, "Accepted; commits wait for the whole in-sync set."),
	intKey("offset.metadata.max.bytes", "4096", 0, maxInt, ReadOnly, "Largest metadata of a committed offset, in bytes."),
	intKey("group.min.session.timeout.ms", "6000", 1, maxInt, ReadOnly, "Smallest session time-out of a member, in milliseconds."),
	intKey("group.max.session.timeout.ms", "1800000", 1, maxInt, ReadOnly, "Largest session time-out of a member, in milliseconds."),
	intKey("group.initial.rebalance.delay.ms", "3000", 0, maxInt, ReadOnly, "How long a new group waits for more members, in milliseconds."),
	intKey("group.max.size", "2147483647", 1, maxInt, ReadOnly, "Most members of a group."),
	intKey("transaction.state.log.num.partitions", "50", 1, maxInt, ReadOnly, "Partitions of __transaction_state."),
	intKey("transaction.state.log.replication.factor", "3", 1, 32767, ReadOnly, "Replicas of __transaction_state."),
	intKey("transaction.state.log.min.isr", "2", 1, maxInt, ReadOnly, "min.insync.replicas of __transaction_state."),
	intKey("transaction.state.log.segment.bytes", "104857600", 1, maxInt, ReadOnly, "segment.bytes of __transaction_state."),
	intKey("transaction.max.timeout.ms", "900000", 1, maxInt, ReadOnly, "Largest time-out of a transaction, in milliseconds."),
	intKey("transactional.id.expiration.ms", "604800000", 1, maxInt, ReadOnly, "How long an idle transactional id is kept, in milliseconds."),
	nullable(stringKey("create.topic.policy.class.name", "", ReadOnly, "Only unset is possible.")),
	nullable(stringKey("alter.config.policy.class.name", "", ReadOnly, "Only unset is possible.")),
	nullable(stringKey("authorizer.class.name", "", ReadOnly, "Only unset is possible.")),
}

var ownKeys = []Key{
	nullable(stringKey("metrics.listener", "", ReadOnly, "HOST:PORT that serves /metrics, /healthz and /readyz; unset: none.")),
	longKey("leader.transition.timeout.ms", "10000", 100, maxLong, ReadOnly, "Deadline of a leadership transition before an alert is raised, in milliseconds."),
	boolKey("debug.pprof", "false", ReadOnly, "Whether metrics.listener also serves profiles."),
	stringKey("external.view", "off", ReadOnly, "Path for client routing that is written after the new leader confirmed; only off is possible yet.", "off"),
}

// withoutEffect are keys of Kafka that are known and set nothing here; setting one draws a warning. A final dot
// stands for every key with that prefix.
var withoutEffect = []string{
	"ssl.", "sasl.", "listener.name.", "zookeeper.ssl.", "zookeeper.clientCnxnSocket", "password.encoder.",
	"delegation.token.", "quota.", "replication.quota.", "controller.quota.", "alter.log.dirs.replication.quota.",
	"metric.reporters", "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
	"auto.include.jmx.reporter", "kafka.metrics.", "connection.failed.authentication.delay.ms",
	"connections.max.reauth.ms", "max.connection.creation.rate", "max.connections.per.ip.overrides",
	"early.start.listeners", "principal.builder.class", "security.providers", "super.users",
	"allow.everyone.if.no.acl.found", "log.cleaner.io.", "remote.", "log.dir.failure.timeout.ms",
	"replication.", "client.quota.callback.class", "group.consumer.", "group.coordinator.",
	"transaction.", "telemetry.max.bytes", "eligible.leader.replicas.enable", "unstable.",
	"offsets.topic.", "metadata.log.", "metadata.max.", "broker.heartbeat.", "broker.session.", "initial.broker.",
	"zookeeper.sync.time.ms", "leader.imbalance.", "log.initial.task.delay.ms", "log.preallocate",
	"producer.id.", "zookeeper.metadata.", "controller.quorum.", "controller.listener.names", "process.roles", "node.id",
}

// BrokerKeys returns the table of server.properties. It must not be changed.
func BrokerKeys() []Key { return brokerKeys }

// BrokerKey finds a key of server.properties.
func BrokerKey(name string) (Key, bool) {
	if k, ok := brokerIndex[name]; ok {
		return *k, true
	}
	return Key{}, false
}

func hasNoEffect(name string) bool {
	for _, k := range withoutEffect {
		if name == k || (strings.HasSuffix(k, ".") && strings.HasPrefix(name, k)) {
			return true
		}
	}
	return false
}
