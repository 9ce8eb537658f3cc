package sim

import (
	"bytes"
	"slices"

	"kctl/broker/record"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// heldBack: a throttle holds back no follower that is in sync (17). One whose data went with a crash does not count: it
// is in the ISR until somebody notices.
func (c *checker) heldBack(p *part) {
	state := c.states[p.tp]
	if state.LeaderEpoch == p.core.LeaderEpoch() && slices.Contains(state.ISR, p.n.id) && !c.lost[p.n.id][p.tp] && c.excused[p.tp] == 0 {
		c.s.fail("%s %s: held back by a throttle while it is in the ISR %v (17)", p.n, p.tp, state.ISR)
	}
}

// oneCopy: no replica is in two log directories of a broker, moving or not (16).
func (c *checker) oneCopy(n *node) {
	at := map[string]string{}
	for _, d := range n.store.Dirs() {
		if !d.Online() {
			continue
		}
		entries, err := n.fs.List(d.Path)
		if err != nil {
			return
		}
		for _, e := range entries {
			other, twice := at[e.Name]
			if e.IsDir && twice {
				c.s.fail("%s: %s is in %s and in %s (16)", n, e.Name, other, d.Path)
			}
			if e.IsDir {
				at[e.Name] = d.Path
			}
		}
	}
	for _, f := range n.store.Futures() {
		l, ok := n.store.Log(f.TopicPartition())
		if ok && l.Dir() == f.Dir() {
			c.s.fail("%s %s: moves to %s, where it is (16)", n, f.TopicPartition(), f.Dir())
		}
	}
}

// copied: after each step of a move what is copied is what the log has, and nothing that the log has cut off (16). It is
// the beginning of the log after the swap; by then a difference may have grown over.
func (c *checker) copied(p *part, future *storage.Log) {
	if now, moving := p.n.store.Future(p.tp); !moving || now != future {
		return
	}
	from, to := max(p.log.LogStartOffset(), future.LogStartOffset()), future.LogEndOffset()
	if to > p.log.LogEndOffset() {
		c.s.fail("%s %s: the copy ends at %d, the log at %d (16)", p.n, p.tp, to, p.log.LogEndOffset())
	}
	got, whole := records(future, from, to)
	want, also := records(p.log, from, to)
	if whole && also && !bytes.Equal(got, want) {
		c.s.fail("%s %s: the copy differs from the log between %d and %d (16)", p.n, p.tp, from, to)
	}
}

// movesUnrest tells of moves that are not done.
func (n *node) movesUnrest() (tps []cluster.TopicPartition) {
	for _, f := range n.store.Futures() {
		tps = append(tps, f.TopicPartition())
	}
	slices.SortFunc(tps, cluster.TopicPartition.Compare)
	return tps
}

// nextOffset is where the last batch of data ends.
func nextOffset(data []byte) int64 {
	next := int64(0)
	for len(data) > 0 {
		b, rest, err := record.Next(data)
		if err != nil {
			return next
		}
		next, data = b.NextOffset(), rest
	}
	return next
}

// noneNew: no start finds a log that was not there before: what was deleted does not come back as half of its copy (16).
func (c *checker) noneNew(n *node, found, before map[cluster.TopicPartition]int64) {
	for _, tp := range sortedPartitions(found) {
		if _, ok := before[tp]; !ok {
			c.s.fail("%s %s: there was no log, and now there is one that ends at %d (16)", n, tp, found[tp])
		}
	}
}
