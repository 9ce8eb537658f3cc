package logexec

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// A replica that moves to another log directory of its broker has a future log there (storage.Manager.CreateFuture).
// The steps of a move are here, their scheduling is the shell's: CopyMove copies below the high watermark while others
// work with the partition; FinishMove copies the rest, when it is little, and swaps the logs, while nobody else does.
// What the current log cuts off meanwhile the future log cuts off too, found by leader epochs as a follower finds it.

// MoveError says why a move cannot go on.
type MoveError struct {
	Dir   string // the log directory that failed; empty when none did
	Spoil bool   // the copy is good for nothing and is to be deleted
	Err   error
}

func (e *MoveError) Error() string {
	if e.Dir != "" {
		return fmt.Sprintf("log directory %s: %v", e.Dir, e.Err)
	}
	return e.Err.Error()
}

func (e *MoveError) Unwrap() error { return e.Err }

// blame finds out what an error of the log that lies in dir means for the move. A log that was closed was deleted or
// swapped meanwhile, which the next step sees.
func blame(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrStorage) || errors.Is(err, storage.ErrOffline):
		return &MoveError{Dir: dir, Err: err}
	case errors.Is(err, storage.ErrClosed):
		return &MoveError{Err: err}
	}
	return &MoveError{Spoil: true, Err: err}
}

// SetMove begins, redirects or ends the move of an open log: dir is the directory in which the replica is to be; the
// one in which it is ends a move. It returns the future log when there is a move afterwards. No move begins while a
// directory is offline: whether it holds a future log of the partition cannot be seen. Errors: storage.ErrNoDir,
// storage.ErrOffline, and failures of storage.
func SetMove(m *storage.Manager, log *storage.Log, dir string) (*storage.Log, error) {
	target, online := "", true
	for _, d := range m.Dirs() {
		online = online && d.Online()
		if storage.SameDir(d.Path, dir) {
			target = d.Path
		}
	}
	if target == "" {
		return nil, fmt.Errorf("%s: %w", dir, storage.ErrNoDir)
	}
	tp := log.TopicPartition()
	future, moving := m.Future(tp)
	if moving && future.Dir() != target {
		if err := m.DeleteFuture(tp); err != nil {
			return nil, err
		}
	}
	switch {
	case target == log.Dir():
		return nil, nil
	case !online:
		return nil, storage.ErrOffline
	}
	return m.CreateFuture(tp, target)
}

// ResumeMove returns the future log with which the move of a log that was just opened goes on, nil when there is none.
// A copy of another topic of the same name is deleted.
func ResumeMove(m *storage.Manager, log *storage.Log) (*storage.Log, error) {
	future, ok := m.Future(log.TopicPartition())
	if !ok {
		return nil, nil
	}
	if had, is := future.TopicID(), log.TopicID(); !had.IsZero() && !is.IsZero() && had != is {
		return nil, blame(future.Dir(), m.DeleteFuture(log.TopicPartition()))
	}
	return future, nil
}

// CopyMove appends the next chunk of log below bound to future. n is 0 when there is none. Failures are *MoveError.
func CopyMove(log, future *storage.Log, bound int64, chunk int, buf *[]byte) (n int, err error) {
	if err := align(log, future); err != nil {
		return 0, blame(future.Dir(), err)
	}
	from := future.LogEndOffset()
	if from >= bound {
		return 0, nil
	}
	s, err := log.Read(from, chunk, bound, true)
	if errors.Is(err, storage.ErrOffsetOutOfRange) { // retention was faster
		return 1, blame(future.Dir(), future.TruncateFullyAndStartAt(log.LogStartOffset()))
	}
	if err != nil {
		return 0, blame(log.Dir(), err)
	}
	defer s.Release()
	if s.Size() == 0 {
		return 0, nil
	}
	*buf = slices.Grow((*buf)[:0], s.Size())[:s.Size()]
	if _, err := s.ReadInto(*buf); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil // cut off meanwhile
	} else if err != nil {
		return 0, &MoveError{Dir: log.Dir(), Err: err}
	}
	res, err := future.AppendAsFollower(*buf)
	return res.Bytes, blame(future.Dir(), err)
}

// align cuts off the future log what the current one does not have: after a truncation its epochs end earlier
// (KIP-101).
func align(log, future *storage.Log) error {
	if start := log.LogStartOffset(); future.LogStartOffset() > start {
		// The machine crashed before the log's start was durable, or the log begins anew further below: the copy lacks its beginning.
		return future.TruncateFullyAndStartAt(start)
	}
	for {
		end, epoch := future.LogEndOffset(), LastEpoch(future)
		if end == log.LogStartOffset() && epoch >= 0 {
			// All that was copied is deleted from the log by now, and its epochs with it: nothing tells whether it was cut off before.
			return future.TruncateFullyAndStartAt(end)
		}
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

// FlushMove makes what was copied durable, so that little is left to be done by FinishMove. Failures are *MoveError.
func FlushMove(future *storage.Log) error { return blame(future.Dir(), future.Flush()) }

// FinishMove copies the rest and swaps the logs, if the rest is little: no more than reads chunks. The caller lets nobody
// change the partition meanwhile. next is the partition's log from then on; nil without an error when there is more to
// copy, or when the move is not what it was. After a *MoveError the partition's log may be unusable: LostInMove tells.
func FinishMove(m *storage.Manager, log, future *storage.Log, chunk, reads int, buf *[]byte) (next *storage.Log, copied int, err error) {
	tp := log.TopicPartition()
	if now, ok := m.Future(tp); !ok || now != future || LostInMove(m, log) {
		return nil, 0, nil
	}
	if err := align(log, future); err != nil {
		return nil, 0, blame(future.Dir(), err)
	}
	for range reads {
		if future.LogEndOffset() >= log.LogEndOffset() {
			break
		}
		n, err := CopyMove(log, future, log.LogEndOffset(), chunk, buf)
		if copied += n; err != nil {
			return nil, copied, err
		}
	}
	if future.LogEndOffset() != log.LogEndOffset() {
		return nil, copied, nil
	}
	next, err = m.Promote(tp)
	if errors.Is(err, storage.ErrUnexpectedOffset) || errors.Is(err, storage.ErrNoFuture) {
		return nil, copied, nil
	}
	if err != nil && log.Failed() != nil {
		return nil, copied, blame(log.Dir(), err)
	}
	return next, copied, blame(future.Dir(), err)
}

// LostInMove reports whether log is not the partition's log any more: a swap failed half-way. The replica is offline
// then until the broker starts again.
func LostInMove(m *storage.Manager, log *storage.Log) bool {
	now, ok := m.Log(log.TopicPartition())
	return !ok || now != log
}

// Lane is what moves share that go from one directory to another: they take turns, different lanes do not wait for
// each other.
type Lane struct{ From, To string }

// LaneOf returns the lane of a partition's move; ok is false when there is none.
func LaneOf(m *storage.Manager, tp cluster.TopicPartition) (l Lane, ok bool) {
	log, has := m.Log(tp)
	future, moving := m.Future(tp)
	if !has || !moving {
		return Lane{}, false
	}
	return Lane{From: log.Dir(), To: future.Dir()}, true
}
