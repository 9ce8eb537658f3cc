// Package zkserver is an embedded single-node server of the ZooKeeper client protocol, in process and durable:
// for laptops, tests and demos. Production uses a real ZooKeeper ensemble; by design this server has no
// replication.
//
// The state is the pure tree of package ztree. One committer goroutine prepares writes in batches, appends
// their transactions to a CRC32C-framed log, syncs once per batch and only then applies and answers them.
// Reads run in the goroutine of their connection on applied state, so they never wait for a disk and never see
// what a crash could take back. Formats, crash cases and limits are in DESIGN.md beside this file.
//
// All exported methods may be called from any goroutine.
package zkserver
