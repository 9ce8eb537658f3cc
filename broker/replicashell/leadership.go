package replicashell

import (
	"context"
	"sync"

	"kctl/zkutil/cluster"
)

// leadership is one change for Options.OnLeadership.
type leadership struct {
	tp     cluster.TopicPartition
	leader bool
	epoch  cluster.LeaderEpoch
}

// leadershipFeed hands leadership changes to the callback in order, from one goroutine and under no lock.
// Its queue is bounded by the number of changes the controller makes; it is drained at once.
type leadershipFeed struct {
	call func(cluster.TopicPartition, bool, cluster.LeaderEpoch)
	wake chan struct{}

	mu    sync.Mutex // leaf
	queue []leadership
}

func newLeadershipFeed(call func(cluster.TopicPartition, bool, cluster.LeaderEpoch)) *leadershipFeed {
	return &leadershipFeed{call: call, wake: make(chan struct{}, 1)}
}

func (f *leadershipFeed) push(l leadership) {
	f.mu.Lock()
	f.queue = append(f.queue, l)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *leadershipFeed) run(ctx context.Context) {
	for {
		f.mu.Lock()
		batch := f.queue
		f.queue = nil
		f.mu.Unlock()
		for _, l := range batch {
			f.call(l.tp, l.leader, l.epoch)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		}
	}
}
