package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// CheckDevCluster refuses every cluster that is not recognisably one of kbroker dev: it carries the mark that only kbroker dev
// writes, and every registered broker listens on loopback addresses alone.
func (c *Client) CheckDevCluster(ctx context.Context) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	z, err := c.readZKCluster(ctx)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		e := badInput("nothing is rehearsed here: "+format, args...)
		e.Hint = "kctl lab works on a cluster of kbroker dev only"
		return e
	}
	rs, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Exists, Path: znode.DevClusterPath}})
	if err != nil {
		return err
	}
	if rs[0].Err != nil {
		return refuse("ZooKeeper %s does not carry the mark of kbroker dev (%s)", c.cfg.ZooKeeper, znode.DevClusterPath)
	}
	for i := range z.brokers {
		for _, ep := range z.brokers[i].Endpoints {
			if a, err := netip.ParseAddr(ep.Host); ep.Host != "localhost" && (err != nil || !a.IsLoopback()) {
				return refuse("broker %d listens on %s:%d, which is no loopback address", z.brokers[i].ID, ep.Host, ep.Port)
			}
		}
	}
	if len(z.brokers) == 0 {
		return refuse("no broker is registered")
	}
	return nil
}

// LabRehearsals lists the scenarios under way.
func (c *Client) LabRehearsals(ctx context.Context) ([]plan.LabRecord, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	children, err := c.zkChildren(ctx, znode.DevClusterPath)
	if err != nil {
		return nil, err
	}
	reqs := make([]zkop.Request, len(children))
	for i, ch := range children {
		reqs[i] = zkop.Request{Kind: zkop.Get, Path: znode.DevClusterPath + "/" + ch}
	}
	rs, err := c.zkDo(ctx, reqs)
	if err != nil {
		return nil, err
	}
	var out []plan.LabRecord
	for i := range rs {
		if rs[i].Err != nil {
			continue // undone meanwhile
		}
		r, err := plan.DecodeLabRecord(rs[i].Data)
		if err != nil {
			return nil, wrap(err, "read %s", reqs[i].Path)
		}
		out = append(out, r)
	}
	return out, nil
}

// RunLab makes a failure. What undoes it is written first, so that a rehearsal that is cut off can be undone as well.
func (c *Client) RunLab(ctx context.Context, s plan.LabScenario) error {
	if err := c.CheckDevCluster(ctx); err != nil {
		return err
	}
	var l plan.LabCluster
	if s.Topic {
		l.Topic = plan.LabTopic(s.Name)
		if err := c.labTopic(ctx, l.Topic); err != nil {
			return err
		}
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if s.Topic {
		rs, err := c.zkDo(ctx, []zkop.Request{
			{Kind: zkop.Get, Path: znode.TopicPath(l.Topic)}, {Kind: zkop.Get, Path: znode.StatePath(cluster.TopicPartition{Topic: l.Topic})},
		})
		if err == nil {
			err = cmpErr(rs[0].Err, rs[1].Err)
		}
		if err != nil {
			return wrap(err, "read topic %s", l.Topic)
		}
		l.TopicNode, l.StateNode = rs[0].Data, rs[1].Data
	}
	edits, err := s.Edits(l)
	if err != nil {
		return err
	}
	return c.labWrite(ctx, s, l.Topic, edits)
}

// labTopic creates the topic of a scenario with as many replicas as there are brokers, three at most.
func (c *Client) labTopic(ctx context.Context, name string) error {
	s, err := c.Snapshot(ctx, SnapshotOptions{NoTopics: true})
	if err != nil {
		return err
	}
	_, _, err = c.CreateTopic(ctx, plan.NewTopic{Name: name, Partitions: 1, ReplicationFactor: int16(min(3, len(s.Brokers)))}, false)
	if TopicExists(err) {
		return &Error{Kind: Failed, Msg: "topic " + name + " exists: the rehearsal is under way, or was not undone", Hint: "kctl lab undo"}
	}
	return err
}

// labWrite writes the record, then the edits, each at the version read.
func (c *Client) labWrite(ctx context.Context, s plan.LabScenario, topic string, edits []plan.LabEdit) error {
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return err
	}
	rec := plan.LabRecord{Scenario: s.Name, Topic: topic, Settle: s.Settle}
	var ops []zkop.Request
	for _, e := range edits {
		r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: e.Path})[0]
		undo := plan.LabUndo{Path: e.Path, Wrote: e.Data, Before: r.Data, Created: errors.Is(r.Err, zkop.ErrNoNode)}
		switch {
		case r.Err != nil && !undo.Created:
			return wrap(r.Err, "read %s", e.Path)
		case undo.Created:
			ops = append(ops, zkop.Request{Kind: zkop.Create, Path: e.Path, Data: e.Data, Mode: zkop.Persistent})
		case e.Create:
			return &Error{Kind: Failed, Msg: e.Path + " exists already", Hint: "kctl lab undo"}
		default:
			ops = append(ops, zkop.Request{Kind: zkop.Set, Path: e.Path, Data: e.Data, Version: r.Stat.Version})
		}
		rec.Undo = append(rec.Undo, undo)
	}
	data, err := rec.Encode()
	if err != nil {
		return err
	}
	ops = slices.Insert(ops, 0, zkop.Request{Kind: zkop.Create, Path: labPath(s.Name), Data: data, Mode: zkop.Persistent})
	for _, op := range ops {
		if err := zk.Do(ctx, zkutil.AnySession, op)[0].Err; err != nil {
			return wrap(err, "write %s", op.Path)
		}
	}
	return nil
}

func labPath(scenario string) string { return znode.DevClusterPath + "/" + scenario }

// UndoLab takes a rehearsal back: what still is as it was written gets its old value; a topic of its own is deleted.
func (c *Client) UndoLab(ctx context.Context, r plan.LabRecord) error {
	if err := c.CheckDevCluster(ctx); err != nil {
		return err
	}
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return err
	}
	wctx, cancel := c.within(ctx)
	defer cancel()
	for _, u := range slices.Backward(r.Undo) {
		got := zk.Do(wctx, zkutil.AnySession, zkop.Request{Kind: zkop.Get, Path: u.Path})[0]
		if got.Err != nil || !bytes.Equal(got.Data, u.Wrote) {
			continue // mended already
		}
		op := zkop.Request{Kind: zkop.Set, Path: u.Path, Data: u.Before, Version: got.Stat.Version}
		if u.Created {
			op = zkop.Request{Kind: zkop.Delete, Path: u.Path, Version: got.Stat.Version}
		}
		if err := zk.Do(wctx, zkutil.AnySession, op)[0].Err; err != nil && !errors.Is(err, zkop.ErrNoNode) {
			return wrap(err, "undo %s", u.Path)
		}
	}
	if err := c.labSettle(ctx, r); err != nil {
		return err
	}
	err = zk.Do(wctx, zkutil.AnySession, zkop.Request{Kind: zkop.Delete, Path: labPath(r.Scenario), Version: zkop.AnyVersion})[0].Err
	if errors.Is(err, zkop.ErrNoNode) {
		return nil
	}
	return wrap(err, "delete the record of the rehearsal")
}

// labSettle has a new controller elected where the present one remembers the failure, and deletes the topic.
func (c *Client) labSettle(ctx context.Context, r plan.LabRecord) error {
	if r.Settle {
		from, err := c.ReadController(ctx)
		if err != nil {
			return err
		}
		if _, err := c.MoveController(ctx, from, 30*time.Second); err != nil {
			return err
		}
	}
	if r.Topic == "" {
		return nil
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.Topics, func(t model.Topic) bool { return t.Name == r.Topic }) {
		return nil // deleted already
	}
	results, err := c.DeleteTopics(ctx, []string{r.Topic})
	if err != nil {
		return err
	}
	return wrap(results[r.Topic], "take back %s", fmt.Sprintf("rehearsal %s", r.Scenario))
}
