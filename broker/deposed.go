package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/obs"
	"kctl/broker/peer"
	"kctl/broker/replica"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
)

// How a broker without ZooKeeper asks the others whether it still leads: how often, and how long a question may
// take.
const (
	deposedInterval = time.Second
	deposedTimeout  = 3 * time.Second
)

// watchDeposition asks other brokers, while this one's ZooKeeper session is in doubt, whether they know later
// leaders of what it leads. When ZooKeeper is gone for everybody nobody was elected, and the broker goes on
// serving. When only this broker is cut off, others lead by now and the controller does not send to a broker that
// is not registered: without this, producers that do not wait for followers would go on writing here what is cut
// off later. It costs nothing while the session is in order.
func (b *Broker) watchDeposition(ctx context.Context) error {
	feed, cancel := b.zk.Subscribe()
	defer cancel()
	tick := time.NewTimer(deposedInterval)
	defer tick.Stop()
	for {
		var due <-chan time.Time
		switch b.zk.Session().State {
		case zkutil.PresumedLost, zkutil.Expired:
			tick.Reset(deposedInterval)
			due = tick.C
		default:
		}
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-feed:
			if !ok {
				return nil
			}
		case <-due:
			b.askWhoLeads(ctx)
		}
	}
}

// askWhoLeads asks each other broker that was alive when the controller was last heard of, until one answers.
func (b *Broker) askWhoLeads(ctx context.Context) {
	led := map[string]bool{}
	for _, p := range b.replica.Partitions() {
		if p.Role == replica.Leader {
			led[p.TP.Topic] = true
		}
	}
	if len(led) == 0 {
		return
	}
	for _, o := range b.cache.Snapshot().Brokers() {
		if o.ID == b.id {
			continue
		}
		resp, err := b.askMetadata(ctx, o.ID, led)
		if err != nil {
			b.log.Debug("cannot ask who leads", obs.KeyPeer, o.ID, obs.Err(err))
			continue
		}
		if b.takeDepositions(resp) > 0 {
			return
		}
	}
}

func (b *Broker) askMetadata(ctx context.Context, id cluster.BrokerID, topics map[string]bool) (*kmsg.MetadataResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, deposedTimeout)
	defer cancel()
	addr, ok := b.brokerAddr(id)
	if !ok {
		return nil, fmt.Errorf("broker %d has no address", id)
	}
	conn, err := peer.Dial(ctx, nil, addr, fmt.Sprintf("broker-%d-who-leads", b.id), deposedTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 8 // with leader epochs, by topic name
	for name := range topics {
		req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name})
	}
	resp, err := conn.Do(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.MetadataResponse), nil
}

// takeDepositions gives up what others lead at a later epoch, and counts it.
func (b *Broker) takeDepositions(resp *kmsg.MetadataResponse) int {
	n := 0
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == nil {
			continue
		}
		for _, p := range t.Partitions {
			tp := cluster.TopicPartition{Topic: *t.Topic, Partition: p.Partition}
			if p.Leader != int32(b.id) && p.LeaderEpoch > 0 && b.replica.Deposed(tp, cluster.LeaderEpoch(p.LeaderEpoch)) {
				n++
			}
		}
	}
	return n
}
