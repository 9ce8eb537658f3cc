package groupshell

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"kctl/broker/group"
)

// entry is one armed timer, or the retry of a load when core is nil.
type entry struct {
	at    time.Time
	sh    *shard
	core  *group.Shard
	timer group.TimerID
}

type entries []entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h entries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(x any)        { *h = append(*h, x.(entry)) }
func (h *entries) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = entry{}
	*h = old[:len(old)-1]
	return e
}

// timers is the one queue of all timers of all shards.
type timers struct {
	mu   sync.Mutex
	heap entries       // guarded by mu
	wake chan struct{} // holds one token when the first entry became earlier
}

func (t *timers) add(e entry) {
	t.mu.Lock()
	heap.Push(&t.heap, e)
	first := t.heap[0].at.Equal(e.at)
	t.mu.Unlock()
	if first {
		signal(t.wake)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// due takes out what is due and returns when the next one will be; false when there is none.
func (t *timers) due(now time.Time) (due []entry, next time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.heap) > 0 && !t.heap[0].at.After(now) {
		due = append(due, heap.Pop(&t.heap).(entry))
	}
	if len(t.heap) == 0 {
		return due, time.Time{}, false
	}
	return due, t.heap[0].at, true
}

// runTimers fires timers and starts the retention check until ctx ends.
func (m *Manager) runTimers(ctx context.Context) error {
	check := time.NewTicker(m.opts.Config.OffsetsRetentionCheck)
	defer check.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, next, ok := m.timers.due(m.now())
		for _, e := range due {
			if e.core == nil {
				m.enqueueLoad(e.sh)
			} else {
				e.sh.fire(ctx, e)
			}
		}
		if len(due) > 0 {
			continue // firing took time and may have armed new ones
		}
		wait := time.Hour
		if ok {
			wait = next.Sub(m.now())
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-m.timers.wake:
		case <-timer.C:
		case <-check.C:
			m.expire(ctx)
		}
	}
}

func (m *Manager) expire(ctx context.Context) {
	for _, sh := range m.allShards() {
		sh.event(ctx, group.Expire{At: m.now()})
	}
}
