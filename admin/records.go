package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kctl/admin/model"
	"kctl/admin/plan"
)

// ProduceOptions says how records are written.
type ProduceOptions struct {
	Topic       string
	Acks        int    // -1 all (default), 0, 1
	Compression string // none, gzip, snappy, lz4, zstd
	Partition   int32  // -1: by key
	// OwnTimestamps says that records bring their timestamps along. The library counts the time for a delivery from a
	// record's timestamp, so that it is bounded by the number of tries then.
	OwnTimestamps bool
}

// Producer writes records in the background; Close waits for all of them.
type Producer struct {
	cl    *kgo.Client
	opts  ProduceOptions
	mu    sync.Mutex // guards err and sent
	err   error
	sent  int64
	fatal context.CancelCauseFunc
	ctx   context.Context // ends with the first failure, so that the input is not read on
	dials *dialWatch
}

// acksOf and codecs turn words into the library's values.
func acksOf(n int) (kgo.Acks, error) {
	switch n {
	case -1:
		return kgo.AllISRAcks(), nil
	case 0:
		return kgo.NoAck(), nil
	case 1:
		return kgo.LeaderAck(), nil
	}
	return kgo.Acks{}, badInput("acks %d is not all (-1), 0 or 1", n)
}

func codecOf(name string) (kgo.CompressionCodec, error) {
	switch strings.ToLower(name) {
	case "", "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.NoCompression(), badInput("compression %q is not one of none, gzip, snappy, lz4, zstd", name)
}

// Check refuses options that cannot be meant, before anything is contacted.
func (o ProduceOptions) Check() error {
	if _, err := acksOf(o.Acks); err != nil {
		return err
	}
	_, err := codecOf(o.Compression)
	return err
}

// NewProducer connects and makes sure that the topic exists.
func (c *Client) NewProducer(ctx context.Context, o ProduceOptions) (*Producer, error) {
	acks, err := acksOf(o.Acks)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf(o.Compression)
	if err != nil {
		return nil, err
	}
	if _, err := c.Snapshot(ctx, SnapshotOptions{Topics: []string{o.Topic}, NoZooKeeper: true, Source: "protocol"}); err != nil {
		return nil, err
	}
	seeds, err := c.seedAddrs(ctx)
	if err != nil {
		return nil, err
	}
	// The library starts at any of its seeds and waits for a silent one: it gets the one that just answered.
	dials := c.watchDials()
	opts := append(c.options(seeds[:1]), kgo.WithHooks(dials),
		kgo.DefaultProduceTopic(o.Topic), kgo.RequiredAcks(acks), kgo.ProducerBatchCompression(codec),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50_000),
		kgo.UnknownTopicRetries(3), kgo.ProducerBatchMaxBytes(c.batchBytes(ctx, o.Topic)),
	)
	if o.OwnTimestamps {
		opts = append(opts, kgo.RecordRetries(10))
	} else {
		opts = append(opts, kgo.RecordDeliveryTimeout(max(c.cfg.Timeout, time.Second)))
	}
	if o.Acks != -1 {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	if o.Partition >= 0 {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, &Error{Kind: BadInput, Msg: "producer configuration", Err: err}
	}
	p := &Producer{cl: cl, opts: o, dials: dials}
	p.ctx, p.fatal = context.WithCancelCause(ctx)
	return p, nil
}

// The bounds of a batch that is sent: the library's own where the topic's is not known, and what fits into one request.
const (
	defaultBatchBytes = 1_000_012
	leastBatchBytes   = 1 << 10
	mostBatchBytes    = 90 << 20
)

// batchBytes is how large a batch may be: max.message.bytes of the topic. Larger ones the brokers refuse; with a smaller
// bound the library would refuse records that the topic takes.
func (c *Client) batchBytes(ctx context.Context, topic string) int32 {
	const key = "max.message.bytes"
	found, err := c.Configs(ctx, []model.ConfigResource{{Type: model.TopicResource, Name: topic}}, []string{key})
	if err != nil || len(found) == 0 {
		return defaultBatchBytes
	}
	if e := found[0].Entry(key); e != nil && e.Value != nil {
		if n, err := strconv.ParseInt(*e.Value, 10, 64); err == nil {
			return int32(min(max(n, leastBatchBytes), mostBatchBytes))
		}
	}
	return defaultBatchBytes
}

// Produce queues one record; it blocks while the buffer is full and fails once any record has failed.
func (p *Producer) Produce(key, value []byte) error {
	return p.ProduceRecord(&Record{Key: key, Value: value})
}

// ProduceRecord is Produce with headers and, unless it is zero, a timestamp. A nil value is a tombstone. Topic and
// partition are those of the options.
func (p *Producer) ProduceRecord(rec *Record) error {
	if err := context.Cause(p.ctx); err != nil {
		return err
	}
	r := &kgo.Record{Key: rec.Key, Value: rec.Value, Partition: p.opts.Partition, Timestamp: rec.Timestamp}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	p.cl.Produce(p.ctx, r, func(_ *kgo.Record, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err == nil {
			p.sent++
			return
		}
		if p.err == nil && !errors.Is(err, context.Canceled) {
			p.err = produceErr(err, p.opts.Topic, p.dials.unreachable())
			p.fatal(p.err)
		}
	})
	return nil
}

// produceErr says where to look when the brokers did not take a record in time: the library's error for that
// does not carry the brokers' own. unreachable is why a broker cannot be reached, when one cannot.
func produceErr(err error, topic string, unreachable error) error {
	if errors.Is(err, kgo.ErrRecordTimeout) || errors.Is(err, kgo.ErrRecordRetries) {
		if unreachable != nil {
			return wrap(unreachable, "produce to topic %s: not acknowledged in time", topic)
		}
		return &Error{
			Kind: Unreachable, Msg: fmt.Sprintf("produce to topic %s: the brokers did not acknowledge in time", topic),
			Hint: fmt.Sprintf("kctl partitions list %s -o wide shows leaders and whether the ISR is below min.insync.replicas", topic),
		}
	}
	return wrap(needs(kmsg.Produce, err), "produce to topic %s", topic)
}

// Close waits for the records that are under way and returns how many were acknowledged.
func (p *Producer) Close(ctx context.Context) (int64, error) {
	flushErr := p.cl.Flush(ctx)
	p.cl.Close()
	p.fatal(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.sent, p.err
	}
	return p.sent, wrap(flushErr, "produce to topic %s", p.opts.Topic)
}

// ConsumeOptions says what is read.
type ConsumeOptions struct {
	Topic         string
	Partitions    []int32 // empty: all
	FromBeginning bool
	Offset        int64            // start offset in each partition; -1: not given
	From, To      *plan.OffsetSpec // where each partition begins and ends; nil: as FromBeginning and Offset say, without end
	Group         string
	Max           int64         // stop after so many; 0: until ctx ends
	Until         time.Duration // stop after so long without a record; 0: never
	ReadCommitted bool
	Drained       func() error // called when what the brokers sent was handed out, before it is committed; nil: nothing
}

// Record is a consumed record.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp time.Time
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is one header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Consume reads records and hands them to fn, in order within each partition. It returns how many. With a
// group the offsets of what fn has seen are committed before it returns.
func (c *Client) Consume(ctx context.Context, o ConsumeOptions, fn func(*Record) error) (int64, error) {
	s, err := c.Snapshot(ctx, SnapshotOptions{Topics: []string{o.Topic}, NoZooKeeper: true, Source: "protocol"})
	if err != nil {
		return 0, err
	}
	for _, want := range o.Partitions {
		if n := len(s.Topics[0].Partitions); int(want) >= n {
			return 0, &Error{Kind: NotFound, Msg: fmt.Sprintf("topic %s has no partition %d: it has %d", o.Topic, want, n)}
		}
	}
	var spans map[int32]span
	if o.From != nil || o.To != nil {
		if spans, err = c.spans(ctx, o); err != nil || len(spans) == 0 {
			return 0, err
		}
	}
	seeds, err := c.seedAddrs(ctx)
	if err != nil {
		return 0, err
	}
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	limit := max(c.cfg.Timeout, 30*time.Second)
	dials := c.watchDials()
	dials.limit, dials.give = limit, give
	cl, err := kgo.NewClient(append(c.options(seeds[:1]), append(consumeOptions(o, spans), kgo.WithHooks(dials))...)...)
	if err != nil {
		return 0, &Error{Kind: BadInput, Msg: "consumer configuration", Err: err}
	}
	defer cl.CloseAllowingRebalance()
	n, err := consumeLoop(ctx, cl, o, remainingOf(spans), &patience{limit: limit, dials: dials}, fn)
	if o.Group != "" {
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
		defer cancel()
		if cerr := cl.CommitMarkedOffsets(cctx); cerr != nil && err == nil {
			err = wrap(cerr, "commit offsets of group %s", o.Group)
		}
	}
	return n, err
}

func consumeOptions(o ConsumeOptions, spans map[int32]span) []kgo.Opt {
	start := kgo.NewOffset().AtEnd()
	switch {
	case o.Offset >= 0:
		start = kgo.NewOffset().At(o.Offset)
	case o.FromBeginning:
		start = kgo.NewOffset().AtStart()
	}
	opts := []kgo.Opt{kgo.ConsumeResetOffset(start), kgo.FetchMaxWait(500 * time.Millisecond)}
	if o.ReadCommitted {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if o.Group != "" {
		return append(opts, kgo.ConsumerGroup(o.Group), kgo.ConsumeTopics(o.Topic), kgo.AutoCommitMarks())
	}
	parts := map[int32]kgo.Offset{}
	for p, s := range spans {
		parts[p] = kgo.NewOffset().At(s.start)
	}
	if len(spans) > 0 {
		return append(opts, kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.Topic: parts}))
	}
	if len(o.Partitions) == 0 {
		return append(opts, kgo.ConsumeTopics(o.Topic))
	}
	for _, p := range o.Partitions {
		parts[p] = start
	}
	return append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{o.Topic: parts}))
}

// patience sorts errors of polling into those that end it and those that the library mends by trying again,
// such as a group whose coordinator is only being made; the latter end it when they last.
type patience struct {
	limit time.Duration
	since time.Time // zero while all is well
	dials *dialWatch
}

// fatal returns err when it ends the polling.
func (p *patience) fatal(err error) error {
	group, ok := errors.AsType[*kgo.ErrGroupSession](err)
	if !ok || isAuthorization(err) || !kerr.IsRetriable(group.Err) && !kgo.IsRetryableBrokerErr(group.Err) {
		return err
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	if time.Since(p.since) > p.limit {
		return err
	}
	return nil
}

func consumeLoop(ctx context.Context, cl *kgo.Client, o ConsumeOptions, left remaining, p *patience, fn func(*Record) error) (int64, error) {
	var n int64
	for {
		pctx, cancel := ctx, context.CancelFunc(func() {})
		if o.Until > 0 {
			pctx, cancel = context.WithTimeout(ctx, o.Until)
		}
		fs := cl.PollFetches(pctx)
		idle := o.Until > 0 && pctx.Err() != nil && ctx.Err() == nil
		cancel()
		if e, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
			return n, wrap(e, "consume %s", o.Topic)
		}
		if ctx.Err() != nil || fs.IsClientClosed() {
			return n, nil
		}
		var failed error
		fs.EachError(func(t string, part int32, err error) {
			if failed != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				return
			}
			if err = p.fatal(err); err != nil {
				failed = consumeErr(err, where(o, t, part))
			}
		})
		if failed != nil {
			return n, failed
		}
		if !fs.Empty() {
			p.since = time.Time{}
			p.dials.arrived()
		}
		full, err := handOut(cl, fs, &n, o, left, fn)
		if err != nil || full {
			return n, err
		}
		if idle && fs.Empty() || o.To != nil && len(left) == 0 {
			return n, nil
		}
	}
}

// consumeErr says what was read; a refusal by the authorizer names the permission of the request that the library sent.
func consumeErr(err error, what string) error {
	return wrap(needs(kmsg.Fetch, needs(kmsg.JoinGroup, err)), "consume %s", what)
}

// handOut gives fn the records of one answer, has them printed, and then marks them to be committed for the group: what a reader
// that went away did not get is read again. full tells that there are as many as were wanted.
func handOut(cl *kgo.Client, fs kgo.Fetches, n *int64, o ConsumeOptions, left remaining, fn func(*Record) error) (full bool, err error) {
	var given []*kgo.Record
	for it := fs.RecordIter(); !it.Done() && !full; {
		r := it.Next()
		if o.To != nil && !left.takes(r) || r.Attrs.IsControl() {
			continue
		}
		if err := fn(recordOf(r)); err != nil {
			return false, err
		}
		if o.Group != "" {
			given = append(given, r)
		}
		*n++
		full = o.Max > 0 && *n >= o.Max
	}
	if o.Drained != nil {
		if err := o.Drained(); err != nil {
			return false, err
		}
	}
	cl.MarkCommitRecords(given...)
	return full, nil
}

// where names what an error of polling concerns; those of a group name no partition.
func where(o ConsumeOptions, topic string, partition int32) string {
	if topic == "" {
		return "topic " + o.Topic + " in group " + o.Group
	}
	return fmt.Sprintf("topic %s partition %d", topic, partition)
}

func recordOf(r *kgo.Record) *Record {
	out := &Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, Header{h.Key, h.Value})
	}
	return out
}
