package replicashell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// TestStaleControlRequests: an old controller and requests for an earlier registration are refused as a whole.
func TestStaleControlRequests(t *testing.T) {
	l := newLab(t, 1, nil)
	l.ctl = 5
	l.decide(topicT, 1, ids(1), ids(1))
	m := l.brokers[1].m
	lai := func(controller int32, broker int64) int16 {
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.Version, req.ControllerEpoch, req.BrokerEpoch = 5, controller, broker
		return m.HandleLeaderAndISR(context.Background(), req).ErrorCode
	}
	stop := func(controller int32, broker int64) int16 {
		req := kmsg.NewPtrStopReplicaRequest()
		req.Version, req.ControllerEpoch, req.BrokerEpoch = 3, controller, broker
		return m.HandleStopReplica(context.Background(), req).ErrorCode
	}
	for name, send := range map[string]func(int32, int64) int16{"LeaderAndISR": lai, "StopReplica": stop} {
		for _, c := range []struct {
			controller int32
			broker     int64
			want       int16
		}{{4, 101, 11}, {5, 100, 77}, {5, 101, 0}, {5, -1, 0}, {5, 102, 0}} {
			if got := send(c.controller, c.broker); got != c.want {
				t.Errorf("%s of controller epoch %d to broker epoch %d: error %d, want %d", name, c.controller, c.broker, got, c.want)
			}
		}
	}
}

func TestStopReplicaDeletes(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	l.brokers[1].produce(t, topicT, -1, "a", 1)
	waiting := make(chan FetchResult, 1)
	go func() { waiting <- l.brokers[1].consume(t, topicT, 1, time.Minute) }()
	eventually(t, "the consumer is parked", func() bool {
		p := l.brokers[1].m.partition(topicT)
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.waiters, func(e *session.Entry) bool { return e.Session.Replica < 0 })
	})
	for id := cluster.BrokerID(1); id <= 2; id++ {
		l.stopAt(id, topicT)
		if _, ok := l.brokers[id].store.Log(topicT); ok {
			t.Errorf("broker %d still has the log", id)
		}
		if len(l.brokers[id].m.Partitions()) != 0 {
			t.Errorf("broker %d still hosts the partition", id)
		}
	}
	if r := <-waiting; r.Err != int16(replica.CodeUnknownTopicOrPartition) && r.Err != int16(replica.CodeNotLeaderOrFollower) {
		t.Fatalf("%+v", r)
	}
	// The topic is made anew, under another id, while followers' sessions still know the old one.
	delete(l.epochs, topicT)
	l.mu.Lock()
	l.ids["t"] = cluster.TopicID{42}
	l.mu.Unlock()
	l.decide(topicT, 2, ids(1, 2), ids(2, 1))
	if r := l.brokers[2].produce(t, topicT, -1, "b", 3); r.Err != 0 || r.BaseOffset != 0 {
		t.Fatalf("%+v", r)
	}
	l.sameLogs(topicT, 1, 2)
}

// TestStraysArePutAside: two topics were deleted while broker 1 was away, one of them made anew. The first,
// complete request of a controller tells it; V3 points C.5 and E.4.
func TestStraysArePutAside(t *testing.T) {
	l := newLab(t, 2, nil)
	gone := cluster.TopicPartition{Topic: "gone"}
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	l.decide(gone, 1, ids(1), ids(1))
	l.brokers[1].produce(t, topicT, -1, "old", 9)
	l.brokers[1].produce(t, gone, -1, "old", 9)
	fs := l.brokers[1].fs
	l.stop(1)
	b := l.start(1, fs)
	l.mu.Lock()
	l.ids["t"] = cluster.TopicID{77}
	l.mu.Unlock()
	l.stopAt(2, topicT)
	delete(l.epochs, topicT)
	l.full = true
	l.decide(topicT, 2, ids(2), ids(2, 1))
	eventually(t, "broker 1 follows the new topic", func() bool { return len(l.brokers[2].info(t, topicT).ISR) == 2 })
	if i := b.info(t, topicT); i.LogEnd != 0 {
		t.Fatalf("the old log is still there: %+v", i)
	}
	if _, ok := b.store.Log(gone); ok {
		t.Fatal("the log of the deleted topic is still served")
	}
	if r := l.brokers[2].produce(t, topicT, -1, "new", 2); r.Err != 0 || r.BaseOffset != 0 {
		t.Fatalf("%+v", r)
	}
	l.sameLogs(topicT, 1, 2)
	strays := 0
	entries, err := fs.List("/data")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name, "-stray") {
			strays++
		}
	}
	if strays != 2 {
		t.Fatalf("%d logs were put aside, want 2", strays)
	}
}

// stopAt deletes a partition on one broker.
func (l *lab) stopAt(id cluster.BrokerID, tp cluster.TopicPartition) {
	l.t.Helper()
	req := kmsg.NewPtrStopReplicaRequest()
	req.Version, req.ControllerEpoch, req.BrokerEpoch = 3, l.ctl, int64(100+id)
	req.Topics = []kmsg.StopReplicaRequestTopic{{Topic: tp.Topic, PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{
		{Partition: tp.Partition, LeaderEpoch: -2, Delete: true}}}}
	resp := l.brokers[id].m.HandleStopReplica(context.Background(), req)
	if resp.ErrorCode != 0 || len(resp.Partitions) != 1 || resp.Partitions[0].ErrorCode != 0 {
		l.t.Fatalf("%+v", resp)
	}
}

// TestLostZooKeeperReplies: the write of the ISR is applied and its reply lost, or it is never applied, or the
// read-back fails for a while.
func TestLostZooKeeperReplies(t *testing.T) {
	for _, applied := range []bool{true, false} {
		t.Run(fmt.Sprintf("applied=%v", applied), func(t *testing.T) {
			l := newLab(t, 2, nil)
			var lost, unread atomic.Int32
			l.zk.setHook(func(r zkop.Request) (error, bool) {
				switch {
				case r.Kind == zkop.Set && lost.Add(1) == 1:
					return zkop.ErrOutcomeUnknown, applied
				case r.Kind == zkop.Get && lost.Load() == 1 && unread.Add(1) == 1:
					return zkop.ErrOutcomeUnknown, false
				}
				return nil, true
			})
			l.decide(topicT, 1, ids(1), ids(1, 2))
			eventually(t, "the ISR has grown", func() bool { return len(l.brokers[1].info(t, topicT).ISR) == 2 })
			s, v := l.zk.state(t, topicT)
			if !slices.Equal(s.ISR, ids(1, 2)) || v != l.brokers[1].info(t, topicT).ZKVersion || v != 1 {
				t.Fatalf("znode %+v at version %d, leader believes %d", s, v, l.brokers[1].info(t, topicT).ZKVersion)
			}
		})
	}
}

// TestISRWriteKeepsUnknownFields: what another tool put into the state znode survives.
func TestISRWriteKeepsUnknownFields(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1), ids(1, 2), 1)
	l.zk.mu.Lock()
	n := l.zk.nodes[znode.StatePath(topicT)]
	n.data = []byte(`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1],"note":{"by":"us"}}`)
	l.zk.nodes[znode.StatePath(topicT)] = n
	l.zk.mu.Unlock()
	l.decideFollower(topicT, 1, ids(1), ids(1, 2), 2)
	eventually(t, "the ISR has grown", func() bool { return len(l.brokers[1].info(t, topicT).ISR) == 2 })
	l.zk.mu.Lock()
	defer l.zk.mu.Unlock()
	want := `{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2],"note":{"by":"us"}}`
	if got := string(l.zk.nodes[znode.StatePath(topicT)].data); got != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// TestISRWriteRefused: the controller moved the znode on; the leader leaves the ISR alone and is freed by the
// next decision.
func TestISRWriteRefused(t *testing.T) {
	l := newLab(t, 3, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2, 3), 1, 2)
	l.publish(topicT, znode.State{LeaderAndISR: cluster.LeaderAndISR{Leader: 2, LeaderEpoch: 1, ISR: ids(1, 2)}})
	l.decideFollower(topicT, 1, ids(1, 2), ids(1, 2, 3), 3)
	eventually(t, "the ISR change is blocked", func() bool {
		p := l.brokers[1].m.partition(topicT)
		p.mu.Lock()
		defer p.mu.Unlock()
		_, blocked := p.core.ISRChangePending()
		return blocked
	})
	if s, v := l.zk.state(t, topicT); s.Leader != 2 || v != 1 {
		t.Fatalf("the znode was overwritten: %+v at %d", s, v)
	}
	l.epochs[topicT] = 1
	l.decide(topicT, 1, ids(1, 2), ids(1, 2, 3))
	eventually(t, "the ISR has grown", func() bool { return len(l.brokers[1].info(t, topicT).ISR) == 3 })
}

// decideFollower sends the present decision to one more broker.
func (l *lab) decideFollower(tp cluster.TopicPartition, leader cluster.BrokerID, isr, replicas []cluster.BrokerID, to cluster.BrokerID) {
	l.t.Helper()
	req := kmsg.NewPtrLeaderAndISRRequest()
	req.Version, req.ControllerEpoch, req.BrokerEpoch = 5, l.ctl, int64(100+to)
	s := kmsg.NewLeaderAndISRRequestTopicPartition()
	s.Partition, s.Leader, s.LeaderEpoch, s.ISR, s.Replicas = tp.Partition, int32(leader), int32(l.epochs[tp]), cluster.IDsToInt32(isr), cluster.IDsToInt32(replicas)
	l.mu.Lock()
	id := l.ids[tp.Topic]
	l.mu.Unlock()
	req.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{Topic: tp.Topic, TopicID: id, PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{s}}}
	req.LiveLeaders = []kmsg.LeaderAndISRRequestLiveLeader{{BrokerID: int32(leader), Host: "mem", Port: int32(leader)}}
	if resp := l.brokers[to].m.HandleLeaderAndISR(context.Background(), req); resp.ErrorCode != 0 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		l.t.Fatalf("%+v", resp)
	}
}

// TestCorruptPartitionHoldsBackNoOther: one partition's records arrive damaged; the others on the same stream go
// on, and the one recovers when the damage ends (KAFKA-8346, KAFKA-4384).
func TestCorruptPartitionHoldsBackNoOther(t *testing.T) {
	l := newLab(t, 2, func(o *Options) { o.FetchStreams = 1; o.ReplicaLagTimeMax = time.Hour })
	var tps []cluster.TopicPartition
	for i := range int32(10) {
		tps = append(tps, cluster.TopicPartition{Topic: "t", Partition: i})
	}
	var damage atomic.Bool
	damage.Store(true)
	l.tamper = func(_ cluster.BrokerID, resp *kmsg.FetchResponse) {
		for _, tt := range resp.Topics {
			for _, p := range tt.Partitions {
				if p.Partition == 4 && len(p.RecordBatches) > 0 && damage.Load() {
					p.RecordBatches[len(p.RecordBatches)-1] ^= 0xff
				}
			}
		}
	}
	l.decideAll(tps, 1, ids(1, 2), ids(1, 2))
	waiting := map[cluster.TopicPartition]<-chan ProduceResult{}
	for _, tp := range tps {
		waiting[tp] = l.brokers[1].produceAsync(t, tp, -1, patience, "a", 3)
	}
	for _, tp := range tps {
		if tp.Partition != 4 {
			if r := <-waiting[tp]; r.Err != 0 {
				t.Fatalf("%+v", r)
			}
		}
	}
	select {
	case r := <-waiting[tps[4]]:
		t.Fatalf("damaged records were acknowledged: %+v", r)
	default:
	}
	if end := l.brokers[2].info(t, tps[4]).LogEnd; end != 0 {
		t.Fatalf("damaged records were appended up to %d", end)
	}
	damage.Store(false)
	if r := <-waiting[tps[4]]; r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	l.sameLogs(tps[4], 1, 2)
}

// TestLogDirFails: its partitions answer KAFKA_STORAGE_ERROR, those of the other directory go on, the
// controller is told.
func TestLogDirFails(t *testing.T) {
	l := newLabDirs(t, 1, "/a", "/b")
	b := l.brokers[1]
	tps := []cluster.TopicPartition{{Topic: "t", Partition: 0}, {Topic: "t", Partition: 1}, {Topic: "t", Partition: 2}, {Topic: "t", Partition: 3}}
	l.decideAll(tps, 1, ids(1), ids(1))
	var bad, good cluster.TopicPartition
	for _, tp := range tps {
		if log, _ := b.store.Log(tp); log.Dir() == "/a" {
			bad = tp
		} else {
			good = tp
		}
	}
	b.fs.Inject(vfs.Rule{Pattern: "/a/*/*.log", Err: errors.New("input/output error")})
	b.fs.Inject(vfs.Rule{Pattern: "/a/*", Err: errors.New("input/output error")})
	if r := b.produce(t, bad, -1, "a", 1); r.Err != int16(replica.CodeKafkaStorageError) {
		t.Fatalf("%+v", r)
	}
	if i := b.info(t, bad); i.Role != replica.Offline {
		t.Fatalf("%+v", i)
	}
	if r := b.produce(t, good, -1, "a", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	if r := b.consume(t, bad, 0, time.Minute); r.Err != int16(replica.CodeKafkaStorageError) {
		t.Fatalf("%+v", r)
	}
	eventually(t, "the controller is told", func() bool { return len(l.zk.children("/log_dir_event_notification/")) == 1 })
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Version = 4
	for _, d := range b.m.DescribeLogDirs(context.Background(), req).Dirs {
		if want := map[string]int16{"/a": 56}[d.Dir]; d.ErrorCode != want {
			t.Errorf("%s: error %d, want %d", d.Dir, d.ErrorCode, want)
		}
	}
}

func newLabDirs(t *testing.T, n int, dirs ...string) *lab {
	l := newLab(t, 0, nil)
	l.dirs = dirs
	for id := 1; id <= n; id++ {
		l.start(cluster.BrokerID(id), vfs.NewMem(func() int64 { return time.Now().UnixMilli() }))
	}
	return l
}

// TestHighWatermarkSurvivesARestart: it is checkpointed at the end and read back; before the first LeaderAndISR
// nothing is overwritten.
func TestHighWatermarkSurvivesARestart(t *testing.T) {
	l := newLab(t, 1, nil)
	l.decide(topicT, 1, ids(1), ids(1))
	l.brokers[1].produce(t, topicT, -1, "a", 7)
	fs := l.brokers[1].fs
	for range 2 { // the second life hears of nothing
		l.stop(1)
		l.start(1, fs)
	}
	if hw, ok := l.brokers[1].store.HighWatermark(topicT); !ok || hw != 7 {
		t.Fatalf("checkpoint holds %d, %v", hw, ok)
	}
	l.decide(topicT, 2, ids(1, 2), ids(1, 2), 1)
	if i := l.brokers[1].info(t, topicT); i.HighWatermark != 7 || i.Role != replica.Follower {
		t.Fatalf("%+v", i)
	}
}

// TestFollowerBelowTheLeadersStart: retention on the leader moved past the follower's end (KAFKA-12996).
func TestFollowerBelowTheLeadersStart(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1), ids(1, 2), 1)
	for range 10 {
		l.brokers[1].produce(t, topicT, -1, "a", 10)
	}
	log, _ := l.brokers[1].store.Log(topicT)
	if err := log.AdvanceLogStart(60); err != nil {
		t.Fatal(err)
	}
	l.decide(topicT, 1, ids(1), ids(1, 2))
	eventually(t, "the follower is in sync", func() bool { return len(l.brokers[1].info(t, topicT).ISR) == 2 })
	if i := l.brokers[2].info(t, topicT); i.LogStart != 60 || i.LogEnd != 100 {
		t.Fatalf("%+v", i)
	}
	for _, b := range l.brokers {
		log, _ := b.store.Log(topicT)
		if s, hw, e := log.LogStartOffset(), log.HighWatermark(), log.LogEndOffset(); s > hw || hw > e {
			t.Errorf("broker %d: start %d, high watermark %d, end %d", b.id, s, hw, e)
		}
	}
}

// TestDivergedFollowerIsCutByEpoch: two leaders of different epochs wrote different records at the same offsets.
func TestDivergedFollowerIsCutByEpoch(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	l.brokers[1].produce(t, topicT, -1, "common", 5)
	l.setCut(1, true)
	l.setCut(2, true)
	l.brokers[1].produce(t, topicT, 1, "only on one", 20)
	l.decide(topicT, 2, ids(2), ids(1, 2), 2)
	l.brokers[2].produce(t, topicT, 1, "two", 1)
	l.setCut(1, false)
	l.setCut(2, false)
	l.decide(topicT, 2, ids(2), ids(1, 2))
	l.sameLogs(topicT, 2, 1)
	if end := l.brokers[1].info(t, topicT).LogEnd; end != 6 {
		t.Fatalf("log end is %d, want 6", end)
	}
}

// TestLeaderRestartsAnEmptyEpoch: leader changes without records between them (KAFKA-7164, KAFKA-10706).
func TestEpochsWithoutRecords(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	l.brokers[1].produce(t, topicT, -1, "a", 5)
	for range 3 {
		l.decide(topicT, 2, ids(1, 2), ids(1, 2))
		l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	}
	if r := l.brokers[1].produce(t, topicT, -1, "b", 5); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	l.sameLogs(topicT, 1, 2)
	one, _ := l.brokers[1].store.Log(topicT)
	two, _ := l.brokers[2].store.Log(topicT)
	for e := range cluster.LeaderEpoch(8) {
		e1, o1 := one.EndOffsetForEpoch(e)
		e2, o2 := two.EndOffsetForEpoch(e)
		if o1 != o2 && !(o1 == 5 || o2 == 5) {
			t.Errorf("epoch %d ends at (%d, %d) on the leader, (%d, %d) on the follower", e, e1, o1, e2, o2)
		}
	}
}

func TestListOffsets(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	l.brokers[1].produce(t, topicT, -1, "a", 5)
	l.sameLogs(topicT, 1, 2)
	ask := func(b cluster.BrokerID, replicaID int32, timestamp int64, epoch int32) kmsg.ListOffsetsResponseTopicPartition {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version, req.ReplicaID = 9, replicaID
		req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "t", Partitions: []kmsg.ListOffsetsRequestTopicPartition{{CurrentLeaderEpoch: epoch, Timestamp: timestamp}}}}
		return l.brokers[b].m.ListOffsets(context.Background(), req).Topics[0].Partitions[0]
	}
	for _, c := range []struct {
		name      string
		b         cluster.BrokerID
		replicaID int32
		timestamp int64
		epoch     int32
		code      int16
		offset    int64
	}{
		{"latest of the leader", 1, -1, -1, -1, 0, 5},
		{"earliest", 1, -1, -2, -1, 0, 0},
		{"earliest local", 1, -1, -4, -1, 0, 0},
		{"tiered", 1, -1, -5, -1, 0, -1},
		{"largest timestamp", 1, -1, -3, -1, 0, 4},
		{"by time, the first", 1, -1, 1, -1, 0, 0},
		{"by time, after the last", 1, -1, time.Now().Add(time.Hour).UnixMilli(), -1, 0, -1},
		{"follower, as a client", 2, -1, -1, -1, 6, -1},
		{"follower, as a tool", 2, -2, -1, -1, 0, 5},
		{"follower behind", 2, -2, -1, 9, 75, -1},
		{"unknown special", 1, -1, -9, -1, 35, -1},
	} {
		r := ask(c.b, c.replicaID, c.timestamp, c.epoch)
		ok := r.ErrorCode == c.code && (r.Offset == c.offset || c.timestamp == -3 && r.Offset >= 0)
		if !ok {
			t.Errorf("%s: error %d offset %d, want %d and %d", c.name, r.ErrorCode, r.Offset, c.code, c.offset)
		}
	}
	if r := ask(2, -2, -1, -1); r.LeaderEpoch != 0 {
		t.Errorf("epoch of the replica: %d", r.LeaderEpoch)
	}
}

func TestDeleteRecords(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	for range 5 {
		l.brokers[1].produce(t, topicT, -1, "a", 10)
	}
	ask := func(b cluster.BrokerID, offset int64, timeout time.Duration) kmsg.DeleteRecordsResponseTopicPartition {
		req := kmsg.NewPtrDeleteRecordsRequest()
		req.Version, req.TimeoutMillis = 2, int32(timeout/time.Millisecond)
		req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: offset}}}}
		return l.brokers[b].m.DeleteRecords(context.Background(), req).Topics[0].Partitions[0]
	}
	if r := ask(1, 30, patience); r.ErrorCode != 0 || r.LowWatermark != 30 {
		t.Fatalf("%+v", r)
	}
	if i := l.brokers[2].info(t, topicT); i.LogStart != 30 {
		t.Fatalf("the follower's log starts at %d", i.LogStart)
	}
	if r := l.brokers[1].consume(t, topicT, 29, 0); r.Err != 1 {
		t.Fatalf("%+v", r)
	}
	if r := ask(1, 51, time.Second); r.ErrorCode != 1 {
		t.Fatalf("beyond the high watermark: %+v", r)
	}
	if r := ask(2, 40, time.Second); r.ErrorCode != 6 {
		t.Fatalf("on a follower: %+v", r)
	}
	l.setCut(1, true)
	if r := ask(1, 40, 50*time.Millisecond); r.ErrorCode != 7 {
		t.Fatalf("with an unreachable follower: %+v", r)
	}
	l.setCut(1, false)
	if r := ask(1, -1, patience); r.ErrorCode != 0 || r.LowWatermark != 50 {
		t.Fatalf("%+v", r)
	}
}

// TestInternalAppendAndReadBack is the group coordinator's way.
func TestInternalAppendAndReadBack(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	m := l.brokers[1].m
	for range 3 {
		if err := m.AppendInternal(context.Background(), topicT, batch(t, "offsets", 2), -1); err != nil {
			t.Fatal(err)
		}
	}
	got, end, err := m.ReadLog(topicT, 2, 1<<20)
	if err != nil || end != 6 || len(got) == 0 {
		t.Fatalf("%d bytes, end %d, %v", len(got), end, err)
	}
	if err := l.brokers[2].m.AppendInternal(context.Background(), topicT, batch(t, "x", 1), -1); err == nil {
		t.Fatal("a follower took an append")
	}
}

// TestManyPartitionsInOneRequest: ten thousand at once, and nothing afterwards costs by their number.
func TestManyPartitionsInOneRequest(t *testing.T) {
	n := int32(10_000)
	if testing.Short() || raceEnabled {
		n = 1000
	}
	l := newLab(t, 2, nil)
	var tps []cluster.TopicPartition
	for i := range n {
		tps = append(tps, cluster.TopicPartition{Topic: "t", Partition: i})
	}
	begin := time.Now()
	l.decideAll(tps, 1, ids(1, 2), ids(1, 2))
	t.Logf("%d partitions on two brokers: %v", n, time.Since(begin))
	begin = time.Now()
	if r := l.brokers[1].produce(t, tps[n/2], -1, "a", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	t.Logf("first record with acks=all: %v", time.Since(begin))
	begin = time.Now()
	for i := range n {
		if r := l.brokers[1].produceAsync(t, tps[i], -1, patience, "a", 1); i == n-1 {
			<-r
		}
	}
	t.Logf("one record in each: %v", time.Since(begin))
	begin = time.Now()
	l.decideAll(tps, 2, ids(1, 2), ids(1, 2))
	t.Logf("all leaders moved: %v", time.Since(begin))
	if r := l.brokers[2].produce(t, tps[n/2], -1, "b", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	t.Logf("with the first record after it: %v", time.Since(begin))
	if hosted := len(l.brokers[2].m.Partitions()); hosted != int(n) {
		t.Fatalf("%d partitions are hosted", hosted)
	}
}
