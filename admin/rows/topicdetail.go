package rows

import (
	"kctl/admin/model"
)

// TopicDetail is the answer of topics describe for one topic.
type TopicDetail struct {
	Name              string        `json:"name"`
	TopicID           string        `json:"topicId"`
	Internal          bool          `json:"internal"`
	Deleting          bool          `json:"deleting"`
	PartitionCount    int           `json:"partitionCount"`
	ReplicationFactor int           `json:"replicationFactor"`
	Partitions        []Partition   `json:"partitions"`
	Configs           []TopicConfig `json:"configs" doc:"values that differ from the default; all with --all-configs"`
}

// TopicConfig is one configuration value.
type TopicConfig struct {
	Name   string `json:"name"`
	Value  string `json:"value" doc:"empty when it is a secret"`
	Source string `json:"source" doc:"dynamic-topic, dynamic-broker, static-broker, default, ..."`
}

// TopicDetailKind describes TopicDetail.
var TopicDetailKind = Kind[TopicDetail]{
	Name: "TopicDetail", Title: "topics",
	ID: func(t TopicDetail) string { return t.Name },
	Columns: []Column[TopicDetail]{
		{Name: "NAME", Cell: func(t TopicDetail) string { return t.Name }},
		{Name: "TOPIC-ID", Cell: func(t TopicDetail) string { return text(t.TopicID) }},
		{Name: "PARTITIONS", Right: true, Cell: func(t TopicDetail) string { return itoa(t.PartitionCount) }},
		{Name: "REPLICATION-FACTOR", Right: true, Cell: func(t TopicDetail) string { return itoa(t.ReplicationFactor) }},
		{Name: "INTERNAL", Cell: func(t TopicDetail) string { return yesNo(t.Internal) }},
		{Name: "CONFIGS", Cell: func(t TopicDetail) string { return configText(t.Configs) }},
	},
}

func configText(cs []TopicConfig) string {
	out := ""
	for i, c := range cs {
		if i > 0 {
			out += ","
		}
		out += c.Name + "=" + c.Value
	}
	return text(out)
}

// OfTopicDetail makes the answer for one topic.
func OfTopicDetail(t *model.Topic, configs []TopicConfig) TopicDetail {
	row := OfTopic(t)
	d := TopicDetail{
		Name: row.Name, TopicID: row.TopicID, Internal: row.Internal, Deleting: row.Deleting,
		PartitionCount: row.Partitions, ReplicationFactor: row.ReplicationFactor,
		Partitions: make([]Partition, len(t.Partitions)), Configs: append([]TopicConfig{}, configs...),
	}
	for i := range t.Partitions {
		d.Partitions[i] = OfPartition(&t.Partitions[i])
	}
	return d
}

// Znode is one node of ZooKeeper.
type Znode struct {
	Path           string `json:"path"`
	Data           string `json:"data" doc:"text, or base64 when encoding says so"`
	Encoding       string `json:"encoding" doc:"utf-8, base64, or null when the node has no data"`
	Version        int32  `json:"version"`
	Cversion       int32  `json:"cversion"`
	Aversion       int32  `json:"aversion"`
	Czxid          int64  `json:"czxid"`
	Mzxid          int64  `json:"mzxid"`
	Pzxid          int64  `json:"pzxid"`
	Ctime          string `json:"ctime"`
	Mtime          string `json:"mtime"`
	EphemeralOwner string `json:"ephemeralOwner" doc:"session id in hexadecimal; empty when persistent"`
	DataLength     int32  `json:"dataLength"`
	NumChildren    int32  `json:"numChildren"`
}

// ZnodeKind describes Znode.
var ZnodeKind = Kind[Znode]{
	Name: "Znode", Title: "children",
	ID: func(z Znode) string { return z.Path },
	Columns: []Column[Znode]{
		{Name: "PATH", Cell: func(z Znode) string { return z.Path }},
		{Name: "VERSION", Right: true, Cell: func(z Znode) string { return itoa(z.Version) }},
		{Name: "CHILDREN", Right: true, Cell: func(z Znode) string { return itoa(z.NumChildren) }},
		{Name: "BYTES", Right: true, Cell: func(z Znode) string { return itoa(z.DataLength) }},
		{Name: "MTIME", Cell: func(z Znode) string { return z.Mtime }},
		{Name: "EPHEMERAL-OWNER", Cell: func(z Znode) string { return text(z.EphemeralOwner) }},
		{Name: "CVERSION", Wide: true, Right: true, Cell: func(z Znode) string { return itoa(z.Cversion) }},
		{Name: "AVERSION", Wide: true, Right: true, Cell: func(z Znode) string { return itoa(z.Aversion) }},
		{Name: "CZXID", Wide: true, Right: true, Cell: func(z Znode) string { return itoa(z.Czxid) }},
		{Name: "MZXID", Wide: true, Right: true, Cell: func(z Znode) string { return itoa(z.Mzxid) }},
		{Name: "PZXID", Wide: true, Right: true, Cell: func(z Znode) string { return itoa(z.Pzxid) }},
		{Name: "CTIME", Wide: true, Cell: func(z Znode) string { return z.Ctime }},
	},
}
