//go:build peers

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// changingPeer gives a loaded cluster time: here it matters what becomes of a change, not how soon.
func changingPeer(t *testing.T) *kctl {
	t.Helper()
	k := newPeer(t)
	k.env["KCTL_TIMEOUT"] = "90s"
	return k
}

// TestPeerConfigs changes topics, brokers, the default of all brokers and a logger of Apache Kafka, reads each change
// back, and takes it back from the journal.
func TestPeerConfigs(t *testing.T) {
	k := changingPeer(t)
	topic := peerTopic(t, k, "1:2,2:1")
	res := "topic/" + topic
	k.run("configs", "set", res, "retention.ms=1000", "cleanup.policy=compact", "--yes").want(exit.OK, "done", "will change configuration")
	k.run("configs", "set", res, "--append", "cleanup.policy=delete", "--yes").want(exit.OK, "compact,delete", "will change configuration")
	k.run("configs", "get", res, "--overrides", "-o", "json").want(exit.OK, `"value": "1000"`, "")
	k.run("configs", "get", res, "--source", "zookeeper").want(exit.OK, "compact,delete", "")
	k.run("configs", "set", res, "retention.ms=x", "--dry-run").want(exit.Failed, "", "INVALID_CONFIG")
	k.run("configs", "set", "broker/1", "broker.id=7", "--yes").want(exit.Failed, "", "read-only")
	k.run("configs", "delete", "broker/1", "log.cleaner.threads", "--yes") // what another run may have left
	k.run("configs", "set", "broker/1", "log.cleaner.threads=2", "--yes").want(exit.OK, "done", "will change")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "done", "taking back")
	const rate = "leader.replication.throttled.rate" // brokers in ZooKeeper mode call it read-only once it is set
	t.Cleanup(func() { k.run("configs", "delete", "broker/1", rate, "--yes") })
	k.run("configs", "set", "broker/1", rate+"=5000000", "--yes").want(exit.OK, "done", "will change")
	k.run("configs", "set", "broker/1", rate+"=6000000", "--yes").want(exit.OK, "done", "will change")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "5000000", "taking back")
	k.run("configs", "delete", "broker/1", rate, "--yes").want(exit.OK, "done", "will change")
	k.run("configs", "set", "broker/default", "log.cleaner.threads=2", "--yes").want(exit.OK, "done", "will change")
	k.run("configs", "delete", "broker/default", "log.cleaner.threads", "--yes").want(exit.OK, "done", "will change")
	k.run("configs", "set", "broker/default", "log.cleaner.thread=2", "--yes").want(exit.Usage, "", `did you mean "log.cleaner.threads"?`)
	k.run("configs", "set", "broker-logger/1", "kafka.controller.KafkaController=DEBUG", "--yes").want(exit.OK, "done", "will change")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "done", "taking back")
	k.run("topics", "alter", topic, "--partitions", "4", "--config", "retention.ms=5000", "--yes").want(exit.OK, "partition 3", "records with a key")
	k.run("topics", "describe", topic, "-o", "json").want(exit.OK, `"partitionCount": 4`, "")
	k.run("topics", "alter", topic, "--partitions", "2", "--yes").want(exit.Failed, "", "cannot be removed")
}

// last is the number of the newest entry of the journal.
func (k *kctl) last() string {
	k.t.Helper()
	k.run("history", "--limit", "1", "-o", "name")
	return strings.TrimSpace(k.out.String())
}

func TestPeerQuotas(t *testing.T) {
	k := changingPeer(t)
	t.Cleanup(func() {
		k.run("quotas", "delete", "--user", "kctl-test", "--yes")
		k.run("quotas", "delete", "--user", "kctl-test", "--client-id", "app", "--yes")
	})
	k.run("quotas", "set", "--user", "kctl-test", "producer_byte_rate=1048576", "request_percentage=50.5", "--yes").want(exit.OK, "done", "will change quotas")
	k.run("quotas", "set", "--user", "kctl-test", "--client-id", "app", "producer_byte_rate=2048", "--yes").want(exit.OK, "done", "will change quotas")
	k.run("quotas", "describe", "--user", "kctl-test", "--client-id", "app", "-o", "name").want(exit.OK, "user=kctl-test,client-id=app producer_byte_rate", "")
	k.run("quotas", "list", "--user", "kctl-test", "-o", "json").want(exit.OK, `"value": 50.5`, "")
	k.run("quotas", "delete", "--user", "kctl-test", "producer_byte_rate", "--yes").want(exit.OK, "delete", "will change quotas")
	undo := k.last()
	k.run("history", "undo", undo, "--yes").want(exit.OK, "1048576", "taking back")
	k.run("history", "undo", undo, "--yes").want(exit.Failed, "", "taken back already")
}

func TestPeerUsers(t *testing.T) {
	k := changingPeer(t)
	file := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(file, []byte("topsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("users", "set", "kctl-test", "--password-file", file, "--iterations", "5000", "--yes").want(exit.OK, "SCRAM-SHA-512", "will set the password")
	k.run("users", "describe", "kctl-test", "-o", "json").want(exit.OK, `"iterations": 5000`, "")
	k.run("users", "delete", "kctl-test", "--mechanism", "SCRAM-SHA-256", "--yes").want(exit.OK, "done", "will delete")
	k.run("users", "list", "--no-headers").want(exit.OK, "kctl-test  SCRAM-SHA-512  5000", "")
	k.run("users", "delete", "kctl-test", "--yes").want(exit.OK, "done", "will delete")
	k.run("users", "describe", "kctl-test").want(exit.Failed, "", "no SCRAM credentials")
	journal, err := os.ReadFile(filepath.Join(k.env["HOME"], ".local", "state", "kctl", "history.jsonl"))
	if err != nil || strings.Contains(string(journal), "topsecret") {
		t.Errorf("the journal holds the password, or is not there: %v", err)
	}
}

// TestPeerACLs needs an authorizer; without one the error has to say so.
func TestPeerACLs(t *testing.T) {
	k := changingPeer(t)
	if k.run("acls", "list"); k.code != 0 {
		k.want(exit.Failed, "", "no authorizer is configured")
		return
	}
	t.Cleanup(func() { k.run("acls", "delete", "--principal", "User:kctl-test", "--yes") })
	k.run("acls", "create", "--allow-principal", "User:kctl-test", "--producer", "--topic", "kctl-test", "--pattern", "prefixed", "--yes").want(exit.OK, "Write", "will change ACLs")
	k.run("acls", "list", "--topic", "kctl-test-1", "--pattern", "match", "--principal", "User:kctl-test").want(exit.OK, "Prefixed", "")
	k.run("acls", "list", "--principal", "User:kctl-test", "--export").want(exit.OK, "operations: [Create, Describe, Write]", "")
	file := filepath.Join(t.TempDir(), "acls.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(k.out.String(), "Create, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("acls", "create", "--from-file", file, "--prune", "--yes").want(exit.OK, "delete  Topic     kctl-test  Prefixed  User:kctl-test  Allow       Create", "will change ACLs")
	k.run("acls", "create", "--from-file", file, "--prune").want(exit.OK, "none", "nothing to change")
	k.run("acls", "delete", "--principal", "User:kctl-test", "--dry-run").want(exit.OK, "delete", "dry run")
	k.run("acls", "delete", "--principal", "User:kctl-test", "--operation", "Write", "--yes").want(exit.OK, "done", "will change ACLs")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "Write", "taking back")
}
