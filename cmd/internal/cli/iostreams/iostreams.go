// Package iostreams is the terminal as the commands see it: three streams, and whether each is a terminal.
// Tests replace it with buffers.
package iostreams

import (
	"bytes"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// IOStreams are the standard streams. Data goes to Out, everything else to Err.
type IOStreams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	InTTY, OutTTY, ErrTTY bool
	Color                 bool // colours are wanted on Out
}

// System returns the process' own streams.
func System() *IOStreams {
	s := &IOStreams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	s.InTTY, s.OutTTY, s.ErrTTY = isatty.IsTerminal(os.Stdin.Fd()), isatty.IsTerminal(os.Stdout.Fd()), isatty.IsTerminal(os.Stderr.Fd())
	_, noColor := os.LookupEnv("NO_COLOR")
	s.Color = s.OutTTY && !noColor && os.Getenv("TERM") != "dumb"
	return s
}

// Test returns streams over buffers that are no terminals.
func Test(in string) (s *IOStreams, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return &IOStreams{In: bytes.NewBufferString(in), Out: out, Err: err}, out, err
}
