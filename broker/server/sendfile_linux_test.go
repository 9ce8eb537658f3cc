package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// fileBody is an answer that is mostly a range of a file. It claims claim bytes of it.
type fileBody struct {
	correlation int32
	f           *os.File
	pos         int64
	n, claim    int
	err         chan error
}

func (b fileBody) WriteTo(w io.Writer) (int64, error) {
	s, ok := w.(interface {
		CanSendFile() bool
		SendFile(f *os.File, pos int64, n int) (int64, error)
		WriteMore(p []byte) (int, error)
	})
	if !ok || !s.CanSendFile() {
		return 0, errors.New("no files on this connection")
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(4+b.claim))
	n, err := s.WriteMore(binary.BigEndian.AppendUint32(head, uint32(b.correlation)))
	if err != nil {
		return int64(n), err
	}
	m, err := s.SendFile(b.f, b.pos, b.claim)
	b.err <- err
	return int64(n) + m, err
}

func (fileBody) Release() {}

func testFile(t *testing.T, size int) (*os.File, []byte) {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i >> 3)
	}
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, data
}

func TestSendFile(t *testing.T) {
	f, data := testFile(t, 9<<20)
	errs := make(chan error, 1)
	ranges := []struct{ pos, n int }{{0, len(data)}, {4097, 70_001}, {len(data) - 1, 1}, {17, 8 << 20}}
	_, addr := start(t, Options{WriteTimeout: 10 * time.Second, Handler: handlerFunc(func(_ context.Context, req *Request) {
		r := ranges[req.CorrelationID]
		req.Reply(fileBody{correlation: req.CorrelationID, f: f, pos: int64(r.pos), n: r.n, claim: r.n, err: errs})
	})})
	c := dial(t, addr)
	for i, r := range ranges {
		if _, err := c.Write(request(0, int32(i), nil)); err != nil {
			t.Fatal(err)
		}
		correlation, body := answer(t, c)
		if correlation != int32(i) || !bytes.Equal(body, data[r.pos:r.pos+r.n]) {
			t.Errorf("range %+v: %d other bytes", r, len(body))
		}
		if err := <-errs; err != nil {
			t.Errorf("range %+v: %v", r, err)
		}
	}
}

// TestSendFileThatShrank closes the connection: the frame cannot be completed.
func TestSendFileThatShrank(t *testing.T) {
	f, data := testFile(t, 100_000)
	errs := make(chan error, 1)
	_, addr := start(t, Options{Handler: handlerFunc(func(_ context.Context, req *Request) {
		req.Reply(fileBody{f: f, claim: len(data) + 1, err: errs})
	})})
	c := dial(t, addr)
	if _, err := c.Write(request(0, 1, nil)); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, c); err != nil || n != int64(8+len(data)) {
		t.Errorf("read %d bytes, %v; want what there was and then the end", n, err)
	}
	if err := <-errs; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want ErrUnexpectedEOF", err)
	}
}

// TestSendFileSlowReader cuts off a client that takes nothing, while it is sent a file.
func TestSendFileSlowReader(t *testing.T) {
	f, data := testFile(t, 16<<20)
	errs := make(chan error, 1)
	s, addr := start(t, Options{WriteTimeout: 200 * time.Millisecond, Handler: handlerFunc(func(_ context.Context, req *Request) {
		req.Reply(fileBody{f: f, claim: len(data), err: errs})
	})})
	c := dial(t, addr)
	if tc, ok := c.(*net.TCPConn); ok {
		_ = tc.SetReadBuffer(4096)
	}
	if _, err := c.Write(request(0, 1, nil)); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want a missed deadline", err)
	}
	await(t, func() bool { return s.Connections() == 0 })
}
