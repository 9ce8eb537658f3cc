package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// writeLeaderAndISR writes the planned decision into the state znode: one multi of the check of /controller_epoch, the
// conditional write, and the notification that makes the controller read it. The stored controller epoch and
// fields that we do not know stay as they are: a controller refuses what claims a later epoch than its own.
func (c *Client) writeLeaderAndISR(ctx context.Context, s *LeaderAndISRStep) LeaderAndISRResult {
	res := LeaderAndISRResult{Topic: s.Facts.State.Topic, Partition: s.Facts.State.Partition, ZKVersion: s.Facts.State.ZKVersion}
	res.LeaderAndISR = s.Facts.State.LeaderAndISR
	tp := cluster.TopicPartition{Topic: res.Topic, Partition: res.Partition}
	ctx, cancel := c.within(ctx)
	defer cancel()
	zk, err := c.zookeeper(ctx)
	if err != nil {
		res.Err = err
		return res
	}
	rs, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.ControllerEpochPath}})
	if err == nil {
		err = rs[0].Err
	}
	if err != nil {
		res.Err = wrap(err, "read %s", znode.ControllerEpochPath)
		return res
	}
	epoch, err := znode.DecodeControllerEpoch(rs[0].Data)
	if err == nil && s.Plan.Next.ControllerEpoch > epoch {
		err = fmt.Errorf("the state znode claims controller epoch %d, above the present one, %d", s.Plan.Next.ControllerEpoch, epoch)
	}
	old, derr := znode.DecodeState(tp, s.Facts.State.Raw)
	if err = errors.Join(err, derr); err != nil {
		res.Err = &Error{Kind: Failed, Msg: s.Name(), Err: err}
		return res
	}
	data := znode.State{LeaderAndISR: s.Plan.Next, Unknown: old.Unknown}.Encode()
	version := int32(s.Facts.State.ZKVersion)
	r := zk.Do(ctx, zkutil.AnySession, znode.Fenced(cluster.ZKVersion(rs[0].Stat.Version),
		zkop.Request{Kind: zkop.Set, Path: znode.StatePath(tp), Data: data, Version: version},
		zkop.Request{Kind: zkop.Create, Path: znode.ISRChangePrefix, Mode: zkop.PersistentSequential, Data: znode.EncodeISRChange([]cluster.TopicPartition{tp})}))[0]
	if res.Err = c.written(ctx, s, tp, data, r); res.Err == nil {
		res.Changed, res.LeaderAndISR, res.ZKVersion = true, s.Plan.Next, s.Facts.State.ZKVersion+1
	}
	return res
}

// written tells from the answer, or after a lost one from the znode, whether the write was applied.
func (c *Client) written(ctx context.Context, s *LeaderAndISRStep, tp cluster.TopicPartition, data []byte, r zkop.Response) error {
	switch {
	case r.Err == nil:
		return nil
	case errors.Is(r.Err, zkop.ErrOutcomeUnknown):
		now, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.StatePath(tp)}})
		if err == nil && now[0].Err == nil && now[0].Stat.Version == int32(s.Facts.State.ZKVersion)+1 && bytes.Equal(now[0].Data, data) {
			return nil
		}
		return &Error{Kind: Unreachable, Msg: "write the state znode of " + s.Name(), Err: r.Err, Hint: "whether it was written is not known: look before you repeat it"}
	}
	cause := r.Err
	for _, op := range r.Results {
		if op.Err != nil && !errors.Is(op.Err, zkop.ErrRolledBack) {
			cause = op.Err
			break
		}
	}
	if errors.Is(cause, zkop.ErrBadVersion) || errors.Is(cause, zkop.ErrNoNode) {
		return &Error{Kind: Failed, Msg: s.Name() + " or the controller has changed meanwhile; nothing was changed", Err: cause, Hint: "look at it again, then repeat the command"}
	}
	return wrap(cause, "write the state znode of %s", s.Name())
}

// kick makes Apache Kafka's controller send written decisions: a reassignment to the replicas that a partition has is
// complete at once, and its end is another leader epoch that every replica is told of (KIP-455).
func (c *Client) kick(ctx context.Context, steps []LeaderAndISRStep, results []LeaderAndISRApplied) {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = c.serverTimeout()
	for i := range steps {
		if results[i].Err != nil {
			continue
		}
		t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		t.Topic = results[i].Topic
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = results[i].Partition, cluster.IDsToInt32(steps[i].Facts.State.Replicas)
		if n := len(req.Topics); n > 0 && req.Topics[n-1].Topic == t.Topic {
			req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, p)
			continue
		}
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
	}
	if len(req.Topics) == 0 {
		return
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	// The notification of the write is handled by the controller on its own time: it must have read the znode before
	// it is asked, or it would write over a version that it does not know, fail, and be asked again.
	c.awaitMetadata(ctx, results)
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		return r.(*kmsg.AlterPartitionAssignmentsResponse).ErrorCode == kerr.NotController.Code
	})
	said := map[cluster.TopicPartition]error{}
	if err == nil {
		r := resp.(*kmsg.AlterPartitionAssignmentsResponse)
		err = brokerErr(kmsg.AlterPartitionAssignments, r.ErrorCode, r.ErrorMessage)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				said[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = brokerErr(kmsg.AlterPartitionAssignments, p.ErrorCode, p.ErrorMessage)
			}
		}
	}
	for i := range results {
		tp := cluster.TopicPartition{Topic: results[i].Topic, Partition: results[i].Partition}
		if results[i].Err == nil {
			c.kicked(ctx, &results[i], &steps[i], errors.Join(err, said[tp]))
		}
	}
}

// kicked reads what the controller made of the decision.
func (c *Client) kicked(ctx context.Context, r *LeaderAndISRApplied, s *LeaderAndISRStep, err error) {
	if err != nil {
		r.Err = &Error{
			Kind: Failed, Msg: s.Name() + " is written, but the controller was not made to send it", Err: err,
			Hint: "kctl transitions shows it as stuck; the same command again, or kctl controller move, has it sent",
		}
		return
	}
	nodes, nerr := c.reread(ctx, []model.StateNode{{Topic: r.Topic, Partition: r.Partition}})
	if nerr != nil || len(nodes) != 1 {
		return
	}
	r.LeaderAndISR, r.ZKVersion, r.Changed = nodes[0].LeaderAndISR, nodes[0].ZKVersion, true
	if r.Leader != s.Plan.Next.Leader {
		r.Err = &Error{
			Kind: Failed, Msg: fmt.Sprintf("%s was written with leader %d, and the controller has made %d the leader since", s.Name(), s.Plan.Next.Leader, r.Leader),
			Hint: "kctl brokers list shows whether the wanted leader is live",
		}
	}
}

// awaitMetadata waits until the controller shows the written decisions, or the time is half over.
func (c *Client) awaitMetadata(ctx context.Context, results []LeaderAndISRApplied) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout/2)
	defer cancel()
	var topics []string
	for i := range results {
		if results[i].Err == nil && !slices.Contains(topics, results[i].Topic) {
			topics = append(topics, results[i].Topic)
		}
	}
	for {
		m, err := c.metadata(ctx, topics)
		if err == nil && m.ControllerID >= 0 {
			views, _ := c.metadataViews(ctx, []cluster.BrokerID{cluster.BrokerID(m.ControllerID)}, topics)
			if shown(views[0], results) {
				return
			}
		}
		if !pause(ctx) {
			return
		}
	}
}

func shown(topics []model.Topic, results []LeaderAndISRApplied) bool {
	epochs := map[cluster.TopicPartition]cluster.LeaderEpoch{}
	for i := range topics {
		for j := range topics[i].Partitions {
			epochs[topics[i].Partitions[j].TP()] = topics[i].Partitions[j].LeaderEpoch
		}
	}
	for i := range results {
		e, ok := epochs[cluster.TopicPartition{Topic: results[i].Topic, Partition: results[i].Partition}]
		if results[i].Err == nil && (!ok || e < results[i].LeaderEpoch) {
			return false
		}
	}
	return true
}
