//go:build unix

package brokertest

import (
	"strconv"
	"syscall"
	"testing"
)

// HoldPort returns a TCP port of 127.0.0.1 that is the test's until it ends, whether something listens on it or not: a
// broker that is down comes back to its port, whatever other tests on the machine do meanwhile. A socket is bound to the
// port and never listens. Nobody else is given the port, connections to it are refused, and a listener that names it gets
// it: both sockets set SO_REUSEADDR, which package net does.
func HoldPort(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	syscall.CloseOnExec(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(name.(*syscall.SockaddrInet4).Port)
}
