package check

import (
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Source names something that checks read. A check whose sources are not all there is skipped, with the reason.
type Source string

// The sources of a diagnosis.
const (
	FromBrokers     Source = "brokers"     // Metadata of one broker and of every broker that answers
	FromZooKeeper   Source = "zookeeper"   // Kafka's znodes
	FromTransitions Source = "transitions" // decisions compared with what brokers act in
	FromConfigs     Source = "configs"     // topic and broker configuration, as the brokers answer
	FromLogDirs     Source = "log-dirs"    // what each broker has on disk
	FromPositions   Source = "positions"   // log end, high watermark and epoch of every replica
	FromGroups      Source = "groups"      // consumer groups and the topics they hold offsets of
	FromEnsemble    Source = "ensemble"    // what each ZooKeeper server says of itself (srvr)
)

// Facts are everything a diagnosis judges: one reading of a cluster, as far as it could be read. Parts that are
// missing have an entry in Missing; everything else may be trusted to be complete, except rows with an error.
type Facts struct {
	Snapshot      *model.Snapshot // Metadata, with what ZooKeeper adds to brokers and controller
	Transitions   []model.Transition
	Missing       map[Source]string // why a source could not be read
	Cannot        map[string]string // by check: why it cannot run, empty when it can; goes before Missing
	Views         []View            // by broker id
	Tree          *Tree             // nil: ZooKeeper was not read
	TopicConfigs  map[string]Config
	BrokerConfigs map[cluster.BrokerID]Config
	Dirs          []LogDir
	Positions     []model.ReplicaPosition // leader first within a partition
	Later         []model.ReplicaPosition // a second look at those of Suspects
	Groups        []Group
	Servers       []Server
	Office        Office
}

// Office is a second look at the broker that /controller names.
type Office struct {
	Refuses    string // what it answers to a request for the controller, such as NOT_CONTROLLER; empty: it takes it, or was not asked
	Changed    bool   // /controller was gone or another one
	Persistent bool   // /controller belongs to no session: somebody made it by hand
}

// View is the cluster as one broker answers it. Err says why there is none.
type View struct {
	Broker     cluster.BrokerID
	ClusterID  string
	Controller cluster.BrokerID
	Live       []cluster.BrokerID // sorted
	Topics     []model.Topic      // by name
	Versions   map[int16]int16    // API keys with their highest version; nil: not asked
	Err        string
}

// Value is a configured value. Own is set when the entity itself was given it, and it is no default.
type Value struct {
	Text string
	Own  bool
}

// Config holds the values of one entity.
type Config map[string]Value

// LogDir is one log directory of a broker. Total and Usable are -1 when the broker does not tell.
type LogDir struct {
	Broker        cluster.BrokerID
	Path          string
	Total, Usable int64
	Err           string // such as KAFKA_STORAGE_ERROR: the directory is offline
	Replicas      []DirReplica
}

// DirReplica is one replica on disk. Future is set while it is a copy on its way to this directory.
type DirReplica struct {
	TP     cluster.TopicPartition
	Size   int64
	Future bool
}

// Group is a consumer group: whether its coordinator answered and of which topics it holds offsets.
type Group struct {
	Name   string
	State  string
	Topics []string
	Err    string
}

// Server is one ZooKeeper server. Latency is in milliseconds.
type Server struct {
	Addr        string
	Version     string
	Mode        string // leader, follower, observer, standalone, read-only
	AvgLatency  float64
	MaxLatency  float64
	Outstanding int64
	Nodes       int64
	Err         string
}

// Node is a znode as stored.
type Node struct {
	Path     string
	Data     []byte
	Version  int32
	Modified time.Time
	Age      time.Duration // since Modified, when it was read
	Children int32
}

// Tree is Kafka's part of ZooKeeper.
type Tree struct {
	ClusterID       string
	Controller      cluster.BrokerID
	ControllerEpoch cluster.ControllerEpoch // -1: the node is missing or wrong
	Registrations   []Registration
	Topics          []model.Topic // assignments and state nodes; Err where a topic node is wrong
	States          []model.StateNode
	TopicNodes      map[string]Node // by topic, as stored
	Deleting        []Node
	Reassign        *Node // /admin/reassign_partitions
	Election        *Node // /admin/preferred_replica_election
	TopicConfigs    []Node
	BrokerConfigs   []Node
	ISRChanges      []Node
	DirEvents       []Node
	ConfigChanges   []Node
	Alerts          []Node
	ProducerIDs     *Node
	Migration       *Node
}

// Registration is a child of /brokers/ids.
type Registration struct {
	ID        cluster.BrokerID
	Endpoints []cluster.Endpoint
	Rack      string
	Err       string
}
