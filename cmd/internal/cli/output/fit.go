package output

import (
	"bufio"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
)

// columns is how many columns the terminal has; 0 when nobody knows.
func (p *Printer) columns() int {
	if p.Width > 0 {
		return p.Width
	}
	if !p.TTY {
		return 0
	}
	return Columns(p.Out)
}

// Columns is how many columns the terminal behind out has now; 0 when it is no terminal or nobody knows.
func Columns(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return 0
	}
	w, _, err := term.GetSize(file.Fd())
	if err != nil {
		return 0
	}
	return w
}

// boxWidth is what a drawn table of these columns takes, plainWidth one without lines.
func boxWidth(widths []int) int   { return plainWidth(widths) + len(widths) + 3 }
func plainWidth(widths []int) int { return sum(widths) + gap*(len(widths)-1) }

const gap = 2

func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

func widthsOf(cells [][]string, n int) []int {
	widths := make([]int, n)
	for _, row := range cells {
		for i, c := range row {
			widths[i] = max(widths[i], displayWidth(c))
		}
	}
	return widths
}

// aside chooses the columns that do not fit beside the others, the first never: those without any value, which cost
// nothing, then the widest ones of text, then any.
func aside(header []string, right []bool, cells [][]string, widths []int, limit int) []int {
	var out []int
	left := slices.Clone(widths)
	used := len(left)
	fits := func() bool { return sum(left)+gap*(used-1) <= limit }
	take := func(i int) { out, left[i], used = append(out, i), 0, used-1 }
	for i := len(header) - 1; i > 0 && !fits(); i-- {
		if !slices.ContainsFunc(cells, func(row []string) bool { return !blank(row[i]) }) {
			take(i)
		}
	}
	for _, numbers := range []bool{false, true} {
		for !fits() {
			widest := 0
			for i := 1; i < len(left); i++ {
				if left[i] > 0 && (numbers || !right[i]) && (widest == 0 || left[i] >= left[widest]) {
					widest = i
				}
			}
			if widest == 0 {
				break
			}
			take(widest)
		}
	}
	slices.Sort(out)
	return out
}

func blank(cell string) bool { return cell == "" || cell == "-" }

// fitted prints a table for a terminal that is too narrow for it: what does not fit beside the other columns comes below
// its row, named and uncut, so that a command can still be copied.
func (p *Printer) fitted(header []string, right []bool, cells [][]string, below []int) error {
	var keep []int
	for i := range header {
		if !slices.Contains(below, i) {
			keep = append(keep, i)
		}
	}
	pick := func(row []string) []string {
		out := make([]string, len(keep))
		for j, i := range keep {
			out[j] = row[i]
		}
		return out
	}
	rightKept := make([]bool, len(keep))
	for j, i := range keep {
		rightKept[j] = right[i]
	}
	names := 0
	for _, i := range below {
		if slices.ContainsFunc(cells, func(row []string) bool { return !blank(row[i]) }) {
			names = max(names, displayWidth(header[i]))
		}
	}
	table := make([][]string, len(cells))
	for r, row := range cells {
		table[r] = pick(row)
	}
	head := pick(header)
	widths := widthsOf(append([][]string{head}, table...), len(keep))
	w := bufio.NewWriterSize(p.Out, 64<<10)
	if !p.NoHeaders {
		writeRow(w, head, rightKept, widths)
	}
	for r, row := range table {
		writeRow(w, row, rightKept, widths)
		for _, i := range below {
			if !blank(cells[r][i]) {
				w.WriteString("    " + header[i] + strings.Repeat(" ", names-displayWidth(header[i])+gap) + cells[r][i] + "\n")
			}
		}
	}
	return w.Flush()
}
