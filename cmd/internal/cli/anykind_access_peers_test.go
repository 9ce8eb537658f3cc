//go:build peers

package cli_test

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"kctl/cmd/internal/cli/exit"
)

// kafkaPeer is newAnyPeer for what our own brokers do not have: there ask must be refused, with what is said, and the
// kctl that is returned is nil.
func kafkaPeer(t *testing.T, ask, said string) (*kctl, string) {
	t.Helper()
	k, kind := newAnyPeer(t)
	if kind == "ours" {
		k.run(strings.Fields(ask)...).want(exit.Failed, "", said)
		return nil, kind
	}
	k.env["KCTL_TIMEOUT"] = "60s"
	return k, kind
}

// TestAnyPeerACLs: on KRaft with its StandardAuthorizer; where there is no authorizer, that is said.
func TestAnyPeerACLs(t *testing.T) {
	k, kind := kafkaPeer(t, "acls list", "no authorizer is configured")
	if k == nil {
		return
	}
	if k.run("acls", "list"); k.code != 0 && kind == "zookeeper" {
		k.want(exit.Failed, "", "no authorizer is configured")
		return
	}
	aclRounds(t, k)
}

func TestAnyPeerUsers(t *testing.T) {
	k, _ := kafkaPeer(t, "users list", "has no SCRAM users")
	if k == nil {
		return
	}
	pw := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(pw, []byte("topsecret;\"=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.run("users", "delete", "kctl-any", "--yes") })
	k.run("users", "set", "kctl-any", "--password-file", pw, "--iterations", "5000", "--yes").want(exit.OK, "SCRAM-SHA-512", "will set the password")
	k.run("users", "describe", "kctl-any", "-o", "json").want(exit.OK, `"iterations": 5000`, "")
	k.run("users", "set", "kctl-any", "--password-file", pw, "--mechanism", "SCRAM-SHA-256", "--iterations", "6000", "--yes").want(exit.OK, "replace", "will set")
	k.run("users", "list", "--no-headers").want(exit.OK, "kctl-any  SCRAM-SHA-256  6000", "")
	k.run("users", "delete", "kctl-any", "--mechanism", "SCRAM-SHA-256", "--yes").want(exit.OK, "done", "will delete")
	k.run("users", "describe", "kctl-any", "--no-headers").want(exit.OK, "kctl-any  SCRAM-SHA-512  5000", "")
	k.run("users", "delete", "kctl-any", "--yes").want(exit.OK, "done", "will delete")
	k.run("users", "describe", "kctl-any").want(exit.Failed, "", "no SCRAM credentials")
}

func TestAnyPeerQuotas(t *testing.T) {
	k, _ := kafkaPeer(t, "quotas list", "has no client quotas")
	if k == nil {
		return
	}
	entity := []string{"--user", "kctl-any", "--client-id", "app"}
	verb := func(v string, more ...string) *kctl {
		return k.run(append(append([]string{"quotas", v}, entity...), more...)...)
	}
	t.Cleanup(func() { verb("delete", "--yes") })
	verb("set", "producer_byte_rate=1048576", "request_percentage=50.5", "--yes").want(exit.OK, "done", "will change quotas")
	verb("describe", "-o", "name").want(exit.OK, "user=kctl-any,client-id=app producer_byte_rate", "")
	verb("set", "producer_byte_rate=-1", "--dry-run")
	if k.code == 0 {
		t.Errorf("a rate below zero: %s%s", k.out, k.err)
	}
	verb("delete", "producer_byte_rate", "--yes").want(exit.OK, "delete", "will change quotas")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "1048576", "taking back")
	verb("list", "-o", "json").want(exit.OK, `"value": 50.5`, "")
	verb("delete", "--yes").want(exit.OK, "done", "will change quotas")
	verb("list", "--no-headers")
	if strings.Contains(k.out.String(), "kctl-any") {
		t.Errorf("quotas are left: %s", k.out)
	}
}

// TestAnyPeerTransactions: an open transaction is listed, described, not called hanging, and ended by its coordinator.
func TestAnyPeerTransactions(t *testing.T) {
	k, _ := kafkaPeer(t, "transactions list", "serve no transactions")
	if k == nil {
		return
	}
	topic := anyTopic(t, k)
	id := "t-" + topic
	cl := peerClient(t, k, kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Minute), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cl.ProduceSync(ctx, &kgo.Record{Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	k.run("transactions", "list", "--state", "ongoing", "-o", "name").want(exit.OK, id, "")
	k.run("transactions", "describe", id, "-o", "json").want(exit.OK, `"state": "Ongoing"`, "")
	k.run("transactions", "find-hanging", topic, "--max-transaction-timeout", "1ms").want(exit.OK, "PRODUCER-ID", "no hanging")
	k.run("transactions", "abort", "--topic", topic+":0", "--start-offset", "0", "--yes").want(exit.Failed, "", "the coordinator has it under way for "+id)
	k.run("transactions", "abort", id, "--yes").want(exit.OK, "", "shut out")
	k.untilOut(" Empty ", "transactions", "describe", id)
	if err := cl.EndTransaction(ctx, kgo.TryCommit); err == nil {
		t.Error("the producer that was shut out commits")
	}
	k.run("transactions", "describe", "nosuch").want(exit.Failed, "", "does not exist")
}

// TestAnyPeerHanging: a transaction that no coordinator knows of is found, ended by the command that is named, and gone.
// Brokers check since KIP-890 that a coordinator knows; the check is switched off for the record that makes it.
func TestAnyPeerHanging(t *testing.T) {
	k, _ := kafkaPeer(t, "transactions find-hanging", "serve no transactions")
	if k == nil {
		return
	}
	topic := anyTopic(t, k)
	const check = "transaction.partition.verification.enable"
	k.run("configs", "set", "broker/default", check+"=false", "--yes").want(exit.OK, "done", "will change")
	t.Cleanup(func() {
		k.run("configs", "delete", "broker/default", check, "--yes").want(exit.OK, "done", "will change")
	})
	cl := peerClient(t, k, kgo.MaxVersions(kversion.V3_6_0()))
	hang(t, cl, topic)
	k.until(exit.Problems, "transactions", "find-hanging", topic, "--max-transaction-timeout", "1ms", "-o", "json")
	var row struct{ Fix string }
	if k.first(&row); !strings.Contains(row.Fix, topic+":0") {
		t.Fatalf("fix %q", row.Fix)
	}
	fix := strings.Fields(strings.TrimPrefix(row.Fix, "kctl "))
	if !strings.Contains(row.Fix, "--yes") {
		fix = append(fix, "--yes")
	}
	k.run(fix...).want(exit.OK, "", "aborted the transaction of producer")
	k.run("transactions", "find-hanging", topic, "--max-transaction-timeout", "1ms").want(exit.OK, "PRODUCER-ID", "no hanging")
	k.run("consume", topic, "--from-beginning", "--read-committed", "-e").want(exit.OK, "", "")
}

// hang writes a record of a transaction into partition 0 that the producer's coordinator was never told of.
func hang(t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	id := "h-" + topic
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.TransactionTimeoutMillis = &id, 60_000
	var producer *kmsg.InitProducerIDResponse
	retry(t, "InitProducerId", func() (code int16, err error) {
		if producer, err = init.RequestWith(t.Context(), cl); err != nil {
			return 0, err
		}
		return producer.ErrorCode, nil
	})
	batch := kmsg.RecordBatch{
		PartitionLeaderEpoch: -1, Magic: 2, Attributes: 0x10, FirstTimestamp: time.Now().UnixMilli(), MaxTimestamp: time.Now().UnixMilli(),
		ProducerID: producer.ProducerID, ProducerEpoch: producer.ProducerEpoch, NumRecords: 1, Records: []byte{14, 0, 0, 0, 1, 2, 'x', 0},
	}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	req := kmsg.NewPtrProduceRequest()
	rt, rp := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	rp.Records = raw
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req.TransactionID, req.Acks, req.TimeoutMillis, req.Topics = &id, -1, 10_000, append(req.Topics, rt)
	retry(t, "Produce", func() (int16, error) {
		resp, err := req.RequestWith(t.Context(), cl)
		if err != nil {
			return 0, err
		}
		return resp.Topics[0].Partitions[0].ErrorCode, nil
	})
}

// retry asks until there is no error, for at most 30 s: coordinators load, and dynamic settings arrive a little later.
func retry(t *testing.T, what string, ask func() (int16, error)) {
	t.Helper()
	deadline := time.Now().Add(longWait)
	for {
		code, err := ask()
		if err == nil {
			err = kerr.ErrorForCode(code)
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// aclRounds makes, lists, exports, prunes, deletes and takes back rules on a cluster with an authorizer.
func aclRounds(t *testing.T, k *kctl) {
	t.Helper()
	who := "User:kctl-acl-test"
	t.Cleanup(func() { k.run("acls", "delete", "--principal", who, "--yes") })
	k.run("acls", "create", "--allow-principal", who, "--producer", "--topic", "kctl-test", "--pattern", "prefixed", "--yes").want(exit.OK, "Write", "will change ACLs")
	k.run("acls", "list", "--topic", "kctl-test-1", "--pattern", "match", "--principal", who).want(exit.OK, "Prefixed", "")
	k.run("acls", "list", "--principal", who, "--export").want(exit.OK, "operations: [Create, Describe, Write]", "")
	file := filepath.Join(t.TempDir(), "acls.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(k.out.String(), "Create, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	// --prune looks at every rule of the cluster: only those of this test may go.
	k.run("acls", "create", "--from-file", file, "--yes").want(exit.OK, "none", "nothing to change")
	k.run("acls", "create", "--deny-principal", who, "--operation", "Delete", "--group", "kctl-g", "--deny-host", "10.0.0.1", "--yes").want(exit.OK, "Deny", "will change ACLs")
	k.run("acls", "delete", "--principal", who, "--dry-run").want(exit.OK, "delete", "dry run")
	k.run("acls", "delete", "--principal", who, "--operation", "Write", "--yes").want(exit.OK, "done", "will change ACLs")
	k.run("acls", "list", "--principal", who, "--operation", "Write", "--no-headers").want(exit.OK, "", "no ACLs")
	k.run("history", "undo", k.last(), "--yes").want(exit.OK, "Write", "taking back")
	k.run("acls", "list", "--principal", who, "--operation", "Write", "--no-headers").want(exit.OK, "Write", "")
	k.run("acls", "delete", "--principal", who, "--yes").want(exit.OK, "done", "will change ACLs")
	k.run("acls", "list", "--principal", who, "--no-headers").want(exit.OK, "", "no ACLs")
}
