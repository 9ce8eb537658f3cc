// Package producerid hands out producer ids that no other broker of the cluster hands out: blocks of 1000
// are reserved in /latest_producer_id_block by conditional writes, in Apache Kafka's own JSON.
package producerid

import (
	"context"
	"errors"
	"sync"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// ErrExhausted says that the id space of 2^63 is used up; it is final.
var ErrExhausted = errors.New("all producer ids are used")

// Allocator hands out ids. Safe for concurrent use.
type Allocator struct {
	zk     zkutil.Client
	broker cluster.BrokerID

	mu   sync.Mutex
	next int64
	end  int64 // inclusive; next > end: no id left
}

// New makes an Allocator; the first block is reserved by the first Next.
func New(zk zkutil.Client, broker cluster.BrokerID) *Allocator {
	return &Allocator{zk: zk, broker: broker, end: -1}
}

// Next returns an id that is unique in the cluster. It asks ZooKeeper once in 1000 calls.
func (a *Allocator) Next(ctx context.Context) (int64, error) {
	return 0, errors.New("producer id block not reserved")
}
