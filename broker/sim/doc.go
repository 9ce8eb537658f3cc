// Package sim runs a whole cluster in one goroutine from one seed: several brokers with the product's own
// controller (broker/controller), partitions (broker/replica), log effects (broker/replica/logexec) and
// storage (broker/storage on broker/vfs.Mem), one ZooKeeper (zkutil/zkserver/ztree), a network and clients.
//
// Only the scheduling differs from the broker: an event heap in place of goroutines. Faults are drawn from
// the seed: messages lost, delayed, doubled and reordered; brokers cut off from each other or from
// ZooKeeper; processes killed (the page cache survives) and machines crashed (unsynced data is lost, torn
// at any byte); sessions expiring; ZooKeeper requests and replies lost; disks full; log ends cut.
//
// After every event the invariants of checks.go hold, or the run stops with the seed; the same seed replays
// exactly, with one line per event when Options.Trace is set. At the end everything is healed and the cluster
// must come to rest: every partition led, every replica in sync, no alert left, every acknowledged record
// readable at its offset from every replica.
//
// A Sim is not safe for concurrent use; runs are independent of each other.
package sim
