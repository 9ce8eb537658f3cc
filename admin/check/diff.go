package check

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// The fields that Diff compares.
const (
	FieldClusterID   = "clusterId"
	FieldController  = "controller"
	FieldBrokers     = "brokers"
	FieldTopicID     = "topicId"
	FieldExists      = "exists"
	FieldLeader      = "leader"
	FieldLeaderEpoch = "leaderEpoch"
	FieldISR         = "isr"
	FieldReplicas    = "replicas"
)

// Difference is a field about which the sources do not agree. Topic is empty for a field of the cluster; Partition is -1
// for one of a topic. A source that was not read, or that does not know the partition, has the text "-".
type Difference struct {
	Topic      string
	Partition  int32
	Field      string
	ZooKeeper  string
	Controller string                      // what the controller's own metadata says
	Brokers    map[cluster.BrokerID]string // every broker that answered, the controller too
	Behind     []cluster.BrokerID          // brokers that know less than somebody: an older epoch, or not the partition
}

// Key names the object and the field.
func (d *Difference) Key() string {
	return d.Topic + "/" + strconv.Itoa(int(d.Partition)) + "/" + d.Field
}

// unknown stands for what a source does not say.
const unknown = "-"

// Diff compares, for the cluster and for each topic and partition, what ZooKeeper and every broker say. ISRs are
// compared as sets, replica lists in order. Differences are ordered by topic, partition and field.
func Diff(f *Facts) []Difference {
	out := clusterDiff(f)
	d := differ{f: f}
	d.collect(d.odd())
	for _, tp := range d.order {
		out = append(out, d.partition(tp)...)
	}
	slices.SortStableFunc(out, func(a, b Difference) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

func clusterDiff(f *Facts) []Difference {
	id := Difference{Partition: -1, Field: FieldClusterID, ZooKeeper: unknown, Controller: unknown, Brokers: map[cluster.BrokerID]string{}}
	ctl := Difference{Partition: -1, Field: FieldController, ZooKeeper: unknown, Controller: unknown, Brokers: map[cluster.BrokerID]string{}}
	live := Difference{Partition: -1, Field: FieldBrokers, ZooKeeper: unknown, Controller: unknown, Brokers: map[cluster.BrokerID]string{}}
	if f.Tree != nil {
		ids := make([]cluster.BrokerID, 0, len(f.Tree.Registrations))
		for _, r := range f.Tree.Registrations {
			ids = append(ids, r.ID)
		}
		slices.Sort(ids)
		id.ZooKeeper, ctl.ZooKeeper, live.ZooKeeper = f.Tree.ClusterID, IDText(f.Tree.Controller), IDList(ids)
	}
	for i := range f.Views {
		v := &f.Views[i]
		if v.Err != "" {
			continue
		}
		id.Brokers[v.Broker], live.Brokers[v.Broker] = v.ClusterID, IDList(v.Live)
		if f.Tree != nil { // without ZooKeeper each broker may name any live one
			ctl.Brokers[v.Broker] = IDText(v.Controller)
		}
	}
	var out []Difference
	for _, d := range []Difference{id, ctl, live} {
		if v, ok := d.Brokers[f.Snapshot.Controller.ID]; ok {
			d.Controller = v
		}
		if d.differs() {
			out = append(out, d)
		}
	}
	return out
}

// differs reports whether two sources that say something say different things.
func (d *Difference) differs() bool {
	first := d.ZooKeeper
	for _, v := range d.Brokers {
		switch {
		case first == unknown || first == "":
			first = v
		case v != first && v != "":
			return true
		}
	}
	return false
}

type differ struct {
	f     *Facts
	zk    map[cluster.TopicPartition]*model.Partition
	zkID  map[string]cluster.TopicID
	views []map[cluster.TopicPartition]*model.Partition
	ids   []map[string]cluster.TopicID
	order []cluster.TopicPartition
}

// odd names the topics about which two sources do not say the same. They are few on a cluster of any size, and only they
// are looked at one partition after the other.
func (d *differ) odd() map[string]bool {
	var sources [][]model.Topic
	if d.f.Tree != nil {
		sources = append(sources, d.f.Tree.Topics)
	}
	for i := range d.f.Views {
		if d.f.Views[i].Err == "" {
			sources = append(sources, d.f.Views[i].Topics)
		}
	}
	odd := map[string]bool{}
	if len(sources) == 0 {
		return odd
	}
	type known struct {
		topic *model.Topic
		in    int // of the other sources
	}
	first := make(map[string]*known, len(sources[0]))
	for i := range sources[0] {
		first[sources[0][i].Name] = &known{topic: &sources[0][i]}
	}
	for _, topics := range sources[1:] {
		for i := range topics {
			t := &topics[i]
			k := first[t.Name]
			if k == nil || !d.agree(k.topic, t) {
				odd[t.Name] = true
			}
			if k != nil {
				k.in++
			}
		}
	}
	for name, k := range first {
		if k.in != len(sources)-1 {
			odd[name] = true
		}
	}
	return odd
}

// agree reports whether a broker says of a topic what the first source says.
func (d *differ) agree(first, t *model.Topic) bool {
	if d.f.Tree != nil && t.ID != first.ID && !t.ID.IsZero() || len(first.Partitions) != len(t.Partitions) {
		return false
	}
	if len(t.Partitions) == 0 || &first.Partitions[0] == &t.Partitions[0] {
		return true // the same memory
	}
	return slices.EqualFunc(first.Partitions, t.Partitions, func(a, b model.Partition) bool {
		return a.Partition == b.Partition && samePartition(&a, &b)
	})
}

// samePartition compares the fields of Diff.
func samePartition(a, b *model.Partition) bool {
	return a.Leader == b.Leader && a.LeaderEpoch == b.LeaderEpoch && slices.Equal(a.Replicas, b.Replicas) && sameSet(a.ISR, b.ISR)
}

// collect reads the odd topics of every source; nil: all topics.
func (d *differ) collect(odd map[string]bool) {
	seen := map[cluster.TopicPartition]bool{}
	read := func(topics []model.Topic) (map[cluster.TopicPartition]*model.Partition, map[string]cluster.TopicID) {
		parts, ids := map[cluster.TopicPartition]*model.Partition{}, map[string]cluster.TopicID{}
		for i := range topics {
			t := &topics[i]
			if odd != nil && !odd[t.Name] {
				continue
			}
			ids[t.Name] = t.ID
			for j := range t.Partitions {
				p := &t.Partitions[j]
				parts[p.TP()] = p
				if !seen[p.TP()] {
					seen[p.TP()] = true
					d.order = append(d.order, p.TP())
				}
			}
		}
		return parts, ids
	}
	if d.f.Tree != nil {
		d.zk, d.zkID = read(d.f.Tree.Topics)
	}
	for i := range d.f.Views {
		parts, ids := read(d.f.Views[i].Topics)
		d.views, d.ids = append(d.views, parts), append(d.ids, ids)
	}
	slices.SortFunc(d.order, cluster.TopicPartition.Compare)
}

// same reports whether all sources agree about a partition: the quick answer for nearly all of them.
func (d *differ) same(tp cluster.TopicPartition) bool {
	var first *model.Partition
	if d.f.Tree != nil {
		if first = d.zk[tp]; first == nil {
			return false
		}
	}
	for i := range d.f.Views {
		if d.f.Views[i].Err != "" {
			continue
		}
		p := d.views[i][tp]
		switch {
		case p == nil:
			return false
		case first == nil:
			first = p
		case !samePartition(p, first):
			return false
		}
		if id := d.ids[i][tp.Topic]; d.f.Tree != nil && tp.Partition == 0 && id != d.zkID[tp.Topic] && !id.IsZero() {
			return false
		}
	}
	return true
}

func sameSet(a, b []cluster.BrokerID) bool {
	if len(a) != len(b) {
		return false
	}
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	return true
}

// field is one compared field: how a partition's value is written.
type field struct {
	name  string
	value func(p *model.Partition) string
}

var fields = []field{
	{FieldLeader, func(p *model.Partition) string { return IDText(p.Leader) }},
	{FieldLeaderEpoch, func(p *model.Partition) string { return strconv.Itoa(int(p.LeaderEpoch)) }},
	{FieldISR, func(p *model.Partition) string {
		isr := slices.Clone(p.ISR)
		slices.Sort(isr)
		return IDList(isr)
	}},
	{FieldReplicas, func(p *model.Partition) string { return IDList(p.Replicas) }},
}

func (d *differ) partition(tp cluster.TopicPartition) []Difference {
	if d.same(tp) {
		return nil
	}
	var out []Difference
	exists := d.compare(tp, FieldExists, func(p *model.Partition) string {
		if p == nil {
			return "no"
		}
		return "yes"
	})
	if exists.differs() {
		for id, v := range exists.Brokers {
			if v == "no" {
				exists.Behind = append(exists.Behind, id)
			}
		}
		slices.Sort(exists.Behind)
		out = append(out, exists)
	}
	for _, fd := range fields {
		diff := d.compare(tp, fd.name, func(p *model.Partition) string {
			if p == nil {
				return unknown
			}
			return fd.value(p)
		})
		if diff.known().differs() {
			if fd.name == FieldLeaderEpoch {
				diff.Behind = d.behind(tp)
			}
			out = append(out, diff)
		}
	}
	if tp.Partition == 0 {
		if diff := d.topicIDs(tp.Topic); diff.differs() {
			out = append(out, diff)
		}
	}
	return out
}

// known leaves out sources that do not have the partition.
func (d Difference) known() *Difference {
	k := Difference{ZooKeeper: d.ZooKeeper, Brokers: map[cluster.BrokerID]string{}}
	for id, v := range d.Brokers {
		if v != unknown {
			k.Brokers[id] = v
		}
	}
	return &k
}

func (d *differ) compare(tp cluster.TopicPartition, name string, value func(*model.Partition) string) Difference {
	out := Difference{Topic: tp.Topic, Partition: tp.Partition, Field: name, ZooKeeper: unknown, Controller: unknown, Brokers: map[cluster.BrokerID]string{}}
	if d.f.Tree != nil {
		out.ZooKeeper = value(d.zk[tp])
	}
	for i := range d.f.Views {
		v := &d.f.Views[i]
		if v.Err != "" {
			continue
		}
		out.Brokers[v.Broker] = value(d.views[i][tp])
		if v.Broker == d.f.Snapshot.Controller.ID {
			out.Controller = out.Brokers[v.Broker]
		}
	}
	return out
}

// behind names the brokers whose epoch of a partition is below the newest.
func (d *differ) behind(tp cluster.TopicPartition) []cluster.BrokerID {
	newest := cluster.NoLeaderEpoch
	if p := d.zk[tp]; p != nil {
		newest = p.LeaderEpoch
	}
	for i := range d.views {
		if p := d.views[i][tp]; p != nil {
			newest = max(newest, p.LeaderEpoch)
		}
	}
	var out []cluster.BrokerID
	for i := range d.views {
		if p := d.views[i][tp]; p != nil && p.LeaderEpoch < newest {
			out = append(out, d.f.Views[i].Broker)
		}
	}
	return out
}

func (d *differ) topicIDs(topic string) Difference {
	out := Difference{Topic: topic, Partition: -1, Field: FieldTopicID, ZooKeeper: unknown, Controller: unknown, Brokers: map[cluster.BrokerID]string{}}
	text := func(id cluster.TopicID) string {
		if id.IsZero() {
			return unknown
		}
		return id.String()
	}
	if d.f.Tree != nil {
		out.ZooKeeper = text(d.zkID[topic])
		if _, ok := d.zkID[topic]; ok && out.ZooKeeper == unknown {
			out.ZooKeeper = "none"
		}
	}
	for i := range d.f.Views {
		v := &d.f.Views[i]
		if id := text(d.ids[i][topic]); v.Err == "" && id != unknown {
			out.Brokers[v.Broker] = id
			if v.Broker == d.f.Snapshot.Controller.ID {
				out.Controller = id
			}
		}
	}
	return out
}
