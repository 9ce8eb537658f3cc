package kbrokercmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kctl/broker/brokertest"
)

// buffer is a bytes.Buffer that goroutines may share and whose growth can be waited for.
type buffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{}
}

func newBuffer() *buffer { return &buffer{wrote: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.wrote <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := file("bad.properties", "zookeeper.connect=127.0.0.1:1\nnum.partitions=none\nlog.retention.ms=-7\n")
	broken := file("broken.properties", "a=1\nb=\\u12\n")
	dead := file("dead.properties", "broker.id=1\nzookeeper.connect=127.0.0.1:1\nzookeeper.connection.timeout.ms=200\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs="+filepath.Join(dir, "d")+"\n")
	cases := []struct {
		args []string
		code int
		out  []string // in stdout or stderr
	}{
		{[]string{"version"}, exitOK, []string{"kbroker "}},
		{[]string{"--help"}, exitOK, []string{"start", "zookeeper", "dev", "version"}},
		{[]string{"completion", "bash"}, exitOK, []string{"bash completion"}},
		{[]string{"docs", filepath.Join(dir, "man")}, exitOK, nil},
		{[]string{"nonsense"}, exitUsage, []string{"nonsense"}},
		{[]string{"start", "--nonsense"}, exitUsage, []string{"--nonsense"}},
		{[]string{"start", "a", "b"}, exitUsage, nil},
		{[]string{"start", "--log-level", "loud", dead}, exitUsage, []string{"loud", "debug, info, warn or error"}},
		{[]string{"start", filepath.Join(dir, "missing")}, exitUsage, []string{"missing"}},
		{[]string{"start"}, exitUsage, []string{"zookeeper.connect"}},
		{[]string{"start", "--set", "novalue"}, exitUsage, []string{"novalue", "key=value"}},
		{[]string{"start", bad}, exitUsage, []string{`"none" for configuration num.partitions`, `"-7" for configuration log.retention.ms`}},
		{[]string{"start", broken}, exitUsage, []string{"broken.properties", "line 2"}},
		{[]string{"start", dead, "--set", "no.such.key=1"}, exitUnreachable, []string{"no.such.key is unknown", "127.0.0.1:1"}},
		{[]string{"zookeeper"}, exitUsage, []string{"--data-dir"}},
		{[]string{"dev", "--brokers", "0"}, exitUsage, []string{"--brokers 0"}},
		{[]string{"dev", "--port", "70000"}, exitUsage, []string{"--port 70000"}},
		{[]string{"dev", "--set", "num.partitions=0"}, exitUsage, []string{"num.partitions"}},
	}
	for _, c := range cases {
		stdout, stderr := newBuffer(), newBuffer()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		code := run(ctx, c.args, stdout, stderr)
		cancel()
		all := stdout.String() + stderr.String()
		if code != c.code {
			t.Errorf("%v: exit code %d, want %d\n%s", c.args, code, c.code, all)
		}
		for _, want := range c.out {
			if !strings.Contains(all, want) {
				t.Errorf("%v: output does not mention %q\n%s", c.args, want, all)
			}
		}
		if code != exitOK && stdout.String() != "" {
			t.Errorf("%v: stdout has %q", c.args, stdout.String())
		}
	}
}

// awaitLine waits until the buffer holds the line.
func awaitLine(t *testing.T, b *buffer, line string, failed <-chan int) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !strings.Contains(b.String(), line+"\n") {
		select {
		case <-b.wrote:
		case code := <-failed:
			t.Fatalf("ended with code %d before it printed %q", code, line)
		case <-deadline:
			t.Fatalf("%q was not printed", line)
		}
	}
}

func TestDevRunsAndCleansUp(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr := newBuffer(), newBuffer()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"dev", "--brokers", "2", "--port", "0", "--zookeeper-port", "0", "--metrics-port", "0"}, stdout, stderr)
	}()
	awaitLine(t, stdout, "ready", done)
	if left, _ := os.ReadDir(tmp); len(left) != 1 {
		t.Errorf("%d entries in the temporary folder while running, want 1", len(left))
	}
	cancel()
	if code := <-done; code != exitOK {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	if stdout.String() != "ready\n" {
		t.Errorf("stdout %q, want one line", stdout.String())
	}
	if left, _ := os.ReadDir(tmp); len(left) != 0 {
		t.Errorf("temporary folder was left behind: %v", left)
	}
}

// TestStartAgainstZookeeperCommand runs the embedded server and a broker as their own commands.
func TestStartAgainstZookeeperCommand(t *testing.T) {
	dir := t.TempDir()
	addr := "127.0.0.1:" + brokertest.HoldPort(t)
	launch := func(args ...string) (stop func() int) {
		ctx, cancel := context.WithCancel(t.Context())
		stdout, stderr := newBuffer(), newBuffer()
		done := make(chan int, 1)
		go func() { done <- run(ctx, args, stdout, stderr) }()
		awaitLine(t, stdout, "ready", done)
		return func() int {
			cancel()
			return <-done
		}
	}
	stopZooKeeper := launch("zookeeper", "--data-dir", filepath.Join(dir, "zk"), "--listen", addr, "--fsync=false")
	stopBroker := launch("start", "--set", "broker.id=1", "--set", "zookeeper.connect="+addr, "--set", "log.dirs="+filepath.Join(dir, "b"), "--set", "listeners=PLAINTEXT://127.0.0.1:0")
	if code := stopBroker(); code != exitOK {
		t.Errorf("broker: exit code %d", code)
	}
	if code := stopZooKeeper(); code != exitOK {
		t.Errorf("zookeeper: exit code %d", code)
	}
}
