package factory

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"kctl/cmd/internal/cli/exit"
)

// Change is one entry of the journal: what was changed and what undoes it. It never holds a secret.
type Change struct {
	Time    string `json:"time" doc:"RFC 3339, UTC"`
	Cluster string `json:"cluster" doc:"cluster id"`
	Command string `json:"command" doc:"the verb, such as topics delete"`
	Object  string `json:"object"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Result  string `json:"result" doc:"done, or the error"`
	Undo    string `json:"undo" doc:"the command or action that undoes it; empty when nothing can"`
}

// JournalPath is the file of the journal, one JSON object per line.
func (f *Factory) JournalPath() string {
	return filepath.Join(f.xdg("XDG_STATE_HOME", filepath.Join(".local", "state")), "kctl", "history.jsonl")
}

// Record appends changes to the journal. A journal that cannot be written is said on stderr and does not
// fail a change that was made.
func (f *Factory) Record(changes ...Change) {
	if err := f.record(changes); err != nil {
		fmt.Fprintf(f.IO.Err, "kctl: the change is not in the journal: %v\n", err)
	}
}

func (f *Factory) record(changes []Change) error {
	path := f.JournalPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	var lines []byte
	for _, c := range changes {
		c.Time = f.Now().UTC().Format(time.RFC3339)
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	_, err = file.Write(lines)
	return err
}

// History reads the journal, oldest first. A missing journal is empty; lines that are no JSON are skipped.
func (f *Factory) History() ([]Change, error) {
	file, err := os.Open(f.JournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, exit.Usagef("read the journal: %v", err)
	}
	defer file.Close()
	var out []Change
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c Change
		if json.Unmarshal(sc.Bytes(), &c) == nil {
			out = append(out, c)
		}
	}
	return out, sc.Err()
}
