package controllershell

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// lab is a cluster of fake brokers with a controller shell in some of them.
type lab struct {
	t      *testing.T
	zk     *ensemble
	net    *network
	ctx    context.Context
	cancel context.CancelFunc
	shells map[cluster.BrokerID]*member
	fakes  map[cluster.BrokerID]*fakeBroker
	work   sync.WaitGroup
}

// member is one broker process.
type member struct {
	*Shell
	client *memClient
	reg    *prometheus.Registry
}

func newLab(t *testing.T) *lab {
	ctx, cancel := context.WithCancel(context.Background())
	return &lab{t: t, zk: newEnsemble(t), net: &network{brokers: map[string]*fakeBroker{}}, ctx: ctx, cancel: cancel,
		shells: map[cluster.BrokerID]*member{}, fakes: map[cluster.BrokerID]*fakeBroker{}}
}

// end stops everything; a goroutine that stays behind fails the test's bubble.
func (l *lab) end() {
	for _, f := range l.fakes {
		f.set(func(f *fakeBroker) {
			if f.hang != nil {
				close(f.hang)
				f.hang = nil
			}
		})
	}
	l.cancel()
	l.work.Wait()
	l.net.close()
}

// advance lets virtual time pass: the clock of the bubble jumps when every goroutine waits.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func addrOf(id cluster.BrokerID) string { return fmt.Sprintf("127.0.0.1:%d", 9000+id) }

// register writes a broker's id node in a session.
func (l *lab) register(id cluster.BrokerID, session int64) {
	l.t.Helper()
	reg := znode.Registration{ID: id, JMXPort: -1, Endpoints: []cluster.Endpoint{
		{Listener: "CLIENT", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 1},
		{Listener: "CONTROL", Protocol: "PLAINTEXT", Host: "127.0.0.1", Port: 9000 + int32(id)},
		{Listener: "INTERNAL", Protocol: "PLAINTEXT", Host: "10.0.0.1", Port: 7000 + int32(id)},
	}}
	if resp := l.zk.do(session, znode.RegisterBroker(reg)); resp[0].Err != nil {
		l.t.Fatal(resp[0].Err)
	}
}

// bystander registers a broker without a controller.
func (l *lab) bystander(ids ...cluster.BrokerID) {
	for _, id := range ids {
		l.fakes[id] = &fakeBroker{id: id}
		l.net.add(addrOf(id), l.fakes[id])
		l.register(id, l.zk.connect().session.ID)
	}
}

// start runs a broker with a shell.
func (l *lab) start(id cluster.BrokerID, cfg Config) *member {
	if l.fakes[id] == nil {
		l.fakes[id] = &fakeBroker{id: id}
		l.net.add(addrOf(id), l.fakes[id])
	}
	m := &member{client: l.zk.connect(), reg: prometheus.NewRegistry()}
	m.Shell = New(Options{BrokerID: id, ZK: m.client, Dial: l.net.dial, Listener: "CONTROL", InterBrokerListener: "INTERNAL", Registerer: m.reg, Config: cfg})
	l.shells[id] = m
	l.work.Go(func() {
		if err := m.Run(l.ctx); err == nil || l.ctx.Err() == nil {
			l.t.Errorf("Run of %d ended with %v", id, err)
		}
	})
	l.register(id, m.client.session.ID)
	m.Registered(m.client.session.Epoch)
	return m
}

func (l *lab) topic(name string, parts map[int32][]cluster.BrokerID) {
	z := znode.Topic{ID: cluster.TopicID{1, name[0]}, Partitions: map[int32]cluster.Assignment{}}
	for p, r := range parts {
		z.Partitions[p] = cluster.Assignment{Replicas: r}
	}
	l.zk.must(l.t, zkop.Request{Kind: zkop.Create, Path: znode.TopicPath(name), Data: z.Encode()})
}

// heard lists the LeaderAndISR and UpdateMetadata decisions that a broker was sent for a topic.
func (l *lab) heard(id cluster.BrokerID, topic string) []string {
	var out []string
	for _, req := range l.fakes[id].requests() {
		switch req := req.(type) {
		case *kmsg.LeaderAndISRRequest:
			for _, t := range req.TopicStates {
				for _, p := range t.PartitionStates {
					if t.Topic == topic {
						out = append(out, fmt.Sprintf("lead %d:%d@%d", p.Partition, p.Leader, p.LeaderEpoch))
					}
				}
			}
		case *kmsg.UpdateMetadataRequest:
			for _, t := range req.TopicStates {
				for _, p := range t.PartitionStates {
					if t.Topic == topic {
						out = append(out, fmt.Sprintf("meta %d:%d@%d", p.Partition, p.Leader, p.LeaderEpoch))
					}
				}
			}
		}
	}
	return out
}

func (l *lab) wantHeard(id cluster.BrokerID, topic string, want ...string) {
	l.t.Helper()
	if got := l.heard(id, topic); strings.Join(got, " ") != strings.Join(want, " ") {
		l.t.Errorf("broker %d heard %v, want %v", id, got, want)
	}
}

func (m *member) gauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := m.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			if g := f.GetMetric()[0].GetGauge(); g != nil {
				return g.GetValue()
			}
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestElectsAndPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		m := l.start(1, Config{})
		l.bystander(2, 3)
		l.topic("t", map[int32][]cluster.BrokerID{0: {2, 3}, 1: {3, 1}})
		synctest.Wait()
		if !m.IsActive() || m.ActiveEpoch() != 1 {
			t.Fatalf("active %v epoch %d", m.IsActive(), m.ActiveEpoch())
		}
		l.wantHeard(1, "t", "lead 1:3@0", "meta 0:2@0", "meta 1:3@0")
		l.wantHeard(2, "t", "lead 0:2@0", "meta 0:2@0", "meta 1:3@0")
		advance(2 * time.Second)
		synctest.Wait()
		for name, want := range map[string]float64{
			"kafka_controller_active_controller_count": 1, "kafka_controller_global_topic_count": 1,
			"kafka_controller_global_partition_count": 2, "kafka_controller_offline_partitions_count": 0,
			"kafka_controller_active_broker_count": 3, "kafka_controller_leadership_transitions_pending": 0,
			"kafka_controller_total_queue_size": 0, "kafka_controller_event_queue_size": 0,
		} {
			if got := m.gauge(t, name); got != want {
				t.Errorf("%s = %v, want %v", name, got, want)
			}
		}
		l.checkRequestFields()
	})
}

// checkRequestFields: versions, epochs, and the listener that followers are sent to.
func (l *lab) checkRequestFields() {
	l.t.Helper()
	czxid := l.zk.must(l.t, zkop.Request{Kind: zkop.Exists, Path: znode.BrokerPath(2)}).Stat.Czxid
	leads, metas := 0, 0
	for _, req := range l.fakes[2].requests() {
		switch req := req.(type) {
		case *kmsg.LeaderAndISRRequest:
			leads++
			if req.Version != 7 || req.Type != 2 || req.BrokerEpoch != czxid || req.ControllerEpoch != 1 || req.ControllerID != 1 {
				l.t.Errorf("LeaderAndISR: %+v", req)
			}
			if len(req.LiveLeaders) != 1 || req.LiveLeaders[0].Host != "10.0.0.1" || req.LiveLeaders[0].Port != 7002 {
				l.t.Errorf("live leaders %+v", req.LiveLeaders)
			}
		case *kmsg.UpdateMetadataRequest:
			metas++
			if req.Version != 8 || req.BrokerEpoch != czxid || len(req.LiveBrokers) == 0 || len(req.LiveBrokers[0].Endpoints) != 3 {
				l.t.Errorf("UpdateMetadata: %+v", req)
			}
		}
	}
	if leads != 1 || metas == 0 {
		l.t.Errorf("%d LeaderAndISR, %d UpdateMetadata", leads, metas)
	}
}

// A broker that never answers: the others are served, the alert comes after ten seconds as metric and
// znode, and goes when the broker answers at last.
func TestSilentBrokerRaisesAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		m := l.start(1, Config{RequestTimeout: time.Minute})
		l.bystander(2, 3)
		synctest.Wait()
		l.fakes[3].set(func(f *fakeBroker) { f.hang = make(chan struct{}) })
		l.topic("t", map[int32][]cluster.BrokerID{0: {2, 3, 1}})
		synctest.Wait()
		l.topic("u", map[int32][]cluster.BrokerID{0: {1, 2}})
		synctest.Wait()
		l.wantHeard(1, "t", "lead 0:2@0", "meta 0:2@0")
		l.wantHeard(2, "u", "lead 0:1@0", "meta 0:1@0")
		l.wantHeard(3, "u") // waits behind the request that hangs
		advance(9 * time.Second)
		synctest.Wait()
		if n := m.gauge(t, "kafka_controller_leadership_alerts"); n != 0 {
			t.Errorf("%v alerts too early", n)
		}
		advance(3 * time.Second)
		synctest.Wait()
		if n := m.gauge(t, "kafka_controller_leadership_alerts"); n != 1 {
			t.Errorf("%v alerts, want 1", n)
		}
		path := znode.LeadershipAlertPath(cluster.TopicPartition{Topic: "t"})
		a, err := znode.DecodeLeadershipAlert(cluster.TopicPartition{Topic: "t"}, l.zk.must(t, zkop.Request{Kind: zkop.Get, Path: path}).Data)
		if err != nil || len(a.Waiting) != 1 || a.Waiting[0].Broker != 3 || a.RaisedMs-a.DecidedMs != 10_000 {
			t.Errorf("alert %+v %v", a, err)
		}
		l.fakes[3].set(func(f *fakeBroker) { close(f.hang); f.hang = nil })
		advance(2 * time.Second)
		synctest.Wait()
		if n := m.gauge(t, "kafka_controller_leadership_alerts"); n != 0 {
			t.Errorf("%v alerts left", n)
		}
		if resp := l.zk.do(l.zk.admin, zkop.Request{Kind: zkop.Exists, Path: path}); resp[0].Err == nil {
			t.Errorf("%s is still there", path)
		}
		l.wantHeard(3, "u", "meta 0:1@0")
	})
}

// A broker that closes its connections, refuses them for a while, or answers with an error, still gets
// every decision.
func TestBrokenConnectionsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		m := l.start(1, Config{})
		l.bystander(2)
		l.fakes[2].set(func(f *fakeBroker) { f.oneOff = true })
		synctest.Wait()
		l.topic("a", map[int32][]cluster.BrokerID{0: {2, 1}})
		synctest.Wait()
		l.wantHeard(2, "a", "lead 0:2@0", "meta 0:2@0") // a closed idle connection costs no wait
		l.fakes[2].set(func(f *fakeBroker) { f.refuse = true })
		l.topic("b", map[int32][]cluster.BrokerID{0: {1, 2}})
		advance(3 * time.Second)
		l.wantHeard(2, "b")
		l.fakes[2].set(func(f *fakeBroker) { f.refuse = false; f.codes = -1 })
		advance(3 * time.Second)
		l.fakes[2].set(func(f *fakeBroker) { f.codes = 0 })
		advance(12 * time.Second)
		synctest.Wait()
		if got := l.heard(2, "b"); len(got) < 3 || got[len(got)-1] != "lead 0:1@0" {
			t.Errorf("broker 2 heard %v", got)
		}
		if st := m.Stats(); st.Transitions != 0 || st.Alerts != 0 || st.QueuedRequests != 0 {
			t.Errorf("left over: %+v", st)
		}
		if m.gauge(t, "kafka_controller_request_failures_total") == 0 {
			t.Error("no failure was counted")
		}
	})
}

func TestSessionLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		m := l.start(1, Config{})
		l.topic("t", map[int32][]cluster.BrokerID{0: {1}})
		synctest.Wait()
		if !m.IsActive() {
			t.Fatal("not elected")
		}
		m.client.become(zkutil.PresumedLost)
		synctest.Wait()
		if m.IsActive() {
			t.Fatal("still active in a session that is presumed lost")
		}
		if resp := m.HandleElectLeaders(t.Context(), &kmsg.ElectLeadersRequest{Version: 2}); resp.ErrorCode != codeNotController {
			t.Errorf("ElectLeaders answered %d", resp.ErrorCode)
		}
		m.client.become(zkutil.Connected) // it had not expired: the same session and epoch go on
		synctest.Wait()
		if m.ActiveEpoch() != 1 {
			t.Fatalf("epoch %d after the session came back", m.ActiveEpoch())
		}
		m.client.become(zkutil.Expired)
		m.client.open()
		synctest.Wait()
		if m.IsActive() {
			t.Fatal("active before the broker registered in the new session")
		}
		l.register(1, m.client.session.ID)
		m.Registered(m.client.session.Epoch)
		synctest.Wait()
		if m.ActiveEpoch() != 2 {
			t.Fatalf("epoch %d after the new session", m.ActiveEpoch())
		}
	})
}

func TestStandbyTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		a := l.start(1, Config{})
		synctest.Wait()
		b := l.start(2, Config{})
		l.topic("t", map[int32][]cluster.BrokerID{0: {1, 2}})
		synctest.Wait()
		if !a.IsActive() || b.IsActive() {
			t.Fatalf("active: %v %v", a.IsActive(), b.IsActive())
		}
		a.client.become(zkutil.Expired)
		synctest.Wait()
		if a.IsActive() || b.ActiveEpoch() != 2 {
			t.Fatalf("active: %v, epoch %d", a.IsActive(), b.ActiveEpoch())
		}
		l.wantHeard(2, "t", "lead 0:1@0", "meta 0:1@0", "lead 0:2@1", "meta 0:2@1")
	})
}

func TestHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		defer l.end()
		m := l.start(1, Config{})
		ctx := t.Context()
		shutdown := &kmsg.ControlledShutdownRequest{Version: 3, BrokerID: 2, BrokerEpoch: -1}
		if resp := New(Options{BrokerID: 9}).HandleControlledShutdown(ctx, shutdown); resp.ErrorCode != codeNotController || resp.Version != 3 {
			t.Errorf("standby answered %+v", resp)
		}
		l.bystander(2)
		l.topic("t", map[int32][]cluster.BrokerID{0: {2, 1}})
		synctest.Wait()
		if resp := m.HandleControlledShutdown(ctx, shutdown); resp.ErrorCode != 0 || len(resp.PartitionsRemaining) != 0 {
			t.Errorf("ControlledShutdown: %+v", resp)
		}
		elect := &kmsg.ElectLeadersRequest{Version: 2, Topics: []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0}}}}
		resp := m.HandleElectLeaders(ctx, elect)
		if len(resp.Topics) != 1 || resp.Topics[0].Partitions[0].ErrorCode != 80 {
			t.Errorf("ElectLeaders: %+v", resp)
		}
		alter := &kmsg.AlterPartitionRequest{Version: 3, BrokerID: 1, BrokerEpoch: 7}
		if resp := m.HandleAlterPartition(ctx, alter); resp.ErrorCode != 77 {
			t.Errorf("AlterPartition: %+v", resp)
		}
		m.client.become(zkutil.Suspended) // the election waits for ZooKeeper
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if resp := m.HandleElectLeaders(short, elect); resp.ErrorCode != codeRequestTimedOut {
			t.Errorf("ElectLeaders while ZooKeeper is away: %+v", resp)
		}
		m.client.become(zkutil.Connected)
		advance(time.Second)
		if resp := m.HandleElectLeaders(ctx, elect); resp.ErrorCode != 0 {
			t.Errorf("ElectLeaders afterwards: %+v", resp)
		}
	})
}

// Stopping deletes nothing: /controller goes with the session, which the broker closes last.
func TestStopDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		m := l.start(1, Config{})
		synctest.Wait()
		l.end()
		if m.IsActive() {
			t.Error("active after Run ended")
		}
		if resp := l.zk.do(l.zk.admin, zkop.Request{Kind: zkop.Exists, Path: znode.ControllerPath}); resp[0].Err != nil {
			t.Errorf("/controller: %v", resp[0].Err)
		}
		if resp := m.HandleElectLeaders(t.Context(), &kmsg.ElectLeadersRequest{Version: 2}); resp.ErrorCode != codeNotController {
			t.Errorf("answered %d after the end", resp.ErrorCode)
		}
		if err := m.client.Close(); err != nil {
			t.Error(err)
		}
		if resp := l.zk.do(l.zk.admin, zkop.Request{Kind: zkop.Exists, Path: znode.ControllerPath}); resp[0].Err == nil {
			t.Error("/controller outlived its session")
		}
	})
}
