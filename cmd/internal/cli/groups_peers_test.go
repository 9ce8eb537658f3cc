//go:build peers

package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/cli/exit"
)

// peerClient is a client of the peers' cluster that goes away with the test.
func peerClient(t *testing.T, k *kctl, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(strings.Split(k.env["KCTL_BOOTSTRAP_SERVER"], ",")...))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// patientPeer is newPeer with time for brokers that have just started.
func patientPeer(t *testing.T) *kctl {
	t.Helper()
	k := newPeer(t)
	k.env["KCTL_TIMEOUT"] = "60s"
	return k
}

// TestPeerGroups: a group of Apache Kafka with a member at work is shown and refused, then reset in several ways, brought
// back by what the journal says, and deleted.
func TestPeerGroups(t *testing.T) {
	k := patientPeer(t)
	topic := peerTopic(t, k, "1:2,2:3")
	group := "g-" + topic
	k.in = strings.Repeat("x\n", 20)
	k.run("produce", topic, "--partition", "0").want(exit.OK, "", "20 records")
	k.run("produce", topic, "--partition", "1").want(exit.OK, "", "20 records")
	cl := peerClient(t, k, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ClientID("night-shift"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for n := 0; n < 40; {
		fs := cl.PollFetches(t.Context())
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		n += fs.NumRecords()
	}
	if err := cl.CommitUncommittedOffsets(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.run("groups", "describe", group, "--members", "-o", "wide").want(exit.OK, "night-shift", "")
	k.run("lag", "groups", group, "--time", "-o", "json").want(exit.OK, `"committedOffset": 20`, "")
	k.run("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute").want(exit.Failed, "", "night-shift on")
	cl.Close()
	k.untilOut(group, "groups", "list", "--state", "empty", "-o", "name")
	k.run("groups", "reset-offsets", group, "--topic", topic+":0", "--to-offset", "7", "--execute", "-o", "json").want(exit.OK, `"done": true`, "")
	k.run("groups", "reset-offsets", group, "--all-topics", "--shift-by", "-30", "--execute").want(exit.OK, "is before the log's start", "will reset 2 of 2 offset(s)")
	undo := regexp.MustCompile(`kctl (groups reset-offsets \S+ --from-file \S+ --expect \S+ --yes)`).FindAllStringSubmatch(k.run("history", "-o", "json").out.String(), -1)
	if len(undo) != 2 {
		t.Fatalf("the journal names %d ways back:\n%s", len(undo), k.out)
	}
	k.run("history", "undo", "2", "--yes").want(exit.Failed, "", "not at 7 as expected")
	k.run("history", "undo", "3", "--yes").want(exit.OK, " yes ", "taking back")
	k.run("history", "undo", "2", "--yes").want(exit.OK, " yes ", "taking back")
	k.run("groups", "describe", group, "--offsets").want(exit.OK, topic, "")
	k.run("groups", "reset-offsets", group, "--all-topics", "--by-duration", "PT1H", "--execute").want(exit.OK, " yes ", "will reset 2 of 2 offset(s)")
	k.run("lag", "groups", group, "--by", "group", "-o", "json").want(exit.OK, `"lagRecords": 40`, "")
	k.run("groups", "delete-offsets", group, "--topic", topic+":1", "--yes").want(exit.OK, " yes ", "will delete these")
	k.run("groups", "delete", group, "--yes").want(exit.OK, group, "deleted group")
	k.run("groups", "describe", group).want(exit.Failed, "", "does not exist")
}

// TestPeerTransactions: a transaction that a producer left open is listed, described, seen in the logs, not called hanging
// while its coordinator knows it, and ended through the coordinator.
func TestPeerTransactions(t *testing.T) {
	k := patientPeer(t)
	topic := peerTopic(t, k, "1:2")
	id := "t-" + topic
	cl := peerClient(t, k, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute), kgo.DefaultProduceTopic(topic))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cl.ProduceSync(ctx, &kgo.Record{Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	k.run("transactions", "list", "--state", "ongoing", "-o", "json").want(exit.OK, id, "")
	k.run("transactions", "list", "--duration", "1h").want(exit.OK, "TRANSACTIONAL-ID", "no transactions")
	k.run("transactions", "describe", id, "-o", "json").want(exit.OK, `"state": "Ongoing"`, "")
	var row struct{ ProducerID int64 }
	k.first(&row)
	k.run("transactions", "list", "--producer-id", strconv.FormatInt(row.ProducerID, 10), "-o", "name").want(exit.OK, id, "")
	k.run("consume", topic, "--from-beginning", "--read-committed", "--idle-timeout", "3s").want(exit.OK, "", "")
	k.run("transactions", "find-hanging", topic, "--max-transaction-timeout", "1ms").want(exit.OK, "PRODUCER-ID", "no hanging")
	k.run("transactions", "abort", "--topic", topic+":0", "--start-offset", "0", "--yes").want(exit.Failed, "", "the coordinator has it under way for "+id)
	k.run("transactions", "abort", id, "--dry-run").want(exit.OK, id, "dry run")
	k.run("transactions", "abort", id, "--yes", "-o", "json").want(exit.OK, `"kind": "TransactionList"`, "")
	k.untilOut(" Empty ", "transactions", "describe", id)
	k.run("transactions", "abort", "--topic", topic+":0", "--start-offset", "0", "--yes").want(exit.Failed, "", "has no such transaction open")
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err == nil {
		t.Error("the producer that was shut out commits")
	}
	k.run("transactions", "describe", "nosuch").want(exit.Failed, "", "does not exist")
}

// TestPeerMarker: an abort marker ends a transaction in one log past its coordinator, when that is asked for by force.
func TestPeerMarker(t *testing.T) {
	k := patientPeer(t)
	topic := peerTopic(t, k, "2:3")
	cl := peerClient(t, k, kgo.TransactionalID("m-"+topic), kgo.DefaultProduceTopic(topic))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	k.run("transactions", "abort", "--topic", topic+":0", "--start-offset", "0", "--force", "--dry-run", "-o", "json").want(exit.OK, `"startOffset": 0`, "")
	k.run("transactions", "abort", "--topic", topic+":0", "--start-offset", "0", "--force", "--yes", "-o", "json").want(exit.OK, `"kind": "OpenTransactionList"`, "")
	k.run("transactions", "abort", "--topic", topic+":0", "--start-offset", "0", "--force", "--yes").want(exit.Failed, "", "none is open there")
	k.in = "after\n"
	k.run("produce", topic).want(exit.OK, "", "1 records")
	// What the coordinator makes of its transaction now is its own affair: it gives up on it when its timeout is over.
	k.run("consume", topic, "--from-beginning", "--read-committed", "-e").want(exit.OK, "after\n", "")
}

// TestPeerRecordsRange: a range that ends with a transaction's marker ends.
func TestPeerRecordsRange(t *testing.T) {
	k := patientPeer(t)
	topic := peerTopic(t, k, "3:1")
	cl := peerClient(t, k, kgo.TransactionalID("r-"+topic), kgo.DefaultProduceTopic(topic))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
	}
	k.run("consume", topic, "--from-beginning", "-e", "-f", "%o ").want(exit.OK, "0 2 ", "")
	k.run("consume", topic, "--from-beginning", "-e", "--read-committed", "-f", "%o ").want(exit.OK, "0 ", "")
	k.run("lag", "replicas", topic, "-o", "json").want(exit.OK, `"logEndOffset": 4`, "")
	k.in = ""
	file := filepath.Join(t.TempDir(), "x.csv")
	k.run("groups", "reset-offsets", "r-"+topic, "--topic", topic, "--to-latest", "--execute", "--export", file).want(exit.OK, " yes ", "does not exist yet")
	if data, err := os.ReadFile(file); err != nil || string(data) != topic+",0,4\n" {
		t.Errorf("%q %v", data, err)
	}
	k.run("groups", "delete", "r-"+topic, "--yes").want(exit.OK, "r-"+topic, "deleted")
}
