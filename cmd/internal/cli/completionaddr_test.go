package cli_test

import (
	"net"
	"strings"
	"testing"
	"time"
)

// asked tells when somebody connects to the address.
func asked(t *testing.T) (addr string, connected <-chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			select {
			case came <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), came
}

// TestCompletionAsksTheClusterOfTheLine: -b on the line that is typed decides which cluster is asked for names, over the
// environment.
func TestCompletionAsksTheClusterOfTheLine(t *testing.T) {
	for _, line := range []string{
		"__complete topics describe -b ADDR", "__completeNoDesc -b ADDR partitions list", "__complete topics describe -X bootstrap.servers=ADDR",
	} {
		addr, connected := asked(t)
		k := newKctl(t)
		k.env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:1"
		args := append(strings.Fields(strings.ReplaceAll(line, "ADDR", addr)), "")
		deadline := time.After(time.Minute)
		for again := true; again; {
			k.run(args...) // again and again: a busy machine may not come to connect in the time of a completion
			select {
			case <-connected:
				again = false
			case <-deadline:
				t.Errorf("%q asks another cluster: %s", line, k.err)
				again = false
			default:
			}
		}
	}
}
