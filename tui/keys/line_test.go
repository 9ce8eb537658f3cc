package keys

import (
	"testing"

	tea "github.com/charmbracelet/bubbletea"
)

func TestEdit(t *testing.T) {
	runes := func(s string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)} }
	for _, tt := range []struct {
		text string
		msg  tea.KeyMsg
		want string
		did  Edited
	}{
		{"a", runes("bc:0"), "abc:0", Typing},
		{"a", tea.KeyMsg{Type: tea.KeySpace, Runes: []rune(" ")}, "a ", Typing},
		{"aé", tea.KeyMsg{Type: tea.KeyBackspace}, "a", Typing},
		{"", tea.KeyMsg{Type: tea.KeyBackspace}, "", Abandoned},
		{"a", tea.KeyMsg{Type: tea.KeyEsc}, "", Abandoned},
		{"a", tea.KeyMsg{Type: tea.KeyEnter}, "a", Entered},
		{"a", tea.KeyMsg{Type: tea.KeyCtrlC}, "a", Left},
		{"a", tea.KeyMsg{Type: tea.KeyUp}, "a", Typing},
	} {
		if got, did := Edit(tt.text, tt.msg); got != tt.want || did != tt.did {
			t.Errorf("%q, %s: %q %d, want %q %d", tt.text, tt.msg, got, did, tt.want, tt.did)
		}
	}
}
