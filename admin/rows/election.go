package rows

import (
	"kctl/admin/model"
	"kctl/admin/plan"
)

// Election is one row of the elect verbs.
type Election struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int32  `json:"from" doc:"leader before, -1 for none"`
	To        int32  `json:"to" doc:"the leader to be; -1 when there is no candidate"`
	Action    string `json:"action" doc:"move, not-needed or impossible"`
	Done      bool   `json:"done" doc:"the controller carried it out"`
	Confirmed bool   `json:"confirmed" doc:"the new leader answers as leader"`
	Error     string `json:"error"`
	Result    string `json:"result" doc:"done, already (nothing was left to do) or failed; empty in a plan"`
}

// The results of an election.
const (
	ElectionDone    = "done"
	ElectionAlready = "already"
	ElectionFailed  = "failed"
)

// ElectionKind describes Election.
var ElectionKind = Kind[Election]{
	Name: "Election", Title: "elections",
	ID: func(e Election) string { return e.Topic + ":" + itoa(e.Partition) },
	Columns: []Column[Election]{
		{Name: "TOPIC", Cell: func(e Election) string { return e.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(e Election) string { return itoa(e.Partition) }},
		{Name: "FROM", Right: true, Cell: func(e Election) string { return IDText(e.From) }},
		{Name: "TO", Right: true, Cell: func(e Election) string { return IDText(e.To) }},
		{Name: "ACTION", Cell: func(e Election) string { return e.Action }},
		{Name: "RESULT", Cell: func(e Election) string { return e.result() }},
	},
}

func (e Election) result() string {
	switch {
	case e.Result == ElectionFailed:
		return "failed: " + e.Error
	case e.Error != "":
		return e.Error
	case e.Result == ElectionAlready:
		return ElectionAlready
	case e.Confirmed:
		return "leads"
	case e.Done:
		return "elected"
	}
	return "-"
}

// OfElection makes the row of a planned election.
func OfElection(e *plan.Election) Election {
	r := Election{Topic: e.Topic, Partition: e.Partition, From: int32(e.From), To: int32(e.To), Action: string(e.Action)}
	if e.Action == plan.Impossible {
		r.Error = e.Reason
	}
	return r
}

// Candidate is one replica that an unclean election could take.
type Candidate struct {
	Topic        string `json:"topic"`
	Partition    int32  `json:"partition"`
	Broker       int32  `json:"broker"`
	Live         bool   `json:"live" doc:"the broker is registered"`
	InSync       bool   `json:"inSync" doc:"in the last ISR: it has every committed record"`
	Chosen       bool   `json:"chosen" doc:"the election takes it"`
	LeaderEpoch  int32  `json:"leaderEpoch" doc:"the partition's last known leader epoch, -1 when not known"`
	LastEpoch    int32  `json:"lastEpoch" doc:"leader epoch of the last batch of this replica's log, -1 when not known"`
	LogEndOffset int64  `json:"logEndOffset" doc:"end of this replica's log, -1 when not known"`
	Loss         string `json:"loss" doc:"on the chosen one: what is or may be lost"`
	Error        string `json:"error"`
}

// CandidateKind describes Candidate.
var CandidateKind = Kind[Candidate]{
	Name: "Candidate", Title: "candidates",
	ID: func(c Candidate) string { return c.Topic + ":" + itoa(c.Partition) + " " + itoa(c.Broker) },
	Columns: []Column[Candidate]{
		{Name: "TOPIC", Cell: func(c Candidate) string { return c.Topic }},
		{Name: "PARTITION", Right: true, Cell: func(c Candidate) string { return itoa(c.Partition) }},
		{Name: "BROKER", Right: true, Cell: func(c Candidate) string { return itoa(c.Broker) }},
		{Name: "LIVE", Cell: func(c Candidate) string { return yesNo(c.Live) }},
		{Name: "IN-SYNC", Cell: func(c Candidate) string { return yesNo(c.InSync) }},
		{Name: "LEADER-EPOCH", Right: true, Wide: true, Cell: func(c Candidate) string { return orUnknown(int64(c.LeaderEpoch)) }},
		{Name: "LAST-EPOCH", Right: true, Cell: func(c Candidate) string { return orUnknown(int64(c.LastEpoch)) }},
		{Name: "LOG-END", Right: true, Cell: func(c Candidate) string { return orUnknown(c.LogEndOffset) }},
		{Name: "ELECTED", Cell: func(c Candidate) string { return yesNo(c.Chosen) }},
		{Name: "LOSES", Cell: func(c Candidate) string { return c.loses() }},
	},
}

func (c Candidate) loses() string {
	if c.Loss != "" && c.Error != "" {
		return c.Loss + ": " + c.Error
	}
	return text(c.Loss + c.Error)
}

func orUnknown(n int64) string {
	if n < 0 {
		return "-"
	}
	return itoa(n)
}

// OfCandidate makes the row.
func OfCandidate(c *model.Candidate) Candidate {
	return Candidate{
		Topic: c.Topic, Partition: c.Partition, Broker: int32(c.Broker), Live: c.Live, InSync: c.InSync, Chosen: c.Chosen,
		LeaderEpoch: int32(c.LeaderEpoch), LastEpoch: int32(c.LastEpoch), LogEndOffset: c.LogEndOffset, Loss: c.Loss, Error: c.Err,
	}
}
