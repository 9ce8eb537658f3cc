package sim

import (
	"encoding/binary"
	"fmt"
	"time"

	"kctl/broker/controller"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
	"kctl/zkutil/zkop"
	"kctl/zkutil/znode"
)

const (
	brokers   = 3
	minInSync = 1
	listener  = "PLAINTEXT"
)

// boot makes the persistent paths, starts the brokers and everything that happens by itself.
func (s *Sim) boot() {
	s.admin = s.tree.OpenSession(s.now, 24*365*time.Hour)
	for _, path := range znode.PersistentPaths() {
		s.adminDo(zkop.Request{Kind: zkop.Create, Path: path})
	}
	for id := cluster.BrokerID(1); id <= brokers; id++ {
		n := newNode(s, id)
		s.nodes = append(s.nodes, n)
		s.at(s.now.Add(s.between(0, 200*time.Millisecond)), "start", noTP, int64(id), 0, n.start)
	}
	s.createTopic("a", 2, 3)
	s.createTopic("b", 1, 2)
	for i := range 2 {
		s.clients = append(s.clients, newClient(s, int64(1000+i)))
	}
	s.heartbeats()
	s.scheduleFaults()
}

func (s *Sim) node(id cluster.BrokerID) *node { return s.nodes[id-1] }

// adminDo runs one request in the session of an operator, which is never disturbed.
func (s *Sim) adminDo(req zkop.Request) zkop.Response {
	resp, fired := s.tree.Do(s.now, s.admin, nil, req)
	s.trace.line("admin %s %s -> %v", kindName(req.Kind), req.Path, resp.Err)
	s.dispatch(fired)
	return resp
}

func (s *Sim) controllerConfig(id cluster.BrokerID) controller.Config {
	return controller.Config{BrokerID: id, InterBrokerListener: listener, TransitionTimeout: 10 * time.Second,
		AutoRebalance: true, RebalanceInterval: 20 * time.Second, RebalancePercent: 10, DeleteTopicEnable: true}
}

func (s *Sim) storageOptions(id cluster.BrokerID) storage.ManagerOptions {
	return storage.ManagerOptions{BrokerID: id, ClusterID: "sim", Config: func(string) storage.Config { return s.topicConfig() },
		OpenFiles: 64, RetentionCheckInterval: 20 * time.Second, Now: func() time.Time { return s.now }, Random: s.random}
}

// topicConfig makes segments and indexes so small that rolling and searching happen all the time.
func (s *Sim) topicConfig() storage.Config {
	cfg := storage.DefaultConfig()
	cfg.SegmentBytes = 4 << 10
	cfg.IndexIntervalBytes = 256
	cfg.RetentionMs = -1
	cfg.FileDeleteDelayMs = 1000
	return cfg
}

func (s *Sim) random(b []byte) {
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
}

func (s *Sim) seed16() (seed [16]byte) {
	binary.BigEndian.PutUint64(seed[:8], s.rng.Uint64())
	binary.BigEndian.PutUint64(seed[8:], s.rng.Uint64())
	return seed
}

func (s *Sim) nowMs() int64 { return s.now.UnixMilli() }

func (s *Sim) brokerPath(id cluster.BrokerID) string { return znode.BrokerPath(id) }

func (s *Sim) registration(id cluster.BrokerID) []byte {
	return znode.Registration{ID: id, JMXPort: -1, TimestampMs: s.nowMs(), Version: 5, DataEpoch: s.node(id).dataEpoch,
		Endpoints: []cluster.Endpoint{{Listener: listener, Protocol: "PLAINTEXT", Host: "sim", Port: 9000 + int32(id)}}}.Encode()
}

// startLater starts a broker that is down, after a pause that is sometimes shorter and sometimes longer than
// a session.
func (s *Sim) startLater(n *node) {
	inc := n.inc
	s.after(s.between(50*time.Millisecond, 2*zkSessionTimeout), "start", noTP, int64(n.id), 0, func() {
		if !n.up && n.inc == inc {
			n.fs.ClearFaults()
			n.start()
		}
	})
}

// createTopic does what the broker's handler of CreateTopics writes.
func (s *Sim) createTopic(name string, partitions, replicas int) {
	t := znode.Topic{ID: cluster.NewTopicID(s.random), Partitions: map[int32]cluster.Assignment{}}
	first := s.rng.IntN(brokers)
	for p := range partitions {
		t.Partitions[int32(p)] = cluster.Assignment{Replicas: assign(first+p, replicas)}
	}
	s.adminDo(zkop.Request{Kind: zkop.Create, Path: znode.ConfigEntityPath(znode.TopicConfig, name), Data: znode.Config{}.Encode()})
	if r := s.adminDo(zkop.Request{Kind: zkop.Create, Path: znode.TopicPath(name), Data: t.Encode()}); r.Err == nil {
		s.topics = append(s.topics, name)
	}
}

func assign(first, replicas int) []cluster.BrokerID {
	out := make([]cluster.BrokerID, replicas)
	for i := range out {
		out[i] = cluster.BrokerID(1 + (first+i)%brokers)
	}
	return out
}

// topic reads a topic's assignment as it is in ZooKeeper.
func (s *Sim) topic(name string) (znode.Topic, zkop.Stat, bool) {
	r := s.adminDo(zkop.Request{Kind: zkop.Get, Path: znode.TopicPath(name)})
	if r.Err != nil {
		return znode.Topic{}, zkop.Stat{}, false
	}
	t, err := znode.DecodeTopic(name, r.Data)
	if err != nil {
		s.fail("topic %s: %v", name, err)
		return znode.Topic{}, zkop.Stat{}, false
	}
	return t, r.Stat, true
}

// expandTopic adds one partition.
func (s *Sim) expandTopic(name string) {
	t, stat, ok := s.topic(name)
	if !ok || len(t.Partitions) >= 4 {
		return
	}
	t.Partitions[int32(len(t.Partitions))] = cluster.Assignment{Replicas: assign(s.rng.IntN(brokers), 3)}
	s.adminDo(zkop.Request{Kind: zkop.Set, Path: znode.TopicPath(name), Data: t.Encode(), Version: stat.Version})
}

// deleteTopic asks for the deletion; the controller does it.
func (s *Sim) deleteTopic(name string) {
	r := s.adminDo(zkop.Request{Kind: zkop.Create, Path: znode.DeleteTopicPath(name)})
	if r.Err != nil {
		return
	}
	s.check.deleting(name)
	kept := s.topics[:0]
	for _, t := range s.topics {
		if t != name {
			kept = append(kept, t)
		}
	}
	s.topics = kept
}

// newTopicName never repeats within a run, so that an old topic's traces cannot be taken for a new one's.
func (s *Sim) newTopicName() string {
	s.topicCount++
	return fmt.Sprintf("t%d", s.topicCount)
}
