package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Done is the Result of a change that was made.
const Done = "done"

// Entry is one change: what was changed and what undoes it. It never holds a secret.
type Entry struct {
	Time     string   `json:"time" doc:"RFC 3339, UTC"`
	Cluster  string   `json:"cluster" doc:"cluster id"`
	Command  string   `json:"command" doc:"the verb, such as topics delete"`
	Object   string   `json:"object"`
	Before   string   `json:"before"`
	After    string   `json:"after"`
	Result   string   `json:"result" doc:"done, or the error"`
	Undo     string   `json:"undo" doc:"the command or action that undoes it; empty when nothing can"`
	UndoArgs []string `json:"undoArgs,omitempty" doc:"what kctl history undo runs; absent when it cannot"`
	Undoes   string   `json:"undoes,omitempty" doc:"the change that this one took back"`
}

// WithUndo returns the entry with the kctl command that takes it back.
func (e Entry) WithUndo(args ...string) Entry {
	e.UndoArgs = args
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = Quote(a)
	}
	e.Undo = "kctl " + strings.Join(words, " ") + " --yes"
	return e
}

// Key names an entry: its time and object. It is what Undoes holds.
func (e *Entry) Key() string { return e.Time + " " + e.Command + " " + e.Object }

// Quote writes a word for a POSIX shell, in quotes where it needs them.
func Quote(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Append writes entries to the end of the file, each as one line in one write, and makes the file and its folder
// where they are missing. It sets Time.
func Append(path string, now time.Time, entries ...Entry) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var lines []byte
	for _, e := range entries {
		e.Time = now.UTC().Format(time.RFC3339)
		line, err := json.Marshal(e)
		if err != nil {
			return errors.Join(err, file.Close())
		}
		lines = append(append(lines, line...), '\n')
	}
	if _, err := file.Write(lines); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// lineMax bounds one entry, in bytes.
const lineMax = 4 << 20

// Read returns all entries, oldest first. A missing file is empty; lines that are no entries are skipped.
func Read(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []Entry
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, lineMax)
	for sc.Scan() {
		var e Entry
		if json.Unmarshal(sc.Bytes(), &e) == nil {
			out = append(out, e)
		}
	}
	return out, sc.Err()
}
