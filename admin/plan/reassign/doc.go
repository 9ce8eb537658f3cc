// Package reassign plans the reassignment of partitions: it makes a plan (Make), reads and writes Kafka's
// reassignment JSON (Parse, Encode), checks a plan against the cluster (Check), cuts it into batches (Batches),
// decides what each partition needs next (Judge), and computes replication throttle lists and progress.
//
// Everything here is a pure function of its arguments; package admin does the reading and writing around it.
// Broker ids keep their order everywhere: the first replica is the preferred leader. The JSON is that of
// kafka-reassign-partitions.sh of Apache Kafka 3.9, byte for byte.
package reassign
