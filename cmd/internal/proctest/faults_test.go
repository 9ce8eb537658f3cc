//go:build proc

package proctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/cmd/internal/harness"
)

// TestZooKeeperDies: without ZooKeeper the brokers go on serving what they lead, and when it is back they
// recover by themselves, whether their sessions survived or not.
func TestZooKeeperDies(t *testing.T) {
	c := startCluster(t, 3, nil)
	c.createTopic(t, "zk", 4, 3, map[string]string{"min.insync.replicas": "2"})
	l := c.startLoad(t, "zk", 4)
	l.progress(t, 200)

	must(t, c.KillZooKeeper())
	begin := time.Now()
	for time.Since(begin) < 3*sessionTimeout {
		l.progress(t, 500)
		pass(t, 200*time.Millisecond)
	}
	t.Logf("without ZooKeeper for %.1f s: %d records acknowledged", time.Since(begin).Seconds(), l.ledger.Acked())
	reader := c.client(t, kgo.ConsumeTopics("zk"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if f := reader.PollRecords(t.Context(), 100); f.NumRecords() == 0 {
		t.Errorf("nothing is read without ZooKeeper: %v", f.Err())
	}

	must(t, c.StartZooKeeper(t.Context()))
	took := c.await(t, "a topic can be created again", longWait, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.admin(t).CreateTopic(ctx, 1, 3, nil, "after-"+strconv.Itoa(int(time.Since(begin).Milliseconds())))
		return err == nil
	})
	t.Logf("a topic could be created %.1f s after ZooKeeper was back", took.Seconds())
	c.awaitFullISR(t, "zk", 4, 3)
	l.progress(t, 500)
	l.stop(t)
	c.verify(t, l)
}

// TestSuspendedBrokers: a broker that was stopped for longer than its session (SIGSTOP) and goes on, as leader
// and as controller, several times in a row (BUGS A3, A4, A12): one controller, nothing lost, nothing diverges.
func TestSuspendedBrokers(t *testing.T) {
	c := startCluster(t, 3, map[string]string{"replica.lag.time.max.ms": "3000"})
	c.createTopic(t, "pause", 4, 3, map[string]string{"min.insync.replicas": "2"})
	l := c.startLoad(t, "pause", 4)
	l.progress(t, 200)

	t.Run("leader", func(t *testing.T) {
		adm := c.admin(t)
		leader := c.Broker(c.partition(t, adm, "pause", 0).Leader)
		c.suspend(t, leader)
		moved := c.await(t, "another leader", longWait, func() bool {
			p := c.partitionAt(t, c.other(leader), "pause", 0)
			return p.Leader >= 0 && p.Leader != leader.ID
		})
		l.progress(t, 200)
		lines := countLines(t, leader.LogFile(), "msg=registered")
		must(t, leader.Signal(syscall.SIGCONT))
		// The deposed leader knows nothing yet. What it is sent with the old epoch in mind must not be
		// acknowledged: either it refuses, or it never answers well.
		refused := c.deposedMustRefuse(t, leader, "pause")
		c.await(t, "its new registration", longWait, func() bool { return countLines(t, leader.LogFile(), "msg=registered") > lines })
		c.awaitFullISR(t, "pause", 4, 3)
		t.Logf("broker %d: another leader after %.1f s; %s", leader.ID, moved.Seconds(), refused)
	})
	for n := range 4 {
		t.Run(fmt.Sprintf("controller %d", n+1), func(t *testing.T) {
			old := c.controller(t)
			epoch, sessions := c.controllerEpoch(t), c.sessionsOver(t)
			c.suspend(t, old)
			took := c.await(t, "another controller", longWait, func() bool {
				id := c.controllerAt(t, c.other(old))
				return id >= 0 && id != old.ID
			})
			// It wakes up and finds work to do in the name of its old epoch.
			stopped := c.other(old)
			if n == 1 {
				must(t, stopped.Kill())
			}
			c.createTopicAsync(t, fmt.Sprintf("made-%d", n))
			must(t, old.Signal(syscall.SIGCONT))
			if n == 1 {
				must(t, stopped.Start(t.Context()))
			}
			c.awaitFullISR(t, "pause", 4, 3)
			c.awaitFullISR(t, fmt.Sprintf("made-%d", n), 6, 2)
			c.oneController(t)
			// A term of office ends with a session only. On a machine so slow that heartbeats come too late there are more.
			now := c.controllerEpoch(t)
			if over := c.sessionsOver(t) - sessions; now < epoch+1 || now > epoch+max(2, over) {
				t.Errorf("controller epoch %d after %d, while %d sessions ended", now, epoch, over)
			}
			t.Logf("controller %d: another one after %.1f s, epoch %d", old.ID, took.Seconds(), c.controllerEpoch(t))
		})
	}
	l.progress(t, 200)
	l.stop(t)
	c.verify(t, l)
}

// TestLostReplicas: the death of the last replica in sync, of a controller that follows, and of an emptied
// broker that comes back (BUGS A5, A6, A8); idle partitions whose leader moves or whose follower was away (A17,
// A18).
func TestLostReplicas(t *testing.T) {
	c := startCluster(t, 3, map[string]string{"replica.lag.time.max.ms": "3000"})

	t.Run("last in sync", func(t *testing.T) { // A5
		c.createAssigned(t, "last", [][]int32{{1, 2}})
		c.produceN(t, "last", 500)
		must(t, c.Broker(2).Stop())
		c.await(t, "ISR [1]", longWait, func() bool { return slices.Equal(c.partitionAt(t, c.Broker(3), "last", 0).ISR, []int32{1}) })
		must(t, c.Broker(1).Kill())
		c.await(t, "no leader", longWait, func() bool { return c.partitionAt(t, c.Broker(3), "last", 0).Leader == -1 })
		must(t, c.Broker(2).Start(t.Context()))
		pass(t, time.Second)
		p := c.partitionAt(t, c.Broker(3), "last", 0)
		if p.Leader != -1 || !slices.Equal(p.ISR, []int32{1}) {
			t.Errorf("leader %d, ISR %v: broker 2 was not in sync", p.Leader, p.ISR)
		}
		if out, code := c.kctl(t, "cluster", "health"); code != 10 {
			t.Errorf("kctl cluster health ends with %d:\n%s", code, out)
		}
		must(t, c.Broker(1).Start(t.Context()))
		took := c.await(t, "broker 1 leads again", longWait, func() bool { return c.partitionAt(t, c.Broker(3), "last", 0).Leader == 1 })
		c.awaitFullISR(t, "last", 1, 2)
		if n := c.count(t, "last", 0); n != 500 {
			t.Errorf("%d of 500 records are left", n)
		}
		t.Logf("leads again after %.1f s", took.Seconds())
	})

	t.Run("following controller", func(t *testing.T) { // A6
		controller := c.controller(t).ID
		leader := 1 + controller%3
		c.createAssigned(t, "follow", [][]int32{{leader, controller}})
		must(t, c.Broker(controller).Kill())
		took := c.await(t, "the dead controller leaves the ISR", longWait, func() bool {
			return slices.Equal(c.partitionAt(t, c.Broker(leader), "follow", 0).ISR, []int32{leader})
		})
		must(t, c.Broker(controller).Start(t.Context()))
		back := c.awaitFullISR(t, "follow", 1, 2) // A18: without a single record
		t.Logf("controller %d left the ISR after %.1f s and was back %.1f s after its start", controller, took.Seconds(), back.Seconds())
	})

	t.Run("controller restarts at once", func(t *testing.T) {
		b := c.controller(t)
		epoch := c.controllerEpoch(t)
		session := lastValue(t, b.LogFile(), "msg=registered", "session=")
		must(t, b.Kill())
		must(t, b.Start(t.Context()))
		took := c.await(t, "a new controller epoch", longWait, func() bool { return c.controllerEpoch(t) > epoch })
		c.notByExpiry(t, b, session, c.controllerEpoch(t))
		c.oneController(t)
		t.Logf("controller %d: another term of office after %.1f s", b.ID, took.Seconds())
	})

	t.Run("emptied broker", func(t *testing.T) { emptiedBroker(t, c) }) // A8

	t.Run("idle leader moves", func(t *testing.T) { // A17
		c.createAssigned(t, "idle", [][]int32{{1, 2, 3}})
		pass(t, 4*time.Second) // longer than replica.lag.time.max.ms
		must(t, c.Broker(1).Stop())
		c.await(t, "another leader", longWait, func() bool { return c.partitionAt(t, c.Broker(3), "idle", 0).Leader > 1 })
		begin := c.partitionAt(t, c.Broker(3), "idle", 0).ISR
		c.produceN(t, "idle", 1)
		for until := time.Now().Add(4 * time.Second); time.Now().Before(until); pass(t, 50*time.Millisecond) {
			p := c.partitionAt(t, c.Broker(3), "idle", 0)
			if answered := p.Leader != -2; answered && (len(p.ISR) < len(begin) || len(p.ISR) < 2) {
				t.Fatalf("the ISR shrank from %v to %v", begin, p.ISR)
			}
		}
		must(t, c.Broker(1).Start(t.Context()))
		c.awaitFullISR(t, "idle", 1, 3)
	})
}

// sessionsOver is how many sessions ZooKeeper has ended since it was started because it heard nothing of them.
func (c *testCluster) sessionsOver(t *testing.T) int {
	t.Helper()
	return countLines(t, filepath.Join(filepath.Dir(c.Brokers()[0].Dir), "zookeeper.log"), "session expired")
}

// notByExpiry: the term of office began before the old session ended, in the order in which ZooKeeper and the brokers noted
// it, however slow the machine. A restart that took about as long as the session proves nothing.
func (c *testCluster) notByExpiry(t *testing.T, b *harness.Broker, session string, epoch int) {
	t.Helper()
	expired, gone := noted(t, filepath.Join(filepath.Dir(b.Dir), "zookeeper.log"), "session expired", "session="+session+" ")
	if !gone {
		return
	}
	back, ok := noted(t, b.LogFile(), "zookeeper session", "state=connected")
	if !ok || expired.Sub(back) < sessionTimeout/2 {
		t.Logf("broker %d was back in ZooKeeper too late, at %s", b.ID, back)
		return
	}
	for _, o := range c.Brokers() {
		if began, ok := noted(t, o.LogFile(), "elected controller", fmt.Sprintf("controller_epoch=%d", epoch)); ok && began.After(expired) {
			t.Errorf("another term of office at %s, after the old session ended at %s", began, expired)
		}
	}
}

// noted is the time of the last line with all the words in a log.
func noted(t *testing.T, file string, words ...string) (at time.Time, ok bool) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	for line := range strings.Lines(string(data)) {
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.TrimSpace(line)+" ", w) }) {
			continue
		}
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err = time.Parse(time.RFC3339, stamp)
		must(t, err)
		ok = true
	}
	return at, ok
}

// lastValue is what follows key in the last line with the word in a log.
func lastValue(t *testing.T, file, word, key string) (value string) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	for line := range strings.Lines(string(data)) {
		if _, after, ok := strings.Cut(line, key); ok && strings.Contains(line, word) {
			value, _, _ = strings.Cut(strings.TrimSpace(after), " ")
		}
	}
	if value == "" {
		t.Fatalf("no %s in %s", key, file)
	}
	return value
}

// emptiedBroker takes a follower's log while it is down, and the leader as soon as it is back: it must not lead with
// what it has lost.
func emptiedBroker(t *testing.T, c *testCluster) {
	t.Helper()
	for n, down := range []time.Duration{0, 4 * time.Second, 0} { // back within its session, and after it
		topic := fmt.Sprintf("emptied-%d", n)
		c.createAssigned(t, topic, [][]int32{{1, 2}})
		c.produceN(t, topic, 1000)
		if n == 2 {
			c.await(t, "the checkpoint of the high watermark", longWait, func() bool { return c.checkpointed(t, c.Broker(2), topic, 1000) })
		}
		must(t, c.Broker(2).Kill())
		emptied := filepath.Join(c.Broker(2).Dir, topic+"-0")
		if n == 2 {
			emptied = filepath.Join(emptied, "00000000000000000000.log") // only the records, not the folder
		}
		must(t, os.RemoveAll(emptied))
		pass(t, down)
		lives := countLines(t, c.Broker(2).LogFile(), "msg=registered")
		started := make(chan error, 1)
		go func() { started <- c.Broker(2).Start(context.WithoutCancel(t.Context())) }()
		for countLines(t, c.Broker(2).LogFile(), "msg=registered") == lives { // the leader dies as early as can be
			pass(t, time.Millisecond)
		}
		must(t, c.Broker(1).Kill())
		must(t, <-started)
		pass(t, sessionTimeout+2*time.Second)
		p := c.partitionAt(t, c.Broker(3), topic, 0)
		t.Logf("down %s: leader %d, ISR %v", down, p.Leader, p.ISR)
		if p.Leader == 2 {
			if n := c.count(t, topic, 0); n != 1000 {
				t.Errorf("down %s: broker 2 leads with %d of 1000 records", down, n)
			}
		}
		must(t, c.Broker(1).Start(t.Context()))
		c.awaitFullISR(t, topic, 1, 2)
		if n := c.count(t, topic, 0); n != 1000 {
			t.Errorf("down %s: %d of 1000 records are left", down, n)
		}
	}
}

// TestCutFromZooKeeper: a leader that cannot reach ZooKeeper while the other brokers can (BUGS A19): it must not
// acknowledge with acks=all what the next leader does not have.
func TestCutFromZooKeeper(t *testing.T) {
	c := startCluster(t, 3, map[string]string{"replica.lag.time.max.ms": "3000"})
	relay := startRelay(t, c.ZooKeeper())
	one := c.Broker(1)
	must(t, one.Stop())
	must(t, replaceInFile(one.PropsFile(), c.ZooKeeper(), relay.addr()))
	must(t, one.Start(t.Context()))
	c.createAssigned(t, "cut", [][]int32{{1, 2, 3}, {1, 3, 2}})
	l := c.startLoad(t, "cut", 2)
	l.progress(t, 200)
	relay.cut()
	moved := c.await(t, "another leader", longWait, func() bool {
		a, b := c.partitionAt(t, c.Broker(3), "cut", 0).Leader, c.partitionAt(t, c.Broker(3), "cut", 1).Leader
		return a > 1 && b > 1
	})
	begin := time.Now()
	for _, acks := range []int16{1, -1} {
		c.await(t, fmt.Sprintf("the deposed leader refuses acks=%d", acks), longWait, func() bool {
			return errors.Is(c.produceAt(t, one, "cut", acks), kerr.NotLeaderForPartition)
		})
	}
	refused := time.Since(begin)
	l.progress(t, 500)
	pass(t, sessionTimeout)
	relay.mend()
	c.awaitFullISR(t, "cut", 2, 3)
	l.progress(t, 200)
	l.stop(t)
	c.verify(t, l)
	t.Logf("another leader after %.1f s; the deposed one refused %.1f s later", moved.Seconds(), refused.Seconds())
}

// suspend stops a broker's process and makes sure that it goes on at the end of the test.
func (c *testCluster) suspend(t *testing.T, b *harness.Broker) {
	t.Helper()
	must(t, b.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { b.Signal(syscall.SIGCONT) })
}

// other returns a running broker that is not b.
func (c *testCluster) other(b *harness.Broker) *harness.Broker {
	for _, o := range c.Brokers() {
		if o != b && o.PID() != 0 {
			return o
		}
	}
	return nil
}

// ask sends one request to one broker.
func ask[T kmsg.Response](t *testing.T, b *harness.Broker, req kmsg.Request) (T, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Addr), kgo.RequestRetries(0))
	must(t, err)
	defer cl.Close()
	resp, err := cl.SeedBrokers()[0].Request(ctx, req)
	out, _ := resp.(T)
	return out, err
}

func metadataAt(t *testing.T, b *harness.Broker, topic string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	return ask[*kmsg.MetadataResponse](t, b, req)
}

// partitionAt asks one broker; the leader is -2 when it does not answer.
func (c *testCluster) partitionAt(t *testing.T, b *harness.Broker, topic string, partition int32) kmsg.MetadataResponseTopicPartition {
	t.Helper()
	resp, err := metadataAt(t, b, topic)
	if err == nil && len(resp.Topics) == 1 {
		for _, p := range resp.Topics[0].Partitions {
			if p.Partition == partition {
				return p
			}
		}
	}
	return kmsg.MetadataResponseTopicPartition{Leader: -2}
}

func (c *testCluster) controllerAt(t *testing.T, b *harness.Broker) int32 {
	t.Helper()
	resp, err := metadataAt(t, b, "none")
	if err != nil {
		return -1
	}
	return resp.ControllerID
}

func (c *testCluster) controller(t *testing.T) (b *harness.Broker) {
	t.Helper()
	c.await(t, "a controller", longWait, func() bool {
		b = c.Broker(c.controllerAt(t, c.Brokers()[0]))
		return b != nil && b.PID() != 0
	})
	return b
}

// oneController: every broker names the same one.
func (c *testCluster) oneController(t *testing.T) {
	t.Helper()
	c.await(t, "all brokers name one controller", longWait, func() bool {
		var ids []int32
		for _, b := range c.Brokers() {
			ids = append(ids, c.controllerAt(t, b))
		}
		return ids[0] > 0 && ids[0] == ids[1] && ids[1] == ids[2]
	})
}

func (c *testCluster) controllerEpoch(t *testing.T) int {
	t.Helper()
	out, code := c.kctl(t, "-z", c.ZooKeeper(), "zk", "get", "/controller_epoch")
	n, err := strconv.Atoi(firstNumber(out))
	if code != 0 || err != nil {
		t.Fatalf("kctl zk get /controller_epoch: %d, %q", code, out)
	}
	return n
}

func firstNumber(s string) string {
	start := 0
	for start < len(s) && (s[start] < '0' || s[start] > '9') {
		start++
	}
	end := start
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	return s[start:end]
}

// kctl runs a command against the cluster and returns its output and exit code.
func (c *testCluster) kctl(t *testing.T, args ...string) (string, int) {
	t.Helper()
	if !slices.Contains(args, "-z") {
		args = append(args, "-b", c.Brokers()[2].Addr)
	}
	out, err := exec.CommandContext(t.Context(), program(t, "kctl"), args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	must(t, err)
	return string(out), 0
}

// awaitFullISR waits until all partitions of a topic have a leader and all replicas in sync.
func (c *testCluster) awaitFullISR(t *testing.T, topic string, partitions, replicas int) time.Duration {
	t.Helper()
	return c.await(t, "full in-sync sets of "+topic, longWait, func() bool {
		for p := range partitions {
			d := c.partitionAt(t, c.Brokers()[min(2, len(c.Brokers())-1)], topic, int32(p))
			if d.Leader < 0 || len(d.ISR) != replicas {
				return false
			}
		}
		return true
	})
}

func (c *testCluster) createAssigned(t *testing.T, topic string, replicas [][]int32) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, -1, -1
	for p, r := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(p), r
		rt.ReplicaAssignment = append(rt.ReplicaAssignment, a)
	}
	req.Topics = append(req.Topics, rt)
	req.TimeoutMillis = 10000
	resp, err := req.RequestWith(t.Context(), c.client(t))
	must(t, err)
	must(t, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	c.awaitFullISR(t, topic, len(replicas), len(replicas[0]))
}

// createTopicAsync asks for a topic of 6 partitions, RF 2, and does not care for the answer.
func (c *testCluster) createTopicAsync(t *testing.T, topic string) {
	adm := c.admin(t)
	go adm.CreateTopic(context.WithoutCancel(t.Context()), 6, 2, nil, topic)
}

func (c *testCluster) produceN(t *testing.T, topic string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longWait)
	defer cancel()
	cl := c.client(t)
	var all []*kgo.Record
	for i := range n {
		all = append(all, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(i))})
	}
	must(t, cl.ProduceSync(ctx, all...).FirstErr())
}

// checkpointed reports whether the broker has noted the high watermark of partition 0 on disk.
func (c *testCluster) checkpointed(t *testing.T, b *harness.Broker, topic string, hw int) bool {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.Dir, "replication-offset-checkpoint"))
	return err == nil && bytes.Contains(data, fmt.Appendf(nil, "%s 0 %d\n", topic, hw))
}

// count is the number of records that a partition holds by its offsets.
func (c *testCluster) count(t *testing.T, topic string, partition int32) int64 {
	t.Helper()
	ends, err := c.admin(t).ListEndOffsets(t.Context(), topic)
	must(t, err)
	end, ok := ends.Lookup(topic, partition)
	if !ok || end.Err != nil {
		t.Fatalf("end of %s-%d: %v", topic, partition, end.Err)
	}
	return end.Offset
}

// deposedMustRefuse sends records with acks=all straight to a broker that leads no more, and says how they were
// refused. An acknowledged one is a lost one.
func (c *testCluster) deposedMustRefuse(t *testing.T, b *harness.Broker, topic string) string {
	t.Helper()
	for n := range 4 {
		switch err := c.produceAt(t, b, topic, -1); {
		case err == nil:
			if c.partitionAt(t, c.other(b), topic, 0).Leader == b.ID {
				return "it leads again"
			}
			t.Error("the deposed leader acknowledged a record")
			return ""
		case errors.Is(err, kerr.NotLeaderForPartition):
			return fmt.Sprintf("refused with %v at attempt %d", err, n+1)
		}
	}
	return "nothing was acknowledged"
}

// produceAt sends a record for partition 0 to one broker, whoever leads, and returns what it says.
func (c *testCluster) produceAt(t *testing.T, b *harness.Broker, topic string, acks int16) error {
	t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 1000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = plainBatch([]byte("to the deposed"))
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := ask[*kmsg.ProduceResponse](t, b, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// keptLoad writes to every partition of a topic until it is stopped.
type keptLoad struct {
	ledger *harness.Ledger
	end    context.CancelFunc
	done   sync.WaitGroup
}

func (c *testCluster) startLoad(t *testing.T, topic string, partitions int) *keptLoad {
	t.Helper()
	cl, err := harness.NewProducer(c.Bootstrap(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	t.Cleanup(cl.Close)
	stop, end := context.WithCancel(t.Context())
	l := &keptLoad{ledger: harness.NewLedger(topic), end: end}
	for p := range int32(partitions) {
		l.done.Go(func() {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			window := make(chan struct{}, 50)
			for stop.Err() == nil {
				<-tick.C
				for range 5 {
					window <- struct{}{}
					l.ledger.Send(t.Context(), cl, p, func(int, error) { <-window })
				}
			}
			for range cap(window) {
				window <- struct{}{}
			}
		})
	}
	return l
}

// progress waits until n more records are acknowledged.
func (l *keptLoad) progress(t *testing.T, n int) {
	t.Helper()
	at := l.ledger.Acked() + n
	for begin := time.Now(); l.ledger.Acked() < at; pass(t, 10*time.Millisecond) {
		if time.Since(begin) > longWait {
			t.Fatalf("%d records acknowledged, none for long: %v", l.ledger.Acked(), l.ledger.Err())
		}
	}
}

func (l *keptLoad) stop(t *testing.T) {
	t.Helper()
	l.end()
	l.done.Wait()
	must(t, l.ledger.Err())
}

// verify reads everything back and compares the replicas byte by byte.
func (c *testCluster) verify(t *testing.T, l *keptLoad) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longWait)
	defer cancel()
	read, err := l.ledger.Verify(ctx, c.Bootstrap())
	must(t, err)
	ends, err := c.admin(t).ListEndOffsets(ctx, l.ledger.Topic)
	must(t, err)
	ends.Each(func(o kadm.ListedOffset) {
		must(t, o.Err)
		if err := c.CompareReplicas(o.Topic, o.Partition, []int32{1, 2, 3}, o.Offset); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d records acknowledged, %d read, replicas are byte-identical", l.ledger.Acked(), read)
}
