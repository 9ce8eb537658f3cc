package factory

import (
	"fmt"
	"path/filepath"

	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/journal"
)

// Change is one entry of the journal; package journal has its format.
type Change = journal.Entry

// JournalPath is the file of the journal, one JSON object per line.
func (f *Factory) JournalPath() string {
	return filepath.Join(f.xdg("XDG_STATE_HOME", filepath.Join(".local", "state")), "kctl", "history.jsonl")
}

// Record appends changes to the journal. A journal that cannot be written is said on stderr and does not
// fail a change that was made.
func (f *Factory) Record(changes ...Change) {
	if len(changes) == 0 {
		return
	}
	for i := range changes {
		changes[i].Undoes = f.Undoing
	}
	if err := journal.Append(f.JournalPath(), f.Now(), changes...); err != nil {
		fmt.Fprintf(f.IO.Err, "kctl: the change is not in the journal: %v\n", err)
	}
}

// History reads the journal, oldest first. A missing journal is empty; lines that are no JSON are skipped.
func (f *Factory) History() ([]Change, error) {
	entries, err := journal.Read(f.JournalPath())
	if err != nil {
		return nil, exit.Usagef("read the journal: %v", err)
	}
	return entries, nil
}

// Commit is the last part of every change: it asks for consent to a plan that was printed, makes the change, and
// writes into the journal what do returns, also when it failed half-way.
func (f *Factory) Commit(c ChangeFlags, question string, do func() ([]Change, error)) error {
	if err := f.Confirm(c, question); err != nil {
		return err
	}
	changes, err := do()
	f.Record(changes...)
	return err
}
