package storage

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"kctl/broker/record"
)

// batchesKept is how many batches of one producer are remembered to recognise retries, as in Kafka: a
// producer has at most five requests in flight.
const batchesKept = 5

// producerBatch is what is remembered of one batch.
type producerBatch struct {
	lastSeq     int32
	lastOffset  int64
	offsetDelta int32
	timestamp   int64
}

func (b producerBatch) firstSeq() int32    { return record.SubSequence(b.lastSeq, b.offsetDelta) }
func (b producerBatch) firstOffset() int64 { return b.lastOffset - int64(b.offsetDelta) }

// producer is one idempotent producer's state in a partition.
type producer struct {
	id               int64
	epoch            int16
	coordinatorEpoch int32
	txnFirst         int64 // first offset of the open transaction, -1 none
	lastTimestamp    int64 // of records, ms
	seenAt           int64 // when the last batch was appended here, ms; not persisted
	n                int
	batches          [batchesKept]producerBatch // the n latest, oldest first
}

func newProducer(id int64) *producer {
	return &producer{id: id, epoch: record.NoProducerEpoch, coordinatorEpoch: -1, txnFirst: -1, lastTimestamp: -1}
}

func (p *producer) lastSeq() int32 {
	if p.n == 0 {
		return record.NoSequence
	}
	return p.batches[p.n-1].lastSeq
}

// duplicate finds a remembered batch with the same sequences.
func (p *producer) duplicate(b record.Batch) (producerBatch, bool) {
	if b.ProducerEpoch() != p.epoch {
		return producerBatch{}, false
	}
	first, last := b.BaseSequence(), b.LastSequence()
	for _, k := range p.batches[:p.n] {
		if k.lastSeq == last && k.firstSeq() == first {
			return k, true
		}
	}
	return producerBatch{}, false
}

// checkEpoch refuses batches of an older epoch of the producer.
func (p *producer) checkEpoch(b record.Batch) error {
	if b.ProducerEpoch() < p.epoch {
		return fmt.Errorf("producer %d has epoch %d, the batch %d: %w", p.id, p.epoch, b.ProducerEpoch(), ErrInvalidProducerEpoch)
	}
	return nil
}

// checkSequence refuses a client's batch that does not follow the last one. A producer that is not known
// (any more) may start anywhere, one with a new epoch at 0 only.
func (p *producer) checkSequence(b record.Batch) error {
	if p.epoch == record.NoProducerEpoch {
		return nil
	}
	first := b.BaseSequence()
	if b.ProducerEpoch() != p.epoch {
		if first != 0 {
			return fmt.Errorf("producer %d starts epoch %d with sequence %d: %w", p.id, b.ProducerEpoch(), first, ErrOutOfOrderSequence)
		}
		return nil
	}
	if last := p.lastSeq(); !inSequence(last, first) {
		return fmt.Errorf("producer %d: sequence %d after %d: %w", p.id, first, last, ErrOutOfOrderSequence)
	}
	return nil
}

func inSequence(last, next int32) bool {
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}

// setEpoch forgets the batches of an older epoch.
func (p *producer) setEpoch(epoch int16) {
	if p.epoch != epoch {
		p.epoch, p.n = epoch, 0
	}
}

// add remembers an appended data batch.
func (p *producer) add(b record.Batch, nowMs int64) {
	p.setEpoch(b.ProducerEpoch())
	p.push(producerBatch{b.LastSequence(), b.LastOffset(), b.LastOffsetDelta(), b.MaxTimestamp()})
	p.lastTimestamp, p.seenAt = b.MaxTimestamp(), nowMs
	if b.IsTransactional() && p.txnFirst < 0 {
		p.txnFirst = b.BaseOffset()
	}
}

func (p *producer) push(b producerBatch) {
	if p.n == batchesKept {
		copy(p.batches[:], p.batches[1:])
		p.n--
	}
	p.batches[p.n] = b
	p.n++
}

// txn is a transaction that is open or whose marker is not yet below the high watermark.
type txn struct {
	producer int64
	first    int64
	last     int64 // offset of the marker, -1 while open
}

// producers is the state of all idempotent producers of one log. Guarded by Log.mu, except txnCount.
type producers struct {
	byID   map[int64]*producer
	txns   []txn // by first offset
	open   atomic.Int32
	mapEnd int64 // batches below this offset are in the state
}

func (ps *producers) reset(end int64) {
	ps.byID, ps.txns, ps.mapEnd = nil, nil, end
	ps.open.Store(0)
}

func (ps *producers) get(id int64) *producer { return ps.byID[id] }

func (ps *producers) put(p *producer) {
	if ps.byID == nil {
		ps.byID = map[int64]*producer{}
	}
	ps.byID[p.id] = p
}

// apply takes an appended batch into the state without judging it; control is its marker if it has one.
func (ps *producers) apply(b record.Batch, control *record.Control, nowMs int64) {
	ps.mapEnd = b.NextOffset()
	if !b.HasProducerID() {
		return
	}
	p := ps.get(b.ProducerID())
	if p == nil {
		p = newProducer(b.ProducerID())
		ps.put(p)
	}
	if b.IsControl() {
		if control != nil {
			ps.endTxn(p, b, *control, nowMs)
		}
		return
	}
	before := p.txnFirst
	p.add(b, nowMs)
	if p.txnFirst != before {
		ps.txns = append(ps.txns, txn{p.id, p.txnFirst, -1})
		ps.open.Store(int32(len(ps.txns)))
	}
}

func (ps *producers) endTxn(p *producer, b record.Batch, c record.Control, nowMs int64) {
	p.setEpoch(b.ProducerEpoch())
	p.coordinatorEpoch = c.CoordinatorEpoch
	p.lastTimestamp, p.seenAt = b.MaxTimestamp(), nowMs
	for i := range ps.txns {
		if ps.txns[i].producer == p.id && ps.txns[i].last < 0 {
			ps.txns[i].last = b.LastOffset()
		}
	}
	p.txnFirst = -1
}

// firstUnstable is the first offset of a transaction that is open or ended at or above hw.
func (ps *producers) firstUnstable(hw int64) (int64, bool) {
	ps.txns = slices.DeleteFunc(ps.txns, func(t txn) bool { return t.last >= 0 && t.last < hw })
	ps.open.Store(int32(len(ps.txns)))
	if len(ps.txns) == 0 {
		return 0, false
	}
	return ps.txns[0].first, true
}

// restore takes over a snapshot that was taken at end. Batches below start are forgotten.
func (ps *producers) restore(entries []producer, end int64) {
	ps.reset(end)
	for i := range entries {
		p := &entries[i]
		ps.put(p)
		if p.txnFirst >= 0 {
			ps.txns = append(ps.txns, txn{p.id, p.txnFirst, -1})
		}
	}
	slices.SortFunc(ps.txns, func(a, b txn) int { return int(min(1, max(-1, a.first-b.first))) })
	ps.open.Store(int32(len(ps.txns)))
}

// expire forgets producers that were idle for longer than after.
func (ps *producers) expire(nowMs, afterMs int64) int {
	before := len(ps.byID)
	for id, p := range ps.byID {
		if p.txnFirst < 0 && nowMs-max(p.lastTimestamp, p.seenAt) >= afterMs {
			delete(ps.byID, id)
		}
	}
	return before - len(ps.byID)
}

// sorted returns copies of the entries by id.
func (ps *producers) sorted() []producer {
	out := make([]producer, 0, len(ps.byID))
	for _, p := range ps.byID {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b producer) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return out
}
