package topicadmin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"kctl/zkutil"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

// Admin writes topics into ZooKeeper. Safe for concurrent use.
type Admin struct {
	zk zkutil.Client
}

// New returns an Admin over zk.
func New(zk zkutil.Client) *Admin { return &Admin{zk: zk} }

// RandomSpread is where a new topic begins.
func RandomSpread(brokers int) Spread {
	if brokers <= 0 {
		return Spread{}
	}
	return Spread{Start: mathrand.IntN(brokers), Shift: mathrand.IntN(brokers)}
}

// CheckNew refuses a topic that exists, collides with another, or is still being deleted.
func (a *Admin) CheckNew(ctx context.Context, name string, existing []string) error {
	if err := ValidateName(name); err != nil {
		return err
	}
	if err := checkCollision(name, existing); err != nil {
		return err
	}
	_, exists, err := zkutil.Any(a.zk).Exists(ctx, znode.TopicPath(name))
	if err != nil {
		return err
	}
	if exists {
		return refuse(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	return nil
}

// Create writes the topic's configuration, then its assignment under a new id. TOPIC_ALREADY_EXISTS when another
// client was first; its configuration is then left alone if there is one.
func (a *Admin) Create(ctx context.Context, name string, assignment map[int32][]cluster.BrokerID, configs map[string]string) (cluster.TopicID, error) {
	ops := zkutil.Any(a.zk)
	if err := a.writeConfig(ctx, name, configs); err != nil {
		return cluster.TopicID{}, fmt.Errorf("write configuration of topic %s: %w", name, err)
	}
	topic := znode.Topic{
		ID:         cluster.NewTopicID(func(b []byte) { _, _ = rand.Read(b) }),
		Partitions: make(map[int32]cluster.Assignment, len(assignment)),
	}
	for p, replicas := range assignment {
		topic.Partitions[p] = cluster.Assignment{Replicas: replicas}
	}
	for {
		_, err := ops.Create(ctx, znode.TopicPath(name), topic.Encode(), zkop.Persistent)
		switch {
		case err == nil:
			return topic.ID, nil
		case errors.Is(err, zkop.ErrNodeExists):
			// Ours, when an earlier answer was lost: no one else has drawn this id.
			if id, rerr := a.topicID(ctx, name); rerr == nil && id == topic.ID {
				return topic.ID, nil
			}
			return cluster.TopicID{}, refuse(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
		case errors.Is(err, zkop.ErrOutcomeUnknown) && ctx.Err() == nil:
		default:
			return cluster.TopicID{}, fmt.Errorf("create topic %s: %w", name, err)
		}
	}
}

func (a *Admin) topicID(ctx context.Context, name string) (cluster.TopicID, error) {
	data, _, err := zkutil.Any(a.zk).Get(ctx, znode.TopicPath(name))
	if err != nil {
		return cluster.TopicID{}, err
	}
	t, err := znode.DecodeTopic(name, data)
	return t.ID, err
}

// writeConfig creates or replaces the configuration node of a topic that does not exist yet.
func (a *Admin) writeConfig(ctx context.Context, name string, configs map[string]string) error {
	ops := zkutil.Any(a.zk)
	path := znode.ConfigEntityPath(znode.TopicConfig, name)
	data := znode.Config{Values: configs}.Encode()
	for {
		_, err := ops.Create(ctx, path, data, zkop.Persistent)
		if errors.Is(err, zkop.ErrNodeExists) { // left over from a topic that is gone
			_, err = ops.Set(ctx, path, data, zkop.AnyVersion)
		}
		if err == nil || ctx.Err() != nil || !(errors.Is(err, zkop.ErrOutcomeUnknown) || errors.Is(err, zkop.ErrNoNode)) {
			return err
		}
	}
}

// Delete asks the controller to delete the topic. UNKNOWN_TOPIC_OR_PARTITION when it does not exist; asking
// twice is no error.
func (a *Admin) Delete(ctx context.Context, name string) error {
	ops := zkutil.Any(a.zk)
	_, exists, err := ops.Exists(ctx, znode.TopicPath(name))
	if err != nil {
		return err
	}
	if !exists {
		return refuse(kerr.UnknownTopicOrPartition, "This server does not host this topic-partition.")
	}
	for {
		_, err := ops.Create(ctx, znode.DeleteTopicPath(name), nil, zkop.Persistent)
		switch {
		case err == nil, errors.Is(err, zkop.ErrNodeExists):
			return nil
		case errors.Is(err, zkop.ErrOutcomeUnknown) && ctx.Err() == nil:
		default:
			return fmt.Errorf("delete topic %s: %w", name, err)
		}
	}
}

// Growth is what is asked of AddPartitions. Assignment nil lets it choose.
type Growth struct {
	Total      int32
	Assignment [][]cluster.BrokerID
	Brokers    []cluster.Broker // live ones
	Dry        bool
}

// AddPartitions raises a topic's partitions to g.Total. INVALID_PARTITIONS when it has as many or more,
// REASSIGNMENT_IN_PROGRESS while replicas move, INVALID_TOPIC_EXCEPTION while it is being deleted.
func (a *Admin) AddPartitions(ctx context.Context, name string, g Growth) error {
	ops := zkutil.Any(a.zk)
	for {
		data, stat, err := ops.Get(ctx, znode.TopicPath(name))
		if errors.Is(err, zkop.ErrNoNode) {
			return refuse(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", name)
		}
		if err != nil {
			return err
		}
		topic, err := znode.DecodeTopic(name, data)
		if err != nil {
			return err
		}
		if _, deleting, err := ops.Exists(ctx, znode.DeleteTopicPath(name)); err != nil {
			return err
		} else if deleting {
			return refuse(kerr.InvalidTopicException, "The topic '%s' is being deleted.", name)
		}
		grown, err := grow(name, topic, g)
		if err != nil || g.Dry {
			return err
		}
		_, err = ops.SetIfVersion(ctx, znode.TopicPath(name), grown.Encode(), stat.Version)
		if errors.Is(err, zkop.ErrBadVersion) && ctx.Err() == nil {
			continue // someone changed it: judge anew
		}
		return err
	}
}

// grow returns topic with the partitions that g adds.
func grow(name string, topic znode.Topic, g Growth) (znode.Topic, error) {
	have := int32(len(topic.Partitions))
	for _, as := range topic.Partitions {
		if as.Reassigning() {
			return topic, refuse(kerr.ReassignmentInProgress, "A partition reassignment is in progress for the topic '%s'.", name)
		}
	}
	if g.Total <= have {
		return topic, refuse(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", name, have, g.Total)
	}
	first, ok := topic.Partitions[0]
	if !ok || len(first.Replicas) == 0 {
		return topic, fmt.Errorf("topic %s has no partition 0", name)
	}
	added := make(map[int32][]cluster.BrokerID, g.Total-have)
	if g.Assignment == nil {
		ring := byRack(g.Brokers)
		start := max(0, slices.IndexFunc(ring, func(b cluster.Broker) bool { return b.ID >= first.Replicas[0] }))
		var err error
		if added, err = Assign(g.Brokers, int(g.Total-have), len(first.Replicas), Spread{Start: start, Shift: start, First: have}); err != nil {
			return topic, err
		}
	} else {
		if len(g.Assignment) != int(g.Total-have) {
			return topic, refuse(kerr.InvalidReplicaAssignment, "Increasing the number of partitions by %d but %d assignments provided.", g.Total-have, len(g.Assignment))
		}
		for i, replicas := range g.Assignment {
			added[have+int32(i)] = replicas
		}
		alive := func(id cluster.BrokerID) bool {
			return slices.ContainsFunc(g.Brokers, func(b cluster.Broker) bool { return b.ID == id })
		}
		if err := CheckAssignment(added, have, alive); err != nil {
			return topic, err
		}
		if len(g.Assignment[0]) != len(first.Replicas) {
			return topic, refuse(kerr.InvalidReplicaAssignment, "Inconsistent replication factor between partitions: partition 0 has %d while the new ones have %d.", len(first.Replicas), len(g.Assignment[0]))
		}
	}
	out := topic.Clone()
	for p, replicas := range added {
		out.Partitions[p] = cluster.Assignment{Replicas: replicas}
	}
	return out, nil
}

// Gone waits until the topic's node has been deleted by the controller, or ctx ends.
func (a *Admin) Gone(ctx context.Context, name string) error {
	feed, cancel := a.zk.Subscribe()
	defer cancel()
	for {
		_, exists, err := zkutil.Any(a.zk).ExistsWatch(ctx, znode.TopicPath(name))
		if err != nil || !exists {
			return err
		}
		if err := nextNotice(ctx, feed, znode.TopicPath(name)); err != nil {
			return err
		}
	}
}

// nextNotice waits for a watch of path, or for a new session, with which watches are lost.
func nextNotice(ctx context.Context, feed <-chan zkutil.Notice, path string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case n, ok := <-feed:
			if !ok {
				return zkop.ErrClosed
			}
			if n.Watch == nil || n.Watch.Path == path {
				return nil
			}
		}
	}
}
