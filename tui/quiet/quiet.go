// Package quiet keeps the terminal from being asked for its colours while the process starts.
//
// Bubble Tea v1 has an init function that asks the terminal for its background and waits for the answer, in
// every program that links it: also in `kctl version`, for up to five seconds on a terminal that does not
// answer, and it swallows what was typed meanwhile. The question is left out where CI is set. Go runs the init
// functions of packages in the order of their import paths as soon as their own imports are ready; this
// package imports os alone, and Bubble Tea needs os/exec and os/signal, which sort behind it: so this init
// runs first. Restore undoes it; TestInitOrder keeps the claim true.
package quiet

import "os"

const variable = "CI"

var set = func() bool {
	if _, there := os.LookupEnv(variable); there {
		return false
	}
	return os.Setenv(variable, "kctl") == nil
}()

// Restore takes the variable away again. Call it first in main.
func Restore() {
	if set {
		_ = os.Unsetenv(variable) // cannot fail for a valid name
		set = false
	}
}
