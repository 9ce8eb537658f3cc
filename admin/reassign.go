package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan/reassign"
	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// The ways in which a reassignment is asked for.
const (
	ViaAuto  = "auto"  // the request where the brokers know it, else the znode
	ViaAPI   = "api"   // AlterPartitionReassignments (KIP-455, Kafka 2.4)
	ViaZnode = "znode" // /admin/reassign_partitions: ZooKeeper mode only, also before Kafka 2.4 and without a broker that answers
)

// ReassignVia decides between the request and the znode. Brokers that do not answer are no error where ZooKeeper does: then
// the znode is the way, with silent saying why.
func (c *Client) ReassignVia(ctx context.Context, want string) (via string, silent, err error) {
	if c.offline() && want != ViaAPI {
		want = ViaZnode
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	if want == ViaZnode {
		_, err := c.zookeeper(ctx)
		return ViaZnode, nil, err
	}
	ok, err := c.supports(ctx, kmsg.NewPtrAlterPartitionAssignmentsRequest().Key())
	switch {
	case err == nil && ok:
		return ViaAPI, nil, nil
	case want == ViaAPI && err == nil:
		return "", nil, &Error{Kind: Failed, Msg: "the brokers do not know AlterPartitionReassignments (Kafka 2.4)", Hint: "--via znode with -z does it through ZooKeeper"}
	case !c.HasZooKeeper() && err == nil:
		return "", nil, &Error{Kind: BadInput, Msg: "the brokers do not know AlterPartitionReassignments (Kafka 2.4): this needs ZooKeeper", Hint: "give its address with -z HOST:PORT/chroot"}
	case err != nil && (want == ViaAPI || !c.HasZooKeeper()):
		return "", nil, err
	}
	if _, zerr := c.zookeeper(ctx); zerr != nil {
		return "", nil, cmpErr(err, zerr)
	}
	return ViaZnode, err, nil
}

// ReassignView reads what a reassignment concerns: live and known brokers, and the partitions of topics (nil: all)
// with what is under way. Topics that do not exist are left out.
func (c *Client) ReassignView(ctx context.Context, via string, topics []string) (*reassign.View, *model.Snapshot, error) {
	return c.reassignView(ctx, via, SnapshotOptions{Topics: topics})
}

func (c *Client) reassignView(ctx context.Context, via string, opts SnapshotOptions) (*reassign.View, *model.Snapshot, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if via == ViaZnode {
		queued, _, err := c.readReassignZnode(ctx)
		if err != nil {
			return nil, nil, err
		}
		opts.Source = model.SourceZooKeeper
		s, err := c.snapshot(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		return reassignView(s, queued, nil), s, nil
	}
	// The controller first: a broker's metadata may be behind it, and then its list has the replicas.
	moves, err := c.reassignments(ctx)
	if err != nil {
		return nil, nil, wrap(err, "list partition reassignments")
	}
	opts.Source = model.SourceProtocol
	s, err := c.snapshot(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	return reassignView(s, nil, moves), s, nil
}

func reassignView(s *model.Snapshot, queued map[cluster.TopicPartition][]cluster.BrokerID, moves map[cluster.TopicPartition]cluster.Assignment) *reassign.View {
	v := &reassign.View{Parts: map[cluster.TopicPartition]reassign.Seen{}, Sizes: map[cluster.TopicPartition]int64{}}
	for i := range s.Brokers {
		v.Known = append(v.Known, s.Brokers[i].ID)
		if s.Brokers[i].Live {
			v.Live = append(v.Live, s.Brokers[i].ID)
		}
	}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			if len(p.Replicas) == 0 {
				continue
			}
			seen := reassign.Seen{Replicas: p.Replicas, Adding: p.Adding, Removing: p.Removing, Leader: p.Leader, ISR: p.ISR, Queued: queued[p.TP()]}
			if m, ok := moves[p.TP()]; ok {
				seen.Replicas, seen.Adding, seen.Removing = m.Replicas, m.Adding, m.Removing
			}
			v.Parts[p.TP()] = seen
		}
	}
	return v
}

// readReassignZnode reads the old request, nil when there is none, and when it was made.
func (c *Client) readReassignZnode(ctx context.Context) (map[cluster.TopicPartition][]cluster.BrokerID, time.Time, error) {
	rs, err := c.zkDo(ctx, []zkop.Request{{Kind: zkop.Get, Path: znode.ReassignPartitionsPath}})
	if err != nil || errors.Is(rs[0].Err, zkop.ErrNoNode) {
		return nil, time.Time{}, err
	}
	list, err := znode.DecodeReassignments(rs[0].Data)
	if err != nil {
		return nil, time.Time{}, &Error{Kind: Failed, Msg: "read " + znode.ReassignPartitionsPath, Err: err, Hint: "kctl zk get " + znode.ReassignPartitionsPath + " shows it"}
	}
	out := map[cluster.TopicPartition][]cluster.BrokerID{}
	for _, r := range list {
		out[r.Partition] = r.Replicas
	}
	return out, time.UnixMilli(rs[0].Stat.Ctime), nil
}

// AlterReassignments asks the controller to reassign, or to cancel entries whose Replicas are nil. The result has an
// entry for each partition: nil when the order was taken. ErrNothingToCancel is the answer to a cancellation of what
// is not under way.
func (c *Client) AlterReassignments(ctx context.Context, via string, entries []reassign.Entry) (map[cluster.TopicPartition]error, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if via == ViaZnode {
		return c.reassignByZnode(ctx, entries)
	}
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = c.serverTimeout()
	byTopic := map[string]int{}
	for i := range entries {
		e := &entries[i]
		t, ok := byTopic[e.Topic]
		if !ok {
			t = len(req.Topics)
			byTopic[e.Topic] = t
			rt := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			rt.Topic = e.Topic
			req.Topics = append(req.Topics, rt)
		}
		rp := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		rp.Partition = e.Partition
		if e.Replicas != nil {
			rp.Replicas = cluster.IDsToInt32(e.Replicas)
		}
		req.Topics[t].Partitions = append(req.Topics[t].Partitions, rp)
	}
	resp, err := c.askController(ctx, req, func(r kmsg.Response) bool {
		return r.(*kmsg.AlterPartitionAssignmentsResponse).ErrorCode == kerr.NotController.Code
	})
	if err != nil {
		return nil, err
	}
	r := resp.(*kmsg.AlterPartitionAssignmentsResponse)
	if err := brokerErr(kmsg.AlterPartitionAssignments, r.ErrorCode, r.ErrorMessage); err != nil {
		return nil, wrap(err, "alter partition reassignments")
	}
	out := make(map[cluster.TopicPartition]error, len(entries))
	for i := range entries {
		out[entries[i].TP()] = errors.New("the controller said nothing about it")
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			err := brokerErr(kmsg.AlterPartitionAssignments, p.ErrorCode, p.ErrorMessage)
			if p.ErrorCode == kerr.NoReassignmentInProgress.Code {
				err = ErrNothingToCancel
			}
			out[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = err
		}
	}
	return out, nil
}

// ErrNothingToCancel says that a partition is not being reassigned.
var ErrNothingToCancel = errors.New("no reassignment is under way")

// reassignByZnode writes the request of before Kafka 2.4. One that is there already belongs to somebody else: it is
// named, not replaced.
func (c *Client) reassignByZnode(ctx context.Context, entries []reassign.Entry) (map[cluster.TopicPartition]error, error) {
	list := make([]znode.Reassignment, len(entries))
	out := make(map[cluster.TopicPartition]error, len(entries))
	for i := range entries {
		if entries[i].Replicas == nil {
			return nil, &Error{
				Kind: Failed, Msg: "a reassignment that was asked for in ZooKeeper cannot be cancelled there",
				Hint: "kctl reassign rollback FILE moves the partitions back; brokers of Kafka 2.4 and later cancel with --via api",
			}
		}
		list[i] = znode.Reassignment{Partition: entries[i].TP(), Replicas: entries[i].Replicas}
		out[entries[i].TP()] = nil
	}
	zk, err := c.zookeeper(ctx)
	if err != nil {
		return nil, err
	}
	r := zk.Do(ctx, zkutil.AnySession, zkop.Request{Kind: zkop.Create, Path: znode.ReassignPartitionsPath, Data: znode.EncodeReassignments(list)})[0]
	if errors.Is(r.Err, zkop.ErrNodeExists) {
		queued, since, rerr := c.readReassignZnode(ctx)
		if rerr == nil && queued == nil {
			return c.reassignByZnode(ctx, entries) // gone meanwhile
		}
		return nil, znodeBusy(queued, since, rerr)
	}
	return out, wrap(r.Err, "create %s", znode.ReassignPartitionsPath)
}

func znodeBusy(queued map[cluster.TopicPartition][]cluster.BrokerID, since time.Time, err error) error {
	if err != nil {
		return err
	}
	var first cluster.TopicPartition
	for tp := range queued {
		if first.Topic == "" || tp.Compare(first) < 0 {
			first = tp
		}
	}
	return &Error{
		Kind: Failed, Msg: fmt.Sprintf("%s holds a reassignment of %d partition(s), %s first, asked for at %s",
			znode.ReassignPartitionsPath, len(queued), reassign.Name(first), since.UTC().Format(time.RFC3339)),
		Hint: "wait for it: the controller removes the node when it is done; kctl reassign status --via znode shows it",
	}
}

// Copies are the replicas in the brokers' log directories: sizes in bytes and where they are.
type Copies map[cluster.TopicPartition]map[cluster.BrokerID]Copy

// Copy is one replica in a log directory.
type Copy struct {
	Size      int64
	OffsetLag int64
	Dir       string
	Future    string // the directory to which it is being moved; empty: none
}

// Sizes returns the bytes of a partition's replicas.
func (c Copies) Sizes(tp cluster.TopicPartition) map[cluster.BrokerID]int64 {
	out := make(map[cluster.BrokerID]int64, len(c[tp]))
	for id, r := range c[tp] {
		out[id] = r.Size
	}
	return out
}

// Dir returns where a replica is, reassign.AnyDir when not known.
func (c Copies) Dir(tp cluster.TopicPartition, id cluster.BrokerID) string {
	if r, ok := c[tp][id]; ok && r.Dir != "" {
		return r.Dir
	}
	return reassign.AnyDir
}

// Copies reads the log directories of brokers, limited to topics (nil: all), one request to each at the same time.
// Brokers that do not answer are problems.
func (c *Client) Copies(ctx context.Context, ids []cluster.BrokerID, parts []cluster.TopicPartition) (Copies, []model.Problem) {
	out, _, problems := c.copiesAndDirs(ctx, ids, parts)
	return out, problems
}

// copiesAndDirs also returns the log directories of each broker that answered, those that are online.
func (c *Client) copiesAndDirs(ctx context.Context, ids []cluster.BrokerID, parts []cluster.TopicPartition) (Copies, map[cluster.BrokerID][]string, []model.Problem) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	answers := make([]*kmsg.DescribeLogDirsResponse, len(ids))
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		resp, err := c.askBroker(ctx, id, logDirsOfPartitions(parts))
		if err != nil {
			return err
		}
		answers[slices.Index(ids, id)] = resp.(*kmsg.DescribeLogDirsResponse)
		return brokerErr(kmsg.DescribeLogDirs, answers[slices.Index(ids, id)].ErrorCode, nil)
	})
	out := Copies{}
	dirs := map[cluster.BrokerID][]string{}
	var problems []model.Problem
	for i, id := range ids {
		if errs[id] != nil {
			problems = append(problems, model.Problem{Object: brokerName(id), Message: short(errs[id])})
			continue
		}
		out.add(id, answers[i])
		dirs[id] = onlineDirs(answers[i])
	}
	return out, dirs, problems
}

func logDirsOfPartitions(parts []cluster.TopicPartition) *kmsg.DescribeLogDirsRequest {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	if parts == nil {
		req.Topics = nil
		return req
	}
	byTopic := map[string]int{}
	for _, tp := range parts {
		i, ok := byTopic[tp.Topic]
		if !ok {
			i = len(req.Topics)
			byTopic[tp.Topic] = i
			t := kmsg.NewDescribeLogDirsRequestTopic()
			t.Topic = tp.Topic
			req.Topics = append(req.Topics, t)
		}
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, tp.Partition)
	}
	return req
}

func onlineDirs(r *kmsg.DescribeLogDirsResponse) []string {
	out := []string{}
	for i := range r.Dirs {
		if r.Dirs[i].ErrorCode == 0 {
			out = append(out, r.Dirs[i].Dir)
		}
	}
	return out
}

func (c Copies) add(id cluster.BrokerID, r *kmsg.DescribeLogDirsResponse) {
	for _, d := range r.Dirs {
		if d.ErrorCode != 0 {
			continue
		}
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				tp := cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}
				if c[tp] == nil {
					c[tp] = map[cluster.BrokerID]Copy{}
				}
				have := c[tp][id]
				if p.IsFuture {
					have.Future = d.Dir
				} else {
					have.Size, have.OffsetLag, have.Dir = p.Size, p.OffsetLag, d.Dir
				}
				c[tp][id] = have
			}
		}
	}
}

// FillSizes adds the bytes of each partition's largest replica to a view.
func FillSizes(v *reassign.View, copies Copies) {
	for tp, replicas := range copies {
		for _, r := range replicas {
			v.Sizes[tp] = max(v.Sizes[tp], r.Size)
		}
	}
}
