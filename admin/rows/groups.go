package rows

import (
	"strings"

	"kctl/admin/model"
	"kctl/admin/plan"
	"kctl/zkutil/cluster"
)

// Group is one row of groups list.
type Group struct {
	Group        string `json:"group"`
	Type         string `json:"type" doc:"classic, consumer (KIP-848), share or streams"`
	State        string `json:"state" doc:"the coordinator's word: Stable, Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Dead"`
	ProtocolType string `json:"protocolType" doc:"consumer, connect, ...; empty for a group that only keeps offsets"`
	Protocol     string `json:"protocol" doc:"the assignor; known of described groups"`
	Coordinator  int32  `json:"coordinator" doc:"broker id; -1 when not known"`
	Epoch        *int32 `json:"epoch" doc:"group epoch; null for a classic group"`
	Members      *int   `json:"members" doc:"number of members; null when they were not asked for"`
	Error        string `json:"error"`
}

// GroupKind describes Group.
var GroupKind = Kind[Group]{
	Name: "Group", Title: "groups",
	ID: func(g Group) string { return g.Group },
	Columns: []Column[Group]{
		{Name: "GROUP", Cell: func(g Group) string { return g.Group }},
		{Name: "TYPE", Cell: func(g Group) string { return g.Type }},
		{Name: "STATE", Cell: func(g Group) string { return text(g.State) }},
		{Name: "PROTOCOL-TYPE", Cell: func(g Group) string { return text(g.ProtocolType) }},
		{Name: "ASSIGNOR", Wide: true, Cell: func(g Group) string { return text(g.Protocol) }},
		{Name: "COORDINATOR", Right: true, Cell: func(g Group) string { return IDText(g.Coordinator) }},
		{Name: "EPOCH", Wide: true, Right: true, Cell: func(g Group) string { return nullInt(g.Epoch) }},
		{Name: "MEMBERS", Right: true, Cell: func(g Group) string {
			if g.Members == nil {
				return "-"
			}
			return itoa(*g.Members)
		}},
		{Name: "ERROR", Cell: func(g Group) string { return text(g.Error) }},
	},
}

// OfGroup makes one row; described says that its members were asked for.
func OfGroup(g *model.Group, described bool) Group {
	out := Group{
		Group: g.ID, Type: string(g.Type), State: g.State, ProtocolType: g.ProtocolType, Protocol: g.Protocol,
		Coordinator: int32(g.Coordinator), Error: g.Err,
	}
	if described && g.Err == "" {
		n := len(g.Members)
		out.Members = &n
	}
	if g.Epoch >= 0 {
		e := g.Epoch
		out.Epoch = &e
	}
	return out
}

// GroupMember is one row of groups describe --members.
type GroupMember struct {
	Group      string         `json:"group"`
	MemberID   string         `json:"memberId"`
	InstanceID string         `json:"instanceId" doc:"group.instance.id; empty for a dynamic member"`
	ClientID   string         `json:"clientId"`
	Host       string         `json:"host"`
	Rack       string         `json:"rack"`
	Epoch      *int32         `json:"epoch" doc:"member epoch; null for a classic member"`
	Subscribed []string       `json:"subscribed" doc:"topics, as far as the coordinator tells"`
	Partitions int            `json:"partitions" doc:"number of partitions assigned"`
	Assignment []TopicNumbers `json:"assignment"`
	Target     []TopicNumbers `json:"target" doc:"what it is to get; empty for a classic member"`
}

// TopicNumbers are some partitions of a topic.
type TopicNumbers struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// GroupMemberKind describes GroupMember.
var GroupMemberKind = Kind[GroupMember]{
	Name: "GroupMember", Title: "members",
	ID: func(m GroupMember) string { return m.MemberID },
	Columns: []Column[GroupMember]{
		{Name: "GROUP", Cell: func(m GroupMember) string { return m.Group }},
		{Name: "MEMBER-ID", Cell: func(m GroupMember) string { return m.MemberID }},
		{Name: "INSTANCE-ID", Wide: true, Cell: func(m GroupMember) string { return text(m.InstanceID) }},
		{Name: "CLIENT-ID", Cell: func(m GroupMember) string { return text(m.ClientID) }},
		{Name: "HOST", Cell: func(m GroupMember) string { return text(m.Host) }},
		{Name: "RACK", Wide: true, Cell: func(m GroupMember) string { return text(m.Rack) }},
		{Name: "EPOCH", Wide: true, Right: true, Cell: func(m GroupMember) string { return nullInt(m.Epoch) }},
		{Name: "PARTITIONS", Right: true, Cell: func(m GroupMember) string { return itoa(m.Partitions) }},
		{Name: "ASSIGNMENT", Wide: true, Cell: func(m GroupMember) string { return numbersText(m.Assignment) }},
		{Name: "TARGET", Wide: true, Cell: func(m GroupMember) string { return numbersText(m.Target) }},
	},
}

func numbersText(ts []TopicNumbers) string {
	parts := make([]string, len(ts))
	for i, t := range ts {
		parts[i] = t.Topic + ":" + IntList(t.Partitions)
	}
	return text(strings.Join(parts, " "))
}

// numbers gathers sorted partitions by topic; never nil.
func numbers(tps []cluster.TopicPartition) []TopicNumbers {
	out := []TopicNumbers{}
	for _, tp := range tps {
		if n := len(out); n == 0 || out[n-1].Topic != tp.Topic {
			out = append(out, TopicNumbers{Topic: tp.Topic})
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
	}
	return out
}

// GroupMembers makes the rows of a group's members.
func GroupMembers(g *model.Group) []GroupMember {
	out := make([]GroupMember, len(g.Members))
	for i := range g.Members {
		m := &g.Members[i]
		out[i] = GroupMember{
			Group: g.ID, MemberID: m.ID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: m.Host, Rack: m.Rack,
			Subscribed: append([]string{}, m.Subscribed...), Partitions: len(m.Assigned), Assignment: numbers(m.Assigned), Target: numbers(m.Target),
		}
		if m.Epoch >= 0 {
			e := m.Epoch
			out[i].Epoch = &e
		}
	}
	return out
}

// GroupLag is one row of lag groups. Offsets are -1 when not known.
type GroupLag struct {
	Group           string `json:"group"`
	Topic           string `json:"topic"`
	Partition       int32  `json:"partition"`
	MemberID        string `json:"memberId" doc:"who reads the partition; empty when nobody does"`
	InstanceID      string `json:"instanceId"`
	ClientID        string `json:"clientId"`
	Host            string `json:"host"`
	CommittedOffset int64  `json:"committedOffset" doc:"-1 when nothing is committed"`
	LogStartOffset  int64  `json:"logStartOffset"`
	LogEndOffset    int64  `json:"logEndOffset" doc:"the leader's high watermark: what a consumer can reach"`
	LagRecords      int64  `json:"lagRecords" doc:"logEndOffset minus committedOffset; -1 when not known"`
	LagMs           *int64 `json:"lagMs" doc:"age of the first record not read, 0 when all are; null when not known or not asked for"`
	Error           string `json:"error"`
}

// GroupLagKind describes GroupLag.
var GroupLagKind = Kind[GroupLag]{
	Name: "GroupLag", Title: "offsets",
	ID: func(l GroupLag) string { return l.Group + " " + l.Topic + ":" + itoa(l.Partition) },
	Columns: []Column[GroupLag]{
		{Name: "GROUP", Cell: func(l GroupLag) string { return l.Group }},
		{Name: "TOPIC", Cell: func(l GroupLag) string { return l.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(l GroupLag) string { return itoa(l.Partition) }},
		{Name: "COMMITTED", Right: true, Cell: func(l GroupLag) string { return offset(l.CommittedOffset) }},
		{Name: "LOG-START", Wide: true, Right: true, Cell: func(l GroupLag) string { return offset(l.LogStartOffset) }},
		{Name: "LOG-END", Right: true, Cell: func(l GroupLag) string { return offset(l.LogEndOffset) }},
		{Name: "LAG", Right: true, Cell: func(l GroupLag) string { return offset(l.LagRecords) }},
		{Name: "LAG-TIME", Right: true, Cell: func(l GroupLag) string { return ageCell(l.LagMs) }},
		{Name: "MEMBER-ID", Cell: func(l GroupLag) string { return text(l.MemberID) }},
		{Name: "INSTANCE-ID", Wide: true, Cell: func(l GroupLag) string { return text(l.InstanceID) }},
		{Name: "CLIENT-ID", Cell: func(l GroupLag) string { return text(l.ClientID) }},
		{Name: "HOST", Cell: func(l GroupLag) string { return text(l.Host) }},
		{Name: "ERROR", Cell: func(l GroupLag) string { return text(l.Error) }},
	},
}

// OfGroupPosition makes one row.
func OfGroupPosition(p *model.GroupPosition) GroupLag {
	out := GroupLag{
		Group: p.Group, Topic: p.Topic, Partition: p.Partition, MemberID: p.Member.ID, InstanceID: p.Member.InstanceID,
		ClientID: p.Member.ClientID, Host: p.Member.Host, CommittedOffset: p.Committed, LogStartOffset: p.LogStart,
		LogEndOffset: p.LogEnd, LagRecords: p.Lag, Error: p.Err,
	}
	if p.LagMs >= 0 {
		ms := p.LagMs
		out.LagMs = &ms
	}
	return out
}

// GroupLagTotal sums up the lag of a group, or of a group in one topic.
type GroupLagTotal struct {
	Group       string `json:"group"`
	Topic       string `json:"topic" doc:"empty for the sum over all topics"`
	Partitions  int    `json:"partitions"`
	Uncommitted int    `json:"uncommitted" doc:"partitions without a committed offset"`
	Unread      int    `json:"unassigned" doc:"partitions that no member reads"`
	LagRecords  int64  `json:"lagRecords" doc:"sum over the partitions whose lag is known"`
	LagMax      int64  `json:"lagMax" doc:"the largest lag of one partition"`
	LagMaxOf    string `json:"lagMaxOf" doc:"TOPIC:PARTITION of the largest lag; empty when there is none"`
	LagMs       *int64 `json:"lagMs" doc:"the longest lag in time; null when it was not asked for or not found for every lagging partition"`
	Errors      int    `json:"errors" doc:"partitions whose lag is not known because of an error"`
}

// GroupLagTotalKind describes GroupLagTotal.
var GroupLagTotalKind = Kind[GroupLagTotal]{
	Name: "GroupLagTotal", Title: "offsets",
	ID: func(t GroupLagTotal) string { return strings.TrimSuffix(t.Group+" "+t.Topic, " ") },
	Columns: []Column[GroupLagTotal]{
		{Name: "GROUP", Cell: func(t GroupLagTotal) string { return t.Group }},
		{Name: "TOPIC", Cell: func(t GroupLagTotal) string { return text(t.Topic) }},
		{Name: "PARTITIONS", Right: true, Cell: func(t GroupLagTotal) string { return itoa(t.Partitions) }},
		{Name: "UNCOMMITTED", Wide: true, Right: true, Cell: func(t GroupLagTotal) string { return itoa(t.Uncommitted) }},
		{Name: "UNASSIGNED", Right: true, Cell: func(t GroupLagTotal) string { return itoa(t.Unread) }},
		{Name: "LAG", Right: true, Cell: func(t GroupLagTotal) string { return itoa(t.LagRecords) }},
		{Name: "LAG-MAX", Right: true, Cell: func(t GroupLagTotal) string { return itoa(t.LagMax) }},
		{Name: "LAG-MAX-OF", Cell: func(t GroupLagTotal) string { return text(t.LagMaxOf) }},
		{Name: "LAG-TIME", Right: true, Cell: func(t GroupLagTotal) string { return ageCell(t.LagMs) }},
		{Name: "ERRORS", Right: true, Cell: func(t GroupLagTotal) string { return itoa(t.Errors) }},
	},
}

// GroupLagTotals sums up rows by group, or by group and topic, in the order of the rows.
func GroupLagTotals(rows []GroupLag, byTopic bool) []GroupLagTotal {
	out := []GroupLagTotal{}
	at := map[[2]string]int{}
	untimed := map[int]bool{} // sums with a lag whose time is not known
	for i := range rows {
		r := &rows[i]
		key := [2]string{r.Group, ""}
		if byTopic {
			key[1] = r.Topic
		}
		n, ok := at[key]
		if !ok {
			n = len(out)
			at[key] = n
			out = append(out, GroupLagTotal{Group: r.Group, Topic: key[1]})
		}
		t := &out[n]
		t.Partitions++
		t.Uncommitted += count(r.CommittedOffset < 0)
		t.Unread += count(r.MemberID == "")
		t.Errors += count(r.Error != "")
		t.LagRecords += max(0, r.LagRecords)
		if r.LagRecords > t.LagMax {
			t.LagMax, t.LagMaxOf = r.LagRecords, r.Topic+":"+itoa(r.Partition)
		}
		untimed[n] = untimed[n] || r.LagRecords > 0 && r.LagMs == nil
		if r.LagMs != nil && (t.LagMs == nil || *r.LagMs > *t.LagMs) {
			ms := *r.LagMs
			t.LagMs = &ms
		}
	}
	for n := range untimed {
		if untimed[n] {
			out[n].LagMs = nil
		}
	}
	return out
}

// GroupDetail is a group with everything that is known of it.
type GroupDetail struct {
	Group
	Lag           int64         `json:"lagRecords" doc:"sum over all partitions whose lag is known"`
	MemberList    []GroupMember `json:"memberList"`
	PartitionList []GroupLag    `json:"partitionList"`
}

// GroupDetailKind describes GroupDetail.
var GroupDetailKind = Kind[GroupDetail]{Name: "GroupDetail", Title: "groups", ID: func(g GroupDetail) string { return g.Group.Group }}

// OffsetReset is one row of groups reset-offsets and delete-offsets.
type OffsetReset struct {
	Group      string `json:"group"`
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	From       int64  `json:"from" doc:"the committed offset before; -1 when there was none"`
	To         int64  `json:"to" doc:"the new offset; -1 when it is deleted or was not changed because of the error"`
	LagRecords int64  `json:"lagRecords" doc:"records to be read from the new offset on; -1 when not known"`
	Note       string `json:"note" doc:"how the new offset differs from what was asked, and why"`
	Done       bool   `json:"done" doc:"the coordinator has it; false in a dry run"`
	Error      string `json:"error"`
}

// OffsetResetKind describes OffsetReset.
var OffsetResetKind = Kind[OffsetReset]{
	Name: "OffsetReset", Title: "offsets to reset",
	ID: func(r OffsetReset) string { return r.Group + " " + r.Topic + ":" + itoa(r.Partition) },
	Columns: []Column[OffsetReset]{
		{Name: "GROUP", Cell: func(r OffsetReset) string { return r.Group }},
		{Name: "TOPIC", Cell: func(r OffsetReset) string { return r.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(r OffsetReset) string { return itoa(r.Partition) }},
		{Name: "OFFSET", Right: true, Cell: func(r OffsetReset) string { return offset(r.From) }},
		{Name: "NEW-OFFSET", Right: true, Cell: func(r OffsetReset) string { return offset(r.To) }},
		{Name: "NEW-LAG", Right: true, Cell: func(r OffsetReset) string { return offset(r.LagRecords) }},
		{Name: "DONE", Cell: func(r OffsetReset) string { return yesNo(r.Done) }},
		{Name: "NOTE", Cell: func(r OffsetReset) string { return text(r.Note) }},
		{Name: "ERROR", Cell: func(r OffsetReset) string { return text(r.Error) }},
	},
}

// OfOffsetMove makes one row of a plan.
func OfOffsetMove(m plan.OffsetMove) OffsetReset {
	out := OffsetReset{Group: m.Group, Topic: m.Topic, Partition: m.Partition, From: m.From, To: m.To, LagRecords: m.Lag, Note: m.Note, Error: m.Err}
	if m.Err != "" {
		out.LagRecords = -1
	}
	return out
}
