package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Now is the processor time that this process has used, user and system together, of all its goroutines.
func Now(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Spent is the processor time that fn takes.
func Spent(t testing.TB, fn func()) time.Duration {
	t.Helper()
	before := Now(t)
	fn()
	return Now(t) - before
}
