package replicashell

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/zkutil/cluster"
)

// askLeader asks for the partitions whose fetch offset the leader called out of range.
func (s *stream) askLeader(ctx context.Context) error {
	for _, f := range s.asking() {
		ev, err := s.ask(ctx, f)
		if err != nil {
			return err
		}
		s.mu.Lock()
		f.ask = nil
		s.mu.Unlock()
		p := f.p
		var a after
		p.mu.Lock()
		if p.follow == f && p.log != nil {
			ev.LocalEnd = logexec.EpochEnd(p.log, ev.EpochEnd.Epoch)
			p.step(ev, &a)
		}
		p.mu.Unlock()
		a.run()
		s.update(f, func() {})
	}
	return nil
}

func (s *stream) asking() []*follow {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*follow
	for _, f := range s.changed {
		if f.ask != nil && !f.removed {
			out = append(out, f)
		}
	}
	return out
}

func (s *stream) ask(ctx context.Context, f *follow) (replica.LeaderAsked, error) {
	ev := replica.LeaderAsked{At: s.m.opts.Now(), LeaderEpoch: f.epoch, EpochEnd: replica.UndefinedEpochEnd}
	var err error
	if ev.LogStart, ev.Code, err = s.listOffset(ctx, f, earliestTimestamp); err != nil || ev.Code != replica.CodeNone {
		return ev, err
	}
	if ev.LogEnd, ev.Code, err = s.listOffset(ctx, f, latestTimestamp); err != nil || ev.Code != replica.CodeNone {
		return ev, err
	}
	if f.ask.LastEpoch < 0 {
		return ev, nil
	}
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.Version, req.ReplicaID = 4, int32(s.m.opts.BrokerID)
	t := kmsg.NewOffsetForLeaderEpochRequestTopic()
	t.Topic = f.tp.Topic
	q := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	q.Partition, q.CurrentLeaderEpoch, q.LeaderEpoch = f.tp.Partition, int32(f.epoch), int32(f.ask.LastEpoch)
	t.Partitions = append(t.Partitions, q)
	req.Topics = append(req.Topics, t)
	kresp, err := s.conn.Do(ctx, req)
	if err != nil {
		return ev, err
	}
	resp, ok := kresp.(*kmsg.OffsetForLeaderEpochResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return ev, fmt.Errorf("answer to OffsetForLeaderEpoch for %s does not fit the question", f.tp)
	}
	r := resp.Topics[0].Partitions[0]
	ev.Code = replica.Code(r.ErrorCode)
	ev.EpochEnd = replica.EpochEnd{Epoch: cluster.LeaderEpoch(r.LeaderEpoch), Offset: r.EndOffset}
	return ev, nil
}

func (s *stream) listOffset(ctx context.Context, f *follow, timestamp int64) (int64, replica.Code, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = 7, int32(s.m.opts.BrokerID)
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = f.tp.Topic
	q := kmsg.NewListOffsetsRequestTopicPartition()
	q.Partition, q.CurrentLeaderEpoch, q.Timestamp = f.tp.Partition, int32(f.epoch), timestamp
	t.Partitions = append(t.Partitions, q)
	req.Topics = append(req.Topics, t)
	kresp, err := s.conn.Do(ctx, req)
	if err != nil {
		return 0, 0, err
	}
	resp, ok := kresp.(*kmsg.ListOffsetsResponse)
	if !ok || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return 0, 0, fmt.Errorf("answer to ListOffsets for %s does not fit the question", f.tp)
	}
	r := resp.Topics[0].Partitions[0]
	return r.Offset, replica.Code(r.ErrorCode), nil
}
