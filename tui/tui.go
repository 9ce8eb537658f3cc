package tui

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"kctl/tui/data"
	"kctl/tui/grid"
	"kctl/tui/keys"
	"kctl/tui/page/listing"
	"kctl/tui/page/overview"
	"kctl/tui/theme"
)

// Options are what the interface runs on.
type Options struct {
	Source   data.Source
	In       io.Reader
	Out      io.Writer
	Color    bool
	Refresh  time.Duration // time between two readings
	Now      func() time.Time
	Context  string // name of the context in use, empty for none
	ReadOnly bool   // the context refuses changes; the interface makes none in any case
}

// page names one of the pages.
type page int

const (
	overviewPage page = iota
	transitionsPage
	groupsPage
)

// pageNames are what is typed behind a colon.
var pageNames = map[string]page{"overview": overviewPage, "transitions": transitionsPage, "groups": groupsPage}

// Root owns the pages, routes messages to the one in front, and draws the help over it.
type Root struct {
	front    page
	overview overview.Model
	lists    map[page]listing.Model // replaced as a whole, so that a Root is a value
	loader   *data.Loader
	refresh  time.Duration
	theme    theme.Theme

	width, height int
	help          bool
	helpTop       int
	command       string // what is typed behind a colon
	commanding    bool
	complaint     string // about the last command
}

// New returns the root model; requests end with ctx.
func New(ctx context.Context, o Options) Root {
	l, th := data.New(ctx, o.Source, o.Now), theme.New(o.Color)
	label := ""
	if o.Context != "" {
		label = " " + o.Context
	}
	if o.ReadOnly {
		label += " [read-only]"
	}
	return Root{
		overview: overview.New(l, th, o.Refresh, label), loader: l, refresh: o.Refresh, theme: th, width: 80, height: 24,
		lists: map[page]listing.Model{
			transitionsPage: listing.NewTransitions(l, th, o.Refresh, label),
			groupsPage:      listing.NewGroups(l, th, o.Refresh, label),
		},
	}
}

// start is sent once by Init, so that the page can count its first request.
type start struct{}

// Init asks for the first reading.
func (r Root) Init() tea.Cmd { return func() tea.Msg { return start{} } }

// Update routes one message: keys and ticks to the page in front, answers to the page that asked.
func (r Root) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case start:
		r.overview, cmd = r.overview.Init()
		if r.refresh > 0 {
			cmd = tea.Batch(cmd, r.loader.Beat())
		}
	case tea.WindowSizeMsg:
		r.width, r.height = msg.Width, msg.Height
		r.overview, cmd = r.overview.SetSize(msg.Width, msg.Height)
		for p, l := range r.lists {
			r = r.with(p, l.SetSize(msg.Width, msg.Height))
		}
	case data.Clock:
		r.overview, _ = r.overview.Update(msg)
		for p := range r.lists {
			r, _ = r.list(p, msg)
		}
		cmd = r.loader.Beat()
	case data.SnapshotLoaded, data.LagLoaded:
		r.overview, cmd = r.overview.Update(msg)
	case data.TransitionsLoaded:
		return r.list(transitionsPage, msg)
	case data.GroupsLoaded:
		return r.list(groupsPage, msg)
	case tea.KeyMsg:
		return r.key(msg)
	default:
		return r.inFront(msg)
	}
	return r, cmd
}

func (r Root) with(p page, l listing.Model) Root {
	lists := map[page]listing.Model{}
	for q, have := range r.lists {
		lists[q] = have
	}
	lists[p], r.lists = l, lists
	return r
}

func (r Root) list(p page, msg tea.Msg) (Root, tea.Cmd) {
	l, cmd := r.lists[p].Update(msg)
	return r.with(p, l), cmd
}

func (r Root) inFront(msg tea.Msg) (Root, tea.Cmd) {
	if r.front != overviewPage {
		return r.list(r.front, msg)
	}
	var cmd tea.Cmd
	r.overview, cmd = r.overview.Update(msg)
	return r, cmd
}

// key takes the keys that mean the same on every page; the others go to the one in front. Keys typed fast arrive as one
// message with several runes: each counts.
func (r Root) key(msg tea.KeyMsg) (tea.Model, tea.Cmd) {
	if msg.Type != tea.KeyRunes || len(msg.Runes) <= 1 || msg.Paste {
		return r.oneKey(msg)
	}
	var cmds []tea.Cmd
	for _, one := range msg.Runes {
		var cmd tea.Cmd
		r, cmd = r.oneKey(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{one}})
		cmds = append(cmds, cmd)
	}
	return r, tea.Batch(cmds...)
}

func (r Root) oneKey(msg tea.KeyMsg) (Root, tea.Cmd) {
	if r.commanding {
		return r.typeCommand(msg)
	}
	if r.typing() {
		return r.inFront(msg)
	}
	r.complaint = ""
	a := keys.Of(msg)
	if r.help {
		return r.helpKey(a)
	}
	switch a {
	case keys.Help:
		r.help, r.helpTop = true, 0
	case keys.Command:
		r.commanding, r.command = true, ""
	case keys.Overview:
		return r.show(overviewPage)
	case keys.Transit:
		return r.show(transitionsPage)
	case keys.Groups:
		return r.show(groupsPage)
	case keys.Clear:
		if l, ok := r.lists[r.front]; ok && !l.Filtered() {
			return r.show(overviewPage)
		}
		return r.inFront(msg)
	default:
		return r.inFront(msg)
	}
	return r, nil
}

func (r Root) typing() bool {
	if r.front == overviewPage {
		return r.overview.Typing()
	}
	return r.lists[r.front].Typing()
}

// show brings a page to the front, which reads at once.
func (r Root) show(p page) (Root, tea.Cmd) {
	var cmd tea.Cmd
	if r.front = p; p == overviewPage {
		r.overview, cmd = r.overview.Init()
		return r, cmd
	}
	l, cmd := r.lists[p].Init()
	return r.with(p, l), cmd
}

// typeCommand takes the name of a page; the beginning of one is enough.
func (r Root) typeCommand(msg tea.KeyMsg) (Root, tea.Cmd) {
	text, did := keys.Edit(r.command, msg)
	r.command, r.commanding = text, did == keys.Typing
	switch did {
	case keys.Left:
		return r, tea.Quit
	case keys.Entered:
		return r.run(strings.TrimSpace(text))
	}
	return r, nil
}

// run carries out what was typed behind a colon.
func (r Root) run(word string) (Root, tea.Cmd) {
	if word == "q" || word == "quit" {
		return r, tea.Quit
	}
	for name, p := range pageNames {
		if word != "" && strings.HasPrefix(name, word) {
			return r.show(p)
		}
	}
	if word != "" {
		r.complaint = "there is no page " + word + ": overview, transitions, groups, or q to leave"
	}
	return r, nil
}

func (r Root) helpKey(a keys.Action) (Root, tea.Cmd) {
	step, moves := map[keys.Action]int{keys.Up: -1, keys.Down: 1, keys.PageUp: -r.helpView(), keys.PageDown: r.helpView(), keys.Top: -1 << 30, keys.Bottom: 1 << 30}[a]
	switch {
	case a == keys.Quit:
		return r, tea.Quit
	case moves:
		r.helpTop = max(0, min(r.helpTop+step, len(keys.Long())-r.helpView()))
	case a == keys.Help, a == keys.Clear:
		r.help = false
	}
	return r, nil
}

// helpView is how many lines of the help are seen below the page's title and above the last line.
func (r Root) helpView() int { return max(1, r.height-2) }

// View draws the page in front, with the help or what is typed over it.
func (r Root) View() string {
	frame := r.overview.View()
	if r.front != overviewPage {
		frame = r.lists[r.front].View()
	}
	lines := strings.Split(frame, "\n")
	last := len(lines) - 1
	if r.help && last > 0 {
		long := keys.Long()
		top := max(0, min(r.helpTop, len(long)-r.helpView()))
		for i := 1; i < last; i++ {
			text := ""
			if n := top + i - 1; n < len(long) {
				text = "  " + long[n]
			}
			lines[i] = grid.Fit(text, r.width)
		}
		bar := "esc closes this help"
		if n := len(long) - top - r.helpView(); n > 0 {
			bar += "   … " + "more with down"
		}
		lines[last] = grid.Fit(bar, r.width)
	}
	switch {
	case r.commanding:
		lines[last] = grid.Fit(":"+r.command+"_   overview, transitions, groups, q; esc goes back", r.width)
	case r.complaint != "" && !r.help:
		lines[last] = grid.Fit("! "+r.complaint, r.width)
	}
	return strings.Join(lines, "\n")
}

// Run shows the interface until the user leaves or ctx ends.
func Run(ctx context.Context, o Options) error {
	p := tea.NewProgram(New(ctx, o), tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithAltScreen())
	_, err := p.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // an interrupt is how one leaves
	}
	return err
}
