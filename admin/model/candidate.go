package model

import "kctl/zkutil/cluster"

// Candidate is one replica of a partition that has no leader, and what is known of its log.
type Candidate struct {
	Topic        string
	Partition    int32
	Broker       cluster.BrokerID
	Live         bool                // its broker is registered
	InSync       bool                // it is in the last ISR: it has every committed record
	Chosen       bool                // the election takes it
	LeaderEpoch  cluster.LeaderEpoch // the partition's last known leader epoch, -1 when not known
	LogEndOffset int64               // end of its own log, -1 when not known
	LastEpoch    cluster.LeaderEpoch // the last epoch in its own log, -1 when not known
	Loss         string              // on the chosen one: what is or may be lost
	Err          string
}
