package admin

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// factsFromDir reads what a data directory tells for check.Diagnose. Ages are those at the last change in it. Of
// configurations only what is stored in /config is known.
func (c *Client) factsFromDir(ctx context.Context, opts FactsOptions) (*check.Facts, []model.Problem, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	s, err := c.snapshot(ctx, SnapshotOptions{MinISR: true})
	if err != nil {
		return nil, nil, err
	}
	z, err := c.readZKCluster(ctx)
	if err != nil {
		return nil, nil, err
	}
	opts.Now = c.lastMoment()
	f := &check.Facts{Snapshot: s}
	f.Tree = &check.Tree{ClusterID: z.clusterID, Controller: z.controller.ID, ControllerEpoch: cluster.ControllerEpoch(z.controller.Epoch)}
	r := &factsReader{c: c, f: f, opts: opts}
	r.problem(s.Problems...)
	s.Problems = nil
	if err := r.readTree(ctx); err != nil {
		return nil, nil, err
	}
	if err := c.storedFacts(ctx, f); err != nil {
		return nil, nil, err
	}
	if f.Transitions, err = c.judgeFromDir(ctx, TransitionOptions{OlderThan: opts.OlderThan}, nil); err != nil {
		return nil, nil, err
	}
	if opts.leftovers { // a diagnosis lists what it skips
		c.tell("left out, since no broker is asked: what lies in their log directories")
		r.problem(model.Problem{Object: "brokers", Message: c.unasked() + "; left out: what lies in their log directories"})
	}
	check.TreeOnly(f, c.unasked())
	return f, r.problems(), nil
}

// storedFacts fills the configurations with the values that /config holds: those are set, nothing else is known. A value
// for all brokers holds for each.
func (c *Client) storedFacts(ctx context.Context, f *check.Facts) error {
	f.TopicConfigs, f.BrokerConfigs = map[string]check.Config{}, map[cluster.BrokerID]check.Config{}
	for i := range f.Tree.TopicConfigs {
		name := f.Tree.TopicConfigs[i].Path[len(znode.ConfigEntityTypePath(znode.TopicConfig))+1:]
		f.TopicConfigs[name] = overridesOf(znode.TopicConfig, name, f.Tree.TopicConfigs[i].Data)
	}
	common, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.ConfigEntityPath(znode.BrokerConfig, znode.DefaultEntity)}})
	if err != nil {
		return err
	}
	all := overridesOf(znode.BrokerConfig, znode.DefaultEntity, common[0].Data)
	for i := range f.Snapshot.Brokers {
		f.BrokerConfigs[f.Snapshot.Brokers[i].ID] = maps.Clone(all)
	}
	for i := range f.Tree.BrokerConfigs {
		name := f.Tree.BrokerConfigs[i].Path[len(znode.ConfigEntityTypePath(znode.BrokerConfig))+1:]
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			continue
		}
		into := f.BrokerConfigs[cluster.BrokerID(id)]
		if into == nil {
			into = check.Config{}
			f.BrokerConfigs[cluster.BrokerID(id)] = into
		}
		maps.Copy(into, overridesOf(znode.BrokerConfig, name, f.Tree.BrokerConfigs[i].Data))
	}
	return nil
}

// overridesOf decodes one entity; one that cannot be read has no values, and a check of its own.
func overridesOf(kind znode.ConfigType, name string, data []byte) check.Config {
	out := check.Config{}
	cfg, err := znode.DecodeConfig(kind, name, data)
	if err != nil {
		return out
	}
	for k, v := range cfg.Values {
		if !SecretKey(k) {
			out[k] = check.Value{Text: v, Own: true}
		}
	}
	return out
}

// transitionsFromDir finds the decisions that the tree alone shows to be unfinished: no state node, a leader that is not
// registered, a controller epoch that is not real, an alert of the controller. The rest are counted in a problem.
func (c *Client) transitionsFromDir(ctx context.Context, opts TransitionOptions) ([]model.Transition, []model.Problem, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	var problems []model.Problem
	unknown := 0
	ts, err := c.judgeFromDir(ctx, opts, func(d *decisions, open int) { problems, unknown = d.problems, open })
	if err != nil {
		return nil, nil, err
	}
	if unknown > 0 {
		problems = append(problems, model.Problem{
			Object: "brokers", Message: fmt.Sprintf("%s; whether the brokers carried out the decisions about %d more partitions only they know", c.unasked(), unknown),
		})
	}
	return ts, problems, nil
}

func (c *Client) judgeFromDir(ctx context.Context, opts TransitionOptions, rest func(d *decisions, unknown int)) ([]model.Transition, error) {
	if opts.OlderThan <= 0 {
		opts.OlderThan = DefaultOlderThan
	}
	d, err := c.readDecisions(ctx, opts)
	if err != nil {
		return nil, err
	}
	now := c.lastMoment()
	tc := check.TransitionContext{Live: d.live, ControllerEpoch: d.controllerEpoch, OlderThan: opts.OlderThan}
	var out []model.Transition
	unknown := 0
	for i := range d.states {
		o := observedInTree(d, &d.states[i], now)
		t := check.Transition(o, tc)
		if o.LeaderAnswer == model.AnswerNone && o.Alert != nil && t.State == model.TransitionDone {
			t.State, t.Reason, t.WaitingFor = model.TransitionStuck, "the controller's alert: "+o.Alert.Reason, o.Alert.WaitingFor
		}
		switch {
		case t.State != model.TransitionDone, o.State.Leader < 0 && opts.All:
			out = append(out, t)
		case o.State.Leader >= 0:
			unknown++
		}
	}
	if rest != nil {
		rest(d, unknown)
	}
	return report(out, opts), nil
}

// observedInTree is what can be seen of a decision without asking.
func observedInTree(d *decisions, n *model.StateNode, now time.Time) model.Observation {
	tp := cluster.TopicPartition{Topic: n.Topic, Partition: n.Partition}
	o := model.Observation{State: *n, Age: -1, MetadataEpoch: -1, FollowerEpoch: map[cluster.BrokerID]cluster.LeaderEpoch{}}
	if !n.Mtime.IsZero() {
		o.Age = max(0, now.Sub(n.Mtime))
	}
	if a := d.alerts[tp]; a != nil && a.Epoch == n.LeaderEpoch {
		o.Alert = a
	}
	if n.Leader >= 0 && !d.live[n.Leader] {
		o.LeaderAnswer = model.AnswerNotRegistered
	}
	return o
}

// healthFromDir judges what the tree tells.
func (c *Client) healthFromDir(ctx context.Context, olderThan time.Duration) ([]model.Finding, *model.Snapshot, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{MinISR: true})
	if err != nil {
		return nil, nil, err
	}
	ts, err := c.judgeFromDir(ctx, TransitionOptions{OlderThan: olderThan}, nil)
	if err != nil {
		return nil, nil, err
	}
	s.Problems = append(s.Problems, model.Problem{
		Object: "brokers", Message: c.unasked() + "; left out: whether brokers answer, and whether they carried out the controller's decisions",
	})
	return check.Health(check.Input{Snapshot: s, Transitions: ts}), s, nil
}

// configsFromDir reads what is stored; resources of other types have an error in their place.
func (c *Client) configsFromDir(ctx context.Context, resources []model.ConfigResource) ([]model.ResourceConfigs, error) {
	c.tell("of configurations only what is stored in /config is known: neither server.properties nor defaults")
	out := make([]model.ResourceConfigs, len(resources))
	for i, r := range resources {
		if _, _, err := configZnode(r); err != nil {
			out[i] = model.ResourceConfigs{Resource: r, Source: model.SourceZooKeeper, Err: err}
		}
	}
	var stored []model.ConfigResource
	for i, r := range resources {
		if out[i].Err == nil {
			stored = append(stored, r)
		}
	}
	got, err := c.ConfigsFromZooKeeper(ctx, stored)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Err == nil {
			out[i], got = got[0], got[1:]
		}
	}
	return out, nil
}
