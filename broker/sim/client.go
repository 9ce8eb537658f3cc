package sim

import (
	"bytes"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/broker/record"
	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// client is an idempotent producer with acks=all that also reads: one batch under way, retried until it is
// acknowledged or its topic goes.
type client struct {
	sim   *Sim
	pid   int64
	seq   map[cluster.TopicPartition]int32
	busy  bool
	tp    cluster.TopicPartition
	batch []byte
	count int32
	try   int // attempts of all batches so far; an answer to an earlier one is ignored
}

func newClient(s *Sim, pid int64) *client {
	c := &client{sim: s, pid: pid, seq: map[cluster.TopicPartition]int32{}}
	c.soon()
	return c
}

// soon goes on after a pause, until everything is healed.
func (c *client) soon() {
	c.busy = false
	c.sim.after(c.sim.between(0, 2*c.sim.faults.ProduceEvery), "client", noTP, c.pid, 0, func() {
		switch {
		case c.sim.healed:
		case c.sim.rng.IntN(4) == 0:
			c.consume()
			c.soon()
		default:
			c.produce()
		}
	})
}

// pick chooses a partition of a topic that nobody has deleted.
func (c *client) pick() (cluster.TopicPartition, bool) {
	name := c.sim.topics[c.sim.rng.IntN(len(c.sim.topics))]
	t, _, ok := c.sim.topic(name)
	if !ok {
		return cluster.TopicPartition{}, false
	}
	return cluster.TopicPartition{Topic: name, Partition: int32(c.sim.rng.IntN(len(t.Partitions)))}, true
}

// leader asks a random broker who leads, as a client refreshes its metadata.
func (c *client) leader(tp cluster.TopicPartition) *node {
	n := c.sim.anyNode()
	m, known := n.leaders[tp]
	if !n.up || !known || m.leader < 0 {
		return nil
	}
	return c.sim.node(m.leader)
}

func (c *client) produce() {
	tp, ok := c.pick()
	if !ok {
		c.soon()
		return
	}
	c.busy, c.tp = true, tp
	c.build()
	c.send()
}

func (c *client) build() {
	b := record.NewBuilder(record.None)
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = c.pid, 0, c.seq[c.tp]
	c.count = int32(1 + c.sim.rng.IntN(3))
	for range c.count {
		b.Add(c.sim.nowMs(), nil, bytes.Repeat([]byte{byte(c.pid)}, 10+c.sim.rng.IntN(200)))
	}
	batch, err := b.Build(nil)
	if err != nil {
		c.sim.fail("build a batch: %v", err)
	}
	c.batch = batch
}

// send sends the batch once; the answer, an error or a time-out leads to the next attempt.
func (c *client) send() {
	s := c.sim
	if s.check.deleted[c.tp.Topic] {
		c.soon()
		return
	}
	c.try++
	try := c.try
	var timeout *scheduled
	answer := func(code replica.Code, base int64) {
		if s.chance(s.faults.Lose) {
			return
		}
		s.after(s.delay(), "produce answer", c.tp, c.pid, base, func() {
			if c.busy && c.try == try {
				timeout.cancel()
				c.answered(code, base)
			}
		})
	}
	if n := c.leader(c.tp); n != nil && !s.chance(s.faults.Lose) {
		s.after(s.delay(), "produce", c.tp, c.pid, int64(n.id), func() {
			n.run(n.inc, "produce", func() { n.serveProduce(c.tp, bytes.Clone(c.batch), answer) })
		})
	}
	timeout = s.after(s.between(500*time.Millisecond, 3*time.Second), "produce timeout", c.tp, c.pid, 0, func() {
		if c.busy && c.try == try {
			c.send()
		}
	})
}

func (c *client) answered(code replica.Code, base int64) {
	s := c.sim
	switch int16(code) {
	case 0:
		s.check.acked(c, base)
		c.seq[c.tp] += c.count
		c.soon()
	case kerr.OutOfOrderSequenceNumber.Code, kerr.InvalidProducerEpoch.Code, kerr.UnknownProducerID.Code:
		if s.check.excused[c.tp] == 0 {
			// From a leader that was replaced and does not know it (see serveProduce): try the next one.
			s.after(s.between(10*time.Millisecond, 200*time.Millisecond), "produce again", c.tp, c.pid, int64(code), c.send)
			return
		}
		// The log lost records with its last in-sync copy: start over as a new producer.
		s.producers++
		c.pid = 2000 + s.producers
		c.seq = map[cluster.TopicPartition]int32{}
		c.build()
		c.send()
	default:
		s.after(s.between(10*time.Millisecond, 200*time.Millisecond), "produce again", c.tp, c.pid, int64(code), c.send)
	}
}

// consume reads from the leader at a random committed offset and compares with what was committed.
func (c *client) consume() {
	tp, ok := c.pick()
	if !ok {
		return
	}
	n := c.leader(tp)
	if n == nil {
		return
	}
	from := min(c.sim.check.canonOf(tp).start, c.sim.check.committed(tp))
	if c.sim.rng.IntN(4) == 0 {
		from = 0 // where there may be nothing any more
	}
	offset := from + c.sim.rng.Int64N(c.sim.check.committed(tp)-from+1)
	q := replica.FetchQuery{Replica: replica.Consumer, CurrentEpoch: cluster.NoLeaderEpoch, LastFetchedEpoch: cluster.NoLeaderEpoch, Offset: offset}
	c.sim.after(c.sim.delay(), "consume", tp, offset, int64(n.id), func() {
		n.run(n.inc, "consume", func() { c.sim.check.consumed(n, tp, n.serveFetch(tp, q, 0, cluster.NoBrokerEpoch)) })
	})
}

// serveProduce is the leader's side of a produce with acks=all.
func (n *node) serveProduce(tp cluster.TopicPartition, batch []byte, answer func(replica.Code, int64)) {
	p := n.parts[tp]
	if p == nil || p.log == nil {
		answer(replica.CodeUnknownTopicOrPartition, -1)
		return
	}
	if code := p.core.CheckProduce(n.sim.now, replica.AllReplicas); code != replica.CodeNone {
		answer(code, -1)
		return
	}
	res, err := p.log.AppendAsLeader(batch, p.core.LeaderEpoch(), storage.AppendOptions{Now: n.sim.now})
	if errors.Is(err, storage.ErrStorage) || errors.Is(err, storage.ErrOffline) {
		n.diskFailed(err)
		return
	}
	if err != nil {
		var ke *kerr.Error
		if !errors.As(err, &ke) {
			n.sim.fail("%s %s: append: %v", n, tp, err)
			return
		}
		if n.sim.check.leads(p) && n.sim.check.excused[tp] == 0 && !n.sim.check.deleted[tp.Topic] {
			n.sim.fail("%s %s: the leader of epoch %d refuses a batch, but nothing was lost: %v", n, tp, p.core.LeaderEpoch(), err)
		}
		answer(replica.Code(ke.Code), -1)
		return
	}
	w := &produceWait{required: res.LastOffset + 1, done: func(code replica.Code) { answer(code, res.BaseOffset) }}
	p.waiting = append(p.waiting, w)
	p.step(replica.Appended{At: n.sim.now, LogEnd: p.log.LogEndOffset()})
	if n.up {
		p.completeWaiting()
	}
}
