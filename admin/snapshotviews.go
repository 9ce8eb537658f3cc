package admin

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// Every broker's metadata of all topics is read where brokers are compared. What they say is the same but for a few
// partitions, so that a cluster of many brokers costs little more memory than one: equal topics are kept once, and few
// answers are in memory as they came.

// partitionsInFlight bounds the partitions of the Metadata answers that are read at the same time.
const partitionsInFlight = 400_000

// metadataSlots lets as many brokers answer at a time as partitionsInFlight allows, and at least four: a silent one must
// not keep the others waiting.
func metadataSlots(s *model.Snapshot) chan struct{} {
	n := 0
	for i := range s.Topics {
		n += len(s.Topics[i].Partitions)
	}
	return make(chan struct{}, min(parallelBrokers, max(4, partitionsInFlight/max(n, 1))))
}

// shareTopics gives the topics of a view the partitions of base where both say the same. Both are sorted by name.
func shareTopics(view, base []model.Topic) {
	k := 0
	for i := range view {
		for k < len(base) && base[k].Name < view[i].Name {
			k++
		}
		if k < len(base) && base[k].Name == view[i].Name && samePartitions(view[i].Partitions, base[k].Partitions) {
			view[i].Partitions = base[k].Partitions
		}
	}
}

// samePartitions compares all that one answer of Metadata says.
func samePartitions(a, b []model.Partition) bool {
	return slices.EqualFunc(a, b, func(p, q model.Partition) bool {
		return p.Partition == q.Partition && p.Leader == q.Leader && p.LeaderEpoch == q.LeaderEpoch && p.Err == q.Err && p.Source == q.Source &&
			slices.Equal(p.Replicas, q.Replicas) && slices.Equal(p.ISR, q.ISR) && slices.Equal(p.Offline, q.Offline)
	})
}

// metadataEpochs asks every broker that answers for its metadata of the topics of states and returns the newest
// epoch of each partition.
func (c *Client) metadataEpochs(ctx context.Context, d *decisions, states []model.StateNode) map[cluster.TopicPartition]cluster.LeaderEpoch {
	var topics []string
	named := map[string]bool{}
	for i := range states {
		if !named[states[i].Topic] {
			named[states[i].Topic] = true
			topics = append(topics, states[i].Topic)
		}
	}
	var ids []cluster.BrokerID
	for id := range d.live {
		if d.silent[id] == nil {
			ids = append(ids, id)
		}
	}
	out := map[cluster.TopicPartition]cluster.LeaderEpoch{}
	views, _ := c.metadataViews(ctx, ids, topics) // those that do not answer say nothing about it
	for _, topics := range views {
		for i := range topics {
			for j := range topics[i].Partitions {
				p := &topics[i].Partitions[j]
				if old, ok := out[p.TP()]; !ok || p.LeaderEpoch > old {
					out[p.TP()] = p.LeaderEpoch
				}
			}
		}
	}
	return out
}

// metadataViews asks brokers for their metadata of topics (nil: all); one that does not answer has none.
func (c *Client) metadataViews(ctx context.Context, ids []cluster.BrokerID, topics []string) ([][]model.Topic, map[cluster.BrokerID]error) {
	return c.metadataViewsOver(ctx, ids, topics, &model.Snapshot{})
}

// metadataViewsOver is metadataViews in which the topics about which a broker says what base says are base's.
func (c *Client) metadataViewsOver(ctx context.Context, ids []cluster.BrokerID, topics []string, base *model.Snapshot) ([][]model.Topic, map[cluster.BrokerID]error) {
	views := make([][]model.Topic, len(ids)) // one slot per broker: no two goroutines share one
	slots := metadataSlots(base)
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		slots <- struct{}{}
		defer func() { <-slots }()
		resp, err := c.askBroker(ctx, id, metadataRequest(topics))
		if err == nil {
			_, view, _, _ := fromMetadata(resp.(*kmsg.MetadataResponse))
			shareTopics(view, base.Topics)
			views[slices.Index(ids, id)] = view
		}
		return err
	})
	return views, errs
}

// decisionsFromMetadata takes the newest epoch of each partition in any broker's metadata.
func (c *Client) decisionsFromMetadata(ctx context.Context, opts TransitionOptions) (*decisions, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(opts.Targets)})
	if err != nil {
		return nil, err
	}
	d := &decisions{live: check.Live(s), silent: map[cluster.BrokerID]error{}, controllerEpoch: -1, problems: s.Problems}
	var ids []cluster.BrokerID
	for id := range d.live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	views, errs := c.metadataViewsOver(ctx, ids, topicsOf(opts.Targets), s)
	for _, id := range ids {
		if errs[id] != nil {
			d.problems = append(d.problems, model.Problem{Object: brokerName(id), Message: short(errs[id])})
		}
	}
	d.states = newestStates(append(views, s.Topics), plan.Matcher(opts.Targets))
	return d, nil
}

// newestStates takes of each partition what the view with the newest epoch says, in the order of the partitions.
func newestStates(views [][]model.Topic, match func(topic string, partition int32) bool) []model.StateNode {
	n := 0
	for _, topics := range views {
		m := 0
		for i := range topics {
			m += len(topics[i].Partitions)
		}
		n = max(n, m)
	}
	newest := make(map[cluster.TopicPartition]*model.Partition, n)
	for _, topics := range views {
		for i := range topics {
			for j := range topics[i].Partitions {
				p := &topics[i].Partitions[j]
				if old := newest[p.TP()]; old == nil || p.LeaderEpoch > old.LeaderEpoch {
					newest[p.TP()] = p
				}
			}
		}
	}
	states := make([]model.StateNode, 0, len(newest))
	for _, p := range newest {
		if match(p.Topic, p.Partition) {
			states = append(states, stateFromPartition(p))
		}
	}
	slices.SortFunc(states, func(a, b model.StateNode) int {
		return cluster.TopicPartition{Topic: a.Topic, Partition: a.Partition}.Compare(cluster.TopicPartition{Topic: b.Topic, Partition: b.Partition})
	})
	return states
}

// decisionsFromViews is decisionsFromMetadata for what was read already.
func decisionsFromViews(s *model.Snapshot, views []check.View) *decisions {
	all := make([][]model.Topic, 0, len(views)+1)
	d := &decisions{live: check.Live(s), silent: map[cluster.BrokerID]error{}, controllerEpoch: -1}
	for i := range views {
		all = append(all, views[i].Topics)
	}
	d.states = newestStates(append(all, s.Topics), func(string, int32) bool { return true })
	return d
}

// decisionsOf is readDecisions for state nodes that were read already.
func (c *Client) decisionsOf(ctx context.Context, live map[cluster.BrokerID]bool, epoch cluster.ControllerEpoch, states []model.StateNode) (*decisions, error) {
	alerts, err := c.readAlerts(ctx)
	if err != nil {
		return nil, err
	}
	d := &decisions{alerts: alerts, live: live, silent: map[cluster.BrokerID]error{}, controllerEpoch: epoch}
	d.states = slices.DeleteFunc(slices.Clone(states), func(n model.StateNode) bool { return n.Err != "" && !n.Missing })
	return d, nil
}
