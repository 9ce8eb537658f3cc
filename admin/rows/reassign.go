package rows

import (
	"strconv"
	"strings"
)

// ReassignmentMove is one partition of a plan that reassign generate made.
type ReassignmentMove struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	From      []int32 `json:"from" doc:"replicas now, in order"`
	To        []int32 `json:"to" doc:"replicas as planned, in order; the first is the preferred leader"`
	Adding    []int32 `json:"adding"`
	Removing  []int32 `json:"removing"`
	Bytes     int64   `json:"bytes" doc:"to be copied"`
}

// ReassignmentMoveKind describes ReassignmentMove.
var ReassignmentMoveKind = Kind[ReassignmentMove]{
	Name: "ReassignmentMove", Title: "moves",
	ID: func(m ReassignmentMove) string { return m.Topic + ":" + itoa(m.Partition) },
	Columns: []Column[ReassignmentMove]{
		{Name: "TOPIC", Cell: func(m ReassignmentMove) string { return m.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(m ReassignmentMove) string { return itoa(m.Partition) }},
		{Name: "FROM", Cell: func(m ReassignmentMove) string { return idsText(m.From) }},
		{Name: "TO", Cell: func(m ReassignmentMove) string { return idsText(m.To) }},
		{Name: "BYTES", Right: true, Cell: func(m ReassignmentMove) string { return strconv.FormatInt(m.Bytes, 10) }},
	},
}

// ReassignmentLoad is what a plan means to one broker.
type ReassignmentLoad struct {
	Broker         int32  `json:"broker"`
	Use            string `json:"use" doc:"yes, no (drained or not chosen) or down"`
	ReplicasBefore int    `json:"replicasBefore"`
	ReplicasAfter  int    `json:"replicasAfter"`
	LeadersBefore  int    `json:"leadersBefore" doc:"preferred leaders"`
	LeadersAfter   int    `json:"leadersAfter" doc:"preferred leaders"`
	In             int    `json:"in" doc:"replicas gained"`
	Out            int    `json:"out" doc:"replicas lost"`
	BytesIn        int64  `json:"bytesIn"`
	BytesOut       int64  `json:"bytesOut"`
}

// ReassignmentLoadKind describes ReassignmentLoad.
var ReassignmentLoadKind = Kind[ReassignmentLoad]{
	Name: "ReassignmentLoad", Title: "brokers",
	ID: func(l ReassignmentLoad) string { return itoa(l.Broker) },
	Columns: []Column[ReassignmentLoad]{
		{Name: "BROKER", Right: true, Cell: func(l ReassignmentLoad) string { return itoa(l.Broker) }},
		{Name: "USE", Cell: func(l ReassignmentLoad) string { return l.Use }},
		{Name: "REPLICAS", Right: true, Cell: func(l ReassignmentLoad) string { return itoa(l.ReplicasBefore) + ">" + itoa(l.ReplicasAfter) }},
		{Name: "LEADERS", Right: true, Cell: func(l ReassignmentLoad) string { return itoa(l.LeadersBefore) + ">" + itoa(l.LeadersAfter) }},
		{Name: "IN", Right: true, Cell: func(l ReassignmentLoad) string { return itoa(l.In) }},
		{Name: "OUT", Right: true, Cell: func(l ReassignmentLoad) string { return itoa(l.Out) }},
		{Name: "BYTES-IN", Right: true, Cell: func(l ReassignmentLoad) string { return strconv.FormatInt(l.BytesIn, 10) }},
		{Name: "BYTES-OUT", Right: true, Cell: func(l ReassignmentLoad) string { return strconv.FormatInt(l.BytesOut, 10) }},
	},
}

// ReassignmentStep is one partition of a plan and how far it is: the answer of execute, verify, cancel and rollback.
type ReassignmentStep struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	From      []int32  `json:"from" doc:"replicas before, in order; of verify those of now"`
	To        []int32  `json:"to" doc:"wanted replicas, in order"`
	LogDirs   []string `json:"logDirs" doc:"wanted directories, one for each replica; empty when any will do"`
	State     string   `json:"state" doc:"done, in-progress, not-started, other (reassigned to something else), missing, misplaced (in another directory), cancelled, not-needed or failed"`
	Bytes     int64    `json:"bytes" doc:"to be copied in all; 0 when not known"`
	Error     string   `json:"error"`
}

// ReassignmentStepKind describes ReassignmentStep.
var ReassignmentStepKind = Kind[ReassignmentStep]{
	Name: "ReassignmentStep", Title: "partitions to reassign",
	ID: func(s ReassignmentStep) string { return s.Topic + ":" + itoa(s.Partition) },
	Columns: []Column[ReassignmentStep]{
		{Name: "TOPIC", Cell: func(s ReassignmentStep) string { return s.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(s ReassignmentStep) string { return itoa(s.Partition) }},
		{Name: "FROM", Cell: func(s ReassignmentStep) string { return idsText(s.From) }},
		{Name: "TO", Cell: func(s ReassignmentStep) string { return idsText(s.To) }},
		{Name: "STATE", Cell: func(s ReassignmentStep) string { return s.State }},
		{Name: "BYTES", Right: true, Cell: func(s ReassignmentStep) string { return strconv.FormatInt(s.Bytes, 10) }},
		{Name: "ERROR", Cell: func(s ReassignmentStep) string { return text(s.Error) }},
		{Name: "LOG-DIRS", Wide: true, Cell: func(s ReassignmentStep) string { return text(strings.Join(s.LogDirs, ",")) }},
	},
}

// Reassignment is one replica that is being added, or a partition that only loses replicas (broker -1).
type Reassignment struct {
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	Broker     int32   `json:"broker" doc:"the broker that gets the replica; -1 when replicas are only removed or reordered"`
	From       []int32 `json:"from" doc:"replicas before; their order may be that of the target"`
	To         []int32 `json:"to" doc:"wanted replicas, in order"`
	InSync     bool    `json:"inSync" doc:"the new replica is in the ISR"`
	BytesTotal int64   `json:"bytesTotal" doc:"of the replica it is copied from; -1 when not known"`
	BytesDone  int64   `json:"bytesDone" doc:"-1 when not known"`
	BytesLeft  int64   `json:"bytesLeft" doc:"-1 when not known"`
	Rate       int64   `json:"rateBytesPerSecond" doc:"-1 when not measured"`
	ETASeconds int64   `json:"etaSeconds" doc:"-1 when not known"`
	Error      string  `json:"error"`
}

// ReassignmentKind describes Reassignment.
var ReassignmentKind = Kind[Reassignment]{
	Name: "Reassignment", Title: "reassignments under way",
	ID: func(r Reassignment) string { return r.Topic + ":" + itoa(r.Partition) },
	Columns: []Column[Reassignment]{
		{Name: "TOPIC", Cell: func(r Reassignment) string { return r.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(r Reassignment) string { return itoa(r.Partition) }},
		{Name: "FROM", Cell: func(r Reassignment) string { return idsText(r.From) }},
		{Name: "TO", Cell: func(r Reassignment) string { return idsText(r.To) }},
		{Name: "BROKER", Right: true, Cell: func(r Reassignment) string { return knownInt(int64(r.Broker)) }},
		{Name: "IN-SYNC", Cell: func(r Reassignment) string { return yesNo(r.InSync) }},
		{Name: "BYTES-TOTAL", Right: true, Cell: func(r Reassignment) string { return knownInt(r.BytesTotal) }},
		{Name: "BYTES-LEFT", Right: true, Cell: func(r Reassignment) string { return knownInt(r.BytesLeft) }},
		{Name: "RATE-B/S", Right: true, Cell: func(r Reassignment) string { return knownInt(r.Rate) }},
		{Name: "ETA-S", Right: true, Cell: func(r Reassignment) string { return knownInt(r.ETASeconds) }},
		{Name: "ERROR", Cell: func(r Reassignment) string { return text(r.Error) }},
	},
}

// knownInt writes a number, - for -1.
func knownInt(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// idsText writes broker ids in their order.
func idsText(ids []int32) string {
	if len(ids) == 0 {
		return "-"
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = itoa(id)
	}
	return strings.Join(out, ",")
}
