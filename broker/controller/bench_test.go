package controller

import (
	"fmt"
	"testing"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// BenchmarkBrokerFailure measures the core (and the test's ZooKeeper tree) for the death of a broker that
// leads every partition; the cost per partition must not depend on how many there are.
func BenchmarkBrokerFailure(b *testing.B) {
	for _, partitions := range []int32{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				w := newWorld(b)
				w.quiet = true
				w.start(1, Config{}, true)
				w.start(2, Config{}, false)
				w.start(3, Config{}, false)
				z := znode.Topic{ID: cluster.TopicID{1}, Partitions: map[int32]cluster.Assignment{}}
				for p := range partitions {
					z.Partitions[p] = cluster.Assignment{Replicas: []cluster.BrokerID{2, 3, 1}}
				}
				w.mustZK(zkop.Request{Kind: zkop.Create, Path: znode.TopicPath("t"), Data: z.Encode()})
				w.settle()
				w.deliver()
				b.StartTimer()
				w.expire(w.nodes[2], true)
				w.settle()
				w.deliver()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(partitions), "µs/partition")
		})
	}
}
