package session

import (
	"testing"
	"time"

	"kctl/zkutil/cluster"
)

var t0 = time.Unix(1000, 0)

func part(topic string, n int32, offset int64) Partition {
	return Partition{TP: cluster.TopicPartition{Topic: topic, Partition: n}, Position: Position{FetchOffset: offset, MaxBytes: 100}}
}

func full(c *Cache, replica cluster.BrokerID, at time.Time, parts ...Partition) Begun {
	return c.Begin(Request{At: at, Replica: replica, Parts: parts})
}

func pops(s *Session) (out []int32) {
	for e := s.Pop(); e != nil; e = s.Pop() {
		out = append(out, e.TP.Partition)
	}
	return out
}

func TestIncrementalQueuesOnlyWhatChanged(t *testing.T) {
	c := NewCache(10)
	b := full(c, -1, t0, part("t", 0, 0), part("t", 1, 0), part("t", 2, 0))
	if !b.Full || !b.Kept || b.Session.ID == 0 || b.Session.Len() != 3 {
		t.Fatalf("%+v", b)
	}
	if got := pops(b.Session); len(got) != 3 {
		t.Fatalf("a new session queues %v", got)
	}
	b2 := c.Begin(Request{At: t0, ID: b.Session.ID, Epoch: 1, Replica: -1, Parts: []Partition{part("t", 1, 5), part("u", 0, 1)},
		Forgotten: []Partition{part("t", 2, 0), part("x", 9, 0)}})
	if b2.Err != 0 || b2.Full || b2.Session != b.Session || len(b2.Dropped) != 1 || b2.Dropped[0].TP.Partition != 2 {
		t.Fatalf("%+v", b2)
	}
	e := b.Session.Pop()
	if e.TP.Partition != 1 || e.FetchOffset != 5 {
		t.Fatalf("%+v", e)
	}
	if e = b.Session.Pop(); e.TP.Topic != "u" || b.Session.Pop() != nil {
		t.Fatalf("%+v", e)
	}
}

func TestEpochs(t *testing.T) {
	c := NewCache(10)
	id := full(c, -1, t0, part("t", 0, 0)).Session.ID
	next := func(id, epoch int32) int16 { return c.Begin(Request{At: t0, ID: id, Epoch: epoch, Replica: -1}).Err }
	if err := next(id, 2); err != errInvalidEpoch {
		t.Errorf("too high: %d", err)
	}
	if err := next(id, 1); err != 0 {
		t.Errorf("right: %d", err)
	}
	if err := next(id, 1); err != errInvalidEpoch {
		t.Errorf("repeated: %d", err)
	}
	if err := next(id+1, 1); err != errIDNotFound {
		t.Errorf("other id: %d", err)
	}
	el := c.byID[id]
	el.Value.(*slot).s.epoch = 1<<31 - 1
	if err := next(id, 1<<31-1); err != 0 {
		t.Errorf("last epoch: %d", err)
	}
	if err := next(id, 1); err != 0 {
		t.Errorf("epoch after the last is 1: %d", err)
	}
	if err := c.Begin(Request{At: t0, ID: id, Epoch: 2, ByID: true, Parts: []Partition{part("t", 0, 0)}}).Err; err != errTopicID {
		t.Errorf("ids after names: %d", err)
	}
}

func TestSessionlessAndClosing(t *testing.T) {
	c := NewCache(10)
	b := c.Begin(Request{At: t0, Epoch: -1, Replica: -1, Parts: []Partition{part("t", 0, 0)}})
	if b.Kept || c.Len() != 0 || len(b.End()) != 1 {
		t.Fatalf("%+v", b)
	}
	id := full(c, -1, t0, part("t", 0, 0)).Session.ID
	b = c.Begin(Request{At: t0, ID: id, Epoch: -1, Replica: -1, Parts: []Partition{part("t", 0, 0)}})
	if b.Kept || c.Len() != 0 || len(b.Dropped) != 1 {
		t.Fatalf("%+v", b)
	}
	// (id, 0) replaces it.
	id = full(c, -1, t0, part("t", 0, 0)).Session.ID
	if b = c.Begin(Request{At: t0, ID: id, Replica: -1, Parts: []Partition{part("t", 1, 0)}}); b.Session.ID == id || c.Len() != 1 || len(b.Dropped) != 1 {
		t.Fatalf("%+v", b)
	}
}

func TestEviction(t *testing.T) {
	c := NewCache(2)
	one := full(c, -1, t0, part("t", 0, 0))
	full(c, -1, t0.Add(time.Minute), part("t", 0, 0))
	if b := full(c, -1, t0.Add(time.Minute), part("t", 0, 0)); b.Kept {
		t.Fatal("a session in use was evicted by an equal")
	}
	// A follower goes before clients.
	f := full(c, 2, t0.Add(time.Minute), part("t", 0, 0))
	if !f.Kept || len(f.Dropped) != 1 {
		t.Fatalf("%+v", f)
	}
	if err := c.Begin(Request{At: t0, ID: one.Session.ID, Epoch: 1}).Err; err != errIDNotFound {
		t.Fatalf("the evicted session answers %d", err)
	}
	// An old one goes for anybody; followers only when they are old, too.
	if b := full(c, -1, t0.Add(time.Hour), part("t", 0, 0)); !b.Kept || c.Len() != 2 {
		t.Fatalf("%+v", b)
	}
}

func TestAbandonedFollowerSessionsGo(t *testing.T) {
	c := NewCache(100)
	for i := range 20 { // a follower whose connection keeps breaking
		full(c, 2, t0.Add(time.Duration(i)*time.Minute), part("t", 0, 0), part("t", 1, 0))
	}
	if c.Len() > 3 {
		t.Fatalf("%d sessions of one follower are kept", c.Len())
	}
	client := full(c, -1, t0, part("t", 0, 0))
	b := full(c, 2, t0.Add(time.Hour), part("t", 0, 0))
	if len(b.Dropped) == 0 || c.Len() != 2 || client.Session.closed {
		t.Fatalf("%d sessions, dropped %d entries", c.Len(), len(b.Dropped))
	}
}

func TestMarkAndWake(t *testing.T) {
	s := full(NewCache(1), 2, t0, part("t", 0, 0), part("t", 1, 0)).Session
	a, b := s.Pop(), s.Pop()
	s.Mark(a, false)
	s.Mark(a, false)
	select {
	case <-s.Wake():
		t.Fatal("woken though not asked to")
	default:
	}
	s.Mark(b, true)
	<-s.Wake()
	if s.Queued() != 2 || s.Pop() != a || s.Pop() != b || s.Pop() != nil {
		t.Fatal("the queue is not in order, or holds one twice")
	}
	s.Nudge()
	<-s.Wake()
	if !s.TakeNudge() || s.TakeNudge() {
		t.Fatal("a nudge is taken once")
	}
	for range 1000 { // the queue does not grow by turning over
		s.Mark(a, false)
		s.Mark(b, false)
		s.Mark(s.Pop(), false)
		s.Pop()
		s.Pop()
	}
	if cap(s.queue) > 512 {
		t.Fatalf("queue has grown to %d", cap(s.queue))
	}
}

func TestSupersededRequest(t *testing.T) {
	c := NewCache(1)
	s := full(c, -1, t0, part("t", 0, 0)).Session
	first := c.Begin(Request{At: t0, ID: s.ID, Epoch: 1, Replica: -1})
	second := c.Begin(Request{At: t0, ID: s.ID, Epoch: 2, Replica: -1})
	if !s.Superseded(first.Request) || s.Superseded(second.Request) {
		t.Fatal("the later request is the one that counts")
	}
	c.Begin(Request{At: t0, ID: s.ID, Epoch: -1, Replica: -1})
	if !s.Superseded(second.Request) {
		t.Fatal("a closed session's request goes on")
	}
}
