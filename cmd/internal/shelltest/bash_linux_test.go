package shelltest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kctl/broker/brokertest"
	"kctl/cmd/internal/cli"
	"kctl/cmd/internal/cli/iostreams"
	"kctl/cmd/internal/cli/verb"
)

// asKctl is the variable by which the test binary is kctl, for real or as an example.
const asKctl = "SHELLTEST_AS_KCTL"

func TestMain(m *testing.M) {
	switch os.Getenv(asKctl) {
	case "":
	case "example":
		os.Exit(asExample())
	default:
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// terminal opens a pseudo terminal of Linux.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// screen is everything that a program wrote to its terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) read(from *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screen) since(mark int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()[mark:]
}

// longWait is enough for whatever a busy machine has to do.
const longWait = 2 * time.Minute

// await waits until all words were written since mark.
func (s *screen) await(t *testing.T, mark int, words ...string) {
	t.Helper()
	if missing := s.missing(t, mark, longWait, words); missing != "" {
		t.Fatalf("%q does not come; the terminal shows\n%q", missing, s.since(mark))
	}
}

// missing waits for words and returns one that was not written since mark when the time is over.
func (s *screen) missing(t *testing.T, mark int, limit time.Duration, words []string) (missing string) {
	for deadline := time.Now().Add(limit); ; {
		missing = ""
		for _, w := range words {
			if !strings.Contains(s.since(mark), w) {
				missing = w
			}
		}
		if missing == "" || time.Now().After(deadline) {
			return missing
		}
		select {
		case <-t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestBash types into a real bash, which has nothing of the package bash-completion, and presses the tab key.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("this test needs bash")
	}
	c := brokertest.Start(t, 3)
	dir := t.TempDir()
	env := map[string]string{"HOME": dir, "KCTL_BOOTSTRAP_SERVER": strings.Join(c.Addrs(), ","), "KCTL_ZOOKEEPER": c.ZooKeeper()}
	run := func(in string, args ...string) {
		streams, _, errb := iostreams.Test(in)
		if code := cli.Run(t.Context(), args, streams, func(n string) string { return env[n] }); code != 0 {
			t.Fatalf("kctl %s: exit %d: %s", strings.Join(args, " "), code, errb)
		}
	}
	run("", "topics", "create", "orders", "--partitions", "2", "--replication-factor", "3")
	run("", "topics", "create", "invoices", "--partitions", "1")
	run("1\n", "produce", "orders")
	run("", "consume", "orders", "--from-beginning", "--max-messages", "1", "--group", "billing")
	run("", "context", "add", "production", "-b", c.Addrs()[0])

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asKctl, self)
	if err := os.WriteFile(filepath.Join(dir, "kctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	master, slave := terminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-i")
	cmd.Env = []string{"HOME=" + dir, "PATH=" + dir + ":/usr/bin:/bin", "TERM=dumb", "PS1=ready> ", "INPUTRC=/dev/null",
		"KCTL_BOOTSTRAP_SERVER=" + env["KCTL_BOOTSTRAP_SERVER"], "KCTL_ZOOKEEPER=" + env["KCTL_ZOOKEEPER"]}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen screen
	done := make(chan struct{})
	go func() { defer close(done); seen.read(master) }()
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		_ = slave.Close()
		<-done
		_ = master.Close()
	})
	send := func(text string) int {
		mark := len(seen.since(0))
		if _, err := master.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return mark
	}
	seen.await(t, 0, "ready> ")
	for _, setting := range []string{"show-all-if-ambiguous on", "bell-style none", "page-completions off", "completion-query-items 0"} {
		seen.await(t, send("bind 'set "+setting+"'; echo did''-it\n"), "did-it")
	}
	seen.await(t, send("source <(kctl completion bash); echo sour''ced $?\n"), "sourced 0")
	for _, tt := range []struct {
		typed string
		want  []string
	}{
		{"kctl topics describe o\t", []string{"orders "}},
		{"kctl elect leader orders:0 \t", []string{"1  (127.0.0.1:", "2  (127.0.0.1:", "3  (127.0.0.1:"}},
		{"kctl leader-and-isr get orders:\t", []string{"0  (leader ", "1  (leader "}},
		{"kctl leader-and-isr get invoices:\t", []string{"invoices:0 "}},
		{"kctl leader-and-isr get orders:0,\t", []string{"orders:0,1 "}},
		{"kctl groups describe b\t", []string{"billing "}},
		{"kctl --context p\t", []string{"production "}},
		{"kctl topics list -o j\t", []string{"json "}},
		{"kctl topics list --output=y\t", []string{"yaml "}},
		{"kctl configs set topic/orders min.ins\t", []string{"min.insync.replicas="}},
		{"kctl configs set topic/inv\t", []string{"topic/invoices "}},
		{"kctl brokers describe \t", []string{"1  (127.0.0.1:"}},
		{"kctl leader-and-isr set orders:0 --isr 1,\t", []string{"1,2  (127.0.0.1:", "1,3  (127.0.0.1:"}},
	} {
		// One key press has verb.CompletionTime for an answer, which a busy machine may need for itself. Whoever sees nothing
		// presses again.
		deadline := time.Now().Add(longWait)
		for {
			mark := send(tt.typed)
			missing := seen.missing(t, mark, 4*verb.CompletionTime, tt.want)
			if missing != "" && time.Now().After(deadline) {
				t.Fatalf("%q does not come; the terminal shows\n%q", missing, seen.since(mark))
			}
			seen.await(t, send("\x15echo clea''red\n"), "cleared") // the line is killed first
			if missing == "" {
				break
			}
		}
	}
}
