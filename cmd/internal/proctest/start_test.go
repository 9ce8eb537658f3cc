//go:build proc

package proctest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kctl/cmd/internal/harness"
)

// The exit codes of kbroker.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 5
)

// refusalMax is how long a broker may take to say that it cannot start: on a slow machine too sooner than by the timeouts
// that hold where none is set, 18 s for ZooKeeper.
const refusalMax = 15 * time.Second

// refusal is one start that must not succeed.
type refusal struct {
	name     string
	props    map[string]string // on top of a good configuration
	file     string            // instead of the configuration file
	exit     int
	says     []string // all of these must be on stderr
	untouch  string   // a folder that must stay as it is
	noFolder string   // a folder that must not come to be
}

// TestRefusedStarts: what a broker cannot start with, it refuses quickly, with an exit code and words that name
// the cause, and without touching anything.
func TestRefusedStarts(t *testing.T) {
	c := startCluster(t, 1, nil)
	running := c.Broker(1)
	folder := t.TempDir()
	silent := silentListener(t)
	closed := closedPort(t)
	stranger := filepath.Join(folder, "broker-7")
	writeMeta(t, stranger, 7, clusterID(t, running.Dir))
	foreign := filepath.Join(folder, "foreign")
	writeMeta(t, foreign, 2, "AAAAAAAAAAAAAAAAAAAAAA")
	damaged := filepath.Join(folder, "damaged")
	must(t, os.MkdirAll(damaged, 0o755))
	must(t, os.WriteFile(filepath.Join(damaged, "meta.properties"), []byte("broker.id=two\nversion=0\n"), 0o644))
	noFile := filepath.Join(folder, "no.properties")
	noEscape := filepath.Join(folder, "escape.properties")
	must(t, os.WriteFile(noEscape, []byte("broker.id=2\nbroker.rack=\\u12\n"), 0o644))
	aFile := filepath.Join(folder, "a-file")
	must(t, os.WriteFile(aFile, nil, 0o644))

	for _, r := range []refusal{
		{name: "no such file", file: noFile, exit: exitUsage, says: []string{noFile, "no such file"}},
		{name: "a folder as file", file: folder, exit: exitUsage, says: []string{folder, "is a directory"}},
		{name: "a broken escape", file: noEscape, exit: exitUsage, says: []string{noEscape, "line 2", "broker.rack", "\\uXXXX"}},
		{name: "not a number", props: map[string]string{"num.partitions": "many"}, exit: exitUsage,
			says: []string{"num.partitions", `"many"`, "from 1 to 2147483647"}},
		{name: "out of range", props: map[string]string{"default.replication.factor": "40000"}, exit: exitUsage,
			says: []string{"default.replication.factor", `"40000"`, "from 1 to 32767"}},
		{name: "two at once", props: map[string]string{"log.retention.ms": "-7", "auto.create.topics.enable": "maybe"}, exit: exitUsage,
			says: []string{"log.retention.ms", `"-7"`, "auto.create.topics.enable", `"maybe"`, "true or false"}},
		{name: "not one of", props: map[string]string{"compression.type": "rar"}, exit: exitUsage,
			says: []string{"compression.type", `"rar"`, "gzip"}},
		{name: "listener without port", props: map[string]string{"listeners": "PLAINTEXT://localhost"}, exit: exitUsage,
			says: []string{"listeners", "PLAINTEXT://localhost"}},
		{name: "listener port out of range", props: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:99999"}, exit: exitUsage,
			says: []string{"listeners", "99999", "65535"}},
		{name: "no zookeeper.connect", props: map[string]string{"zookeeper.connect": ""}, exit: exitUsage, says: []string{"zookeeper.connect"}},
		{name: "bad port of ZooKeeper", props: map[string]string{"zookeeper.connect": "127.0.0.1:port/kafka"}, exit: exitUsage,
			says: []string{"zookeeper.connect", "127.0.0.1:port"}},
		{name: "bad chroot", props: map[string]string{"zookeeper.connect": c.ZooKeeper() + "/a//b"}, exit: exitUsage,
			says: []string{"zookeeper.connect", "/a//b"}},
		{name: "port in use", props: map[string]string{"listeners": "PLAINTEXT://" + running.Addr}, exit: exitFailed,
			says: []string{running.Addr, "address already in use"}, noFolder: "data"},
		{name: "metrics port in use", props: map[string]string{"metrics.listener": running.Addr}, exit: exitFailed,
			says: []string{"metrics.listener", running.Addr, "address already in use"}, noFolder: "data"},
		{name: "folder of another broker", props: map[string]string{"log.dirs": stranger}, exit: exitFailed,
			says: []string{stranger, "broker.id=7", "2", "nothing was changed"}, untouch: stranger},
		{name: "folder of another cluster", props: map[string]string{"log.dirs": foreign}, exit: exitFailed,
			says: []string{foreign, "AAAAAAAAAAAAAAAAAAAAAA", clusterID(t, running.Dir), "nothing was changed"}, untouch: foreign},
		{name: "same folder under another chroot", exit: exitFailed,
			props: map[string]string{"broker.id": "1", "log.dirs": running.Dir, "zookeeper.connect": c.ZooKeeper() + "/elsewhere"},
			says:  []string{running.Dir, clusterID(t, running.Dir), "/elsewhere", "nothing was changed"}},
		{name: "damaged meta.properties", props: map[string]string{"log.dirs": damaged}, exit: exitFailed,
			says: []string{damaged, "broker.id", `"two"`}, untouch: damaged},
		{name: "folder and id of a live broker", props: map[string]string{"broker.id": "-1", "log.dirs": running.Dir}, exit: exitFailed,
			says: []string{"broker 1", running.Addr, "alive"}},
		{name: "a file as folder", props: map[string]string{"log.dirs": aFile}, exit: exitFailed, says: []string{aFile, "not a directory"}},
		{name: "a live twin", props: map[string]string{"broker.id": "1"}, exit: exitFailed,
			says: []string{"broker 1", running.Addr, "alive"}, noFolder: "data"},
		{name: "nobody at the address of ZooKeeper", exit: exitUnreachable,
			props: map[string]string{"zookeeper.connect": closed, "zookeeper.connection.timeout.ms": "1000"},
			says:  []string{"zookeeper.connect", closed, "refused"}, noFolder: "data"},
		{name: "a silent ZooKeeper", exit: exitUnreachable,
			props: map[string]string{"zookeeper.connect": silent, "zookeeper.connection.timeout.ms": "1000"},
			says:  []string{"zookeeper.connect", silent}, noFolder: "data"},
		{name: "a broker instead of ZooKeeper", exit: exitUnreachable,
			props: map[string]string{"zookeeper.connect": running.Addr, "zookeeper.connection.timeout.ms": "1000"},
			says:  []string{"zookeeper.connect", running.Addr}, noFolder: "data"},
		{name: "an unknown host", exit: exitUnreachable,
			props: map[string]string{"zookeeper.connect": "no-such-host.invalid:2181", "zookeeper.connection.timeout.ms": "1000"},
			says:  []string{"zookeeper.connect", "no-such-host.invalid"}, noFolder: "data"},
	} {
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) { r.check(t, c.ZooKeeper()) })
	}
	c.mustServe(t)
}

func (r *refusal) check(t *testing.T, zookeeper string) {
	folder := t.TempDir()
	file := r.file
	if file == "" {
		file = filepath.Join(folder, "server.properties")
		must(t, os.WriteFile(file, []byte(r.properties(folder, zookeeper)), 0o644))
	}
	before := ""
	if r.untouch != "" {
		before = fingerprint(t, r.untouch)
	}
	ctx, cancel := context.WithTimeout(t.Context(), refusalMax+20*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program(t, "kbroker"), "start", file)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	err := cmd.Run()
	took := time.Since(begin)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != r.exit {
		t.Errorf("ended with %v, want exit code %d", err, r.exit)
	}
	if took > refusalMax {
		t.Errorf("took %s, want at most %s", took, refusalMax)
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	said := lines[len(lines)-1]
	if at := strings.Index(stderr.String(), "kbroker: "); at >= 0 {
		said = stderr.String()[at:]
	}
	for _, want := range r.says {
		if !strings.Contains(said, want) {
			t.Errorf("the error does not say %q", want)
		}
	}
	if strings.Contains(stderr.String(), "goroutine ") || strings.Contains(stderr.String(), "panic") {
		t.Error("a panic")
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout: %s", &stdout)
	}
	if r.untouch != "" && fingerprint(t, r.untouch) != before {
		t.Errorf("%s was changed", r.untouch)
	}
	if r.noFolder != "" {
		if _, err := os.Stat(filepath.Join(folder, r.noFolder)); err == nil {
			t.Errorf("%s was made", r.noFolder)
		}
	}
	if t.Failed() {
		t.Logf("stderr:\n%s", &stderr)
	}
	t.Logf("%.2f s: %s", took.Seconds(), strings.TrimSpace(said))
}

func (r *refusal) properties(folder, zookeeper string) string {
	props := map[string]string{
		"broker.id": "2", "listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": filepath.Join(folder, "data"), "zookeeper.connect": zookeeper,
	}
	for k, v := range r.props {
		props[k] = v
	}
	var text strings.Builder
	for k, v := range props {
		fmt.Fprintf(&text, "%s=%s\n", k, v)
	}
	return text.String()
}

// fingerprint is a digest of all names, sizes, times of change and contents below a folder.
func fingerprint(t *testing.T, folder string) string {
	t.Helper()
	h := sha256.New()
	must(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(data)
		}
		return nil
	}))
	return fmt.Sprintf("%x", h.Sum(nil))
}

func writeMeta(t *testing.T, folder string, broker int, cluster string) {
	t.Helper()
	must(t, os.MkdirAll(folder, 0o755))
	text := fmt.Sprintf("version=0\nbroker.id=%d\ncluster.id=%s\n", broker, cluster)
	must(t, os.WriteFile(filepath.Join(folder, "meta.properties"), []byte(text), 0o644))
}

// clusterID reads it from a log directory.
func clusterID(t *testing.T, folder string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "meta.properties"))
	must(t, err)
	for line := range strings.Lines(string(data)) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "cluster.id="); ok {
			return id
		}
	}
	t.Fatalf("no cluster.id in %s", data)
	return ""
}

// silentListener accepts connections, reads and never answers.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return l.Addr().String()
}

func closedPort(t *testing.T) string {
	t.Helper()
	ports, err := harness.FreePorts(1)
	must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", ports[0])
}
