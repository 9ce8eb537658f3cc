package overview

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// grid is a table that is cut to a width: columns get what their cells need, from the left; the last one
// that fits only in part is cut with an ellipsis.
type grid struct {
	header []string
	right  []bool
	rows   [][]string
}

const gap = 2

// lines returns the header and the rows, each exactly width columns wide. marker is put in front of the
// selected row (-1: none).
func (g *grid) lines(width, selected int) []string {
	widths := make([]int, len(g.header))
	for _, row := range append([][]string{g.header}, g.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	out := make([]string, 0, len(g.rows)+1)
	out = append(out, fit("  "+g.line(g.header, widths), width))
	for i, row := range g.rows {
		mark := "  "
		if i == selected {
			mark = "> "
		}
		out = append(out, fit(mark+g.line(row, widths), width))
	}
	return out
}

func (g *grid) line(row []string, widths []int) string {
	var b strings.Builder
	for i, c := range row {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(c))
		if g.right[i] {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return b.String()
}

// fit cuts or pads a line to exactly width columns.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	s = strings.Map(printable, s)
	if w := runewidth.StringWidth(s); w <= width {
		return s + strings.Repeat(" ", width-w)
	}
	trimmed := strings.TrimRight(s, " ")
	if runewidth.StringWidth(trimmed) <= width {
		return runewidth.FillRight(trimmed, width)
	}
	return runewidth.FillRight(runewidth.Truncate(s, width, "…"), width)
}

// printable drops control characters, so that no name or error can move the cursor.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}
