package server

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sender makes system calls on a connection's socket that the net package does not offer. It belongs to whoever
// is writing; its closures are made once so that a call allocates nothing.
type sender struct {
	raw syscall.RawConn // nil: not a socket

	file, more func(fd uintptr) bool

	// Arguments and results of the closures.
	src  int
	pos  int64
	want int
	p    []byte
	n    int
	err  error
}

func newSender(c syscall.Conn) *sender {
	s := &sender{}
	raw, err := c.SyscallConn()
	if err != nil {
		return s
	}
	s.raw = raw
	s.file = func(fd uintptr) bool {
		s.n, s.err = unix.Sendfile(int(fd), s.src, &s.pos, s.want)
		return !again(s.err)
	}
	s.more = func(fd uintptr) bool {
		s.n, s.err = unix.SendmsgN(int(fd), s.p, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
		return !again(s.err)
	}
	return s
}

func again(err error) bool { return errors.Is(err, unix.EAGAIN) }

// step repeats one call until it sent something. The write deadline is moved on before each.
func (g stallGuard) step(call func(fd uintptr) bool) (int, error) {
	s := g.c.out
	for {
		if err := g.c.refreshWriteDeadline(); err != nil {
			return 0, err
		}
		if err := s.raw.Write(call); err != nil {
			return 0, err
		}
		if errors.Is(s.err, unix.EINTR) {
			continue
		}
		if s.err != nil {
			return 0, os.NewSyscallError("send", s.err)
		}
		g.c.srv.metrics.bytesOut.Add(float64(s.n))
		return s.n, nil
	}
}

// CanSendFile reports whether SendFile and WriteMore may be called.
func (g stallGuard) CanSendFile() bool { return g.c.sender() != nil }

// SendFile sends n bytes of f from pos on straight from the page cache. io.ErrUnexpectedEOF when the file ends
// before.
func (g stallGuard) SendFile(f *os.File, pos int64, n int) (int64, error) {
	s := g.c.out
	s.src, s.pos = int(f.Fd()), pos
	sent := 0
	for sent < n {
		s.want = n - sent
		m, err := g.step(s.file)
		if err != nil {
			return int64(sent), err
		}
		if m <= 0 {
			return int64(sent), io.ErrUnexpectedEOF
		}
		sent += m
	}
	return int64(sent), nil
}

// WriteMore is Write for bytes that others will follow at once: they need not leave in a packet of their own.
func (g stallGuard) WriteMore(p []byte) (int, error) {
	s := g.c.out
	sent := 0
	for sent < len(p) {
		s.p = p[sent:]
		m, err := g.step(s.more)
		s.p = nil
		if err != nil {
			return sent, err
		}
		sent += m
	}
	return sent, nil
}

// sender returns what sends files on this connection, nil when nothing can.
func (c *Conn) sender() *sender {
	if c.out == nil {
		c.out = &sender{}
		if sc, ok := c.nc.(syscall.Conn); ok {
			c.out = newSender(sc)
		}
	}
	if c.out.raw == nil {
		return nil
	}
	return c.out
}
