// Package journal is the record of every change that kctl made on this machine: one JSON object per line, appended
// only, readable by its owner only. `kctl history` shows it, `kctl history undo N` takes an entry back.
//
// # An entry
//
// The fields of Entry are the format; all are text, none holds a secret. Unknown fields are kept out of the way of
// older programs. Lines that are no entries are skipped, and Read names them; an entry's number is its place among the
// lines that are entries, from 1. Since the file only grows, a number stays what it is.
//
// Any number of processes append at once (see Append). A journal that cannot be written never stops a change: at three
// in the morning a full disk of the operator's machine must not keep a cluster from being mended. It is said before the
// question is asked, and after the change the command that takes it back is printed instead.
//
//	time     RFC 3339, UTC, with milliseconds, set by Append
//	cluster  id of the cluster; empty for changes of kctl's own files
//	command  the verb: "configs set"
//	object   one object per entry: "topic/orders", "orders:3", "User:alice"
//	before   what was there, in words or as key=value joined by blanks
//	after    what is there now, in the same form
//	result   "done", or the error; an entry with another result than "done" changed nothing and is not undone
//	undo     for people: the command line or the action that takes it back, or why nothing can
//	undoArgs for `kctl history undo`: the arguments of a kctl command, without "kctl", --yes, --dry-run and addresses
//	undoes   Key of the entry that this one took back
//
// # How a verb makes its change undoable
//
// Give one entry per object, and in UndoArgs the command that restores Before. That command is run like any other: it
// prints its plan and asks. It must refuse when the state is no longer what this change left, so a verb that can be
// an undo takes its expectation as a flag, as in
//
//	UndoArgs: []string{"configs", "set", "topic/orders", "retention.ms=1000", "--expect", "retention.ms=2000"}
//
// Use Entry.WithUndo, which fills Undo from UndoArgs. Where no command can restore the state leave UndoArgs empty and
// say in Undo what can be done ("the records are gone").
package journal
