// Package output prints rows: tables for people, JSON, YAML and names for scripts. Only it writes to the
// standard output of a command that answers with rows.
package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"kctl/admin/rows"
)

// Format is a value of -o.
type Format string

// The formats.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// Formats lists them in the order of the help text.
func Formats() []string { return []string{"table", "wide", "json", "yaml", "name"} }

// Machine reports whether the format is for programs, so that errors are JSON too.
func (f Format) Machine() bool { return f == JSON || f == YAML }

// Printer prints in one format. TTY draws tables for people, as wide as the terminal at most; otherwise columns are plain
// and stable.
type Printer struct {
	Out       io.Writer
	Format    Format
	NoHeaders bool
	TTY       bool
	Width     int // columns of the terminal; 0 asks it
}

// prettyMax is the number of rows up to which a table is drawn: drawing holds all rows in memory.
const prettyMax = 2000

// List prints many rows. errs are parts of the answer that are missing; a table leaves them to the caller.
func List[T any](p *Printer, k rows.Kind[T], items []T, errs []rows.ErrorRow) error {
	switch p.Format {
	case JSON:
		return jsonList(p.Out, k.ListName(), items, errs)
	case YAML:
		return yamlList(p.Out, k.ListName(), items, errs)
	case Name:
		w := bufio.NewWriter(p.Out)
		for i := range items {
			fmt.Fprintln(w, k.ID(items[i]))
		}
		return w.Flush()
	}
	wide := p.Format == Wide
	cells := make([][]string, len(items))
	for i := range items {
		cells[i] = k.Cells(items[i], wide)
		for j := range cells[i] {
			cells[i][j] = Clean(cells[i][j])
		}
	}
	return p.table(k.Header(wide), k.Rights(wide), cells)
}

// One prints one row: a document with its fields, or one line per field.
func One[T any](p *Printer, k rows.Kind[T], item T) error {
	switch p.Format {
	case JSON, YAML:
		return Object(p, k.Name, item)
	case Name:
		_, err := fmt.Fprintln(p.Out, k.ID(item))
		return err
	}
	wide := p.Format == Wide
	names, cells := k.Header(wide), k.Cells(item, wide)
	width := 0
	for _, n := range names {
		width = max(width, len(n))
	}
	w := bufio.NewWriter(p.Out)
	for i, n := range names {
		if p.NoHeaders {
			fmt.Fprintln(w, cells[i])
			continue
		}
		fmt.Fprintf(w, "%-*s  %s\n", width+1, n+":", Clean(cells[i]))
	}
	return w.Flush()
}

// Clean takes control characters out of a text from the cluster, so that no name, rack or error message can
// steer the terminal or break a line.
func Clean(s string) string {
	if strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Object prints a document with apiVersion and kind in front of the fields of v, in JSON or YAML.
func Object(p *Printer, kind string, v any) error {
	body, err := marshal(v)
	if err != nil {
		return err
	}
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q`, rows.APIVersion, kind)
	if !bytes.Equal(body, []byte("{}")) {
		head += ","
	}
	doc := append([]byte(head), body[1:]...)
	if p.Format == YAML {
		return new(yamlWriter).document(p.Out, doc)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, doc, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = p.Out.Write(b.Bytes())
	return err
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// table prints rows of cells: drawn where the terminal has room for it, else without lines, else with the columns that
// do not fit below their rows. Without a terminal nothing depends on a width.
func (p *Printer) table(header []string, right []bool, cells [][]string) error {
	if !p.TTY {
		return p.plain(header, right, cells)
	}
	widths := widthsOf(append([][]string{header}, cells...), len(header))
	limit := p.columns()
	switch {
	case limit > 0 && plainWidth(widths) > limit:
		return p.fitted(header, right, cells, aside(header, right, cells, widths, limit))
	case limit > 0 && boxWidth(widths) > limit, len(cells) > prettyMax:
		return p.plain(header, right, cells)
	}
	return p.pretty(header, right, cells)
}

// Cells prints a table that has no Kind.
func (p *Printer) Cells(header []string, right []bool, cells [][]string) error {
	return p.table(header, right, cells)
}

func (p *Printer) pretty(header []string, right []bool, cells [][]string) error {
	if len(cells) == 0 {
		return nil // a box without rows says nothing
	}
	align := make([]tw.Align, len(right))
	for i, r := range right {
		align[i] = tw.AlignLeft
		if r {
			align[i] = tw.AlignRight
		}
	}
	t := tablewriter.NewTable(p.Out,
		tablewriter.WithConfig(tablewriter.Config{
			Header: tw.CellConfig{Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone}, Alignment: tw.CellAlignment{PerColumn: align}},
			Row:    tw.CellConfig{Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone}, Alignment: tw.CellAlignment{PerColumn: align}},
		}),
		tablewriter.WithSymbols(tw.NewSymbols(tw.StyleRounded)),
	)
	if !p.NoHeaders {
		t.Header(header)
	}
	if err := t.Bulk(cells); err != nil {
		return err
	}
	return t.Render()
}

// plain prints columns separated by at least two blanks, without trailing blanks and without cutting.
func (p *Printer) plain(header []string, right []bool, cells [][]string) error {
	if !p.NoHeaders {
		cells = append([][]string{header}, cells...)
	}
	widths := widthsOf(cells, len(header))
	w := bufio.NewWriterSize(p.Out, 64<<10)
	for _, row := range cells {
		writeRow(w, row, right, widths)
	}
	return w.Flush()
}

func writeRow(w *bufio.Writer, row []string, right []bool, widths []int) {
	var line strings.Builder
	for i, c := range row {
		if i > 0 {
			blanks(&line, gap)
		}
		pad := widths[i] - displayWidth(c)
		if right[i] {
			blanks(&line, pad)
		}
		line.WriteString(c)
		if !right[i] && i < len(row)-1 {
			blanks(&line, pad)
		}
	}
	w.WriteString(strings.TrimRight(line.String(), " "))
	w.WriteByte('\n')
}

func displayWidth(s string) int {
	if len(s) == utf8.RuneCountInString(s) {
		return len(s)
	}
	return runewidth.StringWidth(s)
}

func blanks(b *strings.Builder, n int) {
	for range n {
		b.WriteByte(' ')
	}
}
