// Package theme holds the styles of the terminal interface. Without colours (NO_COLOR, a terminal that has
// none, tests) they add nothing to the text, and everything they say is also said in words or marks.
package theme

import (
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Theme is a set of styles.
type Theme struct {
	Title, Head, Dim, Selected, Bad, Warn, Focus lipgloss.Style
}

// New returns the styles for a terminal with or without colours. The terminal is not asked.
func New(color bool) Theme {
	r := lipgloss.NewRenderer(nil)
	r.SetHasDarkBackground(true)
	r.SetColorProfile(termenv.Ascii)
	if color {
		r.SetColorProfile(termenv.ANSI256)
	}
	s := r.NewStyle
	return Theme{
		Title:    s().Bold(true).Foreground(lipgloss.Color("15")).Background(lipgloss.Color("24")),
		Head:     s().Foreground(lipgloss.Color("244")),
		Dim:      s().Foreground(lipgloss.Color("244")),
		Selected: s().Reverse(true),
		Bad:      s().Foreground(lipgloss.Color("203")).Bold(true),
		Warn:     s().Foreground(lipgloss.Color("214")),
		Focus:    s().Foreground(lipgloss.Color("39")).Bold(true),
	}
}
