//go:build proc

package proctest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/harness"
)

const topic = "crash"

// TestRoundsEmbeddedZooKeeper: 20 rounds of kill -9 over the embedded ZooKeeper.
func TestRoundsEmbeddedZooKeeper(t *testing.T) { runRounds(t, "") }

type run struct {
	t       *testing.T
	ctx     context.Context
	rng     *rand.Rand
	cluster *harness.Cluster
	ledger  *harness.Ledger
	client  *kgo.Client
}

func runRounds(t *testing.T, zookeeper string) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (repeat with -seed %d)", s, s)
	dir, err := os.MkdirTemp("", "kbroker-crash-")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("data and logs are kept in %s", dir)
			return
		}
		os.RemoveAll(dir)
	})
	r := &run{t: t, ctx: ctx, rng: rand.New(rand.NewPCG(s, 1)), ledger: harness.NewLedger(topic)}
	r.cluster, err = harness.Start(ctx, harness.Options{
		Kbroker: binary(t, "kbroker"), Dir: dir, Brokers: 3, ZooKeeper: zookeeper,
		Props: map[string]string{"zookeeper.session.timeout.ms": "3000", "offsets.topic.replication.factor": "3"},
	})
	must(t, err)
	defer func() {
		if err := r.cluster.Stop(); err != nil {
			t.Errorf("ordered stop: %v", err)
		}
	}()
	r.createTopic()
	r.client, err = harness.NewProducer(r.cluster.Bootstrap(), kgo.ProducerBatchMaxBytes(2048))
	must(t, err)
	defer r.client.Close()
	for n := range *rounds {
		r.round(n)
	}
	r.verify()
}

// round writes while one broker is killed and started again. Every third victim is the controller. Now and
// then the next round begins before the victim is back in sync, so that two failures overlap.
func (r *run) round(n int) {
	victim := r.cluster.Broker(int32(1 + r.rng.IntN(3)))
	if n%3 == 0 {
		victim = r.controller()
	}
	at := r.ledger.Acked() + r.rng.IntN(*records)
	killed := make(chan error, 1)
	trigger := make(chan struct{}, *records)
	go func() {
		<-trigger
		killed <- victim.Kill()
	}()
	fired := false
	start := time.Now()
	done := make(chan error, 1)
	go func() {
		done <- r.ledger.Produce(r.ctx, r.client, *records, func(acked int) {
			if acked >= at && !fired {
				fired = true
				trigger <- struct{}{}
			}
		})
	}()
	select {
	case err := <-killed:
		must(r.t, err)
	case <-r.ctx.Done():
		r.fail("no record was acknowledged any more", r.ctx.Err())
	}
	if r.rng.IntN(2) == 0 { // sometimes the broker returns within its old session, sometimes long after it
		r.wait(time.Duration(r.rng.IntN(5000)) * time.Millisecond)
	}
	must(r.t, victim.Start(r.ctx))
	if err := <-done; err != nil {
		r.fail("produce", err)
	}
	r.t.Logf("round %2d: killed broker %d, %d records acknowledged in all, %.1f s", n+1, victim.ID, r.ledger.Acked(), time.Since(start).Seconds())
	if r.rng.IntN(3) > 0 {
		r.waitFullISR()
	}
}

func (r *run) verify() {
	r.waitFullISR()
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Minute)
	defer cancel()
	read, err := r.ledger.Verify(ctx, r.cluster.Bootstrap())
	if err != nil {
		r.fail("verify", err)
	}
	r.t.Logf("%d acknowledged, %d read", r.ledger.Acked(), read)
	adm := r.admin()
	defer adm.Close()
	ends, err := adm.ListEndOffsets(r.ctx, topic)
	must(r.t, err)
	topics, err := adm.ListTopics(r.ctx, topic)
	must(r.t, err)
	ends.Each(func(o kadm.ListedOffset) {
		must(r.t, o.Err)
		replicas := topics[topic].Partitions[o.Partition].Replicas
		if err := r.cluster.CompareReplicas(topic, o.Partition, replicas, o.Offset); err != nil {
			r.t.Error(err)
		}
		r.t.Logf("partition %d: replicas %v byte-identical below high watermark %d", o.Partition, replicas, o.Offset)
	})
}

func (r *run) createTopic() {
	adm := r.admin()
	defer adm.Close()
	two := "2"
	_, err := adm.CreateTopic(r.ctx, 4, 3, map[string]*string{"min.insync.replicas": &two}, topic)
	must(r.t, err)
}

func (r *run) controller() *harness.Broker {
	adm := r.admin()
	defer adm.Close()
	for {
		m, err := adm.BrokerMetadata(r.ctx)
		if b := r.cluster.Broker(m.Controller); err == nil && b != nil && b.PID() != 0 {
			return b
		}
		r.wait(100 * time.Millisecond)
	}
}

// waitFullISR waits until every partition has three replicas in sync.
func (r *run) waitFullISR() {
	adm := r.admin()
	defer adm.Close()
	deadline := time.Now().Add(90 * time.Second)
	for {
		topics, err := adm.ListTopics(r.ctx, topic)
		full := err == nil && len(topics[topic].Partitions) == 4
		for _, p := range topics[topic].Partitions {
			full = full && len(p.ISR) == 3
		}
		if full {
			return
		}
		if time.Now().After(deadline) {
			r.fail("replicas did not get back into the ISR", fmt.Errorf("%+v, %v", topics, err))
		}
		r.wait(100 * time.Millisecond)
	}
}

func (r *run) admin() *kadm.Client {
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.cluster.Bootstrap()...), kgo.MetadataMinAge(100*time.Millisecond))
	must(r.t, err)
	return kadm.NewClient(cl)
}

// wait passes real time: the brokers are other processes with clocks of their own.
func (r *run) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
		r.fail("time is up", r.ctx.Err())
	}
}

func (r *run) fail(what string, err error) {
	r.t.Helper()
	for _, line := range r.cluster.GrepLogs(40, "panic", "level=ERROR", "invariant") {
		r.t.Log(line)
	}
	r.t.Fatalf("%s: %v", what, err)
}
