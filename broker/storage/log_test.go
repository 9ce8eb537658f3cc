package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"testing"

	"kctl/broker/record"
	"kctl/broker/vfs"
)

func TestAppendAndRead(t *testing.T) {
	_, m, l, _ := newTestLog(t)
	var want []byte
	for i := range 30 {
		data := batch(t, 3, int64(1000+i*10))
		res := mustAppend(t, l, data, 7)
		if res.BaseOffset != int64(i*3) || res.LastOffset != int64(i*3+2) || res.Bytes != len(data) || res.LogAppendTime != -1 {
			t.Fatalf("append %d: %+v", i, res)
		}
		want = append(want, data...) // modified in place
	}
	if l.Segments() < 3 {
		t.Fatalf("%d segments, the test wants several", l.Segments())
	}
	checkLog(t, l)
	if got := readAllBytes(t, l, math.MaxInt64); !bytes.Equal(got, want) {
		t.Fatal("read other bytes than were written")
	}
	if l.Size() != int64(len(want)) {
		t.Fatalf("size %d, want %d", l.Size(), len(want))
	}
	must(t, m.Close())
	_, err := l.AppendAsLeader(batch(t, 1, 1), 7, AppendOptions{})
	wantErr(t, err, ErrClosed)
}

func TestReadBounds(t *testing.T) {
	_, _, l, _ := newTestLog(t)
	sizes := map[int64]int{}
	for range 20 {
		d := batch(t, 2, 1)
		res := mustAppend(t, l, d, 0)
		sizes[res.BaseOffset] = len(d)
	}
	for _, bad := range []int64{-1, 41, math.MaxInt64} {
		_, err := l.Read(bad, 100, math.MaxInt64, true)
		wantErr(t, err, ErrOffsetOutOfRange)
	}
	for offset := int64(0); offset < 40; offset++ {
		for bound := int64(0); bound <= 40; bound += 2 {
			for _, maxBytes := range []int{0, 1, sizes[0], sizes[0]*2 + 1, 1 << 20} {
				for _, minOne := range []bool{true, false} {
					checkRead(t, l, offset, maxBytes, bound, minOne)
				}
			}
		}
	}
	// A bound in the middle of a batch leaves the batch out.
	s, err := l.Read(0, 1<<20, 3, true)
	must(t, err)
	if s.Size() != sizes[0] {
		t.Fatalf("bound 3 gives %d bytes", s.Size())
	}
	s.Release()
}

func checkRead(t *testing.T, l *Log, offset int64, maxBytes int, bound int64, minOne bool) {
	t.Helper()
	s, err := l.Read(offset, maxBytes, bound, minOne)
	must(t, err)
	defer s.Release()
	buf := make([]byte, s.Size())
	n, err := s.ReadInto(buf)
	must(t, err)
	if n != s.Size() {
		t.Fatal("short read")
	}
	if offset >= bound {
		if n != 0 {
			t.Fatalf("read %d at bound %d gives %d bytes", offset, bound, n)
		}
		return
	}
	first, count := int64(-1), 0
	for rest := buf; len(rest) > 0; count++ {
		b, after, err := record.Next(rest)
		if err != nil {
			t.Fatalf("offset %d max %d: slice ends inside a batch: %v", offset, maxBytes, err)
		}
		if first < 0 {
			first = b.BaseOffset()
			if b.LastOffset() < offset || first > offset {
				t.Fatalf("read %d starts with batch %d", offset, first)
			}
		}
		if b.LastOffset() >= bound {
			t.Fatalf("batch to %d over bound %d", b.LastOffset(), bound)
		}
		rest = after
	}
	switch {
	case n > maxBytes && !(minOne && count == 1):
		t.Fatalf("offset %d: %d bytes, %d batches for max %d", offset, n, count, maxBytes)
	case count == 0 && minOne:
		t.Fatalf("offset %d bound %d: nothing", offset, bound)
	}
}

func TestReadSurvivesDeletionAndTruncation(t *testing.T) {
	fs, m, l, _ := newTestLog(t)
	d := batch(t, 5, 1)
	mustAppend(t, l, d, 0)
	s, err := l.Read(0, 1<<20, math.MaxInt64, true)
	must(t, err)
	must(t, m.Delete(testTP))
	must(t, m.Housekeep(m.opts.Now()))
	var out bytes.Buffer
	_, err = s.WriteTo(&out)
	must(t, err)
	if !bytes.Equal(out.Bytes(), d) {
		t.Fatal("bytes changed")
	}
	s.Release()
	entries, err := fs.List("/data")
	must(t, err)
	for _, e := range entries {
		if e.IsDir {
			t.Fatalf("left: %v", entries)
		}
	}
	l, err = m.Create(testTP, testID, smallConfig())
	must(t, err)
	mustAppend(t, l, batch(t, 5, 1), 0)
	s, err = l.Read(0, 1<<20, math.MaxInt64, true)
	must(t, err)
	must(t, l.TruncateTo(0))
	if _, err = s.WriteTo(io.Discard); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("slice of truncated bytes: %v", err)
	}
	s.Release()
}

func TestAppendRefuses(t *testing.T) {
	_, _, l, c := newTestLog(t)
	cfg := smallConfig()
	cfg.MaxMessageBytes = 500
	cfg.MessageTimestampAfterMaxMs, cfg.MessageTimestampBeforeMaxMs = 1000, 10_000
	l.SetConfig(cfg)
	now := c.ms
	old := batch(t, 1, now)
	old[16] = 1
	offset := batch(t, 1, now)
	record.Batch(offset).SetBaseOffset(3)
	flipped := batch(t, 1, now)
	flipped[len(flipped)-1] ^= 1
	frames := batch(t, 2, now)
	frames[record.HeaderSize] -= 2
	record.Batch(frames).UpdateCRC()
	control := batch(t, 1, now, func(b *record.Builder) { b.Control = true })
	two := append(batch(t, 1, now), batch(t, 1, now+5000)...)
	cases := map[string]struct {
		data []byte
		want error
	}{
		"nothing":     {nil, record.ErrInvalid},
		"garbage":     {bytes.Repeat([]byte{0xff}, 100), record.ErrCorrupt},
		"cut":         {batch(t, 1, now)[:70], record.ErrIncomplete},
		"magic 1":     {old, record.ErrUnsupportedFormat},
		"base offset": {offset, record.ErrInvalid},
		"crc":         {flipped, record.ErrCorrupt},
		"lengths":     {frames, record.ErrInvalid},
		"control":     {control, record.ErrInvalid},
		"too large":   {batch(t, 40, now), ErrMessageTooLarge},
		"future":      {batch(t, 1, now+2000), ErrInvalidTimestamp},
		"past":        {batch(t, 1, now-20_000), ErrInvalidTimestamp},
		"second bad":  {two, ErrInvalidTimestamp},
		"append time": {batch(t, 1, now, func(b *record.Builder) { b.LogAppendTime = true }), ErrInvalidTimestamp},
		"unsequenced": {batch(t, 1, now, withProducer(1, 0, -1)), record.ErrInvalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := l.AppendAsLeader(tc.data, 0, AppendOptions{})
			wantErr(t, err, tc.want)
			if l.LogEndOffset() != 0 || l.Size() != 0 {
				t.Fatal("something was appended")
			}
		})
	}
	cfg.MaxMessageBytes = 1 << 20
	l.SetConfig(cfg)
	_, err := l.AppendAsLeader(batch(t, 60, now), 0, AppendOptions{})
	wantErr(t, err, ErrBatchTooLarge)
	cfg.CleanupPolicy = "compact"
	l.SetConfig(cfg)
	b := record.NewBuilder(record.Zstd)
	b.Add(now, nil, []byte("v"))
	noKey, err := b.Build(nil)
	must(t, err)
	_, err = l.AppendAsLeader(noKey, 0, AppendOptions{})
	wantErr(t, err, record.ErrInvalid)
	mustAppend(t, l, batch(t, 1, now), 0)
}

func TestLogAppendTimeAndCompressionType(t *testing.T) {
	_, _, l, c := newTestLog(t)
	cfg := smallConfig()
	cfg.MessageTimestampType, cfg.CompressionType = LogAppendTime, "zstd"
	l.SetConfig(cfg)
	data := append(batch(t, 2, 5), batch(t, 3, 6, func(b *record.Builder) { b.Compression = record.Zstd })...)
	res := mustAppend(t, l, data, 1)
	if res.LogAppendTime != c.ms || res.MaxTimestamp != c.ms || res.LastOffset != 4 || res.Batches != 2 {
		t.Fatalf("%+v", res)
	}
	n := 0
	for rest := readAllBytes(t, l, math.MaxInt64); len(rest) > 0; {
		b, after, err := record.Next(rest)
		must(t, err)
		must(t, b.CheckRecords(true, 1<<20))
		if b.Compression() != record.Zstd || !b.IsLogAppendTime() || b.MaxTimestamp() != c.ms {
			t.Fatalf("batch %d: %s", n, b.Compression())
		}
		rest = after
		n++
	}
	checkLog(t, l)
}

// A batch that unpacks to much goes the slow way of unpack, and whatever stands before it in the append stays.
func TestLargeBatchIsRecompressed(t *testing.T) {
	_, _, l, _ := newTestLog(t)
	cfg := smallConfig()
	cfg.CompressionType, cfg.MaxMessageBytes, cfg.SegmentBytes = "zstd", 1<<20, 4<<20
	l.SetConfig(cfg)
	large := record.NewBuilder(record.Gzip)
	for n := range 6 {
		large.Add(int64(n), []byte("k"), make([]byte, 1<<20))
	}
	data, err := large.Build(batch(t, 2, 5))
	must(t, err)
	if res := mustAppend(t, l, data, 1); res.LastOffset != 7 {
		t.Fatalf("%+v", res)
	}
	checkLog(t, l)

	// Records that are none are found where the batch is unpacked anyway.
	broken := batch(t, 2, 5, func(b *record.Builder) { b.Compression = record.Gzip })
	payload, err := record.Compress(record.Gzip, nil, make([]byte, 100))
	must(t, err)
	broken = append(broken[:record.HeaderSize], payload...)
	binary.BigEndian.PutUint32(broken[8:], uint32(len(broken)-record.FrameSize))
	record.Batch(broken).UpdateCRC()
	_, err = l.AppendAsLeader(broken, 1, AppendOptions{})
	wantErr(t, err, record.ErrInvalid)
}

func TestFollowerKeepsOffsets(t *testing.T) {
	_, _, leader, _ := newTestLog(t)
	for i := range 12 {
		mustAppend(t, leader, batch(t, 2, int64(i), withProducer(9, 1, int32(i*2))), 3)
	}
	mustAppend(t, leader, batch(t, 1, 100), 5)
	data := readAllBytes(t, leader, math.MaxInt64)
	_, _, f, _ := newTestLog(t)
	cut := len(data) - 10 // the last batch is not whole
	res, err := f.AppendAsFollower(data[:cut])
	must(t, err)
	if res.LastOffset != 23 || f.LogEndOffset() != 24 {
		t.Fatalf("%+v, end %d", res, f.LogEndOffset())
	}
	_, err = f.AppendAsFollower(data)
	wantErr(t, err, ErrUnexpectedOffset)
	s, err := leader.Read(24, 1<<20, math.MaxInt64, true)
	must(t, err)
	last := make([]byte, s.Size())
	_, err = s.ReadInto(last)
	must(t, err)
	s.Release()
	_, err = f.AppendAsFollower(last)
	must(t, err)
	if !bytes.Equal(readAllBytes(t, f, math.MaxInt64), data) {
		t.Fatal("follower's bytes differ")
	}
	checkLog(t, f)
	if e, end := f.EndOffsetForEpoch(3); e != 3 || end != 24 {
		t.Fatalf("epoch 3 ends at %d (%d)", end, e)
	}
	if got := f.ActiveProducers(); len(got) != 1 || got[0].LastSequence != 23 {
		t.Fatalf("producers %+v", got)
	}
	bad := bytes.Clone(last)
	record.Batch(bad).SetBaseOffset(25)
	bad[len(bad)-1] ^= 1
	_, err = f.AppendAsFollower(bad)
	wantErr(t, err, record.ErrCorrupt)
	ahead := bytes.Clone(last)
	record.Batch(ahead).SetBaseOffset(100) // a compacted leader leaves holes
	_, err = f.AppendAsFollower(ahead)
	must(t, err)
	if f.LogEndOffset() != 101 {
		t.Fatalf("end %d", f.LogEndOffset())
	}
	if res, err = f.AppendAsFollower(nil); err != nil || res.Batches != 0 {
		t.Fatalf("empty: %+v, %v", res, err)
	}
}

// TestFollowerStartsInsideABatch: the leader's log start was moved into a batch by DeleteRecords.
func TestFollowerStartsInsideABatch(t *testing.T) {
	_, _, leader, _ := newTestLog(t)
	mustAppend(t, leader, batch(t, 5, 1), 0)
	data := readAllBytes(t, leader, math.MaxInt64)
	_, _, f, _ := newTestLog(t)
	must(t, f.TruncateFullyAndStartAt(3))
	_, err := f.AppendAsFollower(data)
	must(t, err)
	if f.LogStartOffset() != 0 || f.LogEndOffset() != 5 {
		t.Fatal(f.LogStartOffset(), f.LogEndOffset())
	}
	f.SetHighWatermark(5)
	must(t, f.AdvanceLogStart(3))
	must(t, f.TruncateFullyAndStartAt(5))
	_, err = f.AppendAsFollower(data) // all of it below the end
	wantErr(t, err, ErrUnexpectedOffset)
}

func TestRollByTimeIndexAndOffset(t *testing.T) {
	_, _, l, c := newTestLog(t)
	cfg := DefaultConfig()
	cfg.SegmentMs, cfg.IndexIntervalBytes = 1000, 1
	l.SetConfig(cfg)
	mustAppend(t, l, batch(t, 1, 10_000), 0)
	mustAppend(t, l, batch(t, 1, 11_000), 0)
	if l.Segments() != 1 {
		t.Fatal("rolled too early")
	}
	mustAppend(t, l, batch(t, 1, 11_001), 0)
	if l.Segments() != 2 || l.active().base != 2 {
		t.Fatalf("no roll by record time: %d", l.Segments())
	}
	c.ms += 5000 // wall time does not matter while records have timestamps
	mustAppend(t, l, batch(t, 1, 11_500), 0)
	if l.Segments() != 2 {
		t.Fatal("rolled by wall time")
	}
	cfg.SegmentMs, cfg.SegmentIndexBytes = math.MaxInt64, 24
	l.SetConfig(cfg)
	for range 4 {
		mustAppend(t, l, batch(t, 1, 11_500), 0)
	}
	if l.Segments() != 3 {
		t.Fatalf("no roll by full index: %d", l.Segments())
	}
	far := batch(t, 1, 12_000)
	record.Batch(far).SetBaseOffset(l.active().base + math.MaxInt32 + 1)
	_, err := l.AppendAsFollower(far)
	must(t, err)
	if l.Segments() != 4 || l.active().base != record.Batch(far).BaseOffset() {
		t.Fatalf("no roll by offset distance: %d segments, active %d", l.Segments(), l.active().base)
	}
	for _, s := range *l.segs.Load() {
		checkSegmentIndexes(t, s)
	}
}

func TestDiskErrors(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	mustAppend(t, l, batch(t, 2, 1), 0)
	must(t, l.Flush())
	before := readAllBytes(t, l, math.MaxInt64)
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpWrite}, Pattern: "*.log", Err: vfs.ErrNoSpace, ShortWrite: 70})
	_, err := l.AppendAsLeader(batch(t, 2, 1), 0, AppendOptions{})
	wantErr(t, err, ErrStorage)
	wantErr(t, err, vfs.ErrNoSpace)
	fs.ClearFaults()
	_, err = l.AppendAsLeader(batch(t, 2, 1), 0, AppendOptions{})
	wantErr(t, err, ErrStorage) // sticky
	if !bytes.Equal(readAllBytes(t, l, math.MaxInt64), before) {
		t.Fatal("reads changed")
	}
	gone := m.MarkOffline("/data", err)
	if len(gone) != 1 || gone[0] != testTP || m.Dirs()[0].Online() {
		t.Fatalf("offline: %v %+v", gone, m.Dirs())
	}
	if _, ok := m.Log(testTP); ok {
		t.Fatal("log of an offline directory")
	}
	_, err = m.Create(testTP, testID, smallConfig())
	wantErr(t, err, ErrOffline)
	must(t, m.Close())
	if _, err := fs.Stat("/data/" + fileClean); !errors.Is(err, vfs.ErrNotExist) {
		t.Fatal("clean-shutdown mark after a failure")
	}
	m = openMem(t, fs, c, nil)
	l, ok := m.Log(testTP)
	if !ok || !bytes.Equal(readAllBytes(t, l, math.MaxInt64), before) {
		t.Fatal("lost what was flushed")
	}
	mustAppend(t, l, batch(t, 1, 1), 0)
	checkLog(t, l)
}

func TestNoCleanMarkAfterFailedClose(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	mustAppend(t, l, batch(t, 2, 1), 0)
	fs.Inject(vfs.Rule{Ops: []vfs.Op{vfs.OpSync}, Pattern: "*.log", Err: errors.New("i/o error")})
	wantErr(t, m.Close(), ErrStorage)
	fs.ClearFaults()
	if _, err := fs.Stat("/data/" + fileClean); !errors.Is(err, vfs.ErrNotExist) {
		t.Fatal("clean-shutdown mark after a failed sync")
	}
	openMem(t, fs, c, nil)
}

func TestDiskFullWhileOpening(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	mustAppend(t, l, batch(t, 2, 1), 0)
	must(t, l.Flush())
	_ = m
	crashed := fs.CrashClone(vfs.KeepUnsynced, 1)
	crashed.SetCapacity(1) // everything that writes fails
	m2, err := OpenManager(crashed, []string{"/data"}, testOptions(c, nil))
	if err == nil {
		l2, ok := m2.Log(testTP)
		if !ok {
			t.Fatal("no log")
		}
		_, err = l2.AppendAsLeader(batch(t, 1, 1), 0, AppendOptions{})
		wantErr(t, err, ErrStorage)
		_ = m2.Close()
	}
	if _, err := crashed.Stat("/data/" + fileClean); !errors.Is(err, vfs.ErrNotExist) {
		t.Fatal("clean-shutdown mark on a full disk")
	}
	crashed.ClearFaults()
	if err != nil {
		m2, err = OpenManager(crashed.CrashClone(vfs.KeepUnsynced, 1), []string{"/data"}, testOptions(c, nil))
		must(t, err)
	}
	if l2, ok := m2.Log(testTP); !ok || l2.LogEndOffset() != 2 {
		t.Fatal("data lost")
	}
}

// sentFile is a FileSender that copies.
type sentFile struct{ bytes.Buffer }

func (s *sentFile) SendFile(f *os.File, pos int64, n int) (int64, error) {
	return io.Copy(&s.Buffer, io.NewSectionReader(f, pos, int64(n)))
}

func TestSliceSendTo(t *testing.T) {
	c := &clock{ms: 1_000_000}
	m, err := OpenManager(vfs.OS{}, []string{t.TempDir()}, testOptions(c, nil))
	must(t, err)
	defer m.Close()
	l, err := m.Create(testTP, testID, smallConfig())
	must(t, err)
	for range 3 {
		mustAppend(t, l, batch(t, 2, 5), 1)
	}
	s, err := l.Read(2, 1<<20, 6, true)
	must(t, err)
	defer s.Release()
	want := make([]byte, s.Size())
	_, err = s.ReadInto(want)
	must(t, err)
	var got sentFile
	n, ok, err := s.SendTo(&got)
	if !ok || err != nil || n != int64(s.Size()) || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("sent %d bytes (%v, %v), want the %d that ReadInto gives", n, ok, err, len(want))
	}

	_, mm, lm, _ := newTestLog(t)
	defer mm.Close()
	mustAppend(t, lm, batch(t, 2, 5), 1)
	s, err = lm.Read(0, 1<<20, 2, true)
	must(t, err)
	defer s.Release()
	if _, ok, err := s.SendTo(&got); ok || err != nil {
		t.Errorf("a log in memory was sent as a file: %v, %v", ok, err)
	}
}
