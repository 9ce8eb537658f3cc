package replicashell

import (
	"context"
	"testing"
	"time"

	"kctl/broker/record"
	"kctl/broker/replica"
	"kctl/zkutil/cluster"
)

// client is a consumer with a fetch session.
type client struct {
	t     *testing.T
	m     *Manager
	id    int32
	epoch int32
}

func (c *client) fetch(wait time.Duration, minBytes, maxBytes int32, parts []FetchPartition, forgotten ...FetchPartition) FetchAnswer {
	c.t.Helper()
	a := c.m.Fetch(context.Background(), FetchParams{ReplicaID: -1, MaxWait: wait, MinBytes: minBytes, MaxBytes: maxBytes, Version: 11,
		SessionID: c.id, SessionEpoch: c.epoch}, parts, forgotten)
	if a.Err == 0 {
		c.id = a.SessionID
		c.epoch++
	}
	for i := range a.Results {
		c.t.Cleanup(a.Results[i].Records.Release)
	}
	return a
}

func at(topic string, partition int32, offset int64, maxBytes int32) FetchPartition {
	return FetchPartition{TP: cluster.TopicPartition{Topic: topic, Partition: partition}, FetchOffset: offset, MaxBytes: maxBytes,
		LogStartOffset: -1, CurrentLeaderEpoch: -1, LastFetchedEpoch: -1}
}

func alone(t *testing.T, topic string, partitions int32) *lab {
	l := newLab(t, 1, nil)
	var tps []cluster.TopicPartition
	for i := range partitions {
		tps = append(tps, cluster.TopicPartition{Topic: topic, Partition: i})
	}
	l.decideAll(tps, 1, ids(1), ids(1))
	return l
}

func TestFetchSessionTellsOnlyNews(t *testing.T) {
	l := alone(t, "t", 3)
	b := l.brokers[1]
	c := &client{t: t, m: b.m}
	a := c.fetch(0, 1, 1<<20, []FetchPartition{at("t", 0, 0, 1<<20), at("t", 1, 0, 1<<20), at("t", 2, 0, 1<<20)})
	if len(a.Results) != 3 || a.SessionID == 0 {
		t.Fatalf("the first answer is not full: %+v", a)
	}
	if a = c.fetch(0, 1, 1<<20, nil); len(a.Results) != 0 {
		t.Fatalf("nothing is new, but was told: %+v", a.Results)
	}
	b.produce(t, cluster.TopicPartition{Topic: "t", Partition: 1}, -1, "a", 2)
	a = c.fetch(time.Second, 1, 1<<20, nil)
	if len(a.Results) != 1 || a.Results[0].TP.Partition != 1 || a.Results[0].Records.Size() == 0 {
		t.Fatalf("%+v", a.Results)
	}
	// It was not taken: the same records come again until the position moves.
	if a = c.fetch(0, 1, 1<<20, nil); len(a.Results) != 1 || a.Results[0].Records.Size() == 0 {
		t.Fatalf("%+v", a.Results)
	}
	if a = c.fetch(0, 1, 1<<20, []FetchPartition{at("t", 1, 2, 1<<20)}); len(a.Results) != 0 {
		t.Fatalf("%+v", a.Results)
	}
	// A forgotten partition is not told of any more.
	c.fetch(0, 1, 1<<20, nil, at("t", 1, 0, 0))
	b.produce(t, cluster.TopicPartition{Topic: "t", Partition: 1}, -1, "a", 2)
	if a = c.fetch(0, 1, 1<<20, nil); len(a.Results) != 0 {
		t.Fatalf("%+v", a.Results)
	}
}

func TestFetchSessionErrors(t *testing.T) {
	l := alone(t, "t", 1)
	c := &client{t: t, m: l.brokers[1].m}
	c.fetch(0, 1, 1<<20, []FetchPartition{at("t", 0, 0, 1<<20)})
	good := *c
	c.epoch = 7
	if a := c.fetch(0, 1, 1<<20, nil); a.Err != 71 {
		t.Errorf("wrong epoch: %d", a.Err)
	}
	c.id, c.epoch = good.id+1, 1
	if a := c.fetch(0, 1, 1<<20, nil); a.Err != 70 {
		t.Errorf("wrong id: %d", a.Err)
	}
	*c = good
	c.epoch = -1 // closes the session, answers in full
	if a := c.fetch(0, 1, 1<<20, []FetchPartition{at("t", 0, 0, 1<<20)}); a.Err != 0 || a.SessionID != 0 || len(a.Results) != 1 {
		t.Errorf("closing: %+v", a)
	}
	*c = good
	if a := c.fetch(0, 1, 1<<20, nil); a.Err != 70 {
		t.Errorf("closed session: %d", a.Err)
	}
}

func TestFetchWaitsForTheHighWatermark(t *testing.T) {
	l := newLab(t, 2, func(o *Options) { o.ReplicaLagTimeMax = time.Hour })
	l.decide(topicT, 1, ids(1, 2), ids(1, 2), 1)
	b := l.brokers[1]
	got := make(chan FetchResult, 1)
	go func() { got <- b.consume(t, topicT, 0, patience) }()
	eventually(t, "the consumer is parked", func() bool {
		p := b.m.partition(topicT)
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.waiters) == 1
	})
	waiting := b.produceAsync(t, topicT, -1, patience, "a", 1)
	select {
	case r := <-got:
		t.Fatalf("a record that is not committed was given: %+v", r)
	case r := <-waiting:
		t.Fatalf("acknowledged by one replica of two: %+v", r)
	case <-time.After(50 * time.Millisecond):
	}
	l.decide(topicT, 1, ids(1, 2), ids(1, 2)) // now the follower comes
	if r := <-waiting; r.Err != 0 {
		t.Fatalf("%+v", r)
	}
	if r := <-got; r.Err != 0 || r.Records.Size() == 0 || r.HighWatermark != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestFetchMinBytes(t *testing.T) {
	l := alone(t, "t", 1)
	b := l.brokers[1]
	c := &client{t: t, m: b.m}
	size := int32(len(batch(t, "a", 1)))
	got := make(chan FetchAnswer, 1)
	go func() { got <- c.fetch(patience, 3*size, 1<<20, []FetchPartition{at("t", 0, 0, 1<<20)}) }()
	for range 3 {
		select {
		case a := <-got:
			t.Fatalf("answered too early: %+v", a)
		default:
		}
		b.produce(t, topicT, -1, "a", 1)
	}
	if a := <-got; len(a.Results) != 1 || a.Results[0].Records.Size() != int(3*size) {
		t.Fatalf("%+v", a)
	}
}

// TestFetchBudget has more than fits: the answer is bounded, and the partitions take turns.
func TestFetchBudget(t *testing.T) {
	l := alone(t, "t", 3)
	b := l.brokers[1]
	var parts []FetchPartition
	for i := range int32(3) {
		for range 10 {
			b.produce(t, cluster.TopicPartition{Topic: "t", Partition: i}, -1, "abcdefghijklmnopqrstuvwxyz", 10)
		}
		parts = append(parts, at("t", i, 0, 1<<20))
	}
	one := int32(len(batch(t, "abcdefghijklmnopqrstuvwxyz", 10)))
	c := &client{t: t, m: b.m}
	seen := map[int32]int64{}
	for range 12 {
		a := c.fetch(0, 1, one*4, parts)
		parts = nil
		total := 0
		for _, r := range a.Results {
			total += r.Records.Size()
			if r.Records.Size() == 0 {
				continue
			}
			data := make([]byte, r.Records.Size())
			if _, err := r.Records.ReadInto(data); err != nil {
				t.Fatal(err)
			}
			for rest := data; len(rest) > 0; {
				var rb record.Batch
				var err error
				if rb, rest, err = record.Next(rest); err != nil {
					t.Fatal(err)
				}
				seen[r.TP.Partition] = rb.NextOffset()
			}
			parts = append(parts, at("t", r.TP.Partition, seen[r.TP.Partition], 1<<20))
		}
		if total > int(one*4) {
			t.Fatalf("answer of %d bytes, allowed are %d", total, one*4)
		}
	}
	for i := range int32(3) {
		if seen[i] != 100 {
			t.Errorf("partition %d was read up to %d of 100", i, seen[i])
		}
	}
	// The first batch comes whatever its size.
	if a := (&client{t: t, m: b.m}).fetch(0, 1, 10, []FetchPartition{at("t", 0, 0, 10)}); a.Results[0].Records.Size() != int(one) {
		t.Errorf("first batch: %d bytes", a.Results[0].Records.Size())
	}
}

func TestFetchErrors(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	l.brokers[1].produce(t, topicT, -1, "a", 5)
	fetch := func(b cluster.BrokerID, p FetchPartition, version int16) FetchResult {
		a := l.brokers[b].m.Fetch(context.Background(), FetchParams{ReplicaID: -1, MaxWait: time.Minute, MinBytes: 1, MaxBytes: 1 << 20,
			Version: version, SessionEpoch: -1}, []FetchPartition{p}, nil)
		r := a.Results[0]
		r.Records.Release()
		return r
	}
	fenced := at("t", 0, 0, 1<<20)
	fenced.CurrentLeaderEpoch = 9
	byID := at("", 0, 0, 1<<20)
	byID.TopicID = cluster.TopicID{99}
	otherID := at("t", 0, 0, 1<<20)
	otherID.TopicID = cluster.TopicID{99}
	denied := at("t", 0, 0, 1<<20)
	denied.Err = 29
	for _, c := range []struct {
		name    string
		b       cluster.BrokerID
		p       FetchPartition
		version int16
		want    int16
	}{
		{"beyond the end", 1, at("t", 0, 6, 1<<20), 11, 1},
		{"unknown partition", 1, at("t", 9, 0, 1<<20), 11, 3},
		{"follower, old client", 2, at("t", 0, 0, 1<<20), 10, 6},
		{"follower, new client", 2, at("t", 0, 0, 1<<20), 11, 0},
		{"epoch ahead", 1, fenced, 11, 75},
		{"unknown topic id", 1, byID, 13, 100},
		{"other topic id", 1, otherID, 13, 103},
		{"not authorised", 1, denied, 11, 29},
	} {
		if c.want == 0 {
			eventually(t, "the follower knows the high watermark", func() bool { return l.brokers[2].info(t, topicT).HighWatermark == 5 })
		}
		if r := fetch(c.b, c.p, c.version); r.Err != c.want {
			t.Errorf("%s: error %d, want %d", c.name, r.Err, c.want)
		}
	}
	if r := fetch(2, at("t", 0, 0, 1<<20), 10); r.CurrentLeader != 1 {
		t.Errorf("the client is not told who leads: %+v", r)
	}
}

// TestFetchOfManyIdlePartitionsLooksAtNone: what an idle session costs does not grow with its partitions.
func TestFetchOfManyIdlePartitionsLooksAtNone(t *testing.T) {
	const n = 500
	l := alone(t, "t", n)
	b := l.brokers[1]
	var parts []FetchPartition
	for i := range int32(n) {
		parts = append(parts, at("t", i, 0, 1<<20))
	}
	c := &client{t: t, m: b.m}
	c.fetch(0, 1, 1<<20, parts)
	b.produce(t, cluster.TopicPartition{Topic: "t", Partition: 77}, -1, "a", 1)
	looked := 0
	for _, p := range b.m.snapshot() {
		p.mu.Lock()
		if len(p.waiters) == 0 {
			looked++
		}
		p.mu.Unlock()
	}
	if looked != 1 {
		t.Fatalf("%d partitions are in the queue, want the one that was written", looked)
	}
	if a := c.fetch(time.Second, 1, 1<<20, nil); len(a.Results) != 1 || a.Results[0].TP.Partition != 77 {
		t.Fatalf("%+v", a.Results)
	}
}

// TestSessionlessFetchLeavesNothing: polling without a session must not fill the partitions with dead waiters.
func TestSessionlessFetchLeavesNothing(t *testing.T) {
	l := alone(t, "t", 1)
	b := l.brokers[1]
	for range 100 {
		b.consume(t, topicT, 0, 0)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.m.Fetch(ctx, FetchParams{ReplicaID: -1, MaxWait: time.Hour, MinBytes: 1, MaxBytes: 1, SessionEpoch: -1, Version: 11}, []FetchPartition{at("t", 0, 0, 1)}, nil)
	p := b.m.partition(topicT)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiters) != 0 {
		t.Fatalf("%d waiters are left", len(p.waiters))
	}
}

// TestParkedFetchSeesTheRoleChange: a consumer that waits on a leader is not left waiting when it is one no more.
func TestParkedFetchSeesTheRoleChange(t *testing.T) {
	l := newLab(t, 2, nil)
	l.decide(topicT, 1, ids(1, 2), ids(1, 2))
	got := make(chan FetchResult, 1)
	go func() {
		a := l.brokers[1].m.Fetch(context.Background(), FetchParams{ReplicaID: -1, MaxWait: time.Minute, MinBytes: 1, MaxBytes: 1, Version: 10, SessionEpoch: -1},
			[]FetchPartition{at("t", 0, 0, 1)}, nil)
		got <- a.Results[0]
	}()
	eventually(t, "the consumer is parked", func() bool {
		p := l.brokers[1].m.partition(topicT)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.waiters {
			if e.Session.Replica < 0 {
				return true
			}
		}
		return false
	})
	l.decide(topicT, 2, ids(1, 2), ids(1, 2))
	if r := <-got; r.Err != int16(replica.CodeNotLeaderOrFollower) {
		t.Fatalf("%+v", r)
	}
}
