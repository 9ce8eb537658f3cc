package replicashell

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/record"
	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/broker/storage"
	"kctl/broker/vfs"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// patience bounds every wait for what must happen. Only a test that fails waits so long.
const patience = time.Minute

// eventually polls an observed condition until it holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-deadline.C:
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

// zkFake is a tree of nodes without sessions; hook may fail or lose an operation.
type zkFake struct {
	mu    sync.Mutex
	nodes map[string]zkNode
	seq   int
	hook  func(zkop.Request) (fail error, apply bool)
}

type zkNode struct {
	data    []byte
	version int32
}

func newZKFake() *zkFake { return &zkFake{nodes: map[string]zkNode{}} }

func (z *zkFake) Do(_ context.Context, _ uint64, reqs ...zkop.Request) []zkop.Response {
	z.mu.Lock()
	defer z.mu.Unlock()
	out := make([]zkop.Response, len(reqs))
	for i, r := range reqs {
		apply, fail := true, error(nil)
		if z.hook != nil {
			fail, apply = z.hook(r)
		}
		if apply {
			out[i] = z.one(r)
		}
		if fail != nil {
			out[i] = zkop.Response{Err: fail}
		}
	}
	return out
}

func (z *zkFake) one(r zkop.Request) zkop.Response {
	n, ok := z.nodes[r.Path]
	switch r.Kind {
	case zkop.Get:
		if !ok {
			return zkop.Response{Err: zkop.ErrNoNode}
		}
		return zkop.Response{Data: n.data, Stat: zkop.Stat{Version: n.version}}
	case zkop.Set:
		switch {
		case !ok:
			return zkop.Response{Err: zkop.ErrNoNode}
		case r.Version != zkop.AnyVersion && r.Version != n.version:
			return zkop.Response{Err: zkop.ErrBadVersion}
		}
		n.data, n.version = r.Data, n.version+1
		z.nodes[r.Path] = n
		return zkop.Response{Stat: zkop.Stat{Version: n.version}}
	case zkop.Create:
		path := r.Path
		if r.Mode == zkop.PersistentSequential {
			path += fmt.Sprintf("%010d", z.seq)
			z.seq++
		}
		z.nodes[path] = zkNode{data: r.Data}
		return zkop.Response{Path: path}
	}
	return zkop.Response{Err: zkop.ErrUnimplemented}
}

func (z *zkFake) Session() zkutil.Session { return zkutil.Session{Epoch: 1, State: zkutil.Connected} }
func (z *zkFake) Subscribe() (<-chan zkutil.Notice, func()) {
	return make(chan zkutil.Notice), func() {}
}
func (z *zkFake) Close() error { return nil }

func (z *zkFake) setHook(hook func(zkop.Request) (error, bool)) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.hook = hook
}

func (z *zkFake) state(t *testing.T, tp cluster.TopicPartition) (znode.State, cluster.ZKVersion) {
	t.Helper()
	z.mu.Lock()
	defer z.mu.Unlock()
	n := z.nodes[znode.StatePath(tp)]
	s, err := znode.DecodeState(tp, n.data)
	if err != nil {
		t.Fatal(err)
	}
	return s, cluster.ZKVersion(n.version)
}

func (z *zkFake) children(prefix string) []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	var out []string
	for p := range z.nodes {
		if strings.HasPrefix(p, prefix) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// broker is one manager on a memory disk, served in memory.
type broker struct {
	id      cluster.BrokerID
	m       *Manager
	fs      *vfs.Mem
	store   *storage.Manager
	cancel  context.CancelFunc
	stopped chan struct{}
}

// lab is a few brokers, a ZooKeeper, and the test as their controller.
type lab struct {
	t       *testing.T
	zk      *zkFake
	mu      sync.Mutex
	brokers map[cluster.BrokerID]*broker
	conns   map[cluster.BrokerID][]net.Conn // open, by the broker that serves
	cut     map[cluster.BrokerID]bool       // unreachable
	tamper  func(from cluster.BrokerID, resp *kmsg.FetchResponse)
	tune    func(*Options)
	dirs    []string
	config  func(topic string) storage.Config
	ids     map[string]cluster.TopicID
	epochs  map[cluster.TopicPartition]cluster.LeaderEpoch
	ctl     int32
	full    bool         // the next LeaderAndISR is complete
	ahead   atomic.Int64 // how far the brokers' clock is before the real one, in nanoseconds
}

// lagTimeMax is replica.lag.time.max.ms of the brokers. No test lasts as long: followers lag only when the test moves the
// clock, never because the machine is slow.
const lagTimeMax = time.Hour

func newLab(t *testing.T, n int, tune func(*Options)) *lab {
	l := &lab{t: t, zk: newZKFake(), brokers: map[cluster.BrokerID]*broker{}, conns: map[cluster.BrokerID][]net.Conn{},
		cut: map[cluster.BrokerID]bool{}, tune: tune, dirs: []string{"/data"}, ids: map[string]cluster.TopicID{},
		epochs: map[cluster.TopicPartition]cluster.LeaderEpoch{}, ctl: 1}
	l.config = func(string) storage.Config { return storage.DefaultConfig() }
	for id := 1; id <= n; id++ {
		l.start(cluster.BrokerID(id), vfs.NewMem(func() int64 { return time.Now().UnixMilli() }))
	}
	t.Cleanup(func() {
		for _, b := range l.brokers {
			l.stop(b.id)
		}
	})
	return l
}

func (l *lab) start(id cluster.BrokerID, fs *vfs.Mem) *broker {
	l.t.Helper()
	store, err := storage.OpenManager(fs, l.dirs, storage.ManagerOptions{BrokerID: id, Config: l.config})
	if err != nil {
		l.t.Fatal(err)
	}
	opts := Options{BrokerID: id, BrokerEpoch: func() cluster.BrokerEpoch { return cluster.BrokerEpoch(100 + id) }, Storage: store,
		ZK: l.zk, Dial: l.dial, TopicConfig: l.config, ReplicaLagTimeMax: lagTimeMax, FetchWaitMax: 100 * time.Millisecond,
		FetchBackoff: 100 * time.Millisecond, ISRNotifyLinger: 10 * time.Millisecond, HighWatermarkCheckpoint: time.Hour,
		RequestTimeout: 5 * time.Second, Now: func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }}
	if l.tune != nil {
		l.tune(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &broker{id: id, m: NewManager(opts), fs: fs, store: store, cancel: cancel, stopped: make(chan struct{})}
	go func() { defer close(b.stopped); _ = b.m.Run(ctx) }()
	l.mu.Lock()
	l.brokers[id] = b
	l.cut[id] = false
	l.mu.Unlock()
	return b
}

// stop ends a broker in order.
func (l *lab) stop(id cluster.BrokerID) {
	l.setCut(id, true)
	b := l.brokers[id]
	b.cancel()
	<-b.stopped
	if err := b.m.Close(context.Background()); err != nil && !strings.Contains(err.Error(), "closed") {
		l.t.Errorf("close of broker %d: %v", id, err)
	}
	_ = b.store.Close()
}

// setCut makes a broker unreachable, or reachable again.
func (l *lab) setCut(id cluster.BrokerID, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[id] = cut
	for _, c := range l.conns[id] {
		c.Close()
	}
	l.conns[id] = nil
}

// dial connects to the broker whose id is the port.
func (l *lab) dial(ctx context.Context, addr string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(port)
	id := cluster.BrokerID(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.brokers[id]
	if b == nil || l.cut[id] {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	l.conns[id] = append(l.conns[id], server)
	go l.serve(b, server)
	return client, nil
}

// serve answers the requests that brokers send each other.
func (l *lab) serve(b *broker, conn net.Conn) {
	defer conn.Close()
	for {
		var size [4]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		r := kbin.Reader{Src: frame}
		req := kmsg.RequestForKey(r.Int16())
		req.SetVersion(r.Int16())
		correlation := r.Int32()
		_ = r.NullableString()
		if req.IsFlexible() {
			kmsg.SkipTags(&r)
		}
		if err := req.ReadFrom(r.Src); err != nil {
			l.t.Errorf("bad request: %v", err)
			return
		}
		resp := l.handle(b, req)
		if resp == nil {
			return
		}
		out := kbin.AppendInt32(make([]byte, 4), correlation)
		if resp.IsFlexible() {
			out = append(out, 0)
		}
		out = resp.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// handle answers a request; nil hangs up.
func (l *lab) handle(b *broker, req kmsg.Request) kmsg.Response {
	ctx := context.Background()
	switch req := req.(type) {
	case *kmsg.ListOffsetsRequest:
		return b.m.ListOffsets(ctx, req)
	case *kmsg.OffsetForLeaderEpochRequest:
		return b.m.OffsetForLeaderEpoch(ctx, req)
	case *kmsg.FetchRequest:
		resp, err := l.fetch(ctx, b, req)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // the broker was deposed and its log cut back meanwhile: the server closes the connection
		}
		if err != nil {
			l.t.Errorf("read of a slice: %v", err)
		}
		l.mu.Lock()
		tamper := l.tamper
		l.mu.Unlock()
		if tamper != nil {
			tamper(b.id, resp)
		}
		return resp
	}
	l.t.Errorf("unexpected request %T", req)
	return req.ResponseKind()
}

func (l *lab) fetch(ctx context.Context, b *broker, req *kmsg.FetchRequest) (*kmsg.FetchResponse, error) {
	var failed error
	params := FetchParams{ReplicaID: cluster.BrokerID(req.ReplicaID), ReplicaEpoch: -1, MaxWait: time.Duration(req.MaxWaitMillis) * time.Millisecond,
		MinBytes: req.MinBytes, MaxBytes: req.MaxBytes, Version: req.Version, SessionID: req.SessionID, SessionEpoch: req.SessionEpoch}
	if req.Version >= 15 {
		params.ReplicaID, params.ReplicaEpoch = cluster.BrokerID(req.ReplicaState.ID), cluster.BrokerEpoch(req.ReplicaState.Epoch)
	}
	var parts, forgotten []FetchPartition
	for _, t := range req.Topics {
		for _, p := range t.Partitions {
			parts = append(parts, FetchPartition{TP: cluster.TopicPartition{Topic: l.topicName(t.Topic, t.TopicID), Partition: p.Partition},
				TopicID: t.TopicID, FetchOffset: p.FetchOffset, LogStartOffset: p.LogStartOffset, MaxBytes: p.PartitionMaxBytes,
				CurrentLeaderEpoch: cluster.LeaderEpoch(p.CurrentLeaderEpoch), LastFetchedEpoch: cluster.LeaderEpoch(p.LastFetchedEpoch)})
		}
	}
	for _, t := range req.ForgottenTopics {
		for _, p := range t.Partitions {
			forgotten = append(forgotten, FetchPartition{TP: cluster.TopicPartition{Topic: l.topicName(t.Topic, t.TopicID), Partition: p}, TopicID: t.TopicID})
		}
	}
	answer := b.m.Fetch(ctx, params, parts, forgotten)
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	resp.ErrorCode, resp.SessionID = answer.Err, answer.SessionID
	for _, r := range answer.Results {
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.ErrorCode, p.HighWatermark, p.LogStartOffset, p.LastStableOffset = r.TP.Partition, r.Err, r.HighWatermark, r.LogStartOffset, r.LastStableOffset
		if r.Diverging != nil {
			p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = int32(r.Diverging.Epoch), r.Diverging.Offset
		}
		var err error
		p.RecordBatches, err = take(r.Records)
		failed = errors.Join(failed, err)
		t := kmsg.NewFetchResponseTopic()
		t.Topic, t.TopicID, t.Partitions = r.TP.Topic, r.TopicID, append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
	}
	return resp, failed
}

// topicName resolves an id. Some topics are known to the manager alone.
func (l *lab) topicName(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, i := range l.ids {
		if i == id && !strings.HasPrefix(n, "unlisted") {
			return n
		}
	}
	return ""
}

// take reads a slice and releases it.
func take(s storage.Slice) ([]byte, error) {
	defer s.Release()
	var buf bytes.Buffer
	_, err := s.WriteTo(&buf)
	return buf.Bytes(), err
}

// decide publishes a decision in ZooKeeper and sends it to the brokers named, or to all replicas.
func (l *lab) decide(tp cluster.TopicPartition, leader cluster.BrokerID, isr, replicas []cluster.BrokerID, to ...cluster.BrokerID) {
	l.t.Helper()
	l.decideAll([]cluster.TopicPartition{tp}, leader, isr, replicas, to...)
}

func (l *lab) decideAll(tps []cluster.TopicPartition, leader cluster.BrokerID, isr, replicas []cluster.BrokerID, to ...cluster.BrokerID) {
	l.t.Helper()
	req := kmsg.NewPtrLeaderAndISRRequest()
	req.Version, req.ControllerID, req.ControllerEpoch = 5, 1, l.ctl
	for _, tp := range tps {
		epoch, known := l.epochs[tp]
		if known {
			epoch++
		}
		l.epochs[tp] = epoch
		l.mu.Lock()
		id, ok := l.ids[tp.Topic]
		if !ok {
			id = cluster.TopicID{byte(len(l.ids) + 1), 7}
			l.ids[tp.Topic] = id
		}
		l.mu.Unlock()
		state := znode.State{LeaderAndISR: cluster.LeaderAndISR{Leader: leader, LeaderEpoch: epoch, ISR: isr, ControllerEpoch: 1}}
		version := l.publish(tp, state)
		s := kmsg.NewLeaderAndISRRequestTopicPartition()
		s.Partition, s.ControllerEpoch, s.Leader, s.LeaderEpoch = tp.Partition, l.ctl, int32(leader), int32(epoch)
		s.ISR, s.Replicas, s.ZKVersion, s.IsNew = cluster.IDsToInt32(isr), cluster.IDsToInt32(replicas), version, !known
		if n := len(req.TopicStates); n == 0 || req.TopicStates[n-1].Topic != tp.Topic {
			t := kmsg.NewLeaderAndISRRequestTopicState()
			t.Topic, t.TopicID = tp.Topic, id
			req.TopicStates = append(req.TopicStates, t)
		}
		ts := &req.TopicStates[len(req.TopicStates)-1]
		ts.PartitionStates = append(ts.PartitionStates, s)
	}
	for id := range l.brokers {
		req.LiveLeaders = append(req.LiveLeaders, kmsg.LeaderAndISRRequestLiveLeader{BrokerID: int32(id), Host: "mem", Port: int32(id)})
	}
	if len(to) == 0 {
		to = replicas
	}
	for _, id := range to {
		one := *req
		one.BrokerEpoch = int64(100 + id)
		if l.full {
			one.Type = fullLeaderAndISR
		}
		resp := l.brokers[id].m.HandleLeaderAndISR(context.Background(), &one)
		if resp.ErrorCode != 0 {
			l.t.Errorf("LeaderAndISR to %d: error %d", id, resp.ErrorCode)
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					l.t.Errorf("LeaderAndISR to %d, partition %d: %s", id, p.Partition, replica.Code(p.ErrorCode))
				}
			}
		}
	}
}

func (l *lab) publish(tp cluster.TopicPartition, s znode.State) int32 {
	l.zk.mu.Lock()
	defer l.zk.mu.Unlock()
	n, known := l.zk.nodes[znode.StatePath(tp)]
	if known {
		n.version++
	}
	n.data = s.Encode()
	l.zk.nodes[znode.StatePath(tp)] = n
	return n.version
}

// batch makes a batch of n records that say what they are.
func batch(t *testing.T, what string, n int) []byte {
	t.Helper()
	b := record.NewBuilder(0)
	for i := range n {
		b.Add(time.Now().UnixMilli(), nil, fmt.Appendf(nil, "%s %d", what, i))
	}
	out, err := b.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// produce appends and returns the answer once it is there.
func (b *broker) produce(t *testing.T, tp cluster.TopicPartition, acks int16, what string, n int) ProduceResult {
	t.Helper()
	return <-b.produceAsync(t, tp, acks, patience, what, n)
}

func (b *broker) produceAsync(t *testing.T, tp cluster.TopicPartition, acks int16, timeout time.Duration, what string, n int) <-chan ProduceResult {
	t.Helper()
	done := make(chan ProduceResult, 1)
	b.m.Produce(context.Background(), acks, timeout, []ProducePartition{{TP: tp, Records: batch(t, what, n)}},
		func(r []ProduceResult) { done <- r[0] })
	return done
}

// consume fetches once as a consumer without a session.
func (b *broker) consume(t *testing.T, tp cluster.TopicPartition, offset int64, wait time.Duration) FetchResult {
	t.Helper()
	a := b.m.Fetch(context.Background(), FetchParams{ReplicaID: -1, MaxWait: wait, MinBytes: 1, MaxBytes: 1 << 20, Version: 11, SessionEpoch: -1},
		[]FetchPartition{{TP: tp, FetchOffset: offset, MaxBytes: 1 << 20, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}}, nil)
	if a.Err != 0 || len(a.Results) != 1 {
		t.Fatalf("fetch answered %+v", a)
	}
	return a.Results[0]
}

func (b *broker) info(t *testing.T, tp cluster.TopicPartition) PartitionInfo {
	t.Helper()
	i, ok := b.m.Partition(tp)
	if !ok {
		t.Fatalf("broker %d does not host %s", b.id, tp)
	}
	return i
}

// contents reads a whole log.
func (b *broker) contents(t *testing.T, tp cluster.TopicPartition) []byte {
	t.Helper()
	log, ok := b.store.Log(tp)
	if !ok {
		t.Fatalf("broker %d has no log of %s", b.id, tp)
	}
	var out []byte
	for off := log.LogStartOffset(); off < log.LogEndOffset(); {
		s, err := log.Read(off, 1<<20, log.LogEndOffset(), true)
		if err != nil {
			t.Fatal(err)
		}
		data, err := take(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data...)
		for rest := data; len(rest) > 0; {
			var one record.Batch
			if one, rest, err = record.Next(rest); err != nil {
				t.Fatal(err)
			}
			off = one.NextOffset()
		}
	}
	return out
}

// sameLogs waits until the replicas are level and compares their logs. Equal log ends alone say nothing: of two leaders
// each may have written as much before the one is cut back. A high watermark at the leader's log end says that every
// replica in sync has fetched up to there from this leader, hence has been cut back before.
func (l *lab) sameLogs(tp cluster.TopicPartition, ids ...cluster.BrokerID) {
	l.t.Helper()
	first := l.brokers[ids[0]]
	eventually(l.t, "replicas of "+tp.String()+" are level", func() bool {
		s, _ := l.zk.state(l.t, tp)
		leader := l.brokers[s.Leader].info(l.t, tp)
		if leader.Role != replica.Leader || leader.LeaderEpoch != s.LeaderEpoch || leader.HighWatermark != leader.LogEnd {
			return false
		}
		for _, id := range ids {
			if !slices.Contains(leader.ISR, id) || l.brokers[id].info(l.t, tp).LogEnd != leader.LogEnd {
				return false
			}
		}
		return true
	})
	want := first.contents(l.t, tp)
	for _, id := range ids[1:] {
		if !bytes.Equal(want, l.brokers[id].contents(l.t, tp)) {
			l.t.Errorf("the log of %s on broker %d differs from that on %d", tp, id, ids[0])
		}
	}
}

// laterThanLag moves the clock of the brokers by more than what a follower may lag and lets the leader look at it.
func (l *lab) laterThanLag(tp cluster.TopicPartition, leader cluster.BrokerID) {
	l.ahead.Add(int64(lagTimeMax + time.Second))
	l.brokers[leader].m.partition(tp).tick()
}

// awaitParked waits until a follower has fetched up to the leader's log end and asks for more.
func (l *lab) awaitParked(tp cluster.TopicPartition, leader, follower cluster.BrokerID, end int64) {
	l.t.Helper()
	p := l.brokers[leader].m.partition(tp)
	eventually(l.t, fmt.Sprintf("broker %d is parked at %d", follower, end), func() bool {
		if l.brokers[follower].info(l.t, tp).LogEnd != end {
			return false
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.waiters, func(e *session.Entry) bool { return e.Session.Replica == follower })
	})
}

func ids(n ...cluster.BrokerID) []cluster.BrokerID { return n }
