// Package groupshell runs the consumer-group coordinator: it keeps a group.Shard for every partition of
// __consumer_offsets that this broker leads, loads it from the log, executes its effects, and offers the
// group requests of Kafka's protocol as blocking calls.
//
// The broker's server calls the handlers (one goroutine per connection, so a JoinGroup may block its
// connection, as in Apache Kafka); the replica manager calls OnLeadership. The package reaches the log,
// the metadata and topic creation through the interfaces of this package.
//
// Concurrency: a shard has one mutex, held for a Step of the core and never across I/O. Effects that wait
// for the log are queued in order and appended by whichever goroutine comes first; while it appends, the
// others' records gather into the next batch. Run owns the only goroutines: one timer loop and the loaders.
// No group and no idle partition costs a goroutine or a runtime timer.
//
// Formats: records in __consumer_offsets are byte for byte those of Apache Kafka 3.9 (OffsetCommitKey v1,
// OffsetCommitValue v3 or v1 with an expiry, GroupMetadataKey v2, GroupMetadataValue v3), so a coordinator of either kind
// can take over from the other.
package groupshell
