package rows

import (
	"strings"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// Hidden stands for a value that is a secret, in text.
const Hidden = "***"

// ConfigEntry is one configuration value of one resource.
type ConfigEntry struct {
	Resource  string          `json:"resource" doc:"topic/NAME, broker/ID, broker/default, ..."`
	Name      string          `json:"name"`
	Value     *string         `json:"value" doc:"null when it is a secret or not set"`
	Source    string          `json:"source" doc:"dynamic-topic, dynamic-broker, dynamic-default-broker, static-broker, default, ..."`
	Override  bool            `json:"override" doc:"set on this very resource"`
	ReadOnly  bool            `json:"readOnly" doc:"takes effect at the next start of the broker only"`
	Sensitive bool            `json:"sensitive"`
	Type      string          `json:"type" doc:"boolean, int, long, list, ...; empty when not told"`
	Synonyms  []ConfigSynonym `json:"synonyms" doc:"where the value could come from, the one in force first"`
}

// ConfigSynonym is one place where a value could come from.
type ConfigSynonym struct {
	Name   string  `json:"name"`
	Value  *string `json:"value" doc:"null when it is a secret"`
	Source string  `json:"source"`
}

// ConfigEntryKind describes ConfigEntry.
var ConfigEntryKind = Kind[ConfigEntry]{
	Name: "ConfigEntry", Title: "configuration values",
	ID: func(e ConfigEntry) string { return e.Resource + " " + e.Name },
	Columns: []Column[ConfigEntry]{
		{Name: "RESOURCE", Cell: func(e ConfigEntry) string { return e.Resource }},
		{Name: "KEY", Cell: func(e ConfigEntry) string { return e.Name }},
		{Name: "VALUE", Cell: func(e ConfigEntry) string { return valueText(e.Value, e.Sensitive) }},
		{Name: "SOURCE", Cell: func(e ConfigEntry) string { return e.Source }},
		{Name: "READ-ONLY", Wide: true, Cell: func(e ConfigEntry) string { return yesNo(e.ReadOnly) }},
		{Name: "TYPE", Wide: true, Cell: func(e ConfigEntry) string { return text(e.Type) }},
		{Name: "SYNONYMS", Wide: true, Cell: func(e ConfigEntry) string { return synonymText(e) }},
	},
}

func valueText(v *string, sensitive bool) string {
	switch {
	case sensitive:
		return Hidden
	case v == nil:
		return "-"
	case *v == "":
		return `""`
	}
	return *v
}

func synonymText(e ConfigEntry) string {
	var parts []string
	for _, s := range e.Synonyms {
		parts = append(parts, s.Source+":"+s.Name+"="+valueText(s.Value, e.Sensitive))
	}
	return text(strings.Join(parts, ","))
}

// OfConfigEntry makes the row of one value.
func OfConfigEntry(r model.ConfigResource, e *model.ConfigEntry) ConfigEntry {
	row := ConfigEntry{
		Resource: r.String(), Name: e.Name, Value: e.Value, Source: e.Source, Override: e.Source == r.OwnSource(),
		ReadOnly: e.ReadOnly, Sensitive: e.Sensitive, Type: e.Type, Synonyms: []ConfigSynonym{},
	}
	for _, s := range e.Synonyms {
		row.Synonyms = append(row.Synonyms, ConfigSynonym(s))
	}
	return row
}

// ConfigChange is one planned or made change of a configuration value.
type ConfigChange struct {
	Resource  string  `json:"resource"`
	Name      string  `json:"name"`
	Action    string  `json:"action" doc:"set, delete, append, subtract, or none when nothing has to change"`
	Before    *string `json:"before" doc:"the resource's own value before; null for none, or when it is a secret"`
	After     *string `json:"after" doc:"the resource's own value afterwards; null for none, or when it is a secret"`
	Inherited *string `json:"inherited" doc:"what holds without a value of its own; null when not known"`
	From      string  `json:"inheritedFrom" doc:"the source of inherited"`
	Sensitive bool    `json:"sensitive"`
	Done      bool    `json:"done" doc:"the cluster shows the change"`
	Error     string  `json:"error"`
}

// ConfigChangeKind describes ConfigChange.
var ConfigChangeKind = Kind[ConfigChange]{
	Name: "ConfigChange", Title: "changes",
	ID: func(c ConfigChange) string { return c.Resource + " " + c.Name },
	Columns: []Column[ConfigChange]{
		{Name: "RESOURCE", Cell: func(c ConfigChange) string { return c.Resource }},
		{Name: "KEY", Cell: func(c ConfigChange) string { return c.Name }},
		{Name: "ACTION", Cell: func(c ConfigChange) string { return c.Action }},
		{Name: "BEFORE", Cell: func(c ConfigChange) string { return c.side(c.Before, c.Action == "delete") }},
		{Name: "AFTER", Cell: func(c ConfigChange) string { return c.side(c.After, c.Action != "delete" && c.Action != "none") }},
		{Name: "RESULT", Cell: func(c ConfigChange) string { return c.result() }},
	},
}

// side shows a value of its own, or in brackets what is inherited without one.
func (c ConfigChange) side(own *string, set bool) string {
	switch {
	case c.Sensitive && set:
		return Hidden
	case own != nil:
		return valueText(own, false)
	case c.Inherited != nil && !c.Sensitive:
		return valueText(c.Inherited, false) + " (" + c.From + ")"
	}
	return "-"
}

func (c ConfigChange) result() string {
	switch {
	case c.Error != "":
		return c.Error
	case c.Done:
		return "done"
	}
	return "-"
}

// OfConfigChange makes the row of a planned change.
func OfConfigChange(ch *plan.ConfigChange) ConfigChange {
	row := ConfigChange{
		Resource: ch.Resource.String(), Name: ch.Key, Action: string(ch.Kind), Before: ch.Before, After: ch.After,
		Inherited: ch.Inherited.Value, From: ch.Inherited.Source, Sensitive: ch.Sensitive,
	}
	if ch.None {
		row.Action = "none"
	}
	if ch.Sensitive {
		row.Before, row.After, row.Inherited = nil, nil, nil
	}
	return row
}
