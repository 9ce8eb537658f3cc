package replica

import (
	"time"

	"kctl/zkutil/cluster"
)

// Role is what this broker is for the partition.
type Role uint8

// The roles. None: no decision has arrived, or the replica was stopped. Offline: its log directory failed.
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
}

// New returns a partition that knows nothing yet: its first LeaderAndISR opens the log.
func New(cfg Config) *Partition { return &Partition{cfg: cfg} }

// Role returns the role.
func (p *Partition) Role() Role { return p.role }

// Step applies one event and appends, in the order in which they are due, what the caller must do.
func (p *Partition) Step(ev Event, out []Effect) []Effect { return out }
