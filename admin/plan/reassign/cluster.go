package reassign

import (
	"slices"

	"kctl/zkutil/cluster"
)

// Broker is one broker that a plan may use when it is live.
type Broker struct {
	ID   cluster.BrokerID
	Rack string // empty: none
	Live bool
}

// Partition is one partition as it will be once what is under way has ended.
type Partition struct {
	Topic     string
	Partition int32
	Replicas  []cluster.BrokerID // the target of a running reassignment, else the replicas
	Size      int64              // bytes of its largest replica; 0 when not known
	Fixed     bool               // not selected, or being reassigned: counted, never moved
}

// TP names the partition.
func (p *Partition) TP() cluster.TopicPartition {
	return cluster.TopicPartition{Topic: p.Topic, Partition: p.Partition}
}

// Goal says what a plan is to reach. Replicas always leave brokers that are not allowed: dead ones, those of Drain,
// and with To all others. The switches add to that.
type Goal struct {
	To                []cluster.BrokerID // brokers that may hold replicas; nil: all live ones
	Drain             []cluster.BrokerID // brokers to empty
	ReplicationFactor int                // wanted number of replicas; 0: as it is
	Racks             bool               // spread the replicas of each partition over the racks as well as possible
	Balance           bool               // the same number of replicas on each broker, up to one
	Leaders           bool               // the same number of preferred leaders on each broker, up to one, by reordering
	LeadersOnly       bool               // reorder lists only; no replica moves, not even away from dead brokers
	IgnoreRacks       bool
}

// Move is what a plan does to one partition.
type Move struct {
	Topic     string
	Partition int32
	From, To  []cluster.BrokerID
	Bytes     int64 // to be copied: the size times the number of added replicas
}

// Entry returns the move as an entry of a plan file.
func (m *Move) Entry() Entry { return Entry{Topic: m.Topic, Partition: m.Partition, Replicas: m.To} }

// Added returns the brokers that get a replica.
func (m *Move) Added() []cluster.BrokerID { return without(m.To, m.From) }

// Removed returns the brokers that lose one.
func (m *Move) Removed() []cluster.BrokerID { return without(m.From, m.To) }

func without(a, b []cluster.BrokerID) []cluster.BrokerID {
	var out []cluster.BrokerID
	for _, id := range a {
		if !slices.Contains(b, id) {
			out = append(out, id)
		}
	}
	return out
}

// Load is what a plan means to one broker. Leaders are preferred leaders. Counts cover all partitions, moved or not.
type Load struct {
	Broker                        cluster.BrokerID
	Live, Allowed                 bool
	ReplicasBefore, ReplicasAfter int
	LeadersBefore, LeadersAfter   int
	In, Out                       int // replicas gained and lost
	BytesIn, BytesOut             int64
}

// Plan is the result of Make. Moves are sorted by topic and partition; only partitions that change are in it.
type Plan struct {
	Moves    []Move
	Loads    []Load // by broker id
	Bytes    int64  // to be copied in all
	Warnings []string
}

// Entries returns the plan as a plan file has it.
func (p *Plan) Entries() []Entry {
	out := make([]Entry, len(p.Moves))
	for i := range p.Moves {
		out[i] = p.Moves[i].Entry()
	}
	return out
}
