// Package znode knows Apache Kafka's ZooKeeper layout: the paths, and a codec for the value of every node.
//
// Encoders write the bytes that Kafka 3.9 writes (same key order, compact UTF-8); where Kafka's order is that
// of a Scala map without meaning (partition numbers), ours is numeric. Decoders read every version that
// Kafka has written since 0.8, never panic, and name the path and the field of what they refuse. Fields that
// a decoder does not know are kept in Unknown, in their order, and written back by the encoder, so that a
// read-modify-write by us loses nothing that another tool or a newer Kafka put there.
//
// Pure: no I/O, no clock. All functions are safe for concurrent use; the values are plain data.
//
// Times are milliseconds since the Unix epoch. Paths are absolute within the client's chroot.
package znode
