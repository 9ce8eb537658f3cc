package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// LeaderAndISRChange asks the controller for the leader and the ISR of one partition. Make it with
// NewLeaderAndISRChange: zero is a valid broker id and a valid znode version.
type LeaderAndISRChange struct {
	Topic     string
	Partition int32
	Leader    cluster.BrokerID    // cluster.KeepLeader: as it is
	ISR       []cluster.BrokerID  // nil: as it is, without dead members. It may lose members, never gain them
	IfEpoch   cluster.LeaderEpoch // only if the leader epoch is this one; cluster.NoLeaderEpoch: any
	IfVersion cluster.ZKVersion   // only if the state znode has this version; cluster.AnyVersion: any
	Unclean   bool                // the leader may be outside the ISR; it is then alone in the new one
}

// NewLeaderAndISRChange returns a change that changes nothing and has no condition.
func NewLeaderAndISRChange(topic string, partition int32) LeaderAndISRChange {
	return LeaderAndISRChange{
		Topic: topic, Partition: partition, Leader: cluster.KeepLeader, IfEpoch: cluster.NoLeaderEpoch, IfVersion: cluster.AnyVersion,
	}
}

// LeaderAndISRResult is what became of one change. LeaderAndISR and ZKVersion are the decision in force afterwards,
// whoever made it; ZKVersion is cluster.AnyVersion when the controller did not say.
type LeaderAndISRResult struct {
	Topic     string
	Partition int32
	cluster.LeaderAndISR
	ZKVersion cluster.ZKVersion
	Changed   bool  // a new decision was made; false without Err: in force already
	Confirmed bool  // set by ConfirmLeaders
	Err       error // why the controller refused; nil when it did not
}

// ControllerCanSetLeaderAndISR reports whether the controller takes SetLeaderAndISR: those of this project do,
// Apache Kafka's does not.
func (c *Client) ControllerCanSetLeaderAndISR(ctx context.Context) (bool, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var last error
	for {
		m, err := c.metadata(ctx, []string{})
		if err != nil {
			return false, err
		}
		if id := cluster.BrokerID(m.ControllerID); id >= 0 {
			resp, err := c.askBroker(ctx, id, apiVersionsRequest())
			if err == nil {
				return announcesLeaderChange(resp.(*kmsg.ApiVersionsResponse)), nil
			}
			last = controllerErr(id, err, true)
		} else {
			last = &Error{Kind: Unreachable, Msg: "no broker is the controller"}
		}
		if !pause(ctx) {
			return false, last
		}
	}
}

func announcesLeaderChange(r *kmsg.ApiVersionsResponse) bool {
	ok := false
	r.UnknownTags.Each(func(tag uint32, v []byte) {
		ok = ok || tag == cluster.LeaderChangeTag && len(v) == 1 && v[0] >= cluster.LeaderChangeVersion
	})
	return ok
}

// SetLeaderAndISR has the controller set leader and ISR of one partition; see SetLeadersAndISRs. What the controller
// refuses is the error, together with the decision in force.
func (c *Client) SetLeaderAndISR(ctx context.Context, req LeaderAndISRChange) (LeaderAndISRResult, error) {
	rs, err := c.SetLeadersAndISRs(ctx, []LeaderAndISRChange{req})
	if err != nil {
		return LeaderAndISRResult{}, err
	}
	return rs[0], rs[0].Err
}

// SetLeadersAndISRs has the controller set leaders and ISRs, in one request with one result for each change, in order. The
// controller checks each against what is stored: conditions, assigned and live replicas, the leader in the ISR, no
// replica in the ISR that was not in it; then writes it with the next leader epoch in one multi with the check of
// its own epoch, and tells the brokers. It is done when it is durable; ConfirmLeaders waits for the
// brokers. Callers make sure of ControllerCanSetLeaderAndISR first: Apache Kafka answers INVALID_REQUEST or closes the
// connection. No two changes may name the same partition.
func (c *Client) SetLeadersAndISRs(ctx context.Context, changes []LeaderAndISRChange) ([]LeaderAndISRResult, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	tries := 0
	resp, err := c.askController(ctx, leaderChangeRequest(changes, c.serverTimeout()), func(r kmsg.Response) bool {
		tries++
		return r.(*kmsg.ElectLeadersResponse).ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ElectLeadersResponse)
	if err := brokerErr(kmsg.ElectLeaders, r.ErrorCode, nil); err != nil {
		return nil, wrap(err, "set leader and ISR")
	}
	return leaderChangeResults(changes, r, tries > 1), nil
}

// leaderChangeRequest lists the partitions in the order of the changes: one topic entry for each run of a topic.
func leaderChangeRequest(changes []LeaderAndISRChange, timeoutMs int32) *kmsg.ElectLeadersRequest {
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType, req.TimeoutMillis = cluster.SetLeaderAndISRElection, timeoutMs
	wire := make([]cluster.LeaderChange, len(changes))
	for i, ch := range changes {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != ch.Topic {
			t := kmsg.NewElectLeadersRequestTopic()
			t.Topic = ch.Topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, ch.Partition)
		wire[i] = cluster.LeaderChange{
			Leader: ch.Leader, ISR: ch.ISR, ExpectEpoch: ch.IfEpoch, ExpectVersion: ch.IfVersion, Unclean: ch.Unclean,
		}
	}
	req.UnknownTags.Set(cluster.LeaderChangeTag, cluster.EncodeLeaderChanges(wire))
	return req
}

// leaderChangeResults matches the answer. After a controller that could not say what became of it, a condition that
// fails although the wish is in force means that it had been carried out.
func leaderChangeResults(changes []LeaderAndISRChange, r *kmsg.ElectLeadersResponse, repeated bool) []LeaderAndISRResult {
	said := map[cluster.TopicPartition]*kmsg.ElectLeadersResponseTopicPartition{}
	for i := range r.Topics {
		for j := range r.Topics[i].Partitions {
			p := &r.Topics[i].Partitions[j]
			said[cluster.TopicPartition{Topic: r.Topics[i].Topic, Partition: p.Partition}] = p
		}
	}
	out := make([]LeaderAndISRResult, len(changes))
	for i, ch := range changes {
		o := LeaderAndISRResult{Topic: ch.Topic, Partition: ch.Partition, ZKVersion: cluster.AnyVersion}
		o.Leader, o.LeaderEpoch = cluster.NoLeader, cluster.NoLeaderEpoch
		p := said[cluster.TopicPartition{Topic: ch.Topic, Partition: ch.Partition}]
		if p == nil {
			o.Err = &Error{Kind: Failed, Msg: fmt.Sprintf("the controller said nothing about %s:%d", ch.Topic, ch.Partition)}
			out[i] = o
			continue
		}
		o.readDecision(p)
		switch p.ErrorCode {
		case 0:
			o.Changed = true
		case kerr.ElectionNotNeeded.Code:
		case kerr.InvalidUpdateVersion.Code, kerr.FencedLeaderEpoch.Code:
			if o.Changed = repeated && o.grants(ch); !o.Changed {
				o.Err = &Error{Kind: Failed, Msg: fmt.Sprintf("%s:%d has changed meanwhile: %s", ch.Topic, ch.Partition, answerText(p)), Hint: "look at it again, then repeat the command"}
			}
		default:
			o.Err = wrap(brokerErr(kmsg.ElectLeaders, p.ErrorCode, p.ErrorMessage), "%s:%d", ch.Topic, ch.Partition)
		}
		out[i] = o
	}
	return out
}

func answerText(p *kmsg.ElectLeadersResponseTopicPartition) string {
	if p.ErrorMessage == nil {
		return "refused by the controller"
	}
	return *p.ErrorMessage
}

// readDecision takes the decision in force from the answer.
func (o *LeaderAndISRResult) readDecision(p *kmsg.ElectLeadersResponseTopicPartition) {
	p.UnknownTags.Each(func(tag uint32, data []byte) {
		if d, err := cluster.DecodeLeaderChanged(data); err == nil && tag == cluster.LeaderChangeTag {
			o.Leader, o.LeaderEpoch, o.ControllerEpoch, o.ISR, o.ZKVersion = d.Leader, d.LeaderEpoch, d.ControllerEpoch, d.ISR, d.ZKVersion
		}
	})
}

// grants: the decision in force is what the change asks for.
func (o *LeaderAndISRResult) grants(ch LeaderAndISRChange) bool {
	return (ch.Leader == cluster.KeepLeader || ch.Leader == o.Leader) && (ch.ISR == nil || slices.Equal(ch.ISR, o.ISR)) &&
		(ch.IfEpoch == cluster.NoLeaderEpoch || o.LeaderEpoch == ch.IfEpoch+1)
}

// ConfirmLeaders waits until the leader of every result without Err says itself that it leads in that epoch or a
// later one, and sets Confirmed; those that have not when the time is over are left as they are.
func (c *Client) ConfirmLeaders(ctx context.Context, results []LeaderAndISRResult, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		by := map[cluster.BrokerID][]int{}
		for i := range results {
			if r := &results[i]; r.Err == nil && !r.Confirmed && r.Leader >= 0 {
				by[r.Leader] = append(by[r.Leader], i)
			}
		}
		if len(by) == 0 {
			return
		}
		c.eachBroker(ctx, keys(by), func(ctx context.Context, id cluster.BrokerID) error {
			parts := make([]*model.Partition, len(by[id]))
			for k, i := range by[id] {
				parts[k] = &model.Partition{Topic: results[i].Topic, Partition: results[i].Partition, LeaderEpoch: results[i].LeaderEpoch}
			}
			got, err := c.listOffsets(ctx, id, asConsumer, parts, func(p *model.Partition) cluster.LeaderEpoch { return p.LeaderEpoch })
			if err != nil {
				return err
			}
			for k, i := range by[id] {
				a, _ := answerOf(got, parts[k].TP())
				results[i].Confirmed = a == model.AnswerOK || a == model.AnswerAhead
			}
			return nil
		})
		if !pause(ctx) {
			return
		}
	}
}
