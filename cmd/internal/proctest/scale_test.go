//go:build proc

package proctest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/harness"
)

const (
	scaleTopics     = 1000
	scalePartitions = 10

	startMax    = 10 * time.Second
	idleCPUMax  = 0.05 // of one core
	idleFor     = 30 * time.Second
	kctlListMax = time.Second
	stopMax     = 30 * time.Second
	deleteMax   = 60 * time.Second
)

// TestScaleThousandTopics: 1,000 topics of 10 partitions, RF 3, on three brokers in one `kbroker dev`: start,
// idle CPU, the time of `kctl partitions list` and what every reading verb of kctl costs.
func TestScaleThousandTopics(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := t.TempDir()
	d := &dev{t: t, kbroker: program(t, "kbroker"), dir: dir, log: filepath.Join(dir, "dev.log")}
	t.Cleanup(func() {
		if t.Failed() {
			d.showLog()
		}
	})
	d.ports()
	d.start(ctx)
	d.createTopics(ctx)
	d.stop()

	took := d.start(ctx)
	t.Logf("start with %d partitions RF 3: %.2f s", scaleTopics*scalePartitions, took.Seconds())
	d.within("start", took, startMax)
	d.waitLeaders(ctx)
	cpu := d.idleCPU(ctx)
	t.Logf("idle: %.2f %% of a core, resident %d MiB", cpu*100, d.residentMiB())
	if most := idleCPUMax * slowness(t); cpu > most {
		t.Errorf("idle CPU is %.2f %% of a core, want at most %.0f %%", cpu*100, most*100)
	}
	d.timeList(ctx, program(t, "kctl"))
	d.boundReads(ctx, program(t, "kctl"))
	d.deleteTopics(ctx)
	d.stop()
}

func scaleName(i int) string { return fmt.Sprintf("scale-%04d", i) }

type dev struct {
	t         *testing.T
	kbroker   string
	dir       string
	log       string // file of the process' stderr
	port, zk  int
	cmd       *exec.Cmd
	bootstrap string
}

func (d *dev) within(what string, took, most time.Duration) {
	d.t.Helper()
	within(d.t, what, took, most)
}

// within fails the test when something took longer than allowed. The bounds are for a machine that does nothing
// else; where more runs than it has processors for, they grow with the load, and on a slower one with its slowness.
func within(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	most = onThisMachine(t, most)
	load := 0.0
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Sscanf(string(data), "%f", &load)
	}
	if factor := load / float64(runtime.NumCPU()); factor > 1 {
		t.Logf("the machine is busy (load %.1f on %d processors): %s may take %.1f times as long", load, runtime.NumCPU(), what, factor)
		most = time.Duration(float64(most) * factor)
	}
	if took > most {
		t.Errorf("%s took %s, want at most %s", what, took, most)
	}
}

func (d *dev) ports() {
	ports, err := harness.FreePorts(100)
	must(d.t, err)
	for len(ports) >= 4 && ports[3] != ports[0]+3 { // the brokers' ports follow each other
		ports = ports[1:]
	}
	if len(ports) < 4 {
		d.t.Fatal("no run of free ports")
	}
	d.port, d.zk = ports[0], ports[3]
	d.bootstrap = fmt.Sprintf("127.0.0.1:%d", d.port)
}

// start runs kbroker dev and returns the time until it printed ready.
func (d *dev) start(ctx context.Context) time.Duration {
	d.cmd = exec.CommandContext(ctx, d.kbroker, "dev", "--data-dir", d.dir, "--port", strconv.Itoa(d.port),
		"--zookeeper-port", strconv.Itoa(d.zk), "--metrics-port", "0")
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(d.t, err)
	defer log.Close()
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	must(d.t, err)
	begin := time.Now()
	must(d.t, d.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "ready" {
		d.t.Fatalf("kbroker dev said %q, %v", line, err)
	}
	return time.Since(begin)
}

func (d *dev) stop() {
	must(d.t, d.cmd.Process.Signal(syscall.SIGTERM))
	begin := time.Now()
	if err := d.cmd.Wait(); err != nil {
		d.t.Fatalf("kbroker dev ended with %v", err)
	}
	took := time.Since(begin)
	d.t.Logf("ordered stop: %.2f s", took.Seconds())
	d.within("ordered stop", took, stopMax)
}

// showLog logs the end of what the process wrote.
func (d *dev) showLog() {
	data, err := os.ReadFile(d.log)
	must(d.t, err)
	d.t.Logf("end of the log:\n%s", data[max(0, len(data)-8000):])
}

func (d *dev) createTopics(ctx context.Context) {
	adm := d.admin()
	defer adm.Close()
	begin := time.Now()
	for i := 0; i < scaleTopics; i += 100 {
		var names []string
		for n := range 100 {
			names = append(names, scaleName(i+n))
		}
		created, err := adm.CreateTopics(ctx, scalePartitions, 3, nil, names...)
		must(d.t, err)
		must(d.t, created.Error())
	}
	d.waitLeaders(ctx)
	d.t.Logf("%d topics of %d partitions created in %.1f s", scaleTopics, scalePartitions, time.Since(begin).Seconds())
}

// deleteTopics deletes everything and waits until no broker's metadata has any of it and no folder is left in
// use.
func (d *dev) deleteTopics(ctx context.Context) {
	adm := d.admin()
	defer adm.Close()
	begin := time.Now()
	for i := 0; i < scaleTopics; i += 100 {
		var names []string
		for n := range 100 {
			names = append(names, scaleName(i+n))
		}
		deleted, err := adm.DeleteTopics(ctx, names...)
		must(d.t, err)
		must(d.t, deleted.Error())
	}
	for {
		left := 0
		for id := range 3 {
			folders, err := filepath.Glob(filepath.Join(d.dir, fmt.Sprintf("broker-%d", id+1), "scale-????-*"))
			must(d.t, err)
			for _, f := range folders {
				if !strings.HasSuffix(f, "-delete") {
					left++
				}
			}
		}
		topics, err := adm.ListTopics(ctx)
		if err == nil && len(topics) == 0 && left == 0 {
			break
		}
		select {
		case <-ctx.Done():
			d.t.Fatalf("%d topics and %d folders are left, %v", len(topics), left, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	took := time.Since(begin)
	d.t.Logf("%d topics deleted in %.1f s", scaleTopics, took.Seconds())
	d.within("deletion", took, deleteMax)
}

// waitLeaders waits until every partition has a leader and a full ISR.
func (d *dev) waitLeaders(ctx context.Context) {
	adm := d.admin()
	defer adm.Close()
	for {
		topics, err := adm.ListTopics(ctx)
		good := 0
		for _, topic := range topics {
			for _, p := range topic.Partitions {
				if p.Leader >= 0 && len(p.ISR) == 3 {
					good++
				}
			}
		}
		if err == nil && good >= scaleTopics*scalePartitions {
			return
		}
		select {
		case <-ctx.Done():
			d.t.Fatalf("%d of %d partitions have a leader and a full ISR: %v", good, scaleTopics*scalePartitions, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// idleCPU returns the share of a core that the process uses while nothing is asked of it.
func (d *dev) idleCPU(ctx context.Context) float64 {
	settle := time.NewTimer(10 * time.Second)
	defer settle.Stop()
	<-settle.C
	before := d.cpuSeconds()
	begin := time.Now()
	select {
	case <-time.After(idleFor):
	case <-ctx.Done():
		d.t.Fatal(ctx.Err())
	}
	return (d.cpuSeconds() - before) / time.Since(begin).Seconds()
}

func (d *dev) cpuSeconds() float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	must(d.t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	must(d.t, err)
	system, err := strconv.Atoi(fields[12])
	must(d.t, err)
	return float64(user+system) / 100 // USER_HZ
}

func (d *dev) residentMiB() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	must(d.t, err)
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kb, err := strconv.Atoi(f[1])
			must(d.t, err)
			return kb / 1024
		}
	}
	return 0
}

// timeList times the command as a script would run it, and checks that it lists every partition.
func (d *dev) timeList(ctx context.Context, kctl string) {
	begin := time.Now()
	out, err := exec.CommandContext(ctx, kctl, "partitions", "list", "-b", d.bootstrap, "-o", "json").Output()
	took := time.Since(begin)
	must(d.t, err)
	var list struct{ Items []json.RawMessage }
	must(d.t, json.Unmarshal(out, &list))
	d.t.Logf("kctl partitions list: %d partitions in %.2f s", len(list.Items), took.Seconds())
	if len(list.Items) < scaleTopics*scalePartitions {
		d.t.Errorf("%d partitions listed", len(list.Items))
	}
	d.within("kctl partitions list", took, kctlListMax)
}

func (d *dev) admin() *kadm.Client {
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.bootstrap))
	must(d.t, err)
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(60000)
	return adm
}
