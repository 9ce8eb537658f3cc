package storage

import (
	"sync"

	"kctl/zkutil/cluster"
)

// changes lets one creation, deletion or swap of a partition's logs go on at a time. Those of different partitions do not
// wait for each other: a directory that hangs in the kernel keeps nobody from making logs in the others. Close waits for
// all. Nothing is taken before it.
type changes struct {
	closing sync.RWMutex // for reading by each change, for writing by Close

	mu   sync.Mutex // innermost
	held map[cluster.TopicPartition]*change
}

// change is the turn of a partition; it is forgotten with its last user.
type change struct {
	turn  sync.Mutex
	users int // guarded by changes.mu
}

// begin waits for the partition's turn and returns what ends it.
func (c *changes) begin(tp cluster.TopicPartition) (end func()) {
	c.closing.RLock()
	c.mu.Lock()
	if c.held == nil {
		c.held = map[cluster.TopicPartition]*change{}
	}
	one := c.held[tp]
	if one == nil {
		one = &change{}
		c.held[tp] = one
	}
	one.users++
	c.mu.Unlock()
	one.turn.Lock()
	return func() {
		one.turn.Unlock()
		c.mu.Lock()
		if one.users--; one.users == 0 {
			delete(c.held, tp)
		}
		c.mu.Unlock()
		c.closing.RUnlock()
	}
}
