package metadata

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// ErrStaleController says that an UpdateMetadata came from a controller that has been replaced.
var ErrStaleController = errors.New("metadata: controller epoch is older than the last one seen")

// Cache holds the current Snapshot. The zero value is not usable; see NewCache. Safe for concurrent use.
type Cache struct {
	current atomic.Pointer[Snapshot]

	mu      sync.Mutex    // serialises Apply; guards changed
	changed chan struct{} // closed and replaced at each Apply
}

// NewCache returns an empty cache: no broker, no topic, no controller.
func NewCache() *Cache {
	c := &Cache{changed: make(chan struct{})}
	c.current.Store(&Snapshot{ControllerID: cluster.NoLeader, alive: &aliveSet{}})
	return c
}

// Snapshot returns the current state; it never changes after it was returned.
func (c *Cache) Snapshot() *Snapshot { return c.current.Load() }

// AliveBrokers returns the live brokers, ordered by id. The slice must not be changed.
func (c *Cache) AliveBrokers() []cluster.Broker { return c.Snapshot().Brokers() }

// IsAlive reports whether the broker was among the live ones of the last UpdateMetadata.
func (c *Cache) IsAlive(id cluster.BrokerID) bool { return c.Snapshot().IsAlive(id) }

// Wait blocks until cond holds for a snapshot, or ctx ends. cond is called once per change, without locks held.
func (c *Cache) Wait(ctx context.Context, cond func(*Snapshot) bool) error {
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if cond(c.Snapshot()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Apply takes in an UpdateMetadata request. The request's slices become the cache's and must not be used
// afterwards. It returns ErrStaleController for a controller epoch below the last one seen, and an error for
// contradictory content; then nothing changes.
func (c *Cache) Apply(req *kmsg.UpdateMetadataRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.Snapshot()
	epoch := cluster.ControllerEpoch(req.ControllerEpoch)
	if epoch < old.ControllerEpoch {
		return fmt.Errorf("%w: got %d, have %d", ErrStaleController, epoch, old.ControllerEpoch)
	}
	alive, err := newAliveSet(req)
	if err != nil {
		return err
	}
	next := &Snapshot{
		ControllerID:    cluster.BrokerID(req.ControllerID),
		ControllerEpoch: epoch,
		alive:           alive,
		topics:          old.topics,
		ids:             old.ids,
		names:           old.names,
	}
	if alive.equal(old.alive) {
		next.alive = old.alive // keeps what was built for it
	}
	next.update(groupStates(req))
	c.current.Store(next)
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// groupStates returns the partition states by topic in either form: flat up to v4, nested from v5.
func groupStates(req *kmsg.UpdateMetadataRequest) []kmsg.UpdateMetadataRequestTopicState {
	if len(req.PartitionStates) == 0 {
		return req.TopicStates
	}
	index := make(map[string]int)
	out := slices.Clone(req.TopicStates)
	for _, p := range req.PartitionStates {
		i, ok := index[p.Topic]
		if !ok {
			i = len(out)
			index[p.Topic] = i
			out = append(out, kmsg.UpdateMetadataRequestTopicState{Topic: p.Topic})
		}
		out[i].PartitionStates = append(out[i].PartitionStates, p)
	}
	return out
}

// update folds the changed topics into s, copying the shared maps first.
func (s *Snapshot) update(states []kmsg.UpdateMetadataRequestTopicState) {
	if len(states) == 0 {
		return
	}
	topics := maps.Clone(s.topics)
	if topics == nil {
		topics = make(map[string]*Topic, len(states))
	}
	namesChanged := false
	var ids map[cluster.TopicID]string
	ownIDs := func() map[cluster.TopicID]string {
		if ids == nil {
			if ids = maps.Clone(s.ids); ids == nil {
				ids = make(map[cluster.TopicID]string, len(states))
			}
		}
		return ids
	}
	for i := range states {
		st := &states[i]
		old := topics[st.Topic]
		next := mergeTopic(old, st)
		if old != nil && (next == nil || next.ID != old.ID) && !old.ID.IsZero() {
			delete(ownIDs(), old.ID)
		}
		namesChanged = namesChanged || (old == nil) != (next == nil)
		if next == nil {
			delete(topics, st.Topic)
			continue
		}
		topics[st.Topic] = next
		if !next.ID.IsZero() && (old == nil || old.ID != next.ID) {
			ownIDs()[next.ID] = next.Name
		}
	}
	s.topics = topics
	if ids != nil {
		s.ids = ids
	}
	if namesChanged {
		s.names = slices.SortedFunc(maps.Keys(topics), strings.Compare)
	}
}

// mergeTopic applies one topic's states to its predecessor, and returns nil when no partition is left.
func mergeTopic(old *Topic, st *kmsg.UpdateMetadataRequestTopicState) *Topic {
	next := &Topic{Name: st.Topic, ID: cluster.TopicID(st.TopicID)}
	if old != nil && (next.ID.IsZero() || next.ID == old.ID) {
		next.ID = old.ID
		next.Partitions = slices.Clone(old.Partitions)
	}
	for i := range st.PartitionStates {
		next.set(&st.PartitionStates[i])
	}
	if len(next.Partitions) == 0 {
		return nil
	}
	return next
}

// set replaces, inserts or, when the topic is being deleted, removes one partition; order is by index.
func (t *Topic) set(st *kmsg.UpdateMetadataRequestTopicPartition) {
	at, found := slices.BinarySearchFunc(t.Partitions, st.Partition, func(p Partition, i int32) int { return int(p.Index) - int(i) })
	if cluster.BrokerID(st.Leader) == cluster.LeaderDuringDelete {
		if found {
			t.Partitions = slices.Delete(t.Partitions, at, at+1)
		}
		return
	}
	p := Partition{
		Index:           st.Partition,
		Leader:          cluster.BrokerID(st.Leader),
		LeaderEpoch:     cluster.LeaderEpoch(st.LeaderEpoch),
		ControllerEpoch: cluster.ControllerEpoch(st.ControllerEpoch),
		ZKVersion:       cluster.ZKVersion(st.ZKVersion),
		Replicas:        st.Replicas,
		ISR:             st.ISR,
		Offline:         st.OfflineReplicas,
	}
	if found {
		t.Partitions[at] = p
		return
	}
	t.Partitions = slices.Insert(t.Partitions, at, p)
}
