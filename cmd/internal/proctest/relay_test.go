//go:build proc

package proctest

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

// relay passes connections on to a server and can be cut like a cable: existing connections die and new ones
// are closed at once.
type relay struct {
	l      net.Listener
	target string

	mu    sync.Mutex // guards the fields below
	down  bool
	conns map[net.Conn]struct{}
}

func startRelay(t *testing.T, target string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &relay{l: l, target: target, conns: map[net.Conn]struct{}{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.cut()
		all.Wait()
	})
	return r
}

func (r *relay) addr() string { return r.l.Addr().String() }

func (r *relay) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer s.Close()
	if !r.keep(c, s) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(s, c); s.Close() })
	both.Go(func() { io.Copy(c, s); c.Close() })
	both.Wait()
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		r.conns[c] = struct{}{}
	}
	return !r.down
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for c := range r.conns {
		c.Close()
		delete(r.conns, c)
	}
}

func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

func replaceInFile(file, old, replacement string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes.ReplaceAll(data, []byte(old), []byte(replacement)), 0o644)
}

func countLines(t *testing.T, file, word string) int {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	return bytes.Count(data, []byte(word))
}
