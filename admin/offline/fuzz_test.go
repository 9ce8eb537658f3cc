package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
)

// FuzzSegment: whatever a segment holds is read to its end; good bytes, batches and damage cover it without overlap.
func FuzzSegment(f *testing.F) {
	f.Add([]byte{})
	f.Add(segment(v2(f, 0, None, 0, 1, "a", "b"), v2(f, 2, Zstd, 0, 1, "c")))
	f.Add(v2(f, 0, LZ4, 0, 1, "a", "b"))
	f.Add(message(1, 3, byte(Gzip), 1, nil, compressed(f, Gzip, message(1, 0, 0, 1, nil, []byte("x")))))
	f.Add(message(0, 3, byte(Snappy), 1, nil, compressed(f, Snappy, message(0, 3, 0, 1, nil, []byte("x")))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewSegmentReader(bytes.NewReader(b), int64(len(b)), SegmentOptions{BaseOffset: -1})
		covered := int64(0)
		for {
			batch, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if batch.CRCValid() {
				covered += batch.Size
			}
			err = r.Records(batch, true, func(rec *Record) error {
				_ = DecodeControl(rec.Key, rec.Value)
				return nil
			})
			if err != nil && !errors.Is(err, ErrRecords) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
		}
		for _, d := range r.Damage {
			covered += d.Length
		}
		if covered != int64(len(b)) {
			t.Fatalf("%d of %d bytes are accounted for: %+v", covered, len(b), r.Damage)
		}
	})
}

// FuzzIndexes: index files, snapshots and checkpoints of any bytes give entries and damage, no error.
func FuzzIndexes(f *testing.F) {
	f.Add(segment(entry(2, 80), entry(3, 90)))
	f.Add(segment(timeEntry(5, 1), timeEntry(6, 2)))
	f.Add(aborted(0, 1, 2, 3, 4))
	f.Add(snapshot(1, 5))
	f.Add([]byte("0\n1\na 0 5\n"))
	f.Add([]byte("version=0\n"))
	f.Add([]byte(`{"a":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := int64(len(b))
		log := func() *SegmentReader {
			return NewSegmentReader(bytes.NewReader(b), n, SegmentOptions{BaseOffset: -1, NoCRC: true})
		}
		check := func(r *IndexReport, err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range r.Damage {
				if d.Position < 0 || d.Length < 0 || d.Position+d.Length > n {
					t.Fatalf("%+v of %d bytes", d, n)
				}
			}
		}
		check(OffsetIndex(bytes.NewReader(b), n, 0, log(), func(*IndexEntry) error { return nil }))
		check(TimeIndex(bytes.NewReader(b), n, 0, log(), func(*IndexEntry) error { return nil }))
		check(TxnIndex(bytes.NewReader(b), n, func(*AbortedTxn) error { return nil }))
		check(ProducerSnapshot(bytes.NewReader(b), n, func(*ProducerState) error { return nil }))
		for _, format := range []CheckpointFormat{TopicOffsets, LeaderEpochs, Properties, JSONFile, CleanStop} {
			check(ReadCheckpoint(bytes.NewReader(b), n, format, func(*Checkpoint) error { return nil }))
		}
	})
}

// FuzzDecoders: keys and values of internal topics of any bytes are decoded or named as undecodable.
func FuzzDecoders(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 'g', 0, 1, 't', 0, 0, 0, 1}, []byte{0, 3})
	f.Add([]byte{0, 2, 0, 1, 'g'}, []byte{0, 4, 0, 0})
	f.Add([]byte{0, 0, 0, 2, 't', 'x'}, []byte{0, 1, 0})
	f.Add([]byte{0, 0, 0, 2}, []byte{0, 0, 0, 0, 0, 1, 2})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, d := range []Decoded{DecodeOffsets(key, value), DecodeTransactions(key, value), DecodeControl(key, value), DecodeShareState(key, value)} {
			if _, err := json.Marshal(d); err != nil {
				t.Fatal(err)
			}
			if d.Type == "" || d.Type == "unknown" && d.Problem == "" {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// FuzzMetadata: a record of a KRaft controller of any bytes is decoded or named, and can be printed.
func FuzzMetadata(f *testing.F) {
	for number, kind := range metadataRecords {
		f.Add(append([]byte{1, byte(number), byte(kind.newest)}, make([]byte, 64)...))
	}
	f.Add([]byte("\x01\x02\x00\x02t0123456789abcdef\x00"))
	f.Fuzz(func(t *testing.T, value []byte) {
		d := DecodeMetadata(nil, value)
		if d.Type == "" || d.Type == "unknown" && d.Problem == "" {
			t.Fatalf("%+v", d)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Fatal(err)
		}
	})
}
