package admin

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// fetchChunk bounds the partitions of one Fetch request, lagTimesMax the replicas whose lag in time is
// looked up (each costs one batch of the leader's).
const (
	fetchChunk  = 1000
	lagTimesMax = 500
)

// ReplicaLag asks every replica of the targets (all partitions when empty) for its own log end offset,
// high watermark and leader epoch, on all brokers at once. A replica on a broker that does not answer is
// a row with its error. Rows are ordered by topic, partition, leader first, then assignment order.
func (c *Client) ReplicaLag(ctx context.Context, targets []plan.Target) ([]model.ReplicaPosition, []model.Problem, error) {
	if err := c.notOffline(); err != nil {
		return nil, nil, err
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(targets)})
	if err != nil {
		return nil, nil, err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, err
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	rows := replicaRows(s, targets)
	problems := append(s.Problems, c.askPositions(ctx, s, rows)...)
	problems = append(problems, refusedTopics(rows)...)
	derivelag(rows)
	c.lagTimes(ctx, rows)
	return rows, problems, nil
}

func topicsOf(targets []plan.Target) []string {
	if len(targets) == 0 {
		return nil
	}
	out := make([]string, len(targets))
	for i, t := range targets {
		out[i] = t.Topic
	}
	return out
}

// missingPartitions refuses partition numbers that a topic does not have.
func missingPartitions(s *model.Snapshot, targets []plan.Target) error {
	at := make(map[string]*model.Topic, len(s.Topics))
	for i := range s.Topics {
		at[s.Topics[i].Name] = &s.Topics[i]
	}
	for _, t := range targets {
		topic := at[t.Topic]
		if topic == nil || len(t.Partitions) == 0 {
			continue
		}
		have := make(map[int32]bool, len(topic.Partitions))
		for i := range topic.Partitions {
			have[topic.Partitions[i].Partition] = true
		}
		for _, n := range t.Partitions {
			if !have[n] {
				e := badInput("topic %s has no partition %d: it has %d", t.Topic, n, len(topic.Partitions))
				e.Kind = NotFound
				return e
			}
		}
	}
	return nil
}

// replicaRows makes one row per replica, leader first, nothing known yet.
func replicaRows(s *model.Snapshot, targets []plan.Target) []model.ReplicaPosition {
	var rows []model.ReplicaPosition
	if len(targets) == 0 {
		rows = make([]model.ReplicaPosition, 0, replicasOf(s))
	}
	match := plan.Matcher(targets)
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			if !match(p.Topic, p.Partition) {
				continue
			}
			first := len(rows)
			for _, r := range p.Replicas {
				rows = append(rows, model.ReplicaPosition{
					Topic: p.Topic, Partition: p.Partition, Broker: r, Leader: r == p.Leader, InSync: p.InSync(r),
					LogStartOffset: -1, HighWatermark: -1, LogEndOffset: -1, LagRecords: -1, LagMs: -1,
					LeaderEpoch: cluster.NoLeaderEpoch,
				})
			}
			slices.SortStableFunc(rows[first:], func(a, b model.ReplicaPosition) int {
				return cmp.Compare(boolInt(!a.Leader), boolInt(!b.Leader))
			})
		}
	}
	return rows
}

// replicasOf counts the replicas of a snapshot.
func replicasOf(s *model.Snapshot) (n int) {
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			n += len(s.Topics[i].Partitions[j].Replicas)
		}
	}
	return n
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

const notRegistered = "broker is not registered"

// askPositions fills the rows of every broker and returns one problem for each that does not answer.
func (c *Client) askPositions(ctx context.Context, s *model.Snapshot, rows []model.ReplicaPosition) []model.Problem {
	byBroker := map[cluster.BrokerID][]*model.ReplicaPosition{}
	for i := range rows {
		byBroker[rows[i].Broker] = append(byBroker[rows[i].Broker], &rows[i])
	}
	var ids, dead []cluster.BrokerID
	live := check.Live(s)
	for id, rs := range byBroker {
		if live[id] {
			ids = append(ids, id)
			continue
		}
		dead = append(dead, id)
		for _, r := range rs {
			r.Err = notRegistered
		}
	}
	slices.Sort(ids)
	slices.Sort(dead)
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		return c.askPosition(ctx, id, byBroker[id])
	})
	var problems []model.Problem
	for _, id := range dead {
		problems = append(problems, model.Problem{Object: brokerName(id), Message: notRegistered})
	}
	for _, id := range ids {
		if errs[id] == nil {
			continue
		}
		for _, r := range byBroker[id] {
			r.Err = short(errs[id])
		}
		problems = append(problems, model.Problem{Object: brokerName(id), Message: short(errs[id])})
	}
	return problems
}

// askPosition asks one broker about its own replicas: ListOffsets as a debugger gives log end and epoch,
// Fetch at that offset gives high watermark and log start, from followers too (KIP-392, Fetch v11).
func (c *Client) askPosition(ctx context.Context, id cluster.BrokerID, rows []*model.ReplicaPosition) error {
	parts := make([]*model.Partition, len(rows))
	for i, r := range rows {
		parts[i] = &model.Partition{Topic: r.Topic, Partition: r.Partition}
	}
	ends, err := c.listOffsets(ctx, id, asDebugger, parts, anyEpoch)
	if err != nil {
		return err
	}
	var ok, untold []*model.ReplicaPosition
	for _, r := range rows {
		a, found := ends[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}]
		switch {
		case !found:
			r.Err = "the broker did not answer for this partition"
		case a.code != 0:
			r.Err = short(brokerErr(kmsg.ListOffsets, a.code, nil))
			untold = append(untold, r)
		default:
			r.LogEndOffset, r.LeaderEpoch = a.offset, a.epoch
			ok = append(ok, r)
		}
	}
	if len(untold) > 0 {
		c.lagFromLogDirs(ctx, id, untold)
	}
	for chunk := range slices.Chunk(ok, fetchChunk) {
		if err := c.fetchWatermarks(ctx, id, chunk); err != nil {
			return err
		}
	}
	return nil
}

// refusedTopics are topics of which an authorizer has kept something back from the rows: one problem each.
func refusedTopics(positions []model.ReplicaPosition) []model.Problem {
	var out []model.Problem
	said := map[string]bool{}
	for i := range positions {
		if p := &positions[i]; !said[p.Topic] && refusedText.MatchString(p.Err) {
			said[p.Topic] = true
			out = append(out, model.Problem{Object: "topic " + p.Topic, Message: p.Err})
		}
	}
	return out
}

func (c *Client) fetchWatermarks(ctx context.Context, id cluster.BrokerID, rows []*model.ReplicaPosition) error {
	req := newPeek()
	byTP := make(map[cluster.TopicPartition]*model.ReplicaPosition, len(rows))
	for _, r := range rows {
		addPeek(req, r.Topic, r.Partition, r.LogEndOffset)
		byTP[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}] = r
	}
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			r := byTP[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}]
			if r == nil {
				continue
			}
			if err := brokerErr(kmsg.Fetch, p.ErrorCode, nil); err != nil {
				r.Err = short(err)
				continue
			}
			r.HighWatermark, r.LogStartOffset = p.HighWatermark, p.LogStartOffset
		}
	}
	return nil
}

// newPeek is a Fetch that returns at once, without a session and with at most one batch.
func newPeek() *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes = -1, 0, 0, 1
	req.SessionID, req.SessionEpoch = 0, -1
	return req
}

func addPeek(req *kmsg.FetchRequest, topic string, partition int32, offset int64) {
	if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != topic {
		t := kmsg.NewFetchRequestTopic()
		t.Topic = topic
		req.Topics = append(req.Topics, t)
	}
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1
	t := &req.Topics[len(req.Topics)-1]
	t.Partitions = append(t.Partitions, p)
}

// derivelag compares every follower with its leader. The two were asked at nearly the same time, so a
// follower can seem ahead by what arrived in between: that is no lag.
func derivelag(rows []model.ReplicaPosition) {
	for first := 0; first < len(rows); {
		next := first
		for next < len(rows) && rows[next].Topic == rows[first].Topic && rows[next].Partition == rows[first].Partition {
			next++
		}
		leader := rows[first] // rows are sorted leader first
		for i := first; i < next; i++ {
			r := &rows[i]
			if !leader.Leader || leader.LogEndOffset < 0 || r.LogEndOffset < 0 {
				continue
			}
			r.LagRecords = max(0, leader.LogEndOffset-r.LogEndOffset)
			if r.LagRecords == 0 {
				r.LagMs = 0
			}
		}
		first = next
	}
}

// lagTimes looks up how old the first record is that a lagging follower lacks, at the leader. Records above
// the leader's high watermark cannot be read, so an in-sync follower's lag may have no time.
func (c *Client) lagTimes(ctx context.Context, rows []model.ReplicaPosition) {
	now := time.Now()
	jobs := map[cluster.BrokerID][]*model.ReplicaPosition{}
	var leader *model.ReplicaPosition
	n := 0
	for i := range rows {
		r := &rows[i]
		if r.Leader {
			leader = r
		}
		if r.LagRecords > 0 && leader != nil && leader.Topic == r.Topic && leader.Partition == r.Partition &&
			r.LogEndOffset >= 0 && r.LogEndOffset < leader.HighWatermark && n < lagTimesMax {
			jobs[leader.Broker] = append(jobs[leader.Broker], r)
			n++
		}
	}
	var wg sync.WaitGroup
	for id, rs := range jobs {
		wg.Go(func() {
			for _, r := range rs {
				if at, ok := c.firstTimestamp(ctx, id, r.Topic, r.Partition, r.LogEndOffset); ok {
					r.LagMs = max(0, now.Sub(at).Milliseconds())
				}
			}
		})
	}
	wg.Wait()
}

// firstTimestamp reads the base timestamp of the batch that holds an offset, from the leader.
func (c *Client) firstTimestamp(ctx context.Context, id cluster.BrokerID, topic string, partition int32, offset int64) (time.Time, bool) {
	req := newPeek()
	addPeek(req, topic, partition, offset)
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return time.Time{}, false
	}
	for _, t := range resp.(*kmsg.FetchResponse).Topics {
		for _, p := range t.Partitions {
			// Batch header v2: the magic byte is at 16, the base timestamp at 27.
			if b := p.RecordBatches; p.ErrorCode == 0 && len(b) >= 61 && b[16] == 2 {
				ms := int64(binary.BigEndian.Uint64(b[27:]))
				return time.UnixMilli(ms), ms > 0
			}
		}
	}
	return time.Time{}, false
}
