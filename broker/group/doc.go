// Package group is the classic consumer-group coordinator as a state machine: membership, rebalances,
// committed offsets, their retention and deletion, as the coordinator of Apache Kafka 3.9 does them
// (KIP-62, KIP-211, KIP-345, KIP-394, KIP-447, KIP-559, KIP-814, KIP-848's listing fields).
//
// A Shard holds the groups of one partition of __consumer_offsets. It is fed events that carry their time
// (Step) and answers with effects in the order in which they must be carried out: replies to requests,
// records to append, timers to arm, notes for the log. It has no clock, no goroutine, no lock, no log and
// no I/O; one owner at a time may call it. Queries (Describe, List, FetchOffsets) change nothing.
//
// Duties of the caller:
//
//  1. Append effects are written in the order given; each is answered by exactly one Appended event with
//     the same id. Appended{Code: None} only once the records are committed (acks=all).
//  2. ArmTimer is answered by TimerFired at that time or later. Timers are never cancelled: a timer that
//     lost its meaning is ignored when it fires, so a heartbeat costs no timer work at all.
//  3. Every request event gets exactly one reply effect, at once or later, unless the shard is dropped;
//     Unload answers all that wait with NOT_COORDINATOR.
//  4. Expire is sent every offsets.retention.check.interval.ms.
//  5. Randomness (the suffix of member ids) comes inside the event.
//
// A waiting JoinGroup or SyncGroup that is replaced by a newer one of the same member is answered with
// REBALANCE_IN_PROGRESS; Apache Kafka leaves it unanswered for ever.
//
// A group is written to the log when its leader hands in the assignment, when a static member comes back
// under a new member id, and when its last member has left. An offset is visible once its record is
// committed; until then FetchOffsets with RequireStable answers UNSTABLE_OFFSET_COMMIT.
//
// The package may import value packages only (zkutil/cluster, broker/invariant, kerr for names).
package group
