// Package check judges a cluster: which findings a snapshot holds and which leadership transitions are
// stuck. It is pure: values in, findings out; no clock, no I/O. Callers are package admin (which gathers the
// values), the command line and the terminal interface.
//
// Finding ids are stable, kebab-case and listed in IDs.
package check
