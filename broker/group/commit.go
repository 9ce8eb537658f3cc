package group

import (
	"slices"
	"time"

	"kctl/zkutil/cluster"
)

func (s *Shard) commitOffsets(e CommitOffsets) {
	g, m, code := s.commitCheck(e)
	if code != None {
		s.emit(CommitReply{Request: e.Request, Codes: repeat(code, len(e.Offsets))})
		return
	}
	if m != nil {
		s.alive(g, m, e.At)
	}
	p := pendingCommit{group: g, request: e.Request, producerID: e.ProducerID, codes: repeat(None, len(e.Offsets))}
	records := make([]OffsetRecord, 0, len(e.Offsets))
	for i, o := range e.Offsets {
		if utf16Len(o.Metadata) > s.cfg.OffsetMetadataMax || len(o.Metadata) > textBytesMax {
			p.codes[i] = OffsetMetadataTooLarge
			continue
		}
		records = append(records, OffsetRecord{Group: g.id, TP: o.TP, Offset: o.Offset})
	}
	if len(records) == 0 {
		s.emit(CommitReply{Request: e.Request, Codes: p.codes})
		return
	}
	p.records = records
	id := s.append(Append{Offsets: records, ProducerID: e.ProducerID, ProducerEpoch: e.ProducerEpoch}, p)
	if e.ProducerID != NoProducer {
		s.stageTransaction(g, e.ProducerID, records, id)
		return
	}
	for _, r := range records {
		setIn(&g.pendingCommits, r.TP, id)
	}
}

// commitCheck decides whether a commit is allowed and on whose behalf: a member of the group, whose
// session it renews, or (nil) a consumer or administrator outside it.
func (s *Shard) commitCheck(e CommitOffsets) (*consumerGroup, *member, Code) {
	if len(e.Group) > textBytesMax {
		return nil, nil, InvalidGroupID
	}
	g := s.groups[e.Group]
	if g == nil {
		if e.Generation >= 0 {
			return nil, nil, IllegalGeneration // of a group that is no more
		}
		return s.getOrCreate(e.Group, true, e.At), nil, None
	}
	transactional := e.ProducerID != NoProducer
	switch {
	case g.state == Dead:
		return nil, nil, CoordinatorNotAvailable
	case e.Generation < 0 && g.state == Empty:
		return g, nil, None
	case transactional && e.Generation < 0 && e.MemberID == "" && e.InstanceID == nil:
		return g, nil, None // a producer older than KIP-447 says nothing of its group
	}
	m, code := g.identify(e.MemberID, e.InstanceID)
	switch {
	case code != None:
		return nil, nil, code
	case e.Generation != g.generation:
		return nil, nil, IllegalGeneration
	case g.state == CompletingRebalance && !transactional:
		return nil, nil, RebalanceInProgress
	}
	return g, m, None
}

// pendingCommit is a batch of offsets on its way to the log.
type pendingCommit struct {
	group      *consumerGroup
	request    RequestID
	producerID int64
	codes      []Code
	records    []OffsetRecord
}

func (p pendingCommit) abandon(s *Shard, code Code) {
	s.emit(CommitReply{Request: p.request, Codes: repeat(code, len(p.codes))})
}

func (p pendingCommit) settle(s *Shard, _ time.Time, id AppendID, code Code) {
	g := p.group
	if p.producerID != NoProducer {
		if code != None {
			s.unstageTransaction(g, p.producerID, p.records, id)
		}
	} else {
		for _, r := range p.records {
			if g.pendingCommits[r.TP] == id {
				delete(g.pendingCommits, r.TP)
			}
			if code == None {
				g.setOffset(r.TP, committed{r.Offset, id})
			}
		}
	}
	if code != None {
		s.note(NoteAppendFailed, g, "", code.String(), len(p.records))
		for i, c := range p.codes {
			if c == None {
				p.codes[i] = commitCode(code)
			}
		}
	}
	s.emit(CommitReply{Request: p.request, Codes: p.codes})
}

// setOffset makes an offset visible unless a later write already did so.
func (g *consumerGroup) setOffset(tp cluster.TopicPartition, c committed) {
	if old, ok := g.offsets[tp]; !ok || old.by <= c.by {
		setIn(&g.offsets, tp, c)
	}
}

// stageTransaction keeps offsets of an open transaction apart until its marker comes.
func (s *Shard) stageTransaction(g *consumerGroup, producer int64, records []OffsetRecord, id AppendID) {
	for _, r := range records {
		s.stageOne(g, producer, r.TP, committed{r.Offset, id})
	}
}

func (s *Shard) stageOne(g *consumerGroup, producer int64, tp cluster.TopicPartition, c committed) {
	staged := g.pendingTxns[producer]
	if staged == nil {
		staged = make(map[cluster.TopicPartition]committed)
		setIn(&g.pendingTxns, producer, staged)
	}
	staged[tp] = c
	if s.txns[producer] == nil {
		s.txns[producer] = make(map[string]struct{})
	}
	s.txns[producer][g.id] = struct{}{}
}

func (s *Shard) unstageTransaction(g *consumerGroup, producer int64, records []OffsetRecord, id AppendID) {
	staged := g.pendingTxns[producer]
	for _, r := range records {
		if c, ok := staged[r.TP]; ok && c.by == id {
			delete(staged, r.TP)
		}
	}
	if staged != nil && len(staged) == 0 {
		delete(g.pendingTxns, producer)
		delete(s.txns[producer], g.id)
	}
}

func (s *Shard) endTransaction(e EndTransaction) {
	for _, id := range sortedKeys(s.txns[e.ProducerID]) {
		g := s.groups[id]
		if g == nil {
			continue
		}
		if e.Commit {
			for tp, c := range g.pendingTxns[e.ProducerID] {
				g.setOffset(tp, c)
			}
		}
		delete(g.pendingTxns, e.ProducerID)
	}
	delete(s.txns, e.ProducerID)
}

// unstable reports whether a write of the partition's offset is under way or in an open transaction.
func (g *consumerGroup) unstable(tp cluster.TopicPartition) bool {
	if _, ok := g.pendingCommits[tp]; ok {
		return true
	}
	for _, staged := range g.pendingTxns {
		if _, ok := staged[tp]; ok {
			return true
		}
	}
	return false
}

func repeat(c Code, n int) []Code { return slices.Repeat([]Code{c}, n) }

// utf16Len is the length of s as Java counts it.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}
