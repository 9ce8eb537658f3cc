package obs

import (
	"sync"
	"time"
)

// Limiter bounds how many lines per second a repeated event may log, so that a client that misbehaves ten
// thousand times a second does not fill the disk. The zero value allows none; set PerSecond. Safe for concurrent
// use.
type Limiter struct {
	PerSecond int

	mu      sync.Mutex
	second  int64 // guarded by mu: the second being counted
	used    int   // guarded by mu
	dropped int   // guarded by mu: since the last line that was allowed
}

// Allow reports whether a line may be logged now, and how many were not since the last one that was.
func (l *Limiter) Allow(now time.Time) (ok bool, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := now.Unix(); s != l.second {
		l.second, l.used = s, 0
	}
	if l.used >= l.PerSecond {
		l.dropped++
		return false, 0
	}
	l.used++
	dropped, l.dropped = l.dropped, 0
	return true, dropped
}
