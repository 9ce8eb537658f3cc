// Package quota measures rates as Apache Kafka measures those of replication (SimpleRate of KIP-73): bytes are
// counted in windows of a second, the eleven youngest are kept, and the rate is what they hold divided by the time
// since the oldest began. A quota is exceeded while the rate is above it, so one that was just reached admits one
// more portion, of whatever size: nothing gets stuck behind a low one.
//
// A Throttle adds which replicas a bound is for and which of them it holds back. The broker's shell and the simulation
// decide with the same one.
//
// The clock is handed in. The package does no I/O and starts nothing; values are not safe for concurrent use.
package quota

import "time"

// Window is the length of one sample, Windows how many are kept: replication.quota.window.size.seconds and
// replication.quota.window.num at their defaults.
const (
	Window  = time.Second
	Windows = 11
)

// Rate is a windowed rate in bytes per second. The zero value has counted nothing.
type Rate struct {
	samples [Windows]sample
	current int
}

type sample struct {
	start time.Time // zero: unused
	bytes int64
}

// Record counts n bytes at now.
func (r *Rate) Record(now time.Time, n int64) {
	s := &r.samples[r.current]
	if !s.start.IsZero() && now.Sub(s.start) >= Window {
		r.current = (r.current + 1) % Windows
		s = &r.samples[r.current]
		*s = sample{}
	}
	if s.start.IsZero() {
		s.start = now
	}
	s.bytes += n
}

// PerSecond is the rate at now; 0 when nothing was counted lately.
func (r *Rate) PerSecond(now time.Time) float64 {
	var total int64
	var age time.Duration
	for i := range r.samples {
		s := &r.samples[i]
		if s.start.IsZero() || now.Sub(s.start) >= Windows*Window {
			continue
		}
		total += s.bytes
		age = max(age, now.Sub(s.start))
	}
	return float64(total) / max(age, Window).Seconds()
}

// Exceeds reports whether the rate at now is above bound bytes per second.
func (r *Rate) Exceeds(now time.Time, bound int64) bool { return r.PerSecond(now) > float64(bound) }
