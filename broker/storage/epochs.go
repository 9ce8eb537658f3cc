package storage

import (
	"slices"
	"sync"

	"kctl/zkutil/cluster"
)

// epochCache is Kafka's LeaderEpochFileCache: which leader epoch began at which offset, with both rising.
// The file is written by Log.Flush before the recovery point moves, and on close; what is newer is found
// again in the batches that recovery scans.
//
// mu is a leaf of the lock order.
type epochCache struct {
	mu      sync.RWMutex
	entries []epochEntry
	dirty   bool // differs from the file
}

// latest returns the last entry.
func (c *epochCache) latest() (epochEntry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if len(c.entries) == 0 {
		return epochEntry{Epoch: cluster.NoLeaderEpoch, Start: -1}, false
	}
	return c.entries[len(c.entries)-1], true
}

// assign notes that epoch began at start. Entries at the end that would no longer rise are removed: they
// belong to records that are gone. Nothing changes for the present epoch at the same or a later offset.
func (c *epochCache) assign(epoch cluster.LeaderEpoch, start int64) {
	if epoch < 0 || start < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.entries); n > 0 {
		if last := c.entries[n-1]; last.Epoch == epoch && start >= last.Start {
			return
		}
	}
	n := len(c.entries)
	for n > 0 && (c.entries[n-1].Epoch >= epoch || c.entries[n-1].Start >= start) {
		n--
	}
	c.entries = append(c.entries[:n], epochEntry{epoch, start})
	c.dirty = true
}

// endOffset finds the largest epoch at or below the asked one and where it ended; logEnd is where the latest
// ends.
func (c *epochCache) endOffset(epoch cluster.LeaderEpoch, logEnd int64) (cluster.LeaderEpoch, int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	n := len(c.entries)
	if epoch < 0 || n == 0 {
		return cluster.NoLeaderEpoch, -1
	}
	if c.entries[n-1].Epoch == epoch {
		return epoch, logEnd
	}
	// i is the first entry above the asked epoch.
	i, _ := slices.BinarySearchFunc(c.entries, epoch, func(e epochEntry, want cluster.LeaderEpoch) int {
		if e.Epoch <= want {
			return -1
		}
		return 1
	})
	switch {
	case i == n:
		return cluster.NoLeaderEpoch, -1
	case i == 0: // older than all we know: it ended before our first entry
		return epoch, c.entries[0].Start
	default:
		return c.entries[i-1].Epoch, c.entries[i].Start
	}
}

// forOffset is the epoch in which the record at offset was appended.
func (c *epochCache) forOffset(offset int64) (cluster.LeaderEpoch, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for i := len(c.entries) - 1; i >= 0; i-- {
		if c.entries[i].Start <= offset {
			return c.entries[i].Epoch, true
		}
	}
	return cluster.NoLeaderEpoch, false
}

// truncateFromEnd removes epochs that begin at or after offset.
func (c *epochCache) truncateFromEnd(offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.entries)
	for n > 0 && c.entries[n-1].Start >= offset {
		n--
	}
	if n < len(c.entries) {
		c.entries, c.dirty = c.entries[:n], true
	}
}

// truncateFromStart removes epochs that ended at or before offset; the one that covers offset begins there now.
func (c *epochCache) truncateFromStart(offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.entries) && c.entries[n].Start <= offset {
		n++
	}
	if n == 0 || n == 1 && c.entries[0].Start == offset {
		return
	}
	keep := slices.Clone(c.entries[n-1:])
	keep[0].Start = offset
	c.entries, c.dirty = keep, true
}

func (c *epochCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty = c.dirty || len(c.entries) > 0
	c.entries = nil
}

// snapshot returns a copy of the entries and whether the file is behind.
func (c *epochCache) snapshot() ([]epochEntry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.entries), c.dirty
}

// written notes that the file holds entries; newer changes stay dirty.
func (c *epochCache) written(entries []epochEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(c.entries, entries) {
		c.dirty = false
	}
}

// restore takes over the entries of the file as far as they rise.
func (c *epochCache) restore(entries []epochEntry) {
	for _, e := range entries {
		c.assign(e.Epoch, e.Start)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty = len(c.entries) != len(entries)
}
