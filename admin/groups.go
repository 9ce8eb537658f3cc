package admin

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// API keys of the newer kinds of groups; a broker that does not list one has no such groups.
const (
	keyConsumerGroupDescribe = 69
	keyShareGroupDescribe    = 77
	keyStreamsGroupDescribe  = 89
)

// GroupFilter says which groups are listed; empty lists mean all. Words are compared without case.
type GroupFilter struct {
	States []string
	Types  []string
}

func (f GroupFilter) keeps(g *model.Group) bool {
	in := func(words []string, w string) bool {
		return len(words) == 0 || slices.ContainsFunc(words, func(x string) bool { return strings.EqualFold(x, w) })
	}
	return in(f.States, g.State) && in(f.Types, string(g.Type))
}

// Groups lists the groups of all coordinators, sorted by id: one request to each broker, all at once. A broker
// that does not answer is a problem; the groups that it coordinates are missing then.
func (c *Client) Groups(ctx context.Context, f GroupFilter) ([]model.Group, []model.Problem, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	ids, err := c.brokerIDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	found := make([][]model.Group, len(ids))
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		gs, err := c.groupsOf(ctx, id)
		found[slices.Index(ids, id)] = gs // one slot per broker
		return err
	})
	problems, err := brokerProblems(ids, errs, "list groups")
	if err != nil {
		return nil, nil, err
	}
	all := slices.Concat(found...)
	if err := c.fillStates(ctx, all); err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(g model.Group) bool { return !f.keeps(&g) })
	slices.SortFunc(all, func(a, b model.Group) int { return strings.Compare(a.ID, b.ID) })
	return all, problems, nil
}

// brokerIDs are the registered brokers, sorted.
func (c *Client) brokerIDs(ctx context.Context) ([]cluster.BrokerID, error) {
	m, err := c.metadata(ctx, []string{})
	if err != nil {
		return nil, err
	}
	ids := make([]cluster.BrokerID, len(m.Brokers))
	for i := range m.Brokers {
		ids[i] = cluster.BrokerID(m.Brokers[i].NodeID)
	}
	slices.Sort(ids)
	return ids, nil
}

// brokerProblems makes a problem of each broker's error; when all failed there is no answer but the first.
func brokerProblems(ids []cluster.BrokerID, errs map[cluster.BrokerID]error, what string) ([]model.Problem, error) {
	var problems []model.Problem
	var first error
	for _, id := range ids {
		if err := errs[id]; err != nil {
			problems = append(problems, model.Problem{Object: brokerName(id), Message: short(err)})
			if first == nil {
				first = wrap(err, "%s of %s", what, brokerName(id))
			}
		}
	}
	if len(ids) > 0 && len(problems) == len(ids) {
		return nil, first
	}
	return problems, nil
}

func (c *Client) groupsOf(ctx context.Context, id cluster.BrokerID) ([]model.Group, error) {
	resp, err := c.askBroker(ctx, id, kmsg.NewPtrListGroupsRequest())
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.ListGroupsResponse)
	if err := brokerErr(kmsg.ListGroups, r.ErrorCode, nil); err != nil {
		return nil, err
	}
	out := make([]model.Group, len(r.Groups))
	for i, g := range r.Groups {
		out[i] = model.Group{
			ID: g.Group, Type: model.GroupClassic, State: g.GroupState, ProtocolType: g.ProtocolType, Coordinator: id,
			Epoch: -1, TargetEpoch: -1,
		}
		if g.GroupType != "" {
			out[i].Type = model.GroupType(strings.ToLower(g.GroupType))
		}
	}
	return out, nil
}

// fillStates describes the groups of brokers that do not list states (before KIP-518).
func (c *Client) fillStates(ctx context.Context, gs []model.Group) error {
	var ids []string
	for i := range gs {
		if gs[i].State == "" {
			ids = append(ids, gs[i].ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	described, err := c.DescribeGroups(ctx, ids)
	if err != nil {
		return err
	}
	by := make(map[string]*model.Group, len(described))
	for i := range described {
		by[described[i].ID] = &described[i]
	}
	for i := range gs {
		if d := by[gs[i].ID]; gs[i].State == "" && d != nil {
			gs[i].State, gs[i].Err = d.State, d.Err
		}
	}
	return nil
}

// DescribeGroups asks the coordinators about groups, one request each, in the order of ids. A group that does
// not exist has the state Dead; one that could not be described has Err. Groups of the consumer protocol are
// asked for first, as Apache Kafka's own client does, then those left as classic, share and streams groups.
func (c *Client) DescribeGroups(ctx context.Context, ids []string) ([]model.Group, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	found := map[string]*model.Group{}
	left := slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, kind := range []struct {
		key int16
		ask func(context.Context, cluster.BrokerID, []string) (map[string]groupAnswer, error)
	}{
		{keyConsumerGroupDescribe, c.describeConsumer}, {15, c.describeClassic},
		{keyShareGroupDescribe, c.describeShare}, {keyStreamsGroupDescribe, c.describeStreams},
	} {
		if len(left) == 0 {
			break
		}
		ok, err := c.supports(ctx, kind.key)
		if err != nil {
			return nil, err
		}
		if ok {
			left = c.describeAs(ctx, left, kind.ask, found)
		}
	}
	out := make([]model.Group, len(ids))
	for i, id := range ids {
		out[i] = model.Group{ID: id, Type: model.GroupClassic, State: model.GroupDead, Coordinator: cluster.NoLeader, Epoch: -1, TargetEpoch: -1}
		if g := found[id]; g != nil {
			out[i] = *g
		}
	}
	return out, nil
}

// groupAnswer is what one way of describing says of one group.
type groupAnswer struct {
	group model.Group
	code  int16
	msg   *string
}

// describeAs asks in one way, keeps what was found and returns the ids that are not groups of that kind.
func (c *Client) describeAs(ctx context.Context, ids []string, ask func(context.Context, cluster.BrokerID, []string) (map[string]groupAnswer, error), found map[string]*model.Group) []string {
	answers := newAnswers[groupAnswer]()
	errs := c.perCoordinator(ctx, forGroups, ids, func(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]int16, error) {
		got, err := ask(ctx, id, keys)
		codes := make(map[string]int16, len(got))
		for k, a := range got {
			a.group.Coordinator = id
			answers.set(k, a)
			codes[k] = a.code
		}
		return codes, err
	})
	var left []string
	for _, id := range ids {
		a, ok := answers.get(id)
		switch {
		case errs[id] != nil:
			found[id] = &model.Group{ID: id, Type: model.GroupClassic, Coordinator: cluster.NoLeader, Epoch: -1, TargetEpoch: -1, Err: short(errs[id])}
		case !ok, a.code == kerr.GroupIDNotFound.Code, a.code == kerr.UnsupportedVersion.Code, a.group.State == model.GroupDead:
			left = append(left, id)
		default:
			if err := brokerErr(kmsg.DescribeGroups, a.code, a.msg); err != nil {
				a.group.Err = short(err)
			}
			found[id] = &a.group
		}
	}
	return left
}

func (c *Client) describeClassic(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]groupAnswer, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = keys
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	out := map[string]groupAnswer{}
	for _, g := range resp.(*kmsg.DescribeGroupsResponse).Groups {
		mg := model.Group{ID: g.Group, Type: model.GroupClassic, State: g.State, ProtocolType: g.ProtocolType, Protocol: g.Protocol, Epoch: -1, TargetEpoch: -1}
		for _, m := range g.Members {
			mm := model.GroupMember{ID: m.MemberID, ClientID: m.ClientID, Host: hostOf(m.ClientHost), Epoch: -1, InstanceID: deref(m.InstanceID)}
			if g.ProtocolType == "consumer" {
				mm.Assigned, mm.Subscribed = classicAssignment(m.MemberAssignment), classicSubscription(m.ProtocolMetadata)
			}
			mg.Members = append(mg.Members, mm)
		}
		sortMembers(mg.Members)
		out[g.Group] = groupAnswer{mg, g.ErrorCode, g.ErrorMessage}
	}
	return out, nil
}

// classicAssignment decodes what the leader of a classic group gave a member; bytes that are none give nil.
func classicAssignment(data []byte) []cluster.TopicPartition {
	var a kmsg.ConsumerMemberAssignment
	if len(data) == 0 || a.ReadFrom(data) != nil {
		return nil
	}
	var out []cluster.TopicPartition
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			out = append(out, cluster.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	sortPartitions(out)
	return out
}

func classicSubscription(data []byte) []string {
	var m kmsg.ConsumerMemberMetadata
	if len(data) == 0 || m.ReadFrom(data) != nil {
		return nil
	}
	return slices.Sorted(slices.Values(m.Topics))
}

func (c *Client) describeConsumer(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]groupAnswer, error) {
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Groups = keys
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	out := map[string]groupAnswer{}
	for _, g := range resp.(*kmsg.ConsumerGroupDescribeResponse).Groups {
		mg := model.Group{
			ID: g.Group, Type: model.GroupConsumer, State: g.State, ProtocolType: "consumer", Protocol: g.AssignorName,
			Epoch: g.Epoch, TargetEpoch: g.AssignmentEpoch,
		}
		for _, m := range g.Members {
			mg.Members = append(mg.Members, model.GroupMember{
				ID: m.MemberID, InstanceID: deref(m.InstanceID), ClientID: m.ClientID, Host: hostOf(m.ClientHost), Rack: deref(m.RackID),
				Epoch: m.MemberEpoch, Subscribed: m.SubscribedTopics, Assigned: assigned(m.Assignment), Target: assigned(m.TargetAssignment),
			})
		}
		sortMembers(mg.Members)
		out[g.Group] = groupAnswer{mg, g.ErrorCode, g.ErrorMessage}
	}
	return out, nil
}

func assigned(a kmsg.Assignment) []cluster.TopicPartition {
	out := []cluster.TopicPartition{}
	for _, t := range a.TopicPartitions {
		for _, p := range t.Partitions {
			out = append(out, cluster.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	sortPartitions(out)
	return out
}

func (c *Client) describeShare(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]groupAnswer, error) {
	req := kmsg.NewPtrShareGroupDescribeRequest()
	req.GroupIDs = keys
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	out := map[string]groupAnswer{}
	for _, g := range resp.(*kmsg.ShareGroupDescribeResponse).Groups {
		mg := model.Group{
			ID: g.GroupID, Type: model.GroupShare, State: g.GroupState, ProtocolType: "share", Protocol: g.Assignor,
			Epoch: g.GroupEpoch, TargetEpoch: g.AssignmentEpoch,
		}
		for _, m := range g.Members {
			mm := model.GroupMember{ID: m.MemberID, ClientID: m.ClientID, Host: hostOf(m.ClientHost), Rack: deref(m.RackID), Epoch: m.MemberEpoch, Subscribed: m.SubscribedTopicNames}
			for _, t := range m.Assignment.TopicPartitions {
				for _, p := range t.Partitions {
					mm.Assigned = append(mm.Assigned, cluster.TopicPartition{Topic: t.Topic, Partition: p})
				}
			}
			sortPartitions(mm.Assigned)
			mg.Members = append(mg.Members, mm)
		}
		sortMembers(mg.Members)
		out[g.GroupID] = groupAnswer{mg, g.ErrorCode, g.ErrorMessage}
	}
	return out, nil
}

// describeStreams names the members; their tasks are those of a topology, not partitions of ours to show.
func (c *Client) describeStreams(ctx context.Context, id cluster.BrokerID, keys []string) (map[string]groupAnswer, error) {
	req := kmsg.NewPtrStreamsGroupDescribeRequest()
	req.Groups = keys
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	out := map[string]groupAnswer{}
	for _, g := range resp.(*kmsg.StreamsGroupDescribeResponse).Groups {
		mg := model.Group{ID: g.Group, Type: model.GroupStreams, State: g.State, ProtocolType: "streams", Protocol: deref(g.AssignorName), Epoch: g.Epoch, TargetEpoch: g.AssignmentEpoch}
		for _, m := range g.Members {
			mg.Members = append(mg.Members, model.GroupMember{
				ID: m.MemberID, InstanceID: deref(m.InstanceID), ClientID: m.ClientID, Host: hostOf(m.ClientHost), Rack: deref(m.RackID), Epoch: m.MemberEpoch,
			})
		}
		sortMembers(mg.Members)
		out[g.Group] = groupAnswer{mg, g.ErrorCode, g.ErrorMessage}
	}
	return out, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// hostOf takes away the slash of Java's InetAddress.
func hostOf(s string) string { return strings.TrimPrefix(s, "/") }

func sortPartitions(tps []cluster.TopicPartition) { slices.SortFunc(tps, comparePartitions) }

func comparePartitions(a, b cluster.TopicPartition) int {
	if d := strings.Compare(a.Topic, b.Topic); d != 0 {
		return d
	}
	return int(a.Partition) - int(b.Partition)
}

func sortMembers(ms []model.GroupMember) {
	slices.SortFunc(ms, func(a, b model.GroupMember) int {
		if d := strings.Compare(a.ClientID, b.ClientID); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
}
