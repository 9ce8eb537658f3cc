package groupshell

import (
	"context"
	"sync"

	"kctl/broker/group"
	"kctl/broker/obs"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// mergedAppendsMax and mergedBytesMax bound how much is merged into one batch, so that a merged batch is
// never refused as too large when its parts would not be.
const (
	mergedAppendsMax = 512
	mergedBytesMax   = 256 << 10
)

// shardState is what this broker is for a partition of the offsets topic.
type shardState uint8

const (
	notLeader shardState = iota
	loading
	active
)

// call is a request that waits for its reply.
type call struct {
	id    group.RequestID
	reply group.Effect
	done  chan struct{} // closed once reply is set
}

// flight is a batch on its way to the log.
type flight struct {
	core *group.Shard
	ids  []group.AppendID
	code group.Code
	done bool
}

// shard owns the groups of one partition. Lock order: shard.mu before timers.mu; none of them is held
// across I/O, a channel operation or a callback.
type shard struct {
	m         *Manager
	partition int32

	mu          sync.Mutex
	state       shardState                // guarded by mu, as are all below
	epoch       cluster.LeaderEpoch       // of the last leadership change
	core        *group.Shard              // nil unless active
	calls       map[group.RequestID]*call // by request
	lastRequest group.RequestID
	queue       []group.Append // to be written, in order
	flights     []*flight      // written, not confirmed, in order
	appending   bool           // somebody is in flush
	loadBlocked bool           // a load waits for that somebody
	notes       []group.Note
	effects     []group.Effect // reused by step
}

// step runs one event through the core; mu is held.
func (sh *shard) step(ev group.Event) {
	sh.effects = sh.core.Step(ev, sh.effects[:0])
	sh.carryOut(sh.effects)
}

// carryOut does what can be done under the lock and queues the rest.
func (sh *shard) carryOut(effects []group.Effect) {
	for i, eff := range effects {
		switch e := eff.(type) {
		case group.Append:
			sh.queue = append(sh.queue, e)
		case group.ArmTimer:
			sh.m.timers.add(entry{at: e.At, sh: sh, core: sh.core, timer: e.Timer})
		case group.Note:
			sh.notes = append(sh.notes, e)
		case group.JoinReply:
			sh.answer(e.Request, e)
		case group.SyncReply:
			sh.answer(e.Request, e)
		case group.HeartbeatReply:
			sh.answer(e.Request, e)
		case group.LeaveReply:
			sh.answer(e.Request, e)
		case group.CommitReply:
			sh.answer(e.Request, e)
		case group.DeleteGroupReply:
			sh.answer(e.Request, e)
		case group.DeleteOffsetsReply:
			sh.answer(e.Request, e)
		}
		effects[i] = nil
	}
}

// answer hands a reply to whoever waits for it; nobody does when the client has gone away.
func (sh *shard) answer(id group.RequestID, reply group.Effect) {
	if c := sh.calls[id]; c != nil {
		delete(sh.calls, id)
		c.reply = reply
		close(c.done)
	}
}

// unlock releases mu and then tells the happenings gathered under it.
func (sh *shard) unlock() {
	notes := sh.notes
	sh.notes = nil
	sh.mu.Unlock()
	for _, n := range notes {
		sh.m.metrics.note(n)
		log := sh.m.log.Info
		if n.Kind == group.NoteAppendFailed {
			log = sh.m.log.Warn
		}
		log("consumer group "+n.Kind.String(), obs.KeyGroup, n.Group, obs.KeyPartition, sh.partition, obs.KeyGeneration, n.Generation,
			obs.KeyMember, n.Member, obs.KeyReason, n.Reason, obs.KeyCount, n.Count)
	}
}

// status says whether requests can be served; mu is held.
func (sh *shard) status() group.Code {
	switch sh.state {
	case active:
		return group.None
	case loading:
		return group.CoordinatorLoadInProgress
	default:
		return group.NotCoordinator
	}
}

// do runs a request's event and waits for the reply.
func (sh *shard) do(ctx context.Context, event func(id group.RequestID) group.Event) (group.Effect, group.Code) {
	c, code := sh.begin(event)
	if code != group.None {
		return nil, code
	}
	sh.flush(ctx)
	return sh.await(ctx, c)
}

// begin runs a request's event. The caller must flush and await the reply.
func (sh *shard) begin(event func(id group.RequestID) group.Event) (*call, group.Code) {
	sh.mu.Lock()
	if code := sh.status(); code != group.None {
		sh.mu.Unlock()
		return nil, code
	}
	sh.lastRequest++
	c := &call{id: sh.lastRequest, done: make(chan struct{})}
	sh.calls[c.id] = c
	sh.step(event(c.id))
	sh.unlock()
	return c, group.None
}

func (sh *shard) await(ctx context.Context, c *call) (group.Effect, group.Code) {
	select {
	case <-c.done:
		return c.reply, group.None
	case <-ctx.Done():
		sh.mu.Lock()
		delete(sh.calls, c.id)
		sh.mu.Unlock()
		return nil, group.RequestTimedOut
	}
}

// flush appends what is queued unless somebody else is at it, who then takes ours along. Confirmations
// may come while it runs.
func (sh *shard) flush(ctx context.Context) {
	sh.mu.Lock()
	for !sh.appending && len(sh.queue) > 0 {
		sh.appending = true
		f, appends := sh.takeQueued()
		sh.mu.Unlock()
		sh.write(ctx, f, appends)
		sh.mu.Lock()
		sh.appending = false
	}
	blocked := sh.loadBlocked && !sh.appending
	if blocked {
		sh.loadBlocked = false
	}
	sh.mu.Unlock()
	if blocked {
		sh.m.enqueueLoad(sh)
	}
}

// takeQueued takes the next appends that can share a batch; mu is held.
func (sh *shard) takeQueued() (*flight, []group.Append) {
	n, bytes := 0, 0
	for n < len(sh.queue) && n < mergedAppendsMax && sh.queue[n].ProducerID == sh.queue[0].ProducerID {
		if bytes += appendBytes(sh.queue[n]); n > 0 && bytes > mergedBytesMax {
			break
		}
		n++
	}
	appends := sh.queue[:n:n]
	sh.queue = sh.queue[n:]
	f := &flight{core: sh.core}
	for _, a := range appends {
		f.ids = append(f.ids, a.ID)
	}
	sh.flights = append(sh.flights, f)
	return f, appends
}

// appendBytes is roughly the size of an append in the log.
func appendBytes(a group.Append) int {
	n := 0
	for _, o := range a.Offsets {
		n += 64 + len(o.Group) + len(o.TP.Topic) + len(o.Metadata)
	}
	for _, g := range a.Groups {
		n += 64 + len(g.Group)
		for _, m := range g.Members {
			n += 96 + len(m.MemberID) + len(m.ClientID) + len(m.Subscription) + len(m.Assignment)
		}
	}
	return n
}

func (sh *shard) write(ctx context.Context, f *flight, appends []group.Append) {
	sh.m.metrics.appendRecords.Observe(float64(len(appends)))
	b, _ := sh.m.builders.Get().(*record.Builder)
	if b == nil {
		b = record.NewBuilder(record.None)
	}
	batch, err := encodeBatch(b, appends, sh.m.now())
	sh.m.builders.Put(b)
	ctx = context.WithoutCancel(ctx) // the write must not end with the client that happened to carry it
	if err != nil {
		sh.m.log.Error("encode group records", obs.KeyPartition, sh.partition, obs.Err(err))
		sh.confirmed(ctx, f, group.MessageTooLarge)
		return
	}
	sh.m.opts.Log.Append(ctx, sh.partition, batch, sh.m.opts.Config.OffsetsCommitTimeout, func(code group.Code) {
		sh.confirmed(ctx, f, code)
	})
}

// confirmed takes in the outcome of a batch. Outcomes reach the core in the order of the batches.
func (sh *shard) confirmed(ctx context.Context, f *flight, code group.Code) {
	sh.mu.Lock()
	f.code, f.done = code, true
	for len(sh.flights) > 0 && sh.flights[0].done {
		f := sh.flights[0]
		sh.flights = sh.flights[1:]
		if f.core != sh.core {
			continue // of a leadership that is over
		}
		for _, id := range f.ids {
			sh.step(group.Appended{At: sh.m.now(), ID: id, Code: f.code})
		}
	}
	sh.unlock()
	sh.flush(ctx)
}

// fire delivers a timer.
func (sh *shard) fire(ctx context.Context, e entry) {
	sh.mu.Lock()
	if sh.core == nil || sh.core != e.core {
		sh.mu.Unlock()
		return
	}
	sh.step(group.TimerFired{At: sh.m.now(), Timer: e.timer})
	sh.unlock()
	sh.flush(ctx)
}

// event runs an event that nobody waits for.
func (sh *shard) event(ctx context.Context, ev group.Event) {
	sh.mu.Lock()
	if sh.state != active {
		sh.mu.Unlock()
		return
	}
	sh.step(ev)
	sh.unlock()
	sh.flush(ctx)
}

// unload drops everything; mu is held. Whoever waits is answered with NOT_COORDINATOR.
func (sh *shard) unload() {
	if sh.core != nil {
		sh.step(group.Unload{At: sh.m.now()})
	}
	sh.core, sh.state = nil, notLeader
	sh.queue = nil
}
