package storage

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kctl/broker/record"
)

func produce(t testing.TB, l *Log, n int, id int64, epoch int16, seq int32) (AppendResult, error) {
	t.Helper()
	return l.AppendAsLeader(batch(t, n, 1, withProducer(id, epoch, seq)), 0, AppendOptions{})
}

func TestIdempotence(t *testing.T) {
	_, _, l, _ := newTestLog(t)
	step := func(n int, epoch int16, seq int32, wantBase int64, dup bool, want error) {
		t.Helper()
		res, err := produce(t, l, n, 7, epoch, seq)
		if !errors.Is(err, want) {
			t.Fatalf("epoch %d seq %d: %v, want %v", epoch, seq, err, want)
		}
		if err == nil && (res.BaseOffset != wantBase || res.Duplicate != dup || res.LastOffset != wantBase+int64(n)-1) {
			t.Fatalf("epoch %d seq %d: %+v", epoch, seq, res)
		}
	}
	step(3, 0, 5, 0, false, nil) // unknown producers may start anywhere
	step(2, 0, 8, 3, false, nil)
	step(2, 0, 8, 3, true, nil)
	step(3, 0, 5, 0, true, nil)
	step(2, 0, 11, 0, false, ErrOutOfOrderSequence) // a hole
	step(1, 0, 8, 0, false, ErrOutOfOrderSequence)  // other boundaries than the batch appended
	for i := range int32(4) {
		step(1, 0, 10+i, 5+int64(i), false, nil)
	}
	step(2, 0, 8, 3, true, nil)                    // fifth from the end
	step(3, 0, 5, 0, false, ErrOutOfOrderSequence) // sixth: forgotten
	step(1, 1, 3, 0, false, ErrOutOfOrderSequence) // a new epoch starts at 0
	step(1, 1, 0, 9, false, nil)
	step(1, 0, 14, 0, false, ErrInvalidProducerEpoch)
	step(1, 0, 13, 0, false, ErrInvalidProducerEpoch) // known of epoch 0, but that is over
	res, err := produce(t, l, 1, 8, 0, math.MaxInt32)
	must(t, err)
	if res.BaseOffset != 10 {
		t.Fatal(res)
	}
	_, err = produce(t, l, 1, 8, 0, 0) // sequences wrap
	must(t, err)
	checkLog(t, l)
}

func TestIdempotenceAcrossOneAppend(t *testing.T) {
	_, _, l, _ := newTestLog(t)
	two := append(batch(t, 2, 1, withProducer(1, 0, 0)), batch(t, 2, 1, withProducer(1, 0, 2))...)
	mustAppend(t, l, bytes.Clone(two), 0)
	gap := append(batch(t, 2, 1, withProducer(1, 0, 4)), batch(t, 2, 1, withProducer(1, 0, 9))...)
	_, err := l.AppendAsLeader(gap, 0, AppendOptions{})
	wantErr(t, err, ErrOutOfOrderSequence)
	if l.LogEndOffset() != 4 {
		t.Fatal("half of an append stayed")
	}
	mustAppend(t, l, batch(t, 2, 1, withProducer(1, 0, 4)), 0)
	// The coordinator's own appends are not held to sequences, but to epochs.
	_, err = l.AppendAsLeader(batch(t, 1, 1, withProducer(1, 0, 100)), 0, AppendOptions{Origin: OriginCoordinator})
	must(t, err)
}

func TestRetriesAreKnownAfterRestart(t *testing.T) {
	for name, clean := range map[string]bool{"clean": true, "kill": false} {
		t.Run(name, func(t *testing.T) {
			fs, m, l, c := newTestLog(t)
			for i := range int32(20) {
				_, err := produce(t, l, 2, 7, 3, 2*i)
				must(t, err)
			}
			if clean {
				must(t, m.Close())
			} else {
				fs = fs.CrashClone(0, 0)
			}
			m = openMem(t, fs, c, nil)
			l, _ = m.Log(testTP)
			for i := int32(15); i < 20; i++ {
				res, err := produce(t, l, 2, 7, 3, 2*i)
				must(t, err)
				if !res.Duplicate || res.BaseOffset != int64(2*i) {
					t.Fatalf("batch %d: %+v", i, res)
				}
			}
			_, err := produce(t, l, 2, 7, 3, 28)
			wantErr(t, err, ErrOutOfOrderSequence)
			_, err = produce(t, l, 2, 7, 3, 40)
			must(t, err)
		})
	}
}

func TestTruncationTakesProducersBack(t *testing.T) {
	_, _, l, _ := newTestLog(t)
	for i := range int32(30) {
		_, err := produce(t, l, 1, 7, 0, i)
		must(t, err)
	}
	must(t, l.TruncateTo(11))
	if got := l.ActiveProducers(); len(got) != 1 || got[0].LastSequence != 10 {
		t.Fatalf("%+v", got)
	}
	_, err := produce(t, l, 1, 7, 0, 30)
	wantErr(t, err, ErrOutOfOrderSequence)
	_, err = produce(t, l, 1, 7, 0, 11)
	must(t, err)
	must(t, l.TruncateFullyAndStartAt(100))
	if got := l.ActiveProducers(); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	_, err = produce(t, l, 1, 7, 0, 5)
	must(t, err)
}

func TestProducersExpire(t *testing.T) {
	_, m, l, c := newTestLog(t)
	_, err := produce(t, l, 1, 7, 0, 0) // record timestamp 1: only the append time keeps it
	must(t, err)
	must(t, m.Housekeep(c.now().Add(23*time.Hour)))
	if len(l.ActiveProducers()) != 1 {
		t.Fatal("expired too early")
	}
	must(t, m.Housekeep(c.now().Add(25*time.Hour)))
	if len(l.ActiveProducers()) != 0 {
		t.Fatal("not expired")
	}
}

func TestTransactionsBoundTheStableOffset(t *testing.T) {
	fs, m, l, c := newTestLog(t)
	data := batch(t, 2, 1, withProducer(9, 0, 0), func(b *record.Builder) { b.Transactional = true })
	mustAppend(t, l, data, 0)
	mustAppend(t, l, batch(t, 1, 1), 0)
	l.SetHighWatermark(3)
	if l.LastStableOffset() != 0 {
		t.Fatalf("stable %d in an open transaction", l.LastStableOffset())
	}
	must(t, m.Close())
	m = openMem(t, fs, c, nil)
	l, _ = m.Log(testTP)
	l.SetHighWatermark(3)
	if l.LastStableOffset() != 0 {
		t.Fatal("restart forgot the transaction")
	}
	b := record.NewBuilder(record.None)
	b.AddControl(1, record.Control{Type: record.ControlCommit, CoordinatorEpoch: 4})
	b.ProducerID, b.ProducerEpoch = 9, 0
	marker, err := b.Build(nil)
	must(t, err)
	_, err = l.AppendAsLeader(marker, 0, AppendOptions{Origin: OriginCoordinator})
	must(t, err)
	if l.LastStableOffset() != 0 {
		t.Fatal("the marker is not below the high watermark yet")
	}
	l.SetHighWatermark(4)
	if l.LastStableOffset() != 4 {
		t.Fatalf("stable %d", l.LastStableOffset())
	}
	if p := l.ActiveProducers(); len(p) != 1 || p[0].CoordinatorEpoch != 4 || p[0].TxnStartOffset != -1 {
		t.Fatalf("%+v", p)
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	p := newProducer(5)
	p.epoch, p.coordinatorEpoch, p.txnFirst = 2, 3, 77
	for i := range int32(7) {
		p.push(producerBatch{lastSeq: i*2 + 1, lastOffset: int64(i) * 10, offsetDelta: 1, timestamp: int64(i)})
	}
	p.lastTimestamp = 6
	marker := newProducer(6)
	marker.epoch, marker.coordinatorEpoch, marker.lastTimestamp = 1, 9, 12
	want := []producer{*p, *marker}
	got, err := decodeSnapshot(encodeSnapshot(want))
	must(t, err)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(producer{}, producerBatch{}), cmp.FilterPath(func(p cmp.Path) bool {
		return p.String() == "batches"
	}, cmp.Ignore())); diff != "" {
		t.Fatal(diff)
	}
	for i := range got {
		for k := range got[i].n {
			if got[i].batches[k] != want[i].batches[k] {
				t.Fatal("batches differ")
			}
		}
	}
	data := encodeSnapshot(want)
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if _, err := decodeSnapshot(bad); !errors.Is(err, ErrMalformed) {
			t.Fatalf("flipped byte %d: %v", i, err)
		}
		if _, err := decodeSnapshot(data[:i]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("%d bytes: %v", i, err)
		}
	}
}
