package sim

import (
	"errors"

	"kctl/broker/record"
	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// deleteOne asks whoever leads a partition to delete its oldest records, all that are committed or some of them; sometimes more than
// that, which must be refused.
func (s *Sim) deleteOne() {
	name := s.topics[s.rng.IntN(len(s.topics))]
	t, _, ok := s.topic(name)
	if !ok {
		return
	}
	tp := cluster.TopicPartition{Topic: name, Partition: int32(s.rng.IntN(len(t.Partitions)))}
	m, known := s.anyNode().leaders[tp]
	if !known || m.leader < 0 {
		return
	}
	n, draw, share := s.node(m.leader), s.rng.IntN(8), s.rng.Float64()
	s.after(s.delay(), "delete records", tp, int64(n.id), int64(draw), func() {
		n.run(n.inc, "delete records", func() { n.serveDelete(tp, draw, share) })
	})
}

// serveDelete is the leader's side of DeleteRecords, as the broker's shell does it.
func (n *node) serveDelete(tp cluster.TopicPartition, draw int, share float64) {
	p, s := n.parts[tp], n.sim
	if p == nil || p.log == nil || !p.core.LogOpen() || s.check.deleted[tp.Topic] {
		return
	}
	start, hw := p.core.LogStart(), p.core.HighWatermark()
	offset := start + int64(share*float64(hw-start)) // in the midst of a batch, more often than not
	switch draw {
	case 0, 1, 2:
		offset = -1 // everything that is committed
	case 3:
		offset = hw + 1
	}
	below, code := p.core.CheckDelete(offset)
	if code != replica.CodeNone {
		return
	}
	err := p.log.AdvanceLogStart(below)
	switch {
	case errors.Is(err, storage.ErrStorage) || errors.Is(err, storage.ErrOffline):
		n.diskFailed(err)
		return
	case err != nil:
		s.fail("%s %s: delete records below %d: %v", n, tp, below, err)
		return
	}
	s.trace.line("%s %s: records below %d deleted, asked for %d (hw %d)", n, tp, below, offset, hw)
	s.check.recordsDeleted(p, below)
	p.step(replica.LogStartAdvanced{At: s.now, LogStart: p.log.LogStartOffset()})
}

// recordsDeleted: nothing that is not committed is deleted (18).
func (c *checker) recordsDeleted(p *part, below int64) {
	cn := c.canonOf(p.tp)
	if below > cn.end && c.excused[p.tp] == 0 {
		c.s.fail("%s %s: records below %d are deleted, committed is %d (18)", p.n, p.tp, below, cn.end)
	}
	if below > cn.start {
		c.s.report.Deleted += int(below - cn.start)
		cn.start = below
	}
}

// logStart: a log begins where records were deleted and not later, so every committed record above is still there; in one life of a
// process its start does not fall, unless all of it was thrown away (18).
func (c *checker) logStart(p *part, seen *partSeen) {
	start, deleted := p.core.LogStart(), c.canonOf(p.tp).start
	switch {
	case start != p.log.LogStartOffset():
		c.s.fail("%s %s: core says log start %d, log says %d (18)", p.n, p.tp, start, p.log.LogStartOffset())
	case start < seen.start:
		c.s.fail("%s %s: log start fell from %d to %d (18)", p.n, p.tp, seen.start, start)
	case start > deleted:
		c.s.fail("%s %s: log start %d, but records were deleted below %d only (18)", p.n, p.tp, start, deleted)
	}
	seen.start = start
}

// emptied: what is committed reaches to the start of the log of a leader that holds nothing. When committed records went with their last
// in-sync copy, the canon forgets them by whole batches, though the copy that is left may begin inside the last of them, or above all of
// them: what it lacks there was deleted on request, and no batch will ever be read that could tell.
func (c *checker) emptied(p *part) {
	cn, start := c.canonOf(p.tp), p.core.LogStart()
	if c.excused[p.tp] > 0 && c.leads(p) && start == p.core.LogEnd() && cn.end < start && start <= cn.start {
		cn.gap, cn.end = len(cn.batches), start
	}
}

// batchAt is the base offset of the batch that holds offset, or offset when none does.
func batchAt(p *part, offset int64) int64 {
	data, err := readLog(p, offset, p.log.LogEndOffset(), 1)
	if err != nil || len(data) == 0 {
		return offset
	}
	b, _, err := record.Next(data)
	if err != nil {
		return offset
	}
	return min(b.BaseOffset(), offset)
}

// startUnrest tells of a follower that has not taken over the leader's log start. One that begins above it was told so by an earlier
// leader; Kafka leaves it there too.
func (s *Sim) startUnrest(p *part, leader *node) bool {
	q := leader.parts[p.tp]
	return q != nil && p.core.LogStart() < q.core.LogStart()
}
