// Package listing is a page of one table: the leadership transitions that are not finished, or the consumer groups with
// their lag. Each page reads what it shows while it is in front.
package listing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"kctl/admin/model"
	"kctl/tui/data"
	"kctl/tui/grid"
	"kctl/tui/keys"
	"kctl/tui/theme"
)

// row is one row of the table. What the columns have no room for is in the details, which are shown in full below.
type row struct {
	cells    []string
	details  []string
	severity model.Severity
	weight   int64 // orders by badness, worst first
}

// Model is the page. It is a value: Update returns a changed copy.
type Model struct {
	name, empty string
	read        func(seq uint64) tea.Cmd
	header      []string
	right       []bool
	drop        []string
	flex        string

	theme   theme.Theme
	refresh time.Duration
	label   string

	width, height int
	seq           uint64
	inFlight      bool
	loaded        bool
	failed        bool
	paused        bool
	now, loadedAt time.Time
	err           string
	all, rows     []row

	cursor, top int
	sort        int
	desc        bool
	problems    bool
	filter      string
	filtering   bool
}

// Init reads for the first time, or anew when the page comes to the front.
func (m Model) Init() (Model, tea.Cmd) {
	m.seq++
	m.inFlight = true
	return m, m.read(m.seq)
}

// SetSize tells the page its size.
func (m Model) SetSize(w, h int) Model {
	m.width, m.height = w, h
	m.scroll()
	return m
}

// Typing reports whether keys are text now.
func (m Model) Typing() bool { return m.filtering }

// Filtered reports whether esc has something to clear.
func (m Model) Filtered() bool { return m.filter != "" || m.problems }

// Update takes one message and returns the changed page and what is to be read.
func (m Model) Update(msg tea.Msg) (Model, tea.Cmd) {
	switch msg := msg.(type) {
	case data.TransitionsLoaded:
		return m.take(msg.Seq, transitionRows(msg.Transitions), msg.Problems, msg.Err, msg.At)
	case data.GroupsLoaded:
		return m.take(msg.Seq, groupRows(msg.Groups, msg.Positions), msg.Problems, msg.Err, msg.At)
	case data.Clock:
		m.now = msg.Now
	case data.Tick:
		if msg.Seq == m.seq && !m.paused && !m.inFlight {
			return m.Init()
		}
	case tea.KeyMsg:
		return m.key(msg)
	}
	return m, nil
}

// take takes an answer, unless a newer one was asked for meanwhile.
func (m Model) take(seq uint64, rs []row, problems []model.Problem, err error, at time.Time) (Model, tea.Cmd) {
	if seq != m.seq {
		return m, nil
	}
	m.inFlight, m.now, m.err, m.failed = false, at, "", err != nil
	var next tea.Cmd
	if m.refresh > 0 {
		next = data.After(m.seq, m.refresh)
	}
	if err != nil {
		m.err = err.Error()
		return m, next
	}
	if len(problems) > 0 {
		m.err = problems[0].Object + ": " + problems[0].Message
	}
	m.all, m.loadedAt, m.loaded = rs, at, true
	m.arrange()
	return m, next
}

// key handles one key press.
func (m Model) key(msg tea.KeyMsg) (Model, tea.Cmd) {
	if !m.filtering {
		return m.act(keys.Of(msg))
	}
	text, did := keys.Edit(m.filter, msg)
	if did == keys.Left {
		return m, tea.Quit
	}
	m.filter, m.filtering = text, did == keys.Typing
	m.arrange()
	return m, nil
}

func (m Model) act(a keys.Action) (Model, tea.Cmd) {
	page := max(1, m.view()-1)
	switch a {
	case keys.Quit:
		return m, tea.Quit
	case keys.Filter:
		m.filtering = true
	case keys.Clear:
		m.filter, m.problems = "", false
	case keys.Problems:
		m.problems, m.cursor = !m.problems, 0
	case keys.Sort:
		m.sort, m.cursor = (m.sort+1)%(len(m.header)+1), 0
	case keys.Reverse:
		m.desc, m.cursor = !m.desc, 0
	case keys.Refresh:
		return m.Init()
	case keys.Pause:
		if m.paused = !m.paused; !m.paused && !m.inFlight {
			return m.Init()
		}
	default:
		m.cursor += map[keys.Action]int{keys.Up: -1, keys.Down: 1, keys.PageUp: -page, keys.PageDown: page, keys.Top: -1 << 30, keys.Bottom: 1 << 30}[a]
		m.scroll()
		return m, nil
	}
	m.arrange()
	return m, nil
}

// arrange filters and sorts the rows.
func (m *Model) arrange() {
	m.rows = slices.DeleteFunc(slices.Clone(m.all), func(r row) bool {
		return m.problems && r.severity == "" || m.filter != "" && !strings.Contains(strings.Join(r.cells, " "), m.filter)
	})
	slices.SortStableFunc(m.rows, func(a, b row) int {
		c := 0
		if m.sort == 0 {
			c = int(max(-1, min(1, b.weight-a.weight)))
		} else {
			c = compareCells(a.cells[m.sort-1], b.cells[m.sort-1], m.right[m.sort-1])
		}
		if m.desc {
			return -c
		}
		return c
	})
	m.scroll()
}

// compareCells orders numbers by their length first; what has none comes first.
func compareCells(a, b string, number bool) int {
	if number && len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// view is the number of rows that are seen: without title, pane title, heading, details and help bar.
func (m *Model) view() int { return max(1, m.height-4-m.detailHeight()) }

// detailHeight is the room for the details of the selected row; small terminals have none.
func (m *Model) detailHeight() int {
	if m.height < 16 {
		return 0
	}
	return min(6, m.height/4)
}

func (m *Model) scroll() {
	m.cursor = max(0, min(m.cursor, len(m.rows)-1))
	m.top = max(0, min(m.top, m.cursor, len(m.rows)-m.view()))
	if m.cursor >= m.top+m.view() {
		m.top = m.cursor - m.view() + 1
	}
}

// View draws the page: exactly height lines of exactly width columns. It changes nothing.
func (m Model) View() string {
	lines := []string{m.theme.Title.Render(grid.Fit(m.title(), m.width))}
	switch {
	case !m.loaded && m.err != "":
		lines = append(lines, grid.Wrap(m.err, m.width)...)
		lines = append(lines, grid.Fit("  asking again every "+m.refresh.String()+"; q leaves", m.width))
	case m.loaded:
		lines = append(lines, m.table()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, grid.Fit("", m.width))
	}
	lines = lines[:max(0, m.height-1)]
	return strings.Join(append(lines, m.theme.Dim.Render(grid.Fit(m.bottom(), m.width))), "\n")
}

func (m *Model) title() string {
	head := " kctl" + m.label
	if age := data.Age(m.now, m.loadedAt, m.refresh, m.paused, m.failed && m.loaded); age != "" && m.loaded {
		head += "  " + age
	}
	switch {
	case !m.loaded && m.err != "":
		return head + "  no answer yet"
	case !m.loaded:
		return head + "  reading " + m.name
	}
	bad := 0
	for _, r := range m.all {
		if r.severity != "" {
			bad++
		}
	}
	return fmt.Sprintf("%s  %s %d, %d with a problem  %s", head, m.name, len(m.all), bad, m.loadedAt.Format("15:04:05"))
}

func (m *Model) bottom() string {
	switch {
	case m.filtering:
		return "filter: " + m.filter + "_   enter keeps, esc clears"
	case m.loaded && m.err != "":
		return "! " + m.err
	}
	return "esc overview  " + keys.Bar(max(0, m.width-14))
}

// table draws the pane title, the rows in view and the details of the selected one.
func (m *Model) table() []string {
	last := min(len(m.rows), m.top+m.view())
	g := &grid.Grid{Header: m.header, Right: m.right, Drop: m.drop, Flex: m.flex}
	for _, r := range m.rows[m.top:last] {
		g.Rows = append(g.Rows, r.cells)
	}
	g, hidden := g.Fit(m.width)
	out := []string{m.theme.Focus.Render(grid.Fit("[ "+m.paneTitle(hidden)+" ]", m.width))}
	if len(m.rows) == 0 {
		return append(out, grid.Wrap(data.Nothing(len(m.all), m.filter, m.problems, m.empty), m.width)...)
	}
	selected := m.cursor - m.top
	lines := g.Lines(m.width, selected)
	out = append(out, m.theme.Head.Render(lines[0]))
	for i, l := range lines[1:] {
		switch severity := m.rows[m.top+i].severity; {
		case i == selected:
			l = m.theme.Selected.Render(l)
		case severity == model.SeverityCritical:
			l = m.theme.Bad.Render(l)
		case severity == model.SeverityWarning:
			l = m.theme.Warn.Render(l)
		}
		out = append(out, l)
	}
	for len(out) < m.view()+2 {
		out = append(out, grid.Fit("", m.width))
	}
	return append(out, m.details()...)
}

func (m *Model) paneTitle(hidden []string) string {
	t := m.name
	if len(m.rows) > 0 {
		t += fmt.Sprintf(" %d/%d", m.cursor+1, len(m.rows))
	}
	if m.sort > 0 {
		t += " by " + strings.ToLower(m.header[m.sort-1])
	}
	if m.desc {
		t += " reversed"
	}
	if m.problems {
		t += " problems only"
	}
	if m.filter != "" {
		t += " /" + m.filter
	}
	if len(hidden) > 0 {
		t += "  hidden: " + strings.Join(hidden, " ")
	}
	return t
}

// details are those of the selected row, wrapped; what does not fit is marked.
func (m *Model) details() []string {
	h := m.detailHeight()
	if h == 0 {
		return nil
	}
	var out []string
	for _, d := range m.rows[m.cursor].details {
		out = append(out, grid.Wrap(d, m.width)...)
	}
	if len(out) > h {
		out[h-1] = grid.Fit("  …", m.width)
		out = out[:h]
	}
	return out
}
