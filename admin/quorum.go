package admin

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// metadataTopic is the log that the controllers of KRaft mode keep; who leads its one partition is the active controller.
const metadataTopic = "__cluster_metadata"

// IsKRaft reports whether the brokers are in KRaft mode: those serve DescribeQuorum (KIP-836, Kafka 3.3), no others do.
func (c *Client) IsKRaft(ctx context.Context) (bool, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return c.supports(ctx, int16(kmsg.DescribeQuorum))
}

// quorumController asks the controllers of KRaft mode who of them is active; nil on a cluster in ZooKeeper mode. Metadata does
// not tell: there each broker names any live broker, another one each time, since it passes on what is for the controller.
// The epoch is that of the quorum's leader. It needs the permission to Describe the cluster.
func (c *Client) quorumController(ctx context.Context) (*model.Controller, error) {
	if c.HasZooKeeper() {
		return nil, nil
	}
	if ok, err := c.IsKRaft(ctx); err != nil || !ok {
		return nil, err
	}
	resp, err := c.askAny(ctx, func() kmsg.Request {
		req := kmsg.NewPtrDescribeQuorumRequest()
		t := kmsg.NewDescribeQuorumRequestTopic()
		t.Topic, t.Partitions = metadataTopic, append(t.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
		req.Topics = append(req.Topics, t)
		return req
	})
	if err != nil {
		return unknownController(err)
	}
	r := resp.(*kmsg.DescribeQuorumResponse)
	if err := brokerErr(kmsg.DescribeQuorum, r.ErrorCode, nil); err != nil {
		return unknownController(err)
	}
	out := &model.Controller{ID: cluster.NoLeader, Epoch: -1, Source: model.SourceProtocol, Quorum: true}
	for _, t := range r.Topics {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if err := brokerErr(kmsg.DescribeQuorum, p.ErrorCode, nil); err != nil {
				return unknownController(err)
			}
			out.ID, out.Epoch = max(cluster.BrokerID(p.LeaderID), cluster.NoLeader), p.LeaderEpoch
		}
	}
	for i := range r.Nodes {
		if n := &r.Nodes[i]; out.ID >= 0 && cluster.BrokerID(n.NodeID) == out.ID && len(n.Listeners) > 0 {
			out.Host, out.Port = n.Listeners[0].Host, int32(n.Listeners[0].Port)
		}
	}
	return out, nil
}

// unknownController is what can be said when the controllers did not tell: not that it is whom Metadata names, who is any broker.
func unknownController(err error) (*model.Controller, error) {
	out := &model.Controller{ID: cluster.NoLeader, Epoch: -1, Source: model.SourceProtocol, Quorum: true}
	if KindOf(err) == Unreachable {
		out.Silent = true
		err = &Error{Kind: Unreachable, Msg: "the brokers answer, the controllers do not: most of controller.quorum.voters do not run, or they elect one of them just now"}
	}
	return out, err
}

// passesOn reports whether the broker at an address is in KRaft mode, where it passes on to the controllers what it is asked to
// change. It is asked aside, since what it was asked before may wait for them, and within the time of a diagnosis.
func (c *Client) passesOn(ctx context.Context, addr string) bool {
	ctx, cancel := c.toDiagnose(ctx)
	defer cancel()
	cl, err := c.connAside(addr)
	if err != nil {
		return false
	}
	resp, err := cl.SeedBrokers()[0].Request(ctx, apiVersionsRequest())
	if err != nil {
		return false
	}
	return slices.ContainsFunc(resp.(*kmsg.ApiVersionsResponse).ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool {
		return k.ApiKey == kmsg.DescribeQuorum.Int16()
	})
}

// setController puts a quorum's answer into a snapshot.
func setController(s *model.Snapshot, quorum *model.Controller) {
	if quorum == nil {
		return
	}
	s.Controller = *quorum
	for i := range s.Brokers {
		s.Brokers[i].Controller = s.Brokers[i].ID == quorum.ID
	}
}
