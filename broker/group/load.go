package group

import (
	"time"

	"kctl/zkutil/cluster"
)

// Loader gathers the live state of a partition of __consumer_offsets from its records, fed in log order.
// It keeps the newest record of each key only, so its memory is that of the loaded groups.
type Loader struct {
	groups  map[string]GroupRecord
	offsets map[string]map[cluster.TopicPartition]loaded
	txns    map[int64]map[string]map[cluster.TopicPartition]loaded
	seq     int64
}

// loaded is an offset and its place in the order of the log.
type loaded struct {
	Offset
	seq int64
}

// NewLoader returns an empty Loader.
func NewLoader() *Loader {
	return &Loader{
		groups:  make(map[string]GroupRecord),
		offsets: make(map[string]map[cluster.TopicPartition]loaded),
		txns:    make(map[int64]map[string]map[cluster.TopicPartition]loaded),
	}
}

// Group takes in a group's record or tombstone.
func (l *Loader) Group(r GroupRecord) {
	if r.Tombstone {
		delete(l.groups, r.Group)
		return
	}
	l.groups[r.Group] = r
}

// Offset takes in an offset's record or tombstone. producerID is that of the record's batch when it is
// transactional, else NoProducer; such an offset counts from the commit marker on.
func (l *Loader) Offset(r OffsetRecord, producerID int64) {
	l.seq++
	into := l.offsets
	if producerID != NoProducer {
		if l.txns[producerID] == nil {
			l.txns[producerID] = make(map[string]map[cluster.TopicPartition]loaded)
		}
		into = l.txns[producerID]
	}
	if r.Tombstone {
		delete(into[r.Group], r.TP)
		if len(into[r.Group]) == 0 {
			delete(into, r.Group)
		}
		return
	}
	if into[r.Group] == nil {
		into[r.Group] = make(map[cluster.TopicPartition]loaded)
	}
	into[r.Group][r.TP] = loaded{r.Offset, l.seq}
}

// Marker takes in the end of a producer's transaction.
func (l *Loader) Marker(producerID int64, commit bool) {
	if commit {
		for id, staged := range l.txns[producerID] {
			for tp, o := range staged {
				if old, ok := l.offsets[id][tp]; ok && old.seq > o.seq {
					continue
				}
				if l.offsets[id] == nil {
					l.offsets[id] = make(map[cluster.TopicPartition]loaded)
				}
				l.offsets[id][tp] = o
			}
		}
	}
	delete(l.txns, producerID)
}

// Install makes the shard, which must be new, hold what was loaded. The members' sessions begin at at; a
// group with more members than group.max.size is rebalanced at once.
func (s *Shard) Install(l *Loader, at time.Time, out []Effect) []Effect {
	s.out = out
	for _, id := range sortedKeys(l.groups) {
		s.installGroup(l.groups[id], at)
	}
	for id, offsets := range l.offsets {
		g := s.getOrCreate(id, true, at)
		for tp, o := range offsets {
			setIn(&g.offsets, tp, committed{Offset: o.Offset})
		}
	}
	for producer, groups := range l.txns {
		for id, offsets := range groups {
			g := s.getOrCreate(id, true, at)
			for tp, o := range offsets {
				s.stageOne(g, producer, tp, committed{Offset: o.Offset})
			}
		}
	}
	out, s.out = s.out, nil
	return out
}

// installGroup rebuilds a group from its record. What cannot be true (a member listed twice) is dropped,
// since the bytes come from a disk.
func (s *Shard) installGroup(r GroupRecord, at time.Time) {
	g := newGroup(r.Group, r.StateTimestamp)
	g.generation, g.protocol = r.Generation, r.Protocol
	if r.ProtocolType != "" {
		g.protocolType = &r.ProtocolType
	}
	if r.Protocol != nil {
		for _, mr := range r.Members {
			installMember(g, mr, *r.Protocol, r.ProtocolType)
		}
	}
	if len(g.members) > 0 {
		g.state = Stable
		if r.Leader != nil && g.byID[*r.Leader] != nil {
			g.leader = *r.Leader
		}
	} else {
		g.protocol = nil
	}
	g.computeSubscriptions()
	s.groups[g.id] = g
	if len(g.members) > s.cfg.MaxSize {
		s.rebalance(g, at, "the loaded group has more members than allowed")
	}
	for _, m := range g.members {
		s.alive(g, m, at)
	}
}

func installMember(g *consumerGroup, mr MemberRecord, protocol, protocolType string) {
	if mr.MemberID == "" || g.byID[mr.MemberID] != nil {
		return
	}
	if mr.InstanceID != nil {
		if _, taken := g.static[*mr.InstanceID]; taken {
			return
		}
	}
	g.add(&member{
		id: mr.MemberID, instanceID: mr.InstanceID, clientID: mr.ClientID, clientHost: mr.ClientHost,
		session: mr.SessionTimeout, rebalance: mr.RebalanceTimeout, assignment: mr.Assignment,
		protocols: []Protocol{{Name: protocol, Metadata: mr.Subscription}},
	}, protocolType)
}
