package check

import (
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// Ids of findings on topics.
const (
	TopicMalformed   = "topic-malformed"
	TopicIDMissing   = "topic-id-missing"
	TopicIDMismatch  = "topic-id-mismatch"
	DuplicateTopicID = "duplicate-topic-id"
	TopicUnknown     = "topic-unknown-to-brokers"
	TopicGone        = "topic-gone-from-zookeeper"
	NameCollision    = "name-collision"
	DeletionStuck    = "deletion-stuck"
	DeletionOff      = "deletion-disabled"
)

func topicChecks() []Check {
	return []Check{
		{TopicMalformed, model.SeverityCritical, "a topic's znode cannot be decoded", fromStates,
			"The controller cannot read the assignment; a controller that starts now may fail on it.",
			"An edit by hand or by a tool.", "The fix writes back the assignment and id that the brokers have.", topicMalformed},
		{TopicIDMissing, model.SeverityWarning, "a topic's znode has lost its topic_id", fromStates,
			"Brokers have the topic under an id. The next controller of Apache Kafka gives it a new one, and then every replica refuses its orders (INCONSISTENT_TOPIC_ID); ours writes the old one back where its own broker knows it.",
			"A tool older than Kafka 2.8 rewrote the znode without the field (CMAK issue 900).",
			"The fix writes the id that the brokers know back into the znode; do it before the controller changes.", topicIDMissing},
		{TopicIDMismatch, model.SeverityCritical, "ZooKeeper and the brokers have different ids for a topic", fromStates,
			"On Apache Kafka replicas refuse the controller's orders for this topic (INCONSISTENT_TOPIC_ID): it cannot fail over. On kbroker the next controller takes it for a topic made anew: replicas put their logs aside (*-stray) and begin empty.",
			"The id was lost and made anew, or the znode was restored from another cluster.",
			"The fix writes the brokers' id back into the znode, which has to happen before the controller changes; then make a new controller.", topicIDMismatch},
		{DuplicateTopicID, model.SeverityCritical, "two topics have the same id", fromStates,
			"Fetches by topic id get the wrong topic.", "A topic's znode was copied.", "Delete the copy, or give it back its own id.", duplicateTopicID},
		{TopicUnknown, model.SeverityWarning, "ZooKeeper has a topic that the brokers do not know", fromStates,
			"The topic was created in ZooKeeper and the controller has not taken it up: clients get UNKNOWN_TOPIC_OR_PARTITION.",
			"The controller has lost its watch, or a tool wrote the topic with a name or assignment that it refuses.",
			"A new controller reads all topics: `kctl controller move`.", topicUnknown},
		{TopicGone, model.SeverityCritical, "brokers serve a topic that is gone from ZooKeeper", fromStates,
			"Clients still use the topic; the next controller will not know it, and its replicas become strays.",
			"/brokers/topics/TOPIC was deleted by hand, or ZooKeeper was restored from an older copy.",
			"To be rid of it, make a new controller; to keep it, write its znode back first.", topicGone},
		{NameCollision, model.SeverityInfo, "the names of two topics differ only in . and _", []Source{FromBrokers},
			"Metrics of both topics get the same name, and Kafka refuses to create such a pair.",
			"One of them was created in ZooKeeper directly, or by an old version.", "Move to a topic with another name.", nameCollision},
		{DeletionStuck, model.SeverityWarning, "the deletion of a topic waits for a broker that is down", []Source{FromBrokers, FromZooKeeper},
			"The topic is marked for deletion, but a replica is on a broker that does not answer. It can be neither used nor created anew.",
			"A broker that holds a replica is down, its log directory failed, or a reassignment of the topic is under way.",
			"Start the broker that is named. If it is gone for good, remove its replicas with a reassignment first.", deletionStuck},
		{DeletionOff, model.SeverityWarning, "topics are marked for deletion, but deletion is disabled", []Source{FromBrokers, FromZooKeeper, FromConfigs},
			"delete.topic.enable=false on the controller: the mark stays and nothing is deleted until it is set.",
			"A deletion was asked for through ZooKeeper while the broker setting forbids it.",
			"Set delete.topic.enable=true and restart the brokers, or take the mark away.", deletionOff},
	}
}

func topicMalformed(s *scene, add report) {
	for i := range s.Tree.Topics {
		if t := &s.Tree.Topics[i]; t.Err != "" {
			add("topic "+t.Name, t.Err, s.writeTopic(t.Name))
		}
	}
}

// brokerID is the id under which the brokers know a topic; zero when they do not.
func (s *scene) brokerID(topic string) cluster.TopicID {
	if t := s.topics[topic]; t != nil && t.Source == model.SourceProtocol {
		return t.ID
	}
	return cluster.TopicID{}
}

func topicIDMissing(s *scene, add report) {
	for i := range s.Tree.Topics {
		t := &s.Tree.Topics[i]
		id := s.brokerID(t.Name)
		if t.Err == "" && t.ID.IsZero() && !id.IsZero() {
			add("topic "+t.Name, fmt.Sprintf("/brokers/topics/%s has no topic_id; the brokers know it as %s", t.Name, id), s.writeTopic(t.Name))
		}
	}
}

// writeTopic is the command that gives a topic's znode the id that the brokers know, and the partitions that it lacks; all else stays.
func (s *scene) writeTopic(topic string) string {
	n := s.Tree.TopicNodes[topic]
	zt, err := znode.DecodeTopic(topic, n.Data)
	if err != nil || zt.Partitions == nil {
		zt = znode.Topic{Partitions: map[int32]cluster.Assignment{}}
	}
	if t := s.topics[topic]; t != nil {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			if _, ok := zt.Partitions[p.Partition]; !ok {
				zt.Partitions[p.Partition] = cluster.Assignment{Replicas: p.Replicas, Adding: p.Adding, Removing: p.Removing}
			}
		}
	}
	if id := s.brokerID(topic); !id.IsZero() {
		zt.ID = id
	}
	return zkSet("/brokers/topics/"+topic, zt.Encode(), n.Version)
}

func topicIDMismatch(s *scene, add report) {
	for i := range s.Tree.Topics {
		t := &s.Tree.Topics[i]
		id := s.brokerID(t.Name)
		if t.Err == "" && !t.ID.IsZero() && !id.IsZero() && id != t.ID {
			add("topic "+t.Name, fmt.Sprintf("ZooKeeper %s, brokers %s", t.ID, id), s.writeTopic(t.Name))
		}
	}
}

func duplicateTopicID(s *scene, add report) {
	by := map[cluster.TopicID][]string{}
	for i := range s.Tree.Topics {
		if t := &s.Tree.Topics[i]; !t.ID.IsZero() {
			by[t.ID] = append(by[t.ID], t.Name)
		}
	}
	for i := range s.Tree.Topics {
		if names := by[s.Tree.Topics[i].ID]; len(names) > 1 && names[0] == s.Tree.Topics[i].Name {
			add("topics "+strings.Join(names, ","), "topic_id "+s.Tree.Topics[i].ID.String(), s.ownID(names))
		}
	}
}

// ownID gives the copy its own id back, where the brokers know it.
func (s *scene) ownID(names []string) string {
	for _, name := range names {
		if id := s.brokerID(name); !id.IsZero() && id != s.treeTopic(name).ID {
			return s.writeTopic(name)
		}
	}
	return "kctl topics describe " + model.ShellWord(names[len(names)-1]) + "   # delete the copy"
}

func (s *scene) deleting(topic string) bool {
	if s.doomed == nil {
		s.doomed = make(map[string]bool, len(s.Tree.Deleting))
		for i := range s.Tree.Deleting {
			s.doomed[lastName(s.Tree.Deleting[i].Path)] = true
		}
	}
	return s.doomed[topic]
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// settled is how old a znode must be before its absence from the brokers' metadata means anything, in seconds.
const settled = 5

func topicUnknown(s *scene, add report) {
	if s.Snapshot.Source != model.SourceProtocol {
		return
	}
	for i := range s.Tree.Topics {
		t := &s.Tree.Topics[i]
		if known := s.topics[t.Name]; known == nil && t.Err == "" && !s.deleting(t.Name) && s.Tree.TopicNodes[t.Name].Age.Seconds() > settled {
			add("topic "+t.Name, fmt.Sprintf("/brokers/topics/%s is %s old", t.Name, roundAge(s.Tree.TopicNodes[t.Name].Age)), "kctl controller move --yes")
		}
	}
}

func topicGone(s *scene, add report) {
	if s.Snapshot.Source != model.SourceProtocol {
		return
	}
	for i := range s.Snapshot.Topics {
		t := &s.Snapshot.Topics[i]
		if _, ok := s.Tree.TopicNodes[t.Name]; !ok && t.Err == "" && len(t.Partitions) > 0 {
			add("topic "+t.Name, fmt.Sprintf("the brokers serve %d partitions; /brokers/topics/%s does not exist", len(t.Partitions), t.Name), "kctl controller move --yes")
		}
	}
}

func nameCollision(s *scene, add report) {
	by := map[string][]string{}
	for i := range s.Snapshot.Topics {
		name := s.Snapshot.Topics[i].Name
		key := strings.ReplaceAll(name, ".", "_")
		by[key] = append(by[key], name)
	}
	for i := range s.Snapshot.Topics {
		name := s.Snapshot.Topics[i].Name
		if names := by[strings.ReplaceAll(name, ".", "_")]; len(names) > 1 && names[0] == name {
			add("topics "+strings.Join(names, ","), "metric names are the same", "kctl topics describe "+model.ShellWord(names[len(names)-1])+"   # move to a topic with another name")
		}
	}
}

func deletionStuck(s *scene, add report) {
	for _, n := range s.Tree.Deleting {
		name := lastName(n.Path)
		t := s.treeTopic(name)
		if t == nil {
			continue
		}
		var dead []cluster.BrokerID
		for i := range t.Partitions {
			for _, id := range notIn(t.Partitions[i].Replicas, s.live) {
				if !slices.Contains(dead, id) {
					dead = append(dead, id)
				}
			}
		}
		if slices.Sort(dead); len(dead) > 0 {
			add("topic "+name, fmt.Sprintf("marked for deletion %s ago; it has replicas on dead broker %s", roundAge(n.Age), IDList(dead)), startBroker(dead...))
		}
	}
}

func (s *scene) treeTopic(name string) *model.Topic {
	for i := range s.Tree.Topics {
		if s.Tree.Topics[i].Name == name {
			return &s.Tree.Topics[i]
		}
	}
	return nil
}

func deletionOff(s *scene, add report) {
	if s.BrokerConfigs[s.Snapshot.Controller.ID]["delete.topic.enable"].Text != "false" {
		return
	}
	for _, n := range s.Tree.Deleting {
		if name := lastName(n.Path); s.treeTopic(name) != nil {
			add("topic "+name, fmt.Sprintf("marked for deletion, delete.topic.enable=false on the controller, broker %d", s.Snapshot.Controller.ID),
				"kctl zk delete "+model.ShellWord(n.Path)+" --break-glass --yes")
		}
	}
}
