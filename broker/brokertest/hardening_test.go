package brokertest

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// TestGarbageFrames throws frames at a broker: whole requests of every API with bytes flipped, cut off and made
// up. It must go on serving, and lose nothing that was acknowledged.
func TestGarbageFrames(t *testing.T) {
	c := Start(t, 1)
	c.CreateTopic("events", 2, 1)
	want := produce(t, c.Client(), "events", "a", 200)
	addr := c.Addrs()[0]
	rnd := rand.New(rand.NewPCG(1, 2))
	for key := int16(0); key <= 60; key++ {
		req := kmsg.RequestForKey(key)
		if req == nil {
			continue
		}
		for v := int16(0); v <= req.MaxVersion(); v++ {
			req.SetVersion(v)
			whole := kmsg.NewRequestFormatter(kmsg.FormatterClientID("garbage")).AppendRequest(nil, req, 1)
			for range 4 {
				throw(t, addr, damage(rnd, whole))
			}
		}
	}
	wantSame(t, want, consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 200))
}

// damage flips bytes, cuts the frame, lengthens it or claims another size.
func damage(rnd *rand.Rand, frame []byte) []byte {
	b := slices.Clone(frame)
	for range 1 + rnd.IntN(4) {
		b[4+rnd.IntN(len(b)-4)] = byte(rnd.Uint32())
	}
	switch rnd.IntN(4) {
	case 0:
		b = b[:4+rnd.IntN(len(b)-4)]
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	case 1:
		for range rnd.IntN(100) {
			b = append(b, byte(rnd.Uint32()))
		}
		binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	case 2:
		binary.BigEndian.PutUint32(b, rnd.Uint32())
	}
	return b
}

// throw sends bytes and hangs up after a moment's chance to answer.
func throw(t *testing.T, addr string, b []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("the broker does not accept any more: %v", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Millisecond))
	if _, err := conn.Write(b); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20))
	}
}

// TestDynamicConfigurationIsApplied changes a topic's and the brokers' configuration and watches it take effect.
func TestDynamicConfigurationIsApplied(t *testing.T) {
	c := Start(t, 2)
	ctx := deadline(t)
	c.CreateTopic("small", 1, 2)
	adm := kadm.NewClient(c.Client())
	cl := c.Client(kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(900_000))
	big := func() error {
		return cl.ProduceSync(ctx, &kgo.Record{Topic: "small", Value: make([]byte, 5000)}).FirstErr()
	}
	if err := big(); err != nil {
		t.Fatalf("before: %v", err)
	}
	set := func(v string) {
		t.Helper()
		resp, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &v}}, "small")
		if err != nil || resp[0].Err != nil {
			t.Fatalf("alter: %v %v", err, resp)
		}
	}
	set("1000")
	await(t, "a record over max.message.bytes is refused", func() bool { return big() != nil })
	set("100000")
	await(t, "it is accepted again", func() bool { return big() == nil })
	// The brokers' default gives way to the topic's own value, and counts where there is none.
	c.CreateTopic("plain", 1, 2)
	v := "2000"
	if resp, err := adm.AlterBrokerConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.max.bytes", Value: &v}}); err != nil || resp[0].Err != nil {
		t.Fatalf("alter brokers: %v %v", err, resp)
	}
	await(t, "the brokers' default is applied", func() bool {
		return cl.ProduceSync(ctx, &kgo.Record{Topic: "plain", Value: make([]byte, 5000)}).FirstErr() != nil
	})
	if err := big(); err != nil {
		t.Errorf("the topic's own value lost to the brokers' default: %v", err)
	}
}

// await polls an observed condition.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx := deadline(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not in time", what)
		case <-tick.C:
		}
	}
}

// TestRestartKeepsEverything stops all brokers in order and starts them again.
func TestRestartKeepsEverything(t *testing.T) {
	c := Start(t, 3)
	c.CreateTopic("events", 6, 3)
	want := produce(t, c.Client(), "events", "a", 600)
	ids := c.IDs()
	for _, id := range ids {
		c.Stop(id)
	}
	for _, id := range ids {
		c.Launch(id)
	}
	c.AwaitBrokers(len(ids))
	c.AwaitLeaders("events", 6)
	wantSame(t, want, consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 600))
}

// TestPreferredElection moves leaders back after a broker's return.
func TestPreferredElection(t *testing.T) {
	c := Start(t, 3)
	ctx := deadline(t)
	c.CreateTopic("events", 6, 3)
	adm := kadm.NewClient(c.Client())
	c.Stop(c.Leader("events", 0))
	id := missing(c)
	c.Restart(id)
	await(t, "the returned broker is in every ISR", func() bool {
		return everyPartition(c, "events", func(_ cluster.BrokerID, replicas, isr []int32) bool { return len(isr) == len(replicas) })
	})
	if _, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, nil); err != nil {
		t.Fatal(err)
	}
	await(t, "every partition is led by its first replica", func() bool {
		return everyPartition(c, "events", func(leader cluster.BrokerID, replicas, _ []int32) bool { return int32(leader) == replicas[0] })
	})
}

// missing returns the id of 1..3 that does not run.
func missing(c *Cluster) cluster.BrokerID {
	for id := cluster.BrokerID(1); id <= 3; id++ {
		if !slices.Contains(c.IDs(), id) {
			return id
		}
	}
	return cluster.NoLeader
}

// everyPartition asks each running broker's metadata.
func everyPartition(c *Cluster, topic string, ok func(leader cluster.BrokerID, replicas, isr []int32) bool) bool {
	for _, id := range c.IDs() {
		tp, found := c.Broker(id).Snapshot().Topic(topic)
		if !found {
			return false
		}
		for i := range tp.Partitions {
			if p := &tp.Partitions[i]; !ok(p.Leader, p.Replicas, p.ISR) {
				return false
			}
		}
	}
	return true
}

// TestSessionExpiry cuts a leader off from ZooKeeper until its session is gone. Others take over, nothing that
// was acknowledged is lost, and the broker comes back under a new epoch and into every ISR.
func TestSessionExpiry(t *testing.T) {
	c := Start(t, 3, "zookeeper.session.timeout.ms=3000", "min.insync.replicas=2")
	c.CreateTopic("events", 6, 3)
	producer := c.Client(kgo.RequiredAcks(kgo.AllISRAcks()))
	first := produce(t, producer, "events", "first", 300)
	id := c.Leader("events", 0)
	c.CutZooKeeper(id)
	others := slices.DeleteFunc(c.IDs(), func(o cluster.BrokerID) bool { return o == id })
	await(t, "the others see it gone", func() bool {
		return !slices.ContainsFunc(others, func(o cluster.BrokerID) bool { return c.Broker(o).Snapshot().IsAlive(id) })
	})
	second := produce(t, producer, "events", "second", 300)
	c.HealZooKeeper(id)
	await(t, "it is in every ISR again", func() bool {
		return everyPartition(c, "events", func(_ cluster.BrokerID, _, isr []int32) bool { return len(isr) == 3 })
	})
	third := produce(t, producer, "events", "third", 300)
	got := consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 900)
	wantSame(t, first, got)
	wantSame(t, second, got)
	wantSame(t, third, got)
}

// TestStopWithoutZooKeeper stops brokers whose ZooKeeper is gone for good: they must end, with their logs closed
// in order, after their attempts at a controlled shutdown.
func TestStopWithoutZooKeeper(t *testing.T) {
	c := Start(t, 2, "controlled.shutdown.retry.backoff.ms=100", "zookeeper.session.timeout.ms=3000")
	c.CreateTopic("events", 2, 2)
	want := produce(t, c.Client(), "events", "a", 100)
	for _, id := range c.IDs() {
		c.CutZooKeeper(id)
	}
	// Without ZooKeeper the leaders still serve what they have.
	wantSame(t, want, consume(t, c.Client(kgo.ConsumeTopics("events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())), 100))
	describesWithoutZooKeeper(t, c)
	begin := time.Now()
	for _, id := range c.IDs() {
		c.Stop(id)
	}
	if took := time.Since(begin); took > startTimeout {
		t.Errorf("stopping took %v", took)
	}
	t.Logf("stopped in %v", time.Since(begin))
}

// describesWithoutZooKeeper: what a broker knows itself it tells; for what is in ZooKeeper it says why it cannot, instead
// of looking dead to whoever asks.
func describesWithoutZooKeeper(t *testing.T, c *Cluster) {
	t.Helper()
	req := kmsg.NewPtrDescribeConfigsRequest()
	for kind, name := range map[kmsg.ConfigResourceType]string{kmsg.ConfigResourceTypeTopic: "events", kmsg.ConfigResourceTypeBroker: "1"} {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind, name
		req.Resources = append(req.Resources, r)
	}
	resp, err := c.Client().Broker(1).RetriableRequest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
		switch r.ResourceType {
		case kmsg.ConfigResourceTypeTopic:
			if r.ErrorCode != kerr.RequestTimedOut.Code || r.ErrorMessage == nil || !strings.Contains(*r.ErrorMessage, "ZooKeeper") {
				t.Errorf("topic: code %d, %v", r.ErrorCode, r.ErrorMessage)
			}
		default:
			if r.ErrorCode != 0 || len(r.Configs) == 0 {
				t.Errorf("broker: code %d, %d settings", r.ErrorCode, len(r.Configs))
			}
		}
	}
}
