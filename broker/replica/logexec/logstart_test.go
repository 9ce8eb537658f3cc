package logexec

import (
	"testing"

	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/broker/vfs"
	"kctl/zkutil/cluster"
)

// follow makes a partition on log follow broker 2 in an epoch.
func follow(t *testing.T, m *storage.Manager, epoch cluster.LeaderEpoch) (*replica.Partition, *storage.Log) {
	t.Helper()
	p := replica.New(replica.Config{Self: 1, MinInSync: 1})
	var log *storage.Log
	effects := p.Step(replica.LeaderAndISR{At: now, Leader: 2, LeaderEpoch: epoch, ISR: []cluster.BrokerID{2}, Replicas: []cluster.BrokerID{2, 1}, IsNew: true}, nil)
	for len(effects) > 0 {
		eff := effects[0]
		effects = effects[1:]
		var answer replica.Event
		var err error
		if o, ok := eff.(replica.OpenLog); ok {
			log, answer, err = Open(m, tp, storage.DefaultConfig(), o, now)
		} else {
			answer, _, err = Execute(log, eff, now)
		}
		if err != nil {
			t.Fatal(err)
		}
		if answer != nil {
			effects = append(effects, p.Step(answer, nil)...)
		}
	}
	return p, log
}

// TestLogStartInsideABatch: a follower that begins where records were deleted, inside a batch, gets the whole batch; log start and
// high watermark stay where they were told to be.
func TestLogStartInsideABatch(t *testing.T) {
	leader := create(t, open(t, mem(), "/l"))
	for range 2 {
		lead(t, leader, 1, 5)
	}
	leader.SetHighWatermark(10)
	if err := leader.AdvanceLogStart(7); err != nil {
		t.Fatal(err)
	}
	p, log := follow(t, open(t, mem(), "/f"), 1)
	for _, ev := range []replica.Event{
		replica.FetchAnswered{At: now, LeaderEpoch: 1, FetchedEpoch: cluster.NoLeaderEpoch, Code: replica.CodeOffsetOutOfRange},
		replica.LeaderAsked{At: now, LeaderEpoch: 1, LogStart: 7, LogEnd: 10, EpochEnd: replica.UndefinedEpochEnd},
	} {
		for _, eff := range p.Step(ev, nil) {
			if answer, _, err := Execute(log, eff, now); err != nil {
				t.Fatal(err)
			} else if answer != nil {
				p.Step(answer, nil)
			}
		}
	}
	if p.LogStart() != 7 || p.LogEnd() != 7 {
		t.Fatalf("the log is [%d, %d)", p.LogStart(), p.LogEnd())
	}
	ev, _, err := ApplyFetch(p, log, Answer{LeaderEpoch: 1, FetchOffset: 7, FetchedEpoch: cluster.NoLeaderEpoch, HighWatermark: 7, LogStart: 7, Records: whole(t, leader)}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, eff := range p.Step(ev, nil) {
		if _, _, err := Execute(log, eff, now); err != nil {
			t.Fatal(err)
		}
	}
	if log.LogStartOffset() != 7 || log.LogEndOffset() != 10 || log.HighWatermark() != p.HighWatermark() || p.LogStart() != 7 {
		t.Errorf("log start %d (known as %d), high watermark %d (known as %d), log end %d", log.LogStartOffset(), p.LogStart(), log.HighWatermark(), p.HighWatermark(), log.LogEndOffset())
	}
}

// TestMoveForgetsWhatWasDeleted: a copy that holds nothing but what is deleted by now may hold records that were cut off before: none
// of them is there after the move, nor when the broker starts without its last checkpoint of log starts.
func TestMoveForgetsWhatWasDeleted(t *testing.T) {
	fs := mem()
	m := open(t, fs, "/a", "/b")
	log := create(t, m)
	lead(t, log, 1, 5)
	lead(t, log, 2, 5)
	log.SetHighWatermark(5)
	future, err := SetMove(m, log, other(log))
	if err != nil {
		t.Fatal(err)
	}
	var buf []byte
	for n := 1; n > 0; {
		if n, err = CopyMove(log, future, log.LogEndOffset(), 100, &buf); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Execute(log, replica.TruncateTo{Offset: 5}, now); err != nil {
		t.Fatal(err)
	}
	lead(t, log, 3, 5)
	log.SetHighWatermark(10)
	if err := log.AdvanceLogStart(10); err != nil {
		t.Fatal(err)
	}
	next := (*storage.Log)(nil)
	for steps := 0; next == nil; steps++ {
		if steps == 100 {
			t.Fatal("the move does not end")
		}
		if next, _, err = FinishMove(m, log, future, 100, 4, &buf); err != nil {
			t.Fatal(err)
		}
	}
	if next.LogStartOffset() != 10 || next.LogEndOffset() != 10 || next.Size() != 0 {
		t.Errorf("the log is [%d, %d) with %d bytes", next.LogStartOffset(), next.LogEndOffset(), next.Size())
	}
	again, ok := open(t, fs.CrashClone(vfs.KeepUnsynced, 1), "/a", "/b").Log(tp)
	if !ok || again.LogStartOffset() != 10 || again.LogEndOffset() != 10 {
		t.Errorf("after a restart: %v, the log is [%d, %d)", ok, again.LogStartOffset(), again.LogEndOffset())
	}
}

// TestRecordsOfAnOldEpochBelowTheLeadersStart: the leader forgot the epochs of what it deleted. Records that an earlier leader left here
// and that are older than that are thrown away before anything follows them.
func TestRecordsOfAnOldEpochBelowTheLeadersStart(t *testing.T) {
	m := open(t, mem(), "/d")
	lead(t, create(t, m), 1, 8)
	p, log := follower(t, m, 2)
	a := Answer{LeaderEpoch: 2, FetchOffset: 8, FetchedEpoch: 1, HighWatermark: 8, LogStart: 8, Records: batch(t, 3)}
	ev, appended, err := ApplyFetch(p, log, a, now)
	if err != nil || appended != 0 || log.LogEndOffset() != 8 {
		t.Fatalf("%d bytes were appended, log end %d, %v", appended, log.LogEndOffset(), err)
	}
	for _, eff := range p.Step(ev, nil) {
		if _, _, err := Execute(log, eff, now); err != nil {
			t.Fatal(err)
		}
	}
	if log.LogStartOffset() != 8 || log.LogEndOffset() != 8 {
		t.Fatalf("log is [%d, %d)", log.LogStartOffset(), log.LogEndOffset())
	}
}
