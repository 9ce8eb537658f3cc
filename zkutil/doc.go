// Package zkutil is the product's ZooKeeper client: chroot, contexts, pipelined requests, sessions that
// know when they can no longer be trusted, and a feed of watch events that drops nothing.
//
//	zk, err := zkutil.Connect(ctx, zkutil.Config{Connect: "h1:2181,h2:2181/kafka"})
//	data, stat, err := zkutil.Any(zk).Get(ctx, znode.ControllerPath)
//	stat, err = zkutil.Within(zk, session.Epoch).SetIfVersion(ctx, path, data, stat.Version)
//
// Client is the seam that the shells and the tests stand on; Ops offers one call for each operation over it,
// and settles writes whose answer was lost (ReadBack, SetIfVersion).
//
// The wire client is go-zookeeper/zk with a connection of ours beneath it; docs/decisions/0001-zookeeper-client.md
// says what is closed where. Do (pipeline.go) keeps requests in order and lets them overlap; wireConn (wire.go)
// sees every packet; sessions (session.go) holds the state, the feeds and the clock that presumes a session lost.
//
// zkutil/zkop has the request and response values, zkutil/znode the layout and codecs of Kafka's znodes,
// zkutil/zkserver an embedded single-node server, zkutil/zktest the contract suite that runs against both kinds
// of server.
package zkutil
