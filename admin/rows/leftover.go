package rows

import (
	"time"

	"kctl/admin/check"
)

// Leftover is something that nobody needs any more.
type Leftover struct {
	Kind     string `json:"kind" doc:"throttle, admin-znode, deletion, topic-config, broker-config, notification, config-change, alert, stray-replica or dead-replica"`
	Object   string `json:"object"`
	Evidence string `json:"evidence"`
	AgeMs    *int64 `json:"ageMs" doc:"null when not known"`
	Cleans   bool   `json:"cleans" doc:"leftovers clean takes it away"`
	Instead  string `json:"instead" doc:"what to do about one that clean leaves alone"`
	Removed  bool   `json:"removed"`
	Error    string `json:"error"`
}

// LeftoverKind describes Leftover.
var LeftoverKind = Kind[Leftover]{
	Name: "Leftover", Title: "leftovers",
	ID: func(l Leftover) string { return l.Kind + "/" + l.Object },
	Columns: []Column[Leftover]{
		{Name: "KIND", Cell: func(l Leftover) string { return l.Kind }},
		{Name: "OBJECT", Cell: func(l Leftover) string { return l.Object }},
		{Name: "AGE", Right: true, Cell: func(l Leftover) string { return nullDuration(l.AgeMs) }},
		{Name: "EVIDENCE", Cell: func(l Leftover) string { return l.Evidence }},
		{Name: "CLEAN", Cell: func(l Leftover) string { return l.state() }},
	},
}

func (l Leftover) state() string {
	switch {
	case l.Error != "":
		return l.Error
	case l.Removed:
		return "removed"
	case l.Cleans:
		return "yes"
	}
	return "no: " + l.Instead
}

func nullDuration(ms *int64) string {
	if ms == nil {
		return "-"
	}
	return Duration(time.Duration(*ms) * time.Millisecond)
}

// OfLeftover turns a leftover into a row.
func OfLeftover(l check.Leftover) Leftover {
	out := Leftover{Kind: l.Kind, Object: l.Object, Evidence: l.Evidence, Instead: l.Keep, Cleans: l.Keep == ""}
	if l.Age >= 0 {
		ms := l.Age.Milliseconds()
		out.AgeMs = &ms
	}
	return out
}
