package quota_test

import (
	"testing"
	"time"

	"kctl/broker/quota"
)

// TestRate: the first second counts as a whole one, then the time since the oldest window counts, and what is
// older than eleven windows does not.
func TestRate(t *testing.T) {
	at := func(ms int64) time.Time { return time.UnixMilli(1_000_000 + ms) }
	var r quota.Rate
	if got := r.PerSecond(at(0)); got != 0 {
		t.Errorf("nothing counted: %v", got)
	}
	r.Record(at(0), 1000)
	for ms, want := range map[int64]float64{0: 1000, 500: 1000, 1000: 1000, 2000: 500, 10000: 100, 11000: 0} {
		if got := r.PerSecond(at(ms)); got != want {
			t.Errorf("after %d ms: %v, want %v", ms, got, want)
		}
	}
	r.Record(at(1500), 500) // a window of its own
	if got := r.PerSecond(at(2000)); got != 750 {
		t.Errorf("two windows: %v", got)
	}
	if got := r.PerSecond(at(12000)); got != 500/10.5 {
		t.Errorf("the first window is too old: %v", got)
	}
}

// TestAdmitted: whoever takes portions only while the quota is not exceeded gets the quota, give or take a portion,
// and never nothing.
func TestAdmitted(t *testing.T) {
	const seconds = 60
	for _, tt := range []struct{ bound, portion int64 }{{10_000, 1000}, {1000, 1000}, {1_000_000, 3000}, {100, 5000}} {
		var r quota.Rate
		admitted := int64(0)
		start := time.Unix(5000, 0)
		for ms := int64(0); ms < seconds*1000; ms++ {
			now := start.Add(time.Duration(ms) * time.Millisecond)
			if !r.Exceeds(now, tt.bound) {
				r.Record(now, tt.portion)
				admitted += tt.portion
			}
		}
		low, high := tt.bound*seconds*9/10, tt.bound*seconds*12/10+2*tt.portion
		if most := tt.portion * 1000 * seconds; low > most {
			low = most
		}
		if least := tt.portion * (seconds/quota.Windows + 1); high < least { // a portion that is forgotten is followed by another
			high = least
		}
		if admitted < low || admitted > high {
			t.Errorf("bound %d, portions of %d: %d bytes in %d s, want %d to %d", tt.bound, tt.portion, admitted, seconds, low, high)
		}
	}
}

// TestClockGoesBack: no rate is negative or infinite.
func TestClockGoesBack(t *testing.T) {
	var r quota.Rate
	r.Record(time.Unix(100, 0), 10)
	r.Record(time.Unix(50, 0), 10)
	if got := r.PerSecond(time.Unix(50, 0)); got != 20 {
		t.Errorf("%v", got)
	}
}
