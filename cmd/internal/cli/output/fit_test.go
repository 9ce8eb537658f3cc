package output

import (
	"bytes"
	"strings"
	"testing"
)

// TestFit: a terminal with room draws a table, a narrower one leaves out the lines, a still narrower one puts below its
// row what does not fit, uncut; columns without any value are left out first, and numbers stay beside their names.
func TestFit(t *testing.T) {
	header := []string{"ID", "OBJECT", "ERROR", "LAG", "FIX"}
	right := []bool{false, false, false, true, false}
	cells := [][]string{{"a", "topic orders", "-", "17", "kctl elect preferred orders --yes"}, {"b", "topic x", "-", "3", "-"}}
	for _, tt := range []struct {
		width int
		want  []string
	}{
		{200, []string{
			"╭────┬──────────────┬───────┬─────┬───────────────────────────────────╮",
			"│ ID │ OBJECT       │ ERROR │ LAG │ FIX                               │",
			"├────┼──────────────┼───────┼─────┼───────────────────────────────────┤",
			"│ a  │ topic orders │ -     │  17 │ kctl elect preferred orders --yes │",
			"│ b  │ topic x      │ -     │   3 │ -                                 │",
			"╰────┴──────────────┴───────┴─────┴───────────────────────────────────╯",
		}},
		{70, []string{
			"ID  OBJECT        ERROR  LAG  FIX",
			"a   topic orders  -       17  kctl elect preferred orders --yes",
			"b   topic x       -        3  -",
		}},
		{60, []string{
			"ID  OBJECT        LAG  FIX",
			"a   topic orders   17  kctl elect preferred orders --yes",
			"b   topic x         3  -",
		}},
		{40, []string{
			"ID  OBJECT        LAG",
			"a   topic orders   17",
			"    FIX  kctl elect preferred orders --yes",
			"b   topic x         3",
		}},
		{10, []string{
			"ID  LAG",
			"a    17",
			"    OBJECT  topic orders",
			"    FIX     kctl elect preferred orders --yes",
			"b     3",
			"    OBJECT  topic x",
		}},
	} {
		var b bytes.Buffer
		p := &Printer{Out: &b, Format: Table, TTY: true, Width: tt.width}
		if err := p.Cells(header, right, cells); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(b.String(), "\n"); got != strings.Join(tt.want, "\n") {
			t.Errorf("%d columns:\n%s\nwant\n%s", tt.width, got, strings.Join(tt.want, "\n"))
		}
	}
	var b bytes.Buffer
	if err := (&Printer{Out: &b, Width: 10}).Cells(header, right, cells); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "topic orders  -       17  kctl elect preferred orders --yes\n") {
		t.Errorf("a pipe has no width:\n%s", b.String())
	}
}
