package api

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/broker/replicashell"
	"kctl/broker/server"
	"kctl/zkutil/cluster"
)

// Produce appends record batches. With acks=0 there is no answer, and an error closes the connection so that
// the client asks for metadata; with acks=-1 the answer comes when all in-sync replicas have the records.
//
//	v0-2    message sets of the old formats: announced, since librdkafka and kafkajs judge a broker by it, and
//	        answered with UNSUPPORTED_FOR_MESSAGE_FORMAT
//	v3      record batches (format v2), transactional id
//	v5      log start offset in the answer; v7 zstd
//	v8      error message (KIP-467); v10 current leader with NOT_LEADER_OR_FOLLOWER (KIP-951)
var produceAPI = definition{key: 0, min: 0, max: 11, handle: (*Service).produce}

// adminClientID is the only client that may write to the coordinators' topics, as in Kafka.
const adminClientID = "__admin_client"

func (s *Service) produce(ctx context.Context, c *call) kmsg.Response {
	req := c.body.(*kmsg.ProduceRequest)
	parts, refused := s.produceParts(c, req)
	timeout := time.Duration(req.TimeoutMillis) * time.Millisecond
	done := func(results []replicashell.ProduceResult) { s.produced(c, req, append(results, refused...)) }
	if len(parts) == 0 {
		done(nil)
	} else {
		s.Data.Produce(ctx, req.Acks, timeout, parts, done)
	}
	// The records were copied to the log before Produce returned, and decoding copied every string.
	c.ReleaseFrame()
	return nil
}

// produceParts lists what may be appended, and the results of what may not.
func (s *Service) produceParts(c *call, req *kmsg.ProduceRequest) (parts []replicashell.ProducePartition, refused []replicashell.ProduceResult) {
	n := 0
	for i := range req.Topics {
		n += len(req.Topics[i].Partitions)
	}
	parts = make([]replicashell.ProducePartition, 0, n)
	for i := range req.Topics {
		t := &req.Topics[i]
		verdict := s.produceVerdict(c, req, t.Topic)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			tp := cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			code := verdict
			if code == nil && len(p.Records) >= magicAt && p.Records[magicAt-1] < 2 {
				code = kerr.UnsupportedForMessageFormat
			}
			if code != nil {
				refused = append(refused, refusedProduce(tp, code))
				continue
			}
			parts = append(parts, replicashell.ProducePartition{TP: tp, Records: p.Records})
		}
	}
	return parts, refused
}

// magicAt is the number of bytes of a batch up to its magic byte.
const magicAt = 17

// produceVerdict refuses what holds for a whole topic.
func (s *Service) produceVerdict(c *call, req *kmsg.ProduceRequest, topic string) *kerr.Error {
	switch {
	case req.Acks < -1 || req.Acks > 1:
		return kerr.InvalidRequiredAcks
	case req.Version < 3:
		return kerr.UnsupportedForMessageFormat
	case req.TransactionID != nil:
		return kerr.TransactionalIDAuthorizationFailed // see InitProducerId
	case isInternal(topic) && c.clientID != adminClientID:
		return kerr.InvalidTopicException
	}
	return nil
}

func refusedProduce(tp cluster.TopicPartition, code *kerr.Error) replicashell.ProduceResult {
	return replicashell.ProduceResult{TP: tp, Err: code.Code, Message: code.Description, BaseOffset: -1, LogAppendTime: -1, LogStartOffset: -1, Leader: cluster.NoLeader, LeaderEpoch: cluster.NoLeaderEpoch}
}

// produced answers, or with acks=0 keeps silent or hangs up. It may run in any goroutine.
func (s *Service) produced(c *call, req *kmsg.ProduceRequest, results []replicashell.ProduceResult) {
	snap := s.Metadata.Snapshot()
	failed := false
	for i := range results {
		r := &results[i]
		if r.Err == kerr.UnknownTopicOrPartition.Code {
			if _, known := snap.Partition(r.TP); known {
				r.Err = kerr.NotLeaderForPartition.Code
			}
		}
		failed = failed || r.Err != 0
	}
	switch {
	case req.Acks != 0:
	case failed:
		c.Abort()
		return
	default:
		c.NoReply()
		return
	}
	out := server.NewBytes(c.CorrelationID, answerBytes)
	resp := s.produceResponse(c, req, results)
	if resp.IsFlexible() {
		out.Buf.B = append(out.Buf.B, 0)
	}
	out.Buf.B = resp.AppendTo(out.Buf.B)
	out.Seal()
	c.Reply(out)
}

func (s *Service) produceResponse(c *call, req *kmsg.ProduceRequest, results []replicashell.ProduceResult) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	// The results of one topic mostly stand together; refused ones come last and may repeat a topic.
	index := make(map[string]int, len(req.Topics))
	resp.Topics = make([]kmsg.ProduceResponseTopic, 0, len(req.Topics))
	for i := range results {
		r := &results[i]
		at, ok := index[r.TP.Topic]
		if !ok {
			at = len(resp.Topics)
			index[r.TP.Topic] = at
			t := kmsg.NewProduceResponseTopic()
			t.Topic = r.TP.Topic
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode = r.TP.Partition, r.Err
		p.BaseOffset, p.LogAppendTime, p.LogStartOffset = r.BaseOffset, r.LogAppendTime, r.LogStartOffset
		if r.Message != "" {
			p.ErrorMessage = &r.Message
		}
		if r.Err == kerr.NotLeaderForPartition.Code && req.Version >= 10 {
			s.tellProducer(c, r, &p, resp)
		}
		resp.Topics[at].Partitions = append(resp.Topics[at].Partitions, p)
	}
	return resp
}

// tellProducer names the leader that the cache knows, and its address (KIP-951).
func (s *Service) tellProducer(c *call, r *replicashell.ProduceResult, p *kmsg.ProduceResponseTopicPartition, resp *kmsg.ProduceResponse) {
	leader, epoch, node, ok := s.newLeader(r.TP, c.Conn.Listener)
	if !ok {
		return
	}
	p.CurrentLeader.LeaderID, p.CurrentLeader.LeaderEpoch = leader, epoch
	for i := range resp.Brokers {
		if resp.Brokers[i].NodeID == leader {
			return
		}
	}
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host, b.Port, b.Rack = leader, node.Host, node.Port, nil
	resp.Brokers = append(resp.Brokers, b)
}

// newLeader finds the leader to point a client to; not this broker, which has just said that it is not it.
func (s *Service) newLeader(tp cluster.TopicPartition, listener string) (id, epoch int32, e cluster.Endpoint, ok bool) {
	snap := s.Metadata.Snapshot()
	p, ok := snap.Partition(tp)
	if !ok {
		return -1, -1, cluster.Endpoint{}, false
	}
	leader, e, ok := snap.LeaderEndpoint(tp, listener)
	if !ok || leader == s.BrokerID {
		return -1, -1, cluster.Endpoint{}, false
	}
	return int32(leader), int32(p.LeaderEpoch), e, true
}
