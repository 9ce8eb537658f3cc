package factory

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"kctl/admin/rows"
	"kctl/cmd/internal/cli/exit"
	"kctl/cmd/internal/cli/journal"
)

// Change is one entry of the journal; package journal has its format.
type Change = journal.Entry

// JournalPath is the file of the journal, one JSON object per line.
func (f *Factory) JournalPath() string {
	return filepath.Join(f.xdg("XDG_STATE_HOME", filepath.Join(".local", "state")), "kctl", "history.jsonl")
}

// Record appends changes to the journal. A journal that cannot be written does not fail a change that was made: the
// command that takes it back is said instead.
func (f *Factory) Record(changes ...Change) {
	if len(changes) == 0 {
		return
	}
	for i := range changes {
		changes[i].Undoes = f.Undoing
	}
	err := journal.Append(f.JournalPath(), f.Now(), changes...)
	if err == nil {
		return
	}
	f.Warn("the change is not in the journal: %v", err)
	for i := range changes {
		if changes[i].Result == journal.Done && changes[i].Undo != "" {
			f.Warn("what takes back %s %s: %s", changes[i].Command, changes[i].Object, changes[i].Undo)
		}
	}
}

// CheckJournal warns, once, before a change is made that cannot be written into the journal.
func (f *Factory) CheckJournal() {
	if f.journalChecked {
		return
	}
	f.journalChecked = true
	if err := journal.Writable(f.JournalPath()); err != nil {
		f.Warn("the journal cannot be written (%v): kctl history will not know this change", err)
	}
}

// Warn says something that must not be missed on stderr; to a program as one JSON object on a line of its own.
func (f *Factory) Warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !f.Machine() {
		fmt.Fprintf(f.IO.Err, "kctl: warning: %s\n", text)
		return
	}
	enc := json.NewEncoder(f.IO.Err)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(struct { // stderr is all there is
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Warning
	}{rows.APIVersion, "Warning", Warning{text}})
}

// Note says where an answer comes from on stderr; to a program as a warning.
func (f *Factory) Note(text string) {
	if f.Machine() {
		f.Warn("%s", text)
		return
	}
	f.Say("%s", text)
}

// Warning is a warning for programs: one object on a line of stderr.
type Warning struct {
	Warning string `json:"warning"`
}

// History reads the journal, oldest first. A missing journal is empty; lines that are no entries are named and skipped.
func (f *Factory) History() ([]Change, error) {
	entries, bad, err := journal.Read(f.JournalPath())
	if err != nil {
		return nil, &exit.Error{Code: exit.Failed, Msg: fmt.Sprintf("read the journal: %v", err)}
	}
	for _, b := range bad {
		f.Warn("%s:%d is skipped: %s", f.JournalPath(), b.Line, b.Why)
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
