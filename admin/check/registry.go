package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/zkutil/cluster"
)

// Check is one thing that a diagnosis looks for. Its ID is that of the findings it makes. Means, Causes and
// Remedy are the text of its page in the documentation.
type Check struct {
	ID       string
	Severity model.Severity // of its findings; checks of Health may make milder ones
	Summary  string         // one line
	Needs    []Source
	Means    string
	Causes   string
	Remedy   string

	find func(s *scene, add report)
}

// report takes one finding: the object, the evidence and the command that mends it.
type report func(object, evidence, fix string)

// Skipped is a check that could not run.
type Skipped struct {
	Check  string
	Reason string
}

// Diagnosis is the result of Diagnose: findings worst first, the checks that ran and those that could not.
type Diagnosis struct {
	Findings []model.Finding
	Ran      []string
	Skipped  []Skipped
}

// Checks returns every check, in the order of its findings: by severity, then by subject.
func Checks() []Check {
	all := slices.Concat(healthChecks(), partitionChecks(), stateChecks(), topicChecks(), configChecks(), brokerChecks(),
		viewChecks(), storageChecks(), positionChecks(), adminChecks(), throttleChecks(), groupChecks(), ensembleChecks())
	slices.SortStableFunc(all, func(a, b Check) int { return cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)) })
	return all
}

func severityRank(s model.Severity) int {
	return slices.Index([]model.Severity{model.SeverityCritical, model.SeverityWarning, model.SeverityInfo}, s)
}

// AtLeast reports whether a severity is as bad as the other or worse.
func AtLeast(s, than model.Severity) bool { return severityRank(s) <= severityRank(than) }

// Diagnose runs the checks with the given ids (all when there are none) over the facts. Unknown ids are ignored: the
// caller has refused them.
func Diagnose(f *Facts, ids []string) Diagnosis {
	s := newScene(f)
	s.health = Health(Input{Snapshot: f.Snapshot, Transitions: f.Transitions, Session: f.sessionMax()})
	var d Diagnosis
	for _, c := range Checks() {
		if len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		why, told := f.Cannot[c.ID]
		if !told {
			why = f.missing(c.Needs)
		}
		if why != "" {
			d.Skipped = append(d.Skipped, Skipped{c.ID, why})
			continue
		}
		d.Ran = append(d.Ran, c.ID)
		c.find(s, func(object, evidence, fix string) {
			d.Findings = append(d.Findings, model.Finding{ID: c.ID, Severity: c.Severity, Object: object, Evidence: evidence, Fix: fix})
		})
	}
	slices.SortStableFunc(d.Findings, func(a, b model.Finding) int {
		return cmp.Compare(severityRank(a.Severity), severityRank(b.Severity))
	})
	return d
}

func (f *Facts) missing(needs []Source) string {
	var why []string
	for _, n := range needs {
		if m := f.Missing[n]; m != "" && !slices.Contains(why, m) {
			why = append(why, m)
		}
	}
	return strings.Join(why, "; ")
}

// scene is the facts with what several checks look up.
type scene struct {
	*Facts
	live   map[cluster.BrokerID]bool
	topics map[string]*model.Topic
	parts  map[cluster.TopicPartition]*model.Partition
	moving map[cluster.TopicPartition]bool // partitions under reassignment
	health []model.Finding
	leads  map[cluster.TopicPartition]model.ReplicaPosition // the leader's position
	later  map[replicaKey]model.ReplicaPosition
	doomed map[string]bool      // topics to be deleted; nil: not looked up yet
	ends   map[replicaKey]int64 // log ends; nil: not looked up yet
}

type replicaKey struct {
	tp cluster.TopicPartition
	id cluster.BrokerID
}

func newScene(f *Facts) *scene {
	n := 0
	for i := range f.Snapshot.Topics {
		n += len(f.Snapshot.Topics[i].Partitions)
	}
	s := &scene{
		Facts: f, live: Live(f.Snapshot), topics: make(map[string]*model.Topic, len(f.Snapshot.Topics)),
		parts: make(map[cluster.TopicPartition]*model.Partition, n), moving: map[cluster.TopicPartition]bool{},
		leads: map[cluster.TopicPartition]model.ReplicaPosition{}, later: make(map[replicaKey]model.ReplicaPosition, len(f.Later)),
	}
	if len(f.Positions) > 0 {
		s.leads = make(map[cluster.TopicPartition]model.ReplicaPosition, n)
	}
	for i := range f.Snapshot.Topics {
		t := &f.Snapshot.Topics[i]
		s.topics[t.Name] = t
		for j := range t.Partitions {
			p := &t.Partitions[j]
			s.parts[p.TP()] = p
			if len(p.Adding)+len(p.Removing) > 0 {
				s.moving[p.TP()] = true
			}
		}
	}
	if f.Tree != nil {
		for i := range f.Tree.Topics {
			for j := range f.Tree.Topics[i].Partitions {
				if p := &f.Tree.Topics[i].Partitions[j]; len(p.Adding)+len(p.Removing) > 0 {
					s.moving[p.TP()] = true
				}
			}
		}
	}
	for _, p := range f.Positions {
		if p.Leader {
			s.leads[cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}] = p
		}
	}
	for _, p := range f.Later {
		s.later[replicaKey{cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}, p.Broker}] = p
	}
	return s
}

// partitions calls fn for every partition of the snapshot.
func (s *scene) partitions(fn func(p *model.Partition)) {
	for i := range s.Snapshot.Topics {
		for j := range s.Snapshot.Topics[i].Partitions {
			fn(&s.Snapshot.Topics[i].Partitions[j])
		}
	}
}

// liveCount is the number of registered brokers.
func (s *scene) liveCount() int { return len(s.live) }

func objectBroker(id cluster.BrokerID) string { return fmt.Sprintf("broker %d", id) }

func target(tp cluster.TopicPartition) string {
	return model.ShellWord(fmt.Sprintf("%s:%d", tp.Topic, tp.Partition))
}

// Also are sources that a check looks into where they can be read, and does without elsewhere.
func Also(id string) []Source {
	switch id {
	case LeaderNotInISR, NotAReplica:
		return []Source{FromZooKeeper}
	case LeaderUnreachable:
		return []Source{FromConfigs} // how long a session lives
	}
	return nil
}

// some writes the first few of many, and how many there are.
func some(items []string) string {
	const shown = 5
	if len(items) <= shown {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:shown], ", "), len(items)-shown)
}

// startBroker is what mends a broker that is not there: no command over the network can.
func startBroker(ids ...cluster.BrokerID) string {
	return fmt.Sprintf("kctl brokers list   # start broker %s", IDList(ids))
}
