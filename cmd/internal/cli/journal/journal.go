package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"kctl/admin/model"
)

// Done is the Result of a change that was made.
const Done = "done"

// Entry is one change: what was changed and what undoes it. It never holds a secret.
type Entry struct {
	Time     string   `json:"time" doc:"RFC 3339, UTC, with milliseconds"`
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

// Key names an entry: its time, command and object. It is what Undoes holds.
func (e *Entry) Key() string { return e.Time + " " + e.Command + " " + e.Object }

// Quote writes a word for a POSIX shell, in quotes where it needs them.
func Quote(s string) string { return model.ShellWord(s) }

// Append writes entries to the end of the file, each as one line, all in one write, and makes the file and its folder
// where they are missing. It sets Time. Several processes may append at the same time: a lock on the file orders them,
// and the entries of one call stay together. A last line that a crash or a full disk left unfinished is ended first, so
// that it does not swallow the next entry.
func Append(path string, now time.Time, entries ...Entry) error {
	var lines []byte
	for _, e := range entries {
		e.Time = now.UTC().Format(timeFormat)
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	file, err := open(path)
	if err != nil {
		return err
	}
	return errors.Join(appendLocked(file, lines), file.Close())
}

// timeFormat is RFC 3339 with milliseconds: two changes of one object in the same second have different keys.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Writable tells why entries cannot be appended; nil when they can. It makes the folder and the file, and writes nothing.
func Writable(path string) error {
	file, err := open(path)
	if err != nil {
		return err
	}
	return file.Close()
}

func open(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
}

// appendLocked writes while it holds the lock, which closing the file gives back.
func appendLocked(file *os.File, lines []byte) error {
	// A file system without locks still appends each write at the end; only the order of a torn line is at stake then.
	_ = lock(file)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if n := info.Size(); n > 0 && info.Mode().IsRegular() {
		last := make([]byte, 1)
		if _, err := file.ReadAt(last, n-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	_, err = file.Write(lines)
	return err
}

// lock waits until no other process appends.
func lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// lineMax bounds one entry, in bytes.
const lineMax = 4 << 20

// Bad is a line that is no entry.
type Bad struct {
	Line int // from 1
	Why  string
}

// Read returns all entries, oldest first, and the lines that are none, which are skipped. A missing file is empty.
func Read(path string) ([]Entry, []Bad, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return read(bufio.NewReaderSize(file, 64<<10))
}

func read(r *bufio.Reader) (out []Entry, bad []Bad, err error) {
	for n := 1; ; n++ {
		line, tooLong, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return out, bad, err
		}
		end := err != nil
		switch e, why := parse(line); {
		case tooLong:
			bad = append(bad, Bad{n, fmt.Sprintf("it is longer than %d bytes", lineMax)})
		case len(bytes.TrimSpace(line)) == 0: // an empty line says nothing and harms nothing
		case why != "":
			bad = append(bad, Bad{n, why})
		default:
			out = append(out, e)
		}
		if end {
			return out, bad, nil
		}
	}
}

// readLine returns the next line without its end, at most lineMax bytes of it.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > lineMax {
			tooLong, part = true, nil
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte{'\n'}), tooLong, err
		}
	}
}

// parse reads one line; why tells what is wrong with it.
func parse(line []byte) (e Entry, why string) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, "it is no JSON object of an entry: " + err.Error()
	}
	if e.Command == "" || e.Time == "" {
		return e, "it has no time or no command"
	}
	return e, ""
}
