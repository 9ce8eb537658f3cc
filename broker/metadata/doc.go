// Package metadata is a broker's cached view of the cluster: live brokers with their endpoints, topics with
// their ids, and each partition's leader, epoch, in-sync set and offline replicas.
//
// The controller feeds it through UpdateMetadata. Readers take an immutable Snapshot behind one atomic pointer,
// so a request sees one consistent state and no lock. Apply copies only the maps and the topics that change.
// What a Metadata answer needs of a topic is built once per topic and set of live brokers and then shared by
// all answers.
//
// Semantics follow Apache Kafka's ZkMetadataCache: a request of an older controller is refused, live brokers
// are replaced as a whole, leader -2 removes a partition, and a leader that is not alive reads as none.
package metadata
