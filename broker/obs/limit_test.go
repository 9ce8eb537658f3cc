package obs

import (
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	l := Limiter{PerSecond: 2}
	now := time.Unix(100, 0)
	var allowed int
	for range 10 {
		if ok, _ := l.Allow(now); ok {
			allowed++
		}
	}
	if allowed != 2 {
		t.Errorf("%d lines in a second, want 2", allowed)
	}
	if ok, dropped := l.Allow(now.Add(time.Second)); !ok || dropped != 8 {
		t.Errorf("next second: %v with %d dropped, want 8", ok, dropped)
	}
	if _, dropped := l.Allow(now.Add(2 * time.Second)); dropped != 0 {
		t.Errorf("%d dropped twice", dropped)
	}
}
