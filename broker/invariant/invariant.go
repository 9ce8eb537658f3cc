// Package invariant holds the assertion of the pure cores. A failed assertion is a bug of ours, never a
// reaction to bytes from outside: it panics, is recovered nowhere, and takes the broker down rather than
// let it corrupt data. Assertions are always on. Safe for concurrent use.
package invariant

import "fmt"

// Assert panics with the message when cond is false.
func Assert(cond bool, format string, args ...any) {
	if !cond {
		panic("invariant violated: " + fmt.Sprintf(format, args...))
	}
}
