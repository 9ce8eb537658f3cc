package overview

import (
	"fmt"
	"slices"
	"strings"

	"kctl/admin/model"
	"kctl/admin/rows"
	"kctl/tui/data"
	"kctl/tui/grid"
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
	lines = append(lines, m.theme.Title.Render(grid.Fit(m.title(), m.width)))
	switch {
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
		lines = append(lines, grid.Fit("", m.width))
	}
	lines = lines[:max(0, m.height-1)]
	return strings.Join(append(lines, m.theme.Dim.Render(grid.Fit(m.bottom(), m.width))), "\n")
}

// title sums up the cluster. The most important words come first, for narrow terminals.
func (m *Model) title() string {
	head := " kctl" + m.label
	if m.snap == nil {
		if m.err != "" {
			return head + "  no answer yet"
		}
		return head + "  reading the cluster"
	}
	c := m.total
	state := m.state(c)
	if age := m.age(); age != "" {
		head += "  " + age
		if !m.paused {
			state = "was " + state // nobody knows what it is now
		}
	}
	return fmt.Sprintf("%s  %s  controller %s  brokers %d/%d  partitions %d  %s  %s", head, state, rows.IDText(c.Controller),
		c.Brokers, c.Brokers+c.BrokersDown, c.Partitions, m.loadedAt.Format("15:04:05"), c.ClusterID)
}

// state is the worst that can be said in a few words, or ok.
func (m *Model) state(c rows.Cluster) string {
	silent := 0
	for _, b := range m.brokers {
		if b.State() == "silent" {
			silent++
		}
	}
	var parts []string
	for _, w := range []struct {
		n    int
		what string
	}{{c.Offline, "OFFLINE"}, {c.UnderReplicated, "under-replicated"}, {silent, "silent"}} {
		if w.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", w.n, w.what))
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case c.BrokersDown > 0:
		return fmt.Sprintf("%d broker down", c.BrokersDown)
	}
	return "ok"
}

// age says that the picture is an old one: paused, the last reading failed, or the next one takes longer than it should.
func (m *Model) age() string {
	return data.Age(m.now, m.loadedAt, m.refresh, m.paused, m.failed)
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
	if c := m.cursor[replicasPane]; m.focus == replicasPane && c < len(m.selectedReplicas()) && m.selectedReplicas()[c].Error != "" {
		r := m.selectedReplicas()[c]
		return fmt.Sprintf("! broker %d: %s", r.Broker, r.Error) // the column may have been too narrow for it
	}
	if c := m.cursor[brokersPane]; m.focus == brokersPane && c < len(m.brokers) && m.brokers[c].Error != "" {
		return fmt.Sprintf("! broker %d: %s", m.brokers[c].ID, m.brokers[c].Error)
	}
	return keys.Bar(m.width)
}

// waitingLines stand in for the panes until the first answer: nothing, or the whole error, wrapped.
func (m *Model) waitingLines() []string {
	out := grid.Wrap(m.err, m.width)
	if m.err != "" {
		out = append(out, grid.Fit("", m.width), grid.Fit("  asking again every "+m.refresh.String()+"; q leaves", m.width))
	}
	return out
}

// pane draws one pane: its title line and h lines below.
func (m *Model) pane(p pane, h int) []string {
	first := m.top[p]
	last := min(m.length(p), first+h-1)
	g, style := m.table(p, first, last)
	g, hidden := g.Fit(m.width)
	title := m.paneTitle(p)
	if len(hidden) > 0 {
		title += "  hidden: " + strings.Join(hidden, " ")
	}
	if p == m.focus {
		title = m.theme.Focus.Render(grid.Fit("[ "+title+" ]", m.width))
	} else {
		title = m.theme.Dim.Render(grid.Fit("  "+title, m.width))
	}
	selected := m.cursor[p] - first
	if p != m.focus && p != partitionsPane {
		selected = -1
	}
	lines := g.Lines(m.width, selected)
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
	if len(lines) == 1 {
		out = append(out, grid.Wrap(m.nothing(p), m.width)...)
	}
	for len(out) < h+1 {
		out = append(out, grid.Fit("", m.width))
	}
	return out[:h+1]
}

// nothing says why a pane has no rows.
func (m *Model) nothing(p pane) string {
	switch p {
	case brokersPane:
		return "no broker is registered or named in a replica list"
	case partitionsPane:
		missing := "no topic exists, or none that may be seen; kctl topics create NAME makes one"
		if len(m.snap.Topics) > 0 {
			missing = "no partition of a topic could be read; kctl topics list shows why"
		}
		return data.Nothing(m.total.Partitions, m.filter, m.problems, missing)
	}
	switch {
	case len(m.parts) == 0:
		return "no partition is selected"
	case m.lagErr != "":
		return "the positions could not be read"
	}
	return "reading the positions"
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
		return fmt.Sprintf("3 Replicas of %s:%d, * preferred", m.parts[c].Topic, m.parts[c].Partition)
	}
	return "3 Replicas"
}

// brokerColumns, partitionColumns and replicaColumns name the columns of the shared kinds that fit a page.
var (
	brokerColumns    = []string{"ID", "ADDRESS", "STATE", "CONTROLLER", "LEADERS", "REPLICAS", "OUT-OF-SYNC", "RACK", "ERROR"}
	partitionColumns = []string{"TOPIC", "PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "STATUS"}
	replicaColumns   = []string{"BROKER", "ROLE", "IN-SYNC", "LOG-START", "HW", "LEO", "LAG", "LAG-TIME", "EPOCH", "ERROR"}
)

// leaderColumn is the place of LEADER among partitionColumns; behind a leader that is not the preferred one that one
// is named in brackets.
const leaderColumn = 2

// pick makes a grid of the named columns of a kind.
func pick[T any](k rows.Kind[T], names []string, items []T) *grid.Grid {
	g := &grid.Grid{Rows: make([][]string, len(items))}
	for _, n := range names {
		for _, c := range k.Columns {
			if c.Name != n {
				continue
			}
			g.Header = append(g.Header, c.Name)
			g.Right = append(g.Right, c.Right)
			for i := range items {
				g.Rows[i] = append(g.Rows[i], c.Cell(items[i]))
			}
		}
	}
	return g
}

// What gives way on narrow terminals, first first.
var (
	brokerDrop    = []string{"RACK", "REPLICAS", "CONTROLLER", "LEADERS", "OUT-OF-SYNC"}
	partitionDrop = []string{"EPOCH", "REPLICAS", "ISR", "MAX-LAG"}
	replicaDrop   = []string{"LOG-START", "EPOCH", "LAG-TIME", "HW", "LEO"}
)

// table makes the visible rows of a pane and tells how bad each is.
func (m *Model) table(p pane, first, last int) (*grid.Grid, func(int) model.Severity) {
	switch p {
	case brokersPane:
		items := m.brokers[first:last]
		g := pick(rows.BrokerKind, brokerColumns, items)
		g.Drop, g.Flex = brokerDrop, "ERROR"
		return g, func(i int) model.Severity {
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
	g := pick(rows.ReplicaLagKind, columns, items)
	g.Drop, g.Flex = replicaDrop, "ERROR"
	for i := range items {
		mark := " "
		if items[i].Broker == int32(m.parts[m.cursor[partitionsPane]].Preferred()) {
			mark = "*"
		}
		g.Rows[i][0] += mark
	}
	return g, func(i int) model.Severity {
		switch {
		case items[i].Error != "":
			return model.SeverityCritical
		case !items[i].InSync:
			return model.SeverityWarning
		}
		return ""
	}
}

func (m *Model) partitionGrid(first, last int) (*grid.Grid, func(int) model.Severity) {
	parts := m.parts[first:last]
	items := make([]rows.Partition, len(parts))
	for i, p := range parts {
		items[i] = rows.OfPartition(p)
	}
	g := pick(rows.PartitionKind, partitionColumns, items)
	// The lag of the slowest follower comes before the status.
	at := len(g.Header) - 1
	g.Header = append(g.Header[:at], "MAX-LAG", g.Header[at])
	g.Right = append(g.Right[:at], true, g.Right[at])
	for i, p := range parts {
		lag := "-"
		if n := m.maxLag(p); n >= 0 {
			lag = fmt.Sprint(n)
		}
		g.Rows[i] = append(g.Rows[i][:at], lag, g.Rows[i][at])
		if p.NotPreferred() {
			g.Rows[i][leaderColumn] += fmt.Sprintf(" (%d)", int32(p.Preferred()))
		}
	}
	g.Drop, g.Flex = partitionDrop, "TOPIC"
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
