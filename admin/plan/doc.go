// Package plan computes what a change will do before anything is written: which leaders an election moves,
// what a new topic looks like, which names are legal. It is pure; the same plan is printed by the command
// line, shown by the terminal interface and executed by package admin.
package plan
