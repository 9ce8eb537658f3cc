package rows

import (
	"fmt"
	"strings"
)

// ZnodeEvent is one change that zk watch saw.
type ZnodeEvent struct {
	Time     string   `json:"time" doc:"when it was seen, RFC 3339"`
	Event    string   `json:"event" doc:"created, changed, deleted, children, or gap: watches may have missed something and everything is read again"`
	Path     string   `json:"path" doc:"empty for a gap"`
	Data     string   `json:"data" doc:"of a node that was created or changed: text, or base64 when encoding says so"`
	Encoding string   `json:"encoding" doc:"utf-8, base64, or null when the node has no data or is gone"`
	Version  *int32   `json:"version" doc:"of the data; null when the node is gone"`
	Zxid     *int64   `json:"zxid" doc:"transaction of the change, null when it cannot be seen"`
	Added    []string `json:"added" doc:"names of children"`
	Removed  []string `json:"removed"`
	Skipped  int32    `json:"skipped" doc:"changes of the same kind between, which followed each other too fast to be seen"`
	Why      string   `json:"why,omitempty" doc:"of a gap"`
}

// ZnodeEventKind describes ZnodeEvent.
var ZnodeEventKind = Kind[ZnodeEvent]{
	Name: "ZnodeEvent", Title: "changes",
	ID: func(e ZnodeEvent) string { return e.Path },
	Columns: []Column[ZnodeEvent]{
		{Name: "TIME", Cell: func(e ZnodeEvent) string { return e.Time }},
		{Name: "EVENT", Cell: func(e ZnodeEvent) string { return e.Event }},
		{Name: "PATH", Cell: func(e ZnodeEvent) string { return e.Path }},
		{Name: "DETAIL", Cell: ZnodeEvent.detail},
	},
}

// detail is what text output shows behind the path.
func (e ZnodeEvent) detail() string {
	var parts []string
	if e.Version != nil && e.Event != "children" {
		parts = append(parts, fmt.Sprintf("v%d", *e.Version))
	}
	for _, a := range e.Added {
		parts = append(parts, "+"+a)
	}
	for _, r := range e.Removed {
		parts = append(parts, "-"+r)
	}
	if e.Skipped > 0 {
		parts = append(parts, fmt.Sprintf("(%d more changes between)", e.Skipped))
	}
	if e.Encoding != "null" {
		parts = append(parts, e.Data)
	}
	if e.Why != "" {
		parts = append(parts, e.Why)
	}
	return strings.Join(parts, " ")
}

// Line is the event as one line of text.
func (e ZnodeEvent) Line() string {
	return strings.TrimRight(fmt.Sprintf("%s  %-8s  %s  %s", e.Time, e.Event, e.Path, e.detail()), " ")
}
