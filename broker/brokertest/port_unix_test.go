//go:build unix

package brokertest

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// TestHoldPort: the port can be listened on again and again, and is nobody else's in between.
func TestHoldPort(t *testing.T) {
	addr := "127.0.0.1:" + HoldPort(t)
	for range 3 {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
		if _, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("nobody listens: %v", err)
		}
	}
	// More than a test run takes of the ports that the kernel gives away.
	for range 2000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().String() == addr {
			t.Fatalf("%s was given to somebody else", addr)
		}
		defer l.Close()
	}
}
