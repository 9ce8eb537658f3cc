package sim

import (
	"slices"
	"strconv"

	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// zkApplied looks at every request that a broker got applied in ZooKeeper.
func (c *checker) zkApplied(conn *zkConn, req *zkop.Request, resp *zkop.Response) {
	if resp.Err != nil {
		return
	}
	ops := req.Ops
	if req.Kind != zkop.Multi {
		ops = []zkop.Request{*req}
	}
	fenced := false
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Kind == zkop.Check && op.Path == znode.ControllerEpochPath:
			fenced = true
			c.fencedWrite(conn, op)
		case op.Kind == zkop.Set && op.Path == znode.ControllerEpochPath:
			c.electionWon(conn, op)
		case op.Kind == zkop.Set || op.Kind == zkop.Create:
			if tp, ok := znode.ParseStatePath(op.Path); ok {
				c.stateWritten(tp, op, fenced)
			}
		case op.Kind == zkop.Delete:
			if tp, ok := znode.ParseStatePath(op.Path); ok {
				delete(c.states, tp)
			}
		}
	}
}

// fencedWrite: a controller's write is applied only while its epoch is the newest (1).
func (c *checker) fencedWrite(conn *zkConn, op *zkop.Request) {
	if owner := c.epochOwner[cluster.ControllerEpoch(op.Version)]; owner != conn.node.id {
		c.s.fail("%s wrote as controller of epoch %d, which broker %d won (1)", conn.node, op.Version, owner)
	}
}

func (c *checker) electionWon(conn *zkConn, op *zkop.Request) {
	epoch, err := strconv.Atoi(string(op.Data))
	if err != nil {
		c.s.fail("controller epoch %q", op.Data)
		return
	}
	if owner, taken := c.epochOwner[cluster.ControllerEpoch(epoch)]; taken {
		c.s.fail("controller epoch %d is won by broker %d and %d (1)", epoch, owner, conn.node.id)
	}
	c.epochOwner[cluster.ControllerEpoch(epoch)] = conn.node.id
}

// stateWritten: leader epochs never fall and each names one leader (2); the leader is none or in the ISR, the
// ISR is a non-empty part of the replicas (3); a leader's own write touches the ISR only (V3 1.7); who joins
// the ISR holds everything committed (8).
func (c *checker) stateWritten(tp cluster.TopicPartition, op *zkop.Request, byController bool) {
	state, err := znode.DecodeState(tp, op.Data)
	if err != nil {
		c.s.fail("state of %s: %v", tp, err)
		return
	}
	now, before := state.LeaderAndISR, c.states[tp]
	_, known := c.states[tp]
	w := c.writes[tp]
	switch {
	case len(w) == 0 || now.LeaderEpoch == before.LeaderEpoch:
		w = w[:max(0, len(w)-1)]
	case c.led[tp] >= before.LeaderEpoch:
		w = w[len(w)-1:]
	}
	c.writes[tp] = append(w[:len(w):len(w)], stateWrite{now.ISR, c.s.now})
	c.states[tp] = now.Clone()
	c.checkShape(tp, now)
	if known && now.LeaderEpoch < before.LeaderEpoch {
		c.s.fail("%s: leader epoch falls from %d to %d (2)", tp, before.LeaderEpoch, now.LeaderEpoch)
	}
	d := decision{tp, now.LeaderEpoch}
	if leader, taken := c.leaders[d]; taken && leader != now.Leader {
		c.s.fail("%s: epoch %d names leader %d and %d (2)", tp, now.LeaderEpoch, leader, now.Leader)
	}
	c.leaders[d] = now.Leader
	if !known || now.LeaderEpoch > before.LeaderEpoch {
		c.s.report.Elections++
	}
	if !byController {
		if now.Leader != before.Leader || now.LeaderEpoch != before.LeaderEpoch {
			c.s.fail("%s: leader %d wrote %+v over %+v", tp, before.Leader, now, before)
		}
		c.joined(tp, before.ISR, now.ISR)
	}
	c.assess(tp)
}

func (c *checker) checkShape(tp cluster.TopicPartition, now cluster.LeaderAndISR) {
	if now.Leader != cluster.NoLeader && !slices.Contains(now.ISR, now.Leader) || len(now.ISR) == 0 {
		c.s.fail("%s: leader %d, ISR %v (3)", tp, now.Leader, now.ISR)
	}
	t, _, ok := c.s.topic(tp.Topic)
	for i, m := range now.ISR {
		if slices.Contains(now.ISR[:i], m) || ok && !slices.Contains(t.Partitions[tp.Partition].Replicas, m) {
			c.s.fail("%s: ISR %v, replicas %v (3)", tp, now.ISR, t.Partitions[tp.Partition].Replicas)
		}
	}
}

func (c *checker) joined(tp cluster.TopicPartition, before, now []cluster.BrokerID) {
	for _, m := range now {
		if slices.Contains(before, m) || c.deleted[tp.Topic] { // what a topic that waits for its deletion loses is not assessed
			continue
		}
		if end := c.endOf(m, tp); end >= c.committed(tp) {
			delete(c.lost[m], tp)
		} else if !c.lost[m][tp] {
			c.s.fail("%s: broker %d joins the ISR with log end %d, committed is %d (8)", tp, m, end, c.committed(tp))
		}
	}
}
