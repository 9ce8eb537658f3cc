//go:build peers

package cli_test

import (
	"strings"
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// TestPeerElectLeader: a chosen leader on Apache Kafka, with and without -z, the assignment as it was, undone by
// what the journal says; and taken up again where a run was killed after the replica list had been ordered.
func TestPeerElectLeader(t *testing.T) {
	k := newPeer(t)
	k.env["KCTL_TIMEOUT"] = "60s" // machines that run the peers are busy
	topic := peerTopic(t, k, "1:2:3")
	k.untilOut("1,2,3", "partitions", "list", topic, "--no-headers")
	part := topic + ":0"
	k.until(exit.OK, "elect", "leader", part, "3", "--yes", "-o", "json").want(exit.OK, `"confirmed": true`, "")
	k.until(exit.OK, "partitions", "list", part, "-o", "json").want(exit.OK, `"leader": 3`, "")
	k.run("partitions", "list", part, "--no-headers").want(exit.OK, "1,2,3", "")
	k.run("elect", "leader", part, "2", "-z", "", "--yes", "--expect-leader", "3").want(exit.OK, "leads", "3. order the replicas 1,2,3")
	k.run("elect", "leader", part, "2", "--yes").want(exit.OK, "already", "leads already")
	k.run("history", "-o", "json").want(exit.OK, `kctl elect leader `+part+` 3 --expect-leader 2 --yes`, "")
	k.run("elect", "leader", part, "3", "--expect-leader", "1", "--yes").want(exit.Failed, "", "nothing was changed")

	// As after a kill -9 behind the first step: the list is ordered, the journal has the order that is owed.
	reorder(t, k, topic, []int32{3, 1, 2})
	k.untilOut("3,1,2", "partitions", "list", part, "--no-headers")
	k.run("elect", "leader", part, "3", "--order", "1,2,3", "--yes").want(exit.OK, "leads", "1. elect broker 3")
	k.run("partitions", "list", part, "--no-headers").want(exit.OK, "1,2,3", "")
	k.run("elect", "leader", part, "9", "--yes").want(exit.Usage, "", "not a replica")
}

// TestPeerElectZnode: preferred leaders through /admin/preferred_replica_election, without a broker's address.
func TestPeerElectZnode(t *testing.T) {
	k := newPeer(t)
	k.env["KCTL_TIMEOUT"] = "60s" // machines that run the peers are busy
	topic := peerTopic(t, k, "1:2:3")
	k.until(exit.OK, "elect", "leader", topic+":0", "2", "--yes")
	k.until(exit.OK, "elect", "preferred", topic, "--via", "zookeeper", "-b", "", "--yes", "-o", "json").want(exit.OK, `"result": "done"`, "")
	k.run("zk", "ls", "/admin")
	if strings.Contains(k.out.String(), "preferred_replica_election") {
		t.Errorf("the znode is still there:\n%s", k.out)
	}
	k.untilOut(`"items": []`, "elect", "preferred", topic, "--imbalanced-only", "--dry-run", "-o", "json") // the broker that is asked may be behind
	k.run("elect", "preferred", topic, "--imbalanced-only", "--dry-run").want(exit.OK, "TOPIC", "nothing to change")
	k.run("elect", "unclean", "--all", "--dry-run").want(exit.OK, "LOSES", "0 of")
}
