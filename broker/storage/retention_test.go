package storage

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

// retained fills a log with 30 batches of two records, a second of record time apart.
func retained(t testing.TB, change func(*Config)) (*vfs.Mem, *Manager, *Log, *clock) {
	t.Helper()
	fs, m, l, c := newTestLog(t)
	cfg := smallConfig()
	cfg.RetentionMs, cfg.RetentionBytes = -1, -1
	change(&cfg)
	l.SetConfig(cfg)
	for i := range 30 {
		mustAppend(t, l, batch(t, 2, c.ms+int64(i)*1000), 1)
	}
	l.SetHighWatermark(60)
	return fs, m, l, c
}

func TestRetentionByTime(t *testing.T) {
	fs, m, l, c := retained(t, func(cfg *Config) { cfg.RetentionMs = 10_000; cfg.FileDeleteDelayMs = 500 })
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 0 {
		t.Fatal("deleted too early")
	}
	c.ms += 25_000
	must(t, m.Housekeep(c.now()))
	start := l.LogStartOffset()
	// Records older than 15 s are in batches 0 to 14; whole segments only.
	if start == 0 || start > 30 || l.Segments() < 2 {
		t.Fatalf("start %d, %d segments", start, l.Segments())
	}
	if first := (*l.segs.Load())[0]; first.base != start {
		t.Fatalf("first segment %d, start %d", first.base, start)
	}
	if got := names(t, fs, "/data/t-0"); !strings.Contains(got, offsetName(0)+extLog+extDeleted) {
		t.Fatalf("not renamed: %s", got)
	}
	c.ms += 500
	must(t, m.Housekeep(c.now()))
	if got := names(t, fs, "/data/t-0"); strings.Contains(got, offsetName(0)) {
		t.Fatalf("not removed: %s", got)
	}
	start = l.LogStartOffset()
	if e, ok := l.EpochStart(); !ok || e != start {
		t.Fatalf("epoch begins at %d, log at %d", e, start)
	}
	checkLog(t, l)
	// When everything is old, the active segment is rolled and goes too.
	c.ms += 100_000
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 60 || l.Size() != 0 || l.LogEndOffset() != 60 {
		t.Fatalf("%d..%d, %d bytes", l.LogStartOffset(), l.LogEndOffset(), l.Size())
	}
	must(t, m.Close())
	l, text := reopen(t, fs, c)
	if l.LogStartOffset() != 60 || l.LogEndOffset() != 60 || strings.Contains(text, "WARN") {
		t.Fatalf("%d..%d %s", l.LogStartOffset(), l.LogEndOffset(), text)
	}
}

func TestRetentionBySize(t *testing.T) {
	_, m, l, c := retained(t, func(cfg *Config) { cfg.RetentionBytes = 1500 })
	must(t, m.Housekeep(c.now()))
	first := (*l.segs.Load())[0].size.Load()
	if l.Size() < 1500 || l.Size()-first >= 1500 {
		t.Fatalf("%d bytes left, the oldest segment has %d", l.Size(), first)
	}
	checkLog(t, l)
}

func TestRetentionStopsAtTheHighWatermark(t *testing.T) {
	_, m, l, c := retained(t, func(cfg *Config) { cfg.RetentionMs = 1; cfg.RetentionBytes = 0 })
	l.SetHighWatermark(25)
	c.ms += 1_000_000
	must(t, m.Housekeep(c.now()))
	start := l.LogStartOffset()
	if start == 0 || start > 25 {
		t.Fatalf("start %d with high watermark 25", start)
	}
	for _, s := range (*l.segs.Load())[1:] {
		if s.base <= 25 {
			t.Fatalf("segment below %d is still there", s.base)
		}
	}
}

func TestCompactedTopicsAreNotDeletedByRetention(t *testing.T) {
	_, m, l, c := retained(t, func(cfg *Config) { cfg.RetentionMs = 1; cfg.RetentionBytes = 0; cfg.CleanupPolicy = "compact" })
	c.ms += 1_000_000
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 0 {
		t.Fatal("compacted topic lost records by retention")
	}
	must(t, l.AdvanceLogStart(31)) // DeleteRecords still works
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 31 || (*l.segs.Load())[0].base == 0 {
		t.Fatalf("start %d, first segment %d", l.LogStartOffset(), (*l.segs.Load())[0].base)
	}
}

func TestRetentionWithoutTimestamps(t *testing.T) {
	_, m, l, c := newTestLog(t)
	cfg := smallConfig()
	cfg.RetentionMs = 1000
	l.SetConfig(cfg)
	mustAppend(t, l, batch(t, 1, record.NoTimestamp), 0)
	l.SetHighWatermark(1)
	c.ms += 900
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 0 {
		t.Fatal("deleted before its file's age")
	}
	c.ms += 200
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 1 {
		t.Fatal("not deleted by its file's age")
	}
}

func TestFlushByTimeAndCount(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	cfg := smallConfig()
	cfg.FlushMessages = 5
	l.SetConfig(cfg)
	mustAppend(t, l, batch(t, 4, 1), 0)
	if l.RecoveryPoint() != 0 {
		t.Fatal("flushed too early")
	}
	mustAppend(t, l, batch(t, 1, 1), 0)
	if l.RecoveryPoint() != 5 {
		t.Fatal("flush.messages")
	}
	cfg.FlushMessages, cfg.FlushMs = math.MaxInt64, 100
	l.SetConfig(cfg)
	mustAppend(t, l, batch(t, 1, 1), 0)
	c.ms += 99
	must(t, m.Housekeep(c.now()))
	if l.RecoveryPoint() != 5 {
		t.Fatal("flush.ms too early")
	}
	c.ms++
	must(t, m.Housekeep(c.now()))
	if l.RecoveryPoint() != 6 || fileText(t, fs, "/data/"+fileRecovery) != "0\n1\nt 0 6\n" {
		t.Fatal("flush.ms")
	}
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpSync}, Err: errors.New("i/o error")})
	mustAppend(t, l, batch(t, 1, 1), 0)
	c.ms += 1000
	wantErr(t, m.Housekeep(c.now()), ErrStorage)
	if l.Failed() == nil {
		t.Fatal("a failed fsync must fail the log")
	}
	must(t, m.Housekeep(c.now())) // left alone now
}

func TestRolledSegmentsAreSyncedByHousekeep(t *testing.T) {
	_, m, l, c := newTestLog(t)
	for range 30 {
		mustAppend(t, l, batch(t, 2, 1), 0)
	}
	must(t, m.Housekeep(c.now()))
	if l.RecoveryPoint() != l.active().base || l.RecoveryPoint() == 0 {
		t.Fatalf("recovery point %d, active segment %d", l.RecoveryPoint(), l.active().base)
	}
}

func TestOffsetForTimestamp(t *testing.T) {
	for name, reopened := range map[string]bool{"as written": false, "reopened": true} {
		t.Run(name, func(t *testing.T) {
			fs, m, l, c := newTestLog(t)
			// Batches at 1000, 1010, …; batch 20 is late by 200 ms.
			for i := range 40 {
				ts := int64(1000 + i*10)
				if i == 20 {
					ts -= 200
				}
				mustAppend(t, l, batch(t, 3, ts, func(b *record.Builder) { b.Compression = record.Zstd }), clusterEpoch(i))
			}
			if reopened {
				must(t, m.Close())
				l, _ = reopen(t, fs, c)
			}
			for ask := int64(990); ask <= 1400; ask++ {
				want := int64(-1)
				for i := range int64(40) {
					for k := range int64(3) {
						if ts := 1000 + i*10 + k; i != 20 && ts >= ask && want < 0 {
							want = i*3 + k
						}
					}
				}
				got, ok, err := l.OffsetForTimestamp(ask, math.MaxInt64)
				must(t, err)
				if ok != (want >= 0) || ok && got.Offset != want {
					t.Fatalf("at %d: %+v %v, want %d", ask, got, ok, want)
				}
				if ok && (got.Timestamp < ask || got.Epoch != clusterEpoch(int(got.Offset/3))) {
					t.Fatalf("at %d: %+v", ask, got)
				}
			}
			if _, ok, err := l.OffsetForTimestamp(1100, 30); ok || err != nil {
				t.Fatal("found a record at or above the bound")
			}
			if got, ok, err := l.MaxTimestampOffset(); err != nil || !ok || got.Offset != 119 || got.Timestamp != 1392 {
				t.Fatalf("max: %+v %v %v", got, ok, err)
			}
			l.SetHighWatermark(120)
			must(t, l.AdvanceLogStart(50))
			if got, ok, err := l.OffsetForTimestamp(0, math.MaxInt64); err != nil || !ok || got.Offset != 50 {
				t.Fatalf("from the log start: %+v", got)
			}
		})
	}
	_, _, empty, _ := newTestLog(t)
	if _, ok, err := empty.OffsetForTimestamp(0, math.MaxInt64); ok || err != nil {
		t.Fatal("found something in an empty log")
	}
	if _, ok, err := empty.MaxTimestampOffset(); ok || err != nil {
		t.Fatal("found something in an empty log")
	}
}

// TestIdleLogsAreLookedAtSeldom: a log to which nothing happens is visited every RetentionCheckInterval only, one to which
// something happened at the next Housekeep.
func TestIdleLogsAreLookedAtSeldom(t *testing.T) {
	_, m, l, c := retained(t, func(cfg *Config) { cfg.RetentionMs = 10_000 })
	m.opts.RetentionCheckInterval = time.Minute
	must(t, m.Housekeep(c.now())) // looks at all
	must(t, m.Housekeep(c.now()))
	if got := m.due(c.now().UnixMilli(), false); len(got) != 0 {
		t.Fatalf("%d logs are due while nothing happens", len(got))
	}
	c.ms += 59_000
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 0 {
		t.Fatal("an idle log was looked at before its time")
	}
	mustAppend(t, l, batch(t, 1, c.ms), 1)
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() == 0 {
		t.Fatal("a log that was written to was not looked at")
	}
	l.SetHighWatermark(61)
	c.ms += 60_000
	must(t, m.Housekeep(c.now()))
	if l.LogStartOffset() != 61 {
		t.Fatalf("start %d: an idle log was not looked at after the interval", l.LogStartOffset())
	}
}

// TestFlushMsKeepsALogAwake: what is to be flushed later is flushed without another append.
func TestFlushMsKeepsALogAwake(t *testing.T) {
	_, m, l, c := retained(t, func(cfg *Config) { cfg.FlushMs = 5_000; cfg.RetentionMs = -1 })
	m.opts.RetentionCheckInterval = time.Hour
	must(t, l.Flush())
	mustAppend(t, l, batch(t, 1, c.ms), 1)
	for range 3 {
		must(t, m.Housekeep(c.now()))
	}
	if l.recovery.Load() == l.LogEndOffset() {
		t.Fatal("flushed before flush.ms")
	}
	c.ms += 5_000
	must(t, m.Housekeep(c.now()))
	if got := l.recovery.Load(); got != l.LogEndOffset() {
		t.Fatalf("flushed up to %d of %d", got, l.LogEndOffset())
	}
}
