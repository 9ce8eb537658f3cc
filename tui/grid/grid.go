// Package grid lays out the tables of the terminal interface: pure functions from cells and a width to lines.
package grid

import (
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Grid is a table that is fitted to a width. Columns without any value go first, then those named in Drop, one after
// the other; then the column named Flex is cut with an ellipsis. What is left over is cut at the right edge.
type Grid struct {
	Header []string
	Right  []bool
	Rows   [][]string
	Drop   []string
	Flex   string
}

const (
	gap     = 2
	marker  = 2  // columns of the mark in front of the selected row
	flexMin = 12 // columns that are left of a column that is cut
)

func (g *Grid) widths() []int {
	widths := make([]int, len(g.Header))
	for _, row := range append([][]string{g.Header}, g.Rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	return widths
}

func (g *Grid) need() int {
	n := marker + gap*(len(g.Header)-1)
	for _, w := range g.widths() {
		n += w
	}
	return n
}

// Fit returns the table as it fits a width, and the names of the columns with values that had to go.
func (g *Grid) Fit(width int) (*Grid, []string) {
	out := &Grid{Header: g.Header, Right: g.Right, Rows: g.Rows, Flex: g.Flex}
	for i := len(g.Header) - 1; i > 0 && out.need() > width; i-- {
		if name := g.Header[i]; name != g.Flex && !slices.ContainsFunc(g.Rows, func(r []string) bool { return r[i] != "" && r[i] != "-" }) {
			out = out.without(name)
		}
	}
	var hidden []string
	for _, name := range g.Drop {
		if out.need()-out.spare() <= width {
			break
		}
		if slices.Contains(out.Header, name) {
			out, hidden = out.without(name), append(hidden, name)
		}
	}
	if i := slices.Index(out.Header, g.Flex); i >= 0 && out.need() > width {
		out = out.cut(i, max(flexMin, out.widths()[i]-(out.need()-width)))
	}
	return out, hidden
}

// spare is by how much the flexible column may be cut.
func (g *Grid) spare() int {
	i := slices.Index(g.Header, g.Flex)
	if i < 0 {
		return 0
	}
	return max(0, g.widths()[i]-max(flexMin*2, runewidth.StringWidth(g.Flex)))
}

func (g *Grid) without(name string) *Grid {
	i := slices.Index(g.Header, name)
	out := &Grid{Header: slices.Delete(slices.Clone(g.Header), i, i+1), Right: slices.Delete(slices.Clone(g.Right), i, i+1), Flex: g.Flex}
	for _, r := range g.Rows {
		out.Rows = append(out.Rows, slices.Delete(slices.Clone(r), i, i+1))
	}
	return out
}

func (g *Grid) cut(column, width int) *Grid {
	out := &Grid{Header: g.Header, Right: g.Right, Flex: g.Flex}
	for _, r := range g.Rows {
		r = slices.Clone(r)
		r[column] = runewidth.Truncate(r[column], width, "…")
		out.Rows = append(out.Rows, r)
	}
	return out
}

// Lines returns the header and the rows, each exactly width columns wide. A mark is put in front of the selected row
// (-1: none).
func (g *Grid) Lines(width, selected int) []string {
	widths := g.widths()
	out := make([]string, 0, len(g.Rows)+1)
	out = append(out, Fit("  "+g.line(g.Header, widths), width))
	for i, row := range g.Rows {
		mark := "  "
		if i == selected {
			mark = "> "
		}
		out = append(out, Fit(mark+g.line(row, widths), width))
	}
	return out
}

func (g *Grid) line(row []string, widths []int) string {
	var b strings.Builder
	for i, c := range row {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(c))
		if g.Right[i] {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	return b.String()
}

// Fit cuts or pads a line to exactly width columns; what is cut is marked.
func Fit(s string, width int) string {
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

// Wrap breaks a text at its blanks into lines of exactly width columns, indented by two.
func Wrap(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && runewidth.StringWidth(line)+1+runewidth.StringWidth(word) > width-2 {
			out = append(out, Fit("  "+line, width))
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(out, Fit("  "+line, width))
}

// printable drops control characters, so that no name or error can move the cursor.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}
