//go:build proc

package proctest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/harness"
)

// bulk is the topic whose copying takes long enough to be interrupted, moving the one that is written to meanwhile.
const (
	bulk        = "bulk"
	bulkRecords = 1000 // of a kilobyte, per partition
	moving      = "moving"
	longWait    = 90 * time.Second // for what must come to an end some time, on a busy machine too
)

// TestReassignExecuteKilled: kctl reassign execute is killed in the middle of its run, then the controller and a target
// broker in the middle of the next one. The run is taken up again until it ends: every partition is as wanted, no
// throttle is left, the rollback file tells where every replica was, and no acknowledged record is gone.
func TestReassignExecuteKilled(t *testing.T) {
	c := startCluster(t, 4, map[string]string{"replica.lag.time.max.ms": "3000"})
	before := map[string][][]int32{bulk: {{1, 2}, {2, 3}, {3, 1}, {1, 3}, {2, 1}, {3, 2}}, moving: {{1, 2}, {2, 3}}}
	after := map[string][][]int32{bulk: {{4, 2}, {2, 4}, {3, 4}, {4, 3}, {4, 1}, {1, 4}}, moving: {{4, 2}, {3, 4}}}
	for topic, replicas := range before {
		c.createAssigned(t, topic, replicas)
	}
	c.fill(t, len(before[bulk]))
	l := c.startLoad(t, moving, len(before[moving]))
	l.progress(t, 200)
	r := &kctlRun{c: c, t: t, home: t.TempDir(), plan: filepath.Join(t.TempDir(), "plan.json")}
	writePlan(t, r.plan, after)

	first := r.start("--throttle", "500K", "--batch-size", "3")
	moved := r.awaitUnderWay(first, 1)
	must(t, first.Process.Kill())
	_ = first.Wait()
	if left := c.throttles(t); len(left) == 0 {
		t.Error("nothing is throttled in the middle of the run")
	}

	controller := c.controller(t)
	second := r.start("--resume")
	moved = r.awaitUnderWay(second, moved)
	must(t, controller.Kill())
	l.progress(t, 100)
	must(t, controller.Start(t.Context()))
	r.awaitUnderWay(second, moved)
	must(t, c.Broker(4).Kill())
	l.progress(t, 100)
	must(t, c.Broker(4).Start(t.Context()))
	r.end(second)

	for topic, replicas := range after {
		for p, want := range replicas {
			c.await(t, fmt.Sprintf("%s-%d is on %v", topic, p, want), longWait, func() bool {
				at := c.partitionAt(t, c.Broker(2), topic, int32(p))
				return slices.Equal(at.Replicas, want) && len(at.ISR) == len(want)
			})
		}
	}
	if out, code := c.kctl(t, "reassign", "verify", r.plan); code != 0 {
		t.Errorf("kctl reassign verify ends with %d:\n%s", code, out)
	}
	if left := c.throttles(t); len(left) > 0 {
		t.Errorf("throttles are left: %v", left)
	}
	r.rollbackComplete(before)
	l.progress(t, 100)
	l.stop(t)
	c.verifyPlaced(t, l, after)
}

// fill writes the bulk of every partition, each with acks from all in sync.
func (c *testCluster) fill(t *testing.T, partitions int) {
	t.Helper()
	cl := c.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	var all []*kgo.Record
	value := bytes.Repeat([]byte("x"), 1<<10)
	for i := range partitions * bulkRecords {
		all = append(all, &kgo.Record{Topic: bulk, Partition: int32(i % partitions), Value: value})
	}
	must(t, cl.ProduceSync(t.Context(), all...).FirstErr())
}

// writePlan writes a plan file as Kafka's tool writes it.
func writePlan(t *testing.T, file string, wanted map[string][][]int32) {
	t.Helper()
	type entry struct {
		Topic     string  `json:"topic"`
		Partition int     `json:"partition"`
		Replicas  []int32 `json:"replicas"`
	}
	plan := struct {
		Version    int     `json:"version"`
		Partitions []entry `json:"partitions"`
	}{Version: 1}
	for _, topic := range slices.Sorted(maps.Keys(wanted)) {
		for p, replicas := range wanted[topic] {
			plan.Partitions = append(plan.Partitions, entry{topic, p, replicas})
		}
	}
	data, err := json.Marshal(plan)
	must(t, err)
	must(t, os.WriteFile(file, data, 0o644))
}

// kctlRun is one plan that is carried out by processes of kctl, one after the other.
type kctlRun struct {
	c          *testCluster
	t          *testing.T
	home, plan string
	exe        string
	out        bytes.Buffer
}

// start runs kctl reassign execute, with a home of its own for state and journal.
func (r *kctlRun) start(flags ...string) *exec.Cmd {
	r.t.Helper()
	if r.exe == "" {
		r.exe = program(r.t, "kctl")
	}
	args := append([]string{"reassign", "execute", r.plan, "--yes", "--interval", "100ms", "-b", strings.Join(r.c.Bootstrap(), ",")}, flags...)
	cmd := exec.Command(r.exe, args...)
	cmd.Env = append(os.Environ(), "HOME="+r.home, "XDG_STATE_HOME="+r.home, "XDG_CONFIG_HOME="+r.home)
	r.out.Reset()
	cmd.Stdout, cmd.Stderr = &r.out, &r.out
	must(r.t, cmd.Start())
	r.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// awaitUnderWay waits until partitions are being reassigned and at least done of them have arrived, and returns how many
// have.
func (r *kctlRun) awaitUnderWay(cmd *exec.Cmd, done int) (arrived int) {
	r.t.Helper()
	r.c.await(r.t, "partitions are under way", longWait, func() bool {
		under := 0
		under, arrived = r.state()
		return under > 0 && arrived >= done || arrived == 8
	})
	r.t.Logf("process %d: %d of 8 partitions have arrived", cmd.Process.Pid, arrived)
	return arrived
}

// state counts the partitions that are being reassigned, and those that have a replica on broker 4 and are not.
func (r *kctlRun) state() (under, arrived int) {
	adm := r.c.admin(r.t)
	topics, err := adm.ListTopics(r.t.Context(), bulk, moving)
	if err != nil {
		return 0, 0
	}
	list, err := adm.ListPartitionReassignments(r.t.Context(), topics.TopicsSet())
	if err != nil {
		return 0, 0
	}
	for _, topic := range topics {
		for _, p := range topic.Partitions {
			_, moves := list[topic.Topic][p.Partition]
			if moves {
				under++
			} else if slices.Contains(p.Replicas, 4) {
				arrived++
			}
		}
	}
	return under, arrived
}

// end waits for the process, and takes the run up again as an operator does when it ended because brokers died.
func (r *kctlRun) end(cmd *exec.Cmd) {
	r.t.Helper()
	for attempt := 1; ; attempt++ {
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		var err error
		select {
		case err = <-done:
		case <-time.After(longWait):
			_ = cmd.Process.Kill()
			<-done
			r.t.Fatalf("kctl reassign execute does not end:\n%s", r.out.String())
		}
		r.t.Logf("attempt %d ends with %v", attempt, err)
		var exit *exec.ExitError
		switch {
		case err == nil:
			return
		case !errors.As(err, &exit) || attempt == 5:
			r.t.Fatalf("kctl reassign execute: %v\n%s", err, r.out.String())
		}
		r.t.Logf("%s", r.out.String())
		if strings.Contains(r.out.String(), "--remove-throttles") { // all has moved, but a broker was down at the end
			out, code := r.c.kctl(r.t, "reassign", "verify", r.plan, "--remove-throttles", "--yes")
			r.t.Logf("kctl reassign verify --remove-throttles ends with %d:\n%s", code, out)
			return
		}
		cmd = r.start("--resume")
	}
}

// rollbackComplete: the file that was written before anything was sent names every replica as it was.
func (r *kctlRun) rollbackComplete(before map[string][][]int32) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(r.plan), "*rollback*"))
	must(r.t, err)
	if len(files) != 1 {
		r.t.Fatalf("rollback files: %v", files)
	}
	data, err := os.ReadFile(files[0])
	must(r.t, err)
	var plan struct {
		Partitions []struct {
			Topic     string   `json:"topic"`
			Partition int      `json:"partition"`
			Replicas  []int32  `json:"replicas"`
			LogDirs   []string `json:"log_dirs"`
		} `json:"partitions"`
	}
	must(r.t, json.Unmarshal(data, &plan))
	seen := 0
	for _, p := range plan.Partitions {
		seen++
		if want := before[p.Topic][p.Partition]; !slices.Equal(p.Replicas, want) || len(p.LogDirs) != len(want) {
			r.t.Errorf("rollback file: %s-%d on %v in %v, it was on %v", p.Topic, p.Partition, p.Replicas, p.LogDirs, want)
		}
	}
	if seen != len(before[bulk])+len(before[moving]) {
		r.t.Errorf("rollback file: %d partitions", seen)
	}
}

// throttles returns what is set of KIP-73's configurations, on topics and on brokers.
func (c *testCluster) throttles(t *testing.T) (out []string) {
	t.Helper()
	adm := c.admin(t)
	topics, err := adm.DescribeTopicConfigs(t.Context(), bulk, moving)
	must(t, err)
	brokers, err := adm.DescribeBrokerConfigs(t.Context(), 1, 2, 3, 4)
	must(t, err)
	for _, rc := range slices.Concat(topics, brokers) {
		must(t, rc.Err)
		for _, cfg := range rc.Configs {
			throttle := strings.Contains(cfg.Key, "replication.throttled")
			if throttle && cfg.MaybeValue() != "" && strings.HasPrefix(cfg.Source.String(), "DYNAMIC") {
				out = append(out, rc.Name+" "+cfg.Key+"="+cfg.MaybeValue())
			}
		}
	}
	return out
}

// verifyPlaced reads everything back and compares the replicas where they are now.
func (c *testCluster) verifyPlaced(t *testing.T, l *keptLoad, placed map[string][][]int32) {
	t.Helper()
	read, err := l.ledger.Verify(t.Context(), c.Bootstrap())
	must(t, err)
	for topic, replicas := range placed {
		for p, ids := range replicas {
			end := c.count(t, topic, int32(p))
			if topic == bulk && end != bulkRecords {
				t.Errorf("%s-%d has %d records of %d", topic, p, end, bulkRecords)
			}
			must(t, c.CompareReplicas(topic, int32(p), ids, end))
		}
	}
	t.Logf("%d records acknowledged, %d read, replicas are byte-identical", l.ledger.Acked(), read)
}

// dirOf is where a broker keeps a partition: exactly one folder of its name in all its directories.
func dirOf(t *testing.T, b *harness.Broker, dirs []string, folder string) string {
	t.Helper()
	var found []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if e.Name() == folder || strings.HasPrefix(e.Name(), folder+".") && !strings.HasSuffix(e.Name(), "-delete") {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("broker %d has %v", b.ID, found)
	}
	return filepath.Dir(found[0])
}
