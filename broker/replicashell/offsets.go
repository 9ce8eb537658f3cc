package replicashell

import (
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replica"
	"kctl/broker/replica/logexec"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// Special timestamps of ListOffsets.
const (
	latestTimestamp        int64 = -1
	earliestTimestamp      int64 = -2
	maxTimestamp           int64 = -3 // KIP-734, v7+
	earliestLocalTimestamp int64 = -4 // v8+; without tiered storage the same as earliest
	latestTieredTimestamp  int64 = -5 // v9+; without tiered storage there is none
)

// ListOffsets answers a ListOffsets request of a consumer (replica id -1), a tool (-2, any replica answers with
// its own log end and epoch) or a follower.
func (m *Manager) ListOffsets(ctx context.Context, req *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for j := range t.Partitions {
			rt.Partitions = append(rt.Partitions, m.listOffset(req, t.Topic, &t.Partitions[j]))
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (m *Manager) listOffset(req *kmsg.ListOffsetsRequest, topic string, q *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	r := kmsg.NewListOffsetsResponseTopicPartition()
	r.Partition, r.Timestamp, r.Offset, r.LeaderEpoch = q.Partition, -1, -1, -1
	p := m.partition(cluster.TopicPartition{Topic: topic, Partition: q.Partition})
	if p == nil {
		r.ErrorCode = kerr.UnknownTopicOrPartition.Code
		return r
	}
	current := cluster.NoLeaderEpoch
	if req.Version >= 4 {
		current = cluster.LeaderEpoch(q.CurrentLeaderEpoch)
	}
	v, log := p.checkListOffsets(replica.ListQuery{Replica: cluster.BrokerID(req.ReplicaID), CurrentEpoch: current,
		Earliest:              q.Timestamp == earliestTimestamp || q.Timestamp == earliestLocalTimestamp,
		HasOffsetNotAvailable: req.Version >= 5}, req.IsolationLevel == 1)
	if v.Code != replica.CodeNone {
		r.ErrorCode = int16(v.Code)
		return r
	}
	found, err := lookUpOffset(log, v, q.Timestamp, req.Version)
	if err != nil {
		r.ErrorCode = kerr.UnknownServerError.Code
		var ke *kerr.Error
		if errors.As(err, &ke) {
			r.ErrorCode = ke.Code
		}
		return r
	}
	if req.Version == 0 {
		r.OldStyleOffsets = oldStyle(found.Offset, q.MaxNumOffsets)
		return r
	}
	r.Timestamp, r.Offset, r.LeaderEpoch = found.Timestamp, found.Offset, int32(found.Epoch)
	return r
}

func oldStyle(offset int64, most int32) []int64 {
	if offset < 0 || most <= 0 {
		return []int64{}
	}
	return []int64{offset}
}

func (p *partition) checkListOffsets(q replica.ListQuery, readCommitted bool) (replica.ListVerdict, *storage.Log) {
	var a after
	p.mu.Lock()
	defer func() { p.mu.Unlock(); a.run() }()
	p.syncLogStart(p.m.opts.Now(), &a)
	v := p.core.CheckListOffsets(q)
	if v.Code == replica.CodeNone && readCommitted && q.Replica == replica.Consumer {
		v.Bound = min(v.Bound, p.log.LastStableOffset())
	}
	return v, p.log
}

func lookUpOffset(log *storage.Log, v replica.ListVerdict, timestamp int64, version int16) (storage.TimestampOffset, error) {
	none := storage.TimestampOffset{Timestamp: -1, Offset: -1, Epoch: cluster.NoLeaderEpoch}
	switch {
	case timestamp == latestTimestamp:
		return storage.TimestampOffset{Timestamp: -1, Offset: v.Bound, Epoch: v.LeaderEpoch}, nil
	case timestamp == earliestTimestamp, timestamp == earliestLocalTimestamp && version >= 8:
		epoch, ok := log.EpochForOffset(v.LogStart)
		if !ok {
			epoch = cluster.NoLeaderEpoch
		}
		return storage.TimestampOffset{Timestamp: -1, Offset: v.LogStart, Epoch: epoch}, nil
	case timestamp == maxTimestamp && version >= 7:
		found, ok, err := log.MaxTimestampOffset()
		if err != nil || !ok || found.Offset >= v.Bound {
			return none, err
		}
		return found, nil
	case timestamp == latestTieredTimestamp && version >= 9:
		return none, nil
	case timestamp < 0:
		return none, kerr.UnsupportedVersion
	}
	found, ok, err := log.OffsetForTimestamp(timestamp, v.Bound)
	if err != nil || !ok {
		return none, err
	}
	return found, nil
}

// OffsetForLeaderEpoch answers where leader epochs end in this leader's log (KIP-101, KIP-279).
func (m *Manager) OffsetForLeaderEpoch(ctx context.Context, req *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for i := range req.Topics {
		t := &req.Topics[i]
		rt := kmsg.NewOffsetForLeaderEpochResponseTopic()
		rt.Topic = t.Topic
		for j := range t.Partitions {
			rt.Partitions = append(rt.Partitions, m.epochEnd(req.Version, t.Topic, &t.Partitions[j]))
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (m *Manager) epochEnd(version int16, topic string, q *kmsg.OffsetForLeaderEpochRequestTopicPartition) kmsg.OffsetForLeaderEpochResponseTopicPartition {
	r := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
	r.Partition, r.LeaderEpoch, r.EndOffset = q.Partition, -1, -1
	p := m.partition(cluster.TopicPartition{Topic: topic, Partition: q.Partition})
	if p == nil {
		r.ErrorCode = kerr.UnknownTopicOrPartition.Code
		return r
	}
	current := cluster.NoLeaderEpoch
	if version >= 2 {
		current = cluster.LeaderEpoch(q.CurrentLeaderEpoch)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if code := p.core.CheckEpoch(current); code != replica.CodeNone {
		r.ErrorCode = int16(code)
		return r
	}
	end := logexec.EpochEnd(p.log, cluster.LeaderEpoch(q.LeaderEpoch))
	r.LeaderEpoch, r.EndOffset = int32(end.Epoch), end.Offset
	return r
}

// DescribeLogDirs answers with the size of each replica in each directory. OffsetLag is 0 as in Apache Kafka
// for replicas that are not being moved between directories, unless the log ends below the high watermark; of a
// future log it is what it lacks of the current one.
func (m *Manager) DescribeLogDirs(ctx context.Context, req *kmsg.DescribeLogDirsRequest) *kmsg.DescribeLogDirsResponse {
	resp := req.ResponseKind().(*kmsg.DescribeLogDirsResponse)
	wanted := map[cluster.TopicPartition]bool{}
	for _, t := range req.Topics {
		for _, n := range t.Partitions {
			wanted[cluster.TopicPartition{Topic: t.Topic, Partition: n}] = true
		}
	}
	byDir := map[string][]*storage.Log{}
	for _, l := range m.storage.Logs() {
		if req.Topics == nil || wanted[l.TopicPartition()] {
			byDir[l.Dir()] = append(byDir[l.Dir()], l)
		}
	}
	for _, l := range m.storage.Futures() {
		if req.Topics == nil || wanted[l.TopicPartition()] {
			byDir[l.Dir()] = append(byDir[l.Dir()], l)
		}
	}
	for _, d := range m.storage.Dirs() {
		rd := kmsg.NewDescribeLogDirsResponseDir()
		rd.Dir, rd.TotalBytes, rd.UsableBytes = d.Path, d.Total, d.Free
		if !d.Online() {
			rd.ErrorCode = kerr.KafkaStorageError.Code
		} else {
			rd.Topics = m.describeLogs(byDir[d.Path])
		}
		resp.Dirs = append(resp.Dirs, rd)
	}
	return resp
}

func (m *Manager) describeLogs(logs []*storage.Log) []kmsg.DescribeLogDirsResponseDirTopic {
	slices.SortFunc(logs, func(a, b *storage.Log) int { return a.TopicPartition().Compare(b.TopicPartition()) })
	var out []kmsg.DescribeLogDirsResponseDirTopic
	for _, l := range logs {
		tp := l.TopicPartition()
		if len(out) == 0 || out[len(out)-1].Topic != tp.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = tp.Topic
			out = append(out, t)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.OffsetLag = tp.Partition, l.Size(), max(0, l.HighWatermark()-l.LogEndOffset())
		if future, ok := m.storage.Future(tp); ok && future == l {
			p.IsFuture, p.OffsetLag = true, 0
			if current, ok := m.storage.Log(tp); ok {
				p.OffsetLag = max(0, current.LogEndOffset()-l.LogEndOffset())
			}
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return out
}
