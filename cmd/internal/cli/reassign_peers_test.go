//go:build peers

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kctl/cmd/internal/cli/exit"
)

// kafkaTool runs ReassignPartitionsCommand of the cluster's own release. KCTL_PEER_TOOL is the script that runs Apache
// Kafka's classes: SCRIPT tool CLASS ARGS.
func kafkaTool(t *testing.T, k *kctl, args ...string) string {
	t.Helper()
	script := os.Getenv("KCTL_PEER_TOOL")
	if script == "" {
		t.Fatal("KCTL_PEER_TOOL is not set")
	}
	args = append([]string{"tool", "org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--bootstrap-server", k.env["KCTL_BOOTSTRAP_SERVER"]}, args...)
	out, err := exec.CommandContext(t.Context(), script, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// lineAfter is the line of JSON that follows a heading in the output of Kafka's tool.
func lineAfter(t *testing.T, out, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(out, heading+"\n")
	if !ok {
		t.Fatalf("no %q in\n%s", heading, out)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPeerReassign: a plan of ours is executed with a throttle and verified by Kafka's tool, its plan is executed by
// ours; the files are the same to the byte, and no throttle is left.
func TestPeerReassign(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "1:2,2:1")
	k.run("reassign", "generate", "--drain", "2", "--topic", topic).want(exit.OK, `"replicas":[1,3]`, "2 partition(s) change")
	plan := writeFile(t, "plan.json", k.out.String())
	k.run("reassign", "execute", plan, "--yes", "--throttle", "50M", "--batch-size", "1", "-o", "json").want(exit.OK, `"state": "done"`, "")
	k.run("reassign", "verify", plan).want(exit.OK, "done", "all 2 partition(s) are as wanted")
	k.run("topics", "describe", topic, "-o", "json").want(exit.OK, topic, "")
	if strings.Contains(k.out.String(), "throttled") {
		t.Errorf("a throttle is left:\n%s", k.out)
	}
	said := kafkaTool(t, k, "--verify", "--reassignment-json-file", plan, "--preserve-throttles")
	for _, p := range []string{"-0 is completed", "-1 is completed"} {
		if !strings.Contains(said, topic+p) {
			t.Errorf("Kafka's tool does not see %s%s:\n%s", topic, p, said)
		}
	}
	topics, err := json.Marshal(map[string]any{"version": 1, "topics": []any{map[string]string{"topic": topic}}})
	if err != nil {
		t.Fatal(err)
	}
	out := kafkaTool(t, k, "--generate", "--topics-to-move-json-file", writeFile(t, "topics.json", string(topics)), "--broker-list", "1,2,3")
	current := lineAfter(t, out, "Current partition replica assignment")
	if want := strings.TrimSpace(readFile(t, plan)); current != want {
		t.Errorf("Kafka's tool writes\n%s, ours was\n%s", current, want)
	}
	theirs := writeFile(t, "theirs.json", lineAfter(t, out, "Proposed partition reassignment configuration"))
	k.run("reassign", "execute", theirs, "--yes").want(exit.OK, "done", "will reassign")
	k.run("reassign", "verify", theirs).want(exit.OK, "done", "all 2 partition(s) are as wanted")
	k.run("reassign", "rollback", plan, "--yes").want(exit.OK, "done", "will reassign")
	k.run("partitions", "list", topic, "--no-headers").want(exit.OK, "1,2", "")
	kafkaTool(t, k, "--execute", "--reassignment-json-file", plan, "--throttle", "50000000")
	k.until(exit.OK, "reassign", "verify", plan)
	k.run("reassign", "verify", plan, "--remove-throttles", "--yes").want(exit.OK, "done", "removed")
	k.run("topics", "describe", topic, "-o", "json").want(exit.OK, topic, "")
	if strings.Contains(k.out.String(), "throttled") {
		t.Errorf("a throttle of Kafka's tool is left:\n%s", k.out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestPeerReassignZnode: the old way through ZooKeeper works too, and a request that is there is not replaced.
func TestPeerReassignZnode(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "1:2")
	plan := writeFile(t, "plan.json", `{"version":1,"partitions":[{"topic":"`+topic+`","partition":0,"replicas":[3,1]}]}`)
	k.run("reassign", "execute", plan, "--yes", "--via", "znode").want(exit.OK, "done", "will reassign")
	k.run("partitions", "list", topic, "--no-headers").want(exit.OK, "3,1", "")
}
