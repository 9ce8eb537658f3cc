package logexec

import (
	"errors"
	"time"

	"kctl/broker/replica"
	"kctl/broker/storage"
	"kctl/zkutil/cluster"
)

// Open carries out OpenLog: the partition's log, made when there is none. The log is nil when the answer is
// Failed. An error is returned beside the event so that the caller can log it and take a directory offline.
func Open(m *storage.Manager, tp cluster.TopicPartition, cfg storage.Config, eff replica.OpenLog, at time.Time) (*storage.Log, replica.LogOpened, error) {
	log, found := m.Log(tp)
	var err error
	if !found {
		if !eff.IsNew && anyOffline(m) {
			// The log may lie in the directory that is offline: making an empty one would lose it.
			return nil, replica.LogOpened{At: at, Failed: true}, storage.ErrOffline
		}
		log, err = m.Create(tp, eff.TopicID, cfg)
	} else if id := log.TopicID(); id.IsZero() && !eff.TopicID.IsZero() {
		err = log.SetTopicID(eff.TopicID)
	}
	if err != nil {
		return nil, replica.LogOpened{At: at, Failed: true}, err
	}
	if found {
		log.SetConfig(cfg)
	}
	hw, ok := m.HighWatermark(tp)
	if !ok {
		hw = log.LogStartOffset()
	}
	return log, replica.LogOpened{At: at, LogStart: log.LogStartOffset(), LogEnd: log.LogEndOffset(),
		HighWatermark: hw, LastEpoch: LastEpoch(log), EmptyEpoch: emptyEpoch(log), TopicID: log.TopicID()}, nil
}

func anyOffline(m *storage.Manager) bool {
	for _, d := range m.Dirs() {
		if !d.Online() {
			return true
		}
	}
	return false
}

// LastEpoch is the leader epoch of the log's last record, NoLeaderEpoch when it is empty or unknown. It is not
// the newest entry of the epoch cache, which may be an epoch without records: fetching with that one would
// make the leader see a divergence that truncation cannot mend (KAFKA-7164, KAFKA-10706).
func LastEpoch(log *storage.Log) cluster.LeaderEpoch {
	end := log.LogEndOffset()
	if end <= log.LogStartOffset() {
		return cluster.NoLeaderEpoch
	}
	epoch, ok := log.EpochForOffset(end - 1)
	if !ok {
		return cluster.NoLeaderEpoch
	}
	return epoch
}

// emptyEpoch reports whether the epoch cache goes on after the last record's epoch.
func emptyEpoch(log *storage.Log) bool {
	latest, ok := log.LatestEpoch()
	return ok && latest != LastEpoch(log)
}

// dropEmptyEpoch removes epochs that begin at the log end. Naming the last record's epoch anew, at its own
// start, makes the cache forget all that came after.
func dropEmptyEpoch(log *storage.Log) error {
	last := LastEpoch(log)
	if last < 0 || !emptyEpoch(log) {
		return nil // an empty log's cache is put right by the first append
	}
	start := log.LogStartOffset()
	if last > 0 {
		_, start = log.EndOffsetForEpoch(last - 1)
	}
	return log.AssignEpochStart(last, start)
}

// EpochEnd looks an epoch up in the log.
func EpochEnd(log *storage.Log, epoch cluster.LeaderEpoch) replica.EpochEnd {
	found, end := log.EndOffsetForEpoch(epoch)
	return replica.EpochEnd{Epoch: found, Offset: end}
}

// Execute carries out one log effect and returns its answer; handled is false for effects that do not concern
// the log. ev is nil for effects that have no answer. A storage failure comes back inside the event, and as
// err for the caller to log and to take the directory offline.
func Execute(log *storage.Log, eff replica.Effect, at time.Time) (ev replica.Event, handled bool, err error) {
	switch eff := eff.(type) {
	case replica.SetHighWatermark:
		log.SetHighWatermark(eff.Offset)
		return nil, true, nil
	case replica.AssignEpochStart:
		err = log.AssignEpochStart(eff.Epoch, eff.Offset)
		return replica.EpochStartAssigned{At: at, Failed: err != nil}, true, err
	case replica.TruncateTo:
		if err = log.TruncateTo(eff.Offset); err == nil {
			err = dropEmptyEpoch(log)
		}
		return truncated(log, at, err), true, err
	case replica.TruncateFullyAndStartAt:
		err = log.TruncateFullyAndStartAt(eff.Offset)
		return truncated(log, at, err), true, err
	case replica.AdvanceLogStart:
		err = log.AdvanceLogStart(eff.Offset)
		if errors.Is(err, storage.ErrOffsetOutOfRange) {
			err = nil // the log knows better; its start is in the answer
		}
		return replica.LogStartAdvanced{At: at, LogStart: log.LogStartOffset(), Failed: err != nil}, true, err
	}
	return nil, false, nil
}

func truncated(log *storage.Log, at time.Time, err error) replica.Truncated {
	return replica.Truncated{At: at, LogStart: log.LogStartOffset(), LogEnd: log.LogEndOffset(),
		LastEpoch: LastEpoch(log), Failed: err != nil}
}

// Answer is a leader's answer to a fetch, as it came over the wire.
type Answer struct {
	LeaderEpoch   cluster.LeaderEpoch // with which the fetch was sent
	FetchOffset   int64               // at which the fetch was sent
	FetchedEpoch  cluster.LeaderEpoch // last fetched epoch that was sent
	Code          replica.Code
	HighWatermark int64
	LogStart      int64
	Diverging     *replica.EpochEnd
	Records       []byte
}

// ApplyFetch appends what a fetch brought, if the partition still wants it, and returns the event to step.
// Calling it and stepping the event must be one critical section. err is an append failure to be logged; it is
// an offline directory when it wraps storage.ErrStorage or storage.ErrOffline, and then ev is LogFailed.
func ApplyFetch(p *replica.Partition, log *storage.Log, a Answer, at time.Time) (ev replica.Event, appended int, err error) {
	fa := replica.FetchAnswered{At: at, LeaderEpoch: a.LeaderEpoch, FetchOffset: a.FetchOffset, FetchedEpoch: a.FetchedEpoch, Code: a.Code,
		HighWatermark: a.HighWatermark, LogStart: a.LogStart, Diverging: a.Diverging, LocalEnd: replica.UndefinedEpochEnd}
	if !p.AcceptsFetch(a.LeaderEpoch, a.FetchOffset, a.FetchedEpoch) {
		return fa, 0, nil // stale: the core ignores it
	}
	if a.Diverging != nil {
		fa.LocalEnd = EpochEnd(log, a.Diverging.Epoch)
	}
	if a.Code == replica.CodeNone && a.Diverging == nil && len(a.Records) > 0 && !p.BeginsAnew(a.LogStart) {
		var res storage.AppendResult
		res, err = log.AppendAsFollower(a.Records)
		if errors.Is(err, storage.ErrStorage) || errors.Is(err, storage.ErrOffline) || errors.Is(err, storage.ErrClosed) {
			return replica.LogFailed{At: at}, 0, err
		}
		appended, fa.AppendFailed = res.Bytes, err != nil
		if start := p.LogStart(); log.LogStartOffset() < start {
			// The log was empty and began inside a batch of the leader: it holds all of that batch now. What is deleted of it stays
			// deleted.
			log.SetHighWatermark(p.HighWatermark())
			if aerr := log.AdvanceLogStart(start); aerr != nil {
				return replica.LogFailed{At: at}, 0, aerr
			}
		}
	}
	fa.LogEnd, fa.LastEpoch = log.LogEndOffset(), LastEpoch(log)
	return fa, appended, err
}
