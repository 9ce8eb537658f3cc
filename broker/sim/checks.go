package sim

import (
	"hash/crc32"
	"slices"
	"sort"
	"time"

	"kctl/broker/record"
	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// checker holds what must be true. Numbers in comments are those of the invariants in docs/simulation.md.
type checker struct {
	s          *Sim
	touched    []*part
	seen       map[*part]*partSeen
	canon      map[cluster.TopicPartition]*canon
	states     map[cluster.TopicPartition]cluster.LeaderAndISR
	leaders    map[decision]cluster.BrokerID
	epochOwner map[cluster.ControllerEpoch]cluster.BrokerID
	ends       map[cluster.BrokerID]map[cluster.TopicPartition]int64 // of brokers that are down
	lost       map[cluster.BrokerID]map[cluster.TopicPartition]bool  // data went with a crash since it was in sync
	excused    map[cluster.TopicPartition]int                        // how often committed data went with its last in-sync copy
	writes     map[cluster.TopicPartition][]stateWrite               // of the ISR: the last of each epoch since the last one that somebody led
	led        map[cluster.TopicPartition]cluster.LeaderEpoch        // the newest epoch that somebody led
	deleted    map[string]bool
	hidden     map[cluster.BrokerID]map[cluster.TopicPartition]int64 // of logs in a directory that failed
	final      bool                                                  // the last comparison, with everything at rest
}

type decision struct {
	tp    cluster.TopicPartition
	epoch cluster.LeaderEpoch
}

// stateWrite is an ISR as it was written.
type stateWrite struct {
	isr []cluster.BrokerID
	at  time.Time
}

// partSeen is what was checked of one replica in this life of its process.
type partSeen struct {
	touched bool
	hw      int64 // last seen
	start   int64 // last seen
	checked int64 // committed records below were compared with the canon
}

// canon is the committed log of a partition: what some leader's high watermark once covered.
type canon struct {
	end     int64
	start   int64 // records below were deleted on request, at one leader at least
	gap     int   // batches before this one are followed by records that were deleted
	batches []canonBatch
}

type canonBatch struct {
	base, next int64
	epoch      int32
	pid        int64
	seq        int32
	sum        uint32
}

func newChecker(s *Sim) *checker {
	return &checker{
		s: s, seen: map[*part]*partSeen{}, canon: map[cluster.TopicPartition]*canon{},
		states: map[cluster.TopicPartition]cluster.LeaderAndISR{}, leaders: map[decision]cluster.BrokerID{},
		epochOwner: map[cluster.ControllerEpoch]cluster.BrokerID{},
		ends:       map[cluster.BrokerID]map[cluster.TopicPartition]int64{},
		lost:       map[cluster.BrokerID]map[cluster.TopicPartition]bool{},
		excused:    map[cluster.TopicPartition]int{}, deleted: map[string]bool{}, writes: map[cluster.TopicPartition][]stateWrite{},
		led: map[cluster.TopicPartition]cluster.LeaderEpoch{},
	}
}

// touch marks a replica for a check after the current event.
func (c *checker) touch(p *part) {
	seen := c.seen[p]
	if seen == nil {
		seen = &partSeen{}
		c.seen[p] = seen
	}
	if !seen.touched {
		seen.touched = true
		c.touched = append(c.touched, p)
	}
}

func (c *checker) afterEvent() {
	for _, p := range c.touched {
		seen := c.seen[p]
		seen.touched = false
		if p.n.up && p.n.parts[p.tp] == p && p.log != nil && p.core.LogOpen() && !c.deleted[p.tp.Topic] {
			c.checkPart(p, seen)
		}
	}
	c.touched = c.touched[:0]
}

// lastLook takes in what a process committed in the very event in which its disk ends it: answers to clients may be on
// their way already.
func (c *checker) lastLook(n *node) {
	for _, p := range c.touched {
		if p.n != n || n.parts[p.tp] != p || p.log == nil || !p.core.LogOpen() || p.core.Role() != replica.Leader || c.deleted[p.tp.Topic] {
			continue
		}
		seen, hw := c.seen[p], p.core.HighWatermark()
		if hw <= seen.checked {
			continue
		}
		if _, err := readLog(p, seen.checked, hw, 1<<30); err == nil { // else it is this log that failed
			seen.checked = c.compare(p, seen.checked, hw)
		}
	}
}

// checkPart: log start <= HW <= LEO; the high watermark never falls in one life of the process (6); what it
// newly covers is what is committed (5, 7).
func (c *checker) checkPart(p *part, seen *partSeen) {
	start, hw, end := p.core.LogStart(), p.core.HighWatermark(), p.core.LogEnd()
	switch {
	case start > hw || hw > end:
		c.s.fail("%s %s: log start %d, high watermark %d, log end %d", p.n, p.tp, start, hw, end)
	case end != p.log.LogEndOffset() || hw != p.log.HighWatermark():
		c.s.fail("%s %s: core says end %d hw %d, log says %d and %d", p.n, p.tp, end, hw, p.log.LogEndOffset(), p.log.HighWatermark())
	case hw < seen.hw:
		c.s.fail("%s %s: high watermark fell from %d to %d", p.n, p.tp, seen.hw, hw)
	}
	if c.s.failed == nil {
		c.logStart(p, seen)
		c.emptied(p)
	}
	if c.s.failed == nil && hw > seen.checked {
		seen.checked = c.compare(p, seen.checked, hw)
	}
	seen.hw = hw
}

// compare reads [from, hw) of the replica and compares it with the canon; a leader's new part extends it. It
// returns how far it came: it stops at what cannot be told yet. There are no holes in a log.
func (c *checker) compare(p *part, from, hw int64) int64 {
	from = max(from, p.log.LogStartOffset())
	for from < hw && c.s.failed == nil {
		data, err := readLog(p, from, hw, 1<<30) // ends with the segment
		if err == nil && len(data) == 0 && hw <= c.canonOf(p.tp).start {
			return from // a log begun inside a batch, of which nothing is left to be seen
		}
		if err != nil || len(data) == 0 {
			c.s.fail("%s %s: read committed [%d, %d): %d bytes, %v", p.n, p.tp, from, hw, len(data), err)
			return from
		}
		for len(data) > 0 {
			b, rest, err := record.Next(data)
			if err != nil {
				c.s.fail("%s %s: committed batch: %v", p.n, p.tp, err)
				return from
			}
			if b.BaseOffset() > from {
				c.s.fail("%s %s: no record at %d, the next batch begins at %d (18)", p.n, p.tp, from, b.BaseOffset())
				return from
			}
			if !c.compareBatch(p, toCanon(b), hw) {
				return from
			}
			data, from = rest, b.NextOffset()
		}
	}
	return from
}

// compareBatch reports whether to go on with the next batch.
func (c *checker) compareBatch(p *part, got canonBatch, hw int64) bool {
	cn := c.canonOf(p.tp)
	switch {
	case got.base < cn.end:
		if want, ok := cn.at(got.base); !ok || want != got {
			if c.excused[p.tp] > 0 && !c.final && !c.leads(p) {
				return false // a copy of what was lost, which this replica will cut away
			}
			c.s.fail("%s %s: committed batch %+v, but %+v was committed there (5, 7)", p.n, p.tp, got, want)
			return false
		}
	case p.core.Role() != replica.Leader || c.excused[p.tp] > 0 && !c.leads(p):
		if c.excused[p.tp] == 0 {
			c.s.fail("%s %s: a follower's high watermark %d is above what was committed, %d", p.n, p.tp, hw, cn.end)
		}
		return false
	case got.base > cn.end && got.base <= cn.start && c.excused[p.tp] > 0:
		cn.gap, cn.end = len(cn.batches), got.base // what was lost there had been deleted at this leader
		c.extend(p, cn, got)
	case got.base != cn.end:
		c.s.fail("%s %s: committed batch at %d, committed log ends at %d", p.n, p.tp, got.base, cn.end)
		return false
	default:
		c.extend(p, cn, got)
	}
	return true
}

// leads reports whether the replica is the leader of the newest decision.
func (c *checker) leads(p *part) bool {
	return p.core.Role() == replica.Leader && p.core.LeaderEpoch() == c.states[p.tp].LeaderEpoch
}

// extend commits one more batch; an idempotent producer's sequences must follow each other (no loss, no copy).
func (c *checker) extend(p *part, cn *canon, b canonBatch) {
	for i := len(cn.batches) - 1; i >= cn.gap; i-- {
		if prev := cn.batches[i]; prev.pid == b.pid {
			// Who begins behind what was deleted does not know of it, and takes it again, or what follows what was lost.
			unknown := prev.next <= cn.start && (b.seq == prev.seq || c.excused[p.tp] > 0)
			if want := prev.seq + int32(prev.next-prev.base); b.seq != want && !unknown {
				c.s.fail("%s: batch %+v of producer %d follows %+v: doubled or lost", p.tp, b, b.pid, prev)
			}
			break
		}
	}
	cn.batches = append(cn.batches, b)
	cn.end = b.next
}

func toCanon(b record.Batch) canonBatch {
	return canonBatch{base: b.BaseOffset(), next: b.NextOffset(), epoch: b.LeaderEpoch(), pid: b.ProducerID(), seq: b.BaseSequence(), sum: crc32.ChecksumIEEE(b)}
}

func (cn *canon) at(offset int64) (canonBatch, bool) {
	i := sort.Search(len(cn.batches), func(i int) bool { return cn.batches[i].next > offset })
	if i == len(cn.batches) || cn.batches[i].base != offset {
		return canonBatch{}, false
	}
	return cn.batches[i], true
}

func (c *checker) canonOf(tp cluster.TopicPartition) *canon {
	if c.canon[tp] == nil {
		c.canon[tp] = &canon{}
	}
	return c.canon[tp]
}

// committed is the end of the committed log.
func (c *checker) committed(tp cluster.TopicPartition) int64 { return c.canonOf(tp).end }

// acked: what a client was told is committed, at that offset, and is its own batch.
func (c *checker) acked(cl *client, base int64) {
	c.s.report.Acked += int(cl.count)
	if c.deleted[cl.tp.Topic] {
		return
	}
	b, ok := c.canonOf(cl.tp).at(base)
	if c.excused[cl.tp] > 0 && (!ok || b.pid != cl.pid) {
		return // went between the answer and its arrival
	}
	if !ok || b.pid != cl.pid || b.seq != cl.seq[cl.tp] {
		c.s.fail("%s: acknowledged at offset %d, sequence %d of producer %d, but committed there is %+v (%v)", cl.tp, base, cl.seq[cl.tp], cl.pid, b, ok)
	}
}

// consumed: a client sees committed records only, unchanged.
func (c *checker) consumed(n *node, tp cluster.TopicPartition, a fetchAnswer) {
	if c.deleted[tp.Topic] {
		return
	}
	for data := a.records; len(data) > 0; {
		b, rest, err := record.Next(data)
		if err != nil {
			c.s.fail("%s %s: consumer got a broken batch: %v", n, tp, err)
			return
		}
		data = rest
		if want, ok := c.canonOf(tp).at(b.BaseOffset()); (!ok || want != toCanon(b)) && c.excused[tp] == 0 {
			c.s.fail("%s %s: consumer got %+v, committed is %+v", n, tp, toCanon(b), want)
			return
		}
	}
}

// fetchVerdict: a consumer between high watermark and log end gets an empty set, not out of range (12).
func (c *checker) fetchVerdict(p *part, q replica.FetchQuery, v replica.FetchVerdict) {
	if q.Replica == replica.Consumer && v.Code == replica.CodeNone && q.Offset < p.core.LogStart() {
		c.s.fail("%s %s: consumer may read at %d, log is [%d, %d] (18)", p.n, p.tp, q.Offset, p.core.LogStart(), p.core.LogEnd())
	}
	if q.Replica == replica.Consumer && v.Code == replica.CodeOffsetOutOfRange && q.Offset >= p.core.LogStart() && q.Offset <= p.core.LogEnd() {
		c.s.fail("%s %s: consumer at %d is out of range, log is [%d, %d]", p.n, p.tp, q.Offset, p.core.LogStart(), p.core.LogEnd())
	}
}

// roleChanged: a leader of the newest decision holds everything that was committed (5).
func (c *checker) roleChanged(p *part, e replica.RoleChanged) {
	if e.To == replica.Leader {
		defer func() { c.led[p.tp] = max(c.led[p.tp], e.LeaderEpoch) }()
	}
	if e.To != replica.Leader || c.deleted[p.tp.Topic] || c.states[p.tp].LeaderEpoch != e.LeaderEpoch {
		return
	}
	if end, want := p.core.LogEnd(), c.committed(p.tp); end < want && c.lost[p.n.id][p.tp] && c.allCrashed(p.tp) {
		c.excuse(p.tp, c.canonOf(p.tp), end)
	} else if end < want {
		c.s.fail("%s %s: becomes leader of epoch %d with log end %d, committed is %d (5)", p.n, p.tp, e.LeaderEpoch, end, want)
	}
}

// allCrashed: the machine of each member of an ISR before the newest decision came back from a crash after that ISR was
// written, so nobody can tell which of them lost what. Several decisions may follow each other that nobody led by.
func (c *checker) allCrashed(tp cluster.TopicPartition) bool {
	ws := c.writes[tp]
	return slices.ContainsFunc(ws[:max(0, len(ws)-1)], func(w stateWrite) bool {
		return !slices.ContainsFunc(w.isr, func(m cluster.BrokerID) bool { return !c.s.node(m).backAt.After(w.at) })
	})
}

// logCut: nothing committed is cut away.
func (c *checker) logCut(p *part, e replica.LogCut) {
	if e.BelowHighWatermark && c.excused[p.tp] == 0 && !c.deleted[p.tp.Topic] {
		c.s.fail("%s %s: cut from %d to %d, below its high watermark %d", p.n, p.tp, e.From, e.To, e.HighWatermark)
	}
	seen := c.seen[p]
	to := e.To
	if e.BelowHighWatermark {
		to = 0 // a batch goes as a whole: the log may end below
	} else if to <= c.canonOf(p.tp).start {
		to = batchAt(p, to) // here too, where all that goes of it below the cut was deleted on request
	}
	seen.hw, seen.checked, seen.start = min(seen.hw, to), min(seen.checked, to), min(seen.start, to)
	if e.Reason == replica.BelowLeaderStart {
		c.s.report.Restarts++
	}
}

func (c *checker) logDeleted(p *part) { delete(c.seen, p); c.touch(p) }

// controlAccepted: a control request for an earlier registration is never applied (10).
func (c *checker) controlAccepted(n *node, epoch cluster.BrokerEpoch) {
	if epoch != n.brokerEpoch {
		c.s.fail("%s with epoch %d applies a control request for epoch %d (10)", n, n.brokerEpoch, epoch)
	}
}

// activated: one controller for each epoch.
func (c *checker) activated(n *node, epoch cluster.ControllerEpoch) {
	if owner := c.epochOwner[epoch]; owner != n.id {
		c.s.fail("%s acts as controller of epoch %d, which broker %d won (1)", n, epoch, owner)
	}
}

func (c *checker) alert(a znode.LeadershipAlert) {
	if len(a.Waiting) == 0 {
		c.s.fail("an alert for %s that waits for nobody", a.Partition)
	}
}

func (c *checker) deleting(topic string) { c.deleted[topic] = true }

// nodeDown remembers how far each log reaches while the process is down; after a crash that is what recovery
// will find, measured on a copy of the disk.
func (c *checker) nodeDown(n *node, crash bool) {
	before := logEnds(n.store)
	for tp, end := range c.hidden[n.id] {
		if _, ok := before[tp]; !ok { // else it was made anew in the other directory
			before[tp] = end
		}
	}
	delete(c.hidden, n.id)
	ends := before
	if crash {
		copied := n.fs.CrashClone(vfs.KeepUnsynced, 0)
		store, err := storage.OpenManager(copied, logDirs, c.s.storageOptions(n.id))
		if err != nil {
			c.s.fail("%s: recovery after a crash: %v", n, err)
			return
		}
		ends = logEnds(store)
	}
	c.noneNew(n, ends, before)
	c.ends[n.id] = ends
	if c.lost[n.id] == nil {
		c.lost[n.id] = map[cluster.TopicPartition]bool{}
	}
	for _, tp := range sortedPartitions(before) {
		if ends[tp] < before[tp] {
			c.lost[n.id][tp] = true
			c.s.trace.line("broker %d %s: crash leaves %d of %d", n.id, tp, ends[tp], before[tp])
			c.assess(tp)
		}
	}
}

// storeOpened: recovery finds what was there; nothing goes with a mere kill.
func (c *checker) storeOpened(n *node) {
	c.oneCopy(n)
	want := c.ends[n.id]
	got := logEnds(n.store)
	for _, tp := range sortedPartitions(want) {
		if got[tp] != want[tp] && !c.deleted[tp.Topic] {
			c.s.fail("%s %s: log end %d after recovery, %d before", n, tp, got[tp], want[tp])
		}
	}
	c.noneNew(n, got, want)
	delete(c.ends, n.id)
}

func logEnds(m *storage.Manager) map[cluster.TopicPartition]int64 {
	out := map[cluster.TopicPartition]int64{}
	if m == nil {
		return out
	}
	for _, l := range m.Logs() {
		out[l.TopicPartition()] = l.LogEndOffset()
	}
	return out
}

func sortedPartitions(m map[cluster.TopicPartition]int64) []cluster.TopicPartition {
	out := make([]cluster.TopicPartition, 0, len(m))
	for tp := range m {
		out = append(out, tp)
	}
	slices.SortFunc(out, cluster.TopicPartition.Compare)
	return out
}

// endOf is how far a broker's copy reaches, up or down.
func (c *checker) endOf(id cluster.BrokerID, tp cluster.TopicPartition) int64 {
	n := c.s.node(id)
	if n.store == nil {
		return c.ends[id][tp]
	}
	if l, ok := n.store.Log(tp); ok {
		return l.LogEndOffset()
	}
	return c.hidden[id][tp]
}

// assess decides, when an in-sync copy shrank or the ISR changed, whether committed records still have an
// in-sync copy. Without one they are lost, which is excused only if each in-sync copy went with a crash.
func (c *checker) assess(tp cluster.TopicPartition) {
	cn, state := c.canonOf(tp), c.states[tp]
	if cn.end == 0 || c.deleted[tp.Topic] || len(state.ISR) == 0 {
		return
	}
	least := cn.end
	for _, m := range state.ISR {
		end := c.endOf(m, tp)
		if end >= cn.end {
			return
		}
		if !c.lost[m][tp] {
			c.s.fail("%s: in-sync replica %d has log end %d, committed is %d, and it never crashed (8)", tp, m, end, cn.end)
			return
		}
		least = min(least, end)
	}
	c.excuse(tp, cn, least)
}

func (c *checker) excuse(tp cluster.TopicPartition, cn *canon, to int64) {
	c.excused[tp]++
	for len(cn.batches) > 0 && cn.batches[len(cn.batches)-1].next > to {
		last := cn.batches[len(cn.batches)-1]
		c.s.report.Excused += int(last.next - last.base)
		cn.batches = cn.batches[:len(cn.batches)-1]
	}
	cn.end, cn.gap = 0, min(cn.gap, len(cn.batches))
	if len(cn.batches) > 0 {
		cn.end = cn.batches[len(cn.batches)-1].next
	}
	for _, n := range c.s.nodes {
		if p := n.parts[tp]; p != nil && c.seen[p] != nil {
			c.seen[p].checked = min(c.seen[p].checked, cn.end) // whoever leads may have more, and commit it anew
			c.touch(p)
		}
	}
	c.s.trace.line("%s: committed records at and above %d went with their last in-sync copy", tp, cn.end)
}
