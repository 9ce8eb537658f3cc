// Package zkutil is the product's ZooKeeper client: chroot, contexts, pipelined requests, sessions that
// know when they can no longer be trusted, and a feed of watch events that drops nothing.
//
// The wire client is go-zookeeper/zk; its traps (no local expiry, silent new sessions, a lossy event
// channel, no chroot) are closed here. zkutil/zkop has the request and response values, zkutil/znode the
// layout and codecs of Kafka's znodes, zkutil/zkserver an embedded single-node server, zkutil/zktest the
// contract suite that runs against both kinds of server.
package zkutil
