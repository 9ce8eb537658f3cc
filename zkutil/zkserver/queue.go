package zkserver

import "sync"

const (
	queueCountMax = 10_000
	queueBytesMax = 64 << 20
)

// queue hands requests to the committer in order. Full policy: connections block, which stops them reading
// from their sockets; internal entries are always taken.
type queue struct {
	mu       sync.Mutex
	notEmpty sync.Cond
	notFull  sync.Cond
	items    []*request
	bytes    int
	closed   bool
}

func newQueue() *queue {
	q := &queue{}
	q.notEmpty.L, q.notFull.L = &q.mu, &q.mu
	return q
}

// put appends r; false: the queue is closed.
func (q *queue) put(r *request, mayBlock bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for mayBlock && !q.closed && (len(q.items) >= queueCountMax || q.bytes >= queueBytesMax) {
		q.notFull.Wait()
	}
	if q.closed {
		return false
	}
	q.items = append(q.items, r)
	q.bytes += r.size
	if len(q.items) == 1 {
		q.notEmpty.Signal()
	}
	return true
}

// take waits for requests and returns all of them; into is reused. Nil: closed and empty.
func (q *queue) take(into []*request) []*request {
	clear(into)
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.notEmpty.Wait()
	}
	if len(q.items) == 0 {
		return nil
	}
	out := q.items
	q.items, q.bytes = into[:0], 0
	q.notFull.Broadcast()
	return out
}

func (q *queue) depth() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.notEmpty.Broadcast()
	q.notFull.Broadcast()
	q.mu.Unlock()
}
