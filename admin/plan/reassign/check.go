package reassign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kctl/zkutil/cluster"
)

func idList(ids []cluster.BrokerID) string {
	if len(ids) == 0 {
		return "none"
	}
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = strconv.Itoa(int(id))
	}
	return strings.Join(text, ",")
}

// Seen is one partition as the cluster has it now. Replicas includes those being added and removed.
type Seen struct {
	Replicas, Adding, Removing []cluster.BrokerID
	Leader                     cluster.BrokerID
	ISR                        []cluster.BrokerID
	Queued                     []cluster.BrokerID // wanted replicas in /admin/reassign_partitions; nil: it is not there
}

// Target returns the replicas that will be there when what is under way has ended.
func (s *Seen) Target() []cluster.BrokerID {
	if s.Queued != nil {
		return s.Queued
	}
	return without(s.Replicas, s.Removing)
}

// Original returns the replicas from before a running reassignment. Kafka keeps the set, not the order: replicas that
// stay come in the order of the target.
func (s *Seen) Original() []cluster.BrokerID { return without(s.Replicas, s.Adding) }

// Reassigning reports whether a reassignment is under way or asked for.
func (s *Seen) Reassigning() bool { return len(s.Adding) > 0 || len(s.Removing) > 0 || s.Queued != nil }

// View is the cluster as far as a plan concerns it.
type View struct {
	Live  []cluster.BrokerID // sorted
	Known []cluster.BrokerID // live ones and those that replica lists name, sorted
	Parts map[cluster.TopicPartition]Seen
	Sizes map[cluster.TopicPartition]int64 // bytes of the largest replica; missing when not known
	Dirs  map[cluster.BrokerID][]string    // log directories that are online; missing when not known
}

// Options of Check.
type Options struct {
	Override     bool // replace a reassignment that is under way
	AllowOffline bool // keep replicas that are on brokers which are down
}

// Step is one entry that has something to do, with what there is now.
type Step struct {
	Entry
	From  []cluster.BrokerID // replicas in order before the plan; a running reassignment's target
	Bytes int64              // to be copied, as far as sizes are known
}

// Added returns the brokers that get a replica.
func (s *Step) Added() []cluster.BrokerID { return without(s.Replicas, s.From) }

// Checked is the result of Check. With Refused not empty nothing may be sent.
type Checked struct {
	Steps     []Step
	Unchanged []cluster.TopicPartition // already as wanted
	Busy      []cluster.TopicPartition // a reassignment to something else is under way and would be replaced
	Refused   []string
	Warnings  []string
}

// Check compares a plan with the cluster before anything is sent.
func Check(entries []Entry, v View, o Options) Checked {
	var c Checked
	topics := map[string]bool{}
	for tp := range v.Parts {
		topics[tp.Topic] = true
	}
	for i := range entries {
		c.entry(&entries[i], v, o, topics)
	}
	return c
}

func (c *Checked) refuse(format string, args ...any) {
	c.Refused = append(c.Refused, fmt.Sprintf(format, args...))
}

func (c *Checked) entry(e *Entry, v View, o Options, topics map[string]bool) {
	tp := e.TP()
	seen, ok := v.Parts[tp]
	switch {
	case !topics[e.Topic]:
		c.refuse("%s: topic %s does not exist", Name(tp), e.Topic)
		return
	case !ok:
		c.refuse("%s: topic %s has no partition %d", Name(tp), e.Topic, e.Partition)
		return
	}
	if !c.brokers(e, &seen, v, o) {
		return
	}
	target := seen.Target()
	dirs := slices.ContainsFunc(e.LogDirs, func(d string) bool { return d != AnyDir })
	switch {
	case slices.Equal(target, e.Replicas) && !seen.Reassigning() && !dirs:
		c.Unchanged = append(c.Unchanged, tp)
		return
	case seen.Reassigning() && !slices.Equal(target, e.Replicas):
		if !o.Override {
			c.refuse("%s is being reassigned to %s already", Name(tp), idList(target))
			return
		}
		c.Busy = append(c.Busy, tp)
	}
	s := Step{Entry: *e, From: target}
	if seen.Reassigning() && slices.Equal(target, e.Replicas) {
		s.From = seen.Original()
	}
	s.Bytes = v.Sizes[tp] * int64(len(s.Added()))
	c.Steps = append(c.Steps, s)
}

// brokers checks the broker ids of an entry and their log directories; false when it was refused.
func (c *Checked) brokers(e *Entry, seen *Seen, v View, o Options) bool {
	for _, id := range e.Replicas {
		_, live := slices.BinarySearch(v.Live, id)
		_, known := slices.BinarySearch(v.Known, id)
		switch {
		case live:
		case !known:
			c.refuse("%s: broker %d does not exist; live are %s", Name(e.TP()), id, idList(v.Live))
			return false
		case !slices.Contains(seen.Replicas, id):
			c.refuse("%s: broker %d is not live and would get a new replica; live are %s", Name(e.TP()), id, idList(v.Live))
			return false
		case !o.AllowOffline:
			c.refuse("%s: broker %d is not live; --allow-offline keeps its replica; live are %s", Name(e.TP()), id, idList(v.Live))
			return false
		default:
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s keeps a replica on broker %d, which is not live", Name(e.TP()), id))
		}
		if dirs, asked := v.Dirs[id]; asked && e.Dir(id) != AnyDir && !slices.Contains(dirs, e.Dir(id)) {
			c.refuse("%s: broker %d has no log directory %s that is online: it has %s", Name(e.TP()), id, e.Dir(id), dirList(dirs))
			return false
		}
	}
	return true
}

func dirList(dirs []string) string {
	if len(dirs) == 0 {
		return "none"
	}
	return strings.Join(dirs, ", ")
}

// Batches cuts steps into batches of at most parts partitions and bytes to copy, in their order; zero is no bound. A
// batch has at least one step.
func Batches(steps []Step, parts int, bytes int64) [][]Step {
	var out [][]Step
	var size int64
	for i := range steps {
		n := len(out) - 1
		if n < 0 || parts > 0 && len(out[n]) >= parts || bytes > 0 && size+steps[i].Bytes > bytes {
			out, size = append(out, nil), 0
			n++
		}
		out[n] = append(out[n], steps[i])
		size += steps[i].Bytes
	}
	return out
}

// State is how far one entry of a plan is.
type State string

// The states of an entry.
const (
	Done    State = "done"        // the replicas are as wanted and nothing is under way
	Running State = "in-progress" // being reassigned to what is wanted
	Waiting State = "not-started" // nothing is under way and the replicas differ
	Other   State = "other"       // being reassigned to something else
	Missing State = "missing"     // the partition does not exist
)

// Judge tells how far an entry is. exists says whether the cluster has the partition.
func Judge(e *Entry, seen Seen, exists bool) State {
	switch {
	case !exists:
		return Missing
	case seen.Reassigning() && slices.Equal(seen.Target(), e.Replicas):
		return Running
	case seen.Reassigning():
		return Other
	case slices.Equal(seen.Replicas, e.Replicas):
		return Done
	}
	return Waiting
}

// PartOf returns what a view has of a partition, the zero Seen when it has nothing. A nil view has nothing.
func (v *View) PartOf(tp cluster.TopicPartition) Seen {
	if v == nil {
		return Seen{}
	}
	return v.Parts[tp]
}
