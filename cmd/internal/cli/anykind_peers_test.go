//go:build peers

package cli_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/cli/exit"
)

// newAnyPeer is kctl with the brokers of a running cluster and nothing else, and what kind of cluster it is: ours,
// zookeeper or kraft (KCTL_PEER_KIND).
func newAnyPeer(t *testing.T) (*kctl, string) {
	t.Helper()
	k := newKctl(t)
	kind := os.Getenv("KCTL_PEER_KIND")
	if kind == "" {
		kind = "zookeeper"
	}
	if k.env["KCTL_BOOTSTRAP_SERVER"] = os.Getenv("KCTL_PEER_BOOTSTRAP"); k.env["KCTL_BOOTSTRAP_SERVER"] == "" {
		t.Fatal("KCTL_PEER_BOOTSTRAP is not set")
	}
	k.env["KCTL_TIMEOUT"] = "30s"
	return k, kind
}

// anyTopic creates a topic of one replica that goes away with the test.
func anyTopic(t *testing.T, k *kctl) string {
	t.Helper()
	name := "kctl-any-" + strings.ReplaceAll(time.Now().Format("150405.000"), ".", "-")
	k.run("topics", "create", name, "--partitions", "3", "--replication-factor", "1").want(exit.OK, "", "created topic")
	t.Cleanup(func() {
		if k.run("topics", "delete", name, "--yes"); k.code != 0 {
			t.Errorf("delete %s: exit %d: %s", name, k.code, k.err)
		}
	})
	return name
}

// ok demands that kctl ended well and said out on stdout, whatever else it said.
func (k *kctl) ok(out string, args ...string) {
	k.t.Helper()
	if k.run(args...); k.code != 0 || !strings.Contains(k.out.String(), out) {
		k.t.Errorf("kctl %s: exit %d, stdout wants %q\n%s%s", strings.Join(args, " "), k.code, out, k.out, k.err)
	}
}

// TestAnyPeerReads: every verb that reads works with the protocol alone, on every kind of cluster.
func TestAnyPeerReads(t *testing.T) {
	k, kind := newAnyPeer(t)
	topic := anyTopic(t, k)
	k.in = "a\nb\n"
	k.run("produce", topic, "--partition", "1").want(exit.OK, "", "2 records")
	k.run("consume", topic, "--group", topic, "--from-beginning", "-n", "2").want(exit.OK, "a\nb\n", "")
	for _, tc := range []struct {
		args string
		out  string
	}{
		{"cluster describe", "CLUSTER-ID:"},
		{"cluster describe -o json", `"kind": "Cluster"`},
		{"brokers list", "127.0.0.1:"},
		{"controller describe -o json", `"kind": "Controller"`},
		{"topics list --topic " + topic, topic},
		{"topics describe " + topic, "PARTITION"},
		{"partitions list " + topic, topic},
		{"partitions list --under-replicated --topic " + topic, ""},
		{"lag replicas " + topic, "leader"},
		{"transitions --older-than 1s", ""},
		{"configs get topic/" + topic, ""},
		{"groups list", topic},
		{"groups describe " + topic, topic},
		{"lag groups " + topic, topic},
		{"log-dirs describe", ""},
		{"elect preferred " + topic + " --dry-run", "not-needed"},
	} {
		k.ok(tc.out, strings.Fields(tc.args)...)
	}
	if kind == "ours" {
		k.run("transactions", "list").want(exit.Failed, "", "serve no transactions")
	} else {
		k.ok("TRANSACTIONAL-ID", "transactions", "list")
	}
}

// TestAnyPeerChanges: changes that are safe work with the protocol alone, and are undone.
func TestAnyPeerChanges(t *testing.T) {
	k, _ := newAnyPeer(t)
	topic := anyTopic(t, k)
	k.run("configs", "set", "topic/"+topic, "retention.ms=3600000", "--yes").want(exit.OK, "done", "will change")
	k.run("configs", "get", "topic/"+topic, "-o", "json").want(exit.OK, "3600000", "")
	k.run("configs", "delete", "topic/"+topic, "retention.ms", "--yes").want(exit.OK, "done", "will change")
	k.in = "x\ny\nz\n"
	k.run("produce", topic, "--partition", "0").want(exit.OK, "", "3 records")
	k.run("consume", topic, "--group", topic, "--from-beginning", "-n", "3").want(exit.OK, "x\ny\nz\n", "")
	k.until(exit.OK, "groups", "reset-offsets", topic, "--topic", topic, "--to-earliest", "--yes")
	k.run("groups", "delete", topic, "--yes").want(exit.OK, topic, "deleted group")
}

// TestAnyPeerWithoutZooKeeper: what needs ZooKeeper says so, on clusters that have none as well.
func TestAnyPeerWithoutZooKeeper(t *testing.T) {
	k, _ := newAnyPeer(t)
	k.run("zk", "ls", "/").want(exit.Usage, "", "this needs ZooKeeper")
	k.run("controller", "move", "--yes")
	if k.code == int(exit.OK) {
		t.Errorf("controller move without ZooKeeper: %s%s", k.out, k.err)
	}
}
