package producerid

import (
	"context"

	"kctl/zkutil/cluster"
)

// Block reserves a whole block for another broker, which asked this one as the controller (KIP-730), and returns
// its first id and length. The node names the broker that will use it.
func (a *Allocator) Block(ctx context.Context, broker cluster.BrokerID) (first int64, length int32, err error) {
	other := Allocator{zk: a.zk, broker: broker, last: -1}
	block, err := other.nextBlock(ctx)
	if err != nil {
		return -1, 0, err
	}
	return block.First, int32(block.Last - block.First + 1), nil
}
