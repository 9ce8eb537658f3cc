package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/admin/model"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// zkBatch is how many requests are pipelined at once: enough to hide the round trip, few enough that the
// answers of ten thousand partitions do not pile up in one connection.
const zkBatch = 2000

// connectZooKeeper is the real connection. Its dialer does the TLS, so that the name in a certificate is checked as it is for
// brokers.
func (c Config) connectZooKeeper(ctx context.Context, addr ZooKeeperAddress, timeout time.Duration, log *slog.Logger) (zkutil.Client, error) {
	return zkutil.Connect(ctx, zkutil.Config{
		Connect: addr.String(), SessionTimeout: 10 * time.Second, ConnectTimeout: timeout, Logger: log,
		Auth: c.ZooKeeperAuth, Dialer: zkDialer{c.ZooKeeperTLS},
	})
}

func (c *Client) openZooKeeper(ctx context.Context) (zkutil.Client, error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, c.brokerTimeout())
	defer cancel()
	zk, err := c.cfg.ConnectZooKeeper(ctx, c.cfg.ZooKeeper, c.brokerTimeout(), c.cfg.Logger)
	if err == nil {
		return &zkSession{Client: zk, secure: c.cfg.ZooKeeperSetACL, hint: c.cfg.zooKeeperHint()}, nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return nil, own
	}
	if e := c.refusedByZooKeeper(caller, err); e != nil {
		return nil, e
	}
	e := &Error{Kind: Unreachable, Msg: "ZooKeeper " + c.cfg.ZooKeeper.String(), Err: err}
	switch {
	case errors.Is(err, zkutil.ErrNoChroot):
		e.Kind = NotFound
		e.Hint = "check the path behind the servers in --zookeeper; without a path the root is used; before a cluster's first broker starts: kctl zk create /PATH -z HOST:PORT"
	case errors.Is(err, zkutil.ErrConnectString):
		e.Kind = BadInput
	}
	return nil, e
}

// zkDo runs reads in batches and returns one response for each.
func (c *Client) zkDo(ctx context.Context, reqs []zkop.Request) ([]zkop.Response, error) {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]zkop.Response, 0, len(reqs))
	for chunk := range slices.Chunk(reqs, zkBatch) {
		out = append(out, zk.Do(ctx, zkutil.AnySession, chunk...)...)
	}
	for i := range out {
		if err := out[i].Err; err != nil && !errors.Is(err, zkop.ErrNoNode) && !errors.Is(err, zkop.ErrNoAuth) {
			return nil, wrap(err, "read %s from ZooKeeper", reqs[i].Path)
		}
	}
	return out, nil
}

func (c *Client) zkChildren(ctx context.Context, path string) ([]string, error) {
	out, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Children, Path: path}})
	if err != nil || errors.Is(out[0].Err, zkop.ErrNoNode) {
		return nil, err
	}
	slices.Sort(out[0].Children)
	return out[0].Children, out[0].Err
}

// seedsFromZooKeeper finds brokers to start from; called with c.mu held.
func (c *Client) seedsFromZooKeeper(ctx context.Context) ([]string, error) {
	zk, err := c.zookeeperLocked(ctx)
	if err != nil {
		return nil, err
	}
	list := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Children, Path: znode.BrokerIDsPath})[0]
	if list.Err != nil && !errors.Is(list.Err, zkop.ErrNoNode) {
		return nil, wrap(list.Err, "read %s from ZooKeeper", znode.BrokerIDsPath)
	}
	var seeds []string
	for _, child := range list.Children {
		r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: znode.BrokerIDsPath + "/" + child})[0]
		id, err := znode.ParseBrokerID(child)
		if r.Err != nil || err != nil {
			continue
		}
		if reg, err := znode.DecodeRegistration(id, r.Data); err == nil {
			if ep, ok := c.endpoint(reg.Endpoints); ok {
				seeds = append(seeds, net.JoinHostPort(ep.Host, strconv.Itoa(int(ep.Port))))
			}
		}
	}
	if len(seeds) == 0 {
		e := &Error{Kind: Unreachable, Msg: fmt.Sprintf("ZooKeeper %s lists no broker that can be reached over %s", c.cfg.ZooKeeper, c.cfg.Security)}
		if len(list.Children) == 0 {
			e.Msg = fmt.Sprintf("ZooKeeper %s lists no broker: none is registered under %s", c.cfg.ZooKeeper, znode.BrokerIDsPath)
			e.Hint = "start a broker, or check the chroot (kctl zk ls / shows what is there)"
		}
		return nil, e
	}
	return seeds, nil
}

// endpoint picks the listener that fits the configured security protocol.
func (c *Client) endpoint(eps []cluster.Endpoint) (cluster.Endpoint, bool) {
	for _, e := range eps {
		if e.Protocol == c.cfg.Security || e.Protocol == "" && e.Listener == c.cfg.Security {
			return e, true
		}
	}
	return cluster.Endpoint{}, false
}

// zkCluster is the cluster-wide part of ZooKeeper: controller, registrations, deletions.
type zkCluster struct {
	clusterID  string
	controller model.Controller
	brokers    []model.Broker
	deleting   map[string]bool
	problems   []model.Problem
}

func (c *Client) readZKCluster(ctx context.Context) (*zkCluster, error) {
	rs, err := c.zkDo(ctx, []zkop.Request{
		{Kind: zkop.Get, Path: znode.ControllerPath},
		{Kind: zkop.Get, Path: znode.ControllerEpochPath},
		{Kind: zkop.Get, Path: znode.ClusterIDPath},
		{Kind: zkop.Children, Path: znode.BrokerIDsPath},
		{Kind: zkop.Children, Path: znode.DeleteTopicsPath},
		{Kind: zkop.Exists, Path: znode.BrokerTopicsPath},
	})
	if err != nil {
		return nil, err
	}
	if errors.Is(rs[3].Err, zkop.ErrNoNode) && errors.Is(rs[5].Err, zkop.ErrNoNode) {
		way := "-z HOST:PORT/chroot"
		if c.offline() {
			way = "--from-dir DIR@/chroot"
		}
		return nil, &Error{
			Kind: NotFound, Msg: fmt.Sprintf("ZooKeeper %s holds no Kafka cluster: %s does not exist", c.cfg.ZooKeeper, znode.BrokersPath),
			Hint: "if the cluster lives below a chroot, add it: " + way + " (kctl zk ls / shows what is there)",
		}
	}
	z := &zkCluster{deleting: map[string]bool{}, controller: model.Controller{ID: cluster.NoLeader, Epoch: -1, Source: model.SourceZooKeeper}}
	if rs[0].Err == nil {
		if ctl, err := znode.DecodeController(rs[0].Data); err != nil {
			z.problem("controller", err)
		} else {
			z.controller.ID, z.controller.Since = ctl.BrokerID, time.UnixMilli(rs[0].Stat.Ctime)
		}
	}
	if rs[1].Err == nil {
		if e, err := znode.DecodeControllerEpoch(rs[1].Data); err != nil {
			z.problem("controller epoch", err)
		} else {
			z.controller.Epoch = int32(e)
		}
	}
	if rs[2].Err == nil {
		z.clusterID, _ = znode.DecodeClusterID(rs[2].Data)
	}
	for _, t := range rs[4].Children {
		z.deleting[t] = true
	}
	if err := c.readRegistrations(ctx, z, rs[3].Children); err != nil {
		return nil, err
	}
	c.learn(z.brokers)
	return z, nil
}

func (z *zkCluster) problem(object string, err error) {
	z.problems = append(z.problems, model.Problem{Object: object, Message: err.Error()})
}

func (c *Client) readRegistrations(ctx context.Context, z *zkCluster, children []string) error {
	reqs := make([]zkop.Request, len(children))
	for i, ch := range children {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.BrokerIDsPath + "/" + ch}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return err
	}
	for i, r := range rs {
		id, err := znode.ParseBrokerID(children[i])
		if err != nil || r.Err != nil {
			continue // gone meanwhile, or not a registration
		}
		b := model.Broker{
			ID: id, Live: true, Epoch: cluster.BrokerEpoch(r.Stat.Czxid), Registered: time.UnixMilli(r.Stat.Ctime),
			Controller: id == z.controller.ID, Source: model.SourceZooKeeper,
		}
		if reg, err := znode.DecodeRegistration(id, r.Data); err != nil {
			z.problem("broker "+children[i], err)
		} else {
			b.Endpoints, b.Rack = reg.Endpoints, reg.Rack
			ep, ok := c.endpoint(reg.Endpoints)
			if !ok && len(reg.Endpoints) > 0 {
				ep = reg.Endpoints[0]
			}
			b.Host, b.Port = ep.Host, ep.Port
		}
		z.brokers = append(z.brokers, b)
	}
	slices.SortFunc(z.brokers, func(a, b model.Broker) int { return int(a.ID) - int(b.ID) })
	return nil
}

// readZKTopics reads assignments and state nodes. names nil means every topic. Topics that do not exist
// are left out.
func (c *Client) readZKTopics(ctx context.Context, names []string) ([]model.Topic, []model.StateNode, []model.Problem, error) {
	nodes, err := c.readTopicNodes(ctx, names)
	if err != nil {
		return nil, nil, nil, err
	}
	return c.zkTopics(ctx, nodes)
}

// topicNodes are the topics' znodes as they were answered.
type topicNodes struct {
	names   []string
	answers []zkop.Response // of the same length
}

// readTopicNodes reads the znodes of topics, all of them when names is nil.
func (c *Client) readTopicNodes(ctx context.Context, names []string) (n topicNodes, err error) {
	if names == nil {
		if names, err = c.zkChildren(ctx, znode.BrokerTopicsPath); err != nil {
			return n, err
		}
	}
	reqs := make([]zkop.Request, len(names))
	for i, name := range names {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(name)}
	}
	n.names = names
	n.answers, err = c.zkDo(ctx, reqs)
	return n, err
}

// zkTopics decodes topics and reads the states of their partitions. A topic that is gone is left out.
func (c *Client) zkTopics(ctx context.Context, nodes topicNodes) ([]model.Topic, []model.StateNode, []model.Problem, error) {
	var problems []model.Problem
	var topics []model.Topic
	changed := map[string]time.Time{}
	for i, r := range nodes.answers {
		if errors.Is(r.Err, zkop.ErrNoNode) {
			continue
		}
		t := decodeTopic(nodes.names[i], r)
		if t.Err != "" {
			problems = append(problems, model.Problem{Object: "topic " + t.Name, Message: t.Err})
		} else {
			changed[t.Name] = time.UnixMilli(r.Stat.Mtime)
		}
		topics = append(topics, t)
	}
	states, more, err := c.readStates(ctx, topics)
	for i := range states {
		if states[i].Missing { // its age is that of the topic's last change
			states[i].Mtime = changed[states[i].Topic]
		}
	}
	return topics, states, append(problems, more...), err
}

// decodeTopic reads the answer about one topic's znode; what is wrong with it is in the topic's Err.
func decodeTopic(name string, r zkop.Response) model.Topic {
	t := model.Topic{Name: name, Internal: isInternal(name), Source: model.SourceZooKeeper}
	zt, err := znode.DecodeTopic(name, r.Data)
	if r.Err != nil {
		err = r.Err
	}
	if err != nil {
		t.Err = err.Error()
		return t
	}
	t.ID = zt.ID
	for _, n := range zt.PartitionNumbers() {
		a := zt.Partitions[n]
		t.Partitions = append(t.Partitions, model.Partition{
			Topic: name, Partition: n, Leader: cluster.NoLeader, LeaderEpoch: cluster.NoLeaderEpoch,
			Replicas: a.Replicas, Adding: a.Adding, Removing: a.Removing, Source: model.SourceZooKeeper,
		})
	}
	return t
}

func isInternal(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state" || topic == "__share_group_state"
}

// readStates reads the state node of every partition, fills it into topics and returns the nodes.
func (c *Client) readStates(ctx context.Context, topics []model.Topic) ([]model.StateNode, []model.Problem, error) {
	var reqs []zkop.Request
	var parts []*model.Partition
	for i := range topics {
		for j := range topics[i].Partitions {
			p := &topics[i].Partitions[j]
			parts = append(parts, p)
			reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: znode.StatePath(p.TP())})
		}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, nil, err
	}
	var problems []model.Problem
	nodes := make([]model.StateNode, len(parts))
	for i, p := range parts {
		nodes[i] = stateNode(p, rs[i])
		if nodes[i].Err != "" {
			p.Err = nodes[i].Err
			problems = append(problems, model.Problem{Object: p.TP().String(), Message: nodes[i].Err})
			continue
		}
		p.Leader, p.LeaderEpoch, p.ISR = nodes[i].Leader, nodes[i].LeaderEpoch, nodes[i].ISR
	}
	return nodes, problems, nil
}

const noStateNode = "no state node: the controller has not created the partition"

func stateNode(p *model.Partition, r zkop.Response) model.StateNode {
	n := model.StateNode{
		Topic: p.Topic, Partition: p.Partition, Replicas: p.Replicas, ZKVersion: -1, Source: model.SourceZooKeeper,
		LeaderAndISR: cluster.LeaderAndISR{Leader: cluster.NoLeader, LeaderEpoch: cluster.NoLeaderEpoch, ControllerEpoch: -1},
	}
	if errors.Is(r.Err, zkop.ErrNoNode) {
		n.Missing, n.Err = true, noStateNode
		return n
	}
	if r.Err != nil {
		n.Err = r.Err.Error()
		return n
	}
	n.ZKVersion, n.Mtime, n.Raw = cluster.ZKVersion(r.Stat.Version), time.UnixMilli(r.Stat.Mtime), r.Data
	st, err := znode.DecodeState(p.TP(), r.Data)
	if err != nil {
		n.Err = err.Error()
		return n
	}
	n.LeaderAndISR = st.LeaderAndISR
	for _, f := range st.Unknown {
		n.UnknownFields = append(n.UnknownFields, f.Name)
	}
	return n
}

// readAlerts reads /admin/leadership_alerts; a cluster without that node has none.
func (c *Client) readAlerts(ctx context.Context) (map[cluster.TopicPartition]*model.Alert, error) {
	children, err := c.zkChildren(ctx, znode.LeadershipAlertsPath)
	if err != nil || len(children) == 0 {
		return nil, err
	}
	reqs := make([]zkop.Request, len(children))
	for i, ch := range children {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.LeadershipAlertsPath + "/" + ch}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	out := map[cluster.TopicPartition]*model.Alert{}
	for i, r := range rs {
		tp, err := znode.ParseLeadershipAlertChild(children[i])
		if err != nil || r.Err != nil {
			continue
		}
		a, err := znode.DecodeLeadershipAlert(tp, r.Data)
		if err != nil {
			continue
		}
		out[tp] = alertOf(tp, a, r.Data)
	}
	return out, nil
}

func alertOf(tp cluster.TopicPartition, a znode.LeadershipAlert, raw []byte) *model.Alert {
	m := &model.Alert{TP: tp, Raw: raw, Since: time.UnixMilli(a.RaisedMs), Epoch: a.Decision.LeaderEpoch}
	var parts []string
	for _, w := range a.Waiting {
		m.WaitingFor = append(m.WaitingFor, w.Broker)
		said := "has not answered"
		if w.Error != "" {
			said = "answered " + w.Error
		}
		parts = append(parts, fmt.Sprintf("broker %d %s", w.Broker, said))
	}
	m.Reason = strings.Join(parts, ", ")
	if a.Reason != "" {
		m.Reason = a.Reason + ": " + m.Reason
	}
	return m
}
