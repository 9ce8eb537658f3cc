// Package producerid hands out producer ids that no other broker of the cluster hands out: blocks of 1000
// are reserved in /latest_producer_id_block by conditional writes, in Apache Kafka's own JSON, so that
// brokers of both kinds may share a cluster.
//
// The request handlers of InitProducerId call it. Ids of a block that was reserved and not used up when the
// broker stops are never used, as in Apache Kafka.
package producerid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// ErrExhausted says that the id space of 2^63 is used up; it is final.
var ErrExhausted = errors.New("all producer ids are used")

// Allocator hands out ids. Safe for concurrent use.
type Allocator struct {
	zk     zkutil.Ops
	broker cluster.BrokerID

	mu     sync.Mutex
	next   int64         // guarded by mu
	last   int64         // guarded by mu: of the block in use; below next: no id left
	refill chan struct{} // guarded by mu: closed when the reservation under way has ended; nil: none is
}

// New makes an Allocator; the first block is reserved by the first Next.
func New(zk zkutil.Client, broker cluster.BrokerID) *Allocator {
	return &Allocator{zk: zkutil.Any(zk), broker: broker, last: -1}
}

// Next returns an id that is unique in the cluster. It asks ZooKeeper once in 1000 calls and then blocks;
// calls that come meanwhile wait for the same answer.
func (a *Allocator) Next(ctx context.Context) (int64, error) {
	for {
		a.mu.Lock()
		if a.next <= a.last {
			id := a.next
			a.next++
			a.mu.Unlock()
			return id, nil
		}
		wait := a.refill
		if wait == nil {
			a.refill = make(chan struct{})
			a.mu.Unlock()
			if err := a.reserve(ctx); err != nil {
				return -1, err
			}
			continue
		}
		a.mu.Unlock()
		select {
		case <-wait: // whether it worked shows in the next round
		case <-ctx.Done():
			return -1, fmt.Errorf("wait for a block of producer ids: %w", ctx.Err())
		}
	}
}

// reserve takes the next block into use. The caller has set refill.
func (a *Allocator) reserve(ctx context.Context) error {
	block, err := a.nextBlock(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.next, a.last = block.First, block.Last
	}
	close(a.refill)
	a.refill = nil
	return err
}

// nextBlock writes the block after the last one of the cluster, again and again while others are quicker.
func (a *Allocator) nextBlock(ctx context.Context) (znode.ProducerIDBlock, error) {
	for {
		block, version, err := a.propose(ctx)
		if err != nil {
			return block, fmt.Errorf("reserve a block of producer ids: %w", err)
		}
		_, err = a.zk.SetIfVersion(ctx, znode.ProducerIDBlockPath, block.Encode(), version)
		switch {
		case err == nil:
			return block, nil
		case errors.Is(err, zkop.ErrBadVersion), errors.Is(err, zkop.ErrNoNode):
		default:
			return block, fmt.Errorf("reserve producer ids %d to %d: %w", block.First, block.Last, err)
		}
	}
}

// propose reads the last block and returns the one after it with the version to write it at.
func (a *Allocator) propose(ctx context.Context) (znode.ProducerIDBlock, int32, error) {
	var none znode.ProducerIDBlock
	data, stat, err := a.zk.Get(ctx, znode.ProducerIDBlockPath)
	if errors.Is(err, zkop.ErrNoNode) {
		if err = a.zk.EnsurePath(ctx, znode.ProducerIDBlockPath); err == nil {
			data, stat, err = a.zk.Get(ctx, znode.ProducerIDBlockPath)
		}
	}
	if err != nil {
		return none, 0, err
	}
	last, ok, err := znode.DecodeProducerIDBlock(data)
	if err != nil {
		return none, 0, err
	}
	block := znode.ProducerIDBlock{Broker: a.broker, First: 0, Last: znode.ProducerIDBlockSize - 1}
	if ok {
		if last.Last > math.MaxInt64-1-znode.ProducerIDBlockSize {
			return none, 0, ErrExhausted
		}
		block.First, block.Last = last.Last+1, last.Last+znode.ProducerIDBlockSize
	}
	return block, stat.Version, nil
}
