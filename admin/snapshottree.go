package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"kctl/admin/check"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// readTree reads Kafka's znodes: topics with their states, and everything that may be left behind.
func (r *factsReader) readTree(ctx context.Context) error {
	t := r.f.Tree
	if err := r.readOwnNodes(ctx, t); err != nil {
		return err
	}
	nodes, err := r.c.readTopicNodes(ctx, nil)
	if err != nil {
		return err
	}
	t.TopicNodes = make(map[string]check.Node, len(nodes.names))
	for i, name := range nodes.names {
		if nodes.answers[i].Err == nil {
			t.TopicNodes[name] = r.node(znode.TopicPath(name), nodes.answers[i])
		}
	}
	// What is broken in a topic or a state is a finding, so the problems are not kept.
	if t.Topics, t.States, _, err = r.c.zkTopics(ctx, nodes); err != nil {
		return err
	}
	return nil
}

// readOwnNodes reads registrations, single nodes, and folders of small nodes.
func (r *factsReader) readOwnNodes(ctx context.Context, t *check.Tree) error {
	single := []struct {
		path string
		into **check.Node
	}{
		{znode.ReassignPartitionsPath, &t.Reassign}, {znode.PreferredReplicaElectionPath, &t.Election},
		{znode.ProducerIDBlockPath, &t.ProducerIDs}, {znode.MigrationPath, &t.Migration},
	}
	folders := []struct {
		path string
		into *[]check.Node
	}{
		{znode.DeleteTopicsPath, &t.Deleting}, {znode.ConfigEntityTypePath(znode.TopicConfig), &t.TopicConfigs},
		{znode.ConfigEntityTypePath(znode.BrokerConfig), &t.BrokerConfigs}, {znode.ISRChangeNotificationPath, &t.ISRChanges},
		{znode.LogDirEventNotificationPath, &t.DirEvents}, {znode.ConfigChangesPath, &t.ConfigChanges}, {znode.LeadershipAlertsPath, &t.Alerts},
	}
	var reqs []zkop.Request
	for _, s := range single {
		reqs = append(reqs, zkop.Request{Kind: zkop.Get, Path: s.path})
	}
	for _, f := range folders {
		reqs = append(reqs, zkop.Request{Kind: zkop.Children, Path: f.path})
	}
	reqs = append(reqs, zkop.Request{Kind: zkop.Children, Path: znode.BrokerIDsPath})
	rs, err := r.c.zkDo(ctx, reqs)
	if err != nil {
		return err
	}
	for i, s := range single {
		if rs[i].Err == nil {
			n := r.node(s.path, rs[i])
			*s.into = &n
		}
	}
	for i, f := range folders {
		children := rs[len(single)+i].Children
		slices.Sort(children)
		if *f.into, err = r.nodes(ctx, f.path, children); err != nil {
			return err
		}
	}
	return r.readRegistrationNodes(ctx, t, rs[len(rs)-1].Children)
}

func (r *factsReader) readRegistrationNodes(ctx context.Context, t *check.Tree, children []string) error {
	nodes, err := r.nodes(ctx, znode.BrokerIDsPath, children)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		id, err := znode.ParseBrokerID(n.Path[len(znode.BrokerIDsPath)+1:])
		if err != nil {
			continue
		}
		reg, err := znode.DecodeRegistration(id, n.Data)
		entry := check.Registration{ID: id, Endpoints: reg.Endpoints, Rack: reg.Rack}
		if err != nil {
			entry.Err = err.Error()
		}
		t.Registrations = append(t.Registrations, entry)
	}
	return nil
}

// nodes reads children of a folder; those that went meanwhile are left out.
func (r *factsReader) nodes(ctx context.Context, folder string, children []string) ([]check.Node, error) {
	if len(children) == 0 {
		return nil, nil
	}
	reqs := make([]zkop.Request, len(children))
	for i, ch := range children {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: folder + "/" + ch}
	}
	rs, err := r.c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	out := make([]check.Node, 0, len(rs))
	for i := range rs {
		if !errors.Is(rs[i].Err, zkop.ErrNoNode) && rs[i].Err == nil {
			out = append(out, r.node(reqs[i].Path, rs[i]))
		}
	}
	return out, nil
}

func (r *factsReader) node(path string, resp zkop.Response) check.Node {
	at := time.UnixMilli(resp.Stat.Mtime)
	return check.Node{
		Path: path, Data: resp.Data, Version: resp.Stat.Version, Modified: at, Age: max(0, r.opts.Now.Sub(at)), Children: resp.Stat.NumChildren,
	}
}
