// Package tui is kctl's terminal interface: a root that owns the program and routes messages, pages that own
// their state (tui/page/...), the commands that do I/O (tui/data), the one table of keys (tui/keys) and the
// styles (tui/theme). It reaches the cluster through package admin only and shows the rows of admin/rows.
//
// Update never blocks and does no I/O: every request is a command whose answer carries a number, so that a
// late answer is dropped. View is a pure function of model and size. Bubble Tea runs one model at a time, so
// nothing here is locked.
package tui
