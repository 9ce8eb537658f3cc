package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

func brokerName(id cluster.BrokerID) string { return "broker " + strconv.Itoa(int(id)) }

// DefaultOlderThan is the age from which an unfinished decision is stuck.
const DefaultOlderThan = 10 * time.Second

// TransitionOptions says what Transitions looks for.
type TransitionOptions struct {
	Targets   []plan.Target // empty: every partition
	OlderThan time.Duration // 0: DefaultOlderThan
	All       bool          // finished decisions too

	watch time.Duration                             // without ZooKeeper: end the watch after it; 0: when all is judged
	first func(context.Context) (*decisions, error) // what was read already; nil: read it
}

// rounds is how often a decision that seems unfinished is read and asked again at once, so that one which
// changed between the reading and the asking is not reported.
const rounds = 2

// Transitions compares each partition's leadership decision with what the brokers named in it answer: the
// leader is asked to act in the decided epoch, the followers which epoch they are in. With ZooKeeper the
// decision is the state node and its age is known. Without, it is the newest epoch in any broker's
// metadata, and an unfinished one is asked about again until it has been seen for OlderThan: the call then
// takes that long.
func (c *Client) Transitions(ctx context.Context, opts TransitionOptions) ([]model.Transition, []model.Problem, error) {
	if c.offline() {
		return c.transitionsFromDir(ctx, opts)
	}
	if opts.OlderThan <= 0 {
		opts.OlderThan = DefaultOlderThan
	}
	if !c.HasZooKeeper() {
		return c.transitionsByWatching(ctx, opts)
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	read := opts.first
	if read == nil {
		read = func(ctx context.Context) (*decisions, error) { return c.readDecisions(ctx, opts) }
	}
	d, err := read(ctx)
	if err != nil {
		return nil, nil, err
	}
	todo := d.states
	done := make([]model.Transition, 0, len(todo))
	for round := range rounds + 1 {
		if round > 0 {
			d.metadataEpochs = c.metadataEpochs(ctx, d, todo)
		}
		out := c.judge(ctx, d, todo, opts)
		var again []model.StateNode
		for i, t := range out {
			if t.State == model.TransitionDone {
				done = append(done, t)
			} else {
				again = append(again, todo[i])
			}
		}
		unfinished := slices.DeleteFunc(out, func(t model.Transition) bool { return t.State == model.TransitionDone })
		if len(again) == 0 || round == rounds {
			return report(append(done, unfinished...), opts), d.problems, nil
		}
		if todo, err = c.reread(ctx, again); err != nil { // out of time: what was seen is the answer
			return report(append(done, unfinished...), opts), d.problems, nil
		}
	}
	return report(done, opts), d.problems, nil
}

func report(ts []model.Transition, opts TransitionOptions) []model.Transition {
	out := ts[:0]
	for _, t := range ts {
		if opts.All || t.State != model.TransitionDone {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b model.Transition) int {
		return cluster.TopicPartition{Topic: a.Topic, Partition: a.Partition}.Compare(cluster.TopicPartition{Topic: b.Topic, Partition: b.Partition})
	})
	return out
}

// decisions is what Transitions judges.
type decisions struct {
	states          []model.StateNode
	alerts          map[cluster.TopicPartition]*model.Alert
	live            map[cluster.BrokerID]bool
	controllerEpoch cluster.ControllerEpoch
	firstSeen       map[cluster.TopicPartition]time.Time           // without ZooKeeper
	silent          map[cluster.BrokerID]error                     // brokers that did not answer in an earlier round
	metadataEpochs  map[cluster.TopicPartition]cluster.LeaderEpoch // newest in any broker's metadata; nil: not read
	problems        []model.Problem
}

func (c *Client) readDecisions(ctx context.Context, opts TransitionOptions) (*decisions, error) {
	z, err := c.readZKCluster(ctx)
	if err != nil {
		return nil, err
	}
	topics, states, problems, err := c.readZKTopics(ctx, topicsOf(opts.Targets))
	if err != nil {
		return nil, err
	}
	if err := c.checkTopics(ctx, &model.Snapshot{Topics: topics}, topicsOf(opts.Targets)); err != nil {
		return nil, err
	}
	alerts, err := c.readAlerts(ctx)
	if err != nil {
		return nil, err
	}
	d := &decisions{
		alerts: alerts, live: map[cluster.BrokerID]bool{}, silent: map[cluster.BrokerID]error{}, controllerEpoch: cluster.ControllerEpoch(z.controller.Epoch),
		problems: append(z.problems, problems...),
	}
	for i := range z.brokers {
		d.live[z.brokers[i].ID] = true
	}
	match := plan.Matcher(opts.Targets)
	for i := range states {
		if match(states[i].Topic, states[i].Partition) && (states[i].Err == "" || states[i].Missing) {
			d.states = append(d.states, states[i])
		}
	}
	// A partition that was never created is a row of the answer, not a part that is missing from it.
	d.problems = slices.DeleteFunc(d.problems, func(p model.Problem) bool { return p.Message == noStateNode })
	return d, nil
}

// reread reads the given state nodes again; those of partitions that are gone are left out.
func (c *Client) reread(ctx context.Context, nodes []model.StateNode) ([]model.StateNode, error) {
	at := map[string]int{}
	old := make(map[cluster.TopicPartition]*model.StateNode, len(nodes))
	var topics []model.Topic
	for i := range nodes {
		n := &nodes[i]
		k, ok := at[n.Topic]
		if !ok {
			k = len(topics)
			at[n.Topic] = k
			topics = append(topics, model.Topic{Name: n.Topic})
		}
		topics[k].Partitions = append(topics[k].Partitions, model.Partition{Topic: n.Topic, Partition: n.Partition, Replicas: n.Replicas})
		old[cluster.TopicPartition{Topic: n.Topic, Partition: n.Partition}] = n
	}
	fresh, _, err := c.readStates(ctx, topics)
	if err != nil {
		return nil, err
	}
	for i := range fresh {
		if was := old[cluster.TopicPartition{Topic: fresh[i].Topic, Partition: fresh[i].Partition}]; was.Missing && fresh[i].Missing {
			fresh[i].Mtime = was.Mtime // that of the topic
		}
	}
	return slices.DeleteFunc(fresh, func(n model.StateNode) bool { return n.Err != "" && !n.Missing }), nil
}

// judge asks the brokers about every state and returns one transition for each, in the same order.
func (c *Client) judge(ctx context.Context, d *decisions, states []model.StateNode, opts TransitionOptions) []model.Transition {
	obs := make([]model.Observation, len(states))
	byLeader := map[cluster.BrokerID][]int{}
	byFollower := map[cluster.BrokerID][]int{}
	for i := range states {
		n := &states[i]
		obs[i] = model.Observation{State: *n, Age: -1, MetadataEpoch: -1, FollowerEpoch: map[cluster.BrokerID]cluster.LeaderEpoch{}}
		if e, ok := d.metadataEpochs[cluster.TopicPartition{Topic: n.Topic, Partition: n.Partition}]; ok {
			obs[i].MetadataEpoch = e
		}
		if !n.Mtime.IsZero() {
			obs[i].Age = max(0, time.Since(n.Mtime))
		}
		if a := d.alerts[cluster.TopicPartition{Topic: n.Topic, Partition: n.Partition}]; a != nil && a.Epoch == n.LeaderEpoch {
			obs[i].Alert = a
		}
		switch {
		case n.Leader < 0:
		case !d.live[n.Leader]:
			obs[i].LeaderAnswer = model.AnswerNotRegistered
		default:
			byLeader[n.Leader] = append(byLeader[n.Leader], i)
		}
		for _, r := range n.Replicas {
			if n.Leader >= 0 && r != n.Leader && d.live[r] {
				byFollower[r] = append(byFollower[r], i)
			}
		}
	}
	followers := make(chan []followerEpoch, 1)
	go func() { followers <- c.askFollowers(ctx, obs, byFollower, d.silent) }()
	errs := c.askLeaders(ctx, obs, byLeader, d.silent)
	for _, a := range <-followers {
		obs[a.i].FollowerEpoch[a.id] = a.epoch
	}
	for id, err := range errs {
		if err != nil {
			d.silent[id] = err // the next round does not wait for it again
		}
	}
	tc := check.TransitionContext{Live: d.live, ControllerEpoch: d.controllerEpoch, OlderThan: opts.OlderThan}
	out := make([]model.Transition, len(obs))
	for i := range obs {
		if t, ok := d.firstSeen[cluster.TopicPartition{Topic: obs[i].State.Topic, Partition: obs[i].State.Partition}]; ok {
			obs[i].Age = time.Since(t)
		}
		out[i] = check.Transition(obs[i], tc)
	}
	return out
}

func (c *Client) askLeaders(ctx context.Context, obs []model.Observation, by map[cluster.BrokerID][]int, silent map[cluster.BrokerID]error) map[cluster.BrokerID]error {
	errs := c.eachBroker(ctx, keys(by), func(ctx context.Context, id cluster.BrokerID) error {
		if err := silent[id]; err != nil {
			return err
		}
		parts, epochs := partsOf(obs, by[id])
		got, err := c.listOffsets(ctx, id, asConsumer, parts, func(p *model.Partition) cluster.LeaderEpoch { return epochs[p.TP()] })
		if err != nil {
			return err
		}
		for k, i := range by[id] {
			obs[i].LeaderAnswer, obs[i].Detail = answerOf(got, parts[k].TP())
		}
		return nil
	})
	for id, idx := range by {
		for _, i := range idx {
			if errs[id] != nil {
				obs[i].LeaderAnswer, obs[i].Detail = model.AnswerUnreachable, short(errs[id])
			}
		}
	}
	return errs
}

// followerEpoch is the epoch in which a follower of observation i acts.
type followerEpoch struct {
	i     int
	id    cluster.BrokerID
	epoch cluster.LeaderEpoch
}

func (c *Client) askFollowers(ctx context.Context, obs []model.Observation, by map[cluster.BrokerID][]int, silent map[cluster.BrokerID]error) []followerEpoch {
	ids := keys(by)
	answers := make([][]followerEpoch, len(ids)) // one slot per broker: no two goroutines share one
	c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		if silent[id] != nil {
			return silent[id]
		}
		parts, _ := partsOf(obs, by[id])
		got, err := c.listOffsets(ctx, id, asDebugger, parts, anyEpoch)
		if err != nil {
			return err
		}
		slot := slices.Index(ids, id)
		for k, i := range by[id] {
			if a, ok := got[parts[k].TP()]; ok && a.code == 0 {
				answers[slot] = append(answers[slot], followerEpoch{i, id, a.epoch})
			}
		}
		return nil
	})
	return slices.Concat(answers...)
}

func keys(by map[cluster.BrokerID][]int) []cluster.BrokerID {
	ids := make([]cluster.BrokerID, 0, len(by))
	for id := range by {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func partsOf(obs []model.Observation, idx []int) ([]*model.Partition, map[cluster.TopicPartition]cluster.LeaderEpoch) {
	parts := make([]*model.Partition, len(idx))
	epochs := make(map[cluster.TopicPartition]cluster.LeaderEpoch, len(idx))
	for k, i := range idx {
		parts[k] = &model.Partition{Topic: obs[i].State.Topic, Partition: obs[i].State.Partition}
		epochs[parts[k].TP()] = obs[i].State.LeaderEpoch
	}
	return parts, epochs
}

// answerOf reads a leader's answer to ListOffsets with the decided epoch. OFFSET_NOT_AVAILABLE and
// LEADER_NOT_AVAILABLE come from a leader whose high watermark has yet to pass its epoch's start: it leads.
func answerOf(got map[cluster.TopicPartition]listed, tp cluster.TopicPartition) (model.Answer, string) {
	a, ok := got[tp]
	if !ok {
		return model.AnswerOther, "nothing about this partition"
	}
	switch a.code {
	case 0, kerr.OffsetNotAvailable.Code, kerr.LeaderNotAvailable.Code:
		return model.AnswerOK, ""
	case kerr.NotLeaderForPartition.Code, kerr.ReplicaNotAvailable.Code:
		return model.AnswerNotLeader, ""
	case kerr.UnknownLeaderEpoch.Code:
		return model.AnswerBehind, ""
	case kerr.FencedLeaderEpoch.Code:
		return model.AnswerAhead, ""
	case kerr.UnknownTopicOrPartition.Code:
		return model.AnswerNotHosted, ""
	case kerr.KafkaStorageError.Code:
		return model.AnswerStorageError, ""
	}
	return model.AnswerOther, short(brokerErr(kmsg.ListOffsets, a.code, nil))
}

// transitionsByWatching does without ZooKeeper: see Transitions.
func (c *Client) transitionsByWatching(ctx context.Context, opts TransitionOptions) ([]model.Transition, []model.Problem, error) {
	firstSeen := map[cluster.TopicPartition]time.Time{}
	epochs := map[cluster.TopicPartition]cluster.LeaderEpoch{}
	read := opts.first
	again := func(ctx context.Context) (*decisions, error) { return c.decisionsFromMetadata(ctx, opts) }
	if read == nil {
		read = again
	}
	var enough <-chan time.Time // nil: never
	if opts.watch > 0 {
		watch := time.NewTimer(opts.watch)
		defer watch.Stop()
		enough = watch.C
	}
	for ; ; read = again {
		d, err := read(ctx)
		if err != nil {
			return nil, nil, err
		}
		for i := range d.states {
			tp := cluster.TopicPartition{Topic: d.states[i].Topic, Partition: d.states[i].Partition}
			if e, ok := epochs[tp]; !ok || e != d.states[i].LeaderEpoch {
				epochs[tp], firstSeen[tp] = d.states[i].LeaderEpoch, time.Now()
			}
		}
		d.firstSeen = firstSeen
		out := c.judge(ctx, d, d.states, opts)
		pending := slices.ContainsFunc(out, func(t model.Transition) bool { return t.State == model.TransitionPending })
		if !pending {
			for i := range out {
				if out[i].State == model.TransitionDone {
					out[i].Age = -1
				}
			}
			return report(out, opts), d.problems, nil
		}
		select {
		case <-ctx.Done():
			return report(out, opts), d.problems, nil
		case <-enough:
			return report(out, opts), d.problems, nil
		case <-time.After(min(time.Second, max(opts.OlderThan/4, 50*time.Millisecond))):
		}
	}
}

// stateFromPartition is a state node as far as Metadata tells it.
func stateFromPartition(p *model.Partition) model.StateNode {
	return model.StateNode{
		Topic: p.Topic, Partition: p.Partition, Replicas: p.Replicas, ZKVersion: -1, Source: p.Source, Err: p.Err,
		LeaderAndISR: cluster.LeaderAndISR{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, ISR: p.ISR, ControllerEpoch: -1},
	}
}

// LeaderAndISR reads the state nodes of the targets. Without ZooKeeper it returns what Metadata tells, with
// unknown versions, and a problem that says so.
func (c *Client) LeaderAndISR(ctx context.Context, targets []plan.Target) ([]model.StateNode, []model.Problem, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	names := topicsOf(targets)
	if !c.HasZooKeeper() {
		s, err := c.Snapshot(ctx, SnapshotOptions{Topics: names})
		if err != nil {
			return nil, nil, err
		}
		if err := missingPartitions(s, targets); err != nil {
			return nil, nil, err
		}
		var out []model.StateNode
		match := plan.Matcher(targets)
		for i := range s.Topics {
			for j := range s.Topics[i].Partitions {
				if p := &s.Topics[i].Partitions[j]; match(p.Topic, p.Partition) {
					out = append(out, stateFromPartition(p))
				}
			}
		}
		return out, s.Problems, nil
	}
	if _, err := c.readZKCluster(ctx); err != nil { // says when there is no cluster below this chroot
		return nil, nil, err
	}
	topics, states, problems, err := c.readZKTopics(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	s := &model.Snapshot{Topics: topics}
	if err := c.checkTopics(ctx, s, names); err != nil {
		return nil, nil, err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, err
	}
	match := plan.Matcher(targets)
	return slices.DeleteFunc(states, func(n model.StateNode) bool { return !match(n.Topic, n.Partition) }), problems, nil
}

// Health reads what a health check needs, all at once, and judges it.
func (c *Client) Health(ctx context.Context, olderThan time.Duration) ([]model.Finding, *model.Snapshot, error) {
	if c.offline() {
		return c.healthFromDir(ctx, olderThan)
	}
	var ts []model.Transition
	var tsErr error
	var wg sync.WaitGroup
	if c.HasZooKeeper() {
		wg.Go(func() { ts, _, tsErr = c.Transitions(ctx, TransitionOptions{OlderThan: olderThan}) })
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{MinISR: true, Reassignments: true, Probe: true, Controller: true})
	wg.Wait()
	if err != nil {
		return nil, nil, err
	}
	if tsErr != nil {
		s.Problems = append(s.Problems, model.Problem{Object: "transitions", Message: tsErr.Error()})
	}
	return check.Health(check.Input{Snapshot: s, Transitions: ts}), s, nil
}

// ErrNoBroker makes the error for a broker id that nobody knows.
func ErrNoBroker(id int32, s *model.Snapshot) error {
	var have []cluster.BrokerID
	for i := range s.Brokers {
		have = append(have, s.Brokers[i].ID)
	}
	return &Error{Kind: NotFound, Msg: fmt.Sprintf("broker %d does not exist: there are %s", id, check.IDList(have))}
}
