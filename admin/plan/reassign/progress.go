package reassign

import (
	"fmt"
	"strings"
	"time"

	"kctl/zkutil/cluster"
)

// Copied is how much of a new replica is there, in bytes. Total is the size of the replica it is copied from.
type Copied struct {
	Done, Total int64
}

// Left returns the bytes that are still to be copied.
func (c Copied) Left() int64 { return max(c.Total-c.Done, 0) }

// Percent returns how much is there, from 0 to 100; 100 of nothing.
func (c Copied) Percent() int {
	if c.Total <= 0 {
		return 100
	}
	return int(min(max(c.Done, 0), c.Total) * 100 / c.Total)
}

// CopiedOf compares a new replica with the largest of the replicas that were there before. sizes are the bytes of the
// partition's replicas; a new one that is in the ISR counts as copied.
func CopiedOf(seen *Seen, sizes map[cluster.BrokerID]int64, id cluster.BrokerID) Copied {
	var c Copied
	for _, r := range seen.Original() {
		c.Total = max(c.Total, sizes[r])
	}
	c.Done = min(sizes[id], c.Total)
	for _, r := range seen.ISR {
		if r == id {
			c.Done = c.Total
		}
	}
	return c
}

// Meter measures a rate over a sliding window.
type Meter struct {
	Window  time.Duration // default 30 s
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// Add notes how much was done at a time; times must not go back.
func (m *Meter) Add(at time.Time, done int64) {
	window := m.Window
	if window <= 0 {
		window = 30 * time.Second
	}
	m.samples = append(m.samples, sample{at, done})
	for len(m.samples) > 2 && at.Sub(m.samples[0].at) > window {
		m.samples = m.samples[1:]
	}
}

// Rate returns bytes per second over the window; 0 when it is not known or nothing is gained.
func (m *Meter) Rate() float64 {
	if len(m.samples) < 2 {
		return 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	d := last.at.Sub(first.at).Seconds()
	if d <= 0 || last.done <= first.done {
		return 0
	}
	return float64(last.done-first.done) / d
}

// ETA returns the time that left bytes take at the present rate, rounded up to seconds; ok is false without a rate.
func (m *Meter) ETA(left int64) (time.Duration, bool) {
	if left <= 0 {
		return 0, true
	}
	r := m.Rate()
	if r <= 0 {
		return 0, false
	}
	s := float64(left)/r + 0.999
	if s > 1e9 {
		return 0, false
	}
	return time.Duration(s) * time.Second, true
}

// Bar draws a progress bar of width characters.
func Bar(c Copied, width int) string {
	n := width * c.Percent() / 100
	return "[" + strings.Repeat("=", n) + strings.Repeat(" ", width-n) + "]"
}

// Size writes bytes with a binary unit: 0 B, 512 B, 1.5 KiB, 20 GiB.
func Size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	f, u := float64(n), 0
	for f >= 1024 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 || f >= 10 {
		return fmt.Sprintf("%.0f %s", f, units[u])
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// ParseSize reads bytes: a number, or one with K, M, G or T (also KB, KiB, ...), all powers of 1024.
func ParseSize(s string) (int64, error) {
	text := strings.ToUpper(strings.TrimSpace(s))
	digits := strings.TrimRight(text, "KMGTIB ")
	shift := map[string]uint{"": 0, "B": 0, "K": 10, "KB": 10, "KIB": 10, "M": 20, "MB": 20, "MIB": 20, "G": 30, "GB": 30, "GIB": 30, "T": 40, "TB": 40, "TIB": 40}
	by, ok := shift[strings.TrimSpace(text[len(digits):])]
	var n int64
	if _, err := fmt.Sscanf(digits, "%d", &n); err != nil || !ok || fmt.Sprint(n) != digits || n < 0 || n > (1<<62)>>by {
		return 0, fmt.Errorf("%q is not a number of bytes (such as 50000000 or 50M)", s)
	}
	return n << by, nil
}
