// Package keys declares every key of the terminal interface once: handling, the help bar and the long help
// come from the same table.
package keys

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// Action is what a key does.
type Action string

// The actions.
const (
	Quit     Action = "quit"
	Up       Action = "up"
	Down     Action = "down"
	PageUp   Action = "page up"
	PageDown Action = "page down"
	Top      Action = "first"
	Bottom   Action = "last"
	NextPane Action = "next pane"
	PrevPane Action = "previous pane"
	Brokers  Action = "brokers"
	Parts    Action = "partitions"
	Replicas Action = "replicas"
	Filter   Action = "filter"
	Clear    Action = "clear"
	Sort     Action = "sort"
	Reverse  Action = "reverse"
	Problems Action = "problems"
	Refresh  Action = "refresh"
	Pause    Action = "pause"
	Help     Action = "help"
	Command  Action = "go to"
	Overview Action = "overview"
	Transit  Action = "transitions"
	Groups   Action = "groups"
	None     Action = ""
)

// Binding is one action with its keys. Bar is its text in the help bar; empty leaves it out there.
type Binding struct {
	Action Action
	Keys   []string
	Bar    string
	Long   string
}

// Table is all bindings, in the order of the help.
func Table() []Binding {
	return []Binding{
		{Quit, []string{"q", "ctrl+c"}, "quit", "leave"},
		{Overview, []string{"o"}, "", "page of brokers, partitions and replicas"},
		{Transit, []string{"t"}, "transitions", "page of unfinished leadership changes, with alerts"},
		{Groups, []string{"c"}, "groups", "page of consumer groups with their lag"},
		{Command, []string{":"}, "", "go to a page by its name (overview, groups ...)"},
		{NextPane, []string{"tab"}, "pane", "go to the next pane"},
		{PrevPane, []string{"shift+tab"}, "", "go to the previous pane"},
		{Brokers, []string{"1"}, "", "go to the brokers"},
		{Parts, []string{"2"}, "", "go to the partitions"},
		{Replicas, []string{"3"}, "", "go to the replicas"},
		{Up, []string{"up", "k"}, "", "one row up"},
		{Down, []string{"down", "j"}, "", "one row down"},
		{PageUp, []string{"pgup", "ctrl+b"}, "", "one page up"},
		{PageDown, []string{"pgdown", "ctrl+f"}, "", "one page down"},
		{Top, []string{"home", "g"}, "", "first row"},
		{Bottom, []string{"end", "G"}, "", "last row"},
		{Filter, []string{"/"}, "filter", "show only rows whose name contains a text"},
		{Clear, []string{"esc"}, "", "close this help, clear the filter, or back to the overview"},
		{Sort, []string{"s"}, "sort", "sort by the next column"},
		{Reverse, []string{"S"}, "", "turn the order round"},
		{Problems, []string{"p"}, "problems", "show only rows with a problem"},
		{Refresh, []string{"r"}, "", "read everything now"},
		{Pause, []string{" "}, "", "stop or go on reading by itself"},
		{Help, []string{"?"}, "help", "show or close this help"},
	}
}

var byKey = func() map[string]Action {
	m := map[string]Action{}
	for _, b := range Table() {
		for _, k := range b.Keys {
			m[k] = b.Action
		}
	}
	return m
}()

// Of returns the action of a key press.
func Of(msg tea.KeyMsg) Action { return byKey[msg.String()] }

// Bar is the help bar, cut at whole entries so that it fits width.
func Bar(width int) string {
	var b strings.Builder
	for _, k := range Table() {
		if k.Bar == "" {
			continue
		}
		entry := name(k.Keys[0]) + " " + k.Bar
		if b.Len() > 0 {
			entry = "  " + entry
		}
		if b.Len()+len(entry) > width {
			break
		}
		b.WriteString(entry)
	}
	return b.String()
}

// Long is the help page, one line per action.
func Long() []string {
	var out []string
	for _, k := range Table() {
		names := make([]string, len(k.Keys))
		for i, key := range k.Keys {
			names[i] = name(key)
		}
		keys := strings.Join(names, " ")
		out = append(out, keys+strings.Repeat(" ", max(1, 18-len(keys)))+k.Long)
	}
	return out
}

func name(key string) string {
	if key == " " {
		return "space"
	}
	return key
}
