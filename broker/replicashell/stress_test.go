package replicashell

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/record"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// TestSlowDiskHoldsBackNoOther is V3 discussion 8: a follower's disk hangs, the partitions on its other disk
// replicate as if nothing were.
func TestSlowDiskHoldsBackNoOther(t *testing.T) {
	l := newLab(t, 1, func(o *Options) { o.ReplicaLagTimeMax = time.Hour; o.FetchStreams = 1 })
	l.dirs = []string{"/a", "/b"}
	b := l.start(2, vfs.NewMem(func() int64 { return time.Now().UnixMilli() }))
	var tps []cluster.TopicPartition
	for i := range int32(8) {
		tps = append(tps, cluster.TopicPartition{Topic: "t", Partition: i})
	}
	l.decideAll(tps, 1, ids(1, 2), ids(1, 2))
	release, hangs := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.fs.SetHook(func(op vfs.Op, name string) {
		if strings.HasPrefix(strings.TrimPrefix(name, "/"), "a/") && op == vfs.OpWrite {
			once.Do(func() { close(hangs) })
			<-release
		}
	})
	onA := map[cluster.TopicPartition]bool{}
	for _, tp := range tps {
		log, _ := b.store.Log(tp)
		onA[tp] = log.Dir() == "/a"
	}
	waiting := map[cluster.TopicPartition]<-chan ProduceResult{}
	for _, tp := range tps {
		if onA[tp] {
			waiting[tp] = l.brokers[1].produceAsync(t, tp, -1, patience, "a", 1)
		}
	}
	<-hangs
	for range 20 {
		for _, tp := range tps {
			if !onA[tp] {
				if r := l.brokers[1].produce(t, tp, -1, "b", 1); r.Err != 0 {
					t.Fatalf("%+v", r)
				}
			}
		}
	}
	close(release)
	for tp, w := range waiting {
		if r := <-w; r.Err != 0 {
			t.Fatalf("%s: %+v", tp, r)
		}
	}
}

// ledger is what producers were told: value by partition and offset.
type ledger struct {
	mu    sync.Mutex
	acked map[cluster.TopicPartition]map[int64]string
	n     int
}

// TestLeadersMoveUnderLoad keeps moving leaders within the ISR, cutting brokers off and telling some of them
// late, while producers write with acks=all. At the end every acknowledged record is at its offset, and all
// logs are the same bytes.
func TestLeadersMoveUnderLoad(t *testing.T) {
	l := newLab(t, 3, func(o *Options) { o.ReplicaLagTimeMax = 150 * time.Millisecond; o.FetchWaitMax = 20 * time.Millisecond })
	var tps []cluster.TopicPartition
	for i := range int32(6) {
		tps = append(tps, cluster.TopicPartition{Topic: "t", Partition: i})
	}
	l.decideAll(tps, 1, ids(1, 2, 3), ids(1, 2, 3))
	led := &ledger{acked: map[cluster.TopicPartition]map[int64]string{}}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	enough := time.Now().Add(2 * time.Second)
	var wg sync.WaitGroup
	for _, tp := range tps { // all before the first producer reads the map
		led.acked[tp] = map[int64]string{}
	}
	for i, tp := range tps {
		wg.Add(1)
		go func() { defer wg.Done(); l.load(ctx, tp, led, rand.New(rand.NewPCG(1, uint64(i)))) }()
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for ctx.Err() == nil {
		switch rng.IntN(4) {
		case 0:
			l.setCut(cluster.BrokerID(1+rng.IntN(3)), rng.IntN(2) == 0)
		default:
			l.elect(tps[rng.IntN(len(tps))], rng)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(1+rng.IntN(20)) * time.Millisecond):
		}
		if led.count() >= 100 && time.Now().After(enough) {
			cancel()
		}
	}
	wg.Wait()
	for id := cluster.BrokerID(1); id <= 3; id++ {
		l.setCut(id, false)
	}
	for _, tp := range tps {
		l.elect(tp, nil)
		eventually(t, "ISR of "+tp.String()+" is full", func() bool { s, _ := l.zk.state(t, tp); return len(s.ISR) == 3 })
		l.sameLogs(tp, 1, 2, 3)
		l.checkLedger(tp, led)
	}
	t.Logf("%d records acknowledged", led.n)
	if led.n < 100 {
		t.Errorf("only %d records were acknowledged", led.n)
	}
}

func (led *ledger) count() int {
	led.mu.Lock()
	defer led.mu.Unlock()
	return led.n
}

func (l *lab) load(ctx context.Context, tp cluster.TopicPartition, led *ledger, rng *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		s, _ := l.zk.state(l.t, tp)
		value := fmt.Sprintf("%s/%d/%d", tp, n, s.LeaderEpoch)
		r := l.brokers[max(1, s.Leader)].produce1(l.t, tp, value, time.Duration(5+rng.IntN(100))*time.Millisecond)
		if r.Err != 0 {
			continue
		}
		led.mu.Lock()
		led.acked[tp][r.BaseOffset] = value
		led.n++
		led.mu.Unlock()
	}
}

func (b *broker) produce1(t *testing.T, tp cluster.TopicPartition, value string, timeout time.Duration) ProduceResult {
	rb := record.NewBuilder(0)
	rb.Add(time.Now().UnixMilli(), nil, []byte(value))
	data, err := rb.Build(nil)
	if err != nil {
		t.Error(err)
	}
	done := make(chan ProduceResult, 1)
	b.m.Produce(context.Background(), -1, timeout, []ProducePartition{{TP: tp, Records: data}}, func(r []ProduceResult) { done <- r[0] })
	return <-done
}

// elect moves the leader to a member of the znode's ISR. With rng, some brokers are not told.
func (l *lab) elect(tp cluster.TopicPartition, rng *rand.Rand) {
	l.zk.mu.Lock()
	n := l.zk.nodes[znode.StatePath(tp)]
	s, err := znode.DecodeState(tp, n.data)
	if err != nil {
		l.t.Error(err)
	}
	s.LeaderEpoch++
	if rng != nil {
		s.Leader = s.ISR[rng.IntN(len(s.ISR))]
	}
	n.data, n.version = s.Encode(), n.version+1
	l.zk.nodes[znode.StatePath(tp)] = n
	l.zk.mu.Unlock()
	for id := cluster.BrokerID(1); id <= 3; id++ {
		if rng != nil && rng.IntN(4) == 0 {
			continue
		}
		req := kmsg.NewPtrLeaderAndISRRequest()
		req.Version, req.ControllerEpoch, req.BrokerEpoch = 5, l.ctl, int64(100+id)
		p := kmsg.NewLeaderAndISRRequestTopicPartition()
		p.Partition, p.Leader, p.LeaderEpoch, p.ZKVersion = tp.Partition, int32(s.Leader), int32(s.LeaderEpoch), n.version
		p.ISR, p.Replicas = cluster.IDsToInt32(s.ISR), []int32{1, 2, 3}
		l.mu.Lock()
		topic := kmsg.LeaderAndISRRequestTopicState{Topic: tp.Topic, TopicID: l.ids[tp.Topic]}
		l.mu.Unlock()
		topic.PartitionStates = append(topic.PartitionStates, p)
		req.TopicStates = append(req.TopicStates, topic)
		for other := int32(1); other <= 3; other++ {
			req.LiveLeaders = append(req.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: other, Host: "mem", Port: other})
		}
		l.brokers[id].m.HandleLeaderAndISR(context.Background(), req)
	}
}

// checkLedger reads the log of the leader.
func (l *lab) checkLedger(tp cluster.TopicPartition, led *ledger) {
	l.t.Helper()
	values := map[int64]string{}
	for rest := l.brokers[1].contents(l.t, tp); len(rest) > 0; {
		var b record.Batch
		var err error
		if b, rest, err = record.Next(rest); err != nil {
			l.t.Fatal(err)
		}
		it, err := b.Records(nil, 1<<20)
		if err != nil {
			l.t.Fatal(err)
		}
		for it.Next() {
			values[b.BaseOffset()] = string(it.Record().Value)
		}
	}
	for off, want := range led.acked[tp] {
		if values[off] != want {
			l.t.Errorf("%s: record %q was acknowledged at offset %d, there is %q", tp, want, off, values[off])
		}
	}
}
