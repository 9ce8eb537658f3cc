package storage

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"kctl/broker/record"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// crashTrace runs a random history on one log and, at every operation that changes the disk, looks at what a
// crash at that moment would leave.
type crashTrace struct {
	t    *testing.T
	rng  *rand.Rand
	seed uint64
	c    *clock
	fs   *vfs.Mem
	m    *Manager
	l    *Log

	epoch   cluster.LeaderEpoch
	seqs    map[int64]int32
	current [][]byte           // batches of the log as it is meant to be
	ever    map[int64][][]byte // base offset -> all batches that were ever appended there
	flushed int64              // everything below is durable
	known   bool               // the log was flushed once, so it must exist
	step    string
	op      int
	checks  int
}

func TestCrashAtEveryOperation(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 8
	}
	total := 0
	for seed := range uint64(seeds) {
		tr := &crashTrace{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), c: &clock{ms: 1_000_000},
			seqs: map[int64]int32{}, ever: map[int64][][]byte{}}
		tr.fs = vfs.NewMem(func() int64 { return tr.c.ms })
		must(t, tr.fs.MkdirAll("/data"))
		must(t, tr.fs.SyncDir("/"))
		tr.run(60)
		total += tr.checks
	}
	t.Logf("%d crashes looked at", total)
	if total < seeds*200 {
		t.Fatalf("only %d crashes", total)
	}
}

func (tr *crashTrace) open() {
	tr.m = openMem(tr.t, tr.fs, tr.c, nil)
	l, err := tr.m.Create(testTP, testID, tr.config())
	must(tr.t, err)
	tr.l = l
}

func (tr *crashTrace) config() Config {
	cfg := smallConfig()
	cfg.SegmentBytes = 700
	return cfg
}

func (tr *crashTrace) run(steps int) {
	tr.open()
	tr.fs.SetHook(func(op vfs.Op, name string) { tr.crash(op, name) })
	for i := range steps {
		tr.c.ms += 10
		tr.doStep(i)
	}
	tr.fs.SetHook(nil)
}

func (tr *crashTrace) end() int64 {
	if n := len(tr.current); n > 0 {
		return record.Batch(tr.current[n-1]).NextOffset()
	}
	return tr.l.LogEndOffset()
}

func (tr *crashTrace) doStep(i int) {
	switch p := tr.rng.IntN(100); {
	case p < 60:
		tr.step = fmt.Sprintf("%d append", i)
		tr.append()
	case p < 75:
		tr.step = fmt.Sprintf("%d flush", i)
		must(tr.t, tr.l.Flush())
		tr.flushed, tr.known = tr.l.LogEndOffset(), true
	case p < 85:
		tr.step = fmt.Sprintf("%d truncate", i)
		tr.truncate()
	case p < 90:
		tr.step = fmt.Sprintf("%d housekeep", i)
		must(tr.t, tr.m.Housekeep(tr.c.now()))
	case p < 93:
		tr.step = fmt.Sprintf("%d advance", i)
		tr.l.SetHighWatermark(tr.flushed)
		to := tr.l.LogStartOffset() + tr.rng.Int64N(4)
		if to <= tr.l.HighWatermark() {
			must(tr.t, tr.l.AdvanceLogStart(to))
			must(tr.t, tr.m.Housekeep(tr.c.now()))
		}
	case p < 94:
		tr.step = fmt.Sprintf("%d restart at", i)
		to := tr.end() + tr.rng.Int64N(5)
		tr.flushed, tr.current = 0, nil
		must(tr.t, tr.l.TruncateFullyAndStartAt(to))
	default:
		tr.step = fmt.Sprintf("%d reopen", i)
		before := tr.l.LogStartOffset()
		must(tr.t, tr.m.Close())
		tr.flushed, tr.known = tr.l.LogEndOffset(), true
		tr.open()
		if tr.l.LogStartOffset() != before {
			tr.t.Fatalf("seed %d: start %d after %d", tr.seed, tr.l.LogStartOffset(), before)
		}
	}
}

func (tr *crashTrace) append() {
	id := int64(tr.rng.IntN(3))
	n := 1 + tr.rng.IntN(4)
	data := batch(tr.t, n, tr.c.ms, withProducer(id, 0, tr.seqs[id]), func(b *record.Builder) {
		b.Compression = record.Compression(tr.rng.IntN(3) * 2)
	})
	// What will be appended is part of the history before the write: a crash may show it at once.
	base := tr.l.LogEndOffset()
	full := bytes.Clone(data)
	record.Batch(full).SetBaseOffset(base)
	record.Batch(full).SetLeaderEpoch(int32(tr.epoch))
	tr.ever[base] = append(tr.ever[base], full)
	_, err := tr.l.AppendAsLeader(data, tr.epoch, AppendOptions{})
	must(tr.t, err)
	tr.seqs[id] += int32(n)
	tr.current = append(tr.current, full)
}

func (tr *crashTrace) truncate() {
	start, end := tr.l.LogStartOffset(), tr.l.LogEndOffset()
	if end == start {
		return
	}
	to := start + tr.rng.Int64N(end-start+1)
	if tr.rng.IntN(3) > 0 { // mostly near the end
		to = max(start, end-tr.rng.Int64N(8))
	}
	for len(tr.current) > 0 && record.Batch(tr.current[len(tr.current)-1]).LastOffset() >= to {
		b := record.Batch(tr.current[len(tr.current)-1])
		to = min(to, b.BaseOffset())
		tr.current = tr.current[:len(tr.current)-1]
	}
	tr.flushed = min(tr.flushed, to)
	must(tr.t, tr.l.TruncateTo(to))
	tr.epoch++
	tr.seqs = map[int64]int32{}
	for _, p := range tr.l.ActiveProducers() {
		tr.seqs[p.ProducerID] = p.LastSequence + 1
	}
}

// crash is called before every change of the disk.
func (tr *crashTrace) crash(op vfs.Op, name string) {
	tr.op++
	keep := []vfs.Unsynced{vfs.MixUnsynced, vfs.MixUnsynced, vfs.DropUnsynced, vfs.KeepUnsynced}[tr.rng.IntN(4)]
	clone := tr.fs.CrashClone(keep, tr.rng.Uint64())
	tr.checks++
	where := fmt.Sprintf("seed %d step %s op %d (%s %s) keep %d", tr.seed, tr.step, tr.op, op, name, keep)
	var logs bytes.Buffer
	m, err := OpenManager(clone, []string{"/data"}, testOptions(&clock{ms: tr.c.ms}, &logs))
	if err != nil {
		tr.t.Fatalf("%s: %v", where, err)
	}
	l, ok := m.Log(testTP)
	if !ok {
		if tr.known {
			tr.t.Fatalf("%s: the log is gone", where)
		}
		return
	}
	defer func() {
		if tr.t.Failed() {
			tr.t.Logf("%s\n%s", where, logs.String())
		}
	}()
	checkLog(tr.t, l)
	tr.checkContents(l, where)
	tr.checkProducers(l, where)
	if _, err := l.AppendAsLeader(batch(tr.t, 1, 1), tr.epoch+1, AppendOptions{}); err != nil {
		tr.t.Fatalf("%s: append after recovery: %v", where, err)
	}
	checkLog(tr.t, l)
}

// checkContents: what was flushed is there; what is there was written at that place, and nothing of an older
// epoch follows something newer.
func (tr *crashTrace) checkContents(l *Log, where string) {
	data := readAllBytes(tr.t, l, math.MaxInt64)
	found := map[int64][]byte{}
	epoch := int32(-1)
	for rest := data; len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(tr.t, err)
		rest = after
		found[b.BaseOffset()] = b
		known := false
		for _, e := range tr.ever[b.BaseOffset()] {
			known = known || bytes.Equal(e, b)
		}
		if !known {
			tr.t.Fatalf("%s: batch at %d was never written", where, b.BaseOffset())
		}
		if b.LeaderEpoch() < epoch {
			tr.t.Fatalf("%s: epoch %d after %d", where, b.LeaderEpoch(), epoch)
		}
		epoch = b.LeaderEpoch()
	}
	if l.LogEndOffset() < tr.flushed {
		tr.t.Fatalf("%s: log end %d, flushed %d", where, l.LogEndOffset(), tr.flushed)
	}
	for _, want := range tr.current {
		b := record.Batch(want)
		if b.NextOffset() <= tr.flushed && b.BaseOffset() >= l.LogStartOffset() && !bytes.Equal(found[b.BaseOffset()], want) {
			tr.t.Fatalf("%s: flushed batch at %d is gone", where, b.BaseOffset())
		}
	}
}

// checkProducers: each producer's last sequence is that of its last batch in the log.
func (tr *crashTrace) checkProducers(l *Log, where string) {
	want := map[int64]int32{}
	for rest := readAllBytes(tr.t, l, math.MaxInt64); len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(tr.t, err)
		want[b.ProducerID()], rest = b.LastSequence(), after
	}
	got := map[int64]int32{}
	for _, p := range l.ActiveProducers() {
		got[p.ProducerID] = p.LastSequence
	}
	for id, seq := range want {
		if got[id] != seq {
			tr.t.Fatalf("%s: producer %d at sequence %d, log says %d", where, id, got[id], seq)
		}
	}
}
