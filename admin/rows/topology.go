package rows

import (
	"fmt"
	"slices"
	"strconv"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

func itoa[N ~int | ~int16 | ~int32 | ~int64](n N) string { return strconv.FormatInt(int64(n), 10) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func text(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// ints never returns nil, so that JSON shows [] and not null.
func ints(ids []cluster.BrokerID) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}

// IntList writes ids in their order, separated by commas; none for an empty list.
func IntList(ids []int32) string { return check.IDList(cluster.IDsFromInt32(ids)) }

// IDText writes one broker id; none when negative.
func IDText(id int32) string { return check.IDText(cluster.BrokerID(id)) }

// Cluster is the answer of cluster describe.
type Cluster struct {
	ClusterID       string `json:"clusterId" doc:"the id in /cluster/id"`
	Controller      int32  `json:"controller" doc:"broker id of the active controller, -1 when there is none"`
	ControllerEpoch *int32 `json:"controllerEpoch" doc:"text of /controller_epoch; KRaft: the epoch of the quorum's leader; null when not known"`
	Brokers         int    `json:"brokers" doc:"registered brokers"`
	BrokersDown     int    `json:"brokersDown" doc:"brokers named in replica lists that are not registered"`
	Topics          int    `json:"topics"`
	Partitions      int    `json:"partitions"`
	UnderReplicated int    `json:"underReplicated" doc:"partitions with fewer in-sync replicas than replicas"`
	Offline         int    `json:"offline" doc:"partitions without leader"`
	NotPreferred    int    `json:"notPreferred" doc:"partitions led by another than their first replica"`
	Source          string `json:"source" doc:"protocol or zookeeper"`
}

// ClusterKind describes Cluster.
var ClusterKind = Kind[Cluster]{
	Name: "Cluster", Title: "cluster",
	ID: func(c Cluster) string { return c.ClusterID },
	Columns: []Column[Cluster]{
		{Name: "CLUSTER-ID", Cell: func(c Cluster) string { return text(c.ClusterID) }},
		{Name: "CONTROLLER", Right: true, Cell: func(c Cluster) string { return IDText(c.Controller) }},
		{Name: "CONTROLLER-EPOCH", Wide: true, Right: true, Cell: func(c Cluster) string { return nullInt(c.ControllerEpoch) }},
		{Name: "BROKERS", Right: true, Cell: func(c Cluster) string { return itoa(c.Brokers) }},
		{Name: "DOWN", Right: true, Cell: func(c Cluster) string { return itoa(c.BrokersDown) }},
		{Name: "TOPICS", Right: true, Cell: func(c Cluster) string { return itoa(c.Topics) }},
		{Name: "PARTITIONS", Right: true, Cell: func(c Cluster) string { return itoa(c.Partitions) }},
		{Name: "UNDER-REPLICATED", Right: true, Cell: func(c Cluster) string { return itoa(c.UnderReplicated) }},
		{Name: "OFFLINE", Right: true, Cell: func(c Cluster) string { return itoa(c.Offline) }},
		{Name: "NOT-PREFERRED", Right: true, Cell: func(c Cluster) string { return itoa(c.NotPreferred) }},
		{Name: "SOURCE", Wide: true, Cell: func(c Cluster) string { return c.Source }},
	},
}

func nullInt[N ~int32 | ~int64](n *N) string {
	if n == nil {
		return "-"
	}
	return itoa(*n)
}

// OfCluster sums up a snapshot.
func OfCluster(s *model.Snapshot) Cluster {
	c := Cluster{
		ClusterID: s.ClusterID, Controller: int32(s.Controller.ID), Topics: len(s.Topics),
		Source: string(s.Source),
	}
	if s.Controller.Epoch >= 0 {
		c.ControllerEpoch = &s.Controller.Epoch
	}
	for i := range s.Brokers {
		if s.Brokers[i].Live {
			c.Brokers++
		} else {
			c.BrokersDown++
		}
	}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			p := &s.Topics[i].Partitions[j]
			c.Partitions++
			c.UnderReplicated += count(p.UnderReplicated())
			c.Offline += count(p.IsOffline())
			c.NotPreferred += count(p.NotPreferred())
		}
	}
	return c
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Broker is one row of brokers list.
type Broker struct {
	ID           int32   `json:"id"`
	Host         string  `json:"host" doc:"advertised host; empty when not registered"`
	Port         int32   `json:"port" doc:"advertised port; 0 when not registered"`
	Rack         string  `json:"rack"`
	Live         bool    `json:"live" doc:"registered in the cluster"`
	Controller   bool    `json:"controller"`
	Leaders      int     `json:"leaders" doc:"partitions it leads"`
	Replicas     int     `json:"replicas" doc:"partitions that list it as replica"`
	OutOfSync    int     `json:"outOfSync" doc:"its replicas that are not in the ISR"`
	BrokerEpoch  *int64  `json:"brokerEpoch" doc:"czxid of its registration; null without ZooKeeper"`
	RegisteredAt *string `json:"registeredAt" doc:"RFC 3339; null without ZooKeeper"`
	Error        string  `json:"error" doc:"why it did not answer; empty when it did or was not asked"`
	Source       string  `json:"source"`
}

// BrokerKind describes Broker.
var BrokerKind = Kind[Broker]{
	Name: "Broker", Title: "brokers",
	ID: func(b Broker) string { return itoa(b.ID) },
	Columns: []Column[Broker]{
		{Name: "ID", Right: true, Cell: func(b Broker) string { return itoa(b.ID) }},
		{Name: "ADDRESS", Cell: func(b Broker) string { return b.Address() }},
		{Name: "RACK", Cell: func(b Broker) string { return text(b.Rack) }},
		{Name: "STATE", Cell: func(b Broker) string { return b.State() }},
		{Name: "CONTROLLER", Cell: func(b Broker) string { return yesNo(b.Controller) }},
		{Name: "LEADERS", Right: true, Cell: func(b Broker) string { return itoa(b.Leaders) }},
		{Name: "REPLICAS", Right: true, Cell: func(b Broker) string { return itoa(b.Replicas) }},
		{Name: "OUT-OF-SYNC", Right: true, Cell: func(b Broker) string { return itoa(b.OutOfSync) }},
		{Name: "BROKER-EPOCH", Wide: true, Right: true, Cell: func(b Broker) string { return nullInt(b.BrokerEpoch) }},
		{Name: "REGISTERED-AT", Wide: true, Cell: func(b Broker) string { return orDash(b.RegisteredAt) }},
		{Name: "SOURCE", Wide: true, Cell: func(b Broker) string { return text(b.Source) }},
		{Name: "ERROR", Cell: func(b Broker) string { return text(b.Error) }},
	},
}

// Address returns host:port, or a dash when not known.
func (b Broker) Address() string {
	if b.Host == "" {
		return "-"
	}
	return fmt.Sprintf("%s:%d", b.Host, b.Port)
}

// State is up, down (not registered) or silent (registered but not answering).
func (b Broker) State() string {
	switch {
	case !b.Live:
		return "down"
	case b.Error != "":
		return "silent"
	}
	return "up"
}

// Brokers makes the rows of all brokers of a snapshot.
func Brokers(s *model.Snapshot) []Broker {
	byID := make(map[cluster.BrokerID]*Broker, len(s.Brokers))
	out := make([]Broker, len(s.Brokers))
	for i := range s.Brokers {
		b := &s.Brokers[i]
		out[i] = Broker{
			ID: int32(b.ID), Host: b.Host, Port: b.Port, Rack: b.Rack, Live: b.Live, Controller: b.Controller,
			Error: b.Err, Source: string(b.Source), RegisteredAt: TimeText(b.Registered),
		}
		if b.Epoch >= 0 {
			e := int64(b.Epoch)
			out[i].BrokerEpoch = &e
		}
		byID[b.ID] = &out[i]
	}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			countReplicas(&s.Topics[i].Partitions[j], byID)
		}
	}
	return out
}

func countReplicas(p *model.Partition, byID map[cluster.BrokerID]*Broker) {
	if b := byID[p.Leader]; b != nil {
		b.Leaders++
	}
	for _, r := range p.Replicas {
		if b := byID[r]; b != nil {
			b.Replicas++
			b.OutOfSync += count(!slices.Contains(p.ISR, r))
		}
	}
}

// Controller is the answer of controller describe.
type Controller struct {
	ID    int32   `json:"id" doc:"broker id, -1 when there is none"`
	Epoch *int32  `json:"epoch" doc:"text of /controller_epoch; null without ZooKeeper"`
	Host  string  `json:"host"`
	Port  int32   `json:"port"`
	Since *string `json:"since" doc:"creation of /controller, RFC 3339; null without ZooKeeper"`
	Live  bool    `json:"live" doc:"whether that broker is registered, in KRaft mode whether it leads the quorum"`
	// Source is where the id was read.
	Source string `json:"source"`
}

// ControllerKind describes Controller.
var ControllerKind = Kind[Controller]{
	Name: "Controller", Title: "controller",
	ID: func(c Controller) string { return itoa(c.ID) },
	Columns: []Column[Controller]{
		{Name: "ID", Right: true, Cell: func(c Controller) string { return IDText(c.ID) }},
		{Name: "EPOCH", Right: true, Cell: func(c Controller) string { return nullInt(c.Epoch) }},
		{Name: "ADDRESS", Cell: func(c Controller) string { return Broker{Host: c.Host, Port: c.Port}.Address() }},
		{Name: "SINCE", Cell: func(c Controller) string { return orDash(c.Since) }},
		{Name: "LIVE", Cell: func(c Controller) string { return yesNo(c.Live) }},
		{Name: "SOURCE", Cell: func(c Controller) string { return text(c.Source) }},
	},
}

// OfController makes the row of the controller.
func OfController(s *model.Snapshot) Controller {
	c := Controller{ID: int32(s.Controller.ID), Since: TimeText(s.Controller.Since), Source: string(s.Controller.Source)}
	if s.Controller.Epoch >= 0 {
		c.Epoch = &s.Controller.Epoch
	}
	if s.Controller.Quorum {
		c.Host, c.Port, c.Live = s.Controller.Host, s.Controller.Port, s.Controller.ID >= 0
	}
	for i := range s.Brokers {
		if s.Brokers[i].ID == s.Controller.ID {
			c.Host, c.Port, c.Live = s.Brokers[i].Host, s.Brokers[i].Port, s.Brokers[i].Live
		}
	}
	return c
}

// Topic is one row of topics list.
type Topic struct {
	Name              string `json:"name"`
	Partitions        int    `json:"partitions"`
	ReplicationFactor int    `json:"replicationFactor"`
	UnderReplicated   int    `json:"underReplicated" doc:"number of partitions with fewer in-sync replicas than replicas"`
	Offline           int    `json:"offline" doc:"number of partitions without leader"`
	Internal          bool   `json:"internal"`
	TopicID           string `json:"topicId"`
	Deleting          bool   `json:"deleting" doc:"a deletion is pending; known with ZooKeeper only"`
	Source            string `json:"source"`
}

// TopicKind describes Topic.
var TopicKind = Kind[Topic]{
	Name: "Topic", Title: "topics",
	ID: func(t Topic) string { return t.Name },
	Columns: []Column[Topic]{
		{Name: "NAME", Cell: func(t Topic) string { return t.Name }},
		{Name: "PARTITIONS", Right: true, Cell: func(t Topic) string { return itoa(t.Partitions) }},
		{Name: "REPLICATION-FACTOR", Right: true, Cell: func(t Topic) string { return itoa(t.ReplicationFactor) }},
		{Name: "UNDER-REPLICATED", Right: true, Cell: func(t Topic) string { return itoa(t.UnderReplicated) }},
		{Name: "OFFLINE", Right: true, Cell: func(t Topic) string { return itoa(t.Offline) }},
		{Name: "INTERNAL", Wide: true, Cell: func(t Topic) string { return yesNo(t.Internal) }},
		{Name: "TOPIC-ID", Wide: true, Cell: func(t Topic) string { return text(t.TopicID) }},
		{Name: "DELETING", Wide: true, Cell: func(t Topic) string { return yesNo(t.Deleting) }},
	},
}

// OfTopic sums up one topic.
func OfTopic(t *model.Topic) Topic {
	out := Topic{
		Name: t.Name, Partitions: len(t.Partitions), ReplicationFactor: t.ReplicationFactor(),
		Internal: t.Internal, Deleting: t.Deleting, Source: string(t.Source),
	}
	if !t.ID.IsZero() {
		out.TopicID = t.ID.String()
	}
	for i := range t.Partitions {
		out.UnderReplicated += count(t.Partitions[i].UnderReplicated())
		out.Offline += count(t.Partitions[i].IsOffline())
	}
	return out
}

// Topics makes the rows of all topics of a snapshot.
func Topics(s *model.Snapshot) []Topic {
	out := make([]Topic, len(s.Topics))
	for i := range s.Topics {
		out[i] = OfTopic(&s.Topics[i])
	}
	return out
}

// ClusterDetail is Cluster with its brokers, as programs read it.
type ClusterDetail struct {
	Cluster
	BrokerList []Broker `json:"brokerList"`
}

// ClusterDetailKind describes ClusterDetail.
var ClusterDetailKind = Kind[ClusterDetail]{Name: "Cluster", Title: "cluster", ID: func(c ClusterDetail) string { return c.ClusterID }}

// OfClusterDetail sums up a snapshot with its brokers.
func OfClusterDetail(s *model.Snapshot) ClusterDetail {
	return ClusterDetail{OfCluster(s), Brokers(s)}
}

// BrokerDetail is Broker with its listeners.
type BrokerDetail struct {
	Broker
	Listeners []Listener `json:"listeners" doc:"all endpoints; empty without ZooKeeper"`
}

// Listener is one endpoint of a broker.
type Listener struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Host     string `json:"host"`
	Port     int32  `json:"port"`
}

// BrokerDetailKind describes BrokerDetail.
var BrokerDetailKind = Kind[BrokerDetail]{
	Name: "Broker", Title: "broker",
	ID: func(b BrokerDetail) string { return itoa(b.ID) },
	Columns: append(detailColumns(), Column[BrokerDetail]{Name: "LISTENERS", Cell: func(b BrokerDetail) string {
		out := ""
		for i, l := range b.Listeners {
			if i > 0 {
				out += ","
			}
			out += fmt.Sprintf("%s://%s:%d", l.Name, l.Host, l.Port)
		}
		return text(out)
	}}),
}

// detailColumns are all columns of a broker, those of -o wide included.
func detailColumns() []Column[BrokerDetail] {
	var out []Column[BrokerDetail]
	for _, c := range BrokerKind.Columns {
		out = append(out, Column[BrokerDetail]{Name: c.Name, Right: c.Right, Cell: func(b BrokerDetail) string { return c.Cell(b.Broker) }})
	}
	return out
}

// OfBrokerDetail adds the listeners to a row.
func OfBrokerDetail(r Broker, b *model.Broker) BrokerDetail {
	d := BrokerDetail{Broker: r, Listeners: []Listener{}}
	for _, e := range b.Endpoints {
		d.Listeners = append(d.Listeners, Listener{e.Listener, e.Protocol, e.Host, e.Port})
	}
	return d
}
