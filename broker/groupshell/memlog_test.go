package groupshell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kctl/broker/group"
	"kctl/broker/record"
	"kctl/zkutil/cluster"
)

// memLog is a Log in memory. Confirmations can be held back, appends and reads can be made to fail.
type memLog struct {
	mu       sync.Mutex
	batches  map[int32][]record.Batch
	end      map[int32]int64
	hold     bool     // keep confirmations until release
	held     []func() // kept confirmations
	fail     group.Code
	readErr  error
	readGate chan struct{} // when set, a Read takes a token first
	appends  int
	entered  chan struct{} // when set, gets a token from each Append
	gate     chan struct{} // when set, an Append takes a token before it returns
}

func newMemLog() *memLog {
	return &memLog{batches: map[int32][]record.Batch{}, end: map[int32]int64{}}
}

func (l *memLog) Append(_ context.Context, partition int32, batch []byte, _ time.Duration, done func(group.Code)) {
	if l.entered != nil {
		l.entered <- struct{}{}
	}
	if l.gate != nil {
		<-l.gate
	}
	l.mu.Lock()
	l.appends++
	if l.fail != group.None {
		code := l.fail
		l.mu.Unlock()
		done(code)
		return
	}
	b := record.Batch(batch)
	b.SetBaseOffset(l.end[partition])
	l.batches[partition] = append(l.batches[partition], b)
	l.end[partition] = b.NextOffset()
	hold := l.hold
	if hold {
		l.held = append(l.held, func() { done(group.None) })
	}
	l.mu.Unlock()
	if !hold {
		done(group.None)
	}
}

func (l *memLog) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// release confirms what was held back, in the given order of indexes; all in order when none is given.
func (l *memLog) release(order ...int) {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	if order == nil {
		for i := range held {
			order = append(order, i)
		}
	}
	for _, i := range order {
		held[i]()
	}
}

func (l *memLog) heldCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

func (l *memLog) Range(partition int32) (int64, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return 0, l.end[partition], nil
}

func (l *memLog) Read(_ context.Context, partition int32, offset int64, bytesMax int) ([]byte, error) {
	if l.readGate != nil {
		<-l.readGate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readErr != nil {
		return nil, l.readErr
	}
	var out []byte
	for _, b := range l.batches[partition] {
		if b.NextOffset() <= offset {
			continue
		}
		if len(out) > 0 && len(out)+len(b) > bytesMax {
			return append(out, b[:10]...), nil // a cut-off batch at the end
		}
		out = append(out, b...)
	}
	return out, nil
}

var errDisk = errors.New("disk says no")

// records decodes what the partition holds, oldest first.
func (l *memLog) records(t *testing.T, partition int32) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, b := range l.batches[partition] {
		if err := b.Verify(); err != nil {
			t.Fatal(err)
		}
		it, err := b.Records(nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			r := it.Record()
			switch r.Key[1] {
			case offsetKeyVersion:
				o, err := decodeOffset(r.Key, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				if o.Tombstone {
					out = append(out, fmt.Sprintf("offset %s %v tombstone", o.Group, o.TP))
				} else {
					out = append(out, fmt.Sprintf("offset %s %v %d", o.Group, o.TP, o.Offset.Offset))
				}
			case groupKeyVersion:
				g, err := decodeGroup(r.Key, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				if g.Tombstone {
					out = append(out, fmt.Sprintf("group %s tombstone", g.Group))
				} else {
					out = append(out, fmt.Sprintf("group %s gen=%d members=%d", g.Group, g.Generation, len(g.Members)))
				}
			}
		}
		if it.Err() != nil {
			t.Fatal(it.Err())
		}
	}
	return out
}

// fakeCluster is Metadata and Topics.
type fakeCluster struct {
	mu      sync.Mutex
	topics  map[string]int32
	leaders map[cluster.TopicPartition]Node
	created []string
	err     error
}

func newFakeCluster(partitions int32) *fakeCluster {
	return &fakeCluster{topics: map[string]int32{OffsetsTopic: partitions, "t": 3, "u": 1}, leaders: map[cluster.TopicPartition]Node{}}
}

func (c *fakeCluster) PartitionCount(topic string) (int32, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.topics[topic]
	return n, ok
}

func (c *fakeCluster) LeaderNode(tp cluster.TopicPartition, listener string) (Node, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.leaders[tp]
	n.Host = listener + "." + n.Host
	return n, ok
}

func (c *fakeCluster) EnsureTopic(_ context.Context, name string, partitions int32, rf int16, configs map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created = append(c.created, fmt.Sprintf("%s %d %d %v", name, partitions, rf, configs))
	return c.err
}
