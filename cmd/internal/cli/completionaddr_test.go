package cli_test

import (
	"net"
	"testing"
	"time"
)

// TestCompletionAsksTheClusterOfTheLine: -b on the line that is typed decides which cluster is asked for names, over the
// environment.
func TestCompletionAsksTheClusterOfTheLine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
			select {
			case asked <- struct{}{}:
			default:
			}
		}
	}()
	t.Cleanup(func() { l.Close() })
	for _, line := range [][]string{
		{"__complete", "topics", "describe", "-b", l.Addr().String(), ""},
		{"__completeNoDesc", "-b", l.Addr().String(), "partitions", "list", ""},
		{"__complete", "topics", "describe", "-X", "bootstrap.servers=" + l.Addr().String(), ""},
	} {
		k := newKctl(t)
		k.env["KCTL_BOOTSTRAP_SERVER"] = "127.0.0.1:1"
		k.run(append(line[:1:1], append([]string{"--timeout", "1s"}, line[1:]...)...)...)
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Errorf("%q asks another cluster: %s", line, k.err)
		}
	}
}
