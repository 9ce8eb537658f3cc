package storage

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
)

// syncCut makes a truncation durable.
func (s *segment) syncCut() error {
	if !s.unsyncedCut.Load() {
		return nil
	}
	h, err := s.file.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if err := h.Sync(); err != nil {
		return err
	}
	s.unsyncedCut.Store(false)
	return nil
}

// secureGap makes the log durable before a segment that does not begin where the log ends (a follower of a
// compacted log). Above the recovery point, recovery takes such a gap for lost data. Callers hold mu.
func (l *Log) secureGap(base int64) error {
	end := l.tail.Load().end
	if base == end || l.active().size.Load() == 0 && l.recovery.Load() >= end {
		return nil
	}
	if err := l.syncSegments(*l.segs.Load(), l.recovery.Load(), end); err != nil {
		return err
	}
	if err := errors.Join(l.syncSealedActive(), l.writeEpochs(true), l.syncFolder()); err != nil {
		return err
	}
	l.recovery.Store(base)
	return l.dir.checkpointRecovery(l.m)
}

func (l *Log) syncSealedActive() error {
	if s := l.active(); s.size.Load() > 0 {
		return s.flushIndexes(true)
	}
	return nil
}

// maybeFlush honours flush.messages.
func (l *Log) maybeFlush(cfg *Config) error {
	if cfg.FlushMessages == math.MaxInt64 || l.LogEndOffset()-l.recovery.Load() < cfg.FlushMessages {
		return nil
	}
	return l.Flush()
}

// Flush makes everything appended before the call durable and moves the recovery point there.
func (l *Log) Flush() error { return l.flushTo(math.MaxInt64) }

// flushTo makes offsets below limit durable, whole segments at a time.
func (l *Log) flushTo(limit int64) error {
	l.flushMu.Lock()
	defer l.flushMu.Unlock()
	l.mu.Lock()
	if err := l.usable(); err != nil {
		l.mu.Unlock()
		return err
	}
	end, cuts, from := l.tail.Load().end, l.cuts, l.recovery.Load()
	segs := *l.segs.Load()
	l.mu.Unlock()
	target := min(end, limit)
	folderDone := !l.newFiles.Load() && !l.newMeta.Load() && l.dir.synced.Load() >= l.dirSynced
	if target <= from && folderDone && !l.active().unsyncedCut.Load() {
		return nil
	}
	err := l.syncSegments(segs, from, target)
	if err == nil {
		err = l.writeEpochs(true)
	}
	if err == nil {
		err = l.syncFolder()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts != cuts || l.closed {
		return nil // truncated or deleted meanwhile: nothing may be claimed
	}
	if err == nil {
		err = l.syncSealed(target)
	}
	if err != nil {
		return l.fail(fmt.Errorf("flush: %w", err))
	}
	l.lastFlush = l.m.opts.Now().UnixMilli()
	if target > l.recovery.Load() {
		l.recovery.Store(target)
		l.dir.recoveryDirty.Store(true)
	}
	return nil
}

// syncSegments syncs the segments that hold offsets from from up to target; sealed ones with their indexes.
func (l *Log) syncSegments(segs []*segment, from, target int64) error {
	for i, s := range segs {
		if s.size.Load() == 0 && !s.unsyncedCut.Load() {
			continue
		}
		sealed := i+1 < len(segs)
		cut := s.unsyncedCut.Load()
		if !cut && (sealed && segs[i+1].base <= from || s.base >= target) {
			continue
		}
		h, err := s.file.acquire()
		if err != nil {
			return err
		}
		s.unsyncedCut.Store(false)
		if err = h.Sync(); err != nil {
			s.unsyncedCut.Store(cut)
		}
		h.release()
		if err == nil && sealed {
			err = s.flushIndexes(true)
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", s.file.path(), err)
		}
	}
	return nil
}

// syncSealed makes the indexes durable of segments that end at or below target and were sealed while the flush
// was running. Callers hold mu.
func (l *Log) syncSealed(target int64) error {
	segs := *l.segs.Load()
	for i, s := range segs[:len(segs)-1] {
		if segs[i+1].base <= target && s.unsyncedIndex.Load() {
			if err := s.flushIndexes(true); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeEpochs writes leader-epoch-checkpoint when it is behind.
func (l *Log) writeEpochs(sync bool) error {
	entries, dirty := l.epochs.snapshot()
	if !dirty {
		return nil
	}
	if err := writeAtomic(l.m.fs, filepath.Join(*l.folder.Load(), fileEpochs), formatEpochs(entries), sync); err != nil {
		return err
	}
	l.newFiles.Store(true)
	l.epochs.written(entries)
	return nil
}

// syncFolder makes the folder's new entries durable, and once the folder's own entry and partition.metadata.
func (l *Log) syncFolder() error {
	if l.newMeta.Swap(false) {
		if err := l.syncFile(filepath.Join(*l.folder.Load(), filePartition)); err != nil {
			l.newMeta.Store(true)
			return err
		}
	}
	if l.newFiles.Swap(false) {
		if err := l.m.fs.SyncDir(*l.folder.Load()); err != nil {
			l.newFiles.Store(true)
			return err
		}
	}
	return l.dir.syncEntry(l.m, l.dirSynced)
}
