package replicashell

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// waitingProduce is one partition of a produce request with acks=all; it is done when the high watermark
// reaches required.
type waitingProduce struct {
	required int64
	op       *produceOp
	index    int // of its result
}

// produceOp is a produce request on its way to its answer.
type produceOp struct {
	done    func([]ProduceResult)
	results []ProduceResult
	open    atomic.Int32 // results that are not settled, plus one while the request is being appended

	mu     sync.Mutex // guards all below
	timer  *time.Timer
	parked []parkedProduce
}

type parkedProduce struct {
	p     *partition
	index int
}

// Produce appends to each partition in the caller's goroutine and calls done exactly once: before it returns
// when nothing has to be waited for, else from whichever goroutine moves the high watermark or from a timer.
// done must not block. acks is 0, 1 or replica.AllReplicas. Appends of one caller to one partition keep their
// order; answers of different requests need not come in order.
//
// With acks=all a partition whose ISR is below min.insync.replicas is refused before the append
// (NOT_ENOUGH_REPLICAS); if it falls below meanwhile the answer is NOT_ENOUGH_REPLICAS_AFTER_APPEND. After
// timeout what is not committed is answered REQUEST_TIMED_OUT; the records stay in the log.
func (m *Manager) Produce(ctx context.Context, acks int16, timeout time.Duration, parts []ProducePartition, done func([]ProduceResult)) {
	m.produce(acks, timeout, parts, storage.OriginClient, done)
}

func (m *Manager) produce(acks int16, timeout time.Duration, parts []ProducePartition, origin storage.Origin, done func([]ProduceResult)) {
	op := &produceOp{done: done, results: make([]ProduceResult, len(parts))}
	op.open.Store(1)
	for i := range parts {
		var a after
		m.appendOne(op, i, &parts[i], acks, origin, &a)
		a.run()
	}
	if op.open.Add(-1) == 0 {
		op.finish()
		return
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.open.Load() > 0 {
		op.timer = time.AfterFunc(max(timeout, 0), op.expire)
	}
}

func (m *Manager) appendOne(op *produceOp, i int, part *ProducePartition, acks int16, origin storage.Origin, a *after) {
	r := &op.results[i]
	*r = ProduceResult{TP: part.TP, TopicID: part.TopicID, BaseOffset: -1, LogAppendTime: -1, LogStartOffset: -1,
		Leader: -1, LeaderEpoch: cluster.NoLeaderEpoch}
	if acks < replica.AllReplicas || acks > 1 {
		r.fail(kerr.InvalidRequiredAcks)
		return
	}
	p := m.partition(part.TP)
	if p == nil {
		r.fail(kerr.UnknownTopicOrPartition)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !part.TopicID.IsZero() && !p.topicID.IsZero() && part.TopicID != p.topicID {
		r.fail(kerr.UnknownTopicID)
		return
	}
	now := m.opts.Now()
	if code := p.core.CheckProduce(now, acks); code != replica.CodeNone {
		r.Err = int16(code)
		if code == replica.CodeNotLeaderOrFollower && p.core.Role() == replica.Follower {
			r.Leader, r.LeaderEpoch = p.core.Leader(), p.core.LeaderEpoch()
		}
		return
	}
	res, err := p.log.AppendAsLeader(part.Records, p.core.LeaderEpoch(), storage.AppendOptions{Now: now, Origin: origin})
	if err != nil {
		m.metrics.appendFailed()
		p.appendFailed(r, err, a)
		return
	}
	p.appended(res, now, a)
	r.BaseOffset, r.LogAppendTime, r.LogStartOffset = res.BaseOffset, res.LogAppendTime, res.LogStartOffset
	if acks == replica.AllReplicas {
		p.await(op, i, res.LastOffset+1, a)
	}
}

// appended steps the append and lets followers come for it.
func (p *partition) appended(res storage.AppendResult, now time.Time, a *after) {
	if res.Duplicate {
		return
	}
	p.m.metrics.appended(res.Bytes, res.Records)
	p.noteParked(a)
	p.step(replica.Appended{At: now, LogEnd: p.log.LogEndOffset()}, a)
	p.wakeFollowers()
}

// await parks one result until the high watermark reaches required, unless it has.
func (p *partition) await(op *produceOp, index int, required int64, a *after) {
	op.open.Add(1)
	if done, code := p.core.CheckAcked(required); done {
		op.settle(index, code, a)
		return
	}
	w := waitingProduce{required: required, op: op, index: index}
	at := len(p.produces)
	for at > 0 && p.produces[at-1].required > required { // a duplicate waits for an older offset
		at--
	}
	p.produces = append(p.produces, waitingProduce{})
	copy(p.produces[at+1:], p.produces[at:])
	p.produces[at] = w
	op.mu.Lock()
	op.parked = append(op.parked, parkedProduce{p, index})
	op.mu.Unlock()
}

func (p *partition) appendFailed(r *ProduceResult, err error, a *after) {
	r.fail(err)
	r.LogStartOffset = p.log.LogStartOffset()
	if isStorageFailure(err) {
		p.logError("append failed", err, a)
	}
}

// fail answers with the protocol's error inside err; one that has none is ours to blame.
func (r *ProduceResult) fail(err error) {
	r.Err = kerr.UnknownServerError.Code
	var ke *kerr.Error
	if errors.As(err, &ke) {
		r.Err = ke.Code
	}
	r.Message = err.Error()
}

// settle answers one result. It is called under the lock of the result's partition; the answer goes out when
// that is released.
func (op *produceOp) settle(index int, code replica.Code, a *after) {
	if code != replica.CodeNone {
		r := &op.results[index]
		r.Err = int16(code)
		r.BaseOffset, r.LogAppendTime = -1, -1
	}
	if op.open.Add(-1) == 0 {
		a.produced = append(a.produced, op)
	}
}

func (op *produceOp) finish() {
	op.mu.Lock()
	if op.timer != nil {
		op.timer.Stop()
	}
	op.parked = nil
	op.mu.Unlock()
	op.done(op.results)
}

// expire answers what is still waiting with REQUEST_TIMED_OUT.
func (op *produceOp) expire() {
	op.mu.Lock()
	parked := op.parked
	op.parked = nil
	op.mu.Unlock()
	for _, pp := range parked {
		var a after
		pp.p.expireProduce(op, pp.index, &a)
		a.run()
	}
}

func (p *partition) expireProduce(op *produceOp, index int, a *after) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.produces {
		if w.op == op && w.index == index {
			p.produces = append(p.produces[:i], p.produces[i+1:]...)
			op.settle(index, replica.CodeRequestTimedOut, a)
			return
		}
	}
}

// AppendInternal appends a batch of this broker's own (group coordinator). With requiredAcks
// replica.AllReplicas it returns when the batch is committed. Errors wrap a *kerr.Error.
func (m *Manager) AppendInternal(ctx context.Context, tp cluster.TopicPartition, batch []byte, requiredAcks int16) error {
	answer := make(chan []ProduceResult, 1)
	m.produce(requiredAcks, m.opts.RequestTimeout, []ProducePartition{{TP: tp, Records: batch}}, storage.OriginCoordinator,
		func(r []ProduceResult) { answer <- r })
	select {
	case r := <-answer:
		return codeError("append to "+tp.String(), r[0].Err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReadLog reads whole batches from offset from on, up to the log end, at most maxBytes but at least one batch.
// end is the log end at that moment; go on after the last batch. The replica must be open, in whatever role.
func (m *Manager) ReadLog(tp cluster.TopicPartition, from int64, maxBytes int) (batches []byte, end int64, err error) {
	p := m.partition(tp)
	if p == nil {
		return nil, 0, codeError("read "+tp.String(), kerr.UnknownTopicOrPartition.Code)
	}
	p.mu.Lock()
	log := p.log
	p.mu.Unlock()
	if log == nil {
		return nil, 0, codeError("read "+tp.String(), kerr.NotLeaderForPartition.Code)
	}
	end = log.LogEndOffset()
	s, err := log.Read(max(from, log.LogStartOffset()), maxBytes, end, true)
	if err != nil {
		return nil, end, err
	}
	defer s.Release()
	batches = make([]byte, s.Size())
	n, err := s.ReadInto(batches)
	return batches[:n], end, err
}
