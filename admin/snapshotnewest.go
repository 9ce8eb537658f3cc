package admin

import (
	"context"
	"slices"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// newestWait is how long brokers may take that are asked beside the one that has answered. A silent one has no say.
const newestWait = 2 * time.Second

// newest gives each partition of s what the broker says that knows of its newest leader epoch. Metadata is a broker's copy of the
// controller's word: one that has just started, or that the newest word has not reached, names an older leader, and the replicas
// before the last reassignment. Every decision of a controller raises the epoch, the end of a reassignment too, so it tells who is
// behind. Topics and brokers stay those of the first answer.
func (c *Client) newest(ctx context.Context, s *model.Snapshot, topics []string) {
	live := check.Live(s)
	ids := make([]cluster.BrokerID, 0, len(live))
	for id := range live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ctx, cancel := context.WithTimeout(ctx, min(newestWait, c.brokerTimeout()))
	defer cancel()
	views, _ := c.metadataViewsOver(ctx, ids, topics, s)
	for _, view := range views {
		takeNewer(s.Topics, view)
	}
}

// takeNewer replaces the partitions of base about which view knows of a newer epoch. Both are sorted by name.
func takeNewer(base, view []model.Topic) {
	k := 0
	for i := range view {
		for k < len(base) && base[k].Name < view[i].Name {
			k++
		}
		if k == len(base) {
			return
		}
		if base[k].Name != view[i].Name || base[k].ID != view[i].ID {
			continue // not known to both, or a namesake
		}
		have := make(map[int32]*model.Partition, len(base[k].Partitions))
		for j := range base[k].Partitions {
			have[base[k].Partitions[j].Partition] = &base[k].Partitions[j]
		}
		for j := range view[i].Partitions {
			p := &view[i].Partitions[j]
			if old := have[p.Partition]; old != nil && p.LeaderEpoch > old.LeaderEpoch {
				*old = *p
			}
		}
	}
}
