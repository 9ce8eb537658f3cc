package dump

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"unicode/utf8"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/factory"
	"kctl/cmd/internal/cli/output"
)

// stream prints rows as they come, since a file may have more than fit into memory: text in columns that only grow,
// JSON one object a line, YAML one document a row.
type stream struct {
	w       *bufio.Writer
	format  output.Format
	headers bool
	widths  map[string][]int // of the columns of each kind that the current file has shown
	bad     []string
}

func newStream(f *factory.Factory) (*stream, error) {
	p, err := f.Printer()
	if err != nil {
		return nil, err
	}
	return &stream{w: bufio.NewWriterSize(f.IO.Out, 64<<10), format: p.Format, headers: !p.NoHeaders, widths: map[string][]int{}}, nil
}

// put prints one row.
func put[T any](s *stream, k rows.Kind[T], row T) error {
	switch s.format {
	case output.JSON:
		return s.json(k.Name, row)
	case output.YAML:
		if _, err := io.WriteString(s.w, "---\n"); err != nil {
			return err
		}
		return output.Object(&output.Printer{Out: s.w, Format: output.YAML}, k.Name, row)
	case output.Name:
		_, err := fmt.Fprintln(s.w, output.Clean(k.ID(row)))
		return err
	}
	wide := s.format == output.Wide
	width := s.widths[k.Name]
	if width == nil {
		width = make([]int, len(k.Header(wide)))
		s.widths[k.Name] = width
		if s.headers {
			if err := s.line(width, k.Header(wide), k.Rights(wide)); err != nil {
				return err
			}
		}
	}
	return s.line(width, k.Cells(row, wide), k.Rights(wide))
}

func (s *stream) json(kind string, row any) error {
	head := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}{rows.APIVersion, kind}
	a, err := json.Marshal(head)
	if err != nil {
		return err
	}
	b, err := compact(row)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.w, "%s,%s\n", a[:len(a)-1], b[1:])
	return err
}

func compact(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(strings.TrimSuffix(b.String(), "\n")), err
}

func (s *stream) line(width []int, cells []string, right []bool) error {
	var b strings.Builder
	for i, c := range cells {
		c = output.Clean(c)
		n := utf8.RuneCountInString(c)
		if i < len(cells)-1 {
			width[i] = max(width[i], n)
		}
		pad := strings.Repeat(" ", max(width[i]-n, 0))
		if i > 0 {
			b.WriteString("  ")
		}
		if right[i] {
			b.WriteString(pad + c)
		} else {
			b.WriteString(c + pad)
		}
	}
	_, err := fmt.Fprintln(s.w, strings.TrimRight(b.String(), " "))
	return err
}

// file closes a file: its summary, and what is damaged.
func (s *stream) file(r *FileRow, what string) error {
	for i := range r.Damage {
		s.bad = append(s.bad, r.File+": "+damageText(&r.Damage[i]))
	}
	switch s.format {
	case output.JSON, output.YAML:
		return put(s, FileKind, *r)
	case output.Name:
		return nil
	}
	clear(s.widths) // the next file has headings of its own
	text := fmt.Sprintf("# %s: %d %s", output.Clean(r.File), r.Entries, what)
	if r.Records >= 0 {
		text += fmt.Sprintf(", %d records", r.Records)
	}
	if r.BaseOffset >= 0 {
		text += fmt.Sprintf(", offsets %d to %d", r.BaseOffset, r.NextOffset-1)
	}
	text += fmt.Sprintf(", %d of %d bytes good", r.GoodBytes, r.Size)
	if r.Unused > 0 {
		text += fmt.Sprintf(" (%d preallocated)", r.Unused)
	}
	fmt.Fprintln(s.w, text)
	for i := range r.Damage {
		fmt.Fprintf(s.w, "# %s\n", output.Clean(damageText(&r.Damage[i])))
	}
	return nil
}

// maxNamed bounds how many damages an error message names; all are in the output.
const maxNamed = 5

// close flushes and turns damage into the exit code of a check with findings.
func (s *stream) close(err error) error {
	if ferr := s.w.Flush(); err == nil {
		err = ferr
	}
	if err != nil || len(s.bad) == 0 {
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader of our output has seen enough
		}
		return err
	}
	msg := strings.Join(s.bad[:min(len(s.bad), maxNamed)], "; ")
	if n := len(s.bad) - maxNamed; n > 0 {
		msg += fmt.Sprintf("; and %d more", n)
	}
	return &exit.Error{Code: exit.Problems, Msg: msg}
}
