package storage

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kctl/broker/obs"
)

const expireEveryMs = 10 * 60 * 1000

// Housekeep does the periodic work: retention, flush.ms, syncing rolled segments, expiry of producer ids,
// delayed removals, and recovery-point and log-start checkpoints that changed. One caller at a time; the
// caller owns the goroutine and chooses the interval (seconds). A log to which nothing happened is not touched,
// except every RetentionCheckInterval, when records may have grown too old: tens of thousands of idle logs are
// more memory than any cache holds. Errors of single logs are joined; a log that failed before is left alone.
func (m *Manager) Housekeep(now time.Time) error {
	nowMs := now.UnixMilli()
	expire := nowMs-m.lastExpire >= expireEveryMs
	if expire {
		m.lastExpire = nowMs
	}
	var errs []error
	for _, l := range m.due(nowMs, expire) {
		again, err := l.housekeep(nowMs, expire)
		if err != nil {
			errs = append(errs, err)
		}
		if again {
			l.wake()
		}
	}
	errs = append(errs, m.removeDue(nowMs))
	for _, d := range m.dirs {
		if d.offline() != nil {
			continue
		}
		if d.recoveryDirty.Load() {
			errs = append(errs, d.checkpointRecovery(m))
		}
		if d.startDirty.Load() {
			errs = append(errs, d.checkpointStarts(m))
		}
	}
	return errors.Join(errs...)
}

// due returns the logs to look at, in order: those to which something happened, or all of them.
func (m *Manager) due(nowMs int64, all bool) []*Log {
	m.awakeMu.Lock()
	logs := m.awake
	m.awake = nil
	m.awakeMu.Unlock()
	for _, l := range logs {
		l.awake.Store(false) // what happens from here on wakes it again
	}
	if all || nowMs-m.lastSweep >= m.opts.RetentionCheckInterval.Milliseconds() {
		m.lastSweep = nowMs
		return m.all()
	}
	slices.SortFunc(logs, func(a, b *Log) int { return a.tp.Compare(b.tp) })
	return logs
}

// wake makes the next Housekeep look at the log. Lock-free when it is awake.
func (l *Log) wake() {
	if l.awake.Load() || l.awake.Swap(true) {
		return
	}
	l.m.awakeMu.Lock()
	l.m.awake = append(l.m.awake, l)
	l.m.awakeMu.Unlock()
}

// housekeep reports again when the log is to be looked at next time too, whether or not anything happens to it.
func (l *Log) housekeep(nowMs int64, expire bool) (again bool, err error) {
	t := l.tail.Load()
	if t.end == l.start.Load() && t.end == l.recovery.Load() {
		return false, nil // empty
	}
	l.mu.Lock()
	bad := l.usable() != nil
	sinceFlush := nowMs - l.lastFlush
	if !bad && expire {
		l.producers.expire(nowMs, l.m.opts.ProducerIDExpiration.Milliseconds())
	}
	l.mu.Unlock()
	if bad {
		return false, nil
	}
	cfg := l.cfg.Load()
	switch active := l.active(); {
	case cfg.FlushMs < math.MaxInt64 && sinceFlush >= cfg.FlushMs:
		err = l.Flush()
	case l.recovery.Load() < active.base:
		err = l.flushTo(active.base)
	}
	err = errors.Join(err, l.retain(cfg, nowMs))
	flushLater := cfg.FlushMs < math.MaxInt64 && l.recovery.Load() < l.tail.Load().end
	return flushLater || l.recovery.Load() < l.active().base, err
}

// retain removes old segments by time, size and log start offset, never one that the high watermark has not
// passed. The active segment is rolled first when it goes too.
func (l *Log) retain(cfg *Config, nowMs int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usable() != nil {
		return nil
	}
	n, err := l.deletable(cfg, nowMs)
	if err != nil {
		return l.fail(fmt.Errorf("retention: %w", err))
	}
	if n == 0 {
		return nil
	}
	if n == len(*l.segs.Load()) {
		if _, err := l.roll(l.tail.Load().end, nowMs); err != nil {
			return l.fail(fmt.Errorf("retention: %w", err))
		}
	}
	if err := l.deleteOldest(n, cfg, nowMs); err != nil {
		return l.fail(fmt.Errorf("retention: %w", err))
	}
	return nil
}

// deletable counts the segments from the oldest on that may go.
func (l *Log) deletable(cfg *Config, nowMs int64) (int, error) {
	segs, hw, start := *l.segs.Load(), l.hw.Load(), l.start.Load()
	over := int64(-1) // bytes over the limit
	if cfg.RetentionBytes >= 0 && cfg.Deletes() {
		over = l.Size() - cfg.RetentionBytes
	}
	n := 0
	for i, s := range segs {
		next := l.tail.Load().end
		if i+1 < len(segs) {
			next = segs[i+1].base
		}
		size := s.size.Load()
		if next > hw || size == 0 {
			break
		}
		expired, err := s.expired(cfg, nowMs)
		if err != nil {
			return 0, err
		}
		if next > start && !expired && over < size {
			break
		}
		over = max(over-size, -1)
		n++
	}
	return n, nil
}

func (s *segment) expired(cfg *Config, nowMs int64) (bool, error) {
	if cfg.RetentionMs < 0 || !cfg.Deletes() {
		return false, nil
	}
	mark, err := s.largestMark()
	if err != nil {
		return false, err
	}
	ts := mark.ts
	if ts < 0 { // records without timestamps: when the file was last written
		st, err := s.log.m.fs.Stat(s.file.path())
		if err != nil {
			return false, err
		}
		ts = st.ModTime
	}
	return nowMs-ts > cfg.RetentionMs, nil
}

// deleteOldest moves the log start past the first n segments and marks their files for removal, the oldest
// first, so that a crash in between leaves a suffix.
func (l *Log) deleteOldest(n int, cfg *Config, nowMs int64) error {
	segs := *l.segs.Load()
	dead, rest := segs[:n], slices.Clone(segs[n:])
	start := max(l.start.Load(), rest[0].base)
	l.start.Store(start)
	l.setSegments(rest)
	l.epochs.truncateFromStart(start)
	if l.recovery.Load() < start {
		l.recovery.Store(start)
		l.dir.recoveryDirty.Store(true)
	}
	l.dir.startDirty.Store(true)
	l.m.log.Info("old segments deleted", obs.KeyTopicPartition, l.tp.String(), obs.KeyCount, n, obs.KeyOffset, start)
	for _, s := range dead {
		if err := s.renameDeleted(); err != nil {
			return err
		}
		for _, ext := range segmentExts {
			l.m.removeLater(l.dir, segmentPath(*l.folder.Load(), s.base, ext)+extDeleted, nowMs+cfg.FileDeleteDelayMs)
		}
		l.snaps = slices.DeleteFunc(l.snaps, func(o int64) bool { return o == s.base })
	}
	return nil
}

// AdvanceLogStart moves the log start up to offset (DeleteRecords, or a follower told by its leader); lower
// values do nothing; above the high watermark ErrOffsetOutOfRange. Whole segments below go with the next
// Housekeep.
func (l *Log) AdvanceLogStart(offset int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if hw := l.hw.Load(); offset > hw {
		return fmt.Errorf("%s: log start %d above high watermark %d: %w", l.tp, offset, hw, ErrOffsetOutOfRange)
	}
	if offset <= l.start.Load() {
		return nil
	}
	l.start.Store(offset)
	l.epochs.truncateFromStart(offset)
	l.dir.startDirty.Store(true)
	l.wake()
	return nil
}

// removeDue deletes files and folders whose delay is over.
func (m *Manager) removeDue(nowMs int64) error {
	m.mu.Lock()
	var due []pendingRemoval
	m.pending = slices.DeleteFunc(m.pending, func(p pendingRemoval) bool {
		if p.due > nowMs {
			return false
		}
		due = append(due, p)
		return true
	})
	m.mu.Unlock()
	var errs []error
	for _, p := range due {
		if p.dir.offline() != nil {
			continue
		}
		if err := m.fs.RemoveAll(p.path); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", p.path, err))
		}
	}
	return errors.Join(errs...)
}
