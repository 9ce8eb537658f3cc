package replica

import (
	"slices"
	"time"

	"kctl/broker/invariant"
	"kctl/zkutil/cluster"
)

// Role is what this broker is for the partition.
type Role uint8

// The roles. None: no decision has arrived, or the replica was stopped. Offline: its log directory failed,
// which nothing but a restart of the broker ends.
const (
	None Role = iota
	Leader
	Follower
	Offline
)

// String returns the role in lower case.
func (r Role) String() string {
	return [...]string{"none", "leader", "follower", "offline"}[r]
}

// mayBecome lists the legal transitions; an illegal one is a bug of this package.
var mayBecome = map[Role][]Role{
	None:     {Leader, Follower, Offline},
	Leader:   {Leader, Follower, None, Offline},
	Follower: {Leader, Follower, None, Offline},
	Offline:  {None},
}

// Config is what a partition needs to know besides the controller's word.
type Config struct {
	Self       cluster.BrokerID
	LagTimeMax time.Duration // replica.lag.time.max.ms
	MinInSync  int           // min.insync.replicas of the topic
}

// Partition is one replica of a partition. The zero value is unusable; see New. It is not safe for
// concurrent use: the caller serialises every call.
type Partition struct {
	cfg  Config
	role Role

	// The newest decision that was applied.
	epoch           cluster.LeaderEpoch
	controllerEpoch cluster.ControllerEpoch
	leader          cluster.BrokerID
	replicas        []cluster.BrokerID
	adding          []cluster.BrokerID
	removing        []cluster.BrokerID
	topicID         cluster.TopicID
	stopped         bool // by StopReplica: a decision of the same epoch does not bring it back

	applying *applying // a decision that waits for the log

	log logState

	// As leader.
	isr        []cluster.BrokerID // committed: what the state znode held at zkVersion
	zkVersion  cluster.ZKVersion
	pending    *isrChange // nil: no ISR change in flight
	epochStart int64      // log end when this leader epoch began
	followers  []follower
	deposed    deposedState

	// As follower.
	fetch fetchState
}

// logState mirrors the log between events.
type logState struct {
	open       bool
	start, end int64
	hw         int64
	lastEpoch  cluster.LeaderEpoch // of the last record
	emptyEpoch bool                // the epoch cache goes on after it
	topicID    cluster.TopicID
}

// applying is a decision whose log effects are under way.
type applying struct {
	ev   LeaderAndISR
	wait applyStage
}

type applyStage uint8

const (
	waitOpen applyStage = iota + 1
	waitEpochStart
	waitCut
)

// New returns a partition that knows nothing yet: its first LeaderAndISR opens the log.
func New(cfg Config) *Partition {
	return &Partition{cfg: cfg, epoch: cluster.NoLeaderEpoch, leader: cluster.NoLeader}
}

// Step applies one event and appends, in the order in which they are due, what the caller must do.
func (p *Partition) Step(ev Event, out []Effect) []Effect {
	switch ev := ev.(type) {
	case Appended:
		out = p.appended(ev, out)
	case FollowerFetched:
		out = p.followerFetched(ev, out)
	case FollowerSeen:
		out = p.followerSeen(ev, out)
	case FetchAnswered:
		out = p.fetchAnswered(ev, out)
	case FetchLost:
		p.fetchLost(ev)
	case LeaderAndISR:
		out = p.leaderAndISR(ev, out)
	case StopReplica:
		out = p.stopReplica(ev, out)
	case LogOpened:
		out = p.logOpened(ev, out)
	case EpochStartAssigned:
		out = p.epochStartAssigned(ev, out)
	case Truncated:
		out = p.truncated(ev, out)
	case LogStartAdvanced:
		out = p.logStartAdvanced(ev, out)
	case LogFailed:
		out = p.logFailed(out)
	case ConfigChanged:
		p.cfg.MinInSync = ev.MinInSync
		out = p.advanceHighWatermark(ev.At, out)
	case HigherEpochSeen:
		out = p.higherEpochSeen(ev, out)
	case ReplicaDown:
		out = p.replicaDown(ev, out)
	case Tick:
		out = p.tick(ev.At, out)
	case ISRWritten:
		out = p.isrWritten(ev, out)
	case StateRead:
		out = p.stateRead(ev, out)
	case LeaderAsked:
		out = p.leaderAsked(ev, out)
	default:
		invariant.Assert(false, "unknown event %T", ev)
	}
	p.check()
	return out
}

// check asserts what must hold between events.
func (p *Partition) check() {
	if !p.log.open {
		return
	}
	invariant.Assert(p.log.start <= p.log.hw && p.log.hw <= p.log.end,
		"log start %d, high watermark %d, log end %d are out of order", p.log.start, p.log.hw, p.log.end)
	if p.role == Leader {
		invariant.Assert(!p.fetch.active, "a leader must not fetch")
	}
}

func (p *Partition) setRole(to Role) Role {
	from := p.role
	invariant.Assert(slices.Contains(mayBecome[from], to) || from == to, "role %s to %s", from, to)
	p.role = to
	return from
}

// Role returns the role.
func (p *Partition) Role() Role { return p.role }

// LeaderEpoch returns the epoch of the newest decision, or cluster.NoLeaderEpoch.
func (p *Partition) LeaderEpoch() cluster.LeaderEpoch { return p.epoch }

// Leader returns the leader as last told, or cluster.NoLeader.
func (p *Partition) Leader() cluster.BrokerID { return p.leader }

// ControllerEpoch returns that of the newest decision.
func (p *Partition) ControllerEpoch() cluster.ControllerEpoch { return p.controllerEpoch }

// ISR returns the committed ISR as this broker knows it; it must not be modified.
func (p *Partition) ISR() []cluster.BrokerID { return p.isr }

// Replicas returns the assigned replicas in order; it must not be modified.
func (p *Partition) Replicas() []cluster.BrokerID { return p.replicas }

// ZKVersion returns the version of the state znode at which the ISR is known.
func (p *Partition) ZKVersion() cluster.ZKVersion { return p.zkVersion }

// HighWatermark returns the offset below which everything is committed.
func (p *Partition) HighWatermark() int64 { return p.log.hw }

// LogEnd returns the log end offset as of the last event.
func (p *Partition) LogEnd() int64 { return p.log.end }

// LogStart returns the log start offset as of the last event.
func (p *Partition) LogStart() int64 { return p.log.start }

// LogOpen reports whether the log was opened.
func (p *Partition) LogOpen() bool { return p.log.open }

// ISRChangePending reports whether an ISR change is in flight, and whether it waits for the controller.
func (p *Partition) ISRChangePending() (pending, blocked bool) {
	return p.pending != nil, p.pending != nil && p.pending.stage == stageBlocked
}

// UnderReplicated reports, on a leader, whether a replica that is to stay is out of the ISR. Replicas that a
// reassignment is adding do not count (KIP-352).
func (p *Partition) UnderReplicated() bool {
	if p.role != Leader {
		return false
	}
	for _, r := range p.replicas {
		if !slices.Contains(p.isr, r) && !slices.Contains(p.adding, r) {
			return true
		}
	}
	return false
}

// UnderMinISR reports, on a leader, whether writes with acks=all are refused.
func (p *Partition) UnderMinISR() bool { return p.role == Leader && len(p.isr) < p.effectiveMin() }

// FollowerEnd returns, on a leader, the log end of a follower, or -1 when it has not fetched in this epoch.
func (p *Partition) FollowerEnd(id cluster.BrokerID) int64 {
	if f := p.follower(id); f != nil {
		return f.end
	}
	return -1
}

// effectiveMin is min.insync.replicas, but no more than there are replicas: a topic with replication factor 1
// and a minimum of 2 must not be dead for ever.
func (p *Partition) effectiveMin() int { return min(p.cfg.MinInSync, len(p.replicas)) }
