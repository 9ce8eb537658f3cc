package kbrokercmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"kctl/broker"
	"kctl/broker/config"
	"kctl/zkutil"
	"kctl/zkutil/zkop"
	"kctl/zkutil/zkserver"
	"kctl/zkutil/znode"
)

// devOptions are the flags of dev.
type devOptions struct {
	brokers       int
	dataDir       string
	port          int
	zookeeperPort int
	metricsPort   int
	sets          []string
}

func (a *app) devCmd() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in one process",
		Long: `Run the embedded ZooKeeper and brokers 1..N in one process, on 127.0.0.1. Prints ready when every broker is
registered and serves metadata. Without --data-dir the data goes to a temporary folder, removed at the end.`,
		Example: `  kbroker dev
  kbroker dev --brokers 1 --port 9092 --data-dir ./data --set num.partitions=8`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger()
			if err != nil {
				return err
			}
			return a.runDev(cmd.Context(), o, log)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.brokers, "brokers", 3, "number of brokers")
	f.StringVar(&o.dataDir, "data-dir", "", "folder of all data; empty: a temporary one")
	f.IntVar(&o.port, "port", 9092, "port of broker 1; the others follow; 0: free ports")
	f.IntVar(&o.zookeeperPort, "zookeeper-port", 2181, "port of the embedded ZooKeeper; 0: a free port")
	f.IntVar(&o.metricsPort, "metrics-port", 9644, "metrics port of broker 1; the others follow; 0: none")
	f.StringArrayVar(&o.sets, "set", nil, "configuration of every broker as key=value; may be repeated")
	return cmd
}

func (o devOptions) check() error {
	last := o.brokers - 1
	switch {
	case o.brokers < 1 || o.brokers > 100:
		return fmt.Errorf("invalid --brokers %d: must be from 1 to 100", o.brokers)
	case o.port < 0 || o.port+last > 65535:
		return fmt.Errorf("invalid --port %d: must be from 0 to %d", o.port, 65535-last)
	case o.metricsPort < 0 || o.metricsPort+last > 65535:
		return fmt.Errorf("invalid --metrics-port %d: must be from 0 to %d", o.metricsPort, 65535-last)
	case o.zookeeperPort < 0 || o.zookeeperPort > 65535:
		return fmt.Errorf("invalid --zookeeper-port %d: must be from 0 to 65535", o.zookeeperPort)
	}
	return nil
}

// devTick is short: brokers and server share a process, so nothing but a crash of both ends a session.
const devTick = 500 * time.Millisecond

// runDev starts ZooKeeper, then the brokers, prints ready, and stops them in the opposite order.
func (a *app) runDev(ctx context.Context, o devOptions, log *slog.Logger) (err error) {
	if err := o.check(); err != nil {
		return usageError{err}
	}
	fsync := o.dataDir != ""
	if o.dataDir == "" {
		if o.dataDir, err = os.MkdirTemp("", "kbroker-dev-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dataDir)) }()
	}
	// The configuration is checked before anything listens; the address of ZooKeeper is filled in afterwards.
	if _, err := o.brokerConfigs("127.0.0.1:2181", log); err != nil {
		return usageError{err}
	}
	zk, err := zkserver.Start(context.WithoutCancel(ctx), zkserver.Config{
		Addr: "127.0.0.1:" + strconv.Itoa(o.zookeeperPort), DataDir: filepath.Join(o.dataDir, "zookeeper"), Fsync: fsync, TickTime: devTick,
		MaxSessionTimeout: time.Minute, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, zk.Close()) }()
	configs, err := o.brokerConfigs(zk.Addr(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := markDevCluster(ctx, zk.Addr()); err != nil {
		return err
	}
	return a.runAll(ctx, configs, log, zk)
}

// markDevCluster says in ZooKeeper that failures may be rehearsed on this cluster (kctl lab).
func markDevCluster(ctx context.Context, addr string) error {
	zk, err := zkutil.Connect(ctx, zkutil.Config{Connect: addr})
	if err != nil {
		return fmt.Errorf("mark the cluster: %w", err)
	}
	_, err = zkutil.Any(zk).Create(ctx, znode.DevClusterPath, znode.EncodeDevCluster(), zkop.Persistent)
	if errors.Is(err, zkop.ErrNodeExists) {
		err = nil // a data directory that is used again
	}
	return errors.Join(err, zk.Close())
}

// brokerConfigs makes the configuration of brokers 1..N.
func (o devOptions) brokerConfigs(zookeeper string, log *slog.Logger) ([]*config.Broker, error) {
	out := make([]*config.Broker, 0, o.brokers)
	for i := range o.brokers {
		id := strconv.Itoa(i + 1)
		port, metrics := 0, ""
		if o.port != 0 {
			port = o.port + i
		}
		if o.metricsPort != 0 {
			metrics = "127.0.0.1:" + strconv.Itoa(o.metricsPort+i)
		}
		replicas := strconv.Itoa(min(3, o.brokers))
		sets := []string{
			"broker.id=" + id,
			"listeners=PLAINTEXT://127.0.0.1:" + strconv.Itoa(port),
			"log.dirs=" + filepath.Join(o.dataDir, "broker-"+id),
			"zookeeper.connect=" + zookeeper,
			"offsets.topic.replication.factor=" + replicas,
			"default.replication.factor=" + replicas,
			"group.initial.rebalance.delay.ms=0",
			"metrics.listener=" + metrics,
		}
		b, err := loadConfig(nil, append(sets, o.sets...), log)
		if err != nil {
			return nil, err
		}
		log = slog.New(slog.DiscardHandler) // one set of warnings is enough
		out = append(out, b)
	}
	return out, nil
}

// devBroker is one broker of dev and its life.
type devBroker struct {
	*broker.Broker
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned
}

// runAll runs the brokers until ctx ends or one of them fails.
func (a *app) runAll(ctx context.Context, configs []*config.Broker, log *slog.Logger, zk *zkserver.Server) error {
	g, gctx := errgroup.WithContext(ctx)
	brokers := make([]*devBroker, len(configs))
	for i, c := range configs {
		life, stop := context.WithCancel(context.WithoutCancel(ctx))
		b := &devBroker{Broker: broker.New(c, broker.Options{Logger: log}), stop: stop, done: make(chan struct{})}
		brokers[i] = b
		g.Go(func() error {
			defer close(b.done)
			if err := b.Run(life); err != nil {
				return fmt.Errorf("broker %d: %w", b.ID(), err)
			}
			return nil
		})
	}
	g.Go(func() error {
		select {
		case <-gctx.Done():
			stopInOrder(brokers)
			return nil
		case <-zk.Done():
			for _, b := range brokers {
				b.stop()
			}
			return fmt.Errorf("embedded ZooKeeper stopped: %w", zk.Err())
		}
	})
	g.Go(func() error {
		for _, b := range brokers {
			if err := broker.AwaitMembers(gctx, b.Broker, len(brokers)); err != nil {
				return nil // the brokers tell why
			}
		}
		fmt.Fprintln(a.stdout, "ready")
		return nil
	})
	return g.Wait()
}

// stopInOrder stops one broker after the other, the controller last, so that each of the others has somebody
// who takes its leaders over and somebody who arranges that. Their logs are closed side by side.
func stopInOrder(brokers []*devBroker) {
	var last *devBroker
	for _, b := range brokers {
		if b.IsController() {
			last = b
			continue
		}
		b.stop()
		<-b.Left()
	}
	if last != nil {
		last.stop()
	}
	for _, b := range brokers {
		<-b.done
	}
}
