package grid

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// TestFit: what has no value goes first, then what may go, in its order, then the flexible column is cut with a mark;
// the rest is cut at the edge, and no line is ever wider than the terminal.
func TestFit(t *testing.T) {
	g := &Grid{
		Header: []string{"TOPIC", "PARTITION", "RACK", "EPOCH", "STATUS"},
		Right:  []bool{false, true, false, true, false},
		Rows:   [][]string{{"a-topic-with-a-rather-long-name", "0", "-", "17", "under-replicated"}, {"b", "12", "-", "3", "ok"}},
		Drop:   []string{"EPOCH", "PARTITION"}, Flex: "TOPIC",
	}
	for _, tt := range []struct {
		width         int
		header, row   string
		hiddenColumns string
	}{
		{90, "TOPIC                            PARTITION  RACK  EPOCH  STATUS", "a-topic-with-a-rather-long-name          0  -        17  under-replicated", ""},
		{74, "TOPIC                            PARTITION  EPOCH  STATUS", "a-topic-with-a-rather-long-name          0     17  under-replicated", ""},
		{66, "TOPIC                         PARTITION  EPOCH  STATUS", "a-topic-with-a-rather-long-…          0     17  under-replicated", ""},
		{57, "TOPIC                       PARTITION  STATUS", "a-topic-with-a-rather-lon…          0  under-replicated", "EPOCH"},
		{45, "TOPIC                      STATUS", "a-topic-with-a-rather-lo…  under-replicated", "EPOCH PARTITION"},
	} {
		fitted, hidden := g.Fit(tt.width)
		lines := fitted.Lines(tt.width, 0)
		if got := strings.TrimSpace(lines[0]); got != tt.header {
			t.Errorf("%d: %q, want %q", tt.width, got, tt.header)
		}
		if got := strings.TrimSpace(strings.TrimPrefix(lines[1], "> ")); got != tt.row {
			t.Errorf("%d: %q, want %q", tt.width, got, tt.row)
		}
		if got := strings.Join(hidden, " "); got != tt.hiddenColumns {
			t.Errorf("%d: hidden %q, want %q", tt.width, got, tt.hiddenColumns)
		}
	}
	for width := range 100 {
		fitted, _ := g.Fit(width)
		for _, l := range fitted.Lines(width, 1) {
			if w := runewidth.StringWidth(l); w != width {
				t.Fatalf("%d: %q is %d wide", width, l, w)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	if got := strings.Join(Wrap("one two three", 9), "|"); got != "  one two|  three  " {
		t.Errorf("%q", got)
	}
}
