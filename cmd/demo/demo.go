package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/harness"
)

const topic = "demo"

// demo is one run. cluster is set once the brokers run.
type demo struct {
	bin     string
	records int
	cluster *harness.Cluster
}

func (d *demo) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "kbroker-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nlogs are kept in %s", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	say("Starting an embedded ZooKeeper and three brokers, each a process of its own, data in %s", dir)
	d.cluster, err = harness.Start(ctx, harness.Options{
		Kbroker: filepath.Join(d.bin, "kbroker"),
		Dir:     dir,
		Brokers: 3,
		Props: map[string]string{
			"zookeeper.session.timeout.ms":     "6000",
			"offsets.topic.replication.factor": "3",
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.cluster.Stop()) }()
	return d.story(ctx)
}

// story is the demo itself, step by step.
func (d *demo) story(ctx context.Context) error {
	if err := d.kctl(ctx, "topics", "create", topic, "--partitions", "6", "--replication-factor", "3", "--config", "min.insync.replicas=2"); err != nil {
		return err
	}
	ledger := harness.NewLedger(topic)
	dead, err := d.produceThroughKill(ctx, ledger)
	if err != nil {
		return err
	}
	read, err := ledger.Verify(ctx, d.cluster.Bootstrap())
	if err != nil {
		return fmt.Errorf("acknowledged records are missing or wrong: %w", err)
	}
	say("%d records acknowledged, %d read back: each at its offset, none lost, none twice, in order", ledger.Acked(), read)
	say("Starting broker %d again; it truncates to the new leaders' epochs and catches up", dead.ID)
	if err := dead.Start(ctx); err != nil {
		return err
	}
	if err := d.waitFullISR(ctx); err != nil {
		return err
	}
	if err := d.kctl(ctx, "lag", "replicas", topic); err != nil {
		return err
	}
	return d.finish(ctx)
}

// produceThroughKill produces all records and kills the leader of partition 0 when half are acknowledged.
func (d *demo) produceThroughKill(ctx context.Context, ledger *harness.Ledger) (*harness.Broker, error) {
	leader, err := d.leaderOf(ctx, 0)
	if err != nil {
		return nil, err
	}
	cl, err := harness.NewProducer(d.cluster.Bootstrap())
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	say("Producing %d records with acks=all", d.records)
	start := time.Now()
	var killed atomic.Bool
	killErr := make(chan error, 1)
	err = ledger.Produce(ctx, cl, d.records, func(acked int) {
		if acked >= d.records/2 && killed.CompareAndSwap(false, true) {
			go func() {
				say("%d acknowledged: kill -9 of broker %d, the leader of %s-0 (pid %d)", acked, leader.ID, topic, leader.PID())
				killErr <- leader.Kill()
			}()
		}
	})
	if err != nil {
		return nil, err
	}
	say("All %d records acknowledged after %.1f s, the failover included", ledger.Acked(), time.Since(start).Seconds())
	return leader, <-killErr
}

// leaderOf waits until the broker that is asked has heard of the partition's leader.
func (d *demo) leaderOf(ctx context.Context, partition int32) (*harness.Broker, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		detail, err := d.describe(ctx)
		if err == nil {
			if b := d.cluster.Broker(detail.Partitions[partition].Leader); b != nil {
				return b, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("%s-%d has no leader: %w", topic, partition, ctx.Err()), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (d *demo) describe(ctx context.Context) (kadm.TopicDetail, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.cluster.Bootstrap()...))
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil {
		return kadm.TopicDetail{}, err
	}
	return topics[topic], topics[topic].Err
}

// waitFullISR asks until every partition has all three replicas in sync.
func (d *demo) waitFullISR(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		detail, err := d.describe(ctx)
		full := err == nil
		for _, p := range detail.Partitions {
			full = full && len(p.ISR) == len(p.Replicas)
		}
		if full {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("broker did not get back into every ISR: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// finish ends in the TUI on a terminal; elsewhere the demo is over.
func (d *demo) finish(ctx context.Context) error {
	if !isatty.IsTerminal(os.Stdin.Fd()) || !isatty.IsTerminal(os.Stdout.Fd()) {
		say("Done.")
		return nil
	}
	say("The cluster keeps running behind the TUI; q ends both.")
	return d.exec(ctx, "tui")
}

// kctl shows the command as a reader would type it, then runs it against the demo's cluster.
func (d *demo) kctl(ctx context.Context, args ...string) error {
	fmt.Printf("\n$ kctl %s\n", strings.Join(args, " "))
	return d.exec(ctx, args...)
}

func (d *demo) exec(ctx context.Context, args ...string) error {
	args = append(args, "-b", strings.Join(d.cluster.Bootstrap(), ","), "-z", d.cluster.ZooKeeper())
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, "kctl"), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kctl %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func say(format string, args ...any) { fmt.Printf("\n==> "+format+"\n", args...) }
