package sim

import (
	"bytes"
	"errors"
	"time"

	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/broker/storage"
	"kctl/broker/vfs"
)

const (
	moveChunk = 2 << 10 // at most; so small that a move takes many steps, and things happen between them
	movePause = 100 * time.Millisecond
)

// moveOne asks a broker for one of its replicas to be in one of its directories: a move begins, turns back or ends.
func (s *Sim) moveOne() {
	n := s.anyNode()
	if !n.up || n.paused() || len(n.order) == 0 {
		return
	}
	p := n.order[s.rng.IntN(len(n.order))]
	dir := logDirs[s.rng.IntN(len(logDirs))]
	if n.store.Prefer(p.tp, dir) != nil || p.log == nil || !p.core.LogOpen() || p.core.Role() == replica.Offline {
		return
	}
	s.trace.line("%s %s: move to %s", n, p.tp, dir)
	future, err := logexec.SetMove(n.store, p.log, dir)
	switch {
	case errors.Is(err, storage.ErrOffline):
	case err != nil:
		n.diskFailed(err)
	case future != nil:
		s.report.Moves++
		p.moveAfter(s.between(0, 5*time.Millisecond))
	}
}

// moveAfter takes the next step of a move, at most one at a time.
func (p *part) moveAfter(d time.Duration) {
	p.moving.cancel()
	p.moving = p.n.at(p.n.inc, p.n.sim.now.Add(d), "move step", p.moveStep)
}

// resumeMove is called when the log was opened.
func (p *part) resumeMove() {
	future, err := logexec.ResumeMove(p.n.store, p.log)
	switch {
	case err != nil:
		p.n.diskFailed(err)
	case future != nil:
		p.moveAfter(movePause)
	}
}

func (p *part) moveStep() {
	n, s := p.n, p.n.sim
	future, moving := n.store.Future(p.tp)
	if !moving || n.parts[p.tp] != p || p.log == nil || p.core.Role() == replica.Offline {
		return
	}
	if p.core.Role() == replica.None || n.throttles.moves.Exceeded(s.now) {
		p.moveAfter(movePause)
		return
	}
	work := func() { p.moveOn(future) }
	switch {
	case s.chance(s.faults.MoveCrash):
		n.dieAmid(work)
	case s.chance(s.faults.MoveFail):
		n.failAmid(logDirs[s.rng.IntN(len(logDirs))], work)
	default:
		work()
	}
	if n.up && n.parts[p.tp] == p {
		pause := 20 * time.Millisecond
		if s.chance(0.2) { // a slow disk: the log may be cut off and written anew meanwhile
			pause = 3 * time.Second
		}
		p.moveAfter(s.between(time.Millisecond, pause))
	}
}

// drawChunk makes some steps of one batch, so that a move stops above the high watermark too.
func (s *Sim) drawChunk() int {
	if s.rng.IntN(3) == 0 && !s.healed {
		return 1
	}
	return moveChunk
}

// drawReads leaves some moves above the high watermark, and makes sure that they end.
func (s *Sim) drawReads() int {
	if s.rng.IntN(2) == 0 && !s.healed {
		return 1
	}
	return 4
}

// moveOn is what the broker's shell does in one step.
func (p *part) moveOn(future *storage.Log) {
	n, s := p.n, p.n.sim
	var buf []byte
	bound := p.core.HighWatermark()
	if s.chance(0.4) { // the last steps go on above it, and may be interrupted
		bound = p.log.LogEndOffset()
	}
	count, err := logexec.CopyMove(p.log, future, bound, s.drawChunk(), &buf)
	n.throttles.moves.Record(s.now, count)
	if err == nil {
		s.check.copied(p, future)
	}
	if err == nil && count == 0 {
		if err = logexec.FlushMove(future); err == nil {
			err = p.finishMove(future)
		}
	}
	me, ok := errors.AsType[*logexec.MoveError](err)
	switch {
	case !ok || me.Dir == "" && !me.Spoil: // done, or deleted meanwhile
	case me.Spoil:
		s.fail("%s %s: its copy is spoilt: %v", n, p.tp, err)
	case !errors.Is(err, errDisk): // the disk under all directories is full
		n.diskFailed(err)
	default:
		end, lost := p.log.LogEndOffset(), logexec.LostInMove(n.store, p.log)
		if lost {
			p.step(replica.LogFailed{At: s.now})
		}
		n.loseDir(me.Dir)
		if lost { // it is there under one name or the other, and comes back
			s.check.hidden[n.id][p.tp] = end
		}
	}
}

// copyAhead lets a move have copied everything when its log is cut back to an offset: the hardest moment there is, and so
// rare otherwise that hundreds of seeds do without it.
func (p *part) copyAhead(cut int64) error {
	n, s := p.n, p.n.sim
	if s.healed || cut >= p.log.LogEndOffset() || !s.chance(s.faults.MoveCut) || n.dirOffline() {
		return nil
	}
	other := logDirs[0]
	if p.log.Dir() == other {
		other = logDirs[1]
	}
	future, err := logexec.SetMove(n.store, p.log, other)
	if err != nil {
		return err
	}
	var buf []byte
	for count := 1; count > 0; {
		if count, err = logexec.CopyMove(p.log, future, p.log.LogEndOffset(), moveChunk, &buf); err != nil {
			return err
		}
	}
	if future.LogEndOffset() > cut {
		s.report.MoveCuts++
		s.trace.line("%s %s: copied to %s up to %d", n, p.tp, other, future.LogEndOffset())
	}
	p.moveAfter(s.between(0, 3*time.Second)) // the log may have grown over the cut by then
	return nil
}

// finishMove compares the log before and after the swap, to the last byte.
func (p *part) finishMove(future *storage.Log) error {
	n, s := p.n, p.n.sim
	log := p.log
	want, whole := wholeLog(log)
	var buf []byte
	next, count, err := logexec.FinishMove(n.store, log, future, s.drawChunk(), s.drawReads(), &buf)
	n.throttles.moves.Record(s.now, count)
	if err != nil || next == nil {
		return err
	}
	p.log = next
	s.report.Moved++
	s.trace.line("%s %s: moved to %s, log end %d", n, p.tp, next.Dir(), next.LogEndOffset())
	got, also := wholeLog(next)
	if whole && also && !bytes.Equal(got, want) || next.HighWatermark() != log.HighWatermark() {
		s.fail("%s %s: %d bytes and high watermark %d after a move, %d bytes and %d before (16)", n, p.tp, len(got), next.HighWatermark(), len(want), log.HighWatermark())
	}
	s.check.oneCopy(n)
	return nil
}

// wholeLog reads all records; not ok when the directory fails in these very steps.
func wholeLog(l *storage.Log) (out []byte, ok bool) {
	return records(l, l.LogStartOffset(), l.LogEndOffset())
}

// records reads the batches from the one that holds from up to the one that ends at to.
func records(l *storage.Log, from, to int64) (out []byte, ok bool) {
	for offset := from; offset < to; {
		slice, err := l.Read(offset, 1<<30, to, true)
		if err != nil || slice.Size() == 0 {
			return out, false
		}
		data := make([]byte, slice.Size())
		_, err = slice.ReadInto(data)
		slice.Release()
		if err != nil {
			return out, false
		}
		out, offset = append(out, data...), nextOffset(data)
	}
	return out, true
}

// dieAmid lets the process, or the machine, end at some change to the disk in the course of work.
func (n *node) dieAmid(work func()) {
	s := n.sim
	crash := s.rng.IntN(2) == 0
	keep := vfs.KeepUnsynced
	if crash {
		keep = unsynced(s.rng.IntN(2))
	}
	fs, seed := n.fs, s.rng.Uint64()
	var left *vfs.Mem
	ops := s.rng.IntN(24)
	fs.SetHook(func(vfs.Op, string) {
		if ops--; ops < 0 && left == nil {
			left = fs.CrashClone(keep, seed)
		}
	})
	work()
	fs.SetHook(nil)
	if !n.up {
		return // its disk was full
	}
	if left == nil {
		left = fs.CrashClone(keep, seed)
	}
	s.report.MoveCrashes++
	s.trace.line("%s dies amid a move, machine %v", n, crash)
	n.down(left, crash)
	s.startLater(n)
}

// failAmid lets a directory fail at some operation in the course of work; it works again for whoever asks it later.
func (n *node) failAmid(dir string, work func()) {
	what := n.sim.rng.IntN(3) // the directory itself, its folders, or the files in these
	n.fs.Inject(vfs.Rule{Pattern: []string{dir, dir + "/*", dir + "/*/*"}[what], Skip: n.sim.rng.IntN(1 + 3*what), Err: errDisk})
	fs := n.fs
	work()
	fs.ClearFaults()
}
