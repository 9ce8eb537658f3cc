//go:build unix

package iostreams

import (
	"os"
	"testing"
	"time"
)

// TestUntilReaderGone: the context ends when the other end of the pipe is closed, and not while it is read.
func TestUntilReaderGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, stop := (&IOStreams{Out: w}).UntilReaderGone(t.Context())
	defer stop()
	select {
	case <-ctx.Done():
		t.Fatal("the context ended while the pipe is read")
	case <-time.After(3 * lookEveryMs * time.Millisecond):
	}
	_ = r.Close()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the reader is gone, and the context goes on")
	}
	if t.Context().Err() != nil {
		t.Error("the context of the caller ended as well")
	}
}

// TestFilesHaveNoReader: a file is written to the end.
func TestFilesHaveNoReader(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, stop := (&IOStreams{Out: f}).UntilReaderGone(t.Context())
	defer stop()
	if ctx != t.Context() {
		t.Error("a file is looked after like a pipe")
	}
}
