//go:build peers

package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/cmd/internal/cli/exit"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// newPeer is kctl with the addresses of an Apache Kafka cluster of three brokers in ZooKeeper mode.
func newPeer(t *testing.T) *kctl {
	t.Helper()
	k := newKctl(t)
	for from, to := range map[string]string{"KCTL_PEER_BOOTSTRAP": "KCTL_BOOTSTRAP_SERVER", "KCTL_PEER_ZOOKEEPER": "KCTL_ZOOKEEPER"} {
		if k.env[to] = os.Getenv(from); k.env[to] == "" {
			t.Fatalf("%s is not set", from)
		}
	}
	return k
}

// peerTopic creates a topic that goes away with the test.
func peerTopic(t *testing.T, k *kctl, assignment string) string {
	t.Helper()
	name := "kctl-" + strings.ReplaceAll(time.Now().Format("150405.000"), ".", "-")
	k.run("topics", "create", name, "--replica-assignment", assignment).want(exit.OK, "", "created topic")
	t.Cleanup(func() {
		if k.run("topics", "delete", name, "--yes"); k.code != 0 {
			t.Errorf("delete %s: exit %d: %s", name, k.code, k.err)
		}
	})
	return name
}

// longWait is enough for whatever brokers on a busy machine have to do.
const longWait = 2 * time.Minute

// until runs kctl until it exits with code, for at most longWait.
func (k *kctl) until(code exit.Code, args ...string) *kctl {
	k.t.Helper()
	deadline := time.Now().Add(longWait)
	for k.run(args...); k.code != int(code) && time.Now().Before(deadline); k.run(args...) {
		<-time.After(200 * time.Millisecond)
	}
	if k.code != int(code) {
		k.t.Fatalf("kctl %v: exit %d, want %d\n%s%s", args, k.code, code, k.out, k.err)
	}
	return k
}

// untilOut runs kctl until its standard output holds a text, for at most longWait.
func (k *kctl) untilOut(text string, args ...string) {
	k.t.Helper()
	deadline := time.Now().Add(longWait)
	for k.run(args...); !strings.Contains(k.out.String(), text) && time.Now().Before(deadline); k.run(args...) {
		<-time.After(200 * time.Millisecond)
	}
	if !strings.Contains(k.out.String(), text) {
		k.t.Fatalf("kctl %v: no %q in\n%s%s", args, text, k.out, k.err)
	}
}

// first reads the first item of the last list.
func (k *kctl) first(v any) {
	k.t.Helper()
	var doc struct{ Items []json.RawMessage }
	if err := json.Unmarshal(k.out.Bytes(), &doc); err != nil || len(doc.Items) == 0 {
		k.t.Fatalf("no items: %v\n%s", err, k.out)
	}
	if err := json.Unmarshal(doc.Items[0], v); err != nil {
		k.t.Fatal(err)
	}
}

func TestPeerVerbs(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "3:1:2,1:2:3")
	k.run("topics", "list", "--topic", topic).want(exit.OK, topic, "")
	k.run("topics", "describe", topic, "-o", "json").want(exit.OK, `"kind": "TopicDetail"`, "")
	k.run("partitions", "list", topic+":0", "--no-headers").want(exit.OK, "3,1,2", "")
	k.run("leader-and-isr", "get", topic+":0", "-o", "json").want(exit.OK, `"zkVersion": 0`, "")
	k.run("cluster", "describe").want(exit.OK, "BROKERS:           3", "")
	k.run("brokers", "list").want(exit.OK, "up", "")
	k.run("controller", "describe", "-o", "json").want(exit.OK, `"live": true`, "")
	k.run("cluster", "health", "-o", "json").want(exit.OK, `"healthy": true`, "")
	k.in = "a\nb\n"
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		k.run("produce", topic, "--partition", "1", "--compression", codec).want(exit.OK, "", "2 records")
	}
	k.run("consume", topic, "--from-beginning", "-n", "10", "-f", `%o%v `).want(exit.OK, "0a 1b 2a 3b 4a 5b 6a 7b 8a 9b ", "")
	k.run("consume", topic, "--group", topic, "--from-beginning", "-n", "4").want(exit.OK, "a\nb\na\nb\n", "")
	k.run("consume", topic, "--group", topic, "--from-beginning", "-n", "1", "-f", "%o").want(exit.OK, "4", "")
	k.run("lag", "replicas", topic+":1", "-o", "json").want(exit.OK, `"logEndOffset": 10`, "")
	k.run("transitions").want(exit.OK, "WAITING-FOR", "no transitions")
	k.run("transitions", "-z", "", "--older-than", "1s").want(exit.OK, "WAITING-FOR", "no transitions")
	k.run("zk", "get", "/brokers/topics/"+topic+"/partitions/0/state").want(exit.OK, `"leader":3`, "")
	k.run("zk", "ls", "/", "-z", strings.Split(k.env["KCTL_BOOTSTRAP_SERVER"], ",")[0]).want(exit.Unreachable, "", "a Kafka broker, not a ZooKeeper server")
	k.run("topics", "list", "-b", k.env["KCTL_ZOOKEEPER"], "-z", "").want(exit.Unreachable, "", "a ZooKeeper server, not a broker")
	k.run("topics", "list", "-b", "", "-z", k.env["KCTL_ZOOKEEPER"]+"/nope").want(exit.Failed, "", "chroot does not exist")
}

// TestPeerElection turns the replica list round, so that the leader is not the preferred one, and elects.
func TestPeerElection(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "1:2:3")
	reorder(t, k, topic, []int32{2, 1, 3})
	k.untilOut(topic+":0", "partitions", "list", topic, "--not-preferred", "-o", "name")
	k.run("elect", "preferred", topic, "--yes", "-o", "json").want(exit.OK, `"confirmed": true`, "")
	k.run("leader-and-isr", "get", topic+":0", "-o", "json").want(exit.OK, `"leader": 2`, "")
	k.untilOut("not-needed", "elect", "preferred", topic, "--dry-run") // another broker may learn of the new leader a moment later
}

func reorder(t *testing.T, k *kctl, topic string, replicas []int32) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(k.env["KCTL_BOOTSTRAP_SERVER"], ",")...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	rp := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	rp.Replicas = replicas
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), cl)
	if err != nil || resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatalf("reassign: %v %v", err, kerr.ErrorForCode(resp.ErrorCode))
	}
}

// moveState writes leader 2 and the next epoch into a partition's state node, fenced like a controller does.
// With told set the controller is made to read it (as after a leader's own ISR change) and sends metadata.
func moveState(t *testing.T, k *kctl, topic string, told bool) {
	t.Helper()
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: k.env["KCTL_ZOOKEEPER"]})
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Close()
	tp := cluster.TopicPartition{Topic: topic}
	rs := zk.Do(t.Context(), zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: znode.StatePath(tp)}, zkop.Request{Kind: zkop.Get, Path: znode.ControllerEpochPath})
	state, err := znode.DecodeState(tp, rs[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	state.Leader, state.LeaderEpoch = 2, state.LeaderEpoch+1
	reqs := []zkop.Request{znode.Fenced(cluster.ZKVersion(rs[1].Stat.Version),
		zkop.Request{Kind: zkop.Set, Path: znode.StatePath(tp), Data: state.Encode(), Version: rs[0].Stat.Version})}
	if told {
		reqs = append(reqs, zkop.Request{Kind: zkop.Create, Path: znode.ISRChangePrefix, Mode: zkop.PersistentSequential,
			Data: znode.EncodeISRChange([]cluster.TopicPartition{tp})})
	}
	for _, r := range zk.Do(t.Context(), zkutil.AnySession, reqs...) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

type transition struct {
	State, Fix, Reason string
	WaitingFor         []int32
}

// TestPeerStuckTransition: a decision that reached the brokers' metadata but not the replicas is found,
// explained, and the named command frees it.
func TestPeerStuckTransition(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "1:2:3")
	moveState(t, k, topic, true)
	elect := "elect preferred " + topic + ":0 --yes"
	for prefix, source := range map[string][]string{"kctl ": nil, "kctl -z '' ": {"-z", ""}} { // also without ZooKeeper: the brokers' metadata names leader 2
		fix := prefix + elect
		var row transition
		for deadline := time.Now().Add(longWait); row.Fix != fix && time.Now().Before(deadline); { // until the metadata has it
			k.until(exit.Problems, append([]string{"transitions", topic, "--older-than", "1s", "-o", "json"}, source...)...).first(&row)
		}
		if row.State != "stuck" || len(row.WaitingFor) != 1 || row.WaitingFor[0] != 2 || row.Fix != fix {
			t.Errorf("%v: %+v", source, row)
		}
	}
	k.run(strings.Fields(elect)...).want(exit.OK, "leads", "will move leaders")
	k.until(exit.OK, "transitions", topic, "--older-than", "1ms").want(exit.OK, "WAITING-FOR", "no transitions")
}

// TestPeerUnknownDecision: a decision that the controller itself does not know of needs a new controller.
func TestPeerUnknownDecision(t *testing.T) {
	k := newPeer(t)
	topic := peerTopic(t, k, "1:2:3")
	moveState(t, k, topic, false)
	var row transition
	k.until(exit.Problems, "transitions", topic, "--older-than", "1s", "-o", "json").first(&row)
	if row.Fix != "kctl controller move --yes" || !strings.Contains(row.Reason, "the controller does not know of epoch 1") {
		t.Errorf("%+v", row)
	}
	k.run("controller", "move", "--yes").want(exit.OK, "EPOCH:", "will end the controllership")
	k.until(exit.OK, "transitions", topic, "--older-than", "1ms").want(exit.OK, "WAITING-FOR", "no transitions")
	k.run("leader-and-isr", "get", topic+":0", "-o", "json").want(exit.OK, `"leader": 2`, "")
}
