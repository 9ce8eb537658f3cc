package keys

import tea "github.com/charmbracelet/bubbletea"

// Edited is what a key did to a line of text that somebody types.
type Edited uint8

// What can become of a line.
const (
	Typing    Edited = iota // it goes on
	Entered                 // enter: the text counts
	Abandoned               // esc, or backspace on an empty line
	Left                    // ctrl+c: the whole program is left
)

// Edit applies a key, or several that arrive as one message, to a line of text.
func Edit(text string, msg tea.KeyMsg) (string, Edited) {
	switch msg.Type {
	case tea.KeyEnter:
		return text, Entered
	case tea.KeyEsc:
		return "", Abandoned
	case tea.KeyCtrlC:
		return text, Left
	case tea.KeyBackspace:
		r := []rune(text)
		if len(r) == 0 {
			return "", Abandoned
		}
		return string(r[:len(r)-1]), Typing
	case tea.KeyRunes, tea.KeySpace:
		return text + string(msg.Runes), Typing
	}
	return text, Typing
}
