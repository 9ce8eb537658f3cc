package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

var update = flag.Bool("update", false, "write docs/findings anew")

var topicID = cluster.TopicID{1, 2, 3}

// facts are those of a healthy cluster: three brokers, topic t with one partition, ZooKeeper read.
func facts() *check.Facts {
	s := snapshot(healthy())
	s.Source, s.ClusterID, s.Topics[0].ID, s.Topics[0].Source = model.SourceProtocol, "C", topicID, model.SourceProtocol
	f := &check.Facts{Snapshot: s, Missing: map[check.Source]string{}, TopicConfigs: map[string]check.Config{}, BrokerConfigs: map[cluster.BrokerID]check.Config{}}
	f.Tree = &check.Tree{ClusterID: "C", Controller: 1, ControllerEpoch: 3, TopicNodes: map[string]check.Node{"t": node("/brokers/topics/t", "", time.Hour)}}
	f.Tree.Topics = []model.Topic{{Name: "t", ID: topicID, Partitions: []model.Partition{healthyAt()}}}
	f.Tree.States = []model.StateNode{state()}
	for i := range s.Brokers {
		b := &s.Brokers[i]
		b.Host, b.Port = "h"+string(rune('0'+b.ID)), 9092
		f.Views = append(f.Views, check.View{
			Broker: b.ID, ClusterID: "C", Controller: 1, Live: ids{1, 2, 3}, Versions: map[int16]int16{3: 12},
			Topics: []model.Topic{{Name: "t", ID: topicID, Partitions: []model.Partition{healthyAt()}}},
		})
		f.Tree.Registrations = append(f.Tree.Registrations, check.Registration{ID: b.ID})
		f.Dirs = append(f.Dirs, check.LogDir{Broker: b.ID, Path: "/d", Total: 1000, Usable: 900, Replicas: []check.DirReplica{{TP: tp("t", 0), Size: 10}}})
		f.BrokerConfigs[b.ID] = check.Config{"min.insync.replicas": {Text: "1"}, "delete.topic.enable": {Text: "true"}}
		f.Positions = append(f.Positions, position(b.ID, 100))
	}
	f.TopicConfigs["t"] = check.Config{"min.insync.replicas": {Text: "2", Own: true}}
	f.Servers = []check.Server{{Addr: "z1:2181", Mode: "leader", Version: "3.8.4"}, {Addr: "z2:2181", Mode: "follower", Version: "3.8.4"}}
	return f
}

func tp(topic string, p int32) cluster.TopicPartition {
	return cluster.TopicPartition{Topic: topic, Partition: p}
}

func healthyAt() model.Partition {
	p := healthy()
	p.Topic = "t"
	return p
}

func state() model.StateNode {
	return model.StateNode{Topic: "t", Replicas: ids{1, 2, 3}, LeaderAndISR: cluster.LeaderAndISR{Leader: 1, LeaderEpoch: 4, ISR: ids{1, 2, 3}, ControllerEpoch: 3}}
}

func node(path, data string, age time.Duration) check.Node {
	return check.Node{Path: path, Data: []byte(data), Age: age}
}

func position(id cluster.BrokerID, end int64) model.ReplicaPosition {
	return model.ReplicaPosition{Topic: "t", Broker: id, Leader: id == 1, InSync: true, LogEndOffset: end, HighWatermark: end, LeaderEpoch: 4}
}

// outOfSync takes broker 3 out of the ISR, with its log end at two looks.
func outOfSync(first, second int64) func(*check.Facts) {
	return func(f *check.Facts) {
		f.Positions[2] = position(3, first)
		f.Positions[2].InSync = false
		later := position(3, second)
		later.InSync = false
		f.Snapshot.Topics[0].Partitions[0].ISR = ids{1, 2}
		f.Later = []model.ReplicaPosition{position(1, 100), position(2, 100), later}
	}
}

// part changes the one partition wherever it stands.
func part(change func(*model.Partition)) func(*check.Facts) {
	return func(f *check.Facts) {
		change(&f.Snapshot.Topics[0].Partitions[0])
		change(&f.Tree.Topics[0].Partitions[0])
		for i := range f.Views {
			change(&f.Views[i].Topics[0].Partitions[0])
		}
	}
}

func internal(change func(*model.Partition)) func(*check.Facts) {
	return func(f *check.Facts) {
		f.Snapshot.Topics[0].Internal = true
		part(change)(f)
	}
}

func topicConfig(name, value string) func(*check.Facts) {
	return func(f *check.Facts) { f.TopicConfigs["t"][name] = check.Value{Text: value, Own: true} }
}

func brokerConfig(id cluster.BrokerID, name, value string) func(*check.Facts) {
	return func(f *check.Facts) { f.BrokerConfigs[id][name] = check.Value{Text: value, Own: true} }
}

func treeState(change func(*model.StateNode)) func(*check.Facts) {
	return func(f *check.Facts) { change(&f.Tree.States[0]) }
}

// many adds topics with one replica each on broker 1.
func many(n int, f *check.Facts) {
	for i := range n {
		name := "m" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		p := model.Partition{Topic: name, Leader: 1, Replicas: ids{1}, ISR: ids{1}}
		f.Snapshot.Topics = append(f.Snapshot.Topics, model.Topic{Name: name, Partitions: []model.Partition{p}})
	}
}

func alert(epoch cluster.LeaderEpoch) []byte {
	a := znode.LeadershipAlert{Partition: tp("t", 0)}
	a.Decision = cluster.LeaderAndISR{Leader: 1, LeaderEpoch: epoch, ISR: ids{1}, ControllerEpoch: 3}
	return a.Encode()
}

// recorded produces every finding from recorded facts: the change to a healthy cluster, and a part of the fix.
var recorded = map[string]struct {
	change func(*check.Facts)
	object string
	fix    string
}{
	"no-controller":       {func(f *check.Facts) { f.Snapshot.Controller.ID = -1 }, "cluster", "kctl "},
	"controller-mismatch": {func(f *check.Facts) { f.Snapshot.Brokers[1].Sees = 3 }, "broker 1", "kctl controller move"},
	"broker-down":         {func(f *check.Facts) { f.Snapshot.Brokers[2].Live = false }, "broker 3", "start broker 3"},
	"broker-unreachable":  {func(f *check.Facts) { f.Snapshot.Brokers[2].Err = "no answer in time" }, "broker 3", "kctl brokers describe 3"},
	"offline-partition":   {part(func(p *model.Partition) { p.Leader = -1 }), "t-0", "kctl "},
	"under-min-isr":       {part(func(p *model.Partition) { p.ISR = ids{1} }), "t-0", "kctl lag replicas t:0"},
	"stuck-transition": {func(f *check.Facts) {
		f.Transitions = []model.Transition{{Topic: "t", State: model.TransitionStuck, Fix: "kctl controller move --yes"}}
	}, "t-0", "kctl controller move"},
	"leader-unreachable": {func(f *check.Facts) {
		brokerConfig(2, "zookeeper.session.timeout.ms", "18000")(f)
		f.Transitions = []model.Transition{{Topic: "t", Leader: 1, State: model.TransitionStuck, LeaderSilent: true, Reason: "leader 1 does not answer: connection refused"}}
	}, "broker 1", "kctl brokers describe 1"},
	"controller-denies":   {func(f *check.Facts) { f.Office.Refuses = "NOT_CONTROLLER" }, "broker 1", "kctl controller move --yes"},
	"pending-transition":  {func(f *check.Facts) { f.Transitions = []model.Transition{{Topic: "t", State: model.TransitionPending}} }, "t-0", ""},
	"dead-replica-in-isr": {func(f *check.Facts) { f.Snapshot.Brokers[2].Live = false }, "t-0", "start broker 3"},
	"under-replicated":    {part(func(p *model.Partition) { p.ISR = ids{1, 2} }), "t-0", "kctl lag replicas t:0"},
	"at-min-isr":          {part(func(p *model.Partition) { p.Replicas, p.ISR = ids{1, 2}, ids{1, 2} }), "t-0", "kctl "},
	"topic-error":         {func(f *check.Facts) { f.Snapshot.Topics[0].Err = "TOPIC_AUTHORIZATION_FAILED" }, "topic t", "kctl topics describe t"},
	"not-preferred":       {part(func(p *model.Partition) { p.Leader = 2 }), "t-0", "kctl elect preferred t:0"},
	"leader-not-alive":    {func(f *check.Facts) { f.Snapshot.Brokers[0].Live = false }, "t-0", "kctl controller move --yes"},
	"leader-not-in-isr":   {part(func(p *model.Partition) { p.ISR = ids{2, 3} }), "t-0", "kctl elect leader t:0 2 --yes"},
	"isr-names-stranger":  {part(func(p *model.Partition) { p.ISR = ids{1, 9} }), "t-0", "kctl leader-and-isr set t:0 --leader 1 --isr 1 --yes"},
	"duplicate-replica":   {part(func(p *model.Partition) { p.Replicas = ids{1, 1, 2} }), "t-0", "kctl reassign generate"},
	"single-replica":      {part(func(p *model.Partition) { p.Replicas, p.ISR = ids{1}, ids{1} }), "topic t", "--replication-factor 3 --topic t"},
	"uneven-replication-factor": {func(f *check.Facts) {
		t := &f.Snapshot.Topics[0]
		t.Partitions = append(t.Partitions, model.Partition{Topic: "t", Partition: 1, Leader: 1, Replicas: ids{1}, ISR: ids{1}})
	}, "topic t", "--replication-factor 3 --topic t"},
	"leader-skew":       {func(f *check.Facts) { many(40, f) }, "broker 1", "kctl reassign generate"},
	"replica-skew":      {func(f *check.Facts) { many(40, f) }, "broker 1", "kctl reassign generate"},
	"too-many-replicas": {func(f *check.Facts) { many(4001, f) }, "broker 1", "kctl reassign generate"},
	"rack-not-spread": {func(f *check.Facts) {
		racks(f, "a", "b", "b")
		part(func(p *model.Partition) { p.Replicas = ids{2, 3} })(f)
	}, "t-0", "kctl reassign generate"},
	"internal-topic-at-risk": {internal(func(p *model.Partition) { p.Replicas, p.ISR = ids{1}, ids{1} }), "topic t", "--replication-factor 3 --topic t"},
	"coordinator-offline":    {internal(func(p *model.Partition) { p.Leader = -1 }), "t-0", "start broker"},
	"state-malformed":        {treeState(func(n *model.StateNode) { n.Err = "not JSON" }), "t-0", "kctl zk set /brokers/topics/t/partitions/0/state '{"},
	"state-missing":          {treeState(func(n *model.StateNode) { n.Missing = true }), "t-0", "kctl zk create /brokers/topics/t/partitions/0/state "},
	"state-unknown-fields":   {treeState(func(n *model.StateNode) { n.UnknownFields = []string{"x"} }), "t-0", "kctl leader-and-isr get t:0"},
	"controller-epoch-ahead": {treeState(func(n *model.StateNode) { n.ControllerEpoch = 99 }), "t-0", `"controller_epoch":3`},
	"epoch-behind-broker":    {func(f *check.Facts) { f.Positions[1].LeaderEpoch = 7 }, "t-0", `"leader_epoch":8`},
	"empty-isr":              {treeState(func(n *model.StateNode) { n.ISR = nil }), "t-0", "kctl leader-and-isr set t:0 --leader 1 --unclean --yes"},
	"partition-not-in-topic": {func(f *check.Facts) { f.Tree.Topics[0].Partitions = nil }, "t-0", "kctl zk set /brokers/topics/t "},
	"topic-malformed":        {func(f *check.Facts) { f.Tree.Topics[0].Err = "not JSON" }, "topic t", "kctl zk set /brokers/topics/t "},
	"topic-id-missing":       {func(f *check.Facts) { f.Tree.Topics[0].ID = cluster.TopicID{} }, "topic t", topicID.String()},
	"topic-id-mismatch":      {func(f *check.Facts) { f.Tree.Topics[0].ID = cluster.TopicID{9} }, "topic t", topicID.String()},
	"duplicate-topic-id":     {func(f *check.Facts) { f.Tree.Topics = append(f.Tree.Topics, model.Topic{Name: "u", ID: topicID}) }, "topics t,u", "kctl topics describe u"},
	"topic-unknown-to-brokers": {func(f *check.Facts) {
		f.Tree.Topics = append(f.Tree.Topics, model.Topic{Name: "u"})
		f.Tree.TopicNodes["u"] = node("/brokers/topics/u", "", time.Hour)
	}, "topic u", "kctl controller move --yes"},
	"topic-gone-from-zookeeper": {func(f *check.Facts) { f.Tree.Topics = nil; f.Tree.TopicNodes = nil }, "topic t", "kctl controller move --yes"},
	"name-collision": {func(f *check.Facts) {
		f.Snapshot.Topics = append(f.Snapshot.Topics, model.Topic{Name: "a.b"}, model.Topic{Name: "a_b"})
	}, "topics a.b,a_b", "kctl topics describe a_b"},
	"deletion-stuck": {func(f *check.Facts) {
		f.Snapshot.Brokers[2].Live = false
		f.Tree.Deleting = []check.Node{node("/admin/delete_topics/t", "", time.Hour)}
	}, "topic t", "start broker 3"},
	"deletion-disabled": {func(f *check.Facts) {
		f.BrokerConfigs[1]["delete.topic.enable"] = check.Value{Text: "false"}
		f.Tree.Deleting = []check.Node{node("/admin/delete_topics/t", "", time.Hour)}
	}, "topic t", "kctl zk delete /admin/delete_topics/t --break-glass --yes"},
	"min-isr-above-replicas":   {topicConfig("min.insync.replicas", "5"), "topic t", "min.insync.replicas=2 --yes"},
	"min-isr-equals-replicas":  {topicConfig("min.insync.replicas", "3"), "topic t", "min.insync.replicas=2 --yes"},
	"min-isr-one":              {topicConfig("min.insync.replicas", "1"), "topic t", "min.insync.replicas=2 --yes"},
	"unclean-election-enabled": {topicConfig("unclean.leader.election.enable", "true"), "topic t", "unclean.leader.election.enable=false --yes"},
	"bad-config-value": {func(f *check.Facts) {
		f.Tree.TopicConfigs = []check.Node{node("/config/topics/t", `{"version":1,"config":{"retention.ms":"soon"}}`, time.Hour)}
	}, "topic t", "retention.ms --yes"},
	"segment-longer-than-retention": {func(f *check.Facts) { topicConfig("segment.ms", "1000")(f); topicConfig("retention.ms", "10")(f) }, "topic t", "segment.ms=10 --yes"},
	"timestamp-window-narrow":       {topicConfig("message.timestamp.after.max.ms", "1000"), "topic t", "message.timestamp.after.max.ms --yes"},
	"broker-config-differs":         {brokerConfig(2, "min.insync.replicas", "2"), "setting min.insync.replicas", "kctl configs"},
	"auto-create-enabled":           {brokerConfig(2, "auto.create.topics.enable", "true"), "cluster", "kctl configs"},
	"address-shared":                {func(f *check.Facts) { f.Snapshot.Brokers[1].Host = "h1" }, "brokers 1,2", "kctl brokers describe 2"},
	"loopback-address":              {func(f *check.Facts) { f.Snapshot.Brokers[1].Host = "127.0.0.1" }, "broker 2", "kctl brokers describe 2"},
	"rack-missing":                  {func(f *check.Facts) { racks(f, "a", "b", "") }, "brokers 3", "kctl brokers describe 3"},
	"registration-malformed":        {func(f *check.Facts) { f.Tree.Registrations[1].Err = "not JSON" }, "broker 2", "restart broker 2"},
	"too-few-brokers":               {func(f *check.Facts) { f.Snapshot.Brokers = f.Snapshot.Brokers[:1] }, "cluster", "kctl brokers list"},
	"cluster-id-mismatch":           {func(f *check.Facts) { f.Views[2].ClusterID = "D" }, "broker 3", "kctl brokers describe 3"},
	"mixed-versions":                {func(f *check.Facts) { f.Views[2].Versions = map[int16]int16{3: 13} }, "cluster", "kctl configs"},
	"stale-metadata":                {func(f *check.Facts) { f.Views[2].Topics[0].Partitions[0].LeaderEpoch = 3 }, "broker 3", "kctl controller move --yes"},
	"live-brokers-differ":           {func(f *check.Facts) { f.Views[2].Live = ids{1, 3} }, "broker 3", "kctl controller move --yes"},
	"log-dir-offline":               {func(f *check.Facts) { f.Dirs[1].Err = "KAFKA_STORAGE_ERROR" }, "broker 2", "kctl log-dirs describe"},
	"log-dir-nearly-full":           {func(f *check.Facts) { f.Dirs[1].Usable = 50 }, "broker 2", "kctl log-dirs describe"},
	"stray-replica": {func(f *check.Facts) {
		f.Dirs[1].Replicas = append(f.Dirs[1].Replicas, check.DirReplica{TP: tp("gone", 3)})
	}, "gone-3 on broker 2", "kctl leftovers list"},
	"replica-missing-on-disk": {func(f *check.Facts) { f.Dirs[1].Replicas = nil; f.Positions[1].LogEndOffset = -1 }, "t-0 on broker 2", "kctl controller move --yes"},
	"replica-move-unfinished": {func(f *check.Facts) {
		f.Dirs[1].Replicas = append(f.Dirs[1].Replicas, check.DirReplica{TP: tp("t", 0), Future: true})
	}, "t-0 on broker 2", "kctl log-dirs describe"},
	"replica-offline":         {part(func(p *model.Partition) { p.Offline = ids{2} }), "t-0 on broker 2", "kctl log-dirs describe"},
	"replica-not-catching-up": {outOfSync(60, 60), "t-0 on broker 3", "kctl elect leader t:0 2 --yes"},
	"isr-stuck":               {outOfSync(100, 100), "t-0 on broker 3", "kctl elect leader t:0 2 --yes"},
	"high-watermark-stuck": {func(f *check.Facts) {
		f.Positions[0].HighWatermark = 90
		f.Later = []model.ReplicaPosition{f.Positions[0]}
	}, "t-0", "kctl elect leader t:0 2 --yes"},
	"follower-ahead-of-leader":   {outOfSync(150, 150), "t-0 on broker 3", "kctl lag replicas t:0"},
	"replica-far-behind":         {func(f *check.Facts) { outOfSync(0, 50)(f); f.Positions[0].LogEndOffset = 200_000 }, "t-0 on broker 3", "kctl lag replicas t:0"},
	"in-sync-replica-far-behind": {func(f *check.Facts) { f.Positions[1].LagRecords = 200_000 }, "t-0 on broker 2", "kctl lag replicas t:0"},
	"leftover-reassign-znode":    {func(f *check.Facts) { n := node("/admin/reassign_partitions", "{}", time.Hour); f.Tree.Reassign = &n }, "/admin/reassign_partitions", "kctl leftovers clean admin-znode --yes"},
	"leftover-election-znode": {func(f *check.Facts) {
		n := node("/admin/preferred_replica_election", "{}", time.Hour)
		f.Tree.Election = &n
	}, "/admin/preferred_replica_election", "kctl leftovers clean admin-znode --yes"},
	"deletion-of-missing-topic": {func(f *check.Facts) { f.Tree.Deleting = []check.Node{node("/admin/delete_topics/gone", "", time.Hour)} }, "/admin/delete_topics/gone", "kctl leftovers clean deletion --yes"},
	"orphan-topic-config":       {func(f *check.Facts) { f.Tree.TopicConfigs = []check.Node{node("/config/topics/gone", "", time.Hour)} }, "topic gone", "kctl leftovers clean topic-config --yes"},
	"orphan-broker-config":      {func(f *check.Facts) { f.Tree.BrokerConfigs = []check.Node{node("/config/brokers/77", "", time.Hour)} }, "broker 77", "kctl leftovers clean broker-config --yes"},
	"isr-notifications-left": {func(f *check.Facts) {
		f.Tree.ISRChanges = []check.Node{node("/isr_change_notification/isr_change_0000000001", "", time.Hour)}
	}, "/isr_change_notification", "kctl controller move --yes"},
	"log-dir-events-left": {func(f *check.Facts) {
		f.Tree.DirEvents = []check.Node{node("/log_dir_event_notification/log_dir_event_0000000001", "", time.Hour)}
	}, "/log_dir_event_notification", "kctl controller move --yes"},
	"config-notifications-many": {func(f *check.Facts) { f.Tree.ConfigChanges = make([]check.Node, 1001) }, "/config/changes", "kctl leftovers clean config-change --yes"},
	"leadership-alert": {func(f *check.Facts) {
		f.Tree.Alerts = []check.Node{{Path: "/admin/leadership_alerts/t-0", Data: alert(4)}}
	}, "t-0", "kctl transitions t:0"},
	"leadership-alert-left": {func(f *check.Facts) {
		f.Tree.Alerts = []check.Node{{Path: "/admin/leadership_alerts/gone-0", Data: alert(4), Age: 30 * time.Second}}
	}, "/admin/leadership_alerts/gone-0", "kctl leftovers clean alert --yes"},
	"producer-ids-near-end":  {producerIDs(`{"version":1,"broker":1,"block_start":"9223372036854774000","block_end":"9223372036854774999"}`), "/latest_producer_id_block", "kctl zk get"},
	"producer-ids-malformed": {producerIDs(`x`), "/latest_producer_id_block", "kctl zk get"},
	"kraft-migration-present": {func(f *check.Facts) {
		n := node("/migration", `{"version":0,"kraft_controller_id":3000,"kraft_controller_epoch":5}`, time.Hour)
		f.Tree.Migration = &n
	}, "/migration", "kctl zk get /migration"},
	"controller-epoch-missing":       {func(f *check.Facts) { f.Tree.ControllerEpoch = -1 }, "/controller_epoch", "kctl zk create /controller_epoch 3 --break-glass --yes"},
	"reassignment-running":           {part(func(p *model.Partition) { p.Replicas, p.Adding = ids{1, 2, 3}, ids{3} }), "t-0", "kctl reassign status"},
	"reassignment-dead-target":       {part(func(p *model.Partition) { p.Replicas, p.Adding = ids{1, 2, 3, 9}, ids{9} }), "t-0", "kctl reassign cancel t:0 --yes"},
	"reassignment-stalled":           {func(f *check.Facts) { outOfSync(60, 60)(f); f.Snapshot.Topics[0].Partitions[0].Adding = ids{3} }, "t-0 on broker 3", "kctl reassign status"},
	"throttle-left":                  {brokerConfig(2, "leader.replication.throttled.rate", "1000"), "broker 2", "kctl leftovers clean throttle --yes"},
	"throttle-list-malformed":        {topicConfig("leader.replication.throttled.replicas", "0:-1"), "topic t", "kctl configs delete topic/t leader.replication.throttled.replicas --yes"},
	"group-coordinator-unavailable":  {func(f *check.Facts) { f.Groups = []check.Group{{Name: "g", Err: "COORDINATOR_NOT_AVAILABLE"}} }, "group g", "kctl partitions list __consumer_offsets"},
	"group-offsets-of-missing-topic": {func(f *check.Facts) { f.Groups = []check.Group{{Name: "g", Topics: []string{"t", "gone"}}} }, "group g", "kctl groups delete-offsets g --topic gone --yes"},
	"zookeeper-server-unreachable":   {func(f *check.Facts) { f.Servers[1].Err = "connection refused" }, "zookeeper z2:2181", "start z2:2181"},
	"zookeeper-slow":                 {func(f *check.Facts) { f.Servers[1].AvgLatency = 200 }, "zookeeper z2:2181", "z2:2181"},
	"zookeeper-requests-outstanding": {func(f *check.Facts) { f.Servers[1].Outstanding = 500 }, "zookeeper z2:2181", "z2:2181"},
	"zookeeper-read-only":            {func(f *check.Facts) { f.Servers[1].Mode = "read-only" }, "zookeeper z2:2181", "z2:2181"},
	"zookeeper-many-nodes":           {func(f *check.Facts) { f.Servers[1].Nodes = 2_000_000 }, "zookeeper z2:2181", "kctl zk tree /"},
	"zookeeper-single-server":        {func(f *check.Facts) { f.Servers = f.Servers[:1]; f.Servers[0].Mode = "standalone" }, "zookeeper z1:2181", "z1:2181"},
	"zookeeper-no-leader":            {func(f *check.Facts) { f.Servers[0].Err = "x"; f.Servers[1].Err = "x" }, "zookeeper", "z1:2181"},
	"zookeeper-mixed-versions":       {func(f *check.Facts) { f.Servers[1].Version = "3.9.3" }, "zookeeper", "z1:2181"},
}

func racks(f *check.Facts, names ...string) {
	for i, n := range names {
		f.Snapshot.Brokers[i].Rack = n
	}
}

func producerIDs(data string) func(*check.Facts) {
	return func(f *check.Facts) {
		n := node("/latest_producer_id_block", data, time.Hour)
		f.Tree.ProducerIDs = &n
	}
}

// TestFindings: every check finds what it is for, with the object and a command that can be run, and a healthy cluster has
// no finding at all.
func TestFindings(t *testing.T) {
	if d := check.Diagnose(facts(), nil); len(d.Findings) > 0 || len(d.Skipped) > 0 {
		t.Fatalf("a healthy cluster has %v, skipped %v", d.Findings, d.Skipped)
	}
	var golden strings.Builder
	for _, c := range check.Checks() {
		r, ok := recorded[c.ID]
		if !ok {
			t.Errorf("check %s has no recorded case", c.ID)
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			f := facts()
			r.change(f)
			d := check.Diagnose(f, []string{c.ID})
			i := slices.IndexFunc(d.Findings, func(x model.Finding) bool { return x.Object == r.object })
			if i < 0 {
				t.Fatalf("no finding for %q: %+v", r.object, d)
			}
			x := d.Findings[i]
			if x.ID != c.ID || x.Severity != c.Severity || !strings.Contains(x.Fix, r.fix) || x.Evidence == "" && c.ID != check.PendingTransition && c.ID != check.StuckTransition {
				t.Errorf("got %+v, want a fix with %q", x, r.fix)
			}
			if !strings.HasPrefix(x.Fix, "kctl ") {
				t.Errorf("fix %q is no command", x.Fix)
			}
			fmt.Fprintf(&golden, "%s | %s | %s | %s\n", x.ID, x.Object, x.Evidence, x.Fix)
		})
	}
	checkGolden(t, golden.String())
	if len(recorded) != len(check.Checks()) {
		t.Errorf("%d recorded cases, %d checks", len(recorded), len(check.Checks()))
	}
}

// checkGolden compares with testdata/findings.txt, whose commands the test of the command line parses.
func checkGolden(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join("testdata", "findings.txt")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || string(want) != text {
		t.Errorf("the findings are not those of %s (-update): %v\n%s", path, err, text)
	}
}

// TestSkipped: a check whose source is missing does not run and says why; the others do.
func TestSkipped(t *testing.T) {
	f := facts()
	f.Tree, f.Missing[check.FromZooKeeper] = nil, "no -z"
	d := check.Diagnose(f, nil)
	i := slices.IndexFunc(d.Skipped, func(s check.Skipped) bool { return s.Check == check.StateMalformed })
	if i < 0 || d.Skipped[i].Reason != "no -z" || slices.Contains(d.Ran, check.StateMalformed) || !slices.Contains(d.Ran, check.OfflinePartition) {
		t.Errorf("ran %v\nskipped %v", d.Ran, d.Skipped)
	}
	if len(d.Ran)+len(d.Skipped) != len(check.Checks()) {
		t.Errorf("%d ran, %d skipped, of %d", len(d.Ran), len(d.Skipped), len(check.Checks()))
	}
}

// TestPages: docs/findings holds a page for every check, made from it, the index, and nothing else.
func TestPages(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "findings")
	want := map[string]string{"README.md": check.IndexPage()}
	for _, c := range check.Checks() {
		if strings.ToLower(c.ID) != c.ID || strings.ContainsAny(c.ID, "_ ") || len(c.Needs) == 0 || c.Means == "" || c.Causes == "" || c.Remedy == "" || want[c.ID+".md"] != "" {
			t.Errorf("check %q is incomplete or doubled", c.ID)
		}
		want[c.ID+".md"] = check.Page(c)
	}
	if len(want) < 41 {
		t.Errorf("%d checks, fewer than 40", len(want)-1)
	}
	if *update {
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if want[file.Name()] == "" {
			t.Errorf("%s belongs to no check", file.Name())
		}
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Errorf("%s is not what its check says (go test ./admin/check -run TestPages -update): %v", name, err)
		}
	}
}

// TestDiff: only what differs is shown, with who is behind; ISRs are sets.
func TestDiff(t *testing.T) {
	if d := check.Diff(facts()); len(d) > 0 {
		t.Fatalf("a healthy cluster differs: %+v", d)
	}
	f := facts()
	f.Views[1].Topics[0].Partitions[0].ISR = ids{3, 2, 1}
	f.Views[2].Topics[0].Partitions[0].LeaderEpoch = 3
	f.Views[2].Topics[0].Partitions[0].Leader = 2
	f.Tree.Controller = 2
	var got []string
	for _, d := range check.Diff(f) {
		got = append(got, d.Key()+" "+d.ZooKeeper+" "+d.Controller+" "+d.Brokers[3]+" behind "+check.IDList(d.Behind))
	}
	want := "/-1/controller 2 1 1 behind none|t/0/leader 1 1 2 behind none|t/0/leaderEpoch 4 4 3 behind 3"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	f = facts()
	f.Views[2].Topics = nil
	if d := check.Diff(f); len(d) != 1 || d[0].Field != check.FieldExists || d[0].Brokers[3] != "no" {
		t.Errorf("%+v", d)
	}
}

// TestFixOfYoungLeftovers: leftovers passes over znodes that are young, so the fix of one that a diagnosis names already says
// from which age it counts.
func TestFixOfYoungLeftovers(t *testing.T) {
	for age, want := range map[time.Duration]string{time.Second / 10: "kctl leftovers clean broker-config --yes --older-than 0s", 10 * time.Second: "kctl leftovers clean broker-config --yes --older-than 1s", time.Hour: "kctl leftovers clean broker-config --yes"} {
		f := facts()
		f.Tree.BrokerConfigs = []check.Node{node("/config/brokers/77", "", age)}
		found := check.Diagnose(f, []string{check.OrphanBrokerConfig}).Findings
		if len(found) != 1 || found[0].Fix != want {
			t.Errorf("%s: %+v", age, found)
		}
	}
}
