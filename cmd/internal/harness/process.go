package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one running program that printed ready.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and err is set
	err  error
}

// startProcess runs the program with its stderr appended to logFile and waits for a line "ready" on stdout.
// The child gets a process group of its own: a Ctrl-C in the terminal reaches us alone, and we stop it in order.
func startProcess(ctx context.Context, logFile string, within time.Duration, program string, args ...string) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	ready := make(chan struct{})
	go p.watch(stdout, ready)
	select {
	case <-ready:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%s ended before it was ready: %v\n%s", filepath.Base(program), p.err, tail(logFile))
	case <-time.After(within):
		p.kill()
		return nil, fmt.Errorf("%s was not ready within %s\n%s", filepath.Base(program), within, tail(logFile))
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	}
}

// watch signals ready at the first line that says so, drains stdout to its end and reaps the process.
func (p *process) watch(stdout io.Reader, ready chan<- struct{}) {
	lines := bufio.NewScanner(stdout)
	for announced := false; lines.Scan(); {
		if lines.Text() == "ready" && !announced {
			announced = true
			close(ready)
		}
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) kill() error {
	err := p.cmd.Process.Kill()
	<-p.done
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d had ended by itself: %v", p.pid(), p.err)
	}
	return err
}

// stop asks with SIGTERM and kills when the process does not end in time, which is an error.
func (p *process) stop(within time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(within):
		p.kill()
		return fmt.Errorf("process %d did not end within %s of SIGTERM", p.pid(), within)
	}
}

// tail returns the last lines of a log file for an error message.
func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	if len(lines) > 15 {
		lines = lines[len(lines)-15:]
	}
	return string(bytes.Join(lines, []byte("\n")))
}
