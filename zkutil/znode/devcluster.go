package znode

// DevClusterPath is ours: kbroker dev makes it to mark a cluster as one to play with, and nothing else does. Only on a cluster
// that has it, and whose brokers all listen on loopback addresses, does kctl lab rehearse a failure. Its children are the
// rehearsals under way, with what undoes each.
const DevClusterPath = "/kbroker_dev_cluster"

// EncodeDevCluster writes version 1.
func EncodeDevCluster() []byte {
	e := newEncoder(32)
	e.int("version", 1)
	return e.end(nil)
}
