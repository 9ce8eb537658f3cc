// Package realzk runs Apache ZooKeeper servers on 127.0.0.1 for tests: one node, or an ensemble of three.
//
// The jars come from a folder, JarsFromEnv, that Install fills with Maven. Nothing is shared between
// clusters: each has its folder and its free ports.
package realzk

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// EnvJars names the folder with the jars of ZooKeeper and what it needs.
const EnvJars = "KCTL_ZK_JARS"

//go:embed testdata/pom.xml
var pom []byte

// JarsFromEnv returns the folder that EnvJars names; the error says how to fill one.
func JarsFromEnv() (string, error) {
	dir := os.Getenv(EnvJars)
	if dir == "" {
		return "", fmt.Errorf("%s is not set: it names a folder with the jars of ZooKeeper (realzk.Install fills one by Maven)", EnvJars)
	}
	found, err := filepath.Glob(filepath.Join(dir, "zookeeper-[0-9]*.jar"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%s=%s holds no zookeeper-*.jar", EnvJars, dir)
	}
	return dir, nil
}

// Install copies ZooKeeper 3.8.4 and its dependencies into dir with Maven.
func Install(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(file, pom, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", file, "dependency:copy-dependencies",
		"-DoutputDirectory="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn dependency:copy-dependencies: %w: %s", err, out)
	}
	return nil
}

// Options say what to start. Jars and Dir are required.
type Options struct {
	Jars    string
	Dir     string // data, configuration and logs
	Servers int    // 1 or 3
	// Properties are added to zoo.cfg and win over the defaults.
	Properties map[string]string
}

// Cluster is a running standalone server or ensemble. Its methods are for one goroutine.
type Cluster struct {
	nodes []*node
}

type node struct {
	jars, dir              string
	client, quorum, leader int
	cmd                    *exec.Cmd
	exited                 chan struct{}
	mu                     sync.Mutex // guards log
	log                    bytes.Buffer
}

// Start launches the servers and waits until each answers with its mode.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Servers != 1 && o.Servers != 3 {
		return nil, fmt.Errorf("%d servers: want 1 or 3", o.Servers)
	}
	c := &Cluster{}
	ports, err := freePorts(3 * o.Servers)
	if err != nil {
		return nil, err
	}
	for i := range o.Servers {
		dir := filepath.Join(o.Dir, "zk"+strconv.Itoa(i+1))
		c.nodes = append(c.nodes, &node{
			jars: o.Jars, dir: dir, client: ports[3*i], quorum: ports[3*i+1], leader: ports[3*i+2],
		})
	}
	for i := range c.nodes {
		if err := c.configure(i, o.Properties); err != nil {
			return nil, err
		}
	}
	for i := range c.nodes {
		if err := c.nodes[i].start(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	for i := range c.nodes {
		if err := c.WaitServing(ctx, i); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *Cluster) configure(i int, extra map[string]string) error {
	n := c.nodes[i]
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	props := map[string]string{
		"dataDir": n.dir, "clientPort": strconv.Itoa(n.client), "clientPortAddress": "127.0.0.1",
		"tickTime": "200", "initLimit": "100", "syncLimit": "50", "minSessionTimeout": "400",
		"maxSessionTimeout": "60000", "admin.enableServer": "false", "4lw.commands.whitelist": "*",
		"maxClientCnxns": "0",
	}
	if len(c.nodes) > 1 {
		for k, s := range c.nodes {
			props["server."+strconv.Itoa(k+1)] = fmt.Sprintf("127.0.0.1:%d:%d", s.quorum, s.leader)
		}
		if err := os.WriteFile(filepath.Join(n.dir, "myid"), []byte(strconv.Itoa(i+1)), 0o644); err != nil {
			return err
		}
	}
	for k, v := range extra {
		props[k] = v
	}
	var b strings.Builder
	for k, v := range props {
		fmt.Fprintf(&b, "%s=%s\n", k, v)
	}
	return os.WriteFile(filepath.Join(n.dir, "zoo.cfg"), []byte(b.String()), 0o644)
}

func (n *node) start() error {
	cmd := exec.Command("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.forceSync=no", "-Dzookeeper.extendedTypesEnabled=true", "-Djava.net.preferIPv4Stack=true",
		"-cp", filepath.Join(n.jars, "*"), "org.apache.zookeeper.server.quorum.QuorumPeerMain",
		filepath.Join(n.dir, "zoo.cfg"))
	cmd.Stdout, cmd.Stderr = n, n
	cmd.Dir = n.dir
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start ZooKeeper: %w", err)
	}
	n.cmd, n.exited = cmd, make(chan struct{})
	go func(done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(n.exited)
	return nil
}

// Write keeps the last part of the server's output for error messages.
func (n *node) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.log.Len() > 64<<10 {
		n.log.Reset()
	}
	return n.log.Write(p)
}

func (n *node) output() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// WaitServing waits until server i (from 0) is standalone, leader or follower.
func (c *Cluster) WaitServing(ctx context.Context, i int) error {
	n := c.nodes[i]
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if mode := c.Mode(i); mode != "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-n.exited:
			return fmt.Errorf("ZooKeeper %d ended while starting: %s", i+1, n.output())
		case <-ctx.Done():
			return fmt.Errorf("ZooKeeper %d does not serve: %w: %s", i+1, ctx.Err(), n.output())
		}
	}
}

// Mode is standalone, leader or follower; empty when the server does not serve.
func (c *Cluster) Mode(i int) string {
	for _, line := range strings.Split(c.ask(i, "srvr"), "\n") {
		if mode, ok := strings.CutPrefix(line, "Mode: "); ok {
			return strings.TrimSpace(mode)
		}
	}
	return ""
}

// Serves reports whether server i has the connection of a session.
func (c *Cluster) Serves(i int, session int64) bool {
	return strings.Contains(c.ask(i, "cons"), fmt.Sprintf("sid=0x%x,", session))
}

// ask sends a four-letter word; the answer is empty when there is none within two seconds.
func (c *Cluster) ask(i int, word string) string {
	conn, err := net.DialTimeout("tcp", c.Addr(i), time.Second)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(conn, word); err != nil {
		return ""
	}
	answer, _ := io.ReadAll(conn)
	return string(answer)
}

// Len is the number of servers.
func (c *Cluster) Len() int { return len(c.nodes) }

// Addr is host:port of server i, from 0.
func (c *Cluster) Addr(i int) string { return "127.0.0.1:" + strconv.Itoa(c.nodes[i].client) }

// ConnectString names all servers, followed by chroot ("" or "/a/b").
func (c *Cluster) ConnectString(chroot string) string {
	addrs := make([]string, len(c.nodes))
	for i := range c.nodes {
		addrs[i] = c.Addr(i)
	}
	return strings.Join(addrs, ",") + chroot
}

// Leader is the index of the ensemble's leader (or the standalone server), -1 when there is none.
func (c *Cluster) Leader() int {
	for i := range c.nodes {
		if m := c.Mode(i); m == "leader" || m == "standalone" {
			return i
		}
	}
	return -1
}

// Signal sends a signal to server i: SIGSTOP, SIGCONT and the like.
func (c *Cluster) Signal(i int, s os.Signal) error { return c.nodes[i].cmd.Process.Signal(s) }

// Kill ends server i at once, as kill -9 does, and waits for its end.
func (c *Cluster) Kill(i int) error { return c.end(i, syscall.SIGKILL) }

// Stop ends server i in order and waits for its end.
func (c *Cluster) Stop(i int) error { return c.end(i, syscall.SIGTERM) }

func (c *Cluster) end(i int, s os.Signal) error {
	n := c.nodes[i]
	select {
	case <-n.exited:
		return nil
	default:
	}
	if err := n.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-n.exited:
		return nil
	case <-time.After(10 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.exited
		return fmt.Errorf("ZooKeeper %d ignored %s", i+1, s)
	}
}

// Restart starts server i again on its data and ports, and waits until it serves.
func (c *Cluster) Restart(ctx context.Context, i int) error {
	if err := c.end(i, syscall.SIGKILL); err != nil {
		return err
	}
	if err := c.nodes[i].start(); err != nil {
		return err
	}
	return c.WaitServing(ctx, i)
}

// Close kills every server.
func (c *Cluster) Close() error {
	var errs []error
	for i, n := range c.nodes {
		if n.cmd != nil {
			errs = append(errs, c.end(i, syscall.SIGKILL))
		}
	}
	return errors.Join(errs...)
}

// freePorts finds ports that nobody listens on just now, all different.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
