package replicashell

import (
	"context"
	"hash/fnv"
	"sync"

	"kctl/zkutil/cluster"
)

// streamKey names one fetch stream. Streams are apart by our own log directory, so that a slow disk holds back
// nothing on another, and there are several per directory, so that a follower appends with as much parallelism
// as the leader does (V3 discussion 8).
type streamKey struct {
	leader cluster.BrokerID
	dir    string
	slot   int
}

// streams owns the fetch streams and their goroutines. A stream is made with its first partition and ends
// with its last.
type streams struct {
	m *Manager

	mu   sync.Mutex // after partition.mu, before stream.mu
	all  map[streamKey]*stream
	ctx  context.Context // of Run; nil before. Kept only to start streams that are made later
	wg   sync.WaitGroup
	done bool
}

func newStreams(m *Manager) *streams { return &streams{m: m, all: map[streamKey]*stream{}} }

// add gives f to its stream. It is called under the partition's lock.
func (ss *streams) add(leader cluster.BrokerID, dir string, f *follow) {
	key := streamKey{leader, dir, slotOf(f.tp, ss.m.opts.FetchStreams)}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.all[key]
	if s == nil {
		s = newStream(ss, key)
		ss.all[key] = s
		ss.launch(s)
	}
	f.stream = s
	s.add(f)
}

// slotOf spreads partitions: those of one topic go round the slots, topics start at different ones.
func slotOf(tp cluster.TopicPartition, slots int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tp.Topic))
	return int((h.Sum32()>>1)+uint32(tp.Partition)) % slots
}

func (ss *streams) launch(s *stream) {
	if ss.ctx == nil || ss.done {
		return
	}
	ctx := ss.ctx
	ss.wg.Add(1)
	go func() {
		defer ss.wg.Done()
		s.run(ctx)
	}()
}

// retire drops a stream that has nothing to do; it reports false when a partition has come meanwhile.
func (ss *streams) retire(s *stream) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) > 0 {
		return false
	}
	if ss.all[s.key] == s {
		delete(ss.all, s.key)
	}
	return true
}

// run starts every stream and returns when ctx has ended and all of them have.
func (ss *streams) run(ctx context.Context) {
	ss.mu.Lock()
	ss.ctx = ctx
	for _, s := range ss.all {
		ss.launch(s)
	}
	ss.mu.Unlock()
	<-ctx.Done()
	ss.mu.Lock()
	ss.done = true
	ss.mu.Unlock()
	ss.wg.Wait()
}

// count returns the number of streams.
func (ss *streams) count() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return len(ss.all)
}

// maxLag returns the largest number of records that a followed partition is known to lack.
func (ss *streams) maxLag() int64 {
	ss.mu.Lock()
	all := make([]*stream, 0, len(ss.all))
	for _, s := range ss.all {
		all = append(all, s)
	}
	ss.mu.Unlock()
	var lag int64
	for _, s := range all {
		lag = max(lag, s.lag.Load())
	}
	return lag
}
