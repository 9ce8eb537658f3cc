// Package replicashell is the replica manager of a broker: it runs the partition state machines of
// broker/replica against the disk, the network and ZooKeeper.
//
// # Parts
//
//   - Manager owns the partitions. Each has one mutex, which guards its state machine and the order of
//     appends; a partition that is idle costs no goroutine and no timer.
//   - Produce appends in the caller's goroutine and parks acks=all requests by the offset they wait for.
//   - Fetch serves consumers and followers, with incremental fetch sessions (KIP-227). A session keeps a queue
//     of the partitions that have something new, fed by appends and by the high watermark, so a fetch costs
//     what has changed and not what is hosted.
//   - Streams replicate from other brokers: several per leader, apart by log directory (V3 point 8).
//   - ISR changes are written to the state znodes in batches, conditionally, and read back when in doubt.
//
// # Locks
//
// Order: Manager.control (the controller's requests), then partition.mu, then the leaves: Manager.mu (the
// partition table), streams.mu and after it stream.mu, the queues of the ISR writer and of the leadership feed,
// and the lock inside a session. Nothing is called back while partition.mu is held; completions run after it is
// released. Under partition.mu there is disk I/O of that partition's log and nothing else that blocks.
//
// It imports broker/replica, broker/replica/logexec, broker/storage, broker/peer, broker/obs, zkutil and
// zkutil/znode. The API handlers (broker/api), the group coordinator and the wiring in broker call it.
package replicashell
