package model

import "kctl/zkutil/cluster"

// LogDir is one log directory of one broker. A broker that did not answer is one LogDir with an empty Path and
// Err. Sizes are bytes, -1 when not known (Kafka tells them of volumes from 3.3 on).
type LogDir struct {
	Broker   cluster.BrokerID
	Path     string
	Err      string // why the directory is offline, or why the broker did not answer
	Total    int64  // of the volume
	Usable   int64  // of the volume
	Replicas []DirReplica
}

// Online reports whether the directory takes replicas.
func (d *LogDir) Online() bool { return d.Err == "" && d.Path != "" }

// Size returns the bytes of the replicas, future ones included.
func (d *LogDir) Size() int64 {
	var n int64
	for i := range d.Replicas {
		n += d.Replicas[i].Size
	}
	return n
}

// DirReplica is one replica in a log directory, sorted by topic and partition. A future replica is the copy that
// is being made in the directory to which the broker moves its replica (KIP-113).
type DirReplica struct {
	Topic     string
	Partition int32
	Size      int64 // bytes
	// OffsetLag is, of a future replica, how many offsets it lacks of the current one; of a current replica how
	// far its log end is below its own high watermark, which is nearly always 0 and not a follower's lag.
	OffsetLag int64
	Future    bool
	// Current is the size of the current replica, in bytes, of a future one; -1 when not known.
	Current int64
}

// Progress returns how much of a future replica is copied, in percent from 0 to 100; -1 when not known.
func (r *DirReplica) Progress() int {
	switch {
	case !r.Future || r.Current < 0:
		return -1
	case r.OffsetLag <= 0 || r.Current == 0:
		return 100
	}
	return int(min(99, r.Size*100/r.Current)) // an offset is still missing
}
