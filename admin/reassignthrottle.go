package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan/reassign"
	"kctl/zkutil/cluster"
)

var (
	topicThrottles  = []string{reassign.LeaderReplicas, reassign.FollowerReplicas}
	brokerThrottles = []string{reassign.LeaderRate, reassign.FollowerRate}
)

// throttleSet are the throttle settings of topics and brokers as they are; an absent key is not set.
type throttleSet struct {
	topics  map[string]map[string]string
	brokers map[cluster.BrokerID]map[string]string
}

// readThrottles reads the settings. Brokers that do not answer are problems.
func (c *Client) readThrottles(ctx context.Context, topics []string, brokers []cluster.BrokerID) (*throttleSet, []model.Problem, error) {
	out := &throttleSet{topics: map[string]map[string]string{}, brokers: map[cluster.BrokerID]map[string]string{}}
	if len(topics) > 0 {
		req := kmsg.NewPtrDescribeConfigsRequest()
		for _, t := range topics {
			req.Resources = append(req.Resources, configResource(kmsg.ConfigResourceTypeTopic, t, topicThrottles))
		}
		resp, err := c.askAny(ctx, func() kmsg.Request { return req })
		if err != nil {
			return nil, nil, err
		}
		for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
			if err := brokerErr(kmsg.DescribeConfigs, r.ErrorCode, r.ErrorMessage); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
				return nil, nil, wrap(err, "read the throttles of topic %s", r.ResourceName)
			}
			out.topics[r.ResourceName] = setValues(r.Configs, kmsg.ConfigSourceDynamicTopicConfig)
		}
	}
	values := make([]map[string]string, len(brokers))
	errs := c.eachBroker(ctx, brokers, func(ctx context.Context, id cluster.BrokerID) error {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = append(req.Resources, configResource(kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id)), brokerThrottles))
		resp, err := c.askBroker(ctx, id, req)
		if err != nil {
			return err
		}
		for _, r := range resp.(*kmsg.DescribeConfigsResponse).Resources {
			if err := brokerErr(kmsg.DescribeConfigs, r.ErrorCode, r.ErrorMessage); err != nil {
				return err
			}
			values[slices.Index(brokers, id)] = setValues(r.Configs, kmsg.ConfigSourceDynamicBrokerConfig)
		}
		return nil
	})
	var problems []model.Problem
	for i, id := range brokers {
		if errs[id] != nil {
			problems = append(problems, model.Problem{Object: brokerName(id), Message: short(errs[id])})
			continue
		}
		out.brokers[id] = values[i]
	}
	return out, problems, nil
}

func configResource(kind kmsg.ConfigResourceType, name string, keys []string) kmsg.DescribeConfigsRequestResource {
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	return r
}

func setValues(configs []kmsg.DescribeConfigsResponseResourceConfig, from kmsg.ConfigSource) map[string]string {
	out := map[string]string{}
	for _, cfg := range configs {
		if cfg.Value != nil && cfg.Source == from {
			out[cfg.Name] = *cfg.Value
		}
	}
	return out
}

// configChange is one change of one key.
type configChange struct {
	topic  string // empty: of broker
	broker cluster.BrokerID
	key    string
	op     kmsg.IncrementalAlterConfigOp
	value  string
}

// changeConfigs makes changes: those of topics with one request to the controller, those of a broker with one to it.
// The result names what failed, by object.
func (c *Client) changeConfigs(ctx context.Context, changes []configChange) map[string]error {
	failed := map[string]error{}
	topics := kmsg.NewPtrIncrementalAlterConfigsRequest()
	brokers := map[cluster.BrokerID]*kmsg.IncrementalAlterConfigsRequest{}
	var ids []cluster.BrokerID
	for i := range changes {
		ch := &changes[i]
		if ch.topic != "" {
			addChange(topics, kmsg.ConfigResourceTypeTopic, ch.topic, ch)
			continue
		}
		if brokers[ch.broker] == nil {
			brokers[ch.broker] = kmsg.NewPtrIncrementalAlterConfigsRequest()
			ids = append(ids, ch.broker)
		}
		addChange(brokers[ch.broker], kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(ch.broker)), ch)
	}
	if len(topics.Resources) > 0 {
		resp, err := c.askController(ctx, topics, func(r kmsg.Response) bool {
			rs := r.(*kmsg.IncrementalAlterConfigsResponse).Resources
			return len(rs) > 0 && rs[0].ErrorCode == kerr.NotController.Code
		})
		for i := range topics.Resources {
			noteFailed(failed, "topic "+topics.Resources[i].ResourceName, err)
		}
		if err == nil {
			for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
				noteFailed(failed, "topic "+r.ResourceName, brokerErr(kmsg.IncrementalAlterConfigs, r.ErrorCode, r.ErrorMessage))
			}
		}
	}
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		resp, err := c.askBroker(ctx, id, brokers[id])
		if err != nil {
			return err
		}
		for _, r := range resp.(*kmsg.IncrementalAlterConfigsResponse).Resources {
			if err := brokerErr(kmsg.IncrementalAlterConfigs, r.ErrorCode, r.ErrorMessage); err != nil {
				return err
			}
		}
		return nil
	})
	for id, err := range errs {
		noteFailed(failed, brokerName(id), err)
	}
	return failed
}

func noteFailed(failed map[string]error, object string, err error) {
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) { // a topic that went away has no throttle either
		failed[object] = err
	}
}

func addChange(req *kmsg.IncrementalAlterConfigsRequest, kind kmsg.ConfigResourceType, name string, ch *configChange) {
	i := slices.IndexFunc(req.Resources, func(r kmsg.IncrementalAlterConfigsRequestResource) bool { return r.ResourceName == name })
	if i < 0 {
		i = len(req.Resources)
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kind, name
		req.Resources = append(req.Resources, r)
	}
	cfg := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	cfg.Name, cfg.Op = ch.key, ch.op
	if ch.op != kmsg.IncrementalAlterConfigOpDelete {
		cfg.Value = &ch.value
	}
	req.Resources[i].Configs = append(req.Resources[i].Configs, cfg)
}

// setThrottles sets what the open steps of a run need and marks it as the run's before it is sent. Entries of other
// owners stay in the topics' lists, rates of other owners stay as they are; brokers that are not live are skipped.
// The result are warnings.
func (e *executor) setThrottles(ctx context.Context, live []cluster.BrokerID) ([]string, error) {
	if e.run.Throttle <= 0 {
		return nil, nil
	}
	ctx, cancel := e.c.within(ctx)
	defer cancel()
	want := reassign.Throttle(e.run.Left())
	var warnings []string
	brokers := slices.DeleteFunc(slices.Clone(want.Brokers), func(id cluster.BrokerID) bool {
		dead := !slices.Contains(live, id)
		if dead {
			warnings = append(warnings, brokerName(id)+" is not live and gets no throttle")
		}
		return dead
	})
	topics := sortedKeys(want.Leader)
	now, problems, err := e.c.readThrottles(ctx, topics, brokers)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		warnings = append(warnings, p.Object+" gets no throttle: "+p.Message)
	}
	var changes []configChange
	for _, t := range topics {
		for key, list := range map[string][]string{reassign.LeaderReplicas: want.Leader[t], reassign.FollowerReplicas: want.Follower[t]} {
			if add := reassign.MissingFrom(now.topics[t][key], list); len(add) > 0 {
				e.run.Note(reassign.Mark{Topic: t, Broker: -1, Key: key, Added: add})
				changes = append(changes, configChange{topic: t, broker: -1, key: key, op: kmsg.IncrementalAlterConfigOpAppend, value: strings.Join(add, ",")})
			}
		}
	}
	rates, foreign := e.setRates(brokers, now)
	changes, warnings = append(changes, rates...), append(warnings, foreign...)
	if len(changes) == 0 {
		return warnings, nil
	}
	if err := e.save(); err != nil {
		return warnings, err
	}
	for object, err := range e.c.changeConfigs(ctx, changes) {
		return warnings, wrap(err, "set the throttle of %s", object)
	}
	return warnings, nil
}

// setRates marks the rates that brokers need and returns how to set them, and warnings about those of other owners.
func (e *executor) setRates(brokers []cluster.BrokerID, now *throttleSet) (changes []configChange, warnings []string) {
	rate := strconv.FormatInt(e.run.Throttle, 10)
	for _, id := range brokers {
		values, ok := now.brokers[id]
		if !ok {
			continue
		}
		for _, key := range brokerThrottles {
			have, set := values[key]
			if set && !e.owned(id, key) {
				warnings = append(warnings, fmt.Sprintf("%s has %s=%s, which is not ours and stays", brokerName(id), key, have))
				continue
			}
			value := rate
			if set && !e.run.Owns(id, key) {
				value = have // that of another run of ours: shared, and removed by the one that ends last
			}
			e.run.Note(reassign.Mark{Broker: int32(id), Key: key, Value: value})
			if have != value {
				changes = append(changes, configChange{broker: id, key: key, op: kmsg.IncrementalAlterConfigOpSet, value: value})
			}
		}
	}
	return changes, warnings
}

// owned reports whether this run or another unfinished one of ours set the rate.
func (e *executor) owned(id cluster.BrokerID, key string) bool {
	return e.run.Owns(id, key) || slices.ContainsFunc(e.others, func(r *reassign.Run) bool { return r.Owns(id, key) })
}

// RemoveThrottles takes back the throttle settings that a run made: its entries in topics' lists and its rates, but
// not what another unfinished run of ours uses too, nor a rate that somebody has changed since. What was taken back
// is no longer marked in run; what could not be is returned as problems and stays marked.
func (c *Client) RemoveThrottles(ctx context.Context, run *reassign.Run, others []*reassign.Run) ([]model.Problem, error) {
	if len(run.Marks) == 0 {
		return nil, nil
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	var topics []string
	var brokers []cluster.BrokerID
	for _, m := range run.Marks {
		if m.Topic != "" && !slices.Contains(topics, m.Topic) {
			topics = append(topics, m.Topic)
		} else if id := cluster.BrokerID(m.Broker); m.Topic == "" && !slices.Contains(brokers, id) {
			brokers = append(brokers, id)
		}
	}
	now, problems, err := c.readThrottles(ctx, topics, brokers)
	if err != nil {
		return nil, err
	}
	var changes []configChange
	for i := range run.Marks {
		if ch := takeBack(&run.Marks[i], now, others); ch != nil {
			changes = append(changes, *ch)
		}
	}
	failed := c.changeConfigs(ctx, changes)
	for _, object := range sortedKeys(failed) {
		problems = append(problems, model.Problem{Object: object, Message: short(failed[object])})
	}
	run.Marks = slices.DeleteFunc(run.Marks, func(m reassign.Mark) bool {
		object := "topic " + m.Topic
		if m.Topic == "" {
			object = brokerName(cluster.BrokerID(m.Broker))
		}
		return !slices.ContainsFunc(problems, func(p model.Problem) bool { return p.Object == object })
	})
	return problems, nil
}

// takeBack is the change that removes one mark; nil when there is nothing to remove.
func takeBack(m *reassign.Mark, now *throttleSet, others []*reassign.Run) *configChange {
	if m.Topic == "" {
		id := cluster.BrokerID(m.Broker)
		shared := slices.ContainsFunc(others, func(r *reassign.Run) bool { return r.Owns(id, m.Key) })
		if have, ok := now.brokers[id][m.Key]; !ok || have != m.Value || shared {
			return nil
		}
		return &configChange{broker: id, key: m.Key, op: kmsg.IncrementalAlterConfigOpDelete}
	}
	gone := slices.DeleteFunc(slices.Clone(m.Added), func(entry string) bool {
		return slices.ContainsFunc(others, func(r *reassign.Run) bool { return r.OwnsEntry(m.Topic, m.Key, entry) })
	})
	have, ok := now.topics[m.Topic][m.Key]
	if !ok || len(gone) == 0 {
		return nil
	}
	if reassign.Without(have, gone) == "" {
		return &configChange{topic: m.Topic, broker: -1, key: m.Key, op: kmsg.IncrementalAlterConfigOpDelete}
	}
	return &configChange{topic: m.Topic, broker: -1, key: m.Key, op: kmsg.IncrementalAlterConfigOpSubtract, value: strings.Join(gone, ",")}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
