package rows

import (
	"slices"
	"strings"
	"time"

	"kctl/admin/check"
	"kctl/admin/model"
)

// Partition is one row of partitions list.
type Partition struct {
	Topic            string  `json:"topic"`
	Partition        int32   `json:"partition"`
	Leader           int32   `json:"leader" doc:"broker id, -1 when nobody leads"`
	LeaderEpoch      int32   `json:"leaderEpoch"`
	Replicas         []int32 `json:"replicas" doc:"in assignment order; the first is the preferred leader"`
	ISR              []int32 `json:"isr" doc:"in-sync replicas in the order of the source"`
	OfflineReplicas  []int32 `json:"offlineReplicas"`
	AddingReplicas   []int32 `json:"addingReplicas"`
	RemovingReplicas []int32 `json:"removingReplicas"`
	PreferredLeader  int32   `json:"preferredLeader"`
	UnderReplicated  bool    `json:"underReplicated"`
	MinISR           *int32  `json:"minIsr" doc:"effective min.insync.replicas; null when it was not read"`
	Source           string  `json:"source" doc:"protocol or zookeeper"`
}

// PartitionKind describes Partition.
var PartitionKind = Kind[Partition]{
	Name: "Partition", Title: "partitions",
	ID: func(p Partition) string { return p.Topic + ":" + itoa(p.Partition) },
	Columns: []Column[Partition]{
		{Name: "TOPIC", Cell: func(p Partition) string { return p.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(p Partition) string { return itoa(p.Partition) }},
		{Name: "LEADER", Right: true, Cell: func(p Partition) string { return IDText(p.Leader) }},
		{Name: "EPOCH", Right: true, Cell: func(p Partition) string { return itoa(p.LeaderEpoch) }},
		{Name: "REPLICAS", Cell: func(p Partition) string { return IntList(p.Replicas) }},
		{Name: "ISR", Cell: func(p Partition) string { return IntList(p.ISR) }},
		{Name: "OFFLINE-REPLICAS", Wide: true, Cell: func(p Partition) string { return IntList(p.OfflineReplicas) }},
		{Name: "ADDING", Wide: true, Cell: func(p Partition) string { return IntList(p.AddingReplicas) }},
		{Name: "REMOVING", Wide: true, Cell: func(p Partition) string { return IntList(p.RemovingReplicas) }},
		{Name: "MIN-ISR", Wide: true, Right: true, Cell: func(p Partition) string { return nullInt(p.MinISR) }},
		{Name: "STATUS", Cell: func(p Partition) string { return p.Status() }},
		{Name: "SOURCE", Wide: true, Cell: func(p Partition) string { return p.Source }},
	},
}

// Status names everything that is unusual, worst first; ok otherwise.
func (p Partition) Status() string {
	var parts []string
	if p.Leader < 0 {
		parts = append(parts, "offline")
	}
	if p.MinISR != nil && int32(len(p.ISR)) < *p.MinISR {
		parts = append(parts, "under-min-isr")
	}
	if p.UnderReplicated {
		parts = append(parts, "under-replicated")
	}
	if len(p.AddingReplicas)+len(p.RemovingReplicas) > 0 {
		parts = append(parts, "reassigning")
	}
	if p.Leader >= 0 && p.PreferredLeader >= 0 && p.Leader != p.PreferredLeader {
		parts = append(parts, "not-preferred")
	}
	if len(parts) == 0 {
		return "ok"
	}
	return strings.Join(parts, ",")
}

// OfPartition makes one row.
func OfPartition(p *model.Partition) Partition {
	out := Partition{
		Topic: p.Topic, Partition: p.Partition, Leader: int32(p.Leader), LeaderEpoch: int32(p.LeaderEpoch),
		Replicas: ints(p.Replicas), ISR: ints(p.ISR), OfflineReplicas: ints(p.Offline),
		AddingReplicas: ints(p.Adding), RemovingReplicas: ints(p.Removing),
		PreferredLeader: int32(p.Preferred()), UnderReplicated: p.UnderReplicated(), Source: string(p.Source),
	}
	if out.Leader < -1 {
		out.Leader = -1
	}
	if p.MinISR > 0 {
		n := int32(p.MinISR)
		out.MinISR = &n
	}
	return out
}

// Partitions makes the rows of all partitions that keep accepts; nil accepts all.
func Partitions(s *model.Snapshot, keep func(*model.Partition) bool) []Partition {
	out := []Partition{}
	for i := range s.Topics {
		for j := range s.Topics[i].Partitions {
			if p := &s.Topics[i].Partitions[j]; keep == nil || keep(p) {
				out = append(out, OfPartition(p))
			}
		}
	}
	return out
}

// LeaderAndISR is one state node.
type LeaderAndISR struct {
	Topic           string   `json:"topic"`
	Partition       int32    `json:"partition"`
	Leader          int32    `json:"leader" doc:"broker id, -1 when nobody leads"`
	LeaderEpoch     int32    `json:"leaderEpoch"`
	ISR             []int32  `json:"isr"`
	ControllerEpoch *int32   `json:"controllerEpoch" doc:"epoch of the deciding controller; null without ZooKeeper"`
	ZKVersion       *int32   `json:"zkVersion" doc:"version of the state znode; null without ZooKeeper"`
	Replicas        []int32  `json:"replicas" doc:"in assignment order"`
	Mtime           *string  `json:"mtime" doc:"last write of the state znode, RFC 3339; null without ZooKeeper"`
	AgeMs           *int64   `json:"ageMs" doc:"time since that write"`
	UnknownFields   []string `json:"unknownFields" doc:"names of fields in the znode that kctl does not know"`
	Source          string   `json:"source"`
}

// LeaderAndISRKind describes LeaderAndISR.
var LeaderAndISRKind = Kind[LeaderAndISR]{
	Name: "LeaderAndISR", Title: "partitions",
	ID: func(l LeaderAndISR) string { return l.Topic + ":" + itoa(l.Partition) },
	Columns: []Column[LeaderAndISR]{
		{Name: "TOPIC", Cell: func(l LeaderAndISR) string { return l.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(l LeaderAndISR) string { return itoa(l.Partition) }},
		{Name: "LEADER", Right: true, Cell: func(l LeaderAndISR) string { return IDText(l.Leader) }},
		{Name: "LEADER-EPOCH", Right: true, Cell: func(l LeaderAndISR) string { return itoa(l.LeaderEpoch) }},
		{Name: "ISR", Cell: func(l LeaderAndISR) string { return IntList(l.ISR) }},
		{Name: "REPLICAS", Cell: func(l LeaderAndISR) string { return IntList(l.Replicas) }},
		{Name: "CONTROLLER-EPOCH", Right: true, Cell: func(l LeaderAndISR) string { return nullInt(l.ControllerEpoch) }},
		{Name: "ZK-VERSION", Right: true, Cell: func(l LeaderAndISR) string { return nullInt(l.ZKVersion) }},
		{Name: "AGE", Right: true, Cell: func(l LeaderAndISR) string { return ageCell(l.AgeMs) }},
		{Name: "MTIME", Wide: true, Cell: func(l LeaderAndISR) string { return orDash(l.Mtime) }},
		{Name: "UNKNOWN-FIELDS", Wide: true, Cell: func(l LeaderAndISR) string { return text(strings.Join(l.UnknownFields, ",")) }},
		{Name: "SOURCE", Wide: true, Cell: func(l LeaderAndISR) string { return l.Source }},
	},
}

func ageCell(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return Duration(time.Duration(*ms) * time.Millisecond)
}

// Duration writes a duration in at most two units, such as 850ms, 12.3s, 4m10s, 3h2m, 5d4h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < time.Second:
		return itoa(d.Milliseconds()) + "ms"
	case d < time.Minute:
		return itoa(int64(d/time.Second)) + "." + itoa(int64(d%time.Second)/int64(100*time.Millisecond)) + "s"
	case d < time.Hour:
		return itoa(int64(d/time.Minute)) + "m" + itoa(int64(d%time.Minute/time.Second)) + "s"
	case d < 24*time.Hour:
		return itoa(int64(d/time.Hour)) + "h" + itoa(int64(d%time.Hour/time.Minute)) + "m"
	default:
		return itoa(int64(d/(24*time.Hour))) + "d" + itoa(int64(d%(24*time.Hour)/time.Hour)) + "h"
	}
}

// OfStateNode makes the row of one state node, seen at now.
func OfStateNode(n *model.StateNode, now time.Time) LeaderAndISR {
	out := LeaderAndISR{
		Topic: n.Topic, Partition: n.Partition, Leader: int32(n.Leader), LeaderEpoch: int32(n.LeaderEpoch),
		ISR: ints(n.ISR), Replicas: ints(n.Replicas), Mtime: TimeText(n.Mtime),
		UnknownFields: append([]string{}, n.UnknownFields...), Source: string(n.Source),
	}
	slices.Sort(out.UnknownFields)
	if n.Source == model.SourceZooKeeper {
		ce, v := int32(n.ControllerEpoch), int32(n.ZKVersion)
		out.ControllerEpoch, out.ZKVersion = &ce, &v
	}
	if !n.Mtime.IsZero() {
		ms := max(0, now.Sub(n.Mtime).Milliseconds())
		out.AgeMs = &ms
	}
	return out
}

// ReplicaLag is one row of lag replicas. It is the answer of the replica itself. Offsets are -1 when unknown.
type ReplicaLag struct {
	Topic          string `json:"topic"`
	Partition      int32  `json:"partition"`
	Broker         int32  `json:"broker"`
	Role           string `json:"role" doc:"leader or follower"`
	InSync         bool   `json:"inSync" doc:"named in the ISR"`
	LogStartOffset int64  `json:"logStartOffset"`
	HighWatermark  int64  `json:"highWatermark" doc:"the replica's own high watermark"`
	LogEndOffset   int64  `json:"logEndOffset" doc:"the replica's own log end offset"`
	LagRecords     int64  `json:"lagRecords" doc:"the leader's log end offset minus this one's; -1 when not known"`
	LagMs          *int64 `json:"lagMs" doc:"age of the first record it lacks, 0 when it lacks none; null when not known"`
	LeaderEpoch    int32  `json:"leaderEpoch" doc:"the epoch the replica acts in; -1 when not known"`
	Error          string `json:"error"`
}

// ReplicaLagKind describes ReplicaLag.
var ReplicaLagKind = Kind[ReplicaLag]{
	Name: "ReplicaLag", Title: "replicas",
	ID: func(r ReplicaLag) string { return r.Topic + ":" + itoa(r.Partition) + ":" + itoa(r.Broker) },
	Columns: []Column[ReplicaLag]{
		{Name: "TOPIC", Cell: func(r ReplicaLag) string { return r.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(r ReplicaLag) string { return itoa(r.Partition) }},
		{Name: "BROKER", Right: true, Cell: func(r ReplicaLag) string { return itoa(r.Broker) }},
		{Name: "ROLE", Cell: func(r ReplicaLag) string { return r.Role }},
		{Name: "IN-SYNC", Cell: func(r ReplicaLag) string { return yesNo(r.InSync) }},
		{Name: "LOG-START", Wide: true, Right: true, Cell: func(r ReplicaLag) string { return offset(r.LogStartOffset) }},
		{Name: "HW", Right: true, Cell: func(r ReplicaLag) string { return offset(r.HighWatermark) }},
		{Name: "LEO", Right: true, Cell: func(r ReplicaLag) string { return offset(r.LogEndOffset) }},
		{Name: "LAG", Right: true, Cell: func(r ReplicaLag) string { return offset(r.LagRecords) }},
		{Name: "LAG-TIME", Right: true, Cell: func(r ReplicaLag) string { return ageCell(r.LagMs) }},
		{Name: "EPOCH", Right: true, Cell: func(r ReplicaLag) string { return offset(int64(r.LeaderEpoch)) }},
		{Name: "ERROR", Cell: func(r ReplicaLag) string { return text(r.Error) }},
	},
}

func offset(n int64) string {
	if n < 0 {
		return "-"
	}
	return itoa(n)
}

// OfReplica makes the row of one replica.
func OfReplica(p *model.ReplicaPosition) ReplicaLag {
	out := ReplicaLag{
		Topic: p.Topic, Partition: p.Partition, Broker: int32(p.Broker), Role: "follower", InSync: p.InSync,
		LogStartOffset: p.LogStartOffset, HighWatermark: p.HighWatermark, LogEndOffset: p.LogEndOffset,
		LagRecords: p.LagRecords, LeaderEpoch: int32(p.LeaderEpoch), Error: p.Err,
	}
	if p.Leader {
		out.Role = "leader"
	}
	if p.LagMs >= 0 {
		ms := p.LagMs
		out.LagMs = &ms
	}
	return out
}

// Transition is one row of transitions.
type Transition struct {
	Topic           string  `json:"topic"`
	Partition       int32   `json:"partition"`
	State           string  `json:"state" doc:"pending, stuck or done"`
	DecidedAt       *string `json:"decidedAt" doc:"RFC 3339; null without ZooKeeper"`
	AgeMs           *int64  `json:"ageMs"`
	Leader          int32   `json:"leader"`
	LeaderEpoch     int32   `json:"leaderEpoch"`
	ControllerEpoch *int32  `json:"controllerEpoch"`
	WaitingFor      []int32 `json:"waitingFor" doc:"brokers that have not carried out the decision"`
	Reason          string  `json:"reason"`
	Fix             string  `json:"fix" doc:"the one command or action that frees it"`
}

// TransitionKind describes Transition.
var TransitionKind = Kind[Transition]{
	Name: "Transition", Title: "transitions under way",
	ID: func(t Transition) string { return t.Topic + ":" + itoa(t.Partition) },
	Columns: []Column[Transition]{
		{Name: "TOPIC", Cell: func(t Transition) string { return t.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(t Transition) string { return itoa(t.Partition) }},
		{Name: "STATE", Cell: func(t Transition) string { return t.State }},
		{Name: "AGE", Right: true, Cell: func(t Transition) string { return ageCell(t.AgeMs) }},
		{Name: "LEADER", Right: true, Cell: func(t Transition) string { return IDText(t.Leader) }},
		{Name: "EPOCH", Right: true, Cell: func(t Transition) string { return itoa(t.LeaderEpoch) }},
		{Name: "CONTROLLER-EPOCH", Wide: true, Right: true, Cell: func(t Transition) string { return nullInt(t.ControllerEpoch) }},
		{Name: "DECIDED-AT", Wide: true, Cell: func(t Transition) string { return orDash(t.DecidedAt) }},
		{Name: "WAITING-FOR", Cell: func(t Transition) string { return IntList(t.WaitingFor) }},
		{Name: "REASON", Cell: func(t Transition) string { return text(t.Reason) }},
		{Name: "FIX", Cell: func(t Transition) string { return text(t.Fix) }},
	},
}

// OfTransition makes one row.
func OfTransition(t *model.Transition) Transition {
	out := Transition{
		Topic: t.Topic, Partition: t.Partition, State: string(t.State), DecidedAt: TimeText(t.DecidedAt),
		Leader: int32(t.Leader), LeaderEpoch: int32(t.LeaderEpoch), WaitingFor: ints(t.WaitingFor),
		Reason: t.Reason, Fix: t.Fix,
	}
	if t.Age >= 0 {
		ms := t.Age.Milliseconds()
		out.AgeMs = &ms
	}
	if t.ControllerEpoch >= 0 {
		ce := int32(t.ControllerEpoch)
		out.ControllerEpoch = &ce
	}
	return out
}

// Finding is one finding of a health check.
type Finding struct {
	ID       string `json:"id" doc:"stable kebab-case name"`
	Severity string `json:"severity" doc:"critical, warning or info"`
	Object   string `json:"object"`
	Evidence string `json:"evidence"`
	Fix      string `json:"fix" doc:"the one command or action that mends it"`
}

// FindingKind describes Finding.
var FindingKind = Kind[Finding]{
	Name: "Finding", Title: "findings",
	ID: func(f Finding) string { return f.ID },
	Columns: []Column[Finding]{
		{Name: "SEVERITY", Cell: func(f Finding) string { return f.Severity }},
		{Name: "ID", Cell: func(f Finding) string { return f.ID }},
		{Name: "OBJECT", Cell: func(f Finding) string { return f.Object }},
		{Name: "EVIDENCE", Cell: func(f Finding) string { return f.Evidence }},
		{Name: "FIX", Cell: func(f Finding) string { return f.Fix }},
	},
}

// Health is the answer of cluster health.
type Health struct {
	Healthy  bool       `json:"healthy" doc:"no finding is worse than info"`
	Findings []Finding  `json:"findings"`
	Errors   []ErrorRow `json:"errors" doc:"what could not be asked"`
}

// OfFindings makes the answer of a health check.
func OfFindings(fs []model.Finding, problems []model.Problem) Health {
	out := Health{Healthy: check.Healthy(fs), Findings: make([]Finding, len(fs)), Errors: Errors(problems)}
	for i, f := range fs {
		out.Findings[i] = Finding{ID: f.ID, Severity: string(f.Severity), Object: f.Object, Evidence: f.Evidence, Fix: f.Fix}
	}
	return out
}

// Errors makes the errors of a list; never nil.
func Errors(problems []model.Problem) []ErrorRow {
	out := make([]ErrorRow, len(problems))
	for i, p := range problems {
		out[i] = ErrorRow{Object: p.Object, Message: p.Message}
	}
	return out
}
