package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// SnapshotOptions says how much of the cluster is read.
type SnapshotOptions struct {
	Topics        []string     // nil: every topic
	NoTopics      bool         // brokers and controller only
	MinISR        bool         // read min.insync.replicas of every topic
	Reassignments bool         // read adding and removing replicas
	Probe         bool         // ask every broker whether it serves
	Controller    bool         // find the controller in KRaft mode too, where Metadata names any broker
	Source        model.Source // force one source; empty: protocol, else ZooKeeper
	Newest        bool         // ask every broker about the topics, for verbs that decide on the answer: see newest
	NoZooKeeper   bool         // do not add what ZooKeeper knows of brokers and controller
}

// Snapshot reads the cluster. Brokers that are named in replica lists but not registered are rows with
// Live false. When the brokers cannot be reached but ZooKeeper can, the answer comes from there and
// Problems says so. Missing topics of opts.Topics are an error of kind NotFound that names the nearest.
func (c *Client) Snapshot(ctx context.Context, opts SnapshotOptions) (*model.Snapshot, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	s, err := c.snapshot(ctx, opts)
	if err != nil {
		return nil, err
	}
	return s, c.checkTopics(ctx, s, opts.Topics)
}

func (c *Client) snapshot(ctx context.Context, opts SnapshotOptions) (*model.Snapshot, error) {
	if c.cfg.FromDir != "" {
		opts.Source, opts.Probe = model.SourceZooKeeper, false
	}
	if opts.Source == model.SourceZooKeeper {
		return c.snapshotZooKeeper(ctx, opts)
	}
	var z *zkCluster
	var zkErr error
	var g errgroup.Group
	if c.HasZooKeeper() && !opts.NoZooKeeper {
		g.Go(func() error { z, zkErr = c.readZKCluster(ctx); return nil })
	}
	s, err := c.snapshotProtocol(ctx, opts)
	_ = g.Wait() // its function returns nil
	if err != nil {
		// Without bootstrap servers the brokers were looked for in ZooKeeper: asking it again brings nothing
		// new unless it answered.
		if opts.Source == model.SourceProtocol || !c.HasZooKeeper() || len(c.cfg.Bootstrap) == 0 && c.zookeeperFailed() {
			return nil, err
		}
		fromZK, zerr := c.snapshotZooKeeper(ctx, opts)
		if zerr != nil && len(c.cfg.Bootstrap) == 0 {
			return nil, zerr // there is no second source: the brokers were looked for there too
		}
		if zerr != nil {
			return nil, errors.Join(err, zerr)
		}
		fromZK.Problems = append(fromZK.Problems, model.Problem{Object: "brokers", Message: err.Error()})
		return fromZK, nil
	}
	if zkErr != nil {
		s.Problems = append(s.Problems, model.Problem{Object: "zookeeper", Message: zkErr.Error()})
	}
	if z != nil {
		if z.clusterID != "" && s.ClusterID != "" && z.clusterID != s.ClusterID {
			return nil, &Error{
				Kind: Failed, Msg: fmt.Sprintf("the brokers belong to cluster %s, ZooKeeper %s to cluster %s", s.ClusterID, c.cfg.ZooKeeper, z.clusterID),
				Hint: "check -b and -z (also KCTL_BOOTSTRAP_SERVER and KCTL_ZOOKEEPER)",
			}
		}
		merge(s, z)
	}
	addDeadBrokers(s)
	return s, nil
}

func (c *Client) snapshotProtocol(ctx context.Context, opts SnapshotOptions) (*model.Snapshot, error) {
	names := opts.Topics
	if opts.NoTopics {
		names = []string{}
	}
	m, err := c.metadata(ctx, names)
	if err != nil {
		return nil, err
	}
	s := &model.Snapshot{At: time.Now(), Source: model.SourceProtocol}
	s.Brokers, s.Topics, s.Controller, s.ClusterID = fromMetadata(m)
	if opts.Newest && len(s.Topics) > 0 {
		c.newest(ctx, s, names)
	}
	var g errgroup.Group
	var configErr, moveErr, quorumErr error
	var quorum *model.Controller
	var mins map[string]int
	var moves map[cluster.TopicPartition]cluster.Assignment
	if opts.MinISR && len(s.Topics) > 0 {
		g.Go(func() error { mins, configErr = c.minISR(ctx, s.Topics); return nil })
	}
	if opts.Reassignments && !opts.NoTopics {
		g.Go(func() error {
			moves, moveErr = c.reassignmentsSoon(ctx)
			return nil
		})
	}
	if opts.Probe {
		g.Go(func() error { c.probeAll(ctx, s.Brokers); return nil })
	}
	if opts.Controller {
		g.Go(func() error { quorum, quorumErr = c.quorumController(ctx); return nil })
	}
	_ = g.Wait() // the functions return nil; their errors are parts that are missing
	setController(s, quorum)
	for _, e := range []struct {
		what string
		err  error
	}{{"topic configs", configErr}, {"reassignments", moveErr}, {"controller", quorumErr}} {
		if e.err != nil {
			s.Problems = append(s.Problems, model.Problem{Object: e.what, Message: short(e.err)})
		}
	}
	fill(s, mins, moves)
	return s, nil
}

// fill adds effective minimum ISRs and running reassignments to the partitions.
func fill(s *model.Snapshot, mins map[string]int, moves map[cluster.TopicPartition]cluster.Assignment) {
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			if n, ok := mins[p.Topic]; ok && len(p.Replicas) > 0 {
				p.MinISR = min(n, len(p.Replicas)) // the broker's rule: never more than there are replicas
			}
			if a, ok := moves[p.TP()]; ok {
				p.Adding, p.Removing = a.Adding, a.Removing
			}
		}
	}
}

// probeAll asks every broker at once.
func (c *Client) probeAll(ctx context.Context, brokers []model.Broker) {
	ids := make([]cluster.BrokerID, len(brokers))
	for i := range brokers {
		ids[i] = brokers[i].ID
	}
	sees := make([]cluster.BrokerID, len(ids)) // one slot per broker: no two goroutines share one
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) (err error) {
		sees[slices.Index(ids, id)], err = c.probe(ctx, id)
		return err
	})
	for i := range brokers {
		brokers[i].Asked, brokers[i].Sees, brokers[i].Err = true, sees[i], short(errs[brokers[i].ID])
	}
}

// configsChunk bounds the topics of one DescribeConfigs request, and with it the answer.
const configsChunk = 2000

// minISR reads min.insync.replicas of topics. Those that could be read are returned with an error too.
func (c *Client) minISR(ctx context.Context, topics []model.Topic) (map[string]int, error) {
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}
	out := make(map[string]int, len(topics))
	err := c.eachTopicConfig(ctx, names, []string{"min.insync.replicas"}, func(resp *kmsg.DescribeConfigsResponse) { minISRs(resp, out) })
	return out, err
}

// eachTopicConfig asks one broker after the other request for settings of topics, many with each, and hands the answers
// to take. The error says how many topics were asked about in vain, and why; one that went away meanwhile is none.
func (c *Client) eachTopicConfig(ctx context.Context, names, settings []string, take func(*kmsg.DescribeConfigsResponse)) error {
	var first error
	refused := 0
	for chunk := range slices.Chunk(names, configsChunk) {
		resp, err := c.askAny(ctx, func() kmsg.Request { return configsRequest(kmsg.ConfigResourceTypeTopic, chunk, settings) })
		if err != nil {
			return err
		}
		found := resp.(*kmsg.DescribeConfigsResponse)
		take(found)
		for i := range found.Resources {
			r := &found.Resources[i]
			if err := brokerErr(kmsg.DescribeConfigs, r.ErrorCode, r.ErrorMessage); err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
				refused++
				first = cmp.Or(first, err)
			}
		}
	}
	return wrap(first, "of %d topics not read", refused)
}

func minISRs(resp *kmsg.DescribeConfigsResponse, out map[string]int) {
	for _, r := range resp.Resources {
		if r.ErrorCode != 0 {
			continue // eachTopicConfig tells
		}
		for _, cfg := range r.Configs {
			if cfg.Name == "min.insync.replicas" && cfg.Value != nil {
				if n, err := strconv.Atoi(*cfg.Value); err == nil {
					out[r.ResourceName] = n
				}
			}
		}
	}
}

// reassignmentsSoon is reassignments as one part of many: a controller that is gone does not hold up the rest.
func (c *Client) reassignmentsSoon(ctx context.Context) (map[cluster.TopicPartition]cluster.Assignment, error) {
	ctx, cancel := context.WithTimeout(ctx, c.brokerTimeout())
	defer cancel()
	return c.reassignments(ctx)
}

// reassignments asks the controller for those under way; brokers that do not know the request have none.
func (c *Client) reassignments(ctx context.Context) (map[cluster.TopicPartition]cluster.Assignment, error) {
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	if ok, err := c.supports(ctx, req.Key()); err != nil || !ok {
		return nil, err
	}
	resp, err := c.questionController(ctx, req, func(r kmsg.Response) bool {
		return r.(*kmsg.ListPartitionReassignmentsResponse).ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ListPartitionReassignmentsResponse)
	if err := brokerErr(kmsg.ListPartitionReassignments, r.ErrorCode, r.ErrorMessage); err != nil {
		return nil, err
	}
	out := map[cluster.TopicPartition]cluster.Assignment{}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			out[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = cluster.Assignment{
				Replicas: cluster.IDsFromInt32(p.Replicas), Adding: cluster.IDsFromInt32(p.AddingReplicas),
				Removing: cluster.IDsFromInt32(p.RemovingReplicas),
			}
		}
	}
	return out, nil
}

func (c *Client) snapshotZooKeeper(ctx context.Context, opts SnapshotOptions) (*model.Snapshot, error) {
	z, err := c.readZKCluster(ctx)
	if err != nil {
		return nil, err
	}
	s := &model.Snapshot{
		At: time.Now(), ClusterID: z.clusterID, Controller: z.controller, Brokers: z.brokers,
		Problems: z.problems, Source: model.SourceZooKeeper, ZooKeeper: true,
	}
	if !opts.NoTopics {
		topics, _, problems, err := c.readZKTopics(ctx, opts.Topics)
		if err != nil {
			return nil, err
		}
		s.Topics, s.Problems = topics, append(s.Problems, problems...)
		if opts.MinISR {
			if err := c.zkMinISR(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	if opts.Probe {
		c.probeAll(ctx, s.Brokers)
	}
	markDeleting(s, z)
	addDeadBrokers(s)
	return s, nil
}

// zkMinISR reads the topics' own min.insync.replicas; a topic without one is taken as 1, Kafka's default
// (a broker's server.properties cannot be seen in ZooKeeper).
func (c *Client) zkMinISR(ctx context.Context, s *model.Snapshot) error {
	reqs := make([]zkop.Request, len(s.Topics))
	for i := range s.Topics {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.ConfigEntityPath(znode.TopicConfig, s.Topics[i].Name)}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return err
	}
	mins := make(map[string]int, len(rs))
	for i, r := range rs {
		name := s.Topics[i].Name
		mins[name] = 1
		cfg, err := znode.DecodeConfig(znode.TopicConfig, name, r.Data)
		if r.Err != nil || err != nil {
			continue
		}
		if n, err := strconv.Atoi(cfg.Values["min.insync.replicas"]); err == nil {
			mins[name] = n
		}
	}
	fill(s, mins, nil)
	return nil
}

// merge adds what only ZooKeeper knows to a snapshot of the protocol. ZooKeeper's registrations decide who
// is live: the protocol's list is a broker's copy.
func merge(s *model.Snapshot, z *zkCluster) {
	s.ZooKeeper = true
	s.Problems = append(s.Problems, z.problems...)
	if z.controller.ID >= 0 || s.Controller.ID < 0 {
		s.Controller = z.controller
	} else {
		// Brokers still name a controller whose node is gone.
		s.Controller = model.Controller{ID: cluster.NoLeader, Epoch: z.controller.Epoch, Source: model.SourceZooKeeper}
	}
	if s.ClusterID == "" {
		s.ClusterID = z.clusterID
	}
	known := map[cluster.BrokerID]*model.Broker{}
	for i := range s.Brokers {
		s.Brokers[i].Live = false
		known[s.Brokers[i].ID] = &s.Brokers[i]
	}
	for i := range z.brokers {
		zb := &z.brokers[i]
		b := known[zb.ID]
		if b == nil {
			s.Brokers = append(s.Brokers, *zb)
			continue
		}
		b.Live, b.Epoch, b.Registered, b.Endpoints = true, zb.Epoch, zb.Registered, zb.Endpoints
		if b.Rack == "" {
			b.Rack = zb.Rack
		}
	}
	for i := range s.Brokers {
		s.Brokers[i].Controller = s.Brokers[i].ID == s.Controller.ID
	}
	sortBrokers(s)
	markDeleting(s, z)
}

func markDeleting(s *model.Snapshot, z *zkCluster) {
	for i := range s.Topics {
		s.Topics[i].Deleting = z.deleting[s.Topics[i].Name]
	}
}

func sortBrokers(s *model.Snapshot) {
	slices.SortFunc(s.Brokers, func(a, b model.Broker) int { return int(a.ID) - int(b.ID) })
}

// addDeadBrokers adds a row for every id that replica lists name and nobody registered, and fills the
// offline replicas that ZooKeeper's nodes do not carry.
func addDeadBrokers(s *model.Snapshot) {
	live := map[cluster.BrokerID]bool{}
	for i := range s.Brokers {
		live[s.Brokers[i].ID] = s.Brokers[i].Live
	}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			for _, r := range p.Replicas {
				if _, ok := live[r]; !ok {
					live[r] = false
					s.Brokers = append(s.Brokers, model.Broker{ID: r, Epoch: cluster.NoBrokerEpoch, Source: s.Source})
				}
				if s.Source == model.SourceZooKeeper && !live[r] {
					p.Offline = append(p.Offline, r)
				}
			}
		}
	}
	sortBrokers(s)
}

// checkTopics refuses names that do not exist, and drops their empty rows.
func (c *Client) checkTopics(ctx context.Context, s *model.Snapshot, want []string) error {
	if want == nil {
		return nil
	}
	at := make(map[string]int, len(s.Topics))
	for i := range s.Topics {
		at[s.Topics[i].Name] = i
	}
	var missing []string
	for _, name := range want {
		i, found := at[name]
		if !found {
			i = -1
		}
		if i < 0 || len(s.Topics[i].Partitions) == 0 && s.Topics[i].Err != "" {
			if i >= 0 && s.Topics[i].Err != short(kerr.UnknownTopicOrPartition) {
				return topicErr(&s.Topics[i])
			}
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return c.unknownTopic(ctx, missing)
}

func topicErr(t *model.Topic) error {
	if t.Err == short(kerr.TopicAuthorizationFailed) {
		return wrap(needs(kmsg.Metadata, kerr.TopicAuthorizationFailed), "topic %s", t.Name)
	}
	return &Error{Kind: Failed, Msg: fmt.Sprintf("topic %s: %s", t.Name, t.Err)}
}

// unknownTopic makes the error for topics that do not exist, with the nearest existing name.
func (c *Client) unknownTopic(ctx context.Context, missing []string) error {
	e := &Error{Kind: NotFound, Msg: fmt.Sprintf("topic %s does not exist", strings.Join(missing, ", "))}
	if len(missing) > 1 {
		e.Msg = fmt.Sprintf("topics %s do not exist", strings.Join(missing, ", "))
	}
	if names, err := c.TopicNames(ctx); err == nil {
		if near, ok := plan.Nearest(missing[0], names); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return e
}

// TopicNames lists the names of all topics, sorted; for completion and suggestions.
func (c *Client) TopicNames(ctx context.Context) ([]string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	s, err := c.snapshot(ctx, SnapshotOptions{NoZooKeeper: true})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(s.Topics))
	for i := range s.Topics {
		names[i] = s.Topics[i].Name
	}
	return names, nil
}
