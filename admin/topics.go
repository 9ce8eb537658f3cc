package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func configSource(s kmsg.ConfigSource) string {
	return strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(s.String()), "_", "-"), "-config")
}

// CreateTopic creates a topic, or only has the cluster check it when dryRun is set. It then waits, within
// the timeout, until every live broker names a leader for every partition; visible tells whether that came.
func (c *Client) CreateTopic(ctx context.Context, t plan.NewTopic, dryRun bool) (created model.Topic, visible bool, err error) {
	if err := t.Validate(); err != nil {
		return created, false, NewBadInput(err)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := c.refuseCollision(ctx, t.Name); err != nil {
		return created, false, err
	}
	if err := c.refuseDeadBrokers(ctx, t); err != nil {
		return created, false, err
	}
	if err := c.createOnceGone(ctx, t, dryRun); err != nil {
		return created, false, err
	}
	created = model.Topic{Name: t.Name, Source: model.SourceProtocol}
	if dryRun {
		return created, true, nil
	}
	topic, ok := c.awaitTopic(ctx, t.Name)
	if ok {
		created = topic
	}
	return created, ok, nil
}

// createOnceGone has the controller create a topic. One of that name that is being deleted is waited for: brokers forget a
// topic before a controller in ZooKeeper mode has ended its deletion, so what comes right after it would be refused.
func (c *Client) createOnceGone(ctx context.Context, t plan.NewTopic, dryRun bool) error {
	for {
		resp, err := c.askController(ctx, createRequest(t, dryRun, c.serverTimeout()), func(r kmsg.Response) bool {
			topics := r.(*kmsg.CreateTopicsResponse).Topics
			return len(topics) > 0 && topics[0].ErrorCode == kerr.NotController.Code
		})
		if err != nil {
			return err
		}
		for _, rt := range resp.(*kmsg.CreateTopicsResponse).Topics {
			if err == nil {
				err = brokerErr(kmsg.CreateTopics, rt.ErrorCode, rt.ErrorMessage)
			}
		}
		leaving := TopicExists(err) && strings.Contains(err.Error(), "marked for deletion")
		if leaving && pause(ctx) {
			continue
		}
		if err == nil {
			return nil
		}
		e := &Error{Kind: classify(err), Msg: "create topic " + t.Name, Err: err}
		if leaving {
			e.Hint = "a deletion waits for every replica: kctl brokers list shows who is down"
		}
		return e
	}
}

// refuseDeadBrokers refuses an assignment to brokers that nobody registered: a ZooKeeper-mode controller
// takes it and makes a topic that can neither be used nor deleted.
func (c *Client) refuseDeadBrokers(ctx context.Context, t plan.NewTopic) error {
	if t.Assignment == nil {
		return nil
	}
	m, err := c.metadata(ctx, []string{})
	if err != nil {
		return err
	}
	brokers, _, _, _ := fromMetadata(m)
	live := make([]cluster.BrokerID, len(brokers))
	for i := range brokers {
		live[i] = brokers[i].ID
	}
	var dead []cluster.BrokerID
	for _, replicas := range t.Assignment {
		for _, r := range replicas {
			if !slices.Contains(live, r) && !slices.Contains(dead, r) {
				dead = append(dead, r)
			}
		}
	}
	if len(dead) == 0 {
		return nil
	}
	return &Error{
		Kind: Failed, Msg: fmt.Sprintf("create topic %s: broker %s of the replica assignment is not registered", t.Name, check.IDList(dead)),
		Hint: "registered are " + check.IDList(live),
	}
}

// TopicExists reports whether err says that a topic of that name is there already.
func TopicExists(err error) bool { return errors.Is(err, kerr.TopicAlreadyExists) }

// refuseCollision does what Kafka does for names whose dots and underscores make equal metric names: it
// refuses, also where the broker would not look.
func (c *Client) refuseCollision(ctx context.Context, name string) error {
	if !strings.ContainsAny(name, "._") {
		return nil
	}
	names, err := c.TopicNames(ctx)
	if err != nil {
		return err
	}
	if other, ok := plan.Collision(name, names); ok {
		return &Error{
			Kind: Failed, Msg: fmt.Sprintf("create topic %s: it collides with topic %s: '.' and '_' are the same in metric names", name, other),
			Hint: "use either '.' or '_' in topic names, not both",
		}
	}
	return nil
}

func createRequest(t plan.NewTopic, dryRun bool, timeoutMs int32) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = dryRun
	req.TimeoutMillis = timeoutMs
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, t.ReplicationFactor
	for i, replicas := range t.Assignment {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), cluster.IDsToInt32(replicas)
		rt.ReplicaAssignment = append(rt.ReplicaAssignment, a)
	}
	if t.Assignment != nil {
		rt.NumPartitions, rt.ReplicationFactor = -1, -1
	}
	names := make([]string, 0, len(t.Configs))
	for k := range t.Configs {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		rc := kmsg.NewCreateTopicsRequestTopicConfig()
		v := t.Configs[k]
		rc.Name, rc.Value = k, &v
		rt.Configs = append(rt.Configs, rc)
	}
	req.Topics = append(req.Topics, rt)
	return req
}

// awaitTopic polls all brokers until each names a leader for every partition of the topic.
func (c *Client) awaitTopic(ctx context.Context, name string) (model.Topic, bool) {
	var seen model.Topic
	ok := c.awaitEverywhere(ctx, name, func(t *model.Topic) bool {
		if t.Err != "" || len(t.Partitions) == 0 {
			return false
		}
		for i := range t.Partitions {
			if t.Partitions[i].Leader < 0 {
				return false
			}
		}
		seen = *t
		return true
	})
	return seen, ok
}

// awaitEverywhere polls every live broker's metadata of one topic until good holds at each of them. Who may not look at the
// topic, as one who may only create it, does not wait.
func (c *Client) awaitEverywhere(ctx context.Context, name string, good func(*model.Topic) bool) bool {
	for {
		holds, denied := c.holdsEverywhere(ctx, name, good)
		if holds || denied {
			return holds
		}
		if !pause(ctx) {
			return false
		}
	}
}

func (c *Client) holdsEverywhere(ctx context.Context, name string, good func(*model.Topic) bool) (holds, denied bool) {
	m, err := c.metadata(ctx, []string{})
	if err != nil {
		return false, false
	}
	brokers, _, _, _ := fromMetadata(m)
	ids := make([]cluster.BrokerID, len(brokers))
	for i := range brokers {
		ids[i] = brokers[i].ID
	}
	views := make([]*model.Topic, len(ids))
	c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		resp, err := c.askBroker(ctx, id, metadataRequest([]string{name}))
		if err == nil {
			if _, topics, _, _ := fromMetadata(resp.(*kmsg.MetadataResponse)); len(topics) == 1 {
				views[slices.Index(ids, id)] = &topics[0]
			}
		}
		return err
	})
	answered := 0
	for _, v := range views {
		if v == nil {
			continue // a broker that died meanwhile is not waited for
		}
		answered++
		if !good(v) {
			return false, v.Err == short(kerr.TopicAuthorizationFailed)
		}
	}
	return answered > 0, false
}

// DeleteTopics deletes topics and waits, within the timeout, until no live broker names them any more. The
// result has an entry for each name: nil, or why it was not deleted.
func (c *Client) DeleteTopics(ctx context.Context, names []string) (map[string]error, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = c.serverTimeout()
	req.TopicNames = names
	for i := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &names[i]
		req.Topics = append(req.Topics, t)
	}
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		topics := r.(*kmsg.DeleteTopicsResponse).Topics
		return len(topics) > 0 && topics[0].ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	out := map[string]error{}
	for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
		if t.Topic == nil {
			continue
		}
		if err := brokerErr(kmsg.DeleteTopics, t.ErrorCode, t.ErrorMessage); err != nil {
			out[*t.Topic] = wrap(err, "delete topic %s", *t.Topic)
			continue
		}
		out[*t.Topic] = nil
		gone := c.awaitEverywhere(ctx, *t.Topic, func(mt *model.Topic) bool {
			return mt.Err == short(kerr.UnknownTopicOrPartition)
		})
		if !gone {
			out[*t.Topic] = &Error{
				Kind: Unreachable, Msg: fmt.Sprintf("topic %s is marked for deletion but still there", *t.Topic),
				Hint: "a deletion waits for every replica: kctl brokers list shows who is down",
			}
		}
	}
	return out, nil
}
