package shelltest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestHangupEndsInOrder: the end of the terminal, as when a connection to the machine breaks, is an interrupt and not a kill:
// a change between two steps takes the first one back.
func TestHangupEndsInOrder(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	cmd := exec.Command(os.Args[0], "-b", ln.Addr().String(), "--timeout", "60s", "brokers", "list")
	cmd.Env = append(os.Environ(), asKctl+"=1", "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := ln.Accept() // it is at work
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = cmd.Process.Signal(syscall.SIGHUP)
	_ = cmd.Wait()
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
		t.Fatalf("killed by %v; stderr %q", st.Signal(), said.String())
	}
}

// TestClosedStderrKillsNothing: kctl goes on to its end when nobody reads what it says (2>&1 | head -1).
func TestClosedStderrKillsNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	cmd := exec.Command(os.Args[0], "--no-such-flag")
	cmd.Env = append(os.Environ(), asKctl+"=1")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w, w, 10*time.Second
	_ = cmd.Run()
	_ = w.Close()
	if st := cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() || st.ExitStatus() != 2 {
		t.Errorf("%v, want exit 2", cmd.ProcessState)
	}
}
