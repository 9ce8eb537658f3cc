package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Unsynced says what CrashClone does with what was never synced.
type Unsynced int

// The choices.
const (
	// KeepUnsynced keeps all: the process died, the machine did not (kill -9).
	KeepUnsynced Unsynced = iota
	// DropUnsynced drops all: contents as of the last Sync, folder entries as of the last SyncDir.
	DropUnsynced
	// MixUnsynced lets chance decide: some 512-byte sectors of unsynced writes are there and others are
	// not (holes read as zeros), lengths lie anywhere between the synced and the present one, and a prefix
	// of the unsynced folder changes is there.
	MixUnsynced
)

const sectorBytes = 512

// CrashClone returns what the disk may hold if the machine stopped now. The clone shares nothing with m and
// has no locks, rules, hook or open files. The same seed and history give the same clone.
func (m *Mem) CrashClone(keep Unsynced, seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	rng := rand.New(rand.NewPCG(seed, 0x6b61666b61))
	// The folder tree after the crash: the durable one plus a prefix of the journal.
	kept := 0
	switch keep {
	case KeepUnsynced:
		kept = len(m.journal)
	case MixUnsynced:
		kept = rng.IntN(len(m.journal) + 1)
	}
	overlay := map[*memNode]map[string]*memNode{}
	of := func(d *memNode) map[string]*memNode {
		if overlay[d] == nil {
			overlay[d] = maps.Clone(d.durable)
		}
		return overlay[d]
	}
	for _, op := range m.journal[:kept] {
		op.apply(of)
	}
	c := NewMem(m.nowMs)
	c.clock = m.clock
	c.root = m.crashNode(m.root, of, keep, rng, c)
	return c
}

func (m *Mem) crashNode(n *memNode, of func(*memNode) map[string]*memNode, keep Unsynced, rng *rand.Rand, c *Mem) *memNode {
	if !n.dir {
		data := n.file.crash(keep, rng)
		c.used += int64(len(data))
		return &memNode{links: 1, modTime: n.modTime, file: memData{data: data, synced: slices.Clone(data)}}
	}
	out := newDirNode()
	out.modTime = n.modTime
	entries := of(n)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		child := m.crashNode(entries[name], of, keep, rng, c)
		out.children[name], out.durable[name] = child, child
	}
	return out
}

// crash returns the contents that survive.
func (d *memData) crash(keep Unsynced, rng *rand.Rand) []byte {
	switch keep {
	case KeepUnsynced:
		return slices.Clone(d.data)
	case DropUnsynced:
		return slices.Clone(d.synced)
	}
	if d.dirtyFrom == d.dirtyTo {
		return slices.Clone(d.data)
	}
	lo, hi := min(len(d.data), len(d.synced)), max(len(d.data), len(d.synced))
	size := lo + rng.IntN(hi-lo+1)
	if rng.IntN(3) == 0 {
		size = len(d.data)
	}
	out := make([]byte, size)
	copy(out, d.synced)
	style := rng.IntN(3) // 0: every sector for itself, 1: all of what fits, 2: a prefix of the sectors
	cut := d.dirtyFrom + rng.Int64N(d.dirtyTo-d.dirtyFrom+1)
	for at := d.dirtyFrom; at < min(d.dirtyTo, int64(min(size, len(d.data)))); {
		end := min((at/sectorBytes+1)*sectorBytes, d.dirtyTo, int64(size), int64(len(d.data)))
		if style == 1 || style == 0 && rng.IntN(2) == 0 || style == 2 && at < cut {
			copy(out[at:end], d.data[at:end])
		}
		at = end
	}
	return out
}
