package metadata

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/zkutil/cluster"
)

// Snapshot is one state of the cluster. Everything that it returns is shared and must not be changed.
type Snapshot struct {
	ControllerID    cluster.BrokerID // NoLeader: unknown
	ControllerEpoch cluster.ControllerEpoch

	alive  *aliveSet
	topics map[string]*Topic
	ids    map[cluster.TopicID]string
	names  []string // sorted
}

// Topic is one topic. Partitions are ordered by index; an index may be missing while a topic is being made.
type Topic struct {
	Name       string
	ID         cluster.TopicID
	Partitions []Partition

	built atomic.Pointer[builtParts]
}

// Partition is the last decision about one partition that the controller told. The replica lists are ids.
type Partition struct {
	Index           int32
	Leader          cluster.BrokerID
	LeaderEpoch     cluster.LeaderEpoch
	ControllerEpoch cluster.ControllerEpoch
	ZKVersion       cluster.ZKVersion
	Replicas        []int32
	ISR             []int32
	Offline         []int32 // replicas whose log directory is offline, as the controller said
}

// builtParts is the part of a Metadata answer for one listener and one set of live brokers.
type builtParts struct {
	alive    *aliveSet
	listener string
	parts    []kmsg.MetadataResponseTopicPartition
}

// Brokers returns the live brokers, ordered by id.
func (s *Snapshot) Brokers() []cluster.Broker { return s.alive.brokers }

// SameBrokers reports whether both snapshots have the same live brokers with the same endpoints.
func (s *Snapshot) SameBrokers(o *Snapshot) bool { return s.alive == o.alive || s.alive.equal(o.alive) }

// Broker finds a live broker.
func (s *Snapshot) Broker(id cluster.BrokerID) (cluster.Broker, bool) { return s.alive.broker(id) }

// IsAlive reports whether the broker is alive.
func (s *Snapshot) IsAlive(id cluster.BrokerID) bool {
	_, ok := s.alive.broker(id)
	return ok
}

// Topic finds a topic by name.
func (s *Snapshot) Topic(name string) (*Topic, bool) {
	t, ok := s.topics[name]
	return t, ok
}

// TopicName finds the name of a topic id.
func (s *Snapshot) TopicName(id cluster.TopicID) (string, bool) {
	n, ok := s.ids[id]
	return n, ok
}

// TopicNames returns all names, sorted.
func (s *Snapshot) TopicNames() []string { return s.names }

// Partition finds a partition.
func (s *Snapshot) Partition(tp cluster.TopicPartition) (*Partition, bool) {
	t, ok := s.topics[tp.Topic]
	if !ok {
		return nil, false
	}
	return t.Partition(tp.Partition)
}

// PartitionCount counts the partitions of all topics.
func (s *Snapshot) PartitionCount() int {
	n := 0
	for _, t := range s.topics {
		n += len(t.Partitions)
	}
	return n
}

// HasLeaders reports whether the topic has at least n partitions, all with live leaders.
func (s *Snapshot) HasLeaders(topic string, n int) bool {
	t, ok := s.topics[topic]
	if !ok || len(t.Partitions) < n {
		return false
	}
	for i := range t.Partitions {
		if !s.IsAlive(t.Partitions[i].Leader) {
			return false
		}
	}
	return true
}

// Partition finds a partition by index.
func (t *Topic) Partition(index int32) (*Partition, bool) {
	// Indexes are dense except for moments, so the guess nearly always hits.
	if i := int(index); i >= 0 && i < len(t.Partitions) && t.Partitions[i].Index == index {
		return &t.Partitions[i], true
	}
	at, found := slices.BinarySearchFunc(t.Partitions, index, func(p Partition, i int32) int { return int(p.Index) - int(i) })
	if !found {
		return nil, false
	}
	return &t.Partitions[at], true
}

// LeaderEndpoint returns the live leader of tp and its endpoint on the named listener.
func (s *Snapshot) LeaderEndpoint(tp cluster.TopicPartition, listener string) (cluster.BrokerID, cluster.Endpoint, bool) {
	p, ok := s.Partition(tp)
	if !ok {
		return cluster.NoLeader, cluster.Endpoint{}, false
	}
	b, ok := s.Broker(p.Leader)
	if !ok {
		return cluster.NoLeader, cluster.Endpoint{}, false
	}
	e, ok := b.Endpoint(listener)
	return b.ID, e, ok
}

// MetadataPartitions returns the partitions of t as a Metadata answer of version 6 or later holds them, for
// clients of the named listener. The slice is shared by all answers.
func (s *Snapshot) MetadataPartitions(t *Topic, listener string) []kmsg.MetadataResponseTopicPartition {
	if b := t.built.Load(); b != nil && b.alive == s.alive && b.listener == listener {
		return b.parts
	}
	b := &builtParts{alive: s.alive, listener: listener, parts: make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))}
	for i := range t.Partitions {
		b.parts[i] = s.alive.metadataPartition(&t.Partitions[i], listener)
	}
	t.built.Store(b)
	return b.parts
}

// aliveSet is a set of live brokers; snapshots share it while it does not change.
type aliveSet struct {
	brokers []cluster.Broker // ordered by id
}

func newAliveSet(req *kmsg.UpdateMetadataRequest) (*aliveSet, error) {
	a := &aliveSet{brokers: make([]cluster.Broker, 0, len(req.LiveBrokers))}
	for i := range req.LiveBrokers {
		lb := &req.LiveBrokers[i]
		b := cluster.Broker{ID: cluster.BrokerID(lb.ID), Epoch: cluster.NoBrokerEpoch}
		if lb.Rack != nil {
			b.Rack = *lb.Rack
		}
		for _, e := range lb.Endpoints {
			proto, ok := protocolName(e.SecurityProtocol)
			if !ok {
				return nil, fmt.Errorf("metadata: broker %d has an endpoint with unknown security protocol %d", lb.ID, e.SecurityProtocol)
			}
			name := e.ListenerName
			if name == "" { // up to v2 a listener is named after its protocol
				name = proto
			}
			b.Endpoints = append(b.Endpoints, cluster.Endpoint{Listener: name, Protocol: proto, Host: e.Host, Port: e.Port})
		}
		if req.Version == 0 {
			b.Endpoints = []cluster.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: lb.Host, Port: lb.Port}}
		}
		a.brokers = append(a.brokers, b)
	}
	slices.SortFunc(a.brokers, func(x, y cluster.Broker) int { return int(x.ID) - int(y.ID) })
	return a, nil
}

// protocolName translates the number of a security protocol on the wire.
func protocolName(id int16) (string, bool) {
	names := [...]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}
	if id < 0 || int(id) >= len(names) {
		return "", false
	}
	return names[id], true
}

func (a *aliveSet) broker(id cluster.BrokerID) (cluster.Broker, bool) {
	at, found := slices.BinarySearchFunc(a.brokers, id, func(b cluster.Broker, id cluster.BrokerID) int { return int(b.ID) - int(id) })
	if !found {
		return cluster.Broker{}, false
	}
	return a.brokers[at], true
}

func (a *aliveSet) equal(o *aliveSet) bool {
	return slices.EqualFunc(a.brokers, o.brokers, func(x, y cluster.Broker) bool {
		return x.ID == y.ID && x.Rack == y.Rack && slices.Equal(x.Endpoints, y.Endpoints)
	})
}

// metadataPartition says what clients are told of p: a leader that is not alive, or has no endpoint on the
// listener, reads as none.
func (a *aliveSet) metadataPartition(p *Partition, listener string) kmsg.MetadataResponseTopicPartition {
	out := kmsg.NewMetadataResponseTopicPartition()
	out.Partition = p.Index
	out.LeaderEpoch = int32(p.LeaderEpoch)
	out.Leader = int32(p.Leader)
	out.Replicas = p.Replicas
	out.ISR = p.ISR
	out.OfflineReplicas = a.offline(p, listener)
	leader, alive := a.broker(p.Leader)
	if !alive {
		out.ErrorCode, out.Leader = kerr.LeaderNotAvailable.Code, -1
	} else if _, ok := leader.Endpoint(listener); !ok {
		out.ErrorCode, out.Leader = kerr.ListenerNotFound.Code, -1
	}
	return out
}

func (a *aliveSet) offline(p *Partition, listener string) []int32 {
	out := []int32{}
	for _, r := range p.Replicas {
		b, alive := a.broker(cluster.BrokerID(r))
		if alive {
			_, alive = b.Endpoint(listener)
		}
		if !alive || slices.Contains(p.Offline, r) {
			out = append(out, r)
		}
	}
	return out
}
