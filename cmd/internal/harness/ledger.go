package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger remembers every acknowledged record: at which offset of which partition its value must be found.
// Safe for concurrent use.
type Ledger struct {
	Topic string

	mu     sync.Mutex
	acked  map[int32]map[int64]string // guarded by mu: partition -> offset -> value
	count  int                        // guarded by mu: acknowledged records
	refuse int                        // guarded by mu: records that the client gave up on
	next   int                        // guarded by mu: the next record's number
	failed []error                    // guarded by mu: first few errors of Produce
}

// NewLedger makes an empty ledger for a topic.
func NewLedger(topic string) *Ledger {
	return &Ledger{Topic: topic, acked: map[int32]map[int64]string{}}
}

// Acked returns how many records were acknowledged so far.
func (l *Ledger) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// InFlight returns how many records were given to the client and neither acknowledged nor failed so far.
func (l *Ledger) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - l.count - l.refuse
}

// Err returns what went wrong with records so far: refused ones, and offsets acknowledged twice.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.failed...)
}

// NewProducer makes the client that Produce wants: idempotent, acks=all, unlimited retries until ctx ends.
func NewProducer(bootstrap []string, opts ...kgo.Opt) (*kgo.Client, error) {
	base := []kgo.Opt{
		kgo.SeedBrokers(bootstrap...),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(2 * time.Millisecond),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.RetryTimeout(2 * time.Minute),
		kgo.RecordRetries(1 << 30),
		kgo.UnknownTopicRetries(-1),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
	}
	return kgo.NewClient(append(base, opts...)...)
}

// Produce sends n numbered records and waits until each is acknowledged or failed. A record that failed is
// not lost: it was never acknowledged. onAck, if set, is told the running count after each acknowledgement.
func (l *Ledger) Produce(ctx context.Context, cl *kgo.Client, n int, onAck func(acked int)) error {
	var wg sync.WaitGroup
	for range n {
		wg.Add(1)
		l.Send(ctx, cl, 0, func(acked int, err error) {
			defer wg.Done()
			if err == nil && onAck != nil {
				onAck(acked)
			}
		})
	}
	wg.Wait()
	return l.Err()
}

// Send gives one numbered record to the client, which may block while its buffer is full. partition counts when
// the client has a manual partitioner. done is told the running count of acknowledged records once this one is
// acknowledged or failed.
func (l *Ledger) Send(ctx context.Context, cl *kgo.Client, partition int32, done func(acked int, err error)) {
	l.mu.Lock()
	value := strconv.Itoa(l.next)
	l.next++
	l.mu.Unlock()
	cl.Produce(ctx, &kgo.Record{Topic: l.Topic, Partition: partition, Value: []byte(value)}, func(r *kgo.Record, err error) {
		done(l.record(r, err), err)
	})
}

func (l *Ledger) record(r *kgo.Record, err error) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refuse++
		if len(l.failed) < 5 {
			l.failed = append(l.failed, fmt.Errorf("record %s: %w", r.Value, err))
		}
		return l.count
	}
	part := l.acked[r.Partition]
	if part == nil {
		part = map[int64]string{}
		l.acked[r.Partition] = part
	}
	if before, taken := part[r.Offset]; taken {
		l.failed = append(l.failed, fmt.Errorf("partition %d offset %d acknowledged twice: %s and %s", r.Partition, r.Offset, before, r.Value))
	}
	part[r.Offset] = string(r.Value)
	l.count++
	return l.count
}

// Verify reads the whole topic and compares: every acknowledged record is at its offset, no value appears
// twice, offsets are contiguous from 0 and values of one partition rise. It returns the number of records
// read; records that were never acknowledged may be among them.
func (l *Ledger) Verify(ctx context.Context, bootstrap []string) (read int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.ConsumeTopics(l.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(250*time.Millisecond))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	v := verifier{ledger: l, next: map[int32]int64{}, last: map[int32]int{}, seen: map[string]bool{}}
	for !v.complete() {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return v.read, fmt.Errorf("read back %s: %w: %s", l.Topic, err, v.missing())
		}
		fetches.EachRecord(v.see)
	}
	return v.read, errors.Join(v.wrong...)
}

type verifier struct {
	ledger *Ledger
	next   map[int32]int64
	last   map[int32]int // partition -> last value seen
	seen   map[string]bool
	found  int
	read   int
	wrong  []error
}

func (v *verifier) see(r *kgo.Record) {
	v.read++
	value := string(r.Value)
	if want := v.next[r.Partition]; r.Offset != want {
		v.complain("partition %d: offset %d follows %d", r.Partition, r.Offset, want-1)
	}
	v.next[r.Partition] = r.Offset + 1
	if v.seen[value] {
		v.complain("partition %d offset %d: value %s appears twice", r.Partition, r.Offset, value)
	}
	v.seen[value] = true
	number, err := strconv.Atoi(value)
	if last, ok := v.last[r.Partition]; err != nil || ok && number <= last {
		v.complain("partition %d offset %d: value %s after %d", r.Partition, r.Offset, value, last)
	}
	v.last[r.Partition] = number
	if want, ok := v.ledger.acked[r.Partition][r.Offset]; ok {
		v.found++
		if want != value {
			v.complain("partition %d offset %d: value %s, acknowledged was %s", r.Partition, r.Offset, value, want)
		}
	}
}

func (v *verifier) complain(format string, args ...any) {
	if len(v.wrong) < 20 {
		v.wrong = append(v.wrong, fmt.Errorf(format, args...))
	}
}

func (v *verifier) complete() bool { return v.found >= v.ledger.count }

// missing says which acknowledged records were not reached, partition by partition.
func (v *verifier) missing() string {
	text := fmt.Sprintf("%d of %d acknowledged records found", v.found, v.ledger.count)
	var parts []int32
	for p := range v.ledger.acked {
		parts = append(parts, p)
	}
	slices.Sort(parts)
	for _, p := range parts {
		var high int64 = -1
		for o := range v.ledger.acked[p] {
			high = max(high, o)
		}
		if v.next[p] <= high {
			text += fmt.Sprintf("; partition %d read up to %d, acknowledged up to %d", p, v.next[p]-1, high)
		}
	}
	return text
}
