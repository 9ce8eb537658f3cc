// Package ztree is the state machine of a ZooKeeper server: the data tree, sessions with their timeouts,
// ephemeral, sequential, container and TTL nodes, access lists, one-shot and persistent watches, and multi.
//
// It is pure: it imports no os, net, sync, context or log, never asks for the time, and the same calls give
// the same results, also in the order of children and of fired watches. The embedded server
// (zkutil/zkserver) runs it behind a socket and a log; the cluster simulation runs the very same tree with
// its own clock.
//
// There are two ways to use it. [Tree.Do], [Tree.OpenSession], [Tree.CloseSession] and [Tree.Expire] check
// and apply at once: for simulations and tools. A durable server splits the step as ZooKeeper does:
// [Tree.Prepare] validates a write against the tree plus the writes prepared before it and yields a [Txn];
// when the Txn is on disk, [Tree.Apply] makes it visible and fires watches. Apply cannot fail, so recovery
// is: restore the snapshot, apply the logged Txns in order.
//
// A Tree is not safe for concurrent use. Reads without a watch do not modify it, so that a server may run
// them under a shared lock.
package ztree
