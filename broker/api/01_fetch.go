package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/metadata"
	"kctl/broker/replicashell"
	"kctl/zkutil/cluster"
)

// Fetch reads record batches, for consumers and for followers.
//
//	v4      isolation level, last stable offset; older versions would need conversion to old formats
//	v5      log start offset; v7 fetch sessions (KIP-227); v9 current leader epoch (KIP-320)
//	v10     zstd; v11 rack of the client (KIP-392), and non-leaders may answer consumers
//	v12     last fetched epoch and diverging epoch; v13 topic ids (KIP-516)
//	v15     replica state with broker epoch (KIP-903); v16 addresses of new leaders (KIP-951)
//	v17     directory ids, which only KRaft uses
var fetchAPI = definition{key: 1, min: 4, max: 17, handle: (*Service).fetch}

func (s *Service) fetch(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.FetchRequest)
	c.ReleaseFrame() // decoding copied every string and there are no byte fields
	snap := s.Metadata.Snapshot()
	params := s.fetchParams(req)
	answer := s.Data.Fetch(ctx, params, fetchPartitions(snap, req), forgottenPartitions(snap, req))
	c.Reply(s.fetchBody(c, req, answer))
	return nil
}

func (s *Service) fetchParams(req *kmsg.FetchRequest) replicashell.FetchParams {
	p := replicashell.FetchParams{
		ReplicaID:     cluster.BrokerID(req.ReplicaID),
		ReplicaEpoch:  cluster.NoBrokerEpoch,
		MaxWait:       time.Duration(max(0, req.MaxWaitMillis)) * time.Millisecond,
		MinBytes:      req.MinBytes,
		MaxBytes:      req.MaxBytes,
		ReadCommitted: req.IsolationLevel == 1,
		ClientRack:    req.Rack,
		Version:       req.Version,
		SessionEpoch:  -1,
	}
	if req.Version >= 15 {
		p.ReplicaID, p.ReplicaEpoch = cluster.BrokerID(req.ReplicaState.ID), cluster.BrokerEpoch(req.ReplicaState.Epoch)
	}
	if p.ReplicaID < 0 {
		p.MaxBytes = min(p.MaxBytes, int32(s.Static.Values().Int("fetch.max.bytes")))
	}
	if req.Version >= 7 {
		p.SessionID, p.SessionEpoch = req.SessionID, req.SessionEpoch
	}
	return p
}

func fetchPartitions(snap *metadata.Snapshot, req *kmsg.FetchRequest) []replicashell.FetchPartition {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	out := make([]replicashell.FetchPartition, 0, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		name, id := topicOf(snap, req.Version, t.Topic, t.TopicID)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			out = append(out, replicashell.FetchPartition{
				TP:                 cluster.TopicPartition{Topic: name, Partition: p.Partition},
				TopicID:            id,
				FetchOffset:        p.FetchOffset,
				LogStartOffset:     p.LogStartOffset,
				MaxBytes:           p.PartitionMaxBytes,
				CurrentLeaderEpoch: cluster.LeaderEpoch(p.CurrentLeaderEpoch),
				LastFetchedEpoch:   cluster.LeaderEpoch(p.LastFetchedEpoch),
			})
		}
	}
	return out
}

// topicOf returns name and id of a topic of a request: by id from version 13 on. An id that is not known yields
// an empty name.
func topicOf(snap *metadata.Snapshot, version int16, name string, id [16]byte) (string, cluster.TopicID) {
	if version < 13 {
		return name, cluster.TopicID{}
	}
	known, _ := snap.TopicName(cluster.TopicID(id))
	return known, cluster.TopicID(id)
}

func forgottenPartitions(snap *metadata.Snapshot, req *kmsg.FetchRequest) []replicashell.FetchPartition {
	var out []replicashell.FetchPartition
	for i := range req.ForgottenTopics {
		t := &req.ForgottenTopics[i]
		name, id := topicOf(snap, req.Version, t.Topic, t.TopicID)
		for _, p := range t.Partitions {
			out = append(out, replicashell.FetchPartition{TP: cluster.TopicPartition{Topic: name, Partition: p}, TopicID: id})
		}
	}
	return out
}

// fetchBody lays out the answer around the ranges of log files.
func (s *Service) fetchBody(c *call, req *kmsg.FetchRequest, answer replicashell.FetchAnswer) *fetchBody {
	snap := s.Metadata.Snapshot()
	var nodes []newLeaderNode
	parts := make([]fetchPartition, len(answer.Results))
	for i := range answer.Results {
		r := &answer.Results[i]
		p := &parts[i]
		*p = fetchPartition{
			topic: r.TP.Topic, topicID: r.TopicID, partition: r.TP.Partition, err: r.Err,
			highWatermark: r.HighWatermark, lastStable: r.LastStableOffset, logStart: r.LogStartOffset,
			divergingEpoch: -1, divergingEnd: -1, leader: -1, leaderEpoch: -1,
			committed: req.IsolationLevel == 1,
		}
		if r.Records.Size() > 0 {
			p.records = r.Records
		} else {
			r.Records.Release()
		}
		if r.Diverging != nil {
			p.divergingEpoch, p.divergingEnd = int32(r.Diverging.Epoch), r.Diverging.Offset
		}
		if p.err == kerr.UnknownTopicOrPartition.Code {
			if _, known := snap.Partition(r.TP); known {
				p.err = kerr.NotLeaderForPartition.Code
			}
		}
		if req.Version >= 12 && (p.err == kerr.NotLeaderForPartition.Code || p.err == kerr.FencedLeaderEpoch.Code) {
			if id, epoch, e, ok := s.newLeader(r.TP, c.Conn.Listener); ok {
				p.leader, p.leaderEpoch = id, epoch
				nodes = addNode(nodes, id, e)
			}
		}
	}
	return newFetchBody(c.CorrelationID, req.Version, answer.Err, answer.SessionID, parts, nodes)
}

func addNode(nodes []newLeaderNode, id int32, e cluster.Endpoint) []newLeaderNode {
	for _, n := range nodes {
		if n.id == id {
			return nodes
		}
	}
	return append(nodes, newLeaderNode{id: id, host: e.Host, port: e.Port})
}
