// Package zktest is the contract that every ZooKeeper server has to keep for this product, as a suite of
// tests over the product's own client: Run takes a server, embedded or real. It is a test helper and is
// imported by tests only.
//
// Proxy stands between a client and a server and makes the network's faults: cut connections, silence, lost
// replies. zktest/realzk launches Apache ZooKeeper from its jars.
package zktest
