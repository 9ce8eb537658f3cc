package session

import (
	"container/list"
	"math/rand/v2"
	"sync"
	"time"

	"kctl/zkutil/cluster"
)

// EvictAfter is how long a session must be unused before another of its kind may take its slot, as
// min.incremental.fetch.session.eviction.ms.
const EvictAfter = 2 * time.Minute

// Error codes of Kafka's protocol.
const (
	errIDNotFound   int16 = 70
	errInvalidEpoch int16 = 71
	errTopicID      int16 = 106
)

// Cache holds the sessions of one broker.
type Cache struct {
	slots int

	mu    sync.Mutex // before a session's own lock
	byID  map[int32]*list.Element
	order *list.List // of *slot, longest unused first
}

type slot struct {
	s    *Session
	used time.Time
}

// NewCache returns a cache of at most slots sessions.
func NewCache(slots int) *Cache {
	return &Cache{slots: slots, byID: map[int32]*list.Element{}, order: list.New()}
}

// Request is what Begin needs of a Fetch request.
type Request struct {
	At        time.Time
	ID, Epoch int32
	Replica   cluster.BrokerID
	ByID      bool // v13+: partitions are named by topic id
	Parts     []Partition
	Forgotten []Partition
}

// Begun is a request that has found its session.
type Begun struct {
	Err     int16 // when not zero, nothing else is set
	Session *Session
	Request uint64 // for Session.Superseded
	// Full is true when the answer names every partition, also those without news.
	Full bool
	// Kept is true when the session outlives the request; otherwise the caller ends it with End.
	Kept bool
	// Dropped are entries that are in no session any more; the caller unparks them.
	Dropped []*Entry
}

// Begin resolves the session of a request.
func (c *Cache) Begin(r Request) Begun {
	if r.Epoch > 0 {
		return c.incremental(r)
	}
	var dropped []*Entry
	if r.ID != 0 {
		dropped = c.remove(r.ID)
	}
	b := Begun{Full: true, Dropped: dropped}
	if r.Epoch == 0 {
		var evicted []*Entry
		b.Session, evicted = c.create(r)
		b.Dropped = append(b.Dropped, evicted...)
		b.Kept = b.Session != nil
	}
	if b.Session == nil {
		b.Session = newSession(0, r.Replica, len(r.Parts))
	}
	b.Session.LastContact.Store(r.At.UnixNano())
	b.Session.byID = r.ByID
	b.Session.update(r.Parts, nil)
	b.Session.epoch = 1
	return b
}

func (c *Cache) incremental(r Request) Begun {
	c.mu.Lock()
	el, ok := c.byID[r.ID]
	if !ok {
		c.mu.Unlock()
		return Begun{Err: errIDNotFound}
	}
	sl := el.Value.(*slot)
	s := sl.s
	sl.used = r.At
	c.order.MoveToBack(el)
	c.mu.Unlock()

	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return Begun{Err: errIDNotFound}
	case r.Epoch != s.epoch:
		s.mu.Unlock()
		return Begun{Err: errInvalidEpoch}
	case s.byID != r.ByID && (len(r.Parts)+len(r.Forgotten) > 0):
		s.mu.Unlock()
		return Begun{Err: errTopicID}
	}
	if s.epoch++; s.epoch <= 0 { // after 2^31-1 comes 1
		s.epoch = 1
	}
	s.request++
	request := s.request
	s.nudged = false
	s.mu.Unlock()
	s.signal() // an earlier request of the session that still waits is superseded

	s.LastContact.Store(r.At.UnixNano())
	s.Collect.Lock()
	dropped := s.update(r.Parts, r.Forgotten)
	s.Collect.Unlock()
	return Begun{Session: s, Request: request, Kept: true, Dropped: dropped}
}

func (c *Cache) create(r Request) (*Session, []*Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	evicted := c.sweep(r.At)
	if len(c.byID) >= c.slots {
		victim := c.victim(r)
		if victim == nil {
			return nil, evicted
		}
		evicted = append(evicted, c.drop(victim)...)
	}
	id := int32(0)
	for id == 0 || c.byID[id] != nil {
		id = rand.Int32() //nolint:gosec // an id that is hard to hit by mistake, not a secret
	}
	s := newSession(id, r.Replica, len(r.Parts))
	c.byID[id] = c.order.PushBack(&slot{s: s, used: r.At})
	return s, evicted
}

// sweep drops followers' sessions that have not been used for EvictAfter: they can hold thousands of partitions
// each, and a follower that lost its connection begins another.
func (c *Cache) sweep(now time.Time) (dropped []*Entry) {
	for el := c.order.Front(); el != nil; {
		next := el.Next()
		sl := el.Value.(*slot)
		if now.Sub(sl.used) <= EvictAfter {
			break // the rest was used later still
		}
		if sl.s.Replica >= 0 {
			dropped = append(dropped, c.drop(el)...)
		}
		el = next
	}
	return dropped
}

// victim returns the session that may make room for r.
func (c *Cache) victim(r Request) *list.Element {
	for el := c.order.Front(); el != nil; el = el.Next() {
		sl := el.Value.(*slot)
		if r.At.Sub(sl.used) > EvictAfter {
			return el
		}
		if r.Replica >= 0 && sl.s.Replica < 0 {
			return el
		}
		if r.Replica < 0 {
			return nil // the rest was used later still
		}
	}
	return nil
}

func (c *Cache) remove(id int32) []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el, ok := c.byID[id]; ok {
		return c.drop(el)
	}
	return nil
}

func (c *Cache) drop(el *list.Element) []*Entry {
	s := el.Value.(*slot).s
	delete(c.byID, s.ID)
	c.order.Remove(el)
	return s.close()
}

// End ends a session that is not kept and returns its entries to be unparked.
func (b Begun) End() []*Entry {
	if b.Kept {
		return nil
	}
	return b.Session.close()
}

// Len returns the number of sessions.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byID)
}

// Replicas calls f for every session of a follower.
func (c *Cache) Replicas(f func(*Session)) {
	c.mu.Lock()
	var out []*Session
	for el := c.order.Front(); el != nil; el = el.Next() {
		if s := el.Value.(*slot).s; s.Replica >= 0 {
			out = append(out, s)
		}
	}
	c.mu.Unlock()
	for _, s := range out {
		f(s)
	}
}
