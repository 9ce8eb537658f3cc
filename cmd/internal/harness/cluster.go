package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options says what to start. Dir and Kbroker are required.
type Options struct {
	Kbroker   string            // path of the kbroker binary
	Dir       string            // data and log files go here; the caller removes it
	Brokers   int               // number of brokers; ids are 1..Brokers
	ZooKeeper string            // connect string of a running ensemble; empty: start the embedded server
	Props     map[string]string // extra server properties of every broker
	Ready     time.Duration     // how long a process may take to print ready; 0: 2 minutes
}

// stopMax is how long a process may take to end in order, on a busy machine too.
const stopMax = 2 * time.Minute

// Cluster is a set of running processes.
type Cluster struct {
	opts    Options
	zk      *process // nil when an ensemble was given
	zkAddr  string
	brokers []*Broker
}

// Broker is one broker of a Cluster, running or not. Its id, port and folder never change.
type Broker struct {
	ID   int32
	Addr string
	Dir  string

	opts  Options
	props string

	mu   sync.Mutex // guards proc
	proc *process
}

// Start starts everything and returns when every broker has printed ready.
func Start(ctx context.Context, opts Options) (_ *Cluster, err error) {
	if opts.Ready == 0 {
		opts.Ready = 2 * time.Minute
	}
	c := &Cluster{opts: opts, zkAddr: opts.ZooKeeper}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	ports, err := FreePorts(opts.Brokers + 1)
	if err != nil {
		return nil, err
	}
	if c.zkAddr == "" {
		c.zkAddr = fmt.Sprintf("127.0.0.1:%d", ports[opts.Brokers])
		if err := c.StartZooKeeper(ctx); err != nil {
			return nil, err
		}
	}
	for i := range opts.Brokers {
		b, err := c.newBroker(int32(i+1), ports[i])
		if err != nil {
			return nil, err
		}
		c.brokers = append(c.brokers, b)
	}
	return c, c.startAll(ctx)
}

// StartZooKeeper starts the embedded server, for the first time or after KillZooKeeper.
func (c *Cluster) StartZooKeeper(ctx context.Context) (err error) {
	c.zk, err = startProcess(ctx, filepath.Join(c.opts.Dir, "zookeeper.log"), c.opts.Ready, c.opts.Kbroker,
		"zookeeper", "--data-dir", filepath.Join(c.opts.Dir, "zookeeper"), "--listen", c.zkAddr, "--tick-time", "500ms")
	if err != nil {
		return fmt.Errorf("start zookeeper: %w", err)
	}
	return nil
}

// KillZooKeeper ends the embedded server with SIGKILL.
func (c *Cluster) KillZooKeeper() error {
	zk := c.zk
	c.zk = nil
	return zk.kill()
}

func (c *Cluster) newBroker(id int32, port int) (*Broker, error) {
	b := &Broker{
		ID:   id,
		Addr: fmt.Sprintf("127.0.0.1:%d", port),
		Dir:  filepath.Join(c.opts.Dir, fmt.Sprintf("broker-%d", id)),
		opts: c.opts,
	}
	b.props = filepath.Join(c.opts.Dir, fmt.Sprintf("broker-%d.properties", id))
	var text strings.Builder
	fmt.Fprintf(&text, "broker.id=%d\nlisteners=PLAINTEXT://%s\nlog.dirs=%s\nzookeeper.connect=%s\n", id, b.Addr, b.Dir, c.zkAddr)
	for k, v := range c.opts.Props {
		fmt.Fprintf(&text, "%s=%s\n", k, v)
	}
	return b, os.WriteFile(b.props, []byte(text.String()), 0o644)
}

func (c *Cluster) startAll(ctx context.Context) error {
	errs := make(chan error, len(c.brokers))
	for _, b := range c.brokers {
		go func() { errs <- b.Start(ctx) }()
	}
	var all error
	for range c.brokers {
		all = errors.Join(all, <-errs)
	}
	return all
}

// Stop ends all brokers in order (a controlled shutdown each), then ZooKeeper.
func (c *Cluster) Stop() error {
	errs := make(chan error, len(c.brokers))
	for _, b := range c.brokers {
		go func() { errs <- b.Stop() }()
	}
	var all error
	for range c.brokers {
		all = errors.Join(all, <-errs)
	}
	if c.zk != nil {
		all = errors.Join(all, c.zk.stop(stopMax))
		c.zk = nil
	}
	return all
}

// Brokers returns the brokers in the order of their ids.
func (c *Cluster) Brokers() []*Broker { return c.brokers }

// Broker returns the broker with the id, or nil.
func (c *Cluster) Broker(id int32) *Broker {
	for _, b := range c.brokers {
		if b.ID == id {
			return b
		}
	}
	return nil
}

// Bootstrap returns the addresses of all brokers.
func (c *Cluster) Bootstrap() []string {
	var out []string
	for _, b := range c.brokers {
		out = append(out, b.Addr)
	}
	return out
}

// ZooKeeper returns the connect string.
func (c *Cluster) ZooKeeper() string { return c.zkAddr }

// PIDs returns the process ids of the running brokers and, when it is ours, of ZooKeeper last.
func (c *Cluster) PIDs() []int {
	var out []int
	for _, b := range c.brokers {
		if pid := b.PID(); pid != 0 {
			out = append(out, pid)
		}
	}
	if c.zk != nil {
		out = append(out, c.zk.pid())
	}
	return out
}

// Start starts the broker and waits until it is ready.
func (b *Broker) Start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc != nil {
		return fmt.Errorf("broker %d runs already", b.ID)
	}
	p, err := startProcess(ctx, b.LogFile(), b.opts.Ready, b.opts.Kbroker, "start", b.props)
	if err != nil {
		return fmt.Errorf("start broker %d: %w", b.ID, err)
	}
	b.proc = p
	return nil
}

// Kill ends the broker with SIGKILL and waits until the process is gone.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc == nil {
		return fmt.Errorf("broker %d does not run", b.ID)
	}
	err := b.proc.kill()
	b.proc = nil
	return err
}

// Stop ends the broker with SIGTERM: a controlled shutdown. A broker that does not run is no error.
func (b *Broker) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc == nil {
		return nil
	}
	err := b.proc.stop(stopMax)
	b.proc = nil
	if err != nil {
		return fmt.Errorf("stop broker %d: %w", b.ID, err)
	}
	return nil
}

// Signal sends a signal, such as SIGSTOP, to the broker.
func (b *Broker) Signal(sig os.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc == nil {
		return fmt.Errorf("broker %d does not run", b.ID)
	}
	return b.proc.cmd.Process.Signal(sig)
}

// PropsFile returns the broker's server.properties.
func (b *Broker) PropsFile() string { return b.props }

// PID returns the process id, 0 when it does not run.
func (b *Broker) PID() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proc == nil {
		return 0
	}
	return b.proc.pid()
}

// LogFile returns the file that collects the broker's stderr over all its lives.
func (b *Broker) LogFile() string { return b.Dir + ".log" }

// FreePorts returns n TCP ports of 127.0.0.1 that nobody listens on now. They lie below the range from which
// the kernel takes client ports, so that an outgoing connection cannot take one before it is used.
func FreePorts(n int) ([]int, error) {
	var out []int
	for port := 20000 + os.Getpid()%5000; port < 32000 && len(out) < n; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		l.Close()
		out = append(out, port)
	}
	if len(out) < n {
		return nil, fmt.Errorf("only %d of %d loopback ports are free", len(out), n)
	}
	return out, nil
}
