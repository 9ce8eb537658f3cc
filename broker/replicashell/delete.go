package replicashell

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/broker/replicashell/session"
	"kctl/zkutil/cluster"
)

// DeleteRecords moves the log start of led partitions up and answers with the low watermark, once every living
// replica has followed or the request's timeout is over (KIP-107). Segments go with the next housekeeping.
func (m *Manager) DeleteRecords(ctx context.Context, req *kmsg.DeleteRecordsRequest) *kmsg.DeleteRecordsResponse {
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	deadline := time.Now().Add(time.Duration(max(0, req.TimeoutMillis)) * time.Millisecond)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	below := map[cluster.TopicPartition]int64{}
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewDeleteRecordsResponseTopic()
		rt.Topic = t.Topic
		for _, q := range t.Partitions {
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: q.Partition}
			r := kmsg.NewDeleteRecordsResponseTopicPartition()
			r.Partition, r.LowWatermark = q.Partition, -1
			below[tp], r.ErrorCode = m.deleteBelow(tp, q.Offset)
			rt.Partitions = append(rt.Partitions, r)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			r := &resp.Topics[i].Partitions[j]
			tp := cluster.TopicPartition{Topic: resp.Topics[i].Topic, Partition: r.Partition}
			if r.ErrorCode == 0 {
				r.LowWatermark, r.ErrorCode = m.awaitLowWatermark(ctx, tp, below[tp])
			}
		}
	}
	return resp
}

func (m *Manager) deleteBelow(tp cluster.TopicPartition, offset int64) (int64, int16) {
	p := m.partition(tp)
	if p == nil {
		return -1, kerr.UnknownTopicOrPartition.Code
	}
	var a after
	p.mu.Lock()
	defer func() { p.mu.Unlock(); a.run() }()
	p.syncLogStart(m.opts.Now(), &a)
	below, code := p.core.CheckDelete(offset)
	if code != replica.CodeNone {
		return -1, int16(code)
	}
	if err := p.log.AdvanceLogStart(below); err != nil {
		p.logError("records could not be deleted", err, &a)
		var r ProduceResult
		r.fail(err)
		return -1, r.Err
	}
	p.syncLogStart(m.opts.Now(), &a)
	return below, 0
}

// awaitLowWatermark waits for the followers; their parked fetches are answered so that they learn of it now.
func (m *Manager) awaitLowWatermark(ctx context.Context, tp cluster.TopicPartition, below int64) (int64, int16) {
	p := m.partition(tp)
	if p == nil {
		return -1, kerr.UnknownTopicOrPartition.Code
	}
	for {
		p.mu.Lock()
		low, changed := p.core.LowWatermark(), p.fetched
		if changed == nil {
			changed = make(chan struct{})
			p.fetched = changed
		}
		leads := p.core.Role() == replica.Leader
		var parked []*session.Session
		for _, e := range p.waiters {
			if e.Session.Replica >= 0 {
				e.Session.Mark(e, false)
				parked = append(parked, e.Session)
			}
		}
		p.mu.Unlock()
		switch {
		case !leads:
			return -1, kerr.NotLeaderForPartition.Code
		case low >= below:
			return low, 0
		}
		for _, s := range parked {
			s.Nudge()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return -1, kerr.RequestTimedOut.Code
		}
	}
}

// followerMoved lets DeleteRecords look again. p.mu is held.
func (p *partition) followerMoved() {
	if p.fetched != nil {
		close(p.fetched)
		p.fetched = nil
	}
}
