//go:build proc

package proctest

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The bounds of what kctl may cost. They are on the processor time of the process (user and system), which hardly depends
// on what else the machine does, and on the most memory it held. The goal is 2 s for 40,000 partitions: a quarter of it
// for the 10,000 here, with room for busy machines. What is linear stays far below; what grows with the square does not.
// They grow with the slowness of the machine.
const (
	readCPUMax   = time.Second
	doctorCPUMax = 4 * time.Second
	readMiBMax   = 400
	startRuns    = 11
	startCPUMax  = 20 * time.Millisecond
)

// nothingCPU is the processor time of a program that does nothing on the machine that the bounds are from: this test binary,
// which links the same clients as kctl, without a test to run.
const nothingCPU = 3500 * time.Microsecond

// slowness is how many times as long as there a program takes here, at least 1. The cheapest of many runs counts.
func slowness(t *testing.T) float64 {
	t.Helper()
	nothing := make([]time.Duration, 0, startRuns)
	for range startRuns {
		nothing = append(nothing, cost(t.Context(), t, os.Args[0], "-test.run=^$").cpu)
	}
	least := slices.Min(nothing)
	t.Logf("a program that does nothing costs %.1f ms of CPU, where the bounds are from it costs %.1f", ms(least), ms(nothingCPU))
	return max(1, float64(least)/float64(nothingCPU))
}

// onThisMachine is a bound that grows with the slowness of the machine.
func onThisMachine(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	return time.Duration(float64(d) * slowness(t))
}

// spent is what one run of a program cost.
type spent struct {
	wall, cpu time.Duration
	mib       int
	lines     int
	exit      int
	stderr    string
}

// cost runs a program to its end, reading all that it prints.
func cost(ctx context.Context, t *testing.T, program string, args ...string) spent {
	t.Helper()
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	lines := &lineCounter{}
	cmd.Stdout = lines
	cmd.Env = append(cmd.Environ(), "HOME="+t.TempDir())
	begin := time.Now()
	err := cmd.Run()
	s := spent{wall: time.Since(begin), lines: lines.n, stderr: strings.TrimSpace(stderr.String())}
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	s.exit = cmd.ProcessState.ExitCode()
	s.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.mib = int(usage.Maxrss / 1024)
	}
	return s
}

type lineCounter struct{ n int }

func (c *lineCounter) Write(b []byte) (int, error) {
	c.n += bytes.Count(b, []byte{'\n'})
	return len(b), nil
}

var _ io.Writer = (*lineCounter)(nil)

// read is one verb with what it may cost and at least prints. An exit code of 10 is an answer too: the check found
// something.
type read struct {
	args  string
	lines int // at least; 0: any
	cpu   time.Duration
}

func reads() []read {
	const all = scaleTopics * scalePartitions
	return []read{
		{"cluster describe", 1, 0}, {"cluster health", 1, 0}, {"cluster diff", 0, 0}, {"controller describe", 1, 0},
		{"brokers list", 3, 0}, {"brokers describe 1", 1, 0}, {"topics list", scaleTopics, 0}, {"topics list -o json", scaleTopics, 0},
		{"topics describe scale-0001", 1, 0}, {"partitions list", all, 0}, {"partitions list -o wide", all, 0}, {"partitions list -o json", all, 0},
		{"partitions list -o yaml", all, 0}, {"partitions list -o name", all, 0}, {"partitions list --under-replicated", 0, 0},
		{"leader-and-isr get scale-0001", scalePartitions, 0}, {"leader-and-isr get " + everyTopic(), all, 0},
		{"lag replicas", 3 * all, 0}, {"lag replicas -o json", 3 * all, 0}, {"lag groups", 0, 0}, {"groups list", 0, 0},
		{"transitions", 0, 0}, {"transitions --all", all, 0}, {"leftovers list", 0, 0}, {"log-dirs describe", 3, 0}, {"log-dirs describe -o json", 3 * all, 0},
		{"configs get topic/scale-0001 --all", 10, 0}, {"configs get --topic .* --all", scaleTopics, 0},
		{"reassign status", 0, 0}, {"reassign generate --balance", 0, 0}, {"elect preferred --all --dry-run", 0, 0},
		{"__complete topics describe ", scaleTopics, 0}, {"doctor", 1, doctorCPUMax}, {"doctor -o json", 1, doctorCPUMax},
	}
}

func everyTopic() string {
	names := make([]string, scaleTopics)
	for i := range names {
		names[i] = scaleName(i)
	}
	return strings.Join(names, " ")
}

// boundReads runs every verb that reads, over the protocol alone and with ZooKeeper, and bounds what it costs.
func (d *dev) boundReads(ctx context.Context, kctl string) {
	slow := slowness(d.t)
	for _, with := range [][]string{{"-b", d.bootstrap}, {"-b", d.bootstrap, "-z", "127.0.0.1:" + strconv.Itoa(d.zk)}} {
		for _, r := range reads() {
			words := strings.Split(r.args, " ")
			args := slices.Concat(words[:1], with, words[1:])
			if len(with) > 2 && r.cpu == 0 && strings.Contains(" cluster transitions leftovers ", " "+words[0]+" ") {
				r.cpu = doctorCPUMax // reads 10,000 state znodes
			}
			if r.cpu == 0 {
				r.cpu = readCPUMax
			}
			r.cpu = time.Duration(float64(r.cpu) * slow)
			s := cost(ctx, d.t, kctl, args...)
			d.t.Logf("%-36.36s %2d addresses: %4d ms of CPU, %4d ms, %3d MiB, %6d lines", r.args, len(with)/2, s.cpu.Milliseconds(), s.wall.Milliseconds(), s.mib, s.lines)
			if s.exit != 0 && s.exit != 10 {
				d.t.Errorf("%.60s: exit %d: %s", r.args, s.exit, s.stderr)
			}
			if s.lines < r.lines {
				d.t.Errorf("%.60s: %d lines, want at least %d", r.args, s.lines, r.lines)
			}
			if s.cpu > r.cpu || s.mib > readMiBMax {
				d.t.Errorf("%.60s costs %s of CPU and %d MiB, want at most %s and %d MiB", r.args, s.cpu, s.mib, r.cpu, readMiBMax)
			}
		}
	}
}

// TestScaleStartUp: what needs no cluster costs next to nothing: nothing is compiled, registered or read that is not used.
func TestScaleStartUp(t *testing.T) {
	kctl := program(t, "kctl")
	most := onThisMachine(t, startCPUMax)
	for _, args := range []string{"--help", "version", "completion bash", "schema", "doctor --list", "topics describe --help", "context list"} {
		cpu := make([]time.Duration, 0, startRuns)
		for range startRuns {
			s := cost(t.Context(), t, kctl, strings.Split(args, " ")...)
			if s.exit != 0 {
				t.Fatalf("kctl %s: exit %d: %s", args, s.exit, s.stderr)
			}
			cpu = append(cpu, s.cpu)
		}
		slices.Sort(cpu)
		t.Logf("kctl %-24s %.1f ms of CPU (%.1f to %.1f)", args, ms(cpu[startRuns/2]), ms(cpu[0]), ms(cpu[startRuns-1]))
		// The cheapest run is what the work costs; in the others caches were cold, or the host was busy.
		if cpu[0] > most {
			t.Errorf("kctl %s costs %s of CPU, want at most %s", args, cpu[0], most)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
