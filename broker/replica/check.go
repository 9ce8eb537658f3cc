package replica

import (
	"time"

	"kctl/zkutil/cluster"
)

// Consumer is the replica id of a client that is no replica.
const Consumer cluster.BrokerID = -1

// DebugReplica is the replica id of an operator's tool: it may ask any replica for its own log end and epoch.
const DebugReplica cluster.BrokerID = -2

// AllReplicas is the acks value of a produce request that waits for the ISR.
const AllReplicas int16 = -1

// EpochIndex answers where a leader epoch ends; *storage.Log has it. See EpochEnd.
type EpochIndex interface {
	EndOffsetForEpoch(epoch cluster.LeaderEpoch) (found cluster.LeaderEpoch, end int64)
}

// CheckProduce says whether a leader may append now: CodeNone, or the refusal for the producer.
func (p *Partition) CheckProduce(at time.Time, acks int16) Code {
	switch {
	case p.role == Offline:
		return CodeKafkaStorageError
	case p.role != Leader:
		return CodeNotLeaderOrFollower
	case p.deposed.seen > p.epoch && at.Sub(p.deposed.since) >= deposedGrace:
		return CodeNotLeaderOrFollower
	case acks == AllReplicas && len(p.isr) < p.effectiveMin():
		return CodeNotEnoughReplicas
	}
	return CodeNone
}

// CheckAcked says whether a produce with acks=all whose last record is below required is done, and how.
func (p *Partition) CheckAcked(required int64) (done bool, code Code) {
	switch {
	case p.role == Offline:
		return true, CodeKafkaStorageError
	case p.role != Leader:
		return true, CodeNotLeaderOrFollower
	case p.log.hw < required:
		return false, CodeNone
	case p.maximalISRSize() < p.effectiveMin():
		return true, CodeNotEnoughReplicasAppended
	}
	return true, CodeNone
}

// FetchQuery is what one partition of a Fetch request asks for.
type FetchQuery struct {
	Replica          cluster.BrokerID    // Consumer, or the fetching follower
	CurrentEpoch     cluster.LeaderEpoch // the fetcher's idea of the leader epoch; NoLeaderEpoch: not checked
	LastFetchedEpoch cluster.LeaderEpoch // epoch of the last record it holds; NoLeaderEpoch: not checked
	Offset           int64
	// AnyReplica lets a consumer read from a follower too (Fetch v11+, KIP-392).
	AnyReplica bool
}

// FetchVerdict is the answer of the rules to a FetchQuery. With CodeNone and no Diverging, the log may be
// read from the offset up to Bound; when Bound is not above the offset, the answer is an empty record set.
type FetchVerdict struct {
	Code          Code
	Bound         int64 // exclusive: the high watermark for consumers, the log end for followers
	HighWatermark int64
	LogStart      int64
	Diverging     *EpochEnd
	// Leader and LeaderEpoch are what this broker believes; with CodeNotLeaderOrFollower and
	// CodeFencedLeaderEpoch the client is told (KIP-951).
	Leader      cluster.BrokerID
	LeaderEpoch cluster.LeaderEpoch
	// HigherEpoch is true when a replica of this partition fetched with an epoch above ours: the caller
	// steps HigherEpochSeen.
	HigherEpoch bool
}

// CheckFetch applies the rules of a fetch: who may read, epoch fencing (KIP-320), where logs diverge
// (KIP-595), and the window between the high watermark and the log end, in which a consumer gets an empty
// set and not OFFSET_OUT_OF_RANGE (V3 discussion 7).
func (p *Partition) CheckFetch(q FetchQuery, epochs EpochIndex) FetchVerdict {
	v := FetchVerdict{HighWatermark: p.log.hw, LogStart: p.log.start, Leader: p.leader, LeaderEpoch: p.epoch, Bound: p.log.hw}
	fromReplica := q.Replica >= 0
	if v.Code = p.checkAccess(q.CurrentEpoch, fromReplica || !q.AnyReplica); v.Code != CodeNone {
		v.HigherEpoch = v.Code == CodeUnknownLeaderEpoch && fromReplica && p.role == Leader && p.follower(q.Replica) != nil
		return v
	}
	if fromReplica {
		if p.follower(q.Replica) == nil {
			// The assignment that names it has not reached us: it shall try again, not give up.
			v.Code = CodeUnknownLeaderEpoch
			if q.CurrentEpoch < 0 {
				v.Code = CodeNotLeaderOrFollower
			}
			return v
		}
		v.Bound = p.log.end
	}
	if q.LastFetchedEpoch >= 0 {
		epoch, end := epochs.EndOffsetForEpoch(q.LastFetchedEpoch)
		switch ee := (EpochEnd{epoch, end}); {
		case !ee.Known():
			v.Code = CodeOffsetOutOfRange
			return v
		case epoch < q.LastFetchedEpoch || end < q.Offset:
			v.Diverging = &ee
			return v
		}
	}
	if q.Offset < p.log.start || q.Offset > p.log.end {
		v.Code = CodeOffsetOutOfRange
	}
	return v
}

// CheckEpoch is the rule for OffsetForLeaderEpoch and for other requests to the leader: the epoch is fenced,
// and only the leader answers.
func (p *Partition) CheckEpoch(current cluster.LeaderEpoch) Code { return p.checkAccess(current, true) }

func (p *Partition) checkAccess(current cluster.LeaderEpoch, leaderOnly bool) Code {
	switch {
	case p.role == Offline:
		return CodeKafkaStorageError
	case p.role == None:
		return CodeNotLeaderOrFollower
	case current >= 0 && current < p.epoch:
		return CodeFencedLeaderEpoch
	case current >= 0 && current > p.epoch:
		return CodeUnknownLeaderEpoch
	case leaderOnly && p.role != Leader:
		return CodeNotLeaderOrFollower
	}
	return CodeNone
}

// ListQuery is what one partition of a ListOffsets request asks for, apart from the timestamp.
type ListQuery struct {
	Replica      cluster.BrokerID // Consumer, DebugReplica, or a follower
	CurrentEpoch cluster.LeaderEpoch
	// Earliest is true for the log start, which needs no high watermark.
	Earliest bool
	// HasOffsetNotAvailable is true from request version 5 on: older clients are told LEADER_NOT_AVAILABLE.
	HasOffsetNotAvailable bool
}

// ListVerdict answers a ListQuery: with CodeNone, offsets below Bound may be told.
type ListVerdict struct {
	Code        Code
	Bound       int64
	LogStart    int64
	LeaderEpoch cluster.LeaderEpoch
}

// CheckListOffsets applies the rules of ListOffsets. A client is told committed offsets only, and none at all
// while a new leader's high watermark is below the start of its epoch, because offsets would step back
// (KIP-207). A follower and the debug replica see the log end; the debug replica may ask anyone.
func (p *Partition) CheckListOffsets(q ListQuery) ListVerdict {
	v := ListVerdict{LogStart: p.log.start, LeaderEpoch: p.epoch, Bound: p.log.end}
	if v.Code = p.checkAccess(q.CurrentEpoch, q.Replica != DebugReplica); v.Code != CodeNone {
		return v
	}
	if q.Replica != Consumer {
		return v
	}
	v.Bound = p.log.hw
	if p.role == Leader && !q.Earliest && p.log.hw < p.epochStart {
		v.Code = CodeLeaderNotAvailable
		if q.HasOffsetNotAvailable {
			v.Code = CodeOffsetNotAvailable
		}
	}
	return v
}

// CheckDelete says whether a leader may delete its records below offset, and up to where: offset -1 means the
// high watermark. What is not committed cannot be deleted.
func (p *Partition) CheckDelete(offset int64) (below int64, code Code) {
	if code := p.checkAccess(cluster.NoLeaderEpoch, true); code != CodeNone {
		return -1, code
	}
	if offset == -1 {
		offset = p.log.hw
	}
	if offset < 0 || offset > p.log.hw {
		return -1, CodeOffsetOutOfRange
	}
	return offset, CodeNone
}

// LowWatermark is, on a leader, the smallest log start of the replicas whose brokers live: below it no replica
// that may become leader holds anything. It is -1 while a living follower has not fetched yet.
func (p *Partition) LowWatermark() int64 {
	low := p.log.start
	for i := range p.followers {
		if f := &p.followers[i]; f.alive {
			low = min(low, f.start)
		}
	}
	return low
}
