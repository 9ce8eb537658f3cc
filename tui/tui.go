package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"kctl/tui/data"
	"kctl/tui/page/overview"
	"kctl/tui/theme"
)

// Options are what the interface runs on.
type Options struct {
	Source  data.Source
	In      io.Reader
	Out     io.Writer
	Color   bool
	Refresh time.Duration // time between two readings
	Now     func() time.Time
}

// Root owns the pages and routes messages to the one in front.
type Root struct {
	page overview.Model
}

// New returns the root model; requests end with ctx.
func New(ctx context.Context, o Options) Root {
	loader := data.New(ctx, o.Source, o.Now)
	return Root{page: overview.New(loader, theme.New(o.Color), o.Refresh)}
}

// start is sent once by Init, so that the page can count its first request.
type start struct{}

// Init asks for the first reading.
func (r Root) Init() tea.Cmd { return func() tea.Msg { return start{} } }

// Update routes one message.
func (r Root) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case start:
		r.page, cmd = r.page.Init()
	case tea.WindowSizeMsg:
		r.page, cmd = r.page.SetSize(msg.Width, msg.Height)
	default:
		r.page, cmd = r.page.Update(msg)
	}
	return r, cmd
}

// View draws the page in front.
func (r Root) View() string { return r.page.View() }

// Run shows the interface until the user leaves or ctx ends.
func Run(ctx context.Context, o Options) error {
	p := tea.NewProgram(New(ctx, o), tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithAltScreen())
	_, err := p.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // an interrupt is how one leaves
	}
	return err
}
