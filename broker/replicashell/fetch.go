package replicashell

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// Fetch answers a Fetch request of a consumer or a follower. It blocks until MinBytes are there, an error or a
// divergence is to be told, MaxWait has passed, or ctx ends. Partitions are looked at in turn: those that gave
// records last come last next time. MaxBytes bounds the records of the answer and each partition's MaxBytes its
// own, but the first batch is given whatever its size, so that a fetcher never gets stuck (KIP-74).
func (m *Manager) Fetch(ctx context.Context, params FetchParams, parts, forgotten []FetchPartition) FetchAnswer {
	b := m.sessions.Begin(session.Request{At: m.opts.Now(), ID: params.SessionID, Epoch: params.SessionEpoch,
		Replica: params.ReplicaID, ByID: params.Version >= 13, Parts: toSession(parts), Forgotten: toSession(forgotten)})
	m.unparkAll(b.Dropped)
	if b.Err != 0 {
		return FetchAnswer{Err: b.Err}
	}
	f := fetch{m: m, params: &params, b: &b, s: b.Session}
	f.run(ctx)
	if !b.Kept {
		m.unparkAll(b.End())
		return FetchAnswer{Results: f.results}
	}
	return FetchAnswer{SessionID: b.Session.ID, Results: f.results}
}

func toSession(parts []FetchPartition) []session.Partition {
	if len(parts) == 0 {
		return nil
	}
	out := make([]session.Partition, len(parts))
	for i := range parts {
		p := &parts[i]
		out[i] = session.Partition{TP: p.TP, TopicID: p.TopicID, Position: session.Position{FetchOffset: p.FetchOffset,
			LogStartOffset: p.LogStartOffset, MaxBytes: p.MaxBytes, CurrentLeaderEpoch: p.CurrentLeaderEpoch,
			LastFetchedEpoch: p.LastFetchedEpoch, Err: p.Err}}
	}
	return out
}

func (m *Manager) unparkAll(entries []*session.Entry) {
	for _, e := range entries {
		if p, ok := e.Place.(*partition); ok {
			p.unpark(e)
		}
	}
}

// fetch is one request being answered.
type fetch struct {
	m      *Manager
	params *FetchParams
	b      *session.Begun
	s      *session.Session

	results []FetchResult
	entries []*session.Entry // of results
	bytes   int              // of records in results
	urgent  bool             // something in results must not wait
}

// run looks at the partitions, and waits and looks again as long as it is worth it.
func (f *fetch) run(ctx context.Context) {
	wait := f.wait()
	var timer *time.Timer
	for arrival := true; ; arrival = false {
		over := wait <= 0
		f.collect(arrival)
		if over || f.urgent || f.bytes >= int(f.params.MinBytes) || f.s.Len() == 0 {
			break
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		select {
		case <-f.s.Wake():
			if f.b.Kept && f.s.Superseded(f.b.Request) {
				f.abandon()
				return
			}
			if f.s.TakeNudge() {
				wait = 0
			}
		case <-timer.C:
			wait = 0
		case <-ctx.Done():
			f.abandon()
			return
		case <-f.m.closing:
			wait = 0
		}
	}
	f.finish()
}

// wait is how long this fetch may be held back. Shortly after a leadership change followers are answered soon.
func (f *fetch) wait() time.Duration {
	if f.params.ReplicaID >= 0 && f.m.hurried(f.m.opts.Now()) {
		return min(f.params.MaxWait, fastWait)
	}
	return f.params.MaxWait
}

// collect looks once at every partition that has news. arrival says that the request has just come: only then
// does a follower's fetch prove anything, since by the next look the follower may be dead or stopping, and must
// not be taken back into the ISR for a request that it sent before.
func (f *fetch) collect(arrival bool) {
	f.s.Collect.Lock()
	defer f.s.Collect.Unlock()
	now := f.m.opts.Now()
	for n := f.s.Queued(); n > 0; n-- {
		e := f.s.Pop()
		if e == nil {
			return
		}
		f.drop(e) // what an earlier look found is out of date
		r, again := f.m.look(e, f.params, f.limit(e), f.bytes == 0, arrival, now)
		if again {
			f.s.Mark(e, false)
		}
		f.keep(e, r)
	}
}

// limit is how many bytes e may still give.
func (f *fetch) limit(e *session.Entry) int {
	left := int(f.params.MaxBytes) - f.bytes
	return max(0, min(left, int(e.MaxBytes)))
}

func (f *fetch) drop(e *session.Entry) {
	if e.Result < 0 || e.Result >= len(f.results) || f.entries[e.Result] != e {
		return
	}
	r := &f.results[e.Result]
	f.bytes -= r.Records.Size()
	r.Records.Release()
	r.Records = storage.Slice{}
}

func (f *fetch) keep(e *session.Entry, r FetchResult) {
	f.bytes += r.Records.Size()
	f.urgent = f.urgent || r.Err != 0 || r.Diverging != nil
	if e.Result >= 0 && e.Result < len(f.results) && f.entries[e.Result] == e {
		f.results[e.Result] = r
		return
	}
	e.Result = len(f.results)
	f.results = append(f.results, r)
	f.entries = append(f.entries, e)
}

// finish leaves out what the fetcher knows already, unless the answer is a full one, and notes what it is told.
func (f *fetch) finish() {
	f.s.Collect.Lock()
	kept := f.results[:0]
	for i := range f.results {
		r, e := f.results[i], f.entries[i]
		told := session.Told{HighWatermark: r.HighWatermark, LastStableOffset: r.LastStableOffset, LogStartOffset: r.LogStartOffset}
		news := r.Err != 0 || r.Diverging != nil || r.Records.Size() > 0 || told != e.Told
		e.Told, e.Result = told, -1
		if f.b.Full || news {
			kept = append(kept, r)
		}
	}
	f.s.Collect.Unlock()
	f.results = kept
	if f.params.ReplicaID >= 0 {
		f.m.countSent(kept)
	}
	if len(kept) > 1 {
		slices.SortStableFunc(kept, func(a, b FetchResult) int {
			if c := strings.Compare(a.TP.Topic, b.TP.Topic); c != 0 {
				return c
			}
			return slices.Compare(a.TopicID[:], b.TopicID[:])
		})
	}
}

// abandon gives up: nobody waits for the answer. What was found stays news.
func (f *fetch) abandon() {
	f.s.Collect.Lock()
	defer f.s.Collect.Unlock()
	for i := range f.results {
		f.results[i].Records.Release()
		f.entries[i].Result = -1
		f.s.Mark(f.entries[i], false)
	}
	f.results, f.entries = nil, nil
}

// look asks one partition. again is true when the entry stays in the session's queue: it gave something, or
// could not; otherwise it is parked at the partition.
func (m *Manager) look(e *session.Entry, params *FetchParams, limit int, minOneBatch, arrival bool, now time.Time) (r FetchResult, again bool) {
	r = FetchResult{TP: e.TP, TopicID: e.TopicID, HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1,
		CurrentLeader: -1, CurrentEpoch: cluster.NoLeaderEpoch}
	if e.Err != 0 {
		r.Err = e.Err
		return r, true
	}
	p, code := m.place(e)
	if p == nil {
		r.Err = code
		return r, true
	}
	r.TP = e.TP
	var a after
	p.mu.Lock()
	log, bound := p.look(e, params, arrival, now, &r, &a)
	held := log != nil && p.heldBack(params.ReplicaID, now)
	p.mu.Unlock()
	a.run()
	if log == nil || bound <= e.FetchOffset {
		return r, r.Err != 0 || r.Diverging != nil
	}
	if held {
		return r, true // looked at again with the next fetch
	}
	if limit == 0 && !minOneBatch {
		return r, true
	}
	s, err := log.Read(e.FetchOffset, limit, bound, minOneBatch)
	if err != nil {
		m.readFailed(&r, log, err)
		return r, true
	}
	r.Records = s
	return r, true
}

// place finds the partition of an entry.
func (m *Manager) place(e *session.Entry) (*partition, int16) {
	if p, ok := e.Place.(*partition); ok && !p.isDead() {
		return p, 0
	}
	if e.TP.Topic == "" {
		name, ok := m.topicName(e.TopicID)
		if !ok {
			return nil, kerr.UnknownTopicID.Code
		}
		e.TP.Topic = name
	}
	p := m.partition(e.TP)
	if p == nil {
		return nil, kerr.UnknownTopicOrPartition.Code
	}
	e.Place = p
	return p, 0
}

func (p *partition) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// look applies the rules to one entry under the partition's lock. It returns the log and the bound up to which
// it may be read; without records to read the entry is parked. A follower's fetch is taken for what it proves
// before anything is read (V3 G.3, G.4), so the answer carries the high watermark that it made possible.
func (p *partition) look(e *session.Entry, params *FetchParams, arrival bool, now time.Time, r *FetchResult, a *after) (*storage.Log, int64) {
	if !e.TopicID.IsZero() && !p.topicID.IsZero() && e.TopicID != p.topicID {
		r.Err = kerr.InconsistentTopicID.Code
		return nil, 0
	}
	p.syncLogStart(now, a)
	q := replica.FetchQuery{Replica: params.ReplicaID, CurrentEpoch: e.CurrentLeaderEpoch, LastFetchedEpoch: e.LastFetchedEpoch,
		Offset: e.FetchOffset, AnyReplica: params.Version >= 11}
	v := p.core.CheckFetch(q, epochs{p.log})
	if v.HigherEpoch {
		p.step(replica.HigherEpochSeen{At: now, Replica: params.ReplicaID, LeaderEpoch: e.CurrentLeaderEpoch}, a)
	}
	if v.Code != replica.CodeNone {
		p.refuse(v, r)
		return nil, 0
	}
	bound := v.Bound
	if v.Diverging == nil && params.ReplicaID >= 0 && arrival {
		alive := p.m.opts.IsAlive(params.ReplicaID)
		p.step(replica.FollowerFetched{At: now, Replica: params.ReplicaID, FetchOffset: e.FetchOffset,
			LogStart: e.LogStartOffset, Alive: alive, ReplicaEpoch: params.ReplicaEpoch}, a)
		if !alive { // it is a little ahead of its registration's news: look again soon, its fetch may be parked
			p.m.isr.retryLater(p)
		}
		p.followerMoved()
	}
	r.HighWatermark, r.LogStartOffset = p.core.HighWatermark(), p.core.LogStart()
	r.LastStableOffset = min(p.log.LastStableOffset(), r.HighWatermark)
	if v.Diverging != nil {
		r.Diverging = v.Diverging
		return nil, 0
	}
	if params.ReplicaID < 0 {
		bound = r.HighWatermark
		if params.ReadCommitted {
			bound = r.LastStableOffset
		}
	}
	if bound <= e.FetchOffset {
		p.park(e)
	}
	return p.log, bound
}

func (p *partition) refuse(v replica.FetchVerdict, r *FetchResult) {
	r.Err = int16(v.Code)
	switch v.Code {
	case replica.CodeNotLeaderOrFollower, replica.CodeFencedLeaderEpoch:
		if v.Leader >= 0 {
			r.CurrentLeader, r.CurrentEpoch = v.Leader, v.LeaderEpoch
		}
	}
}

// syncLogStart tells the state machine what retention has done to the log.
func (p *partition) syncLogStart(now time.Time, a *after) {
	if p.log == nil || !p.core.LogOpen() {
		return
	}
	if start := p.log.LogStartOffset(); start > p.core.LogStart() {
		p.step(replica.LogStartAdvanced{At: now, LogStart: start}, a)
	}
}

func (m *Manager) readFailed(r *FetchResult, log *storage.Log, err error) {
	r.Err = kerr.UnknownServerError.Code
	var ke *kerr.Error
	if errors.As(err, &ke) {
		r.Err = ke.Code
	}
	if isStorageFailure(err) {
		m.dirFailed(log.Dir(), err)
	}
}

// epochs is a log's epoch index; a log that is not open knows none.
type epochs struct{ log *storage.Log }

func (x epochs) EndOffsetForEpoch(epoch cluster.LeaderEpoch) (cluster.LeaderEpoch, int64) {
	if x.log == nil {
		return cluster.NoLeaderEpoch, -1
	}
	return x.log.EndOffsetForEpoch(epoch)
}
