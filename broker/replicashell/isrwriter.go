package replicashell

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"kctl/broker/obs"
	"kctl/broker/replica"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

const (
	// isrBatch is how many state znodes are read or written in one pipelined call.
	isrBatch = 500
	// isrTimeout bounds one such call; a call that runs into it counts as unknown.
	isrTimeout = 30 * time.Second
	// notifyBatch keeps a notification well below ZooKeeper's limit of 1 MB for a node.
	notifyBatch = 3000
	// isrRetry is how soon what failed is tried again.
	isrRetry = time.Second
)

// isrTask is a WriteISR or ReadState of one partition.
type isrTask struct {
	p   *partition
	eff replica.Effect
}

// isrWriter carries out ISR changes against ZooKeeper: one goroutine, everything that has gathered in one
// pipelined batch. A partition has at most one task (its core sees to that), which bounds the queue.
type isrWriter struct {
	m    *Manager
	wake chan struct{} // capacity 1

	mu       sync.Mutex // leaf
	tasks    []isrTask
	changed  map[cluster.TopicPartition]struct{} // to be told to the controller
	dirEvent bool                                // a log directory failed and ZooKeeper does not know yet
	retry    map[*partition]struct{}             // to be ticked soon, see retryLater
}

func newISRWriter(m *Manager) *isrWriter {
	return &isrWriter{m: m, wake: make(chan struct{}, 1), changed: map[cluster.TopicPartition]struct{}{},
		retry: map[*partition]struct{}{}}
}

func (w *isrWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// enqueue, notify and notifyDirFailure never block; they may be called under a partition's lock.
func (w *isrWriter) enqueue(p *partition, eff replica.Effect) {
	w.mu.Lock()
	w.tasks = append(w.tasks, isrTask{p, eff})
	w.mu.Unlock()
	w.signal()
}

func (w *isrWriter) notify(tp cluster.TopicPartition) {
	w.mu.Lock()
	w.changed[tp] = struct{}{}
	w.mu.Unlock()
	w.signal()
}

func (w *isrWriter) notifyDirFailure() {
	w.mu.Lock()
	w.dirEvent = true
	w.mu.Unlock()
	w.signal()
}

func (w *isrWriter) run(ctx context.Context) {
	var linger, retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-linger:
			linger = nil
			w.publish(ctx)
		case <-retry:
			retry = nil
			w.tickRetries()
		}
		for w.drain(ctx) {
		}
		w.mu.Lock()
		publish, again := len(w.changed) > 0 || w.dirEvent, len(w.retry) > 0
		w.mu.Unlock()
		if publish && linger == nil {
			linger = time.After(w.m.opts.ISRNotifyLinger)
		}
		if again && retry == nil {
			retry = time.After(isrRetry)
		}
	}
}

// retryLater has the partition look at its ISR again in a second, well before the next regular tick: a read-back
// failed, or a follower that wants to join is not known to be registered yet.
func (w *isrWriter) retryLater(p *partition) {
	w.mu.Lock()
	w.retry[p] = struct{}{}
	w.mu.Unlock()
	w.signal()
}

func (w *isrWriter) tickRetries() {
	w.mu.Lock()
	parts := w.retry
	w.retry = map[*partition]struct{}{}
	w.mu.Unlock()
	for p := range parts {
		p.tick()
	}
}

// drain carries out one batch and reports whether there was one.
func (w *isrWriter) drain(ctx context.Context) bool {
	w.mu.Lock()
	n := min(len(w.tasks), isrBatch)
	batch := append([]isrTask(nil), w.tasks[:n]...)
	w.tasks = w.tasks[n:]
	if len(w.tasks) == 0 {
		w.tasks = nil
	}
	w.mu.Unlock()
	if n == 0 || ctx.Err() != nil {
		return false
	}
	w.execute(ctx, batch)
	return true
}

// execute first reads every node of the batch, then writes those that are to be written. Reading before the
// write keeps fields of the znode that we do not know; the write stays conditional on the version that the
// partition knows, so nothing is decided by what was read.
func (w *isrWriter) execute(ctx context.Context, batch []isrTask) {
	ctx, cancel := context.WithTimeout(ctx, isrTimeout)
	defer cancel()
	gets := make([]zkop.Request, len(batch))
	for i, t := range batch {
		gets[i] = zkop.Request{Kind: zkop.Get, Path: znode.StatePath(t.p.tp)}
	}
	read := w.m.opts.ZK.Do(ctx, zkutil.AnySession, gets...)
	var writes []zkop.Request
	var writing []isrTask
	for i, t := range batch {
		state, err := decodeState(t.p.tp, read[i])
		write, ok := t.eff.(replica.WriteISR)
		switch {
		case !ok:
			w.answerRead(t.p, read[i], state, err)
		case read[i].Err != nil && !errors.Is(read[i].Err, zkop.ErrNoNode):
			w.answerWrite(t.p, write, replica.Unknown, 0)
		case err != nil || cluster.ZKVersion(read[i].Stat.Version) != write.IfVersion:
			w.answerWrite(t.p, write, replica.Refused, 0)
		default:
			state.LeaderAndISR = cluster.LeaderAndISR{Leader: write.Leader, LeaderEpoch: write.LeaderEpoch,
				ISR: write.ISR, ControllerEpoch: write.ControllerEpoch}
			writes = append(writes, zkop.Request{Kind: zkop.Set, Path: gets[i].Path, Data: state.Encode(), Version: int32(write.IfVersion)})
			writing = append(writing, t)
		}
	}
	if len(writes) == 0 {
		return
	}
	for i, r := range w.m.opts.ZK.Do(ctx, zkutil.AnySession, writes...) {
		write := writing[i].eff.(replica.WriteISR)
		switch {
		case r.Err == nil:
			w.answerWrite(writing[i].p, write, replica.Written, cluster.ZKVersion(r.Stat.Version))
		case errors.Is(r.Err, zkop.ErrBadVersion), errors.Is(r.Err, zkop.ErrNoNode), errors.Is(r.Err, zkop.ErrNoAuth):
			w.answerWrite(writing[i].p, write, replica.Refused, 0)
		default:
			w.answerWrite(writing[i].p, write, replica.Unknown, 0)
		}
	}
}

func decodeState(tp cluster.TopicPartition, r zkop.Response) (znode.State, error) {
	if r.Err != nil {
		return znode.State{}, r.Err
	}
	return znode.DecodeState(tp, r.Data)
}

func (w *isrWriter) answerWrite(p *partition, eff replica.WriteISR, outcome replica.Outcome, version cluster.ZKVersion) {
	p.event(replica.ISRWritten{At: w.m.opts.Now(), IfVersion: eff.IfVersion, Outcome: outcome, Version: version})
}

func (w *isrWriter) answerRead(p *partition, r zkop.Response, state znode.State, err error) {
	ev := replica.StateRead{At: w.m.opts.Now(), OK: true, Version: cluster.ZKVersion(r.Stat.Version), State: state.LeaderAndISR}
	switch {
	case errors.Is(r.Err, zkop.ErrNoNode):
		ev.Gone = true
	case r.Err != nil:
		ev.OK = false
		w.retryLater(p)
	case err != nil:
		ev.Gone = true
		w.m.log.LogAttrs(context.Background(), slog.LevelError, "state znode cannot be read",
			slog.String(obs.KeyTopicPartition, p.tp.String()), obs.Err(err))
	}
	p.event(ev)
}

// publish tells the controller. What could not be told is told with the next batch; telling twice is harmless.
func (w *isrWriter) publish(ctx context.Context) {
	w.mu.Lock()
	changed, dirEvent := w.changed, w.dirEvent
	w.changed, w.dirEvent = map[cluster.TopicPartition]struct{}{}, false
	w.mu.Unlock()
	var reqs []zkop.Request
	var parts []cluster.TopicPartition
	flush := func() {
		if len(parts) > 0 {
			reqs = append(reqs, zkop.Request{Kind: zkop.Create, Path: znode.ISRChangePrefix, Mode: zkop.PersistentSequential,
				Data: znode.EncodeISRChange(parts)})
			parts = nil
		}
	}
	for tp := range changed {
		if parts = append(parts, tp); len(parts) == notifyBatch {
			flush()
		}
	}
	flush()
	if dirEvent {
		ev := znode.LogDirEvent{Broker: w.m.opts.BrokerID, Event: znode.LogDirFailure}
		reqs = append(reqs, zkop.Request{Kind: zkop.Create, Path: znode.LogDirEventPrefix, Mode: zkop.PersistentSequential, Data: ev.Encode()})
	}
	if len(reqs) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, isrTimeout)
	defer cancel()
	for _, r := range w.m.opts.ZK.Do(ctx, zkutil.AnySession, reqs...) {
		if r.Err == nil {
			continue
		}
		w.m.log.LogAttrs(ctx, slog.LevelWarn, "notification of the controller failed; it is repeated", obs.Err(r.Err))
		w.mu.Lock()
		for tp := range changed {
			w.changed[tp] = struct{}{}
		}
		w.dirEvent = w.dirEvent || dirEvent
		w.mu.Unlock()
		return
	}
}
