package storage

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

// filled returns a closed file system with a log of several segments and its contents.
func filled(t testing.TB, clean bool) (*vfs.Mem, []byte, *clock) {
	t.Helper()
	fs, m, l, c := newTestLog(t)
	for i := range 40 {
		mustAppend(t, l, batch(t, 2, int64(1000+i), withProducer(3, 0, int32(2*i))), clusterEpoch(i))
	}
	data := readAllBytes(t, l, math.MaxInt64)
	if clean {
		must(t, m.Close())
		return fs, data, c
	}
	must(t, l.Flush())
	must(t, m.CheckpointRecoveryPoints())
	return fs.CrashClone(vfs.KeepUnsynced, 0), data, c
}

func reopen(t testing.TB, fs *vfs.Mem, c *clock) (*Log, string) {
	t.Helper()
	var logs bytes.Buffer
	m := openMem(t, fs, c, &logs)
	l, ok := m.Log(testTP)
	if !ok {
		t.Fatalf("no log: %s", logs.String())
	}
	return l, logs.String()
}

func segmentBases(t testing.TB, fs vfs.FS) []int64 {
	t.Helper()
	entries, err := fs.List("/data/t-0")
	must(t, err)
	var out []int64
	for _, e := range entries {
		if o, ok := parseOffsetName(e.Name, extLog); ok {
			out = append(out, o)
		}
	}
	return out
}

func rewrite(t testing.TB, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	data, err := readAll(fs, name)
	must(t, err)
	must(t, writePlain(fs, name, change(data)))
}

// TestBadIndexes: indexes cut, zeroed, lengthened and missing are rebuilt with one warning each; data stays.
func TestBadIndexes(t *testing.T) {
	for _, clean := range []bool{true, false} {
		for _, where := range []string{"first", "last"} {
			for name, change := range map[string]func([]byte) []byte{
				"cut":     func(b []byte) []byte { return b[:7] },
				"zeroed":  func(b []byte) []byte { return make([]byte, len(b)) },
				"huge":    func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0x7f}, 24)...) },
				"missing": nil,
			} {
				for _, ext := range []string{extIndex, extTimeIndex} {
					t.Run(fmt.Sprintf("clean=%v/%s/%s%s", clean, where, name, ext), func(t *testing.T) {
						fs, data, c := filled(t, clean)
						bases := segmentBases(t, fs)
						base := bases[0]
						if where == "last" {
							base = bases[len(bases)-1]
						}
						file := segmentPath("/data/t-0", base, ext)
						if change == nil {
							_ = fs.Remove(file)
						} else if _, err := fs.Stat(file); err == nil {
							rewrite(t, fs, file, change)
						}
						var logs bytes.Buffer
						m := openMem(t, fs, c, &logs)
						l, _ := m.Log(testTP)
						if !bytes.Equal(readAllBytes(t, l, math.MaxInt64), data) {
							t.Fatal("data changed")
						}
						checkLog(t, l)
						if _, _, err := l.OffsetForTimestamp(1010, math.MaxInt64); err != nil {
							t.Fatal(err)
						}
						if n := strings.Count(logs.String(), "index is rebuilt"); n > 1 || (clean || where == "first") && n == 0 {
							t.Fatalf("%d warnings: %s", n, logs.String())
						}
						must(t, m.Close())
						l, text := reopen(t, fs, c)
						checkLog(t, l)
						if strings.Contains(text, "WARN") {
							t.Fatalf("warns again: %s", text)
						}
					})
				}
			}
		}
	}
}

// TestByteFlips flips every byte of the unflushed last segment: what is before it stays, nothing bad is read.
func TestByteFlips(t *testing.T) {
	fs, data, c := filled(t, false)
	must(t, fs.Remove("/data/"+fileRecovery))
	bases := segmentBases(t, fs)
	last := bases[len(bases)-1]
	name := segmentPath("/data/t-0", last, extLog)
	raw, err := readAll(fs, name)
	must(t, err)
	for at := range raw {
		clone := fs.CrashClone(vfs.KeepUnsynced, 0)
		rewrite(t, clone, name, func(b []byte) []byte { b[at] ^= 0x40; return b })
		l, text := reopen(t, clone, c)
		got := readAllBytes(t, l, math.MaxInt64)
		whole := bytes.HasPrefix(data, got)
		// The base offset and the leader epoch lie outside the CRC. An offset that still rises, or an epoch that
		// does not fall, cannot be told from a good one; anything else must cut the log there.
		inBatch := at
		for rest := raw; ; {
			b, after, err := record.Next(rest)
			must(t, err)
			if inBatch < len(b) {
				break
			}
			inBatch -= len(b)
			rest = after
		}
		outside := inBatch < 8 || inBatch >= 12 && inBatch < 16
		if !outside && (!whole || len(got) == len(data) || !strings.Contains(text, "cut at a bad batch")) {
			t.Fatalf("byte %d (%d of its batch): %d of %d bytes read, prefix %v: %s", at, inBatch, len(got), len(data), whole, text)
		}
		mustAppend(t, l, batch(t, 1, 1), 99)
	}
}

// TestTornTail cuts the last segment at every length.
func TestTornTail(t *testing.T) {
	fs, data, c := filled(t, false)
	must(t, fs.Remove("/data/"+fileRecovery))
	bases := segmentBases(t, fs)
	name := segmentPath("/data/t-0", bases[len(bases)-1], extLog)
	raw, err := readAll(fs, name)
	must(t, err)
	for n := range raw {
		clone := fs.CrashClone(vfs.KeepUnsynced, 0)
		rewrite(t, clone, name, func(b []byte) []byte { return b[:n] })
		l, _ := reopen(t, clone, c)
		got := readAllBytes(t, l, math.MaxInt64)
		if !bytes.HasPrefix(data, got) || len(got) < len(data)-len(raw) {
			t.Fatalf("cut to %d: %d bytes", n, len(got))
		}
		checkLog(t, l)
	}
}

// TestRepeatedBatch: a copy of an earlier batch at the end (KAFKA-3918) is cut off.
func TestRepeatedBatch(t *testing.T) {
	fs, data, c := filled(t, false)
	bases := segmentBases(t, fs)
	last := bases[len(bases)-1]
	rewrite(t, fs, segmentPath("/data/t-0", last, extLog), func(b []byte) []byte {
		first, _, err := record.Next(b)
		must(t, err)
		return append(b, first...)
	})
	_ = fs.Remove(segmentPath("/data/t-0", last, extIndex))
	l, text := reopen(t, fs, c)
	if !bytes.Equal(readAllBytes(t, l, math.MaxInt64), data) || !strings.Contains(text, "cut at a bad batch") {
		t.Fatal(text)
	}
	checkLog(t, l)
}

// TestCorruptMiddle: a bad batch in an unflushed middle segment ends the log; later segments go.
func TestCorruptMiddle(t *testing.T) {
	fs, data, c := filled(t, false)
	must(t, fs.Remove("/data/"+fileRecovery))
	bases := segmentBases(t, fs)
	rewrite(t, fs, segmentPath("/data/t-0", bases[1], extLog), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	l, _ := reopen(t, fs, c)
	got := readAllBytes(t, l, math.MaxInt64)
	if !bytes.HasPrefix(data, got) || l.LogEndOffset() >= bases[2] || l.LogEndOffset() <= bases[1] {
		t.Fatalf("end %d", l.LogEndOffset())
	}
	checkLog(t, l)
	if n := len(segmentBases(t, fs)); n != 2 {
		t.Fatalf("%d segments left", n)
	}
}

// TestCleanButBroken: a clean-shutdown mark does not make bad bytes good.
func TestCleanButBroken(t *testing.T) {
	fs, data, c := filled(t, true)
	bases := segmentBases(t, fs)
	rewrite(t, fs, segmentPath("/data/t-0", bases[len(bases)-1], extLog), func(b []byte) []byte { return append(b, "garbage"...) })
	l, text := reopen(t, fs, c)
	if !bytes.Equal(readAllBytes(t, l, math.MaxInt64), data) || !strings.Contains(text, "not as a clean shutdown leaves it") {
		t.Fatal(text)
	}
}

// TestCleanStartReadsLittle: no scan after a clean shutdown.
func TestCleanStartReadsLittle(t *testing.T) {
	fs, _, c := filled(t, true)
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpOpen}, Pattern: "*0.log", Err: fmt.Errorf("old segment opened")})
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpOpen}, Pattern: offsetName(0) + ".*", Err: fmt.Errorf("old segment opened")})
	bases := segmentBases(t, fs)
	if strings.HasSuffix(offsetName(bases[len(bases)-1]), "0") {
		fs.ClearFaults()
	}
	l, text := reopen(t, fs, c)
	if l.LogEndOffset() != 80 || strings.Contains(text, "WARN") {
		t.Fatal(text)
	}
}

// TestInterruptedSwaps: leftovers of cleanings, splits and deletions are finished or undone.
func TestInterruptedSwaps(t *testing.T) {
	fs, data, c := filled(t, true)
	bases := segmentBases(t, fs)
	dir := "/data/t-0"
	read := func(base int64) []byte {
		b, err := readAll(fs, segmentPath(dir, base, extLog))
		must(t, err)
		return b
	}
	// Segments 0 and 1 were merged into a swap file; segment 1's original is still there.
	merged := append(bytes.Clone(read(bases[0])), read(bases[1])...)
	must(t, writePlain(fs, segmentPath(dir, bases[0], extLog)+extSwap, merged))
	// A cleaning above that was not finished, and a deleted segment.
	must(t, writePlain(fs, segmentPath(dir, bases[2], extLog)+extCleaned, []byte("half")))
	must(t, writePlain(fs, segmentPath(dir, bases[2], extIndex)+extCleaned, nil))
	must(t, writePlain(fs, segmentPath(dir, 7777, extLog)+extDeleted, []byte("old")))
	must(t, writePlain(fs, segmentPath(dir, 8888, extIndex), []byte("12345678"))) // orphan
	l, _ := reopen(t, fs, c)
	if !bytes.Equal(readAllBytes(t, l, math.MaxInt64), data) {
		t.Fatal("data changed")
	}
	checkLog(t, l)
	got := names(t, fs, dir)
	for _, bad := range []string{extSwap, extCleaned, extDeleted, "8888", offsetName(bases[1]) + extLog} {
		if strings.Contains(got, bad) {
			t.Errorf("left %s in %s", bad, got)
		}
	}
}

func TestLogStartAfterRestart(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	for range 10 {
		mustAppend(t, l, batch(t, 2, 1), 0)
	}
	l.SetHighWatermark(20)
	must(t, l.AdvanceLogStart(5))
	wantErr(t, l.AdvanceLogStart(21), ErrOffsetOutOfRange)
	must(t, l.AdvanceLogStart(3)) // lower: nothing
	_, err := l.Read(4, 10, 20, true)
	wantErr(t, err, ErrOffsetOutOfRange)
	must(t, m.Housekeep(c.now()))
	if got := fileText(t, fs, "/data/"+fileLogStart); got != "0\n1\nt 0 5\n" {
		t.Fatalf("%q", got)
	}
	l, _ = reopen(t, fs.CrashClone(vfs.KeepUnsynced, 0), c)
	if l.LogStartOffset() != 5 || l.LogEndOffset() != 20 {
		t.Fatal(l.LogStartOffset())
	}
	_ = m
}

func TestTruncateFully(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	for range 10 {
		mustAppend(t, l, batch(t, 2, 1), 1)
	}
	must(t, l.TruncateFullyAndStartAt(500))
	if l.LogStartOffset() != 500 || l.LogEndOffset() != 500 || l.Size() != 0 {
		t.Fatal(l.LogStartOffset(), l.LogEndOffset())
	}
	if _, ok := l.LatestEpoch(); ok {
		t.Fatal("epochs stayed")
	}
	must(t, l.TruncateTo(700)) // above the end: nothing
	must(t, m.Close())
	l, _ = reopen(t, fs, c)
	if l.LogStartOffset() != 500 || l.LogEndOffset() != 500 {
		t.Fatal(l.LogStartOffset(), l.LogEndOffset())
	}
	res := mustAppend(t, l, batch(t, 2, 1), 3)
	if res.BaseOffset != 500 {
		t.Fatal(res)
	}
	must(t, l.TruncateTo(10)) // below the log start: empty from there
	if l.LogStartOffset() != 10 || l.LogEndOffset() != 10 {
		t.Fatal(l.LogStartOffset(), l.LogEndOffset())
	}
}
