package admin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// readViews asks every live broker for its metadata of all topics and for its API versions.
func (r *factsReader) readViews(ctx context.Context) {
	ids := r.liveIDs()
	views := make([]check.View, len(ids)) // one slot per broker: no two goroutines share one
	slots := metadataSlots(r.f.Snapshot)
	errs := r.c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		v := &views[slices.Index(ids, id)]
		v.Broker = id
		slots <- struct{}{}
		defer func() { <-slots }()
		resp, err := r.c.askBroker(ctx, id, metadataRequest(nil))
		if err != nil {
			v.Err = short(err)
			return err
		}
		brokers, topics, ctl, clusterID := fromMetadata(resp.(*kmsg.MetadataResponse))
		shareTopics(topics, r.f.Snapshot.Topics)
		v.ClusterID, v.Controller, v.Topics = clusterID, ctl.ID, topics
		for i := range brokers {
			v.Live = append(v.Live, brokers[i].ID)
		}
		if resp, err := r.c.askBroker(ctx, id, apiVersionsRequest()); err == nil { // else the versions stay unknown
			v.Versions = map[int16]int16{}
			for _, k := range resp.(*kmsg.ApiVersionsResponse).ApiKeys {
				v.Versions[k.ApiKey] = k.MaxVersion
			}
		}
		return nil
	})
	r.f.Views = views
	r.brokerProblems(errs)
}

// applyViews gives the snapshot's brokers what they answered, as a probe would, and the partitions their minimum ISR and
// reassignment.
func (r *factsReader) applyViews() {
	for i := range r.f.Snapshot.Brokers {
		b := &r.f.Snapshot.Brokers[i]
		for j := range r.f.Views {
			if v := &r.f.Views[j]; v.Broker == b.ID {
				b.Asked, b.Err, b.Sees = true, v.Err, v.Controller
			}
		}
	}
	mins := map[string]int{}
	for topic, c := range r.f.TopicConfigs {
		if n, err := strconv.Atoi(c["min.insync.replicas"].Text); err == nil {
			mins[topic] = n
		}
	}
	fill(r.f.Snapshot, mins, r.moves)
}

// readConfigs reads the settings that checks look at: of all topics from one broker, of each broker from itself.
func (r *factsReader) readConfigs(ctx context.Context) error {
	var wg sync.WaitGroup
	ids := r.liveIDs()
	brokers := make([]check.Config, len(ids)) // one slot per broker: no two goroutines share one
	wg.Go(func() {
		errs := r.c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
			name := strconv.Itoa(int(id))
			resp, err := r.c.askBroker(ctx, id, configsRequest(kmsg.ConfigResourceTypeBroker, []string{name}, check.BrokerConfigNames()))
			if err == nil {
				brokers[slices.Index(ids, id)] = configsOf(resp.(*kmsg.DescribeConfigsResponse))[name]
			}
			return err
		})
		r.brokerProblems(errs)
	})
	var topicErr error
	wg.Go(func() {
		names := topicNames(r.f.Snapshot)
		if len(names) == 0 {
			return
		}
		all := make(map[string]check.Config, len(names))
		err := r.c.eachTopicConfig(ctx, names, check.TopicConfigNames(), func(resp *kmsg.DescribeConfigsResponse) { maps.Copy(all, configsOf(resp)) })
		if err != nil && len(all) == 0 {
			topicErr = err
			return
		}
		r.f.TopicConfigs = all
		if err != nil {
			r.problem(model.Problem{Object: "topic configs", Message: short(err)})
		}
	})
	wg.Wait()
	r.f.BrokerConfigs = map[cluster.BrokerID]check.Config{}
	for i, id := range ids {
		if brokers[i] != nil {
			r.f.BrokerConfigs[id] = brokers[i]
		}
	}
	return topicErr
}

// topicNames are those of topics with partitions.
func topicNames(s *model.Snapshot) []string {
	var names []string
	for i := range s.Topics {
		if len(s.Topics[i].Partitions) > 0 {
			names = append(names, s.Topics[i].Name)
		}
	}
	return names
}

func configsRequest(kind kmsg.ConfigResourceType, names, settings []string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, n := range names {
		res := kmsg.NewDescribeConfigsRequestResource()
		res.ResourceType, res.ResourceName, res.ConfigNames = kind, n, settings
		req.Resources = append(req.Resources, res)
	}
	return req
}

func configsOf(resp *kmsg.DescribeConfigsResponse) map[string]check.Config {
	out := make(map[string]check.Config, len(resp.Resources))
	for _, res := range resp.Resources {
		if res.ErrorCode != 0 {
			continue // it went away, or may not be seen: eachTopicConfig tells
		}
		c := check.Config{}
		for _, e := range res.Configs {
			if e.Value != nil && !e.IsSensitive {
				own := e.Source == kmsg.ConfigSourceDynamicTopicConfig || e.Source == kmsg.ConfigSourceDynamicBrokerConfig
				c[e.Name] = check.Value{Text: *e.Value, Own: own}
			}
		}
		out[res.ResourceName] = c
	}
	return out
}

// readDirs asks every broker what it has on disk.
func (r *factsReader) readDirs(ctx context.Context) {
	ids := r.liveIDs()
	dirs := make([][]check.LogDir, len(ids)) // one slot per broker: no two goroutines share one
	errs := r.c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = nil // all
		resp, err := r.c.askBroker(ctx, id, req)
		if err != nil {
			return err
		}
		body := resp.(*kmsg.DescribeLogDirsResponse)
		if err := brokerErr(kmsg.DescribeLogDirs, body.ErrorCode, nil); err != nil {
			return err
		}
		for i := range body.Dirs {
			dirs[slices.Index(ids, id)] = append(dirs[slices.Index(ids, id)], logDirOf(id, &body.Dirs[i]))
		}
		return nil
	})
	r.brokerProblems(errs)
	r.f.Dirs = slices.Concat(dirs...)
}

func logDirOf(id cluster.BrokerID, d *kmsg.DescribeLogDirsResponseDir) check.LogDir {
	out := check.LogDir{Broker: id, Path: d.Dir, Total: d.TotalBytes, Usable: d.UsableBytes, Err: short(brokerErr(kmsg.DescribeLogDirs, d.ErrorCode, nil))}
	for i := range d.Topics {
		for j := range d.Topics[i].Partitions {
			p := &d.Topics[i].Partitions[j]
			out.Replicas = append(out.Replicas, check.DirReplica{
				TP: cluster.TopicPartition{Topic: d.Topics[i].Topic, Partition: p.Partition}, Size: p.Size, Future: p.IsFuture,
			})
		}
	}
	return out
}

// readGroups asks every broker for its groups, then for the topics of which each holds offsets.
func (r *factsReader) readGroups(ctx context.Context) error {
	if ok, err := r.c.supports(ctx, kmsg.NewPtrOffsetFetchRequest().Key()); err != nil || !ok {
		return err
	}
	batch := r.c.maxVersion(kmsg.NewPtrOffsetFetchRequest().Key()) >= 8
	ids := r.liveIDs()
	groups := make([][]check.Group, len(ids)) // one slot per broker: no two goroutines share one
	errs := r.c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		resp, err := r.c.askBroker(ctx, id, kmsg.NewPtrListGroupsRequest())
		if err != nil {
			return err
		}
		l := resp.(*kmsg.ListGroupsResponse)
		if err := brokerErr(kmsg.ListGroups, l.ErrorCode, nil); err != nil {
			if errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.CoordinatorNotAvailable) {
				return nil // it has just become a coordinator
			}
			return err
		}
		var mine []check.Group
		for i := range l.Groups {
			mine = append(mine, check.Group{Name: l.Groups[i].Group, State: l.Groups[i].GroupState})
		}
		r.c.offsetTopics(ctx, id, mine, batch)
		groups[slices.Index(ids, id)] = mine
		return nil
	})
	r.brokerProblems(errs)
	r.f.Groups = slices.Concat(groups...)
	return nil
}

// maxVersion is the highest version of an API key that the brokers serve; -1 when none or not asked.
func (c *Client) maxVersion(key int16) int16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.keys[key]; ok {
		return v
	}
	return -1
}

// offsetTopics fills the topics of groups: one request for all where the broker can (OffsetFetch 8), else one each.
func (c *Client) offsetTopics(ctx context.Context, id cluster.BrokerID, groups []check.Group, batch bool) {
	if len(groups) == 0 {
		return
	}
	if !batch {
		for i := range groups {
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Group, req.Topics = groups[i].Name, nil
			resp, err := c.askBroker(ctx, id, req)
			if err != nil {
				groups[i].Err = short(err)
				continue
			}
			body := resp.(*kmsg.OffsetFetchResponse)
			groups[i].Err = short(brokerErr(kmsg.OffsetFetch, body.ErrorCode, nil))
			for _, t := range body.Topics {
				groups[i].Topics = append(groups[i].Topics, t.Topic)
			}
		}
		return
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	for i := range groups {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.Topics = groups[i].Name, nil
		req.Groups = append(req.Groups, g)
	}
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		for i := range groups {
			groups[i].Err = short(err)
		}
		return
	}
	at := make(map[string]int, len(groups))
	for i := range groups {
		at[groups[i].Name] = i
	}
	for _, g := range resp.(*kmsg.OffsetFetchResponse).Groups {
		i, ok := at[g.Group]
		if !ok {
			continue
		}
		groups[i].Err = short(brokerErr(kmsg.OffsetFetch, g.ErrorCode, nil))
		for _, t := range g.Topics {
			groups[i].Topics = append(groups[i].Topics, t.Topic)
		}
	}
}
