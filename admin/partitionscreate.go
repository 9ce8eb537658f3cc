package admin

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// CreatePartitions makes the topic grow by the partitions of the assignment, or has the cluster check it only. It then
// waits, within the timeout, until every live broker names a leader for all of them; visible tells whether that came.
func (c *Client) CreatePartitions(ctx context.Context, topic string, have int, added [][]cluster.BrokerID, validateOnly bool) (visible bool, err error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis, req.ValidateOnly = c.serverTimeout(), validateOnly
	rt := kmsg.NewCreatePartitionsRequestTopic()
	rt.Topic, rt.Count = topic, int32(have+len(added))
	for _, replicas := range added {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = cluster.IDsToInt32(replicas)
		rt.Assignment = append(rt.Assignment, a)
	}
	req.Topics = append(req.Topics, rt)
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		ts := r.(*kmsg.CreatePartitionsResponse).Topics
		return len(ts) > 0 && ts[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return false, err
	}
	for _, t := range resp.(*kmsg.CreatePartitionsResponse).Topics {
		if err := brokerErr(kmsg.CreatePartitions, t.ErrorCode, t.ErrorMessage); err != nil {
			return false, wrap(err, "add partitions to topic %s", topic)
		}
	}
	if validateOnly {
		return true, nil
	}
	want := have + len(added)
	return c.awaitEverywhere(ctx, topic, func(t *model.Topic) bool {
		if len(t.Partitions) < want {
			return false
		}
		for i := range t.Partitions {
			if t.Partitions[i].Leader < 0 && i >= have {
				return false
			}
		}
		return true
	}), nil
}

// NoLeaderYet is the error of partitions that are made but not led everywhere.
func NoLeaderYet(topic string) error {
	return &Error{
		Kind: Failed, Msg: fmt.Sprintf("topic %s has its new partitions, but not every one has a leader on every broker yet", topic),
		Hint: "kctl topics describe " + topic,
	}
}
