//go:build peers

package cli_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/cli/exit"
)

// TestPeersDoctor: on Apache Kafka in ZooKeeper mode every check runs, a throttle and settings of nobody are found and cleaned, and
// nothing is rehearsed there.
func TestPeersDoctor(t *testing.T) {
	k := newKctl(t)
	k.env["KCTL_BOOTSTRAP_SERVER"], k.env["KCTL_ZOOKEEPER"] = os.Getenv("KCTL_PEER_BOOTSTRAP"), os.Getenv("KCTL_PEER_ZOOKEEPER")
	k.env["KCTL_TIMEOUT"] = "60s"
	if k.env["KCTL_BOOTSTRAP_SERVER"] == "" || k.env["KCTL_ZOOKEEPER"] == "" {
		t.Fatal("KCTL_PEER_BOOTSTRAP and KCTL_PEER_ZOOKEEPER name the cluster")
	}
	const topic = "kctl-peers-doctor"
	k.run("topics", "create", topic, "--partitions", "2", "--replication-factor", "3", "--if-not-exists")
	t.Cleanup(func() { k.run("topics", "delete", topic, "--yes") })
	until := func(code exit.Code, want string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for k.run(args...); k.code != int(code) || !strings.Contains(k.out.String(), want); k.run(args...) {
			select {
			case <-ctx.Done():
				t.Fatalf("%v: exit %d\n%s%s", args, k.code, k.out, k.err)
			case <-time.After(500 * time.Millisecond):
			}
		}
	}
	until(exit.OK, "", "cluster", "diff", topic)
	until(exit.OK, "min-isr-one", "doctor", "--severity", "info", "-o", "json", "min-isr-one", "offline-partition", "stale-metadata", "topic-id-mismatch", "isr-stuck", "stray-replica")
	if strings.Contains(k.out.String(), `"check"`) {
		t.Errorf("checks were skipped: %s", k.out)
	}
	k.run("configs", "set", "topic/"+topic, "leader.replication.throttled.replicas=0:1", "--yes")
	until(exit.Problems, topic, "doctor", "throttle-left")
	k.run("leftovers", "clean", "throttle", "--yes").want(exit.OK, "removed", "will remove")
	until(exit.OK, "", "doctor", "throttle-left")
	k.run("lab", "run", "stuck-transition", "--yes").want(exit.Usage, "", "does not carry the mark of kbroker dev")
}
