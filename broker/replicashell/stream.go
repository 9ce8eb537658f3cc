package replicashell

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/broker/peer"
	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/zkutil/cluster"
)

// Fetch versions between brokers: 15 carries the broker epoch (KIP-903) and names topics by id, 12 is the last
// that names them by name and has epoch-aware truncation.
const (
	fetchVersionByID   int16 = 15
	fetchVersionByName int16 = 12
)

// stream replicates a share of the partitions of one leader over one connection, with one fetch outstanding.
// It keeps an incremental fetch session: a request names the partitions that moved, an answer those with news,
// so neither side looks at idle ones.
type stream struct {
	ss  *streams
	m   *Manager
	key streamKey

	wake chan struct{} // capacity 1: something was added or became due
	lag  atomic.Int64  // largest known lag in records

	mu        sync.Mutex // after partition.mu
	parts     map[cluster.TopicPartition]*follow
	changed   []*follow // to be named in the next request
	delayed   []*follow // backing off
	forgotten map[partitionID]struct{}

	// Owned by the goroutine.
	conn      *peer.Conn
	sessionID int32 // also of one that is over: the next full request names it, so that the leader drops it
	epoch     int32 // of the next request; 0 begins a session
	byID      bool
	sent      map[partitionID]sentFetch
	failures  int // exchanges that failed in a row
	empty     int // exchanges without news, in a row
}

// A stream that had no news for idleExchanges asks the leader to hold its fetch idleWaitFactor times as long: a
// broker with many idle partitions then spends its time on waiting. What the leader's followers are in touch for
// is bounded by the lag time, of which this stays a small part.
const (
	idleExchanges  = 8
	idleWaitFactor = 3
	idleLagPart    = 8
)

// partitionID names a partition on the wire: by id if there is one, by name otherwise.
type partitionID struct {
	topicID   cluster.TopicID
	topic     string
	partition int32
}

// sentFetch is what the leader's session holds for a partition.
type sentFetch struct {
	f       *follow
	offset  int64
	fetched cluster.LeaderEpoch
}

func newStream(ss *streams, key streamKey) *stream {
	return &stream{ss: ss, m: ss.m, key: key, wake: make(chan struct{}, 1), parts: map[cluster.TopicPartition]*follow{},
		forgotten: map[partitionID]struct{}{}, sent: map[partitionID]sentFetch{}}
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) add(f *follow) {
	s.mu.Lock()
	s.parts[f.tp] = f
	s.enqueue(f)
	s.mu.Unlock()
	s.signal()
}

func (s *stream) enqueue(f *follow) {
	if !f.queued && !f.delayed && !f.removed {
		f.queued = true
		s.changed = append(s.changed, f)
	}
}

func (s *stream) remove(f *follow) {
	s.mu.Lock()
	f.removed = true
	if s.parts[f.tp] == f {
		delete(s.parts, f.tp)
	}
	s.leaveSession(f)
	s.mu.Unlock()
	s.signal()
}

func (s *stream) leaveSession(f *follow) {
	if f.inSession {
		f.inSession = false
		s.forgotten[f.id(true)] = struct{}{}
		s.forgotten[f.id(false)] = struct{}{}
	}
}

// id names the partition in a session that goes by topic id, or by name.
func (f *follow) id(byID bool) partitionID {
	if byID {
		return partitionID{topicID: f.topicID, partition: f.tp.Partition}
	}
	return partitionID{topic: f.tp.Topic, partition: f.tp.Partition}
}

func (s *stream) update(f *follow, change func()) {
	s.mu.Lock()
	change()
	s.enqueue(f)
	s.mu.Unlock()
}

// delay takes the partition out of the session for a while; an error answer would otherwise come back at once
// with every fetch and turn the stream into a busy loop.
func (s *stream) delay(f *follow, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveSession(f)
	f.until = until
	if !f.delayed && !f.removed {
		f.delayed = true
		s.delayed = append(s.delayed, f)
	}
}

// run fetches until ctx ends or no partition is left.
func (s *stream) run(ctx context.Context) {
	defer s.disconnect()
	for ctx.Err() == nil {
		wait, idle := s.prepare()
		if idle {
			if s.ss.retire(s) {
				s.closeSession(ctx)
				return
			}
			continue
		}
		if wait > 0 {
			s.pause(ctx, wait)
			continue
		}
		if err := s.exchange(ctx); err != nil {
			s.failed(ctx, err)
		}
	}
}

// prepare lets back-offs end. wait is positive when there is nothing to fetch before that time has passed.
func (s *stream) prepare() (wait time.Duration, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return 0, true
	}
	next := s.wakeDelayed()
	if len(s.delayed) < len(s.parts) || next == 0 {
		return 0, false
	}
	return next, false
}

// wakeDelayed queues the partitions whose back-off is over and returns how long the next one still takes.
func (s *stream) wakeDelayed() (next time.Duration) {
	now := s.m.opts.Now()
	kept := s.delayed[:0]
	for _, f := range s.delayed {
		left := f.until.Sub(now)
		switch {
		case f.removed:
		case left <= 0 && f.throttled && s.m.throttles.follower.exceeded(now):
			f.until = now.Add(throttlePause)
			kept = append(kept, f)
			if next == 0 || throttlePause < next {
				next = throttlePause
			}
		case left <= 0:
			f.delayed, f.throttled = false, false
			s.enqueue(f)
		default:
			kept = append(kept, f)
			if next == 0 || left < next {
				next = left
			}
		}
	}
	clear(s.delayed[len(kept):])
	s.delayed = kept
	return next
}

func (s *stream) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-t.C:
	}
}

// failed drops the connection and the session with it, and pauses.
func (s *stream) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	s.disconnect()
	s.fetchesLost()
	s.failures++
	level := slog.LevelDebug
	if s.failures == 1 {
		level = slog.LevelWarn
	}
	s.m.log.LogAttrs(ctx, level, "replication from leader interrupted", slog.Int(obs.KeyLeader, int(s.key.leader)), obs.Err(err))
	s.m.metrics.streamFailed()
	t := time.NewTimer(s.m.backOff(s.failures))
	defer t.Stop()
	select { // not woken by new partitions: they cannot be fetched either
	case <-ctx.Done():
	case <-t.C:
	}
}

// fetchesLost tells the partitions that their answers have not come.
func (s *stream) fetchesLost() {
	s.mu.Lock()
	parts := slices.Collect(maps.Values(s.parts))
	s.mu.Unlock()
	for _, f := range parts {
		var a after
		f.p.mu.Lock()
		if f.p.follow == f {
			f.p.step(replica.FetchLost{At: s.m.opts.Now(), LeaderEpoch: f.epoch}, &a)
			f.level.Store(f.p.core.Level())
		}
		f.p.mu.Unlock()
		a.run()
	}
}

func (s *stream) disconnect() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	s.resetSession()
}

// closeSession spares the leader a session that nobody uses any more. It is a courtesy: errors do not matter.
func (s *stream) closeSession(ctx context.Context) {
	if s.conn == nil || s.sessionID == 0 {
		return
	}
	req := kmsg.NewPtrFetchRequest()
	req.Version = fetchVersionByName
	req.ReplicaID, req.SessionID, req.SessionEpoch = int32(s.m.opts.BrokerID), s.sessionID, -1
	_, _ = s.conn.DoReuse(ctx, req)
}

func (s *stream) resetSession() {
	s.epoch = 0
	clear(s.sent)
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.forgotten)
	for _, f := range s.parts {
		f.inSession = false
		s.enqueue(f)
	}
}

func (s *stream) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	addr, ok := s.m.brokerAddr(s.key.leader)
	if !ok {
		return fmt.Errorf("address of broker %d is not known", s.key.leader)
	}
	client := fmt.Sprintf("broker-%d-fetcher-%d", s.m.opts.BrokerID, s.key.slot)
	ctx, cancel := context.WithTimeout(ctx, s.m.opts.RequestTimeout)
	defer cancel()
	conn, err := peer.Dial(ctx, s.m.opts.Dial, addr, client, s.m.opts.RequestTimeout)
	if err != nil {
		return err
	}
	s.conn = conn
	return nil
}

// exchange runs one fetch and applies its answer. It fails for the connection only; errors of partitions are
// their own business.
func (s *stream) exchange(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.askLeader(ctx); err != nil {
		return err
	}
	req := s.request()
	kresp, err := s.conn.DoReuse(ctx, req)
	if err != nil {
		return err
	}
	resp, ok := kresp.(*kmsg.FetchResponse)
	if !ok {
		return fmt.Errorf("answer to Fetch is a %T", kresp)
	}
	switch resp.ErrorCode {
	case 0:
	case kerr.FetchSessionIDNotFound.Code, kerr.InvalidFetchSessionEpoch.Code, kerr.FetchSessionTopicIDError.Code:
		s.resetSession()
		return nil
	default:
		return codeError("fetch", resp.ErrorCode)
	}
	s.failures = 0
	s.sessionID = resp.SessionID
	if s.epoch++; s.epoch <= 0 {
		s.epoch = 1
	}
	s.apply(resp)
	if s.sessionID == 0 {
		s.resetSession() // the leader keeps no session for us: every request is a full one
	}
	return nil
}

// request names what has changed since the last one.
func (s *stream) request() *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	o := &s.m.opts
	req.ReplicaID, req.MinBytes, req.MaxBytes = int32(o.BrokerID), o.FetchMinBytes, o.FetchResponseMaxBytes
	req.ReplicaState.ID, req.ReplicaState.Epoch = int32(o.BrokerID), int64(o.BrokerEpoch())
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := o.FetchWaitMax
	if s.empty >= idleExchanges && len(s.changed) == 0 {
		wait = max(wait, min(idleWaitFactor*wait, o.ReplicaLagTimeMax/idleLagPart))
	}
	if next := s.wakeDelayed(); next > 0 {
		wait = min(wait, next)
	}
	req.MaxWaitMillis = int32(max(wait/time.Millisecond, 1))
	s.chooseVersion()
	req.Version = fetchVersionByName
	if s.byID {
		req.Version = fetchVersionByID
	}
	req.SessionID, req.SessionEpoch = s.sessionID, s.epoch
	s.nameChanged(req)
	s.nameForgotten(req)
	return req
}

// chooseVersion goes by topic ids as soon as every partition has one. A session cannot change over.
func (s *stream) chooseVersion() {
	byID := true
	for _, f := range s.changed {
		byID = byID && (f.removed || !f.topicID.IsZero())
	}
	if s.epoch == 0 {
		s.byID = byID
	} else if s.byID && !byID {
		s.byID, s.epoch = false, 0
		clear(s.sent)
		clear(s.forgotten)
		for _, f := range s.parts {
			f.inSession = false
			s.enqueue(f)
		}
	}
}

func (s *stream) nameChanged(req *kmsg.FetchRequest) {
	slices.SortFunc(s.changed, func(a, b *follow) int { return strings.Compare(a.tp.Topic, b.tp.Topic) })
	var held []*follow
	for _, f := range s.changed {
		f.queued = false
		if f.removed || f.delayed {
			continue
		}
		if f.ask != nil { // the leader is asked first
			held = append(held, f)
			continue
		}
		if s.holdBack(f) {
			continue
		}
		id := f.id(s.byID)
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != f.tp.Topic || req.Topics[n-1].TopicID != f.topicID {
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = f.tp.Topic, f.topicID
			req.Topics = append(req.Topics, t)
		}
		f.logStart = f.p.logStart()
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.FetchOffset = f.tp.Partition, int32(f.epoch), f.offset
		p.LastFetchedEpoch, p.LogStartOffset, p.PartitionMaxBytes = int32(f.lastEpoch), f.logStart, s.m.opts.FetchMaxBytes
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
		f.inSession = true
		s.sent[id] = sentFetch{f, f.offset, f.lastEpoch}
		delete(s.forgotten, id)
	}
	clear(s.changed)
	s.changed = s.changed[:0]
	for _, f := range held {
		s.enqueue(f)
	}
}

func (s *stream) nameForgotten(req *kmsg.FetchRequest) {
	for id := range s.forgotten {
		if _, known := s.sent[id]; !known {
			continue // the other way of naming it
		}
		delete(s.sent, id)
		t := kmsg.NewFetchRequestForgottenTopic()
		t.Topic, t.TopicID, t.Partitions = id.topic, id.topicID, []int32{id.partition}
		req.ForgottenTopics = append(req.ForgottenTopics, t)
	}
	clear(s.forgotten)
}

// apply hands each partition its part of the answer. The records lie in the connection's buffer and are
// appended before it is used again.
func (s *stream) apply(resp *kmsg.FetchResponse) {
	var lag int64
	if s.empty++; len(resp.Topics) > 0 {
		s.empty = 0
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			id := partitionID{topic: t.Topic, partition: p.Partition}
			if s.byID {
				id = partitionID{topicID: t.TopicID, partition: p.Partition}
			}
			if sent, ok := s.sent[id]; ok {
				lag = max(lag, s.applyOne(sent, p))
			}
		}
	}
	s.lag.Store(lag)
}

func (s *stream) applyOne(sent sentFetch, rp *kmsg.FetchResponseTopicPartition) (lag int64) {
	answer := logexec.Answer{LeaderEpoch: sent.f.epoch, FetchOffset: sent.offset, FetchedEpoch: sent.fetched, Code: replica.Code(rp.ErrorCode),
		HighWatermark: rp.HighWatermark, LogStart: rp.LogStartOffset, Records: rp.RecordBatches}
	if rp.DivergingEpoch.Epoch >= 0 || rp.DivergingEpoch.EndOffset >= 0 {
		answer.Diverging = &replica.EpochEnd{Epoch: cluster.LeaderEpoch(rp.DivergingEpoch.Epoch), Offset: rp.DivergingEpoch.EndOffset}
	}
	p := sent.f.p
	var a after
	p.mu.Lock()
	if p.follow != sent.f || p.log == nil {
		p.mu.Unlock()
		return 0 // it follows somebody else by now
	}
	ev, appended, err := logexec.ApplyFetch(p.core, p.log, answer, s.m.opts.Now())
	if err != nil {
		p.logError("records from leader could not be appended", err, &a)
	}
	p.step(ev, &a)
	lag = max(0, rp.HighWatermark-p.core.LogEnd())
	sent.f.level.Store(p.core.Level())
	p.mu.Unlock()
	a.run()
	s.m.metrics.replicated(appended)
	s.countReceived(sent.f, appended)
	return lag
}

// logStart is read without the partition's lock: it is called under the stream's, which comes after.
func (p *partition) logStart() int64 {
	if l := p.openLogRef.Load(); l != nil {
		return l.LogStartOffset()
	}
	return -1
}
