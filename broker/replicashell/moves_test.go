package replicashell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

func (b *broker) move(tp cluster.TopicPartition, dir string) int16 {
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	d := kmsg.NewAlterReplicaLogDirsRequestDir()
	d.Dir = dir
	dt := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
	dt.Topic, dt.Partitions = tp.Topic, []int32{tp.Partition}
	d.Topics = append(d.Topics, dt)
	req.Dirs = append(req.Dirs, d)
	return b.m.AlterReplicaLogDirs(context.Background(), req).Topics[0].Partitions[0].ErrorCode
}

func (b *broker) dirOf(tp cluster.TopicPartition) string {
	if l, ok := b.store.Log(tp); ok {
		return l.Dir()
	}
	return ""
}

// TestReplicasMoveUnderLoad: a leader's and a follower's replica move back and forth while acks=all goes on; nothing
// is lost, and both logs are the same at the end.
func TestReplicasMoveUnderLoad(t *testing.T) {
	l := newLabDirs(t, 2, "/a", "/b")
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	var stop atomic.Bool
	done := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			if r := l.brokers[1].produce(t, topicT, -1, fmt.Sprintf("record %d", n), 5); r.Err != 0 {
				t.Errorf("produce %d: %+v", n, r)
				break
			}
		}
		done <- n
	}()
	for range 3 {
		for _, id := range ids(1, 2) {
			b := l.brokers[id]
			to := map[string]string{"/a": "/b", "/b": "/a"}[b.dirOf(topicT)]
			if code := b.move(topicT, to); code != 0 {
				t.Fatalf("broker %d: move to %s: %d", id, to, code)
			}
			eventually(t, fmt.Sprintf("the replica of broker %d is in %s", id, to), func() bool { return b.dirOf(topicT) == to })
		}
	}
	stop.Store(true)
	n := <-done
	l.sameLogs(topicT, 1, 2)
	if end := l.brokers[1].info(t, topicT).LogEnd; end != int64(5*n) || n == 0 {
		t.Errorf("log end %d after %d requests of 5", end, n)
	}
	if i := l.brokers[1].info(t, topicT); len(i.ISR) != 2 {
		t.Errorf("ISR %v", i.ISR)
	}
}

// TestMoveGoesOnAfterARestart: the copy is there when the broker comes back, and is finished.
func TestMoveGoesOnAfterARestart(t *testing.T) {
	l := newLabDirs(t, 1, "/a", "/b")
	l.tune = func(o *Options) { o.Throttles = func() Throttles { return Throttles{math.MaxInt64, math.MaxInt64, 1} } }
	l.stop(1)
	b := l.start(1, l.brokers[1].fs)
	l.decide(topicT, 1, ids(1), ids(1))
	for range 20 {
		b.produce(t, topicT, -1, string(bytes.Repeat([]byte("x"), 1<<17)), 1)
	}
	to := map[string]string{"/a": "/b", "/b": "/a"}[b.dirOf(topicT)]
	if code := b.move(topicT, to); code != 0 {
		t.Fatal(code)
	}
	future := func(b *broker) (size, lag int64, ok bool) {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = nil
		for _, d := range b.m.DescribeLogDirs(context.Background(), req).Dirs {
			for _, dt := range d.Topics {
				for _, p := range dt.Partitions {
					if p.IsFuture {
						return p.Size, p.OffsetLag, d.Dir == to
					}
				}
			}
		}
		return 0, 0, false
	}
	eventually(t, "the first chunk is copied", func() bool { n, _, _ := future(b); return n > 0 })
	if _, lag, ok := future(b); !ok || lag == 0 {
		t.Fatalf("lag %d, in the right directory %v", lag, ok)
	}
	want := b.contents(t, topicT)
	l.stop(1)
	l.tune = nil
	b = l.start(1, b.fs)
	if n, _, ok := future(b); !ok || n == 0 {
		t.Fatalf("the copy did not survive: %d bytes", n)
	}
	l.decide(topicT, 1, ids(1), ids(1))
	eventually(t, "the move is done", func() bool { return b.dirOf(topicT) == to })
	if !bytes.Equal(want, b.contents(t, topicT)) {
		t.Error("the records differ")
	}
}

// TestMoveRefusedAndRedirected: what a broker answers, and that a replica is made where it was asked for.
func TestMoveRefusedAndRedirected(t *testing.T) {
	l := newLabDirs(t, 1, "/a", "/b")
	l.tune = func(o *Options) { o.Throttles = func() Throttles { return Throttles{math.MaxInt64, math.MaxInt64, 1} } }
	l.stop(1)
	b := l.start(1, l.brokers[1].fs)
	if code := b.move(topicT, "/c"); code != 57 {
		t.Errorf("unknown directory: %d", code)
	}
	for _, dir := range []string{"/b", "/a", "/b"} {
		if code := b.move(topicT, dir); code != 9 {
			t.Errorf("no replica yet: %d", code)
		}
	}
	l.decide(topicT, 1, ids(1), ids(1))
	if b.dirOf(topicT) != "/b" {
		t.Errorf("made in %s", b.dirOf(topicT))
	}
	for range 20 {
		b.produce(t, topicT, -1, string(bytes.Repeat([]byte("x"), 1<<17)), 1)
	}
	if code := b.move(topicT, "/a"); code != 0 {
		t.Errorf("move: %d", code)
	}
	if _, ok := b.store.Future(topicT); !ok {
		t.Error("no copy")
	}
	if code := b.move(topicT, "/b"); code != 0 {
		t.Errorf("back: %d", code)
	}
	if _, ok := b.store.Future(topicT); ok {
		t.Error("the copy is still there")
	}
	b.fs.Inject(vfs.Rule{Pattern: "/a/*", Err: errors.New("input/output error")})
	b.m.dirFailed("/a", errors.New("input/output error"))
	if code := b.move(topicT, "/a"); code != 56 {
		t.Errorf("offline directory: %d", code)
	}
	if i := b.info(t, topicT); i.Role != replica.Leader {
		t.Errorf("%+v", i)
	}
}

// throttleClock is a clock that the test moves.
type throttleClock struct{ ns atomic.Int64 }

func (c *throttleClock) now() time.Time { return time.Unix(0, c.ns.Load()) }

// TestLeaderThrottle counts what a leader gives a follower out of sync: the bound and one portion more, again in each
// later second, and all of it once the follower is in sync.
func TestLeaderThrottle(t *testing.T) {
	const bound, portion = 3000, 1000
	clock := &throttleClock{}
	clock.ns.Store(time.Unix(5000, 0).UnixNano())
	l := newLab(t, 0, nil)
	l.tune = func(o *Options) {
		o.Now = clock.now
		o.Throttles = func() Throttles { return Throttles{bound, math.MaxInt64, math.MaxInt64} }
		o.ThrottledReplicas = func(string) (string, string) { return "0:1,0:-1,junk", "" }
	}
	b := l.start(1, vfs.NewMem(func() int64 { return 1 }))
	l.decide(topicT, 1, ids(1), ids(1, 2), 1)
	for range 40 {
		if r := b.produce(t, topicT, 1, string(bytes.Repeat([]byte("x"), portion)), 1); r.Err != 0 {
			t.Fatal(r)
		}
	}
	at := int64(0)
	fetch := func() int {
		a := b.m.Fetch(context.Background(), FetchParams{ReplicaID: 2, ReplicaEpoch: 102, MaxBytes: 1 << 20, Version: 15, SessionEpoch: -1},
			[]FetchPartition{{TP: topicT, FetchOffset: at, MaxBytes: portion, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}}, nil)
		n := a.Results[0].Records.Size()
		a.Results[0].Records.Release()
		if n > 0 {
			at++
		}
		return n
	}
	drain := func() (n int) {
		for got := fetch(); got > 0; got = fetch() {
			n += got
		}
		return n
	}
	first := drain()
	if first <= bound || first > bound+2*portion {
		t.Errorf("%d bytes in the first second, the bound is %d", first, bound)
	}
	total := first
	for s := 1; s <= 5; s++ {
		clock.ns.Add(int64(time.Second))
		total += drain()
		if most := bound*(s+1) + 2*portion; total > most || total < bound*s {
			t.Errorf("%d bytes after %d s", total, s)
		}
	}
	b.m.opts.Throttles = func() Throttles { return Unthrottled } // as a dynamic change does
	b.m.ThrottlesChanged()
	if drain(); at != 40 {
		t.Errorf("unthrottled it stops at %d", at)
	}
}

// TestFollowerThrottle: a follower asks for no more than its bound while it is behind, gets there all the same, and
// an unthrottled partition of the same leader does not wait.
func TestFollowerThrottle(t *testing.T) {
	clock := &throttleClock{}
	clock.ns.Store(time.Unix(5000, 0).UnixNano())
	free := cluster.TopicPartition{Topic: "free"}
	l := newLab(t, 0, nil)
	l.tune = func(o *Options) {
		o.Now = clock.now
		if o.BrokerID == 2 {
			o.FetchMaxBytes = 1000
			o.Throttles = func() Throttles { return Throttles{math.MaxInt64, 2000, math.MaxInt64} }
			o.ThrottledReplicas = func(topic string) (string, string) {
				if topic == topicT.Topic {
					return "", "*"
				}
				return "", ""
			}
		}
	}
	for _, id := range ids(1, 2) {
		l.start(id, vfs.NewMem(func() int64 { return 1 }))
	}
	l.decide(topicT, 1, ids(1), ids(1), 1)
	l.decide(free, 1, ids(1), ids(1), 1)
	for range 20 {
		for _, tp := range []cluster.TopicPartition{topicT, free} {
			l.brokers[1].produce(t, tp, 1, string(bytes.Repeat([]byte("x"), 1000)), 1)
		}
	}
	l.decide(topicT, 1, ids(1), ids(1, 2))
	l.decide(free, 1, ids(1), ids(1, 2))
	end := func(tp cluster.TopicPartition) int64 { return l.brokers[2].info(t, tp).LogEnd }
	eventually(t, "the unthrottled partition is level", func() bool { return end(free) == 20 })
	eventually(t, "the throttled one has its first second's share", func() bool { return end(topicT) >= 2 })
	if got := end(topicT); got > 4 {
		t.Errorf("%d records of 1000 bytes in the first second, the bound is 2000", got)
	}
	seconds := 0
	for ; end(topicT) < 20 && seconds < 60; seconds++ {
		clock.ns.Add(int64(time.Second))
		before := end(topicT)
		settled := time.Now().Add(3 * throttlePause)
		eventually(t, "the follower has looked", func() bool { return end(topicT) > before+1 || time.Now().After(settled) })
	}
	if seconds < 5 || seconds == 60 {
		t.Errorf("20 kB came in after %d s at 2 kB/s", seconds)
	}
}
