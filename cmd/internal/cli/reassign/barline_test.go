package reassign

import (
	"strings"
	"testing"
	"time"

	"kctl/admin"
	"kctl/admin/plan/reassign"
)

// TestBarLineFits: the bar is drawn over itself, so it is never as wide as the terminal, whatever the terminal's width; what is most
// needed stays longest.
func TestBarLineFits(t *testing.T) {
	r := admin.ReassignProgress{
		Batch: 10, Batches: 200, Done: 1000, Steps: 20_000, Rate: 2.2 * (1 << 20), ETA: 23 * time.Second, ETAKnown: true,
		Copied: reassign.Copied{Done: 15 << 20, Total: 58 << 20},
	}
	for columns := 1; columns < 200; columns++ {
		line := barLine(r, columns)
		if len(line) >= columns && line != "25%" {
			t.Fatalf("%d columns: %d: %s", columns, len(line), line)
		}
		if !strings.Contains(line, "25%") {
			t.Errorf("%d columns: %s", columns, line)
		}
	}
	for columns, want := range map[int]string{
		0:   "[======                  ] 25%  15 MiB of 58 MiB  2.2 MiB/s  ETA 23s  batch 10 of 200  1000 of 20000 partitions",
		100: "[===         ] 25%  15 MiB of 58 MiB  2.2 MiB/s  ETA 23s  batch 10 of 200  1000 of 20000 partitions",
		80:  "25%  15 MiB of 58 MiB  2.2 MiB/s  ETA 23s  batch 10 of 200",
		40:  "25%  15 MiB of 58 MiB  2.2 MiB/s",
	} {
		if got := barLine(r, columns); got != want {
			t.Errorf("%d columns:\n got %q\nwant %q", columns, got, want)
		}
	}
}
