package check

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
	"kctl/zkutil/znode"
)

// Kinds of leftovers, as leftovers clean takes them.
const (
	LeftThrottle     = "throttle"
	LeftAdminNode    = "admin-znode"
	LeftDeletion     = "deletion"
	LeftTopicConfig  = "topic-config"
	LeftBrokerConfig = "broker-config"
	LeftNotification = "notification"
	LeftConfigChange = "config-change"
	LeftAlert        = "alert"
	LeftStray        = "stray-replica"
	LeftDeadReplica  = "dead-replica"
)

// LeftoverKinds lists the kinds.
func LeftoverKinds() []string {
	return []string{LeftThrottle, LeftAdminNode, LeftDeletion, LeftTopicConfig, LeftBrokerConfig, LeftNotification, LeftConfigChange, LeftAlert, LeftStray, LeftDeadReplica}
}

// DefaultLeftoverAge is the age from which a znode that is taken up at once counts as left behind; configChangeAge that from which
// brokers themselves delete configuration notifications.
const (
	DefaultLeftoverAge = time.Minute
	configChangeAge    = 15 * time.Minute
)

// Leftover is something that nobody needs any more. Exactly one of Node and Throttle says what clean takes away; without both,
// Keep says what to do instead.
type Leftover struct {
	Kind     string
	Object   string
	Evidence string
	Age      time.Duration // -1: not known
	Node     *Node
	Throttle *Throttle
	Keep     string
}

// Leftovers finds what is left behind and older than the given age. Whatever a running reassignment may still need is left out.
func Leftovers(f *Facts, older time.Duration) []Leftover {
	s := newScene(f)
	l := &leftovers{s: s, older: older, idle: idle(s)}
	l.throttles()
	if f.Tree != nil {
		l.adminNodes()
		l.configs()
		l.notifications()
	}
	for _, st := range strays(s) {
		l.out = append(l.out, Leftover{
			Kind: LeftStray, Object: fmt.Sprintf("%s on broker %d", st.TP, st.Broker), Age: -1,
			Evidence: fmt.Sprintf("%s in %s, and no replica list names it", Bytes(st.Size), st.Dir),
			Keep:     fmt.Sprintf("stop broker %d, delete %s/%s, start it", st.Broker, st.Dir, st.TP),
		})
	}
	l.deadReplicas()
	return l.out
}

type leftovers struct {
	s     *scene
	older time.Duration
	idle  bool
	out   []Leftover
}

func (l *leftovers) node(kind string, n Node, evidence string) {
	if n.Age >= l.older {
		l.out = append(l.out, Leftover{Kind: kind, Object: n.Path, Evidence: evidence, Age: n.Age, Node: &n})
	}
}

func (l *leftovers) throttles() {
	for _, t := range Throttles(l.s.Facts) {
		left := Leftover{Kind: LeftThrottle, Object: t.Object(), Evidence: t.Name + "=" + t.Value + ", and nothing is being reassigned", Age: -1, Throttle: &t}
		if !l.idle {
			continue
		}
		l.out = append(l.out, left)
	}
}

func (l *leftovers) adminNodes() {
	t := l.s.Tree
	for _, n := range []*Node{t.Reassign, t.Election} {
		if n != nil && l.idle {
			l.node(LeftAdminNode, *n, fmt.Sprintf("%d bytes, and nothing is being reassigned", len(n.Data)))
		}
	}
	for _, n := range t.Deleting {
		if _, ok := t.TopicNodes[lastName(n.Path)]; !ok {
			l.node(LeftDeletion, n, "the topic does not exist")
		}
	}
	l.s.alerts(func(n Node, _ cluster.TopicPartition, a znode.LeadershipAlert, state *model.StateNode) {
		switch {
		case state == nil:
			l.node(LeftAlert, n, "the partition does not exist")
		case state.Err == "" && state.LeaderEpoch > a.Decision.LeaderEpoch:
			l.node(LeftAlert, n, fmt.Sprintf("speaks of epoch %d, the state has %d", a.Decision.LeaderEpoch, state.LeaderEpoch))
		}
	})
}

func (l *leftovers) configs() {
	t := l.s.Tree
	for _, n := range t.TopicConfigs {
		if _, ok := t.TopicNodes[lastName(n.Path)]; !ok && lastName(n.Path) != znode.DefaultEntity && !l.s.deleting(lastName(n.Path)) {
			l.node(LeftTopicConfig, n, "the topic does not exist")
		}
	}
	known := map[string]bool{znode.DefaultEntity: true}
	for i := range l.s.Snapshot.Brokers {
		known[strconv.Itoa(int(l.s.Snapshot.Brokers[i].ID))] = true
	}
	for _, n := range t.BrokerConfigs {
		if !known[lastName(n.Path)] {
			l.node(LeftBrokerConfig, n, "no such broker is registered or named in a replica list")
		}
	}
}

func (l *leftovers) notifications() {
	t := l.s.Tree
	for _, n := range slices.Concat(t.ISRChanges, t.DirEvents) {
		if n.Age >= l.older {
			l.out = append(l.out, Leftover{
				Kind: LeftNotification, Object: n.Path, Evidence: "no controller has read it", Age: n.Age,
				Keep: "kctl controller move --yes: a new controller reads and deletes it",
			})
		}
	}
	for _, n := range t.ConfigChanges {
		if n.Age >= max(l.older, configChangeAge) {
			l.node(LeftConfigChange, n, "every live broker has read it")
		}
	}
}

// deadReplicas are replicas on brokers that are gone: only a reassignment takes them away.
func (l *leftovers) deadReplicas() {
	count := hosted(l.s)
	for i := range l.s.Snapshot.Brokers {
		if b := &l.s.Snapshot.Brokers[i]; !b.Live && count[b.ID] > 0 {
			l.out = append(l.out, Leftover{
				Kind: LeftDeadReplica, Object: objectBroker(b.ID), Age: -1,
				Evidence: fmt.Sprintf("named in %d replica lists and not registered", count[b.ID]),
				Keep:     fmt.Sprintf("start broker %d; if it will not come back: kctl reassign generate --drain %d", b.ID, b.ID),
			})
		}
	}
}
