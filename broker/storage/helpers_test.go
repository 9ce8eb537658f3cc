package storage

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"kctl/broker/record"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

var testTP = cluster.TopicPartition{Topic: "t", Partition: 0}

var testID = cluster.TopicID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// clock is a settable time.
type clock struct{ ms int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms) }

func testOptions(c *clock, logs *bytes.Buffer) ManagerOptions {
	o := ManagerOptions{BrokerID: 1, ClusterID: "cluster", OpenFiles: 8, Now: c.now, RetentionCheckInterval: time.Millisecond,
		Config: func(string) Config { return smallConfig() },
		Random: func(p []byte) { copy(p, "0123456789abcdef") }}
	if logs != nil {
		o.Logger = slog.New(slog.NewTextHandler(logs, nil))
	}
	return o
}

// smallConfig rolls and indexes often.
func smallConfig() Config {
	c := DefaultConfig()
	c.SegmentBytes, c.IndexIntervalBytes, c.FileDeleteDelayMs = 1000, 150, 0
	return c
}

func openMem(t testing.TB, fs vfs.FS, c *clock, logs *bytes.Buffer) *Manager {
	t.Helper()
	m, err := OpenManager(fs, []string{"/data"}, testOptions(c, logs))
	must(t, err)
	return m
}

func newTestLog(t testing.TB) (*vfs.Mem, *Manager, *Log, *clock) {
	t.Helper()
	c := &clock{ms: 1_000_000}
	fs := vfs.NewMem(func() int64 { return c.ms })
	m := openMem(t, fs, c, nil)
	l, err := m.Create(testTP, testID, smallConfig())
	must(t, err)
	return fs, m, l, c
}

// batch builds a batch of n records with the given first timestamp.
func batch(t testing.TB, n int, ts int64, change ...func(*record.Builder)) []byte {
	t.Helper()
	b := record.NewBuilder(record.None)
	for i := range n {
		b.Add(ts+int64(i), fmt.Appendf(nil, "k%d", i), fmt.Appendf(nil, "value %d at %d", i, ts))
	}
	for _, fn := range change {
		fn(b)
	}
	out, err := b.Build(nil)
	must(t, err)
	return out
}

func withProducer(id int64, epoch int16, seq int32) func(*record.Builder) {
	return func(b *record.Builder) { b.ProducerID, b.ProducerEpoch, b.BaseSequence = id, epoch, seq }
}

func mustAppend(t testing.TB, l *Log, data []byte, epoch cluster.LeaderEpoch) AppendResult {
	t.Helper()
	res, err := l.AppendAsLeader(data, epoch, AppendOptions{})
	must(t, err)
	return res
}

// readAllBytes reads everything that is visible below max.
func readAllBytes(t testing.TB, l *Log, max int64) []byte {
	t.Helper()
	var out bytes.Buffer
	for at := l.LogStartOffset(); at < max; {
		s, err := l.Read(at, 1<<20, max, true)
		must(t, err)
		if s.Size() == 0 {
			break
		}
		var part bytes.Buffer
		_, err = s.WriteTo(&part)
		must(t, err)
		s.Release()
		out.Write(part.Bytes())
		next := at
		for rest := part.Bytes(); len(rest) > 0; {
			b, after, err := record.Next(rest)
			must(t, err)
			next, rest = b.NextOffset(), after
		}
		if next <= at {
			t.Fatalf("no progress at %d", at)
		}
		at = next
	}
	return out.Bytes()
}

// checkLog verifies what must hold of any log at rest: contiguous offsets, good CRCs, indexes that agree with
// the data, epochs that rise.
func checkLog(t testing.TB, l *Log) {
	t.Helper()
	next := l.LogStartOffset()
	for rest := readAllBytes(t, l, math.MaxInt64); len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(t, err)
		must(t, b.Check(false))
		if b.BaseOffset() > next || b.NextOffset() <= next {
			t.Fatalf("batch %d..%d where offset %d was due", b.BaseOffset(), b.LastOffset(), next)
		}
		next, rest = b.NextOffset(), after
	}
	if next != l.LogEndOffset() {
		t.Fatalf("data ends at %d, log end is %d", next, l.LogEndOffset())
	}
	for _, s := range *l.segs.Load() {
		checkSegmentIndexes(t, s)
	}
	entries, _ := l.epochs.snapshot()
	for i, e := range entries {
		if i > 0 && (e.Epoch <= entries[i-1].Epoch || e.Start <= entries[i-1].Start) || e.Start > l.LogEndOffset() {
			t.Fatalf("epochs %v, log end %d", entries, l.LogEndOffset())
		}
	}
}

func checkSegmentIndexes(t testing.TB, s *segment) {
	t.Helper()
	must(t, s.ready())
	byPos := map[int64]record.Batch{}
	maxTs := int64(-1)
	must(t, s.eachHeader(0, s.size.Load(), func(b record.Batch, pos int64) error {
		byPos[pos] = record.Batch(bytes.Clone(b))
		maxTs = max(maxTs, b.MaxTimestamp())
		return nil
	}))
	var buf [timeEntryBytes]byte
	for i := range s.offsets.count() {
		must(t, s.offsets.entry(i, buf[:]))
		e := decodeOffsetEntry(buf[:])
		if b, ok := byPos[int64(e.pos)]; !ok || b.LastOffset() != s.base+int64(e.rel) {
			t.Fatalf("segment %d: index entry %d (+%d at %d) points at no batch that ends there", s.base, i, e.rel, e.pos)
		}
	}
	last := int64(-1)
	for i := range s.times.count() {
		must(t, s.times.entry(i, buf[:]))
		e := decodeTimeEntry(buf[:])
		if e.ts <= last {
			t.Fatalf("segment %d: time entry %d does not rise", s.base, i)
		}
		last = e.ts
	}
	mark, err := s.largestMark()
	must(t, err)
	if mark.ts != maxTs {
		t.Fatalf("segment %d: largest timestamp %d, data says %d", s.base, mark.ts, maxTs)
	}
}

// clusterEpoch makes a leader epoch that rises every ten steps.
func clusterEpoch(i int) cluster.LeaderEpoch { return cluster.LeaderEpoch(i / 10) }
