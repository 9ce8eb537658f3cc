package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// readAll reads every batch with its records.
func readAll(t testing.TB, b []byte) (*SegmentReader, []Batch, []Record) {
	t.Helper()
	r := NewSegmentReader(bytes.NewReader(b), int64(len(b)), SegmentOptions{BaseOffset: 0})
	var batches []Batch
	var records []Record
	for {
		batch, err := r.Next()
		if err == io.EOF {
			return r, batches, records
		}
		if err != nil {
			t.Fatal(err)
		}
		if batch.CRCValid() {
			err := r.Records(batch, true, func(rec *Record) error { records = append(records, *rec); return nil })
			if err != nil && !errors.Is(err, ErrRecords) {
				t.Fatal(err)
			}
			if err != nil {
				r.Damage = append(r.Damage, Damage{Position: batch.Position, Cause: err.Error()})
			}
		}
		batches = append(batches, *batch)
	}
}

func TestEveryCodec(t *testing.T) {
	var parts [][]byte
	for c := None; c <= Zstd; c++ {
		parts = append(parts, v2(t, int64(c)*3, c, 0, 1000, "a", strings.Repeat("b", 100_000), ""))
	}
	s := segment(parts...)
	r, batches, records := readAll(t, s)
	if len(r.Damage) != 0 || r.GoodBytes() != int64(len(s)) || r.NextOffset() != 15 || len(batches) != 5 || len(records) != 15 {
		t.Fatalf("%+v, %d batches, %d records, next %d", r.Damage, len(batches), len(records), r.NextOffset())
	}
	for i, rec := range records {
		if rec.Offset != int64(i) || rec.Timestamp != 1000+int64(i%3) || rec.Sequence != 100+int32(i%3) || string(rec.Key) != "key" ||
			len(rec.Headers) != 1 || rec.Headers[0].Value != nil || rec.ValueSize != []int{1, 100_000, 0}[i%3] {
			t.Errorf("record %d: %+v", i, rec)
		}
	}
	b := batches[4]
	if b.Codec != Zstd || b.LeaderEpoch != 7 || b.ProducerID != 42 || b.ProducerEpoch != 3 || b.LastSequence() != 102 || b.MaxTimestamp != 1002 {
		t.Errorf("%+v", b)
	}
}

func TestSnappyFramed(t *testing.T) {
	plain := v2(t, 0, None, 0, 0, "x", "y")[v2HeaderBytes:]
	framed := append(slices.Clone(xerial), 0, 0, 0, 1, 0, 0, 0, 1)
	for _, half := range [][]byte{plain[:5], plain[5:]} {
		block := compressed(t, Snappy, half)
		framed = append(be.AppendUint32(framed, uint32(len(block))), block...)
	}
	r, _, records := readAll(t, v2Raw(0, uint16(Snappy), 0, 2, framed))
	if len(r.Damage) != 0 || len(records) != 2 || string(records[1].Value) != "y" {
		t.Errorf("%+v %+v", r.Damage, records)
	}
}

func TestOldFormats(t *testing.T) {
	inner0 := segment(message(0, 1, 0, 0, nil, []byte("b")), message(0, 2, 0, 0, []byte("k"), nil))
	inner1 := segment(message(1, 0, 0, 50, nil, []byte("d")), message(1, 1, 0, 60, nil, []byte("e")))
	var lz bytes.Buffer
	w := lz4.NewWriter(&lz)
	if _, err := w.Write(message(0, 5, 0, 0, nil, []byte("f"))); err != nil {
		t.Fatal(err)
	}
	w.Close()
	old := lz.Bytes()
	n := 6
	if old[4]&8 != 0 {
		n += 8
	}
	old[n] ^= 0x5a // a header checksum as old producers computed it: wrong
	s := segment(
		message(0, 0, 0, 0, []byte("k"), []byte("a")), message(0, 2, byte(Gzip), 0, nil, compressed(t, Gzip, inner0)),
		message(1, 4, byte(Snappy), 60, nil, compressed(t, Snappy, inner1)), message(0, 5, byte(LZ4), 0, nil, old),
		v2(t, 6, None, 0, 70, "g"),
	)
	r, batches, records := readAll(t, s)
	if len(r.Damage) != 0 || len(batches) != 5 || r.NextOffset() != 7 {
		t.Fatalf("%+v %d", r.Damage, len(batches))
	}
	var got []string
	for _, rec := range records {
		got = append(got, fmt.Sprintf("%d@%d=%s", rec.Offset, rec.Timestamp, rec.Value))
	}
	if want := "0@-1=a 1@-1=b 2@-1= 3@50=d 4@60=e 5@-1=f 6@70=g"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", strings.Join(got, " "), want)
	}
	if records[2].Value != nil || records[2].ValueSize != -1 {
		t.Error("a null value is not null")
	}
}

func TestControlAndTransactions(t *testing.T) {
	marker := func(base int64, kind byte) []byte {
		key, value := []byte{0, 0, 0, kind}, []byte{0, 0, 0, 0, 0, 9}
		r := []byte{0, 0, 0}
		r = varBytes(varBytes(r, key), value)
		r = append(r, 0)
		return v2Raw(base, 0x30, 10, 1, append([]byte{byte(len(r) * 2)}, r...))
	}
	r, batches, records := readAll(t, segment(v2(t, 0, None, 0x10, 10, "x"), marker(1, 1), marker(2, 0), marker(3, 99)))
	if len(r.Damage) != 0 || !batches[0].Transactional || batches[0].Control || !batches[1].Control {
		t.Fatalf("%+v %+v", r.Damage, batches)
	}
	for i, want := range []string{"commit", "abort", "unknown"} {
		d := DecodeControl(records[i+1].Key, records[i+1].Value)
		if d.Type != want || want != "unknown" && *d.CoordinatorEpoch != 9 {
			t.Errorf("%+v, want %s", d, want)
		}
	}
}

func TestDamage(t *testing.T) {
	a, b, c := v2(t, 0, None, 0, 1, "one", "two"), v2(t, 2, Gzip, 0, 1, "three"), v2(t, 3, None, 0, 1, "four")
	whole := segment(a, b, c)
	flip := func(at int) []byte {
		out := slices.Clone(whole)
		out[at] ^= 0xff
		return out
	}
	for _, tc := range []struct {
		name     string
		bytes    []byte
		position int
		length   int
		batches  int
		cause    string
	}{
		{"cut in the header", whole[:len(a)+len(b)+9], len(a) + len(b), 9, 2, "the file ends 9 bytes into a batch"},
		{"cut in the body", whole[:len(whole)-1], len(a) + len(b), len(c) - 1, 2, "the file ends after"},
		{"bit rot inside", flip(len(a) + len(b) - 1), len(a), len(b), 3, "the checksum is"},
		{"bit rot in the length", flip(len(a) + 9), len(a), len(b), 2, "the file ends after"},
		{"bit rot in the magic", flip(len(a) + magicAt), len(a), len(b), 2, "magic -3"},
		{"offset goes back", segment(a, a, c), len(a), len(a), 2, "offset 0 comes after offset 1"},
		{"zeros", append(slices.Clone(whole), make([]byte, 1000)...), len(whole), 1000, 3, "only zeros"},
		{"garbage", append(slices.Clone(whole), bytes.Repeat([]byte{0xa5}, 70_000)...), len(whole), 70_000, 3, "magic -91"},
	} {
		r, batches, _ := readAll(t, tc.bytes)
		if len(r.Damage) != 1 {
			t.Errorf("%s: %+v", tc.name, r.Damage)
			continue
		}
		d := r.Damage[0]
		if d.Position != int64(tc.position) || d.Length != int64(tc.length) || len(batches) != tc.batches || !strings.Contains(d.Cause, tc.cause) || r.GoodBytes() != d.Position {
			t.Errorf("%s: %+v, %d batches, %d good", tc.name, d, len(batches), r.GoodBytes())
		}
	}
}

// TestTruncatedAnywhere: of a file cut anywhere every whole batch is read, and nothing behind.
func TestTruncatedAnywhere(t *testing.T) {
	a, b := v2(t, 0, None, 0, 1, "one", "two"), v2(t, 2, LZ4, 0, 1, "three")
	whole := segment(a, b)
	for n := range whole {
		r, batches, _ := readAll(t, whole[:n])
		want, good := 0, 0
		if n >= len(a) {
			want, good = 1, len(a)
		}
		if len(batches) != want || r.GoodBytes() != int64(good) || (len(r.Damage) == 0) != (n == good) {
			t.Fatalf("cut at %d: %d batches, %d good, %+v", n, len(batches), r.GoodBytes(), r.Damage)
		}
	}
}

func TestRecordDamage(t *testing.T) {
	body := v2(t, 0, None, 0, 1, "one", "two")[v2HeaderBytes:]
	for name, s := range map[string][]byte{
		"a record too few":  v2Raw(0, 0, 1, 3, body),
		"a record too many": v2Raw(0, 0, 1, 1, body),
		"not gzip":          v2Raw(0, 1, 1, 2, body),
		"codec 7":           v2Raw(0, 7, 1, 2, body),
		"huge length":       v2Raw(0, 0, 1, 1, []byte{0xfe, 0xff, 0xff, 0xff, 0x0f}),
		"nothing":           v2Raw(0, 0, 1, 1, nil),
	} {
		if r, _, _ := readAll(t, s); len(r.Damage) != 1 || !strings.Contains(r.Damage[0].Cause, "the records are damaged") {
			t.Errorf("%s: %+v", name, r.Damage)
		}
	}
}
