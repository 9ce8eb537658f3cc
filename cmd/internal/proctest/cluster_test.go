//go:build proc

package proctest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/harness"
)

// sessionTimeout is the ZooKeeper session of the brokers under test.
const sessionTimeout = 3 * time.Second

// testCluster is a cluster of processes that a test kills, stops and starves.
type testCluster struct {
	*harness.Cluster
	began time.Time
}

// startCluster runs n brokers over the embedded ZooKeeper, and at the end of the test stops them and looks for
// panics in their logs.
func startCluster(t *testing.T, n int, props map[string]string) *testCluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "kbroker-proc-")
	must(t, err)
	all := map[string]string{
		"zookeeper.session.timeout.ms":     strconv.FormatInt(sessionTimeout.Milliseconds(), 10),
		"offsets.topic.replication.factor": strconv.Itoa(n), "group.initial.rebalance.delay.ms": "0", "replica.lag.time.max.ms": "5000",
	}
	for k, v := range props {
		all[k] = v
	}
	hc, err := harness.Start(t.Context(), harness.Options{Kbroker: program(t, "kbroker"), Dir: dir, Brokers: n, Props: all})
	must(t, err)
	c := &testCluster{Cluster: hc, began: time.Now()}
	t.Cleanup(func() {
		stopping := time.Now()
		if err := c.Stop(); err != nil {
			t.Errorf("ordered stop: %v", err)
		}
		stopped := time.Since(stopping)
		for _, line := range c.GrepLogs(20, "panic", "invariant violated", "fatal error", "DATA RACE") {
			t.Errorf("in a log: %s", line)
		}
		if t.Failed() {
			t.Logf("data and logs are kept in %s", dir)
		} else {
			os.RemoveAll(dir)
		}
		t.Logf("cluster lived %.1f s, of which %.1f s to stop in order", time.Since(c.began).Seconds(), stopped.Seconds())
	})
	return c
}

// client returns a client of the cluster, closed with the test.
func (c *testCluster) client(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Bootstrap()...), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryTimeout(time.Minute), kgo.RequiredAcks(kgo.AllISRAcks())}, opts...)...)
	must(t, err)
	t.Cleanup(cl.Close)
	return cl
}

func (c *testCluster) admin(t *testing.T, opts ...kgo.Opt) *kadm.Client {
	t.Helper()
	return kadm.NewClient(c.client(t, opts...))
}

// createTopic makes a topic and waits until it has leaders and full in-sync sets.
func (c *testCluster) createTopic(t *testing.T, name string, partitions int32, replicas int16, configs map[string]string) {
	t.Helper()
	kv := map[string]*string{}
	for k, v := range configs {
		kv[k] = &v
	}
	adm := c.admin(t)
	_, err := adm.CreateTopic(t.Context(), partitions, replicas, kv, name)
	must(t, err)
	c.await(t, "leaders of "+name, longWait, func() bool {
		topics, err := adm.ListTopics(t.Context(), name)
		if err != nil || len(topics[name].Partitions) != int(partitions) {
			return false
		}
		for _, p := range topics[name].Partitions {
			if p.Leader < 0 || len(p.ISR) != int(replicas) {
				return false
			}
		}
		return true
	})
}

// partition reads a partition's metadata from whom the client asks.
func (c *testCluster) partition(t *testing.T, adm *kadm.Client, topic string, partition int32) kadm.PartitionDetail {
	t.Helper()
	topics, err := adm.ListTopics(t.Context(), topic)
	must(t, err)
	return topics[topic].Partitions[partition]
}

// await polls a condition until it holds, and fails the test when it does not within d. It returns how long it
// took.
func (c *testCluster) await(t *testing.T, what string, d time.Duration, cond func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for !cond() {
		if time.Since(begin) > d {
			t.Fatalf("%s: not within %s", what, d)
		}
		pass(t, 20*time.Millisecond)
	}
	return time.Since(begin)
}

// pass lets real time go by: the brokers are other processes.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// mustServe sends a record through a topic of its own and reads it back, with a client that has just come.
func (c *testCluster) mustServe(t *testing.T) {
	t.Helper()
	const topic = "served"
	ctx, cancel := context.WithTimeout(t.Context(), longWait)
	defer cancel()
	cl := c.client(t, kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(-1))
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatalf("the cluster does not serve: produce: %v", err)
	}
	reader := c.client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if f := reader.PollRecords(ctx, 1); f.NumRecords() == 0 {
		t.Fatalf("the cluster does not serve: consume: %v", errors.Join(ctx.Err(), f.Err()))
	}
}

// memory reads a value of /proc/PID/status in KiB, such as VmRSS or VmHWM.
func memory(t *testing.T, pid int, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
			kb, err := strconv.Atoi(f[1])
			must(t, err)
			return kb
		}
	}
	t.Fatalf("no %s in the status of process %d", name, pid)
	return 0
}

// resetPeak makes VmHWM start anew.
func resetPeak(t *testing.T, pid int) {
	t.Helper()
	must(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0))
}
