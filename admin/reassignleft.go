package admin

import (
	"context"

	"kctl/admin/plan/reassign"
	"kctl/zkutil/cluster"
)

// FindThrottles finds the throttle settings of a plan that no run of ours has on record, as marks of a run that
// RemoveThrottles takes back: the entries of the plan's partitions in their topics' lists and, when nothing at all is
// being reassigned, the rates of the live brokers.
func (c *Client) FindThrottles(ctx context.Context, entries []reassign.Entry) (*reassign.Run, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{NoTopics: true})
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	moving, err := c.reassignments(ctx)
	if err != nil {
		return nil, err
	}
	partitions := map[string][]int32{}
	var brokers []cluster.BrokerID
	for i := range entries {
		partitions[entries[i].Topic] = append(partitions[entries[i].Topic], entries[i].Partition)
	}
	for i := range s.Brokers {
		if s.Brokers[i].Live && len(moving) == 0 {
			brokers = append(brokers, s.Brokers[i].ID)
		}
	}
	now, _, err := c.readThrottles(ctx, sortedKeys(partitions), brokers)
	if err != nil {
		return nil, err
	}
	run := &reassign.Run{Version: 1}
	for _, t := range sortedKeys(partitions) {
		for _, key := range topicThrottles {
			if list := reassign.OfPartitions(now.topics[t][key], partitions[t]); len(list) > 0 {
				run.Note(reassign.Mark{Topic: t, Broker: -1, Key: key, Added: list})
			}
		}
	}
	for _, id := range brokers {
		for _, key := range brokerThrottles {
			if v, ok := now.brokers[id][key]; ok {
				run.Note(reassign.Mark{Broker: int32(id), Key: key, Value: v})
			}
		}
	}
	return run, nil
}
