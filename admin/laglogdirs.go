package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// lagFromLogDirs fills the rows of one broker that answers but does not tell a follower's position (ListOffsets as a
// debugger is Apache Kafka's and ours; brokers that only speak the same protocol may refuse it). DescribeLogDirs says
// how far a replica's log end is below its own high watermark: less than the truth, and all there is then.
func (c *Client) lagFromLogDirs(ctx context.Context, id cluster.BrokerID, rows []*model.ReplicaPosition) {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	for _, r := range rows {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != r.Topic {
			t := kmsg.NewDescribeLogDirsRequestTopic()
			t.Topic = r.Topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, r.Partition)
	}
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return // the rows keep the error that they have
	}
	applyLogDirs(rows, resp.(*kmsg.DescribeLogDirsResponse))
}

// applyLogDirs writes the lag of log directories into rows; their error says where it comes from.
func applyLogDirs(rows []*model.ReplicaPosition, resp *kmsg.DescribeLogDirsResponse) {
	lag := map[cluster.TopicPartition]int64{}
	for _, d := range resp.Dirs {
		if kerr.ErrorForCode(d.ErrorCode) != nil {
			continue
		}
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				if !p.IsFuture {
					lag[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.OffsetLag
				}
			}
		}
	}
	for _, r := range rows {
		if n, ok := lag[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}]; ok && n >= 0 {
			r.LagRecords = n
			r.Err = "the broker does not tell its position (" + r.Err + "); the lag is that of its log directories"
		}
	}
}
