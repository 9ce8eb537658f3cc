package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// FuzzConnection sends arbitrary bytes and hangs up: the server answers whole frames, closes the connection at
// the first impossible one, and neither panics nor hangs.
func FuzzConnection(f *testing.F) {
	f.Add(request(18, 1, nil))
	f.Add(append(request(0, 1, make([]byte, 100)), request(1, 2, []byte("x"))...))
	f.Add([]byte{0, 0, 0})
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	s := New(Options{Handler: handlerFunc(echo), Logger: slog.New(slog.DiscardHandler)})
	addr, err := s.Listen("TEST", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	f.Cleanup(func() {
		cancel()
		s.Close()
		wg.Wait()
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := net.Dial("tcp", addr.String())
		if err != nil {
			return // the ports that wait for their last packets are used up
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		go func() {
			// The server may have closed already; what matters is what it does, not what arrived.
			_, _ = io.Copy(c, bytes.NewReader(data))
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection is still open after %d bytes and their end", len(data))
		}
	})
}
