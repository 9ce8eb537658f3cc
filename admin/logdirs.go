package admin

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// LogDirOptions says what LogDirs reads.
type LogDirOptions struct {
	Brokers []cluster.BrokerID // empty: all, also those that only replica lists name
	Topic   *regexp.Regexp     // nil: all topics
}

// LogDirs reads the log directories of brokers, with one DescribeLogDirs to each at the same time. A broker that
// does not answer is a LogDir without path and a problem; an offline directory is a LogDir with its error and a
// problem. The order is by broker and path.
func (c *Client) LogDirs(ctx context.Context, o LogDirOptions) ([]model.LogDir, []model.Problem, error) {
	if err := c.notOffline(); err != nil {
		return nil, nil, err
	}
	s, err := c.Snapshot(ctx, SnapshotOptions{NoTopics: len(o.Brokers) > 0, NoZooKeeper: true})
	if err != nil {
		return nil, nil, err
	}
	ids := o.Brokers
	if len(ids) == 0 {
		for i := range s.Brokers {
			ids = append(ids, s.Brokers[i].ID)
		}
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	live := check.Live(s)
	answers := make([][]model.LogDir, len(ids))
	errs := c.eachBroker(ctx, ids, func(ctx context.Context, id cluster.BrokerID) error {
		if !live[id] {
			return &Error{Kind: Unreachable, Msg: notRegistered}
		}
		dirs, err := c.logDirsOf(ctx, id, o.Topic)
		answers[slices.Index(ids, id)] = dirs
		return err
	})
	var out []model.LogDir
	var problems []model.Problem
	for i, id := range ids {
		if err := errs[id]; err != nil {
			out = append(out, model.LogDir{Broker: id, Err: short(err), Total: -1, Usable: -1})
			problems = append(problems, model.Problem{Object: brokerName(id), Message: short(err)})
			continue
		}
		for j := range answers[i] {
			if d := &answers[i][j]; d.Err != "" {
				problems = append(problems, model.Problem{Object: brokerName(id) + ", " + d.Path, Message: d.Err})
			}
		}
		out = append(out, answers[i]...)
	}
	return out, append(s.Problems, problems...), nil
}

func (c *Client) logDirsOf(ctx context.Context, id cluster.BrokerID, topic *regexp.Regexp) ([]model.LogDir, error) {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Topics = nil // all
	resp, err := c.askBroker(ctx, id, req)
	if err != nil {
		return nil, err
	}
	return logDirsFrom(id, resp.(*kmsg.DescribeLogDirsResponse), topic)
}

// logDirsFrom turns an answer into the model. Brokers that may not be asked answer without directories; newer ones
// say so in the error code.
func logDirsFrom(id cluster.BrokerID, r *kmsg.DescribeLogDirsResponse, topic *regexp.Regexp) ([]model.LogDir, error) {
	if err := brokerErr(kmsg.DescribeLogDirs, r.ErrorCode, nil); err != nil {
		return nil, err
	}
	if len(r.Dirs) == 0 {
		return nil, fmt.Errorf("no log directories in the answer: %w", needs(kmsg.DescribeLogDirs, kerr.ClusterAuthorizationFailed))
	}
	sizes := map[cluster.TopicPartition]int64{}
	dirs := make([]model.LogDir, 0, len(r.Dirs))
	for i := range r.Dirs {
		d := model.LogDir{Broker: id, Path: r.Dirs[i].Dir, Total: r.Dirs[i].TotalBytes, Usable: r.Dirs[i].UsableBytes}
		if err := brokerErr(kmsg.DescribeLogDirs, r.Dirs[i].ErrorCode, nil); err != nil {
			d.Err = short(err)
		}
		d.Replicas = dirReplicas(r.Dirs[i].Topics, topic, sizes)
		dirs = append(dirs, d)
	}
	for i := range dirs {
		for j := range dirs[i].Replicas {
			rep := &dirs[i].Replicas[j]
			if size, ok := sizes[cluster.TopicPartition{Topic: rep.Topic, Partition: rep.Partition}]; rep.Future && ok {
				rep.Current = size
			}
		}
	}
	slices.SortFunc(dirs, func(a, b model.LogDir) int { return strings.Compare(a.Path, b.Path) })
	return dirs, nil
}

// dirReplicas lists the replicas of one directory and notes the sizes of the current ones.
func dirReplicas(topics []kmsg.DescribeLogDirsResponseDirTopic, topic *regexp.Regexp, sizes map[cluster.TopicPartition]int64) []model.DirReplica {
	var out []model.DirReplica
	for i := range topics {
		t := &topics[i]
		if topic != nil && !topic.MatchString(t.Topic) {
			continue
		}
		for _, p := range t.Partitions {
			if !p.IsFuture {
				sizes[cluster.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Size
			}
			out = append(out, model.DirReplica{Topic: t.Topic, Partition: p.Partition, Size: p.Size, OffsetLag: p.OffsetLag, Future: p.IsFuture, Current: -1})
		}
	}
	slices.SortFunc(out, func(a, b model.DirReplica) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}
