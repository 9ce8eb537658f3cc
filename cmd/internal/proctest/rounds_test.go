//go:build proc

package proctest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kctl/cmd/internal/harness"
)

const topic = "crash"

// roundWait is for what must come true in a round, on a busy machine too.
const roundWait = 3 * time.Minute

// TestRoundsEmbeddedZooKeeper: 20 rounds of kill -9 over the embedded ZooKeeper.
func TestRoundsEmbeddedZooKeeper(t *testing.T) { runRounds(t, "") }

type run struct {
	t       *testing.T
	ctx     context.Context
	rng     *rand.Rand
	cluster *harness.Cluster
	ledger  *harness.Ledger
	client  *kgo.Client

	ownZooKeeper bool // it may be killed
}

func runRounds(t *testing.T, zookeeper string) {
	ctx, cancel := context.WithTimeout(t.Context(), 38*time.Minute)
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
	r := &run{t: t, ctx: ctx, ownZooKeeper: zookeeper == "", rng: rand.New(rand.NewPCG(s, 1)), ledger: harness.NewLedger(topic)}
	r.cluster, err = harness.Start(ctx, harness.Options{
		Kbroker: program(t, "kbroker"), Dir: dir, Brokers: 3, ZooKeeper: zookeeper,
		Props: map[string]string{"zookeeper.session.timeout.ms": "3000", "offsets.topic.replication.factor": "3"},
	})
	must(t, err)
	defer func() {
		if err := r.cluster.Stop(); err != nil {
			t.Errorf("ordered stop: %v", err)
		}
	}()
	r.createTopic()
	r.client, err = harness.NewProducer(r.cluster.Bootstrap(), kgo.ProducerBatchMaxBytes(2048), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	defer r.client.Close()
	for n := range *rounds {
		r.round(n)
	}
	r.verify()
}

// The load of a round: windowMax records of each partition are unanswered at any time until the kill, so that it
// always falls between a record's arrival and its acknowledgement; afterwards the load goes on at a slower pace,
// because all of it is read back in the end.
const (
	partitions    = 4
	windowMax     = 150
	slowPerSecond = 500 // of each partition
	afterKill     = 500 // records that must be acknowledged after the victims are back before a round ends
)

// round writes while one broker is killed and started again. Every third victim is the controller, every
// seventh round kills two brokers at once, every tenth all three; every fifth kills the embedded ZooKeeper too.
// Now and then the next round begins before the victim is back in sync, so that two failures overlap.
func (r *run) round(n int) {
	victims := r.victims(n)
	begin := time.Now()
	load := r.startLoad()
	at := load.ackedBefore + r.rng.IntN(*records)
	r.await("the load of the round", func() bool { return r.ledger.Acked() >= at && r.ledger.InFlight() > windowMax })
	inFlight := r.ledger.InFlight()
	acked := r.ledger.Acked()
	zk := r.ownZooKeeper && n%5 == 4
	if zk {
		must(r.t, r.cluster.KillZooKeeper())
	}
	r.kill(victims)
	load.slow.Store(true)
	down := time.Duration(0)
	if r.rng.IntN(2) == 0 { // sometimes the broker returns within its old session, sometimes after it
		down = time.Duration(r.rng.IntN(5000)) * time.Millisecond
		r.wait(down)
	}
	atKill := r.ledger.Acked()
	if zk {
		must(r.t, r.cluster.StartZooKeeper(r.ctx))
	}
	for _, v := range victims {
		must(r.t, v.Start(r.ctx))
	}
	back := r.ledger.Acked()
	r.await("acknowledgements after the restart", func() bool { return r.ledger.Acked() >= back+afterKill })
	load.end()
	if err := r.ledger.Err(); err != nil {
		r.fail("produce", err)
	}
	r.t.Logf("round %2d: killed %s with %d records in flight, down %.1f s; acknowledged: %d before, %d while down, %d in all; %.1f s",
		n+1, names(victims, zk), inFlight, down.Seconds(), acked, atKill-acked, r.ledger.Acked(), time.Since(begin).Seconds())
	if r.rng.IntN(3) > 0 {
		r.waitFullISR()
	}
}

// victims draws who is killed in the round. Two at once only from a cluster in full health: the one that is
// left must have every acknowledged record.
func (r *run) victims(n int) []*harness.Broker {
	all := r.cluster.Brokers()
	switch {
	case n%10 == 9:
		r.waitFullISR()
		return all
	case n%7 == 6:
		r.waitFullISR()
		left := r.rng.IntN(len(all))
		return append(slices.Clone(all[:left]), all[left+1:]...)
	case n%3 == 0:
		return []*harness.Broker{r.controller()}
	}
	return []*harness.Broker{all[r.rng.IntN(len(all))]}
}

func (r *run) kill(victims []*harness.Broker) {
	done := make(chan error, len(victims))
	for _, v := range victims {
		go func() { done <- v.Kill() }()
	}
	for range victims {
		must(r.t, <-done)
	}
}

// load is a producer per partition, each going on until end whatever happens to the others.
type load struct {
	ackedBefore int
	slow        atomic.Bool // slowPerSecond instead of as fast as the windows allow
	stop        chan struct{}
	producers   sync.WaitGroup
}

func (r *run) startLoad() *load {
	l := &load{ackedBefore: r.ledger.Acked(), stop: make(chan struct{})}
	for p := range int32(partitions) {
		l.producers.Go(func() { r.produce(l, p) })
	}
	return l
}

// produce keeps up to windowMax records of one partition unanswered, until the load ends.
func (r *run) produce(l *load, partition int32) {
	window := make(chan struct{}, windowMax)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		if l.slow.Load() && n%(slowPerSecond/100) == 0 {
			select {
			case <-tick.C:
			case <-l.stop:
			}
		}
		select {
		case window <- struct{}{}:
			r.ledger.Send(r.ctx, r.client, partition, func(int, error) { <-window })
		case <-l.stop:
			for range windowMax { // every record that was sent has its answer
				window <- struct{}{}
			}
			return
		}
	}
}

// end stops the load and returns when every record is acknowledged or has failed.
func (l *load) end() {
	close(l.stop)
	l.producers.Wait()
}

func names(victims []*harness.Broker, zk bool) string {
	text := fmt.Sprintf("%d brokers", len(victims))
	if len(victims) == 1 {
		text = fmt.Sprintf("broker %d", victims[0].ID)
	}
	if zk {
		text = "ZooKeeper and " + text
	}
	return text
}

// await polls a condition and fails the test when it does not come true.
func (r *run) await(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(roundWait)
	for !cond() {
		if time.Now().After(deadline) {
			r.fail(what, fmt.Errorf("not within %s; %d records acknowledged, %d in flight: %w", roundWait, r.ledger.Acked(), r.ledger.InFlight(), r.ledger.Err()))
		}
		r.wait(time.Millisecond)
	}
}

func (r *run) verify() {
	r.waitFullISR()
	for _, line := range r.cluster.GrepLogs(20, "panic", "invariant violated", "fatal error", "DATA RACE") {
		r.t.Errorf("in a log: %s", line)
	}
	ctx, cancel := context.WithTimeout(r.ctx, roundWait)
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
	_, err := adm.CreateTopic(r.ctx, partitions, 3, map[string]*string{"min.insync.replicas": &two}, topic)
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
	deadline := time.Now().Add(roundWait)
	for {
		topics, err := adm.ListTopics(r.ctx, topic)
		full := err == nil && len(topics[topic].Partitions) == partitions
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
