package replicashell

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

var topicT = cluster.TopicPartition{Topic: "t", Partition: 0}

func TestReplicatesAndAcknowledges(t *testing.T) {
	l := newLab(t, 3, nil)
	l.decide(topicT, 1, ids(1, 2, 3), ids(1, 2, 3))
	for i := range 20 {
		if r := l.brokers[1].produce(t, topicT, -1, "a", 5); r.Err != 0 || r.BaseOffset != int64(i*5) {
			t.Fatalf("produce %d: %+v", i, r)
		}
	}
	l.sameLogs(topicT, 1, 2, 3)
	if hw := l.brokers[1].info(t, topicT).HighWatermark; hw != 100 {
		t.Fatalf("high watermark is %d", hw)
	}
	// the followers' trail by one fetch
	eventually(t, "followers know the high watermark", func() bool {
		return l.brokers[2].info(t, topicT).HighWatermark == 100 && l.brokers[3].info(t, topicT).HighWatermark == 100
	})
	if r := l.brokers[1].consume(t, topicT, 0, 0); r.Err != 0 || r.Records.Size() == 0 || r.HighWatermark != 100 {
		t.Fatalf("consume: %+v", r)
	}
}

// TestFailover has records that only the old leader took: they vanish, what was acknowledged stays, and all
// logs end up the same.
func TestFailover(t *testing.T) {
	l := newLab(t, 3, nil)
	l.decide(topicT, 1, ids(1, 2, 3), ids(1, 2, 3))
	if r := l.brokers[1].produce(t, topicT, -1, "kept", 10); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	l.setCut(1, true) // broker 1 cannot be fetched from, and does not hear of the election
	if r := l.brokers[1].produce(t, topicT, 1, "lost", 3); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	waiting := l.brokers[1].produceAsync(t, topicT, -1, patience, "lost too", 3)
	l.decide(topicT, 2, ids(2, 3), ids(1, 2, 3), 2, 3)
	if r := l.brokers[2].produce(t, topicT, -1, "new", 7); r.Err != 0 || r.BaseOffset != 10 {
		t.Fatalf("%+v", r)
	}
	// now the old leader is told
	l.setCut(1, false)
	l.decide(topicT, 2, ids(2, 3), ids(1, 2, 3))
	if r := <-waiting; r.Err != int16(replica.CodeNotLeaderOrFollower) {
		t.Fatalf("the old leader's produce was answered %+v", r)
	}
	l.sameLogs(topicT, 2, 1, 3)
	eventually(t, "broker 1 is back in the ISR", func() bool {
		s, _ := l.zk.state(t, topicT)
		return len(s.ISR) == 3
	})
}

// TestDeposed has a leader that is told by others that it was deposed: it refuses at once, is not brought back by
// what it knew before, and follows when the decision arrives.
func TestDeposed(t *testing.T) {
	l := newLab(t, 3, nil)
	l.decide(topicT, 1, ids(1, 2, 3), ids(1, 2, 3))
	m := l.brokers[1].m
	own := l.brokers[1].info(t, topicT).LeaderEpoch
	if m.Deposed(topicT, own) {
		t.Fatal("deposed by its own epoch")
	}
	l.setCut(1, true)
	waiting := l.brokers[1].produceAsync(t, topicT, -1, patience, "waits", 1)
	eventually(t, "the record is in the log", func() bool { return l.brokers[1].info(t, topicT).LogEnd == 1 })
	l.decide(topicT, 2, ids(2, 3), ids(1, 2, 3), 2, 3)
	if !m.Deposed(topicT, own+1) || m.Deposed(topicT, own+1) {
		t.Fatal("not deposed once")
	}
	if r := <-waiting; r.Err != int16(replica.CodeNotLeaderOrFollower) {
		t.Fatalf("the waiting produce was answered %+v", r)
	}
	if r := l.brokers[1].produce(t, topicT, 1, "refused", 1); r.Err != int16(replica.CodeNotLeaderOrFollower) {
		t.Fatalf("produce: %+v", r)
	}
	l.setCut(1, false)
	l.decide(topicT, 2, ids(2, 3), ids(1, 2, 3))
	l.sameLogs(topicT, 2, 1, 3)
}

func TestISRShrinksAndGrows(t *testing.T) {
	l := newLab(t, 3, nil)
	l.decide(topicT, 1, ids(1, 2, 3), ids(1, 2, 3))
	if r := l.brokers[1].produce(t, topicT, -1, "a", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	fs := l.brokers[3].fs
	l.stop(3)
	waiting := l.brokers[1].produceAsync(t, topicT, -1, patience, "b", 1)
	l.awaitParked(topicT, 1, 2, 2)
	l.laterThanLag(topicT, 1)
	if r := <-waiting; r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	s, v := l.zk.state(t, topicT)
	if !slices.Equal(s.ISR, ids(1, 2)) || s.Leader != 1 || s.LeaderEpoch != 0 || v != 1 {
		t.Fatalf("state znode holds %+v at version %d", s, v)
	}
	eventually(t, "the controller is told", func() bool { return len(l.zk.children("/isr_change_notification/")) == 1 })
	l.start(3, fs)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2, 3))
	eventually(t, "ISR has grown", func() bool { return len(l.brokers[1].info(t, topicT).ISR) == 3 })
	s, v = l.zk.state(t, topicT)
	if !slices.Equal(s.ISR, ids(1, 2, 3)) || v != 3 {
		t.Fatalf("state znode holds %+v at version %d", s, v)
	}
	l.sameLogs(topicT, 1, 2, 3)
}

// TestJoinsOnceRegistered: the follower's fetch arrives before the news of its registration, and is parked.
func TestJoinsOnceRegistered(t *testing.T) {
	var registered atomic.Bool
	l := newLab(t, 2, func(o *Options) {
		o.ReplicaLagTimeMax = time.Hour
		o.IsAlive = func(cluster.BrokerID) bool { return registered.Load() }
	})
	l.decide(topicT, 1, ids(1), ids(1, 2))
	eventually(t, "the follower is parked", func() bool {
		p := l.brokers[1].m.partition(topicT)
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiters) == 1
	})
	if s, _ := l.zk.state(t, topicT); len(s.ISR) != 1 {
		t.Fatalf("a broker that is not registered joined: %v", s.ISR)
	}
	registered.Store(true)
	eventually(t, "the follower joins", func() bool { s, _ := l.zk.state(t, topicT); return len(s.ISR) == 2 })
}

// TestReconnectingFollowerLeavesNoSessions: a connection that breaks must not leave a session each time.
func TestReconnectingFollowerLeavesNoSessions(t *testing.T) {
	l := newLab(t, 2, func(o *Options) { o.FetchStreams = 1; o.FetchBackoff = 5 * time.Millisecond })
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	m := l.brokers[1].m
	contact := func() (at int64) {
		m.sessions.Replicas(func(s *session.Session) { at = max(at, s.LastContact.Load()) })
		return at
	}
	for range 10 {
		l.setCut(1, true)
		l.setCut(1, false)
		for range 2 { // the second request is within the session that the first one began
			since := m.opts.Now().UnixNano()
			eventually(t, "the follower is back", func() bool { return contact() > since })
		}
	}
	// An answer lost in a cut leaves the session that it began, until it is evicted; without the follower's own
	// clean-up there would be one for each of the ten cuts.
	held := m.sessions.Len()
	if held > 4 {
		t.Fatalf("%d sessions are held", held)
	}
	l.stopAt(2, topicT)
	eventually(t, "the session is closed when nothing is left to fetch", func() bool { return m.sessions.Len() == held-1 })
}

// TestIdleISRStays is the first write after an idle hour: parked fetches count as contact.
func TestIdleISRStays(t *testing.T) {
	var ahead atomic.Int64
	l := newLab(t, 3, func(o *Options) {
		o.ReplicaLagTimeMax = 30 * time.Second
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	l.decide(topicT, 1, ids(1, 2, 3), ids(1, 2, 3))
	m := l.brokers[1].m
	for _, follower := range ids(2, 3) { // a session is in touch before the leader has looked at the partition of its first fetch
		l.awaitParked(topicT, 1, follower, 0)
	}
	ahead.Store(int64(time.Hour))
	since := m.opts.Now().UnixNano()
	eventually(t, "both followers were in touch since", func() bool {
		n := 0
		m.sessions.Replicas(func(s *session.Session) {
			if s.LastContact.Load() >= since {
				n++
			}
		})
		return n == 2
	})
	l.setCut(1, true) // the followers' fetches end; the leader must not think they were away all the hour
	if r := l.brokers[1].produce(t, topicT, 1, "a", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	m.partition(topicT).tick()
	if pending := m.pendingISR(topicT); pending {
		t.Fatal("the ISR shrinks on the first write")
	}
	ahead.Add(int64(31 * time.Second))
	m.partition(topicT).tick()
	eventually(t, "the ISR shrinks after the lag time", func() bool {
		s, _ := l.zk.state(t, topicT)
		return len(s.ISR) == 1
	})
}

func (m *Manager) pendingISR(tp cluster.TopicPartition) bool {
	p := m.partition(tp)
	p.mu.Lock()
	defer p.mu.Unlock()
	pending, _ := p.core.ISRChangePending()
	return pending
}

func TestMinInSync(t *testing.T) {
	l := newLab(t, 2, nil)
	cfg := l.config("t")
	cfg.MinInSyncReplicas = 2
	for _, b := range l.brokers {
		b.m.opts.TopicConfig = func(string) storage.Config { return cfg }
	}
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	if r := l.brokers[1].produce(t, topicT, -1, "a", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	l.stop(2)
	// It waits, and when the ISR has shrunk below the minimum it is told so.
	waiting := l.brokers[1].produceAsync(t, topicT, -1, patience, "b", 1)
	eventually(t, "the record is in the log", func() bool { return l.brokers[1].info(t, topicT).LogEnd == 2 })
	l.laterThanLag(topicT, 1)
	if r := <-waiting; r.Err != int16(replica.CodeNotEnoughReplicasAppended) || r.BaseOffset != -1 {
		t.Fatalf("%+v", r)
	}
	if r := l.brokers[1].produce(t, topicT, -1, "c", 1); r.Err != int16(replica.CodeNotEnoughReplicas) {
		t.Fatalf("%+v", r)
	}
	if r := l.brokers[1].produce(t, topicT, 1, "d", 1); r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	if i := l.brokers[1].info(t, topicT); i.HighWatermark != 1 || i.LogEnd != 3 || !i.UnderMinISR {
		t.Fatalf("%+v", i)
	}
	delete(l.brokers, 2)
}

func TestProduceTimesOut(t *testing.T) {
	l := newLab(t, 2, func(o *Options) { o.ReplicaLagTimeMax = time.Hour })
	l.decide(topicT, 1, ids(1, 2), ids(1, 2), 1)
	r := <-l.brokers[1].produceAsync(t, topicT, -1, 30*time.Millisecond, "a", 1)
	if r.Err != int16(replica.CodeRequestTimedOut) {
		t.Fatalf("%+v", r)
	}
	p := l.brokers[1].m.partition(topicT)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.produces) != 0 {
		t.Fatal("the timed-out produce still waits")
	}
}

func TestProduceRefusals(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	for _, c := range []struct {
		name string
		b    cluster.BrokerID
		part ProducePartition
		acks int16
		want int16
	}{
		{"follower", 2, ProducePartition{TP: topicT}, 1, 6},
		{"unknown", 1, ProducePartition{TP: cluster.TopicPartition{Topic: "x"}}, 1, 3},
		{"acks", 1, ProducePartition{TP: topicT}, 2, 21},
		{"garbage", 1, ProducePartition{TP: topicT, Records: []byte("garbage that is no batch")}, 1, 2},
		{"other topic id", 1, ProducePartition{TP: topicT, TopicID: cluster.TopicID{9}}, 1, 100},
	} {
		if c.part.Records == nil {
			c.part.Records = batch(t, "a", 1)
		}
		done := make(chan ProduceResult, 1)
		l.brokers[c.b].m.Produce(context.Background(), c.acks, time.Second, []ProducePartition{c.part}, func(r []ProduceResult) { done <- r[0] })
		if r := <-done; r.Err != c.want {
			t.Errorf("%s: error %d (%s), want %d", c.name, r.Err, r.Message, c.want)
		}
	}
	done := make(chan ProduceResult, 1)
	l.brokers[2].m.Produce(context.Background(), 1, time.Second, []ProducePartition{{TP: topicT, Records: batch(t, "a", 1)}},
		func(r []ProduceResult) { done <- r[0] })
	if r := <-done; r.Leader != 1 || r.LeaderEpoch != 0 {
		t.Errorf("the client is not told who leads: %+v", r)
	}
}
