package session

import (
	"sync"
	"sync/atomic"

	"kctl/zkutil/cluster"
)

// Key names a partition within a session: by topic id from Fetch v13 on, by name before.
type Key struct {
	Topic     string // empty when TopicID is set
	TopicID   cluster.TopicID
	Partition int32
}

// KeyOf makes the key of a partition.
func KeyOf(tp cluster.TopicPartition, id cluster.TopicID) Key {
	if !id.IsZero() {
		return Key{TopicID: id, Partition: tp.Partition}
	}
	return Key{Topic: tp.Topic, Partition: tp.Partition}
}

// Position is what the fetcher asks of one partition.
type Position struct {
	FetchOffset        int64
	LogStartOffset     int64
	MaxBytes           int32
	CurrentLeaderEpoch cluster.LeaderEpoch
	LastFetchedEpoch   cluster.LeaderEpoch
	// Err is answered as it is when not zero, and nothing is read.
	Err int16
}

// Told is what the fetcher was last told of a partition; a change is news even without records.
type Told struct {
	HighWatermark, LastStableOffset, LogStartOffset int64
}

// Entry is one partition of a session. Its fields belong to the request that holds Session.Collect, except
// where said.
type Entry struct {
	Key
	TP cluster.TopicPartition // TP.Topic is empty while the topic id is unknown
	Position
	Told Told
	// Result is the index of the entry's result in the answer being built, -1 for none.
	Result int
	// Session is the owner.
	Session *Session
	// Parked is the place where the entry waits; it belongs to the lock of that place.
	Parked any
	// Place caches the partition that the entry was last resolved to.
	Place any

	queued  bool // guarded by Session.mu
	removed bool // guarded by Session.mu
}

// Session is one fetcher's set of partitions.
type Session struct {
	ID      int32
	Replica cluster.BrokerID
	byID    bool // the partitions are keyed by topic id

	// Collect is held while a request looks at partitions, not while it waits.
	Collect sync.Mutex

	// LastContact is when the fetcher last sent a request, in nanoseconds since the Unix epoch.
	LastContact atomic.Int64

	wake chan struct{} // capacity 1

	mu      sync.Mutex // leaf
	entries map[Key]*Entry
	queue   []*Entry // those with news, oldest first, from head on
	head    int
	epoch   int32 // of the next request
	request uint64
	nudged  bool
	closed  bool
}

func newSession(id int32, replica cluster.BrokerID, size int) *Session {
	return &Session{ID: id, Replica: replica, wake: make(chan struct{}, 1), entries: make(map[Key]*Entry, size)}
}

// Mark says that e has news, and with wake that the waiting request should look at once. It may be called
// under a partition's lock.
func (s *Session) Mark(e *Entry, wake bool) {
	s.mu.Lock()
	if !e.removed && !e.queued {
		s.push(e)
	}
	s.mu.Unlock()
	if wake {
		s.signal()
	}
}

// Nudge lets a waiting request return with what there is.
func (s *Session) Nudge() {
	s.mu.Lock()
	s.nudged = true
	s.mu.Unlock()
	s.signal()
}

func (s *Session) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wake is signalled by Mark and Nudge.
func (s *Session) Wake() <-chan struct{} { return s.wake }

// Superseded reports whether another request of this session, or its end, has overtaken request.
func (s *Session) Superseded(request uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.request != request
}

// TakeNudge reports and clears a nudge.
func (s *Session) TakeNudge() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nudged
	s.nudged = false
	return n
}

func (s *Session) push(e *Entry) {
	e.queued = true
	if s.head > 0 && s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
	s.queue = append(s.queue, e)
}

// Queued returns how many entries have news.
func (s *Session) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) - s.head
}

// Pop takes the entry that has waited for the longest, nil when there is none.
func (s *Session) Pop() *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.head < len(s.queue) {
		e := s.queue[s.head]
		s.queue[s.head] = nil
		s.head++
		if s.head > 64 && s.head*2 > len(s.queue) {
			n := copy(s.queue, s.queue[s.head:])
			clear(s.queue[n:])
			s.queue, s.head = s.queue[:n], 0
		}
		e.queued = false
		if !e.removed {
			return e
		}
	}
	return nil
}

// Len returns the number of partitions.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// Entries returns all partitions, in no order.
func (s *Session) Entries() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Entry, 0, len(s.entries))
	for _, e := range s.entries {
		out = append(out, e)
	}
	return out
}

// Partition is one partition named by a request.
type Partition struct {
	TP      cluster.TopicPartition
	TopicID cluster.TopicID
	Position
}

// update applies a request. It returns the entries that were dropped, which the caller unparks.
func (s *Session) update(parts, forgotten []Partition) (dropped []*Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range parts {
		p := &parts[i]
		k := KeyOf(p.TP, p.TopicID)
		e := s.entries[k]
		if e == nil {
			e = &Entry{Key: k, Session: s, Result: -1, Told: Told{-1, -1, -1}}
			s.entries[k] = e
		}
		if p.TP.Topic != "" {
			e.TP = p.TP
		} else {
			e.TP.Partition = p.TP.Partition
		}
		e.Position = p.Position
		if !e.queued {
			s.push(e)
		}
	}
	for i := range forgotten {
		k := KeyOf(forgotten[i].TP, forgotten[i].TopicID)
		if e := s.entries[k]; e != nil {
			delete(s.entries, k)
			e.removed = true
			dropped = append(dropped, e)
		}
	}
	return dropped
}

// close ends the session and returns its entries, which the caller unparks.
func (s *Session) close() []*Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	dropped := make([]*Entry, 0, len(s.entries))
	for _, e := range s.entries {
		e.removed = true
		dropped = append(dropped, e)
	}
	s.entries, s.queue, s.head = nil, nil, 0
	s.signal()
	return dropped
}
