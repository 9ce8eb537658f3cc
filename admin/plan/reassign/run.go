package reassign

import (
	"slices"
	"time"

	"kctl/zkutil/cluster"
)

// Run is one execution of a plan as its state file holds it: enough to go on after a crash at any point, to take back
// what was set, and to go back to what was there before. It is written before each change that it speaks of.
type Run struct {
	Version  int       `json:"version"` // 1
	Cluster  string    `json:"cluster"` // cluster id
	Plan     string    `json:"plan"`    // identity of the plan: hash of its normal form
	File     string    `json:"file"`    // where the plan was read from
	Rollback string    `json:"rollback"`
	Via      string    `json:"via"` // api or znode
	Started  time.Time `json:"started"`
	Outcome  Outcome   `json:"outcome"`

	BatchParts int   `json:"batchPartitions"` // 0: no bound
	BatchBytes int64 `json:"batchBytes"`      // 0: no bound
	Throttle   int64 `json:"throttle"`        // bytes per second and broker; 0: none

	Steps []RunStep `json:"steps"`
	Marks []Mark    `json:"throttles"` // throttle settings that belong to this run
}

// Outcome is how a run ended.
type Outcome string

// The outcomes. An empty one means that the run goes on, or was interrupted.
const (
	Unfinished Outcome = ""
	Finished   Outcome = "done"
	Cancelled  Outcome = "cancelled"
	RolledBack Outcome = "rolled-back"
)

// RunStep is one entry of the plan with what there was before it.
type RunStep struct {
	Topic     string             `json:"topic"`
	Partition int32              `json:"partition"`
	Replicas  []cluster.BrokerID `json:"replicas"`
	LogDirs   []string           `json:"logDirs,omitempty"`
	From      []cluster.BrokerID `json:"from"`
	FromDirs  []string           `json:"fromDirs"`
	Bytes     int64              `json:"bytes"` // to be copied
	Sent      bool               `json:"sent"`  // it was about to be asked for
	Done      bool               `json:"done"`
	Error     string             `json:"error,omitempty"`
}

// Entry returns what is wanted.
func (s *RunStep) Entry() Entry {
	return Entry{Topic: s.Topic, Partition: s.Partition, Replicas: s.Replicas, LogDirs: s.LogDirs}
}

// Before returns what there was.
func (s *RunStep) Before() Entry {
	return Entry{Topic: s.Topic, Partition: s.Partition, Replicas: s.From, LogDirs: s.FromDirs}
}

// TP names the partition.
func (s *RunStep) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: s.Topic, Partition: s.Partition}
}

// Step returns it as Batches and Throttle take it.
func (s *RunStep) Step() Step { return Step{Entry: s.Entry(), From: s.From, Bytes: s.Bytes} }

// Mark is a throttle setting that the run made: entries added to a topic's list, or the rate of a broker.
type Mark struct {
	Topic  string   `json:"topic,omitempty"` // empty: of Broker
	Broker int32    `json:"broker"`          // -1: of Topic
	Key    string   `json:"key"`
	Added  []string `json:"added,omitempty"` // entries of a topic's list
	Value  string   `json:"value,omitempty"` // rate of a broker
}

// NewRun starts a run of steps. dirs tells the directory of each replica as it is now, AnyDir when not known.
func NewRun(steps []Step, dirs func(tp cluster.TopicPartition, id cluster.BrokerID) string) *Run {
	r := &Run{Version: 1}
	for i := range steps {
		s := &steps[i]
		rs := RunStep{Topic: s.Topic, Partition: s.Partition, Replicas: s.Replicas, LogDirs: s.LogDirs, From: s.From, Bytes: s.Bytes}
		for _, id := range s.From {
			rs.FromDirs = append(rs.FromDirs, dirs(s.TP(), id))
		}
		r.Steps = append(r.Steps, rs)
	}
	return r
}

// Left returns the steps that are not done.
func (r *Run) Left() []Step {
	var out []Step
	for i := range r.Steps {
		if !r.Steps[i].Done {
			out = append(out, r.Steps[i].Step())
		}
	}
	return out
}

// RollbackEntries is the plan that restores replicas, their order and their directories.
func (r *Run) RollbackEntries() []Entry {
	out := make([]Entry, len(r.Steps))
	for i := range r.Steps {
		out[i] = r.Steps[i].Before()
	}
	return out
}

// Next returns the steps of the first batch that is not done. Batches are cut from the whole plan, so that they stay
// the same however often the run is resumed.
func (r *Run) Next() []*RunStep {
	all := make([]Step, len(r.Steps))
	for i := range r.Steps {
		all[i] = r.Steps[i].Step()
	}
	at := 0
	for _, b := range Batches(all, r.BatchParts, r.BatchBytes) {
		var open []*RunStep
		for range b {
			if s := &r.Steps[at]; !s.Done && s.Error == "" {
				open = append(open, s)
			}
			at++
		}
		if len(open) > 0 {
			return open
		}
	}
	return nil
}

// Batch returns the number of the batch that is under way, from 1, and how many there are.
func (r *Run) Batch() (n, of int) {
	all := make([]Step, len(r.Steps))
	for i := range r.Steps {
		all[i] = r.Steps[i].Step()
	}
	batches := Batches(all, r.BatchParts, r.BatchBytes)
	at := 0
	for i, b := range batches {
		for range b {
			if !r.Steps[at].Done {
				return i + 1, len(batches)
			}
			at++
		}
	}
	return len(batches), len(batches)
}

// Owns reports whether the run set the rate of a broker.
func (r *Run) Owns(broker cluster.BrokerID, key string) bool {
	return slices.ContainsFunc(r.Marks, func(m Mark) bool { return m.Topic == "" && m.Broker == int32(broker) && m.Key == key })
}

// OwnsEntry reports whether the run added an entry to a topic's list.
func (r *Run) OwnsEntry(topic, key, entry string) bool {
	return slices.ContainsFunc(r.Marks, func(m Mark) bool { return m.Topic == topic && m.Key == key && slices.Contains(m.Added, entry) })
}

// Note records that the run sets something. Entries of one list are joined, a rate replaces the one before.
func (r *Run) Note(m Mark) {
	for i := range r.Marks {
		o := &r.Marks[i]
		if o.Topic != m.Topic || o.Key != m.Key || o.Broker != m.Broker {
			continue
		}
		o.Value = m.Value
		for _, a := range m.Added {
			if !slices.Contains(o.Added, a) {
				o.Added = append(o.Added, a)
			}
		}
		return
	}
	r.Marks = append(r.Marks, m)
}

// Reset makes the failed steps open again, for a run that is resumed.
func (r *Run) Reset() {
	for i := range r.Steps {
		r.Steps[i].Error, r.Steps[i].Sent = "", false
	}
	r.Outcome = Unfinished
}
