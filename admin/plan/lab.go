package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// LabEdit is one change of a znode: it gets Data, and is made when Create is set.
type LabEdit struct {
	Path   string
	Data   []byte
	Create bool
}

// LabUndo takes one edit back: a znode that still holds Wrote gets Before again, or goes when it was Created.
type LabUndo struct {
	Path    string `json:"path"`
	Wrote   []byte `json:"wrote"`
	Before  []byte `json:"before"`
	Created bool   `json:"created"`
}

// LabScenario is a failure that can be rehearsed: what it is about, the finding it makes, and the edits that make it. A scenario with
// Topic works on a topic of its own (LabTopic), made before and deleted by undo.
type LabScenario struct {
	Name    string
	Finding string
	Summary string
	Lesson  string // what to try
	Topic   bool
	Edits   func(LabCluster) ([]LabEdit, error)
	// Settle says that undo also needs a new controller, because the present one remembers.
	Settle bool
}

// LabCluster is what the edits of a scenario are made from.
type LabCluster struct {
	Topic     string
	TopicNode []byte
	StateNode []byte
}

// LabTopic is the topic on which a scenario works.
func LabTopic(scenario string) string { return "lab-" + scenario }

func (l LabCluster) state(change func(*znode.State)) ([]LabEdit, error) {
	tp := cluster.TopicPartition{Topic: l.Topic}
	st, err := znode.DecodeState(tp, l.StateNode)
	if err != nil {
		return nil, err
	}
	change(&st)
	return []LabEdit{{Path: znode.StatePath(tp), Data: st.Encode()}}, nil
}

func (l LabCluster) topic(change func(*znode.Topic)) ([]LabEdit, error) {
	t, err := znode.DecodeTopic(l.Topic, l.TopicNode)
	if err != nil {
		return nil, err
	}
	change(&t)
	return []LabEdit{{Path: znode.TopicPath(l.Topic), Data: t.Encode()}}, nil
}

// LabScenarios lists all, by name.
func LabScenarios() []LabScenario {
	out := slices.Concat(labStates(), labTopics(), labAdmin())
	slices.SortFunc(out, func(a, b LabScenario) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func labStates() []LabScenario {
	return []LabScenario{
		{Name: "stuck-transition", Finding: "stuck-transition", Topic: true, Settle: true,
			Summary: "a decision stands in ZooKeeper that no broker was told of",
			Lesson:  "kctl transitions says who it waits for; kctl controller move frees it",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				return l.state(func(s *znode.State) {
					if i := slices.IndexFunc(s.ISR, func(id cluster.BrokerID) bool { return id != s.Leader }); i >= 0 {
						s.Leader = s.ISR[i]
					}
					s.LeaderEpoch++
				})
			}},
		{Name: "controller-epoch-ahead", Finding: "controller-epoch-ahead", Topic: true,
			Summary: "a state znode carries a controller epoch from nowhere",
			Lesson:  "kctl leader-and-isr get shows the epoch; the controller will not touch the partition",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				return l.state(func(s *znode.State) { s.ControllerEpoch += 100 })
			}},
		{Name: "state-malformed", Finding: "state-malformed", Topic: true,
			Summary: "a state znode is cut off in the middle",
			Lesson:  "kctl zk get shows the bytes; kctl leader-and-isr get names what is wrong",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				return []LabEdit{{Path: znode.StatePath(cluster.TopicPartition{Topic: l.Topic}), Data: l.StateNode[:len(l.StateNode)/2]}}, nil
			}},
		{Name: "state-unknown-fields", Finding: "state-unknown-fields", Topic: true,
			Summary: "a state znode has a field of a program from the future",
			Lesson:  "kctl leader-and-isr get lists it; leader-and-isr set keeps it",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				data := append(l.StateNode[:len(l.StateNode)-1:len(l.StateNode)-1], []byte(`,"lab_field":7}`)...)
				return []LabEdit{{Path: znode.StatePath(cluster.TopicPartition{Topic: l.Topic}), Data: data}}, nil
			}},
		{Name: "empty-isr", Finding: "empty-isr", Topic: true,
			Summary: "a state znode has an empty ISR",
			Lesson:  "kctl lag replicas shows whose log is longest",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				return l.state(func(s *znode.State) { s.ISR = []cluster.BrokerID{} })
			}},
	}
}

func labTopics() []LabScenario {
	return []LabScenario{
		{Name: "topic-id-missing", Finding: "topic-id-missing", Topic: true,
			Summary: "a topic's znode was rewritten by a tool that does not know topic ids",
			Lesson:  "kctl doctor names the id that the brokers know; write it back before the controller changes",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				return l.topic(func(t *znode.Topic) { t.ID = cluster.TopicID{} })
			}},
		{Name: "topic-malformed", Finding: "topic-malformed", Topic: true,
			Summary: "a topic's znode is no JSON",
			Lesson:  "kctl zk get shows the bytes",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				return []LabEdit{{Path: znode.TopicPath(l.Topic), Data: []byte("lost")}}, nil
			}},
		{Name: "bad-config-value", Finding: "bad-config-value", Topic: true,
			Summary: "a topic's stored configuration has a value that no broker takes",
			Lesson:  "kctl configs get shows what the brokers use instead",
			Edits: func(l LabCluster) ([]LabEdit, error) {
				data := znode.Config{Values: map[string]string{"retention.ms": "soon"}}.Encode()
				return []LabEdit{{Path: znode.ConfigEntityPath(znode.TopicConfig, l.Topic), Data: data}}, nil
			}},
	}
}

func created(path, data string) func(LabCluster) ([]LabEdit, error) {
	return func(LabCluster) ([]LabEdit, error) {
		return []LabEdit{{Path: path, Data: []byte(data), Create: true}}, nil
	}
}

func labAdmin() []LabScenario {
	config := string(znode.Config{Values: map[string]string{"retention.ms": "1000"}}.Encode())
	return []LabScenario{
		{Name: "orphan-topic-config", Finding: "orphan-topic-config",
			Summary: "there is configuration for a topic that does not exist",
			Lesson:  "kctl leftovers list, then kctl leftovers clean topic-config; both with --older-than 1s before it is a minute old, doctor after 5 seconds",
			Edits:   created(znode.ConfigEntityPath(znode.TopicConfig, "lab-gone"), config)},
		{Name: "orphan-broker-config", Finding: "orphan-broker-config",
			Summary: "a broker that was decommissioned has left a throttle behind",
			Lesson:  "kctl leftovers list, then kctl leftovers clean broker-config; both with --older-than 1s before it is a minute old",
			Edits: created(znode.ConfigEntityPath(znode.BrokerConfig, "7777"),
				string(znode.Config{Values: map[string]string{"leader.replication.throttled.rate": "1000"}}.Encode()))},
		{Name: "kraft-migration-present", Finding: "kraft-migration-present",
			Summary: "a KRaft controller has begun to take over",
			Lesson:  "kctl zk get /migration shows who",
			Edits: created(znode.MigrationPath,
				`{"version":0,"kraft_metadata_offset":10,"kraft_controller_id":3000,"kraft_metadata_epoch":5,"kraft_controller_epoch":5}`)},
	}
}

// LabRecord is what is kept of a scenario under way, so that undo works from anywhere.
type LabRecord struct {
	Version  int       `json:"version"`
	Scenario string    `json:"scenario"`
	Topic    string    `json:"topic,omitempty"`
	Settle   bool      `json:"settle,omitempty"`
	Undo     []LabUndo `json:"undo"`
}

// Encode writes version 1.
func (r LabRecord) Encode() ([]byte, error) {
	r.Version = 1
	return json.Marshal(r)
}

// DecodeLabRecord reads it.
func DecodeLabRecord(data []byte) (LabRecord, error) {
	var r LabRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("the record of the rehearsal: %w", err)
	}
	return r, nil
}
