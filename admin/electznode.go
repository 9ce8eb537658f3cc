package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// electByZnode asks for preferred elections as Kafka's tools did before KIP-183: by creating
// /admin/preferred_replica_election, which the controller takes up when it appears and deletes when it is
// through, successful or not. Its traps are handled here: the node's size is bounded by the servers'
// jute.maxbuffer, so long lists go in parts; there is only one at a time, so a foreign one is waited for; no
// result is written anywhere, so the state nodes are read afterwards; and a node that no controller takes up
// is removed again, or it would fire at the next controller's start.
func (c *Client) electByZnode(ctx context.Context, moves []plan.Election, o ElectOptions) ([]ElectionResult, error) {
	var results []ElectionResult
	for _, part := range plan.ElectionChunks(moves, o.Batch) {
		err := c.electZnode(ctx, part, max(o.Wait, c.cfg.Timeout))
		if err != nil && len(results) == 0 {
			return nil, err
		}
		if err != nil {
			return append(results, notAsked(moves[len(results):], err)...), nil
		}
		got, err := c.electedInZooKeeper(ctx, part)
		if err != nil {
			return append(results, notAsked(moves[len(results):], err)...), nil
		}
		results = append(results, got...)
		if o.Done != nil {
			o.Done(len(results), len(results))
		}
	}
	return results, nil
}

// electZnode creates the node, and waits until the controller has deleted it.
func (c *Client) electZnode(ctx context.Context, moves []plan.Election, wait time.Duration) error {
	parts := make([]cluster.TopicPartition, len(moves))
	for i := range moves {
		parts[i] = moves[i].TP()
	}
	data := znode.EncodePreferredReplicaElection(parts)
	wctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		created, err := c.createElection(wctx, data)
		if err != nil {
			return err
		}
		if created {
			break
		}
		if !pause(wctx) {
			return c.foreignElection(ctx)
		}
	}
	for {
		node, err := c.electionNode(wctx)
		if err == nil && (node == nil || !bytes.Equal(node.Data, data)) {
			return nil
		}
		if !pause(wctx) {
			return c.withdrawElection(context.WithoutCancel(ctx), data, wait)
		}
	}
}

// createElection tries once: false when somebody else's node is there.
func (c *Client) createElection(ctx context.Context, data []byte) (bool, error) {
	ctl, err := c.ReadController(ctx)
	if err != nil {
		return false, err
	}
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return false, err
	}
	r := zk.Do(ctx, zkutil.AnySession, znode.Fenced(cluster.ZKVersion(ctl.epochVersion),
		zkop.Request{Kind: zkop.Create, Path: znode.PreferredReplicaElectionPath, Data: data}))[0]
	switch {
	case r.Err == nil:
		return true, nil
	case errors.Is(r.Err, zkop.ErrOutcomeUnknown):
		node, err := c.electionNode(ctx)
		return err == nil && node != nil && bytes.Equal(node.Data, data), nil
	case errors.Is(r.Err, zkop.ErrNodeExists), errors.Is(r.Err, zkop.ErrBadVersion), errors.Is(r.Err, zkop.ErrRolledBack):
		return false, nil // another election, or another controller: look again
	}
	return false, wrap(r.Err, "create %s", znode.PreferredReplicaElectionPath)
}

// electionNode reads the node; nil when there is none.
func (c *Client) electionNode(ctx context.Context) (*zkop.Response, error) {
	rs, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.PreferredReplicaElectionPath}})
	if err != nil || errors.Is(rs[0].Err, zkop.ErrNoNode) {
		return nil, err
	}
	return &rs[0], rs[0].Err
}

func (c *Client) foreignElection(ctx context.Context) error {
	ctx, cancel := c.within(context.WithoutCancel(ctx))
	defer cancel()
	e := &Error{Kind: Failed, Msg: "another preferred election is under way: " + znode.PreferredReplicaElectionPath + " exists; nothing was asked for"}
	node, err := c.electionNode(ctx)
	if err != nil || node == nil {
		return e
	}
	parts, _ := znode.DecodePreferredReplicaElection(node.Data)
	e.Msg = fmt.Sprintf("another preferred election is under way: %s names %d partition(s) since %s; nothing was asked for",
		znode.PreferredReplicaElectionPath, len(parts), time.UnixMilli(node.Stat.Ctime).UTC().Format(time.RFC3339))
	e.Hint = "the controller deletes it when it is through; when it stays, no controller takes it up (kctl controller describe), and kctl zk delete removes it"
	return e
}

// withdrawElection removes our node that nobody took up, unless it goes at this very moment.
func (c *Client) withdrawElection(ctx context.Context, data []byte, waited time.Duration) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	node, err := c.electionNode(ctx)
	if err != nil {
		return err
	}
	if node == nil || !bytes.Equal(node.Data, data) {
		return nil
	}
	e := &Error{
		Kind: Unreachable, Msg: fmt.Sprintf("the controller did not take up %s within %s; it was removed again", znode.PreferredReplicaElectionPath, waited),
		Hint: "kctl controller describe shows whether a controller acts; --wait gives it more time",
	}
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return err
	}
	r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Delete, Path: znode.PreferredReplicaElectionPath, Version: node.Stat.Version})[0]
	if r.Err != nil && !errors.Is(r.Err, zkop.ErrNoNode) {
		e.Msg = fmt.Sprintf("the controller did not take up %s within %s, and it could not be removed: %v", znode.PreferredReplicaElectionPath, waited, r.Err)
	}
	return e
}

// electedInZooKeeper reads from the state nodes what became of an election.
func (c *Client) electedInZooKeeper(ctx context.Context, moves []plan.Election) ([]ElectionResult, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(plan.TargetsOf(moves)), Source: model.SourceZooKeeper})
	if err != nil {
		return nil, err
	}
	leads := map[cluster.TopicPartition]cluster.BrokerID{}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			leads[s.Topics[i].Partitions[j].TP()] = s.Topics[i].Partitions[j].Leader
		}
	}
	out := make([]ElectionResult, len(moves))
	for i, m := range moves {
		out[i] = ElectionResult{Election: m}
		switch leader, ok := leads[m.TP()]; {
		case ok && leader == m.To:
			out[i].Done, out[i].Confirmed = true, true
		case ok && leader < 0:
			out[i].Err = "the controller left it without a leader"
		case ok:
			out[i].Err = fmt.Sprintf("the controller left it with broker %d", leader)
		default:
			out[i].Err = "the partition is gone"
		}
	}
	return out, nil
}
