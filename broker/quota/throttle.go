package quota

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kctl/zkutil/cluster"
)

// Unbounded is a bound that holds nothing back.
const Unbounded = math.MaxInt64

// Throttle bounds what goes on for the listed replicas (KIP-73). All their bytes count; held back are only those of
// replicas that are not in sync, so that a bound, however low, shrinks no ISR. It is not safe for concurrent use.
type Throttle struct {
	bound  int64
	topics map[string]Replicas
	rate   Rate
}

// Replicas are those of one topic on one broker that a throttle lists.
type Replicas struct {
	All        bool
	Partitions []int32
}

// NewThrottle returns one without a bound that lists nothing.
func NewThrottle() *Throttle { return &Throttle{bound: Unbounded, topics: map[string]Replicas{}} }

// ParseReplicas reads leader. or follower.replication.throttled.replicas: * or partition:broker pairs, of which those
// of self count. What cannot be read is left out: a broker starts with any configuration.
func ParseReplicas(list string, self cluster.BrokerID) (out Replicas) {
	if strings.TrimSpace(list) == "*" {
		return Replicas{All: true}
	}
	for _, pair := range strings.Split(list, ",") {
		part, broker, ok := strings.Cut(strings.TrimSpace(pair), ":")
		if !ok {
			continue
		}
		p, perr := strconv.ParseInt(part, 10, 32)
		b, berr := strconv.ParseInt(broker, 10, 32)
		if perr == nil && berr == nil && cluster.BrokerID(b) == self && !slices.Contains(out.Partitions, int32(p)) {
			out.Partitions = append(out.Partitions, int32(p))
		}
	}
	return out
}

// SetBound sets the bound in bytes per second; Unbounded is none.
func (t *Throttle) SetBound(bytesPerSecond int64) { t.bound = bytesPerSecond }

// List replaces what is listed of a topic.
func (t *Throttle) List(topic string, r Replicas) {
	if !r.All && len(r.Partitions) == 0 {
		delete(t.topics, topic)
		return
	}
	t.topics[topic] = r
}

// Any reports whether anything is listed.
func (t *Throttle) Any() bool { return len(t.topics) > 0 }

// Lists reports whether a replica is throttled at all.
func (t *Throttle) Lists(tp cluster.TopicPartition) bool {
	r, ok := t.topics[tp.Topic]
	return ok && (r.All || slices.Contains(r.Partitions, tp.Partition))
}

// Exceeded reports whether more than the bound has gone through lately.
func (t *Throttle) Exceeded(now time.Time) bool {
	return t.bound < Unbounded && t.rate.Exceeds(now, t.bound)
}

// HoldsBack reports whether the records of a replica have to wait: it is listed, not in sync, and the bound exceeded.
func (t *Throttle) HoldsBack(tp cluster.TopicPartition, inSync bool, now time.Time) bool {
	return !inSync && t.Lists(tp) && t.Exceeded(now)
}

// Record counts bytes at now.
func (t *Throttle) Record(now time.Time, bytes int) { t.rate.Record(now, int64(bytes)) }
