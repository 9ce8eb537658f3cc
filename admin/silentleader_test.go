package admin

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// halfDead is a cluster as it stands just after broker 2 died: ZooKeeper has its registration and its decisions, broker 1 answers and
// knows of them, and nobody listens at broker 2's address.
type halfDead struct {
	*fakeBroker
	partitions int
	gone       string
}

func (h *halfDead) metadata(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrMetadataResponse()
	id := "fake"
	host, port, _ := net.SplitHostPort(h.gone)
	dead := kmsg.NewMetadataResponseBroker()
	n, _ := strconv.Atoi(port)
	dead.NodeID, dead.Host, dead.Port = 2, host, int32(n)
	r.ClusterID, r.ControllerID, r.Brokers = &id, 1, append(r.Brokers, h.node(1), dead)
	if m := req.(*kmsg.MetadataRequest); m.Topics != nil && len(m.Topics) == 0 {
		return r
	}
	t := kmsg.NewMetadataResponseTopic()
	name := "big"
	t.Topic = &name
	for j := range h.partitions {
		p := kmsg.NewMetadataResponseTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR = int32(j), 2, 3, []int32{2, 1}, []int32{2, 1}
		t.Partitions = append(t.Partitions, p)
	}
	r.Topics = append(r.Topics, t)
	return r
}

func (h *halfDead) offsets(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrListOffsetsResponse()
	for _, t := range req.(*kmsg.ListOffsetsRequest).Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.LeaderEpoch = p.Partition, 3
			rt.Partitions = append(rt.Partitions, rp)
		}
		r.Topics = append(r.Topics, rt)
	}
	return r
}

func (h *halfDead) configs(req kmsg.Request) kmsg.Response {
	r := kmsg.NewPtrDescribeConfigsResponse()
	for _, asked := range req.(*kmsg.DescribeConfigsRequest).Resources {
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = asked.ResourceType, asked.ResourceName
		if asked.ResourceType == kmsg.ConfigResourceTypeBroker {
			c, value := kmsg.NewDescribeConfigsResponseResourceConfig(), "18000"
			c.Name, c.Value = "zookeeper.session.timeout.ms", &value
			out.Configs = append(out.Configs, c)
		}
		r.Resources = append(r.Resources, out)
	}
	return r
}

// newHalfDead writes into ZooKeeper what the brokers of the cluster left there.
func newHalfDead(t *testing.T, partitions int) (*halfDead, *Client, *meddled) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &halfDead{partitions: partitions, gone: ln.Addr().String()}
	_ = ln.Close()
	h.fakeBroker = startFake(t, nil, map[kmsg.Key]func(kmsg.Request) kmsg.Response{
		kmsg.Metadata: h.metadata, kmsg.ListOffsets: h.offsets, kmsg.DescribeConfigs: h.configs,
	})
	srv, err := zkserver.Start(t.Context(), zkserver.Config{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	zk, err := zkutil.Connect(t.Context(), zkutil.Config{Connect: srv.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	m := &meddled{Client: zk}
	m.put(t, znode.ControllerPath, string(znode.Controller{BrokerID: 1, TimestampMs: 1, KRaftEpoch: -1}.Encode()))
	m.put(t, znode.ControllerEpochPath, "5")
	topic := znode.Topic{Partitions: map[int32]cluster.Assignment{}}
	for j := range int32(partitions) {
		topic.Partitions[j] = cluster.Assignment{Replicas: []cluster.BrokerID{2, 1}}
		state := znode.State{LeaderAndISR: cluster.LeaderAndISR{Leader: 2, LeaderEpoch: 3, ISR: []cluster.BrokerID{2, 1}, ControllerEpoch: 5}}
		m.put(t, znode.StatePath(cluster.TopicPartition{Topic: "big", Partition: j}), string(state.Encode()))
	}
	m.put(t, znode.TopicPath("big"), string(topic.Encode()))
	for id, addr := range map[cluster.BrokerID]string{1: h.addr, 2: h.gone} {
		host, port, _ := net.SplitHostPort(addr)
		n, _ := strconv.Atoi(port)
		reg := znode.Registration{ID: id, JMXPort: -1, Version: 5, Endpoints: []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: host, Port: int32(n)}}}
		m.put(t, znode.BrokerPath(id), string(reg.Encode()))
	}
	return h, openFake(t, Config{ZooKeeper: ZooKeeperAddress{Servers: []string{srv.Addr()}}}, h.fakeBroker), m
}

// TestSilentLeaderIsOneFinding: as long as the session of a dead broker lives, everything that it led is one finding, read off a
// cluster; what the controller has raised an alert for stays a finding of its own.
func TestSilentLeaderIsOneFinding(t *testing.T) {
	h, c, m := newHalfDead(t, 300)
	alert := znode.LeadershipAlert{Partition: cluster.TopicPartition{Topic: "big", Partition: 299}}
	alert.Decision = cluster.LeaderAndISR{Leader: 2, LeaderEpoch: 3, ISR: []cluster.BrokerID{2, 1}, ControllerEpoch: 5}
	m.put(t, znode.LeadershipAlertsPath+"/big-299", string(alert.Encode()))
	needs := []check.Source{check.FromTransitions, check.FromBrokers, check.FromZooKeeper, check.FromConfigs}
	f, _, err := c.Facts(t.Context(), FactsOptions{Needs: needs, OlderThan: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	d := check.Diagnose(f, []string{check.LeaderUnreachable, check.StuckTransition, check.PendingTransition})
	if len(d.Skipped) > 0 || len(d.Findings) != 2 {
		t.Fatalf("%d findings, skipped %v: %+v", len(d.Findings), d.Skipped, d.Findings[:min(3, len(d.Findings))])
	}
	silent, stuck := d.Findings[0], d.Findings[1]
	for _, want := range []string{"leader 2 does not answer: ", "it leads 299 partitions: big-0, big-1, ", " and 294 more", "at most 18s from now"} {
		if silent.ID != check.LeaderUnreachable || silent.Object != "broker 2" || !strings.Contains(silent.Evidence, want) {
			t.Errorf("no %q in %+v", want, silent)
		}
	}
	if stuck.ID != check.StuckTransition || stuck.Object != "big-299" {
		t.Errorf("%+v", stuck)
	}
	if n := h.count(kmsg.ListPartitionReassignments); n != 0 {
		t.Errorf("asked for what the broker does not serve, %d times", n)
	}
	health, _, err := c.Health(t.Context(), time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, x := range health {
		count[x.ID]++
	}
	if count[check.LeaderUnreachable] != 1 || count[check.StuckTransition] != 1 {
		t.Errorf("health: %v", count)
	}
}
