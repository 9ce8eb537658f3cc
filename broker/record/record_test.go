package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var codecs = []Compression{None, Gzip, Snappy, LZ4, Zstd}

type plain struct {
	Offset, Timestamp int64
	Key, Value        []byte
	Headers           []Header
}

func sample() []plain {
	return []plain{
		{0, 1000, []byte("k1"), []byte("v1"), nil},
		{1, 990, nil, bytes.Repeat([]byte("long value "), 300), []Header{{"a", []byte("1")}, {"", nil}, {"b", []byte{}}}},
		{2, 1500, []byte{}, nil, nil},
	}
}

func build(t testing.TB, c Compression, recs []plain) Batch {
	t.Helper()
	b := NewBuilder(c)
	for _, r := range recs {
		b.AddAt(int32(r.Offset), r.Timestamp, r.Key, r.Value, r.Headers...)
	}
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = 77, 3, 12
	out, err := b.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	return Batch(out)
}

func collect(t testing.TB, b Batch, limit int) []plain {
	t.Helper()
	it, err := b.Records(nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	var out []plain
	for it.Next() {
		r := it.Record()
		out = append(out, plain{r.Offset, r.Timestamp, r.Key, r.Value, r.Headers()})
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return out
}

func TestBuildAndReadEveryCodec(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.String(), func(t *testing.T) {
			b := build(t, c, sample())
			if err := b.Check(true); err != nil {
				t.Fatal(err)
			}
			if err := b.CheckRecords(false, 1<<20); err != nil {
				t.Fatal(err)
			}
			if b.Compression() != c || b.Count() != 3 || b.LastOffsetDelta() != 2 ||
				b.BaseTimestamp() != 1000 || b.MaxTimestamp() != 1500 || b.LastSequence() != 14 {
				t.Fatalf("header: %v %d %d %d %d", b.Compression(), b.Count(), b.LastOffsetDelta(), b.BaseTimestamp(), b.MaxTimestamp())
			}
			if diff := cmp.Diff(sample(), collect(t, b, 1<<20)); diff != "" {
				t.Fatal(diff)
			}
			if c != None {
				back, err := Recompress(nil, b, None, 1<<20)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(back, build(t, None, sample())) {
					t.Fatal("recompression to none differs from a batch built without")
				}
			}
		})
	}
}

// TestAgainstKmsg compares with an independent codec of the format.
func TestAgainstKmsg(t *testing.T) {
	b := build(t, None, sample())
	var k kmsg.RecordBatch
	if err := k.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	if int(k.Length) != len(b)-12 || uint32(k.CRC) != b.CRC() || k.NumRecords != 3 || k.ProducerID != 77 ||
		k.FirstSequence != 12 || k.MaxTimestamp != 1500 {
		t.Fatalf("kmsg reads %+v", k)
	}
	if got := k.AppendTo(nil); !bytes.Equal(got, b) {
		t.Fatal("kmsg writes other bytes")
	}
	rest := k.Records
	for i, want := range sample() {
		n, w := binary.Varint(rest)
		var r kmsg.Record
		if err := r.ReadFrom(rest[:w+int(n)]); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Key, want.Key) || !bytes.Equal(r.Value, want.Value) || len(r.Headers) != len(want.Headers) ||
			r.TimestampDelta64 != want.Timestamp-1000 || int64(r.OffsetDelta) != want.Offset {
			t.Fatalf("record %d: %+v", i, r)
		}
		rest = rest[w+int(n):]
	}
}

func TestSettersInPlace(t *testing.T) {
	b := build(t, None, sample())
	b.SetBaseOffset(4711)
	b.SetLeaderEpoch(9)
	if err := b.Verify(); err != nil {
		t.Fatalf("offset and epoch are under the CRC: %v", err)
	}
	if b.LastOffset() != 4713 || b.NextOffset() != 4714 || b.LeaderEpoch() != 9 {
		t.Fatal("setters")
	}
	b.SetLogAppendTime(123456)
	if err := b.Check(true); err != nil {
		t.Fatal(err)
	}
	for _, r := range collect(t, b, 1<<20) {
		if r.Timestamp != 123456 {
			t.Fatalf("timestamp %d", r.Timestamp)
		}
	}
	b.SetProducer(5, 6, 7)
	if err := b.Check(true); err != nil || b.ProducerID() != 5 || b.ProducerEpoch() != 6 || b.BaseSequence() != 7 {
		t.Fatal(err)
	}
}

func TestNext(t *testing.T) {
	one := build(t, None, sample())
	two := append(bytes.Clone(one), one...)
	b, rest, err := Next(two)
	if err != nil || !bytes.Equal(b, one) || !bytes.Equal(rest, one) {
		t.Fatal(err)
	}
	for n := range len(one) {
		if _, _, err := Next(one[:n]); !errors.Is(err, ErrIncomplete) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	for magic, want := range map[byte]error{0: ErrUnsupportedFormat, 1: ErrUnsupportedFormat, 3: ErrCorrupt, 255: ErrCorrupt} {
		bad := bytes.Clone(one)
		bad[16] = magic
		if _, _, err := Next(bad); !errors.Is(err, want) {
			t.Fatalf("magic %d: %v", magic, err)
		}
	}
	var ke *kerr.Error
	bad := bytes.Clone(one)
	bad[16] = 1
	if _, _, err := Next(bad); !errors.As(err, &ke) || ke != kerr.UnsupportedForMessageFormat {
		t.Fatalf("code of the old format: %v", ke)
	}
	for _, length := range []int32{-1, 0, 48, math.MinInt32, math.MaxInt32} {
		bad := bytes.Clone(one)
		binary.BigEndian.PutUint32(bad[8:], uint32(length))
		if _, _, err := Next(bad); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("length %d: %v", length, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(Batch)
		strict bool
		want   error
	}{
		"count over delta":       {func(b Batch) { binary.BigEndian.PutUint32(b[57:], 4) }, false, ErrInvalid},
		"negative count":         {func(b Batch) { binary.BigEndian.PutUint32(b[57:], 0xffffffff) }, false, ErrInvalid},
		"count under delta":      {func(b Batch) { binary.BigEndian.PutUint32(b[57:], 2) }, true, ErrInvalid},
		"no records":             {func(b Batch) { binary.BigEndian.PutUint32(b[57:], 0) }, true, ErrInvalid},
		"negative delta":         {func(b Batch) { binary.BigEndian.PutUint32(b[23:], 0x80000000) }, false, ErrInvalid},
		"negative offset":        {func(b Batch) { b.SetBaseOffset(-5) }, false, ErrInvalid},
		"offset overflow":        {func(b Batch) { b.SetBaseOffset(math.MaxInt64 - 1) }, false, ErrInvalid},
		"codec 5":                {func(b Batch) { b[22] |= 5 }, false, ErrUnsupportedCompression},
		"no epoch":               {func(b Batch) { binary.BigEndian.PutUint16(b[51:], 0xffff) }, false, ErrInvalid},
		"no sequence":            {func(b Batch) { binary.BigEndian.PutUint32(b[53:], 0xffffffff) }, true, ErrInvalid},
		"a billion empty ones":   {func(b Batch) { binary.BigEndian.PutUint32(b[57:], 1e9); binary.BigEndian.PutUint32(b[23:], 1e9-1) }, true, ErrInvalid},
		"holes are fine loosely": {func(b Batch) { binary.BigEndian.PutUint32(b[57:], 2) }, false, nil},
	}
	for name, c := range cases {
		b := build(t, None, sample())
		c.change(b)
		b.UpdateCRC()
		if err := b.Check(c.strict); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	b := build(t, None, sample())
	for at := offAttributes; at < len(b); at++ {
		b[at] ^= 0x10
		if err := b.Check(true); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("flipped byte %d: %v", at, err)
		}
		b[at] ^= 0x10
	}
}

func TestCheckRecords(t *testing.T) {
	recs := sample()
	if err := build(t, Zstd, recs).CheckRecords(true, 1<<20); !errors.Is(err, ErrInvalid) {
		t.Fatalf("record without key: %v", err)
	}
	recs[1].Key = []byte("k")
	if err := build(t, Zstd, recs).CheckRecords(true, 1<<20); err != nil {
		t.Fatal(err)
	}
	recs[2].Offset = 5
	if err := build(t, None, recs).CheckRecords(false, 1<<20); !errors.Is(err, ErrInvalid) {
		t.Fatalf("hole: %v", err)
	}
}

func TestCheckFrames(t *testing.T) {
	b := build(t, None, sample())
	if err := b.CheckFrames(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(Batch) Batch{
		func(b Batch) Batch { b[57+3]++; return b },
		func(b Batch) Batch { b[57+3]--; return b },
		func(b Batch) Batch { b[61] += 2; return b },
		func(b Batch) Batch { b[61] = 1; return b },
		func(b Batch) Batch { return b[:len(b)-1] },
	} {
		if err := change(bytes.Clone(b)).CheckFrames(); !errors.Is(err, ErrInvalid) {
			t.Errorf("accepted: %v", err)
		}
	}
}

func TestDecompressionBombs(t *testing.T) {
	const limit = 1 << 20
	big := make([]byte, 64<<20)
	for _, c := range codecs[1:] {
		packed, err := Compress(c, nil, big)
		if err != nil {
			t.Fatal(err)
		}
		allocated := testing.AllocsPerRun(1, func() {
			if _, err := Decompress(c, nil, packed, limit); !errors.Is(err, ErrTooLarge) {
				t.Fatalf("%s: %v", c, err)
			}
		})
		_ = allocated
		if out, err := Decompress(c, nil, packed, len(big)); err != nil || len(out) != len(big) {
			t.Fatalf("%s with room: %d, %v", c, len(out), err)
		}
		for _, cut := range []int{0, 1, 5, len(packed) / 2, len(packed) - 1} {
			if out, err := Decompress(c, nil, packed[:cut], len(big)); err == nil && len(out) == len(big) {
				t.Fatalf("%s: cut to %d still unpacks", c, cut)
			}
		}
	}
	liar := binary.AppendUvarint(nil, 1<<30) // a raw snappy block that claims a GiB
	if _, err := Decompress(Snappy, nil, liar, 1<<31-1); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("lying snappy: %v", err)
	}
}

func TestRawSnappy(t *testing.T) {
	want := bytes.Repeat([]byte("raw snappy block "), 50)
	got, err := Decompress(Snappy, nil, s2.EncodeSnappy(nil, want), 1<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%v", err)
	}
	got, err = Decompress(Snappy, make([]byte, 10), s2.EncodeSnappy(nil, want), 1<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("with little room: %v", err)
	}
}

func TestControl(t *testing.T) {
	b := NewBuilder(None)
	b.AddControl(5, Control{ControlCommit, 8})
	b.ProducerID, b.ProducerEpoch = 1, 2
	out, err := b.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	batch := Batch(out)
	if !batch.IsControl() || !batch.IsTransactional() || batch.Check(false) != nil {
		t.Fatal("flags")
	}
	if c, err := batch.ParseControl(); err != nil || c != (Control{ControlCommit, 8}) {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := build(t, None, sample()).ParseControl(); !errors.Is(err, ErrInvalid) {
		t.Fatalf("data batch as control: %v", err)
	}
}

func TestSequenceWraps(t *testing.T) {
	for _, c := range []struct{ seq, n, want int32 }{
		{0, 0, 0}, {5, 3, 8}, {math.MaxInt32, 0, math.MaxInt32}, {math.MaxInt32, 1, 0}, {math.MaxInt32 - 1, 4, 2},
	} {
		if got := AddSequence(c.seq, c.n); got != c.want {
			t.Errorf("%d+%d = %d, want %d", c.seq, c.n, got, c.want)
		}
		if got := SubSequence(c.want, c.n); got != c.seq {
			t.Errorf("%d-%d = %d, want %d", c.want, c.n, got, c.seq)
		}
	}
}

func FuzzBatch(f *testing.F) {
	for _, c := range codecs {
		f.Add([]byte(build(f, c, sample())))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for rest := data; len(rest) > 0; {
			b, next, err := Next(rest)
			if err != nil {
				break
			}
			rest = next
			_ = b.Check(true)
			b.UpdateCRC() // look behind the CRC too
			_ = b.Check(false)
			_ = b.CheckFrames()
			_, _ = b.ParseControl()
			it, err := b.Records(nil, 1<<16)
			if err != nil {
				continue
			}
			for it.Next() {
				if n := len(it.Record().Headers()); n != it.Record().HeaderCount() {
					t.Fatalf("%d headers of %d", n, it.Record().HeaderCount())
				}
			}
			// Records with holes between their offsets can be read, but no producer may send them.
			checked := b.CheckRecords(false, 1<<16)
			if _, err := Recompress(nil, b, Snappy, 1<<16); (err == nil) != (checked == nil) || checked == nil && it.Err() != nil {
				t.Fatalf("recompressed: %v, checked: %v, read: %v", err, checked, it.Err())
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for _, c := range codecs {
		p, _ := Compress(c, nil, []byte("some bytes to unpack, some bytes to unpack"))
		f.Add(int8(c), p)
	}
	f.Fuzz(func(t *testing.T, c int8, data []byte) {
		out, err := Decompress(Compression(c), nil, data, 1<<16)
		if err == nil && len(out) > 1<<16 {
			t.Fatalf("%d bytes over the limit", len(out))
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	for _, size := range []int{100, 1024} {
		bl := NewBuilder(None)
		for bl.Size() < 64<<10 {
			bl.Add(1, nil, make([]byte, size))
		}
		batch, _ := bl.Build(nil)
		b.Run(fmt.Sprintf("header+crc/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(batch)))
			for b.Loop() {
				if err := Batch(batch).Check(true); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("frames/%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(batch)))
			for b.Loop() {
				if err := Batch(batch).CheckFrames(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
