package admin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// CommittedOffsets returns the offsets that groups committed, sorted by topic and partition, and the error of each
// group that could not be read: one request to each coordinator where brokers take many groups (KIP-709).
func (c *Client) CommittedOffsets(ctx context.Context, groups []string) (map[string][]model.CommittedOffset, map[string]error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	found := newAnswers[[]model.CommittedOffset]()
	refused := newAnswers[error]()
	errs := c.perCoordinator(ctx, forGroups, groups, func(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]int16, error) {
		codes := map[string]int16{}
		err := c.fetchOffsets(ctx, id, keys, func(group string, code int16, offsets []model.CommittedOffset) {
			codes[group] = code
			if err := brokerErr(kmsg.OffsetFetch, code, nil); err != nil {
				refused.set(group, err)
				return
			}
			slices.SortFunc(offsets, func(a, b model.CommittedOffset) int { return comparePartitions(a.TP(), b.TP()) })
			found.set(group, offsets)
		})
		return codes, err
	})
	for g, err := range refused.m {
		if _, ok := found.get(g); !ok && errs[g] == nil {
			errs[g] = wrap(err, "read the offsets of group %s", g)
		}
	}
	return found.m, errs
}

// fetchOffsets reads all offsets of the groups of one coordinator. Brokers before version 8 take one group.
func (c *Client) fetchOffsets(ctx context.Context, id cluster.BrokerID, groups []string, said func(string, int16, []model.CommittedOffset)) error {
	for left := groups; len(left) > 0; left = left[1:] {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group = left[0]
		for _, g := range left {
			rg := kmsg.NewOffsetFetchRequestGroup()
			rg.Group = g
			req.Groups = append(req.Groups, rg)
		}
		resp, err := c.askBroker(ctx, id, req)
		if err != nil {
			return err
		}
		r := resp.(*kmsg.OffsetFetchResponse)
		if r.Version >= 8 {
			for _, g := range r.Groups {
				said(g.Group, g.ErrorCode, manyOffsets(g))
			}
			return nil
		}
		said(left[0], r.ErrorCode, oneGroupOffsets(r))
	}
	return nil
}

func manyOffsets(g kmsg.OffsetFetchResponseGroup) []model.CommittedOffset {
	out := []model.CommittedOffset{}
	for _, t := range g.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Offset >= 0 {
				out = append(out, model.CommittedOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: deref(p.Metadata)})
			}
		}
	}
	return out
}

func oneGroupOffsets(r *kmsg.OffsetFetchResponse) []model.CommittedOffset {
	out := []model.CommittedOffset{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 && p.Offset >= 0 {
				out = append(out, model.CommittedOffset{Topic: t.Topic, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: deref(p.Metadata)})
			}
		}
	}
	return out
}

// The two timestamps of ListOffsets that stand for the ends of a log.
const (
	logEnd   int64 = -1
	logStart int64 = -2
)

// logOffset is what a leader says of one partition.
type logOffset struct {
	offset int64 // -1: no record is that young
	err    string
}

// leaders finds who leads the partitions of the named topics: one Metadata request.
type leaders struct {
	by   map[cluster.TopicPartition]cluster.BrokerID
	errs map[string]string // of topics that could not be described
	all  map[string][]int32
}

func (c *Client) leadersOf(ctx context.Context, topics []string) (*leaders, error) {
	l := &leaders{by: map[cluster.TopicPartition]cluster.BrokerID{}, errs: map[string]string{}, all: map[string][]int32{}}
	if len(topics) == 0 {
		return l, nil
	}
	m, err := c.metadata(ctx, topics)
	if err != nil {
		return nil, err
	}
	for i := range m.Topics {
		t := topicFromMetadata(&m.Topics[i])
		if t.Err != "" {
			l.errs[t.Name] = t.Err
			if m.Topics[i].ErrorCode == kerr.UnknownTopicOrPartition.Code {
				l.errs[t.Name] = "the topic does not exist"
			}
		}
		for _, p := range t.Partitions {
			l.by[p.TP()] = p.Leader
			l.all[t.Name] = append(l.all[t.Name], p.Partition)
		}
	}
	return l, nil
}

// offsetsAt asks the leaders for the offset at a time (milliseconds, or logEnd, logStart) of each partition: one
// request to each broker, all at once.
func (c *Client) offsetsAt(ctx context.Context, l *leaders, at map[cluster.TopicPartition]int64) map[cluster.TopicPartition]logOffset {
	out := make(map[cluster.TopicPartition]logOffset, len(at))
	byBroker := map[cluster.BrokerID][]cluster.TopicPartition{}
	for tp := range at {
		id, ok := l.by[tp]
		switch {
		case l.errs[tp.Topic] != "":
			out[tp] = logOffset{-1, l.errs[tp.Topic]}
		case !ok:
			out[tp] = logOffset{-1, "the partition does not exist"}
		case id < 0:
			out[tp] = logOffset{-1, "nobody leads the partition"}
		default:
			byBroker[id] = append(byBroker[id], tp)
		}
	}
	var mu sync.Mutex // guards out
	ids := slices.Sorted(maps.Keys(byBroker))
	c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		got, err := c.listOffsetsAt(ctx, id, byBroker[id], at)
		mu.Lock()
		defer mu.Unlock()
		for _, tp := range byBroker[id] {
			o, ok := got[tp]
			switch {
			case err != nil:
				o = logOffset{-1, brokerName(id) + ": " + short(err)}
			case !ok:
				o = logOffset{-1, "the broker did not answer for this partition"}
			}
			out[tp] = o
		}
		return nil
	})
	return out
}

func (c *Client) listOffsetsAt(ctx context.Context, id cluster.BrokerID, tps []cluster.TopicPartition, at map[cluster.TopicPartition]int64) (map[cluster.TopicPartition]logOffset, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = asConsumer
	sortPartitions(tps)
	for _, tp := range tps {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = tp.Partition, at[tp]
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	out := make(map[cluster.TopicPartition]logOffset, len(tps))
	for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			o := logOffset{offset: p.Offset}
			if err := brokerErr(kmsg.ListOffsets, p.ErrorCode, nil); err != nil {
				o = logOffset{-1, short(err)}
			}
			out[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = o
		}
	}
	return out, nil
}

// bothEnds asks for start and end of the logs, at the same time.
func (c *Client) bothEnds(ctx context.Context, l *leaders, tps []cluster.TopicPartition) (starts, ends map[cluster.TopicPartition]logOffset) {
	ask := func(at int64) map[cluster.TopicPartition]logOffset {
		want := make(map[cluster.TopicPartition]int64, len(tps))
		for _, tp := range tps {
			want[tp] = at
		}
		return c.offsetsAt(ctx, l, want)
	}
	var wg sync.WaitGroup
	wg.Go(func() { starts = ask(logStart) })
	ends = ask(logEnd)
	wg.Wait()
	return starts, ends
}

// OffsetChange is one partition of a commit or a deletion of offsets, with what became of it.
type OffsetChange struct {
	Group     string
	Topic     string
	Partition int32
	Offset    int64 // what is committed; not used by a deletion
	Err       string
}

// CommitOffsets commits offsets for groups that have no member: one request for each group to its coordinator. The
// broker refuses it while the group has members. Errors are in the rows.
func (c *Client) CommitOffsets(ctx context.Context, changes []OffsetChange) []OffsetChange {
	return c.changeOffsets(ctx, changes, func(ctx context.Context, id cluster.BrokerID, group string, rows []*OffsetChange) (int16, error) {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.Generation, req.MemberID, req.RetentionTimeMillis = group, -1, "", -1
		for _, r := range rows {
			if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != r.Topic {
				t := kmsg.NewOffsetCommitRequestTopic()
				t.Topic = r.Topic
				req.Topics = append(req.Topics, t)
			}
			p := kmsg.NewOffsetCommitRequestTopicPartition()
			p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = r.Partition, r.Offset, -1, new(string)
			t := &req.Topics[len(req.Topics)-1]
			t.Partitions = append(t.Partitions, p)
		}
		resp, err := c.askBroker(ctx, id, req)
		if err != nil {
			return 0, err
		}
		said := map[cluster.TopicPartition]int16{}
		for _, t := range resp.(*kmsg.OffsetCommitResponse).Topics {
			for _, p := range t.Partitions {
				said[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.ErrorCode
			}
		}
		return settle(kmsg.OffsetCommit, rows, said), nil
	})
}

// DeleteOffsets makes groups forget offsets (KIP-496). The broker refuses it for topics that a member of the group
// subscribes to. Errors are in the rows.
func (c *Client) DeleteOffsets(ctx context.Context, changes []OffsetChange) []OffsetChange {
	return c.changeOffsets(ctx, changes, func(ctx context.Context, id cluster.BrokerID, group string, rows []*OffsetChange) (int16, error) {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		for _, r := range rows {
			if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != r.Topic {
				t := kmsg.NewOffsetDeleteRequestTopic()
				t.Topic = r.Topic
				req.Topics = append(req.Topics, t)
			}
			p := kmsg.NewOffsetDeleteRequestTopicPartition()
			p.Partition = r.Partition
			t := &req.Topics[len(req.Topics)-1]
			t.Partitions = append(t.Partitions, p)
		}
		resp, err := c.askBroker(ctx, id, req)
		if err != nil {
			return 0, err
		}
		r := resp.(*kmsg.OffsetDeleteResponse)
		if r.ErrorCode != 0 {
			for _, row := range rows {
				row.Err = short(brokerErr(kmsg.OffsetDelete, r.ErrorCode, nil))
			}
			return r.ErrorCode, nil
		}
		said := map[cluster.TopicPartition]int16{}
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				said[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.ErrorCode
			}
		}
		return settle(kmsg.OffsetDelete, rows, said), nil
	})
}

// settle writes the brokers' answers to a request into the rows; it returns a code that says the coordinator moved, or 0.
func settle(key kmsg.Key, rows []*OffsetChange, said map[cluster.TopicPartition]int16) int16 {
	var moved int16
	for _, r := range rows {
		code, ok := said[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}]
		switch {
		case !ok:
			r.Err = "the coordinator said nothing about it"
		case code == kerr.UnknownMemberID.Code || code == kerr.IllegalGeneration.Code:
			r.Err = "the group has become active: a member joined"
		default:
			r.Err = short(brokerErr(key, code, nil))
		}
		if coordinatorMoved(code) {
			moved = code
		}
	}
	return moved
}

type offsetsChanger func(ctx context.Context, id cluster.BrokerID, group string, rows []*OffsetChange) (int16, error)

func (c *Client) changeOffsets(ctx context.Context, changes []OffsetChange, change offsetsChanger) []OffsetChange {
	ctx, cancel := c.within(ctx)
	defer cancel()
	out := slices.Clone(changes)
	slices.SortStableFunc(out, func(a, b OffsetChange) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	byGroup := map[string][]*OffsetChange{}
	for i := range out {
		byGroup[out[i].Group] = append(byGroup[out[i].Group], &out[i])
	}
	groups := slices.Sorted(maps.Keys(byGroup))
	errs := c.perCoordinator(ctx, forGroups, groups, func(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]int16, error) {
		codes := map[string]int16{}
		var first error
		for _, g := range keys {
			code, err := change(ctx, id, g, byGroup[g])
			if err != nil {
				first = cmp.Or(first, err)
				continue
			}
			codes[g] = code
		}
		return codes, first
	})
	for g, err := range errs {
		for _, r := range byGroup[g] {
			r.Err = short(err)
		}
	}
	return out
}

// DeleteGroups deletes groups with all their offsets: one request to each coordinator. The result holds the error
// of each group that was not deleted.
func (c *Client) DeleteGroups(ctx context.Context, groups []string) map[string]error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	refused := newAnswers[error]()
	errs := c.perCoordinator(ctx, forGroups, groups, func(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]int16, error) {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = keys
		resp, err := c.askBroker(ctx, id, req)
		if err != nil {
			return nil, err
		}
		codes := map[string]int16{}
		for _, g := range resp.(*kmsg.DeleteGroupsResponse).Groups {
			codes[g.Group] = g.ErrorCode
			refused.set(g.Group, brokerErr(kmsg.DeleteGroups, g.ErrorCode, g.ErrorMessage))
		}
		return codes, nil
	})
	for g, err := range refused.m {
		if err != nil && errs[g] == nil {
			errs[g] = wrap(err, "delete group %s", g)
		}
	}
	return errs
}
