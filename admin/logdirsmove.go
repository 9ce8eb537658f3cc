package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// DirMoveResult is what became of one planned move.
type DirMoveResult struct {
	plan.DirMove
	Accepted bool // the broker took the order, this one or an earlier one
	Done     bool // the replica is in the directory; only AwaitDirMoves finds out
	Open     bool // the wait ended before the move did, which goes on; Err says so
	Err      string
}

// PlanDirMoves plans the move of replicas of one broker to its directory to. A target without partitions means
// those of the topic that the broker has. Errors: of kind BadInput for a directory that the broker does not have or
// that is offline, NotFound for topics and partitions that do not exist, Unreachable for a broker that is not live.
func (c *Client) PlanDirMoves(ctx context.Context, broker cluster.BrokerID, targets []plan.Target, to string) ([]plan.DirMove, *model.Snapshot, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: topicsOf(targets), NoZooKeeper: true})
	if err != nil {
		return nil, nil, err
	}
	if err := missingPartitions(s, targets); err != nil {
		return nil, nil, err
	}
	if !check.Live(s)[broker] {
		return nil, nil, ErrNoBroker(int32(broker), s)
	}
	actx, cancel := c.within(ctx)
	defer cancel()
	dirs, err := c.logDirsOf(actx, broker, nil)
	if err != nil {
		return nil, nil, wrap(err, "describe log directories of %s", brokerName(broker))
	}
	var parts []cluster.TopicPartition
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			if !plan.Match(targets, p.Topic, p.Partition) || !named(targets, p) && !slices.Contains(p.Replicas, broker) {
				continue
			}
			parts = append(parts, p.TP())
		}
	}
	moves, err := plan.DirMoves(dirs, broker, parts, to)
	if err != nil {
		return nil, nil, NewBadInput(err)
	}
	return moves, s, nil
}

// named reports whether a target names the partition itself, not only its topic.
func named(targets []plan.Target, p *model.Partition) bool {
	return slices.ContainsFunc(targets, func(t plan.Target) bool {
		return t.Topic == p.Topic && slices.Contains(t.Partitions, p.Partition)
	})
}

// MoveDirs gives the moves that write to their broker, all of one broker. It returns when the broker has taken
// them, not when they are done; of moves that do not write only those that are under way already are Accepted.
func (c *Client) MoveDirs(ctx context.Context, moves []plan.DirMove) ([]DirMoveResult, error) {
	results := make([]DirMoveResult, len(moves))
	req := kmsg.NewPtrAlterReplicaLogDirsRequest()
	for i, m := range moves {
		results[i].DirMove, results[i].Accepted = m, m.UnderWay()
		if m.Action.Writes() {
			addDirMove(req, &m)
		}
	}
	if len(req.Dirs) == 0 {
		return results, nil
	}
	actx, cancel := c.within(ctx)
	defer cancel()
	resp, err := c.askWithin(actx, moves[0].Broker, req)
	if err != nil {
		return nil, wrap(err, "alter log directories of %s", brokerName(moves[0].Broker))
	}
	said := map[cluster.TopicPartition]int16{}
	for _, t := range resp.(*kmsg.AlterReplicaLogDirsResponse).Topics {
		for _, p := range t.Partitions {
			said[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.ErrorCode
		}
	}
	for i := range results {
		r := &results[i]
		if !r.Action.Writes() {
			continue
		}
		code, ok := said[r.TP()]
		switch {
		case !ok:
			r.Err = "the broker said nothing about it"
		case code == 0, r.Action == plan.DirPlace && code == kerr.ReplicaNotAvailable.Code:
			r.Accepted = true // a replica that is not there yet: the broker keeps the directory in mind
		default:
			r.Err = brokerErr(kmsg.AlterReplicaLogDirs, code, nil).Error()
		}
	}
	return results, nil
}

func addDirMove(req *kmsg.AlterReplicaLogDirsRequest, m *plan.DirMove) {
	if len(req.Dirs) == 0 {
		d := kmsg.NewAlterReplicaLogDirsRequestDir()
		d.Dir = m.To
		req.Dirs = append(req.Dirs, d)
	}
	d := &req.Dirs[0]
	if n := len(d.Topics); n == 0 || d.Topics[n-1].Topic != m.Topic {
		t := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
		t.Topic = m.Topic
		d.Topics = append(d.Topics, t)
	}
	t := &d.Topics[len(d.Topics)-1]
	t.Partitions = append(t.Partitions, m.Partition)
}

// DirProgress is how far accepted moves are.
type DirProgress struct {
	Done, Moves   int
	Copied, Bytes int64
}

// AwaitDirMoves looks at the broker until every accepted move is done, has failed, or wait is over; what is open
// then says so in its Err. progress is told after each look.
func (c *Client) AwaitDirMoves(ctx context.Context, results []DirMoveResult, wait time.Duration, progress func(DirProgress)) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		dirs, err := c.logDirsOf(ctx, results[0].Broker, nil)
		p := DirProgress{}
		if err == nil {
			p = settleDirMoves(results, dirs)
			progress(p)
		}
		if err == nil && p.Done == p.Moves {
			return
		}
		select {
		case <-ctx.Done():
			for i := range results {
				if r := &results[i]; waitsFor(r) {
					r.Open, r.Err = true, fmt.Sprintf("not done within %s: the move goes on", wait)
				}
			}
			return
		case <-time.After(5 * pollEvery):
		}
	}
}

// waitsFor reports whether a result may still change.
func waitsFor(r *DirMoveResult) bool {
	return r.Accepted && !r.Done && r.Err == "" && r.Action != plan.DirPlace
}

// settleDirMoves takes over what the broker's directories tell.
func settleDirMoves(results []DirMoveResult, dirs []model.LogDir) DirProgress {
	type spot struct {
		dir  string
		size int64
	}
	current, future := map[cluster.TopicPartition]spot{}, map[cluster.TopicPartition]spot{}
	failed := map[string]string{}
	for i := range dirs {
		if !dirs[i].Online() {
			failed[dirs[i].Path] = dirs[i].Err
		}
		for _, r := range dirs[i].Replicas {
			tp := cluster.TopicPartition{Topic: r.Topic, Partition: r.Partition}
			if r.Future {
				future[tp] = spot{dirs[i].Path, r.Size}
			} else {
				current[tp] = spot{dirs[i].Path, r.Size}
			}
		}
	}
	var p DirProgress
	for i := range results {
		r := &results[i]
		if !r.Accepted || r.Action == plan.DirPlace {
			continue
		}
		cur, has := current[r.TP()]
		fut, moving := future[r.TP()]
		r.Done = has && cur.dir == r.To && !moving
		switch {
		case r.Done || r.Err != "":
		case failed[r.To] != "":
			r.Err = r.To + ": " + failed[r.To]
		case !has:
			r.Err = "the broker has no such replica any more"
		case moving && fut.dir != r.To:
			r.Err = "the replica is moved to " + fut.dir + " instead"
		}
		p.add(r, cur.size, fut.size)
	}
	return p
}

func (p *DirProgress) add(r *DirMoveResult, size, copied int64) {
	p.Moves++
	p.Bytes += size
	switch {
	case r.Done:
		p.Done++
		p.Copied += size
	case r.Err != "":
		p.Done++
	default:
		p.Copied += min(copied, size)
	}
}
