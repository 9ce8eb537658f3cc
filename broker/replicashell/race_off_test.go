//go:build !race

package replicashell

const raceEnabled = false
