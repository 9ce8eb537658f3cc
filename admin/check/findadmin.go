package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// Ids of findings on admin znodes, reassignments, throttles and what they leave behind.
const (
	ReassignLeft       = "leftover-reassign-znode"
	ElectionLeft       = "leftover-election-znode"
	DeletionLeft       = "deletion-of-missing-topic"
	OrphanTopicConfig  = "orphan-topic-config"
	OrphanBrokerConfig = "orphan-broker-config"
	ISRChangesLeft     = "isr-notifications-left"
	DirEventsLeft      = "log-dir-events-left"
	ConfigChangesMany  = "config-notifications-many"
	AlertOutstanding   = "leadership-alert"
	AlertLeft          = "leadership-alert-left"
	ProducerIDsLow     = "producer-ids-near-end"
	ProducerIDsBad     = "producer-ids-malformed"
	MigrationPresent   = "kraft-migration-present"
	ControllerEpochBad = "controller-epoch-missing"
	ReassignRunning    = "reassignment-running"
	ReassignDead       = "reassignment-dead-target"
	ReassignStalled    = "reassignment-stalled"
	ThrottleLeft       = "throttle-left"
	ThrottleBroken     = "throttle-list-malformed"
)

// Throttle settings (KIP-73, KIP-113).
const (
	leaderThrottled   = "leader.replication.throttled.replicas"
	followerThrottled = "follower.replication.throttled.replicas"
	leaderRate        = "leader.replication.throttled.rate"
	followerRate      = "follower.replication.throttled.rate"
	dirsRate          = "replica.alter.log.dirs.io.max.bytes.per.second"
)

// oldNode is the age in seconds from which a node that a controller takes up at once is a leftover.
const oldNode = 60

func adminChecks() []Check {
	zk := []Source{FromZooKeeper}
	both := []Source{FromBrokers, FromZooKeeper}
	return []Check{
		{ReassignLeft, model.SeverityWarning, "/admin/reassign_partitions is still there", zk,
			"A reassignment asked for through ZooKeeper has not been taken up or is not finished. While it is there a second one is refused.",
			"No controller acts on it, or one of its partitions cannot move (a target broker is down).",
			"Look at it with `kctl reassign status`. If nothing moves, take it away with `kctl leftovers clean`.", reassignLeft},
		{ElectionLeft, model.SeverityWarning, "/admin/preferred_replica_election is still there", zk,
			"An election asked for through ZooKeeper was not taken up. Further ones through this path are refused.",
			"No controller acts, or it lost its watch.", "Take it away with `kctl leftovers clean`, then `kctl elect preferred`.", electionLeft},
		{DeletionLeft, model.SeverityInfo, "a topic is marked for deletion that does not exist", both,
			"A child of /admin/delete_topics names no topic. A topic made with this name would be deleted at once.",
			"The deletion was finished by hand, or the controller changed just then.", "`kctl leftovers clean`.", deletionLeft},
		{OrphanTopicConfig, model.SeverityInfo, "there is configuration for a topic that does not exist", both,
			"A topic that is created with this name gets the old settings.", "The topic was deleted by removing znodes, or the configuration was set for a misspelled name.",
			"`kctl leftovers clean`.", orphanTopicConfig},
		{OrphanBrokerConfig, model.SeverityInfo, "there is configuration for a broker that does not exist", both,
			"A broker that gets this id again starts with old settings, among them throttles.",
			"The broker was decommissioned.", "`kctl leftovers clean`.", orphanBrokerConfig},
		{ISRChangesLeft, model.SeverityWarning, "ISR change notifications pile up", zk,
			"Leaders announced ISR changes and no controller reads them: the controller's metadata has old ISRs.",
			"The controller named in /controller does not act (KAFKA-13407), or it cannot decode one.", "`kctl controller move`: a new controller reads and deletes them.", isrChangesLeft},
		{DirEventsLeft, model.SeverityWarning, "log directory failure notifications were not read", zk,
			"A broker announced a failed directory and no controller acted: its partitions may have a leader that cannot serve.",
			"As for `isr-notifications-left`.", "`kctl controller move`.", dirEventsLeft},
		{ConfigChangesMany, model.SeverityInfo, "more than a thousand configuration notifications are kept", zk,
			"Every broker reads them all when it starts. Brokers delete those older than 15 minutes when they handle the next one.",
			"A program changes configuration without pause, or brokers could not delete them.", "`kctl leftovers clean`.", configChangesMany},
		{AlertOutstanding, model.SeverityCritical, "the controller has raised an alert on a leadership change", both,
			"The controller itself says that a decision has not been confirmed in time, and by whom.",
			"A broker does not answer or refuses the decision.", "`kctl transitions` names the command that frees it.", alertOutstanding},
		{AlertLeft, model.SeverityInfo, "an alert is left of a decision that is history", both,
			"The partition is gone, or its state has a newer epoch than the alert speaks of.", "The controller that raised it was replaced before it could take it back.",
			"`kctl leftovers clean`.", alertLeft},
		{ProducerIDsLow, model.SeverityCritical, "the producer ids are nearly used up", zk,
			"Brokers hand out ids from blocks that only grow. At the end idempotent producers can no longer start.",
			"The znode was edited: no real cluster gets there.", "Set the block back to the highest id in use.", producerIDsLow},
		{ProducerIDsBad, model.SeverityCritical, "/latest_producer_id_block cannot be decoded", zk,
			"No new block can be handed out: idempotent producers fail when a broker has used up its own.", "An edit by hand.",
			"Write a good block, above all ids handed out before.", producerIDsBad},
		{MigrationPresent, model.SeverityInfo, "the cluster is being, or was, migrated to KRaft", zk,
			"/migration exists: a KRaft controller has written, or writes, here. Znodes may no longer decide anything.",
			"A migration (KIP-866) that is under way, finished or rolled back.", "Finish it, or delete the node after a rollback.", migrationPresent},
		{ControllerEpochBad, model.SeverityCritical, "/controller_epoch is missing or wrong", zk,
			"The fence of every controller's write is gone: a controller of Apache Kafka starts at epoch 1 and is refused by brokers that know a higher one, ours is not elected at all.",
			"It was deleted or edited by hand, or ZooKeeper was restored in part.", "Write the highest epoch that any state node carries.", controllerEpochBad},
	}
}

func throttleChecks() []Check {
	return []Check{
		{ReassignRunning, model.SeverityInfo, "a reassignment is running", []Source{FromBrokers},
			"Replicas are being added or removed. Nothing is wrong by itself.", "Somebody asked for it.", "`kctl reassign status` shows how far it is.", reassignRunning},
		{ReassignDead, model.SeverityCritical, "a reassignment waits for a broker that is not registered", []Source{FromBrokers},
			"It cannot finish, and a topic under reassignment can be neither deleted nor moved elsewhere.",
			"The target broker died during the move.", "Start it, or cancel: `kctl reassign cancel`.", reassignDead},
		{ReassignStalled, model.SeverityWarning, "a replica that is being added does not get any data", []Source{FromBrokers, FromPositions},
			"Between two looks its log end did not move although the leader has more.",
			"A throttle that is too tight, a fetcher that died, or a disk that is full.", "Raise or remove the throttle, or cancel: `kctl reassign cancel`.", reassignStalled},
		{ThrottleLeft, model.SeverityWarning, "a replication throttle is set and nothing is being reassigned", []Source{FromBrokers, FromConfigs},
			"A broker that comes back after a failure catches up at this rate only: under-replication lasts for hours.",
			"A throttled reassignment whose tool was stopped before it removed the throttle (kafka-reassign-partitions without --verify).",
			"`kctl leftovers clean throttle`.", throttleLeft},
		{ThrottleBroken, model.SeverityWarning, "a list of throttled replicas cannot be read", []Source{FromBrokers, FromConfigs},
			"Brokers reject it; some versions do not start with a list that names broker -1.",
			"A tool wrote a replica of a leaderless partition into it.", "Delete the setting.", throttleBroken},
	}
}

func leftover(kind string) string { return "kctl leftovers clean " + kind + " --yes" }

// leftoverNode is leftover for a znode, which leftovers passes over while it is young. One that was written this moment is
// still younger than a second when the fix is run.
func leftoverNode(kind string, n Node) string {
	switch {
	case n.Age < 2*time.Second:
		return leftover(kind) + " --older-than 0s"
	case n.Age < DefaultLeftoverAge:
		return leftover(kind) + " --older-than 1s"
	}
	return leftover(kind)
}

func reassignLeft(s *scene, add report) {
	if n := s.Tree.Reassign; n != nil && n.Age.Seconds() > oldNode {
		add(n.Path, fmt.Sprintf("%s old, %d bytes", roundAge(n.Age), len(n.Data)), leftover("admin-znode"))
	}
}

func electionLeft(s *scene, add report) {
	if n := s.Tree.Election; n != nil && n.Age.Seconds() > oldNode {
		add(n.Path, fmt.Sprintf("%s old, %d bytes", roundAge(n.Age), len(n.Data)), leftover("admin-znode"))
	}
}

func deletionLeft(s *scene, add report) {
	for _, n := range s.Tree.Deleting {
		if _, ok := s.Tree.TopicNodes[lastName(n.Path)]; !ok && n.Age.Seconds() > settled {
			add(n.Path, fmt.Sprintf("topic %s does not exist; marked %s ago", lastName(n.Path), roundAge(n.Age)), leftoverNode("deletion", n))
		}
	}
}

// storedConfig reads the values of a configuration node.
func storedConfig(n Node) (map[string]string, error) {
	c, err := znode.DecodeConfig(znode.TopicConfig, lastName(n.Path), n.Data)
	return c.Values, err
}

func orphanTopicConfig(s *scene, add report) {
	for _, n := range s.Tree.TopicConfigs {
		name := lastName(n.Path)
		if _, ok := s.Tree.TopicNodes[name]; !ok && name != znode.DefaultEntity && n.Age.Seconds() > settled {
			values, _ := storedConfig(n) // what cannot be read is empty
			add("topic "+name, fmt.Sprintf("%s has %d settings, the topic does not exist", n.Path, len(values)), leftoverNode("topic-config", n))
		}
	}
}

func orphanBrokerConfig(s *scene, add report) {
	known := map[string]bool{znode.DefaultEntity: true}
	for i := range s.Snapshot.Brokers {
		known[strconv.Itoa(int(s.Snapshot.Brokers[i].ID))] = true
	}
	for _, n := range s.Tree.BrokerConfigs {
		if name := lastName(n.Path); !known[name] {
			values, _ := storedConfig(n) // what cannot be read is empty
			add("broker "+name, fmt.Sprintf("%s has %s; no such broker is registered or named in a replica list", n.Path, some(sortedKeys(values))), leftoverNode("broker-config", n))
		}
	}
}

// aged counts nodes older than oldNode and names the oldest.
func aged(nodes []Node) (n int, oldest Node) {
	for _, node := range nodes {
		if node.Age.Seconds() > oldNode {
			n++
			if node.Age > oldest.Age {
				oldest = node
			}
		}
	}
	return n, oldest
}

func isrChangesLeft(s *scene, add report) {
	if n, oldest := aged(s.Tree.ISRChanges); n > 0 {
		add("/isr_change_notification", fmt.Sprintf("%d children, the oldest %s old", n, roundAge(oldest.Age)), "kctl controller move --yes")
	}
}

func dirEventsLeft(s *scene, add report) {
	if n, oldest := aged(s.Tree.DirEvents); n > 0 {
		add("/log_dir_event_notification", fmt.Sprintf("%d children, the oldest %s old", n, roundAge(oldest.Age)), "kctl controller move --yes")
	}
}

// notificationsMax is how many configuration notifications are many.
const notificationsMax = 1000

func configChangesMany(s *scene, add report) {
	if n := len(s.Tree.ConfigChanges); n > notificationsMax {
		add("/config/changes", fmt.Sprintf("%d children", n), leftover("config-change"))
	}
}

// alerts calls fn for every alert with what is known of its partition; state is nil when the partition is gone.
func (s *scene) alerts(fn func(n Node, tp cluster.TopicPartition, a znode.LeadershipAlert, state *model.StateNode)) {
	states := map[cluster.TopicPartition]*model.StateNode{}
	s.states(func(n *model.StateNode, tp cluster.TopicPartition) { states[tp] = n })
	for _, n := range s.Tree.Alerts {
		tp, err := znode.ParseLeadershipAlertChild(lastName(n.Path))
		if err != nil {
			continue
		}
		a, _ := znode.DecodeLeadershipAlert(tp, n.Data) // a broken one has epoch 0 and is history
		fn(n, tp, a, states[tp])
	}
}

func alertOutstanding(s *scene, add report) {
	s.alerts(func(n Node, tp cluster.TopicPartition, a znode.LeadershipAlert, state *model.StateNode) {
		if state == nil || state.Err != "" || state.LeaderEpoch > a.Decision.LeaderEpoch {
			return
		}
		var waiting []cluster.BrokerID
		for _, w := range a.Waiting {
			waiting = append(waiting, w.Broker)
		}
		add(tp.String(), fmt.Sprintf("epoch %d, leader %s: waits for broker %s", a.Decision.LeaderEpoch, IDText(a.Decision.Leader), IDList(waiting)), "kctl transitions "+target(tp))
	})
}

func alertLeft(s *scene, add report) {
	s.alerts(func(n Node, tp cluster.TopicPartition, a znode.LeadershipAlert, state *model.StateNode) {
		switch {
		case state == nil:
			add(n.Path, "the partition does not exist", leftoverNode("alert", n))
		case state.Err == "" && state.LeaderEpoch > a.Decision.LeaderEpoch && n.Age.Seconds() > oldNode:
			add(n.Path, fmt.Sprintf("speaks of epoch %d, the state has %d", a.Decision.LeaderEpoch, state.LeaderEpoch), leftover("alert"))
		}
	})
}

// producerIDsEnd is where ids are nearly used up: the last billionth of the range.
const producerIDsEnd = 1<<63 - 1 - 1<<33

func producerIDsLow(s *scene, add report) {
	if n := s.Tree.ProducerIDs; n != nil {
		if b, ok, err := znode.DecodeProducerIDBlock(n.Data); ok && err == nil && b.Last > producerIDsEnd {
			add(n.Path, fmt.Sprintf("last block ends at %d", b.Last), "kctl zk get "+n.Path+"   # set the block back to the highest id in use")
		}
	}
}

func producerIDsBad(s *scene, add report) {
	if n := s.Tree.ProducerIDs; n != nil {
		if _, _, err := znode.DecodeProducerIDBlock(n.Data); err != nil {
			add(n.Path, err.Error(), "kctl zk get "+n.Path+"   # write a block above all ids handed out before")
		}
	}
}

// migrationPresent: Kafka 3.4 and later keep the node, with zk_data -1, before any migration has begun.
func migrationPresent(s *scene, add report) {
	n := s.Tree.Migration
	if n == nil {
		return
	}
	var doc struct {
		Controller int64 `json:"kraft_controller_id"`
		Epoch      int64 `json:"kraft_controller_epoch"`
	}
	if err := json.Unmarshal(n.Data, &doc); err == nil && doc.Epoch < 0 {
		return
	}
	add(n.Path, fmt.Sprintf("KRaft controller %d, epoch %d, changed %s ago", doc.Controller, doc.Epoch, roundAge(n.Age)), "kctl zk get "+n.Path+"   # finish the migration, or delete the node after a rollback")
}

func controllerEpochBad(s *scene, add report) {
	if s.Tree.ControllerEpoch >= 0 {
		return
	}
	highest := cluster.ControllerEpoch(0)
	s.states(func(n *model.StateNode, _ cluster.TopicPartition) { highest = max(highest, n.ControllerEpoch) })
	add("/controller_epoch", fmt.Sprintf("it cannot be read; the highest epoch of a state node is %d", highest),
		fmt.Sprintf("kctl zk create /controller_epoch %d --break-glass --yes   # zk set where it is there and damaged", max(highest, 1)))
}

// moves calls fn for every partition under reassignment, as Metadata or ZooKeeper tells it.
func (s *scene) moves(fn func(p *model.Partition)) {
	seen := map[cluster.TopicPartition]bool{}
	visit := func(p *model.Partition) {
		if s.moving[p.TP()] && len(p.Adding)+len(p.Removing) > 0 && !seen[p.TP()] {
			seen[p.TP()] = true
			fn(p)
		}
	}
	s.partitions(visit)
	if s.Tree != nil {
		for i := range s.Tree.Topics {
			for j := range s.Tree.Topics[i].Partitions {
				visit(&s.Tree.Topics[i].Partitions[j])
			}
		}
	}
}

func reassignRunning(s *scene, add report) {
	s.moves(func(p *model.Partition) {
		add(p.TP().String(), fmt.Sprintf("replicas %s, adding %s, removing %s", IDList(p.Replicas), IDList(p.Adding), IDList(p.Removing)), "kctl reassign status")
	})
}

func reassignDead(s *scene, add report) {
	s.moves(func(p *model.Partition) {
		if dead := notIn(p.Adding, s.live); len(dead) > 0 {
			add(p.TP().String(), fmt.Sprintf("adding %s: broker %s is not registered", IDList(p.Adding), IDList(dead)), "kctl reassign cancel "+target(p.TP())+" --yes")
		}
	})
}

func reassignStalled(s *scene, add report) {
	s.twice(func(tp cluster.TopicPartition, leader, first, second model.ReplicaPosition) {
		p := s.parts[tp]
		if p != nil && slices.Contains(p.Adding, first.Broker) && !first.InSync && first.LogEndOffset == second.LogEndOffset && second.LogEndOffset < leader.LogEndOffset {
			add(fmt.Sprintf("%s on broker %d", tp, first.Broker), fmt.Sprintf("log end %d twice, leader has %d", first.LogEndOffset, leader.LogEndOffset), "kctl reassign status")
		}
	})
}

// Throttle is a throttle setting of a topic or broker.
type Throttle struct {
	Topic  string // or
	Broker cluster.BrokerID
	Name   string
	Value  string
}

// Object names the entity.
func (t Throttle) Object() string {
	if t.Topic != "" {
		return "topic " + t.Topic
	}
	return objectBroker(t.Broker)
}

// Throttles lists the throttles that are set.
func Throttles(f *Facts) []Throttle {
	var out []Throttle
	for _, id := range sortedIDs(f.BrokerConfigs) {
		for _, name := range []string{leaderRate, followerRate, dirsRate} {
			if v := f.BrokerConfigs[id][name]; v.Own && v.Text != "" {
				out = append(out, Throttle{Broker: id, Name: name, Value: v.Text})
			}
		}
	}
	for _, topic := range sortedKeys(f.TopicConfigs) {
		for _, name := range []string{leaderThrottled, followerThrottled} {
			if v := f.TopicConfigs[topic][name]; v.Own && v.Text != "" && v.Text != "none" {
				out = append(out, Throttle{Topic: topic, Broker: cluster.NoLeader, Name: name, Value: v.Text})
			}
		}
	}
	return out
}

// Idle reports whether nothing is being reassigned or moved between directories, so that no throttle is needed.
func Idle(f *Facts) bool { return idle(newScene(f)) }

func idle(s *scene) bool {
	for i := range s.Dirs {
		if slices.ContainsFunc(s.Dirs[i].Replicas, func(r DirReplica) bool { return r.Future }) {
			return false
		}
	}
	return len(s.moving) == 0
}

func throttleLeft(s *scene, add report) {
	if !idle(s) {
		return
	}
	for _, t := range Throttles(s.Facts) {
		add(t.Object(), t.Name+"="+t.Value+", and nothing is being reassigned", leftover("throttle"))
	}
}

func throttleBroken(s *scene, add report) {
	for _, t := range Throttles(s.Facts) {
		if strings.HasSuffix(t.Name, "replicas") && !throttleList(t.Value) {
			add(t.Object(), t.Name+"="+t.Value, deleteConfig(t.Topic, t.Name))
		}
	}
}
