package admin

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// span is what is read of one partition: from start up to, not including, end; end -1 is no bound.
type span struct{ start, end int64 }

// spans resolves where each partition is read from and to: two requests to each leader, and one more for each time.
func (c *Client) spans(ctx context.Context, o ConsumeOptions) (map[int32]span, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	l, err := c.leadersOf(ctx, []string{o.Topic})
	if err != nil {
		return nil, err
	}
	parts := o.Partitions
	if len(parts) == 0 {
		parts = l.all[o.Topic]
	}
	tps := make([]cluster.TopicPartition, len(parts))
	for i, p := range parts {
		tps[i] = cluster.TopicPartition{Topic: o.Topic, Partition: p}
	}
	starts, ends := c.bothEnds(ctx, l, tps)
	from, to := c.atTimes(ctx, l, tps, o.From), c.atTimes(ctx, l, tps, o.To)
	out := map[int32]span{}
	for _, tp := range tps {
		if e := firstText(starts[tp].err, ends[tp].err, from[tp].err, to[tp].err); e != "" {
			return nil, wrap(errors.New(e), "%s", tp)
		}
		s := span{start: ends[tp].offset, end: -1}
		switch {
		case o.From != nil:
			s.start = o.From.Resolve(starts[tp].offset, ends[tp].offset, from[tp].offset)
		case o.FromBeginning:
			s.start = starts[tp].offset
		}
		if o.To != nil {
			s.end = o.To.Resolve(starts[tp].offset, ends[tp].offset, to[tp].offset)
		}
		if s.end < 0 || s.start < s.end {
			out[tp.Partition] = s
		}
	}
	return out, nil
}

func (c *Client) atTimes(ctx context.Context, l *leaders, tps []cluster.TopicPartition, s *plan.OffsetSpec) map[cluster.TopicPartition]logOffset {
	if s == nil || s.Base != plan.AtTime {
		return nil
	}
	at := make(map[cluster.TopicPartition]int64, len(tps))
	for _, tp := range tps {
		at[tp] = s.At.UnixMilli()
	}
	return c.offsetsAt(ctx, l, at)
}

// remaining tracks which partitions have not reached their end yet.
type remaining map[int32]int64

func remainingOf(spans map[int32]span) remaining {
	out := remaining{}
	for p, s := range spans {
		if s.end >= 0 {
			out[p] = s.end
		}
	}
	return out
}

// takes reports whether a record lies before its partition's end, and notes when it is the last one that does. Control
// records are never taken, but they count: a transaction's marker is often the last of a log.
func (r remaining) takes(rec *kgo.Record) bool {
	if end, ok := r[rec.Partition]; ok && rec.Offset >= end-1 {
		delete(r, rec.Partition)
		return rec.Offset < end && !rec.Attrs.IsControl()
	} else if !ok {
		return false
	}
	return !rec.Attrs.IsControl()
}
