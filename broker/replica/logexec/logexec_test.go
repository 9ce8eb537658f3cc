package logexec

import (
	"errors"
	"testing"
	"time"

	"kctl/broker/record"
	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

var (
	tp  = cluster.TopicPartition{Topic: "t"}
	now = time.Unix(5000, 0)
)

func open(t *testing.T, fs vfs.FS, dirs ...string) *storage.Manager {
	t.Helper()
	m, err := storage.OpenManager(fs, dirs, storage.ManagerOptions{BrokerID: 1, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func mem() *vfs.Mem { return vfs.NewMem(func() int64 { return now.UnixMilli() }) }

func batch(t *testing.T, n int) []byte {
	t.Helper()
	b := record.NewBuilder(0)
	for range n {
		b.Add(now.UnixMilli(), nil, []byte("value"))
	}
	out, err := b.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func create(t *testing.T, m *storage.Manager) *storage.Log {
	t.Helper()
	log, ev, err := Open(m, tp, storage.DefaultConfig(), replica.OpenLog{TopicID: cluster.TopicID{3}, IsNew: true}, now)
	if err != nil || ev.Failed {
		t.Fatalf("%+v %v", ev, err)
	}
	return log
}

func lead(t *testing.T, log *storage.Log, epoch cluster.LeaderEpoch, records int) {
	t.Helper()
	ev, handled, err := Execute(log, replica.AssignEpochStart{Epoch: epoch, Offset: log.LogEndOffset()}, now)
	if err != nil || !handled || ev != (replica.EpochStartAssigned{At: now}) {
		t.Fatalf("%+v %v", ev, err)
	}
	if records > 0 {
		if _, err := log.AppendAsLeader(batch(t, records), epoch, storage.AppendOptions{Now: now}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenTellsWhatWasRecovered(t *testing.T) {
	m := open(t, mem(), "/d")
	log := create(t, m)
	lead(t, log, 4, 10)
	lead(t, log, 6, 0)
	if err := m.CheckpointHighWatermarks(map[cluster.TopicPartition]int64{tp: 7}); err != nil {
		t.Fatal(err)
	}
	_, ev, err := Open(m, tp, storage.DefaultConfig(), replica.OpenLog{TopicID: cluster.TopicID{3}}, now)
	want := replica.LogOpened{At: now, LogEnd: 10, HighWatermark: 7, LastEpoch: 4, EmptyEpoch: true, TopicID: cluster.TopicID{3}}
	if err != nil || ev != want {
		t.Fatalf("got  %+v %v\nwant %+v", ev, err, want)
	}
}

// TestNoNewLogWhileADirectoryIsOffline: the missing log may lie there; only the controller's word that the
// replica is new lets us make one.
func TestNoNewLogWhileADirectoryIsOffline(t *testing.T) {
	m := open(t, mem(), "/a", "/b")
	m.MarkOffline("/a", errors.New("dead disk"))
	if _, ev, err := Open(m, tp, storage.DefaultConfig(), replica.OpenLog{}, now); !ev.Failed || !errors.Is(err, storage.ErrOffline) {
		t.Fatalf("%+v %v", ev, err)
	}
	if _, ev, err := Open(m, tp, storage.DefaultConfig(), replica.OpenLog{IsNew: true}, now); ev.Failed || err != nil {
		t.Fatalf("%+v %v", ev, err)
	}
}

// TestEmptyEpochsAreDropped: KAFKA-7164, KAFKA-10706, on the real epoch cache.
func TestEmptyEpochsAreDropped(t *testing.T) {
	for _, first := range []cluster.LeaderEpoch{0, 2} {
		log := create(t, open(t, mem(), "/d"))
		lead(t, log, first, 5)
		lead(t, log, 3, 4)
		lead(t, log, 7, 0)
		lead(t, log, 9, 0)
		ev, _, err := Execute(log, replica.TruncateTo{Offset: 9}, now)
		if want := (replica.Truncated{At: now, LogEnd: 9, LastEpoch: 3}); err != nil || ev != want {
			t.Fatalf("%+v %v", ev, err)
		}
		if e, ok := log.LatestEpoch(); !ok || e != 3 {
			t.Errorf("latest epoch is %d", e)
		}
		if e, end := log.EndOffsetForEpoch(first); e != first || end != 5 {
			t.Errorf("epoch %d ends at (%d, %d)", first, e, end)
		}
		if e, end := log.EndOffsetForEpoch(3); e != 3 || end != 9 {
			t.Errorf("epoch 3 ends at (%d, %d)", e, end)
		}
	}
}

func TestTruncations(t *testing.T) {
	log := create(t, open(t, mem(), "/d"))
	for range 4 {
		lead(t, log, 1, 5)
	}
	log.SetHighWatermark(20)
	ev, _, err := Execute(log, replica.AdvanceLogStart{Offset: 5}, now)
	if want := (replica.LogStartAdvanced{At: now, LogStart: 5}); err != nil || ev != want {
		t.Fatalf("%+v %v", ev, err)
	}
	// A batch is cut as a whole.
	ev, _, err = Execute(log, replica.TruncateTo{Offset: 12}, now)
	if want := (replica.Truncated{At: now, LogStart: 5, LogEnd: 10, LastEpoch: 1}); err != nil || ev != want {
		t.Fatalf("%+v %v", ev, err)
	}
	ev, _, err = Execute(log, replica.TruncateFullyAndStartAt{Offset: 100}, now)
	if want := (replica.Truncated{At: now, LogStart: 100, LogEnd: 100, LastEpoch: -1}); err != nil || ev != want {
		t.Fatalf("%+v %v", ev, err)
	}
	if ev, handled, err := Execute(log, replica.SetHighWatermark{Offset: 100}, now); ev != nil || !handled || err != nil || log.HighWatermark() != 100 {
		t.Fatalf("%+v %v %v", ev, handled, err)
	}
	if _, handled, _ := Execute(log, replica.StopFetching{}, now); handled {
		t.Fatal("StopFetching is no effect on the log")
	}
}

// follower makes a follower's core on log.
func follower(t *testing.T, m *storage.Manager, epoch cluster.LeaderEpoch) (*replica.Partition, *storage.Log) {
	t.Helper()
	p := replica.New(replica.Config{Self: 1, LagTimeMax: time.Second, MinInSync: 1})
	var log *storage.Log
	events := []replica.Event{replica.LeaderAndISR{At: now, Leader: 2, LeaderEpoch: epoch, ISR: []cluster.BrokerID{2},
		Replicas: []cluster.BrokerID{1, 2}}}
	for ; len(events) > 0; events = events[1:] {
		for _, eff := range p.Step(events[0], nil) {
			if eff, ok := eff.(replica.OpenLog); ok {
				var ev replica.LogOpened
				log, ev, _ = Open(m, tp, storage.DefaultConfig(), eff, now)
				events = append(events, ev)
				continue
			}
			if ev, _, err := Execute(log, eff, now); err != nil {
				t.Fatal(err)
			} else if ev != nil {
				events = append(events, ev)
			}
		}
	}
	return p, log
}

func TestApplyFetch(t *testing.T) {
	fs := mem()
	m := open(t, fs, "/d")
	p, log := follower(t, m, 5)
	leader := create(t, open(t, mem(), "/d"))
	lead(t, leader, 5, 10)
	s, err := leader.Read(0, 1<<20, 10, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	data := make([]byte, s.Size())
	if _, err := s.ReadInto(data); err != nil {
		t.Fatal(err)
	}
	a := Answer{LeaderEpoch: 5, FetchOffset: 0, FetchedEpoch: -1, HighWatermark: 4, Records: data}

	damaged := a
	damaged.Records = append([]byte(nil), data...)
	damaged.Records[len(data)-1] ^= 1
	ev, _, err := ApplyFetch(p, log, damaged, now)
	if fa, ok := ev.(replica.FetchAnswered); !ok || !fa.AppendFailed || err == nil || fa.LogEnd != 0 {
		t.Fatalf("damaged records: %+v %v", ev, err)
	}
	ev, appended, err := ApplyFetch(p, log, a, now)
	fa, ok := ev.(replica.FetchAnswered)
	if !ok || err != nil || appended != len(data) || fa.LogEnd != 10 || fa.LastEpoch != 5 {
		t.Fatalf("%+v %d %v", ev, appended, err)
	}
	p.Step(ev, nil)
	if p.LogEnd() != 10 || p.HighWatermark() != 4 {
		t.Fatalf("log end %d, high watermark %d", p.LogEnd(), p.HighWatermark())
	}
	// The same answer again is stale: nothing is appended.
	if _, appended, err = ApplyFetch(p, log, a, now); appended != 0 || err != nil || log.LogEndOffset() != 10 {
		t.Fatalf("a stale answer appended %d bytes, %v", appended, err)
	}
	// A disk that fails is not a damaged batch.
	fs.Inject(vfs.Rule{Err: errors.New("input/output error")})
	a.FetchOffset, a.FetchedEpoch = 10, 5
	lead(t, leader, 5, 1)
	s2, _ := leader.Read(10, 1<<20, 11, true)
	defer s2.Release()
	a.Records = make([]byte, s2.Size())
	_, _ = s2.ReadInto(a.Records)
	if ev, _, err = ApplyFetch(p, log, a, now); ev != (replica.LogFailed{At: now}) || err == nil {
		t.Fatalf("%+v %v", ev, err)
	}
}
