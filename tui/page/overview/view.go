package overview

import (
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/tui/keys"
)

// small is the height below which only the focused pane is shown.
const small = 18

// wide is the width from which less important columns are shown.
const wide = 100

// layout divides the height among the panes: for each the number of lines below its title, heading line
// included; 0 hides it. Two lines are the page's own (title and help bar), each pane has a title line.
func (m *Model) layout() [panes]int {
	var h [panes]int
	if m.height < small {
		h[m.focus] = max(2, m.height-3)
		return h
	}
	free := m.height - 2 - int(panes)
	h[brokersPane] = min(max(2, len(m.brokers)+1), free/4+1)
	h[replicasPane] = min(max(4, m.replicationFactor()+1), free/3)
	h[partitionsPane] = free - h[brokersPane] - h[replicasPane]
	return h
}

func (m *Model) replicationFactor() int {
	n := 3
	for _, p := range m.parts[:min(len(m.parts), 100)] {
		n = max(n, len(p.Replicas))
	}
	return n
}

// View draws the page: exactly height lines of exactly width columns. It changes nothing.
func (m Model) View() string {
	lines := make([]string, 0, m.height)
	lines = append(lines, m.theme.Title.Render(fit(m.title(), m.width)))
	switch {
	case m.help:
		lines = append(lines, m.helpLines()...)
	case m.snap == nil:
		lines = append(lines, m.waitingLines()...)
	default:
		h := m.layout()
		for p := range panes {
			if h[p] > 0 {
				lines = append(lines, m.pane(p, h[p])...)
			}
		}
	}
	for len(lines) < m.height-1 {
		lines = append(lines, fit("", m.width))
	}
	lines = lines[:max(0, m.height-1)]
	return strings.Join(append(lines, m.theme.Dim.Render(fit(m.bottom(), m.width))), "\n")
}

// title sums up the cluster. The most important words come first, for narrow terminals.
func (m *Model) title() string {
	if m.snap == nil {
		if m.err != "" {
			return " kctl  no answer yet"
		}
		return " kctl  reading the cluster"
	}
	c := rows.OfCluster(m.snap)
	state := "ok"
	switch {
	case c.Offline > 0:
		state = fmt.Sprintf("%d OFFLINE", c.Offline)
	case c.UnderReplicated > 0:
		state = fmt.Sprintf("%d under-replicated", c.UnderReplicated)
	case c.BrokersDown > 0:
		state = fmt.Sprintf("%d broker down", c.BrokersDown)
	}
	t := fmt.Sprintf(" kctl  %s  controller %s  brokers %d/%d  partitions %d", state, rows.IDText(c.Controller),
		c.Brokers, c.Brokers+c.BrokersDown, c.Partitions)
	at := m.loadedAt.Format("15:04:05")
	if m.paused {
		at += " paused"
	}
	return t + "  " + at + "  " + c.ClusterID
}

// bottom is the help bar, the filter being typed, or the last error.
func (m *Model) bottom() string {
	switch {
	case m.filtering:
		return "filter: " + m.filter + "_   enter keeps, esc clears"
	case m.snap != nil && m.err != "":
		return "! " + m.err
	case m.lagErr != "":
		return "! " + m.lagErr
	}
	return keys.Bar(m.width)
}

// waitingLines stand in for the panes until the first answer: nothing, or the whole error, wrapped.
func (m *Model) waitingLines() []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(m.err) {
		if line != "" && len(line)+1+len(word) > m.width-2 {
			out = append(out, fit("  "+line, m.width))
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	out = append(out, fit("  "+line, m.width))
	if m.err != "" {
		out = append(out, fit("", m.width), fit("  asking again every "+m.refresh.String()+"; q leaves", m.width))
	}
	return out
}

func (m *Model) helpLines() []string {
	var out []string
	for _, l := range keys.Long() {
		out = append(out, fit("  "+l, m.width))
	}
	return out
}

// pane draws one pane: its title line and h lines below.
func (m *Model) pane(p pane, h int) []string {
	title := m.paneTitle(p)
	if p == m.focus {
		title = m.theme.Focus.Render(fit("[ "+title+" ]", m.width))
	} else {
		title = m.theme.Dim.Render(fit("  "+title, m.width))
	}
	first := m.top[p]
	last := min(m.length(p), first+h-1)
	g, style := m.grid(p, first, last)
	selected := m.cursor[p] - first
	if p != m.focus && p != partitionsPane {
		selected = -1
	}
	lines := g.lines(m.width, selected)
	out := append(make([]string, 0, h+1), title, m.theme.Head.Render(lines[0]))
	for i, l := range lines[1:] {
		switch {
		case i == selected && p == m.focus:
			l = m.theme.Selected.Render(l)
		case style(i) == model.SeverityCritical:
			l = m.theme.Bad.Render(l)
		case style(i) == model.SeverityWarning:
			l = m.theme.Warn.Render(l)
		}
		out = append(out, l)
	}
	for len(out) < h+1 {
		out = append(out, fit("", m.width))
	}
	return out
}

func (m *Model) paneTitle(p pane) string {
	position := ""
	if n := m.length(p); n > 0 {
		position = fmt.Sprintf(" %d/%d", m.cursor[p]+1, n)
	}
	switch p {
	case brokersPane:
		return "1 Brokers" + position
	case partitionsPane:
		t := "2 Partitions" + position
		if m.sort != byName || m.desc {
			t += " by " + m.sort.String()
			if m.desc {
				t += " reversed"
			}
		}
		if m.problems {
			t += " problems only"
		}
		if m.filter != "" {
			t += " /" + m.filter
		}
		return t
	}
	if c := m.cursor[partitionsPane]; c < len(m.parts) {
		return fmt.Sprintf("3 Replicas of %s:%d", m.parts[c].Topic, m.parts[c].Partition)
	}
	return "3 Replicas"
}

// brokerColumns, partitionColumns and replicaColumns name the columns of the shared kinds that fit a page.
var (
	brokerColumns    = []string{"ID", "ADDRESS", "STATE", "CONTROLLER", "LEADERS", "REPLICAS", "OUT-OF-SYNC", "RACK", "ERROR"}
	partitionColumns = []string{"TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "STATUS"}
	replicaColumns   = []string{"BROKER", "ROLE", "IN-SYNC", "LOG-START", "HW", "LEO", "LAG", "LAG-TIME", "EPOCH", "ERROR"}
)

// pick makes a grid of the named columns of a kind.
func pick[T any](k rows.Kind[T], names []string, items []T) *grid {
	g := &grid{rows: make([][]string, len(items))}
	for _, n := range names {
		for _, c := range k.Columns {
			if c.Name != n {
				continue
			}
			g.header = append(g.header, c.Name)
			g.right = append(g.right, c.Right)
			for i := range items {
				g.rows[i] = append(g.rows[i], c.Cell(items[i]))
			}
		}
	}
	return g
}

// grid makes the visible rows of a pane and tells how bad each is.
func (m *Model) grid(p pane, first, last int) (*grid, func(int) model.Severity) {
	switch p {
	case brokersPane:
		items := m.brokers[first:last]
		return pick(rows.BrokerKind, brokerColumns, items), func(i int) model.Severity {
			if items[i].State() != "up" {
				return model.SeverityCritical
			}
			return ""
		}
	case partitionsPane:
		return m.partitionGrid(first, last)
	}
	items := m.selectedReplicas()[first:last]
	columns := replicaColumns
	if m.width < wide {
		columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == "LOG-START" })
	}
	return pick(rows.ReplicaLagKind, columns, items), func(i int) model.Severity {
		switch {
		case items[i].Error != "":
			return model.SeverityCritical
		case !items[i].InSync:
			return model.SeverityWarning
		}
		return ""
	}
}

func (m *Model) partitionGrid(first, last int) (*grid, func(int) model.Severity) {
	parts := m.parts[first:last]
	items := make([]rows.Partition, len(parts))
	for i, p := range parts {
		items[i] = rows.OfPartition(p)
	}
	g := pick(rows.PartitionKind, partitionColumns, items)
	// The lag of the slowest follower comes before the status.
	at := len(g.header) - 1
	g.header = append(g.header[:at], "MAX-LAG", g.header[at])
	g.right = append(g.right[:at], true, g.right[at])
	for i, p := range parts {
		lag := "-"
		if n := m.maxLag(p); n >= 0 {
			lag = fmt.Sprint(n)
		}
		g.rows[i] = append(g.rows[i][:at], lag, g.rows[i][at])
	}
	return g, func(i int) model.Severity {
		switch p := parts[i]; {
		case p.IsOffline() || p.UnderMinISR():
			return model.SeverityCritical
		case p.UnderReplicated():
			return model.SeverityWarning
		}
		return ""
	}
}
