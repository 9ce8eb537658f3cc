package groupshell

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/group"
	"kctl/zkutil/cluster"
)

// OffsetCommit answers OffsetCommit v0-9; it blocks until the offsets are committed to the log. Offsets of
// partitions that do not exist are refused one by one.
func (m *Manager) OffsetCommit(ctx context.Context, req *kmsg.OffsetCommitRequest) *kmsg.OffsetCommitResponse {
	resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
	e := group.CommitOffsets{
		Group: req.Group, MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		ProducerID: group.NoProducer, ProducerEpoch: -1,
	}
	now := m.now()
	type place struct{ topic, partition int }
	var places []place // of e.Offsets in the answer
	for i, t := range req.Topics {
		rt := kmsg.OffsetCommitResponseTopic{Topic: t.Topic}
		count, exists := m.opts.Metadata.PartitionCount(t.Topic)
		for j, p := range t.Partitions {
			rp := kmsg.OffsetCommitResponseTopicPartition{Partition: p.Partition}
			if !exists || p.Partition < 0 || p.Partition >= count {
				rp.ErrorCode = int16(group.UnknownTopicOrPartition)
			} else {
				places = append(places, place{i, j})
				e.Offsets = append(e.Offsets, committedOffset(t.Topic, p, now.UnixMilli(), req.RetentionTimeMillis))
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	if len(e.Offsets) == 0 {
		return resp
	}
	reply, code := m.do(ctx, req.Group, func(id group.RequestID) group.Event {
		e.Request, e.At = id, now
		return e
	})
	for i, at := range places {
		c := code
		if code == group.None {
			c = reply.(group.CommitReply).Codes[i]
		}
		if c == group.None {
			m.metrics.commits.Inc()
		}
		resp.Topics[at.topic].Partitions[at.partition].ErrorCode = int16(c)
	}
	return resp
}

// committedOffset reads one offset of a request. Version 1 may bring its own commit time, versions 2 to 4 a
// retention; all others leave both to the broker.
func committedOffset(topic string, p kmsg.OffsetCommitRequestTopicPartition, now, retention int64) group.PartitionOffset {
	o := group.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, CommitTimestamp: now, ExpireTimestamp: noTimestamp}
	if p.Metadata != nil {
		o.Metadata = *p.Metadata
	}
	if p.Timestamp >= 0 {
		o.CommitTimestamp = p.Timestamp
	}
	if retention >= 0 {
		o.ExpireTimestamp = now + retention
	}
	return group.PartitionOffset{TP: cluster.TopicPartition{Topic: topic, Partition: p.Partition}, Offset: o}
}

// OffsetFetch answers OffsetFetch v0-9, from v8 on for several groups.
func (m *Manager) OffsetFetch(_ context.Context, req *kmsg.OffsetFetchRequest) *kmsg.OffsetFetchResponse {
	resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
	if req.Version >= 8 {
		for _, g := range req.Groups {
			resp.Groups = append(resp.Groups, m.fetchGroup(g, req.RequireStable))
		}
		return resp
	}
	g := kmsg.OffsetFetchRequestGroup{Group: req.Group}
	if req.Topics != nil {
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
	}
	for _, t := range req.Topics {
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions})
	}
	answer := m.fetchGroup(g, req.RequireStable)
	resp.ErrorCode = answer.ErrorCode
	if answer.ErrorCode != 0 && req.Version < 2 {
		answer.Topics = failedTopics(g, answer.ErrorCode) // had no error code for the whole
	}
	for _, t := range answer.Topics {
		rt := kmsg.OffsetFetchResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func failedTopics(g kmsg.OffsetFetchRequestGroup, code int16) []kmsg.OffsetFetchResponseGroupTopic {
	var out []kmsg.OffsetFetchResponseGroupTopic
	for _, t := range g.Topics {
		rt := kmsg.OffsetFetchResponseGroupTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			rt.Partitions = append(rt.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
				Partition: p, Offset: -1, LeaderEpoch: -1, Metadata: new(string), ErrorCode: code,
			})
		}
		out = append(out, rt)
	}
	return out
}

// fetchGroup answers for one group; no topics (nil) means all that it has.
func (m *Manager) fetchGroup(g kmsg.OffsetFetchRequestGroup, requireStable bool) kmsg.OffsetFetchResponseGroup {
	resp := kmsg.OffsetFetchResponseGroup{Group: g.Group}
	var want []cluster.TopicPartition
	for _, t := range g.Topics {
		for _, p := range t.Partitions {
			want = append(want, cluster.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	var fetched []group.Fetched
	code := m.view(g.Group, func(s *group.Shard) {
		fetched = s.FetchOffsets(g.Group, want, g.Topics == nil, requireStable)
	})
	resp.ErrorCode = int16(code)
	for i, f := range fetched {
		if i == 0 || fetched[i-1].TP.Topic != f.TP.Topic {
			resp.Topics = append(resp.Topics, kmsg.OffsetFetchResponseGroupTopic{Topic: f.TP.Topic})
		}
		t := &resp.Topics[len(resp.Topics)-1]
		metadata := f.Metadata
		t.Partitions = append(t.Partitions, kmsg.OffsetFetchResponseGroupTopicPartition{
			Partition: f.TP.Partition, Offset: f.Offset.Offset, LeaderEpoch: f.LeaderEpoch, Metadata: &metadata, ErrorCode: int16(f.Code),
		})
	}
	return resp
}

// OffsetDelete answers OffsetDelete v0 (KIP-496).
func (m *Manager) OffsetDelete(ctx context.Context, req *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	resp := req.ResponseKind().(*kmsg.OffsetDeleteResponse)
	var tps []cluster.TopicPartition
	var unknown []bool
	for _, t := range req.Topics {
		count, exists := m.opts.Metadata.PartitionCount(t.Topic)
		for _, p := range t.Partitions {
			tps = append(tps, cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition})
			unknown = append(unknown, !exists || p.Partition < 0 || p.Partition >= count)
		}
	}
	if req.Group == "" {
		resp.ErrorCode = int16(group.InvalidGroupID)
		return resp
	}
	var known []cluster.TopicPartition
	for i, tp := range tps {
		if !unknown[i] {
			known = append(known, tp)
		}
	}
	reply, code := m.do(ctx, req.Group, func(id group.RequestID) group.Event {
		return group.DeleteOffsets{At: m.now(), Request: id, Group: req.Group, Partitions: known}
	})
	var codes []group.Code
	if code == group.None {
		r := reply.(group.DeleteOffsetsReply)
		code, codes = r.Code, r.Codes
	}
	if code != group.None {
		resp.ErrorCode = int16(code)
		return resp
	}
	next := 0
	for i, tp := range tps {
		if i == 0 || tps[i-1].Topic != tp.Topic {
			resp.Topics = append(resp.Topics, kmsg.OffsetDeleteResponseTopic{Topic: tp.Topic})
		}
		c := group.UnknownTopicOrPartition
		if !unknown[i] {
			c = codes[next]
			next++
		}
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteResponseTopicPartition{Partition: tp.Partition, ErrorCode: int16(c)})
	}
	return resp
}
