package replicashell

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// A replica that moves to another log directory of this broker has a future log there (see storage.Manager's
// CreateFuture). moves copies the current log into it, up to the high watermark while others work with the
// partition, and the rest, when it is little, under the partition's lock, where the logs are swapped. What the
// current log cuts off meanwhile the future log cuts off too, found by leader epochs as a follower finds it.
type moves struct {
	m    *Manager
	wake chan struct{} // capacity 1

	mu   sync.Mutex // after partition.mu
	open map[cluster.TopicPartition]struct{}
}

// Sizes of a move's steps: of one read, and how many of them may be left to be copied under the partition's lock.
const (
	moveChunk    = 1 << 20
	moveLastRead = 4
)

func newMoves(m *Manager) *moves {
	return &moves{m: m, wake: make(chan struct{}, 1), open: map[cluster.TopicPartition]struct{}{}}
}

// add lets the partition's move go on. It never blocks.
func (mv *moves) add(tp cluster.TopicPartition) {
	mv.mu.Lock()
	mv.open[tp] = struct{}{}
	mv.mu.Unlock()
	select {
	case mv.wake <- struct{}{}:
	default:
	}
}

func (mv *moves) drop(tp cluster.TopicPartition) {
	mv.mu.Lock()
	defer mv.mu.Unlock()
	delete(mv.open, tp)
}

func (mv *moves) list() []cluster.TopicPartition {
	mv.mu.Lock()
	defer mv.mu.Unlock()
	return slices.SortedFunc(maps.Keys(mv.open), cluster.TopicPartition.Compare)
}

// run takes the moves in turn, one chunk each, until ctx ends.
func (mv *moves) run(ctx context.Context) {
	var buf []byte
	for ctx.Err() == nil {
		busy := false
		list := mv.list()
		for _, tp := range list {
			if ctx.Err() != nil {
				return
			}
			busy = mv.step(tp, &buf) || busy
		}
		if !busy {
			mv.pause(ctx, len(list) > 0)
		}
	}
}

// pause waits for a move; with some open, also for the high watermark or the throttle that stands in the way.
func (mv *moves) pause(ctx context.Context, open bool) {
	var again <-chan time.Time
	if open {
		t := time.NewTimer(throttlePause)
		defer t.Stop()
		again = t.C
	}
	select {
	case <-ctx.Done():
	case <-mv.wake:
	case <-again:
	}
}

// step carries one move on; it reports whether another step would have something to do at once.
func (mv *moves) step(tp cluster.TopicPartition, buf *[]byte) (busy bool) {
	m := mv.m
	p := m.partition(tp)
	future, ok := m.storage.Future(tp)
	if p == nil || !ok {
		mv.drop(tp)
		return false
	}
	if m.throttles.moves.exceeded(m.opts.Now()) {
		return false
	}
	log, hw := p.movable()
	if log == nil {
		mv.drop(tp) // goes on when the log is opened
		return false
	}
	n, err := mv.copy(log, future, hw, buf)
	if err == nil && n == 0 {
		err = future.Flush() // so that little is left to be done under the lock
	}
	if err == nil && n == 0 {
		busy, err = mv.finish(p, log, future, buf)
	}
	if err != nil {
		mv.failed(tp, future, log, err)
		return false
	}
	return busy || n > 0
}

// movable returns the open log of a partition and its high watermark; nil when there is none.
func (p *partition) movable() (*storage.Log, int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.log == nil || !p.core.LogOpen() || p.core.Role() == replica.Offline {
		return nil, 0
	}
	return p.log, p.core.HighWatermark()
}

// failed ends the move of a broken copy; a failing disk takes its directory offline.
func (mv *moves) failed(tp cluster.TopicPartition, future, log *storage.Log, err error) {
	if errors.Is(err, storage.ErrClosed) {
		return // deleted meanwhile: the next step finds out
	}
	mv.m.chatter.say(slog.LevelError, "replica could not be copied to another log directory",
		slog.String(obs.KeyTopicPartition, tp.String()), slog.String(obs.KeyLogDir, future.Dir()), obs.Err(err))
	switch {
	case !isStorageFailure(err):
		mv.drop(tp)
		if err := mv.m.storage.DeleteFuture(tp); err != nil {
			mv.m.dirFailed(future.Dir(), err)
		}
	case log.Failed() != nil:
		mv.m.dirFailed(log.Dir(), err)
	default:
		mv.m.dirFailed(future.Dir(), err)
	}
}

// copy appends the next chunk of log below bound to future; n is 0 when there is none.
func (mv *moves) copy(log, future *storage.Log, bound int64, buf *[]byte) (n int, err error) {
	if err := align(log, future); err != nil {
		return 0, err
	}
	from := future.LogEndOffset()
	if from >= bound {
		return 0, nil
	}
	s, err := log.Read(from, moveChunk, bound, true)
	if errors.Is(err, storage.ErrOffsetOutOfRange) { // retention was faster
		return 1, future.TruncateFullyAndStartAt(log.LogStartOffset())
	}
	if err != nil {
		return 0, err
	}
	defer s.Release()
	if s.Size() == 0 {
		return 0, nil
	}
	*buf = slices.Grow((*buf)[:0], s.Size())[:s.Size()]
	if _, err := s.ReadInto(*buf); err != nil {
		return 0, err
	}
	res, err := future.AppendAsFollower(*buf)
	mv.m.throttles.moves.record(mv.m.opts.Now(), res.Bytes)
	return res.Bytes, err
}

// align cuts off the future log what the current one does not have: after a truncation its epochs end earlier
// (KIP-101).
func align(log, future *storage.Log) error {
	for {
		end, epoch := future.LogEndOffset(), logexec.LastEpoch(future)
		if epoch < 0 {
			if start := log.LogStartOffset(); end < start || end > log.LogEndOffset() {
				return future.TruncateFullyAndStartAt(start)
			}
			return nil
		}
		found, to := log.EndOffsetForEpoch(epoch)
		if found == epoch && to >= end {
			return nil
		}
		if _, mine := future.EndOffsetForEpoch(found); found != epoch {
			to = min(to, mine)
		}
		if to <= future.LogStartOffset() || to >= end {
			return future.TruncateFullyAndStartAt(log.LogStartOffset())
		}
		if err := future.TruncateTo(to); err != nil {
			return err
		}
	}
}

// finish copies the rest under the partition's lock and swaps the logs, if the rest is little; busy otherwise.
func (mv *moves) finish(p *partition, log, future *storage.Log, buf *[]byte) (busy bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now, ok := p.m.storage.Future(p.tp); p.dead || p.log != log || !ok || now != future || p.core.Role() == replica.Offline {
		return true, nil // the next step looks anew
	}
	for range moveLastRead {
		if future.LogEndOffset() >= log.LogEndOffset() {
			break
		}
		if _, err := mv.copy(log, future, log.LogEndOffset(), buf); err != nil {
			return false, err
		}
	}
	if future.LogEndOffset() != log.LogEndOffset() {
		return true, nil
	}
	if err := align(log, future); err != nil {
		return false, err
	}
	next, err := p.m.storage.Promote(p.tp)
	if errors.Is(err, storage.ErrUnexpectedOffset) || errors.Is(err, storage.ErrNoFuture) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	mv.drop(p.tp)
	p.log = next
	p.openLogRef.Store(next)
	p.refollow()
	p.m.hwDirty.Store(true)
	p.m.log.LogAttrs(context.Background(), slog.LevelInfo, "replica moved to another log directory",
		slog.String(obs.KeyTopicPartition, p.tp.String()), slog.String(obs.KeyLogDir, next.Dir()), slog.String("from", log.Dir()))
	return false, nil
}

// refollow goes on replicating with the stream of the new directory. p.mu is held.
func (p *partition) refollow() {
	f := p.follow
	if f == nil {
		return
	}
	f.stream.mu.Lock()
	offset, last, ask := f.offset, f.lastEpoch, f.ask
	f.stream.mu.Unlock()
	leader := f.stream.key.leader
	f.stream.remove(f)
	p.follow = &follow{p: p, tp: p.tp, topicID: f.topicID, epoch: f.epoch, offset: offset, lastEpoch: last, ask: ask}
	p.m.streams.add(leader, p.log.Dir(), p.follow)
}

// AlterReplicaLogDirs moves replicas to other log directories of this broker (KIP-113). It answers when the move has
// begun. A replica that is not here yet answers REPLICA_NOT_AVAILABLE, and is made in the directory when it comes;
// the directory in which a replica is ends a move.
func (m *Manager) AlterReplicaLogDirs(_ context.Context, req *kmsg.AlterReplicaLogDirsRequest) *kmsg.AlterReplicaLogDirsResponse {
	resp := req.ResponseKind().(*kmsg.AlterReplicaLogDirsResponse)
	at := map[string]int{}
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			i, ok := at[t.Topic]
			if !ok {
				i = len(resp.Topics)
				at[t.Topic] = i
				rt := kmsg.NewAlterReplicaLogDirsResponseTopic()
				rt.Topic = t.Topic
				resp.Topics = append(resp.Topics, rt)
			}
			for _, n := range t.Partitions {
				rp := kmsg.NewAlterReplicaLogDirsResponseTopicPartition()
				rp.Partition = n
				rp.ErrorCode = m.moveReplica(cluster.TopicPartition{Topic: t.Topic, Partition: n}, d.Dir)
				resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, rp)
			}
		}
	}
	return resp
}

func (m *Manager) moveReplica(tp cluster.TopicPartition, dir string) int16 {
	if err := m.storage.Prefer(tp, dir); err != nil {
		return moveCode(err)
	}
	p := m.partition(tp)
	if p == nil {
		return kerr.ReplicaNotAvailable.Code
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.core.Role() == replica.Offline:
		return kerr.KafkaStorageError.Code
	case p.dead || p.log == nil || !p.core.LogOpen():
		return kerr.ReplicaNotAvailable.Code
	}
	err := m.setFuture(p, dir)
	if err != nil {
		m.log.LogAttrs(context.Background(), slog.LevelError, "move to another log directory refused",
			slog.String(obs.KeyTopicPartition, tp.String()), slog.String(obs.KeyLogDir, dir), obs.Err(err))
	}
	return moveCode(err)
}

// setFuture begins, redirects or ends a move. No move begins while a directory is offline: whether it holds a future
// log of the partition cannot be seen. p.mu is held.
func (m *Manager) setFuture(p *partition, dir string) error {
	current, target := "", ""
	online := true
	for _, d := range m.storage.Dirs() {
		online = online && d.Online()
		if storage.SameDir(d.Path, dir) {
			target = d.Path
		}
		if d.Path == p.log.Dir() {
			current = d.Path
		}
	}
	future, moving := m.storage.Future(p.tp)
	if moving && future.Dir() != target {
		if err := m.storage.DeleteFuture(p.tp); err != nil {
			return err
		}
	}
	switch {
	case target == current:
		return nil
	case !online:
		return storage.ErrOffline
	}
	if _, err := m.storage.CreateFuture(p.tp, target); err != nil {
		return err
	}
	m.moves.add(p.tp)
	return nil
}

func moveCode(err error) int16 {
	if err == nil {
		return 0
	}
	if errors.Is(err, storage.ErrNoDir) {
		return kerr.LogDirNotFound.Code
	}
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return cmp.Or(ke.Code, kerr.UnknownServerError.Code)
	}
	return kerr.UnknownServerError.Code
}
