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

// moves schedules the moves of replicas between log directories (logexec has their steps). Each pair of directories
// has a goroutine of its own while there are moves between them, so that a slow or dead directory holds back those
// alone; all of them together keep to one throttle.
type moves struct {
	m *Manager

	mu    sync.Mutex // after partition.mu
	ctx   context.Context
	done  bool
	lanes map[logexec.Lane]*moveLane
	count uint64
	wg    sync.WaitGroup
}

// moveLane are the moves between two directories. They take turns, a chunk each.
type moveLane struct {
	mv   *moves
	lane logexec.Lane
	wake chan struct{} // capacity 1

	// Guarded by moves.mu. open holds which call of add named a move last, so that one that was added anew is not
	// dropped for what was seen before.
	open map[cluster.TopicPartition]uint64
}

// moveChunk is the size of one read, moveLastReads how many of them may be left to be copied under the partition's lock.
const (
	moveChunk     = 1 << 20
	moveLastReads = 4
)

func newMoves(m *Manager) *moves { return &moves{m: m, lanes: map[logexec.Lane]*moveLane{}} }

// add lets the partition's move go on. It never blocks.
func (mv *moves) add(tp cluster.TopicPartition) {
	lane, ok := logexec.LaneOf(mv.m.storage, tp)
	if !ok {
		return
	}
	mv.mu.Lock()
	defer mv.mu.Unlock()
	l := mv.lanes[lane]
	if l == nil {
		l = &moveLane{mv: mv, lane: lane, wake: make(chan struct{}, 1), open: map[cluster.TopicPartition]uint64{}}
		mv.lanes[lane] = l
		mv.launch(l)
	}
	mv.count++
	l.open[tp] = mv.count
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// launch is called under mu.
func (mv *moves) launch(l *moveLane) {
	if mv.ctx == nil || mv.done {
		return
	}
	ctx := mv.ctx
	mv.wg.Add(1)
	go func() {
		defer mv.wg.Done()
		l.run(ctx)
	}()
}

// run starts every lane, and returns when ctx has ended and all of them have.
func (mv *moves) run(ctx context.Context) {
	mv.mu.Lock()
	mv.ctx = ctx
	for _, l := range mv.lanes {
		mv.launch(l)
	}
	mv.mu.Unlock()
	<-ctx.Done()
	mv.mu.Lock()
	mv.done = true
	mv.mu.Unlock()
	mv.wg.Wait()
}

// drop forgets a move, unless it was added anew since it was listed.
func (l *moveLane) drop(tp cluster.TopicPartition, added uint64) {
	l.mv.mu.Lock()
	defer l.mv.mu.Unlock()
	if l.open[tp] == added {
		delete(l.open, tp)
	}
}

// listed is a move as the lane saw it.
type listed struct {
	tp    cluster.TopicPartition
	added uint64
}

// list returns the moves in order. Without any the lane ends.
func (l *moveLane) list() []listed {
	l.mv.mu.Lock()
	defer l.mv.mu.Unlock()
	if len(l.open) == 0 {
		delete(l.mv.lanes, l.lane)
		return nil
	}
	tps := slices.SortedFunc(maps.Keys(l.open), cluster.TopicPartition.Compare)
	out := make([]listed, len(tps))
	for i, tp := range tps {
		out[i] = listed{tp, l.open[tp]}
	}
	return out
}

// run takes the moves in turn until there are none, or ctx ends.
func (l *moveLane) run(ctx context.Context) {
	var buf []byte
	for {
		list := l.list()
		busy := false
		for _, it := range list {
			if ctx.Err() != nil {
				return
			}
			busy = l.step(it, &buf) || busy
		}
		switch {
		case len(list) == 0:
			return
		case !busy:
			l.pause(ctx)
		}
	}
}

// pause waits for a move, or for the high watermark or the throttle that stands in the way.
func (l *moveLane) pause(ctx context.Context) {
	t := time.NewTimer(throttlePause)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-t.C:
	}
}

// step carries one move on; it reports whether another step would have something to do at once.
func (l *moveLane) step(it listed, buf *[]byte) (busy bool) {
	m := l.mv.m
	p := m.partition(it.tp)
	future, moving := m.storage.Future(it.tp)
	if p == nil || !moving || future.Dir() != l.lane.To {
		l.drop(it.tp, it.added)
		return false
	}
	if m.throttles.moves.exceeded(m.opts.Now()) {
		return false
	}
	log, hw, stopped := p.movable()
	if stopped {
		return false // goes on when the controller says what the replica is to be
	}
	if log == nil || log.Dir() != l.lane.From {
		l.drop(it.tp, it.added) // goes on when the log is opened
		return false
	}
	n, err := logexec.CopyMove(log, future, hw, moveChunk, buf)
	m.throttles.moves.record(m.opts.Now(), n)
	if err == nil && n == 0 {
		if err = logexec.FlushMove(future); err == nil {
			busy, err = l.finish(p, log, future, buf)
		}
	}
	if err != nil {
		l.failed(it, future, err)
		return false
	}
	return busy || n > 0
}

// movable returns the open log of a partition and its high watermark; nil when there is none. stopped says that it is
// there, but of a replica that neither leads nor follows.
func (p *partition) movable() (log *storage.Log, hw int64, stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead || p.log == nil || !p.core.LogOpen() || p.core.Role() == replica.Offline {
		return nil, 0, false
	}
	return p.log, p.core.HighWatermark(), p.core.Role() == replica.None
}

// failed ends the move of a broken copy; a failing disk takes its directory offline.
func (l *moveLane) failed(it listed, future *storage.Log, err error) {
	me, ok := errors.AsType[*logexec.MoveError](err)
	if !ok || me.Dir == "" && !me.Spoil {
		return // deleted meanwhile: the next step finds out
	}
	m := l.mv.m
	m.chatter.say(slog.LevelError, "replica could not be copied to another log directory",
		slog.String(obs.KeyTopicPartition, it.tp.String()), slog.String(obs.KeyLogDir, future.Dir()), obs.Err(err))
	if me.Dir != "" {
		m.dirFailed(me.Dir, err)
		return
	}
	l.drop(it.tp, it.added)
	if err := m.storage.DeleteFuture(it.tp); err != nil {
		m.dirFailed(future.Dir(), err)
	}
}

// finish copies the rest under the partition's lock and swaps the logs, if the rest is little; busy otherwise.
func (l *moveLane) finish(p *partition, log, future *storage.Log, buf *[]byte) (busy bool, err error) {
	var a after
	p.mu.Lock()
	defer func() { p.mu.Unlock(); a.run() }()
	if p.dead || p.log != log || p.core.Role() == replica.Offline {
		return true, nil // the next step looks anew
	}
	next, n, err := logexec.FinishMove(p.m.storage, log, future, moveChunk, moveLastReads, buf)
	p.m.throttles.moves.record(p.m.opts.Now(), n)
	if err != nil && logexec.LostInMove(p.m.storage, log) {
		p.step(replica.LogFailed{At: p.m.opts.Now()}, &a)
	}
	if err != nil || next == nil {
		return err == nil, err
	}
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
	p.follow.level.Store(p.core.Level())
	p.m.streams.add(leader, p.log.Dir(), p.follow)
}

// resumeMove lets a move go on that began before the log was opened. p.mu is held.
func (p *partition) resumeMove(a *after) {
	future, err := logexec.ResumeMove(p.m.storage, p.log)
	switch {
	case err != nil:
		p.m.chatter.say(slog.LevelError, "copy in another log directory could not be removed",
			slog.String(obs.KeyTopicPartition, p.tp.String()), obs.Err(err))
		if me, ok := errors.AsType[*logexec.MoveError](err); ok && me.Dir != "" && a.failed == nil {
			a.failed, a.dir, a.m = err, me.Dir, p.m
		}
	case future != nil:
		p.m.moves.add(p.tp)
	}
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
	future, err := logexec.SetMove(m.storage, p.log, dir)
	if err != nil {
		m.log.LogAttrs(context.Background(), slog.LevelError, "move to another log directory refused",
			slog.String(obs.KeyTopicPartition, tp.String()), slog.String(obs.KeyLogDir, dir), obs.Err(err))
	}
	if future != nil {
		m.moves.add(tp)
	}
	return moveCode(err)
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
