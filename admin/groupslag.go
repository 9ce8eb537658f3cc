package admin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// timeLookups bounds the lookups under way at one broker.
const timeLookups = 16

// GroupLagOptions says whose lag is read.
type GroupLagOptions struct {
	Groups []string // nil: every group that commits offsets
	Time   bool     // look up how old the first unread record is: one batch is read per lagging partition
}

// GroupLag describes groups and says how far each is in every partition that it committed an offset of or is reading:
// one request to each coordinator and two to each leader, whatever the number of groups. A group that does not exist
// has the state Dead; one that could not be read has Err. Rows are sorted by group, topic and partition. Share groups
// commit no offsets: they are left out when all groups are asked for.
func (c *Client) GroupLag(ctx context.Context, o GroupLagOptions) ([]model.Group, []model.GroupPosition, []model.Problem, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	ids, problems := o.Groups, []model.Problem(nil)
	if ids == nil {
		listed, ps, err := c.Groups(ctx, GroupFilter{})
		if err != nil {
			return nil, nil, nil, err
		}
		problems = ps
		for i := range listed {
			if listed[i].Type != model.GroupShare {
				ids = append(ids, listed[i].ID)
			}
		}
	}
	var groups []model.Group
	var offsets map[string][]model.CommittedOffset
	var errs map[string]error
	var g errgroup.Group
	g.Go(func() (err error) { groups, err = c.DescribeGroups(ctx, ids); return err })
	g.Go(func() error { offsets, errs = c.CommittedOffsets(ctx, ids); return nil })
	if err := g.Wait(); err != nil {
		return nil, nil, nil, err
	}
	for i := range groups {
		if err := errs[groups[i].ID]; err != nil && groups[i].Err == "" && groups[i].State != model.GroupDead && groups[i].Type != model.GroupShare {
			groups[i].Err = short(err)
		}
	}
	rows := groupRows(groups, offsets)
	if err := c.fillEnds(ctx, rows, o.Time); err != nil {
		return nil, nil, nil, err
	}
	return groups, rows, problems, nil
}

// groupRows makes a row of each partition that a group committed an offset of or that a member reads.
func groupRows(groups []model.Group, offsets map[string][]model.CommittedOffset) []model.GroupPosition {
	var out []model.GroupPosition
	for i := range groups {
		g := &groups[i]
		if g.Err != "" {
			continue
		}
		by := map[cluster.TopicPartition]*model.GroupPosition{}
		row := func(tp cluster.TopicPartition) *model.GroupPosition {
			if by[tp] == nil {
				by[tp] = &model.GroupPosition{Group: g.ID, Topic: tp.Topic, Partition: tp.Partition, Committed: -1, LogStart: -1, LogEnd: -1, Lag: -1, LagMs: -1}
			}
			return by[tp]
		}
		for _, o := range offsets[g.ID] {
			row(o.TP()).Committed = o.Offset
		}
		for _, m := range g.Members {
			for _, tp := range m.Assigned {
				row(tp).Member = m
			}
		}
		for _, tp := range slices.SortedFunc(maps.Keys(by), comparePartitions) {
			out = append(out, *by[tp])
		}
	}
	return out
}

// fillEnds asks the leaders for the ends of the logs and derives the lag.
func (c *Client) fillEnds(ctx context.Context, rows []model.GroupPosition, withTime bool) error {
	topics, parts := map[string]bool{}, map[cluster.TopicPartition]bool{}
	for i := range rows {
		topics[rows[i].Topic] = true
		parts[cluster.TopicPartition{Topic: rows[i].Topic, Partition: rows[i].Partition}] = true
	}
	l, err := c.leadersOf(ctx, slices.Sorted(maps.Keys(topics)))
	if err != nil {
		return err
	}
	starts, ends := c.bothEnds(ctx, l, slices.Collect(maps.Keys(parts)))
	for i := range rows {
		r := &rows[i]
		tp := cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}
		end := ends[tp]
		if end.err != "" {
			r.Err = end.err
			continue
		}
		r.LogEnd, r.LogStart = end.offset, starts[tp].offset
		if r.Committed >= 0 {
			if r.Lag = max(0, r.LogEnd-r.Committed); r.Lag == 0 {
				r.LagMs = 0
			}
		}
	}
	if withTime {
		c.groupLagTimes(ctx, l, rows)
	}
	return nil
}

// groupLagTimes looks up the timestamp of the first record that each lagging group has not read. Records that retention
// took away are past reading: the log's first one counts then.
func (c *Client) groupLagTimes(ctx context.Context, l *leaders, rows []model.GroupPosition) {
	now := time.Now()
	slots := map[cluster.BrokerID]chan struct{}{}
	var wg sync.WaitGroup
	for i := range rows {
		r := &rows[i]
		if r.Lag <= 0 {
			continue
		}
		id := l.by[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}]
		if slots[id] == nil {
			slots[id] = make(chan struct{}, timeLookups)
		}
		slot := slots[id]
		wg.Go(func() {
			slot <- struct{}{}
			defer func() { <-slot }()
			if at, ok := c.firstTimestamp(ctx, id, r.Topic, r.Partition, max(r.Committed, r.LogStart)); ok {
				r.LagMs = max(0, now.Sub(at).Milliseconds())
			}
		})
	}
	wg.Wait()
}
