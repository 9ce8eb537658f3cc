package admin

import (
	"context"
	"maps"
	"slices"
	"time"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// ResetOptions says which offsets of which groups are to be chosen anew, and how.
type ResetOptions struct {
	Groups  []string
	Targets []plan.Target // none: every partition that the group has an offset of, or that the file names
	Reset   plan.Reset
	At      time.Time        // for the strategies that need a time
	File    []plan.OffsetRow // for FromFile; rows without a group count for every group
}

// ResetPlan is what a reset does, before it is carried out.
type ResetPlan struct {
	ClusterID string
	Groups    []model.Group // in the order asked for, with their members
	Moves     []plan.OffsetMove
	Committed map[string][]model.CommittedOffset // what the groups have now
}

// PlanReset reads what is needed and chooses the new offsets. Named topics and partitions that do not exist are an
// error. Nothing is changed.
func (c *Client) PlanReset(ctx context.Context, o ResetOptions) (*ResetPlan, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if len(o.Targets) > 0 {
		s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(o.Targets), NoZooKeeper: true, Source: model.SourceProtocol})
		if err != nil {
			return nil, err
		}
		if err := missingPartitions(s, o.Targets); err != nil {
			return nil, err
		}
	}
	p := &ResetPlan{}
	var err error
	if p.Groups, err = c.DescribeGroups(ctx, o.Groups); err != nil {
		return nil, err
	}
	var errs map[string]error
	p.Committed, errs = c.CommittedOffsets(ctx, o.Groups)
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Err != "" {
			e := &Error{Kind: Failed, Msg: "group " + g.ID + ": " + g.Err}
			if hint, denied := Denied([]model.Problem{{Object: "group " + g.ID, Message: g.Err}}); denied {
				e.Kind, e.Hint = Unauthorized, hint
			}
			return nil, e
		}
		if err := errs[g.ID]; err != nil && g.State != model.GroupDead {
			return nil, err
		}
	}
	inputs, err := c.resetInputs(ctx, o, p.Committed)
	if err != nil {
		return nil, err
	}
	p.Moves, p.ClusterID = plan.ResetOffsets(o.Reset, inputs), c.ClusterID()
	return p, nil
}

// resetInputs collects committed offsets, the file's, and what the leaders say of the logs.
func (c *Client) resetInputs(ctx context.Context, o ResetOptions, committed map[string][]model.CommittedOffset) ([]plan.ResetInput, error) {
	topics := map[string]bool{}
	for _, t := range o.Targets {
		topics[t.Topic] = true
	}
	for _, offs := range committed {
		for _, off := range offs {
			topics[off.Topic] = true
		}
	}
	for _, r := range o.File {
		topics[r.Topic] = true
	}
	l, err := c.leadersOf(ctx, slices.Sorted(maps.Keys(topics)))
	if err != nil {
		return nil, err
	}
	var in []plan.ResetInput
	for _, g := range o.Groups {
		in = append(in, groupInputs(o, g, committed[g], l.all)...)
	}
	want := map[cluster.TopicPartition]int64{}
	for i := range in {
		want[cluster.TopicPartition{Topic: in[i].Topic, Partition: in[i].Partition}] = o.At.UnixMilli()
	}
	starts, ends := c.bothEnds(ctx, l, slices.Collect(maps.Keys(want)))
	var times map[cluster.TopicPartition]logOffset
	if o.Reset.Strategy.NeedsTime() {
		times = c.offsetsAt(ctx, l, want)
	}
	for i := range in {
		tp := cluster.TopicPartition{Topic: in[i].Topic, Partition: in[i].Partition}
		in[i].Start, in[i].End, in[i].AtTime = starts[tp].offset, ends[tp].offset, -1
		in[i].Err = firstText(starts[tp].err, ends[tp].err)
		if at, ok := times[tp]; ok {
			in[i].AtTime, in[i].Err = at.offset, firstText(in[i].Err, at.err)
		}
	}
	return in, nil
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// groupInputs are the partitions of one group that the reset concerns.
func groupInputs(o ResetOptions, group string, committed []model.CommittedOffset, all map[string][]int32) []plan.ResetInput {
	file := map[cluster.TopicPartition]int64{}
	for _, r := range o.File {
		if r.Group == "" || r.Group == group {
			file[cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}] = r.Offset
		}
	}
	has := map[cluster.TopicPartition]int64{}
	for _, off := range committed {
		has[off.TP()] = off.Offset
	}
	known := has
	if o.Reset.Strategy == plan.FromFile {
		known = file
	}
	var out []plan.ResetInput
	for _, tp := range plan.GroupPartitions(o.Targets, all, slices.Collect(maps.Keys(known))) {
		in := plan.ResetInput{Group: group, Topic: tp.Topic, Partition: tp.Partition, Committed: -1, File: -1}
		if off, ok := has[tp]; ok {
			in.Committed = off
		}
		if off, ok := file[tp]; ok {
			in.File = off
		}
		out = append(out, in)
	}
	return out
}
