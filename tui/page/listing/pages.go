package listing

import (
	"fmt"
	"time"

	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/tui/data"
	"kctl/tui/theme"
)

var transitionColumns = []string{"TOPIC", "PARTITION", "STATE", "AGE", "LEADER", "EPOCH", "WAITING-FOR", "REASON"}

// NewTransitions is the page of the leadership decisions that are not carried out, with the alerts of our controller.
func NewTransitions(l *data.Loader, th theme.Theme, refresh time.Duration, label string) Model {
	return Model{
		name: "transitions", empty: "no transitions under way", read: l.Transitions, theme: th, refresh: refresh, label: label, width: 80, height: 24,
		header: transitionColumns,
		right:  []bool{false, true, false, true, true, true, false, false},
		drop:   []string{"REASON", "EPOCH", "LEADER", "WAITING-FOR"}, flex: "TOPIC",
	}
}

// NewGroups is the page of the consumer groups, a row for each topic that a group reads.
func NewGroups(l *data.Loader, th theme.Theme, refresh time.Duration, label string) Model {
	return Model{
		name: "groups", empty: "no consumer groups with offsets", read: l.Groups, theme: th, refresh: refresh, label: label, width: 80, height: 24,
		header: []string{"GROUP", "TOPIC", "STATE", "PARTITIONS", "UNASSIGNED", "LAG", "LAG-MAX", "LAG-MAX-OF", "ERRORS"},
		right:  []bool{false, false, false, true, true, true, true, false, true},
		drop:   []string{"LAG-MAX-OF", "UNASSIGNED", "PARTITIONS", "LAG-MAX", "ERRORS", "STATE"}, flex: "GROUP",
	}
}

func transitionRows(ts []model.Transition) []row {
	out := make([]row, len(ts))
	for i := range ts {
		t := rows.OfTransition(&ts[i])
		out[i] = row{
			cells: cells(rows.TransitionKind, transitionColumns, t),
			details: []string{
				fmt.Sprintf("%s:%d is %s: %s", t.Topic, t.Partition, t.State, t.Reason),
				"fix: " + t.Fix,
			},
		}
		if t.AgeMs != nil {
			out[i].weight = *t.AgeMs
		}
		if ts[i].State == model.TransitionStuck {
			out[i].severity, out[i].weight = model.SeverityCritical, out[i].weight+1<<50
		}
	}
	return out
}

func groupRows(groups []model.Group, positions []model.GroupPosition) []row {
	states := map[string]string{}
	var out []row
	for i := range groups {
		g := &groups[i]
		states[g.ID] = g.State
		if g.Err != "" {
			out = append(out, row{
				cells:   []string{g.ID, "-", "-", "-", "-", "-", "-", "-", "1"},
				details: []string{"group " + g.ID + ": " + g.Err}, severity: model.SeverityCritical, weight: 1 << 50,
			})
		}
	}
	offsets := make([]rows.GroupLag, len(positions))
	errs := map[[2]string]string{}
	for i := range positions {
		offsets[i] = rows.OfGroupPosition(&positions[i])
		if p := &positions[i]; p.Err != "" && errs[[2]string{p.Group, p.Topic}] == "" {
			errs[[2]string{p.Group, p.Topic}] = fmt.Sprintf("%s:%d: %s", p.Topic, p.Partition, p.Err)
		}
	}
	totals := rows.GroupLagTotals(offsets, true)
	for i := range totals {
		t := &totals[i]
		c := cells(rows.GroupLagTotalKind, []string{"GROUP", "TOPIC", "PARTITIONS", "UNASSIGNED", "LAG", "LAG-MAX", "LAG-MAX-OF", "ERRORS"}, *t)
		r := row{
			cells:  append([]string{c[0], c[1], states[t.Group]}, c[2:]...),
			weight: t.LagRecords,
			details: []string{
				fmt.Sprintf("group %s, %s: %d records behind on %s", t.Group, states[t.Group], t.LagRecords, t.Topic),
				fmt.Sprintf("kctl lag groups %s --topic %s", t.Group, t.Topic),
			},
		}
		if e := errs[[2]string{t.Group, t.Topic}]; e != "" {
			r.severity, r.weight, r.details = model.SeverityCritical, r.weight+1<<50, append(r.details, e)
		} else if t.LagRecords > 0 && t.Unread > 0 {
			r.severity = model.SeverityWarning // nobody reads what is left
		}
		out = append(out, r)
	}
	return out
}

// cells are those of the named columns of a kind.
func cells[T any](k rows.Kind[T], names []string, item T) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		for _, c := range k.Columns {
			if c.Name == n {
				out = append(out, c.Cell(item))
			}
		}
	}
	return out
}
