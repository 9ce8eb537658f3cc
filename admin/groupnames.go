package admin

import (
	"context"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// GroupNames lists the names of the groups of all brokers that answer, sorted. It is meant for completion: what does
// not answer is left out.
func (c *Client) GroupNames(ctx context.Context) ([]string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	m, err := c.metadata(ctx, []string{})
	if err != nil {
		return nil, err
	}
	brokers, _, _, _ := fromMetadata(m)
	ids := make([]cluster.BrokerID, len(brokers))
	for i := range brokers {
		ids[i] = brokers[i].ID
	}
	var mu sync.Mutex
	var names []string
	c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		resp, err := c.askBroker(ctx, id, kmsg.NewPtrListGroupsRequest())
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, g := range resp.(*kmsg.ListGroupsResponse).Groups {
			names = append(names, g.Group)
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), nil
}
